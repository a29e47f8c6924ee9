"""Arms with known best, cheap enough for thousands of runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from genbounds.estimators import Moments
from genbounds.simulate import GaussianArm, SkewedArm, StudentArm


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Arms, their reference, and which arms are right answers.

    Attributes
    ----------
    arms : dict of str to Arm
    right : tuple of str
        In a tied scenario one of the tied arms alone: the limit of a vanishing gap, which is the
        hardest case for the guarantee.
    reference : callable
        Of a Generator: the reference of one run (drawn anew where it is a sample), None for IS.
    metric : str
    limit : int
        Most samples per arm.
    first_look : int or None
        None: the metric's own.
    either : bool
        Two tied arms of different kinds: every run is read twice, with either arm as the right
        answer, since an estimator may favour one kind.
    """

    arms: dict[str, Any]
    right: tuple[str, ...]
    reference: Callable[[np.random.Generator], Any]
    metric: str = "fd"
    limit: int = 2_000
    first_look: int | None = None
    either: bool = False

    def readings(self, name: str) -> dict[str, tuple[str, ...]]:
        """Right answers, by the name of the row that counts the others as wrong."""
        if not self.either:
            return {name: self.right}
        return {f"{name}, {arm} is right": (arm,) for arm in self.arms}


@dataclass(frozen=True, slots=True)
class DirichletArm:
    """Posteriors with a Dirichlet distribution: exchangeable classes if `weights` are equal."""

    weights: tuple[float, ...]

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows that sum to one."""
        return rng.dirichlet(self.weights, n)


def standard(d: int) -> Callable[[np.random.Generator], Moments]:
    """N(0, I), exactly known."""
    return lambda rng: Moments(np.zeros(d), np.eye(d), n=None)


def sampled(d: int, m: int) -> Callable[[np.random.Generator], np.ndarray]:
    """M rows of N(0, I), drawn anew in every run."""
    return lambda rng: rng.standard_normal((m, d))


def shift(d: int, axis: int, distance: float) -> np.ndarray:
    mean = np.zeros(d)
    mean[axis] = distance
    return mean


def wide_and_narrow(d: int, wide: float, narrow: float) -> dict[str, GaussianArm]:
    """FD d(σ-1)² from either side; the plug-in's bias is about twice as large on the wide side."""
    return {
        "wide": GaussianArm(np.zeros(d), np.full(d, wide**2)),
        "narrow": GaussianArm(np.zeros(d), np.full(d, narrow**2)),
    }


def shifted(kind: Callable[..., Any], d: int, distances: list[float], **options: Any) -> dict:
    """One arm a distance; FD is its square."""
    return {
        f"a{i}": kind(shift(d, i % d, distance), np.ones(d), **options)
        for i, distance in enumerate(distances)
    }


def errors() -> dict[str, Scenario]:
    """Scenarios for the error rate. "tied": every arm but one would be a wrong answer."""
    flip = wide_and_narrow(16, 1.3, 0.7)
    return early() | {
        "Gaussian, 2 tied, d=8": Scenario(
            arms=shifted(GaussianArm, 8, [0.5, 0.5]), right=("a0",), reference=standard(8)
        ),
        "Gaussian, 2 tied, d=16": Scenario(
            arms=shifted(GaussianArm, 16, [1.0, 1.0]), right=("a0",), reference=standard(16)
        ),
        "Gaussian, 5 tied, d=8": Scenario(
            arms=shifted(GaussianArm, 8, [0.5] * 5), right=("a0",), reference=standard(8)
        ),
        "Gaussian, 5 near-tied (gap 4 %), d=8": Scenario(
            arms=shifted(GaussianArm, 8, [0.5, 0.51, 0.51, 0.51, 0.51]),
            right=("a0",),
            reference=standard(8),
        ),
        "Student t8, 2 tied, d=8": Scenario(
            arms=shifted(StudentArm, 8, [0.5, 0.5], df=8.0),
            right=("a0",),
            reference=standard(8),
        ),
        "Student t8, 5 near-tied (gap 4 %), d=8": Scenario(
            arms=shifted(StudentArm, 8, [0.5, 0.51, 0.51, 0.51, 0.51], df=8.0),
            right=("a0",),
            reference=standard(8),
        ),
        "skewed gamma(1), 2 tied, d=8": Scenario(
            arms=shifted(SkewedArm, 8, [0.5, 0.5], shape=1.0),
            right=("a0",),
            reference=standard(8),
        ),
        "rank flip, tied, d=16": Scenario(
            arms=flip, right=("wide",), reference=standard(16), either=True
        ),
        "rank flip and 3 near-tied (gap 4 %), d=16": Scenario(
            arms=flip
            | shifted(GaussianArm, 16, [1.2, 1.224, 1.224])
            | {"narrow": GaussianArm(np.zeros(16), np.full(16, 0.69**2))},
            right=("wide", "a0"),
            reference=standard(16),
        ),
        "2 tied at the reference (FD 0), d=8": Scenario(
            arms=shifted(GaussianArm, 8, [0.0, 0.0]), right=("a0",), reference=standard(8)
        ),
        "rank flip, tied, sampled reference m=1000, d=16": Scenario(
            arms=flip, right=("wide",), reference=sampled(16, 1_000), either=True
        ),
        "IS, 2 tied, 10 classes": Scenario(
            arms={"a0": DirichletArm((0.2,) * 10), "a1": DirichletArm((0.2,) * 10)},
            right=("a0",),
            reference=lambda rng: None,
            metric="is",
        ),
    }


def pairs(spectrum: np.ndarray) -> dict[str, dict[str, Any]]:
    """Two arms each, at one distance from N(0, diag(spectrum)) by two different ways.

    The estimators for few samples err differently on them.
    """
    d = spectrum.size
    cliff = np.where(np.arange(d) < d // 2, spectrum, 0.05 * spectrum)
    fallen = float(np.square(np.sqrt(cliff) - np.sqrt(spectrum)).sum()) ** 0.5
    return {
        "rank flip": {
            "wide": GaussianArm(np.zeros(d), 1.3**2 * spectrum),
            "narrow": GaussianArm(np.zeros(d), 0.7**2 * spectrum),
        },
        "Student t8 against Gaussian": {
            "t8": StudentArm(shift(d, 0, 1.0), spectrum, df=8.0),
            "Gaussian": GaussianArm(shift(d, 0, 1.0), spectrum),
        },
        "skewed gamma(1) against Gaussian": {
            "gamma": SkewedArm(shift(d, 0, 1.0), spectrum, shape=1.0),
            "Gaussian": GaussianArm(shift(d, 0, 1.0), spectrum),
        },
        "half the directions lost against a shift": {
            "lost": GaussianArm(np.zeros(d), cliff),
            "shifted": GaussianArm(shift(d, 0, fallen), spectrum),
        },
    }


def few() -> dict[str, Scenario]:
    """Arms of 1.5 samples per dimension, scored from half a sample per dimension on.

    The reference is known, or a sample as small as the arms: 3,000 × 2,048 files in small.
    """
    d = 128
    spectrum = np.arange(1, d + 1) ** -0.7
    references: dict[str, Callable[[np.random.Generator], Any]] = {
        "": lambda rng: Moments(np.zeros(d), np.diag(spectrum), n=None),
        f", sampled reference m={3 * d // 2}": lambda rng: (
            rng.standard_normal((3 * d // 2, d)) * np.sqrt(spectrum)
        ),
    }
    return {
        f"few samples: {name}, tied{kind}, d={d}": Scenario(
            arms=arms,
            right=(next(iter(arms)),),
            reference=reference,
            limit=3 * d // 2,
            first_look=d // 2,
            either=True,
        )
        for kind, reference in references.items()
        for name, arms in pairs(spectrum).items()
    }


def lognormal(sd: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Four independent features with all moments, of which samples show little."""
    mean, own = np.exp(0.5), np.sqrt((np.e - 1.0) * np.e)
    return lambda n, rng: sd / own * (rng.lognormal(size=(n, 4)) - mean)


def heavy() -> dict[str, Scenario]:
    """Return wide arms with heavy tails, at distance 1, each beside a Gaussian one at 0.71.

    Half of all samples have none of the rows that make the wide one wide.
    """
    wide = {f"t with {df:g} degrees": StudentArm(np.zeros(4), np.full(4, 1.5**2), df=df)
            for df in (2.5, 3.0, 5.0, 8.0)} | {"lognormal": lognormal(1.5)}  # fmt: skip
    return {
        f"{name}, first look at {first}": Scenario(
            arms={"wide": arm, "Gaussian": GaussianArm(np.zeros(4), np.full(4, 1.42**2))},
            right=("Gaussian",),
            reference=standard(4),
            first_look=first,
        )
        for first in (100, 400)
        for name, arm in wide.items()
    }


def early() -> dict[str, Scenario]:
    """Arms that are scored from two samples a feature on (four, if the reference is a sample).

    Ten samples a feature at most, so that the early looks weigh.
    """
    d = 64
    spectrum = np.arange(1, d + 1) ** -0.7
    reference = Moments(np.zeros(d), np.diag(spectrum), n=None)
    lineups = pairs(spectrum)
    found = {
        f"{name}, tied, d={d}": Scenario(
            arms=arms,
            right=(next(iter(arms)),),
            reference=lambda rng: reference,
            limit=10 * d,
            either=True,
        )
        for name, arms in lineups.items()
    }
    found[f"rank flip, tied, sampled reference m=2000, d={d}"] = Scenario(
        arms=lineups["rank flip"],
        right=("wide",),
        reference=lambda rng: rng.standard_normal((2_000, d)) * np.sqrt(spectrum),
        limit=10 * d,
        either=True,
    )
    return found


def rank_flip() -> Scenario:
    """Build two arms of which the better, wide one (FD 1.44 against 1.54) has the worse plug-in.

    Up to about n = 600, where the scenario ends.
    """
    return Scenario(
        arms=wide_and_narrow(16, 1.3, 0.69), right=("wide",), reference=standard(16), limit=600
    )


def graded(arms: int, gap: float) -> dict[str, Any]:
    """FD 0.25 for the best, each further arm worse by `gap` of that."""
    return shifted(GaussianArm, 8, [0.5 * (1.0 + gap * i) ** 0.5 for i in range(arms)])


def savings() -> dict[str, Scenario]:
    """Scenarios for the number of samples: graded line-ups, then the awkward shapes."""
    lineups = {
        f"{arms} arms, graded by {gap:.0%}": graded(arms, gap)
        for gap in (0.5, 0.3, 0.1)
        for arms in (3, 5, 10, 20)
    }
    # Gaps that need more samples than the habit; three arms, as the others leave early anyway.
    small = {f"3 arms, graded by {gap:.0%}": graded(3, gap) for gap in (0.05, 0.01)}
    lineups |= {
        "2 arms, gap 30 %": graded(2, 0.3),
        "5 arms, all rivals 40 % worse": shifted(GaussianArm, 8, [0.5] + [0.35**0.5] * 4),
        "20 arms, variance-controlled": {
            f"a{i}": GaussianArm(np.zeros(8), np.full(8, (0.9 - 0.025 * i) ** 2)) for i in range(20)
        },
    }
    scenarios = {
        name: Scenario(arms=arms, right=("a0",), reference=standard(8), limit=50_000)
        for name, arms in lineups.items()
    }
    scenarios |= {
        name: Scenario(arms=arms, right=("a0",), reference=standard(8), limit=4_000_000)
        for name, arms in small.items()
    }
    flip = wide_and_narrow(16, 1.3, 0.67) | {
        name: GaussianArm(shift(16, 0, distance), np.ones(16))
        for name, distance in [("poor", 1.5), ("worse", 1.7), ("worst", 2.0)]
    }
    scenarios["rank flip and 3 others, d=16"] = Scenario(
        arms=flip, right=("wide",), reference=standard(16), limit=50_000
    )
    return scenarios
