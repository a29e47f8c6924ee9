"""Planted errors in the studies of rates: what an estimator or a policy could get wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from genbounds.bounds import Bound, catalog
from genbounds.simulate import AuditRow, FrechetArm, audit
from genbounds.simulate.auditing import _rates


@dataclass(frozen=True, kw_only=True)
class Plant:
    """One error.

    Attributes
    ----------
    id : str
        The statement.
    what : str
        The error, in words.
    constants : dict
        What it changes of the claim.
    patches : dict
        What it changes of the studies: a replacement for each name of their module.
    replications : int
        Of the audit; where the error is seen with fewer, fewer.
    seen : bool
        Whether the audit is known to see it.
    """

    id: str
    what: str
    constants: dict[str, float] = dataclasses.field(default_factory=dict)
    patches: dict[str, Any] = dataclasses.field(default_factory=dict)
    replications: int = 600
    seen: bool = True

    def bound(self) -> Bound:
        """Return the statement with the error."""
        printed = catalog()[self.id]
        return dataclasses.replace(printed, constants={**printed.constants, **self.constants})

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Put the error in place."""
        with mock.patch.dict(vars(_rates), self.patches):
            yield

    def row(self) -> AuditRow:
        """Audit with the error."""
        with self.planted():
            bound = self.bound()
            return audit(catalogue={self.id: bound}, replications=self.replications)[self.id]


def plain(sizes: Any) -> Any:
    """Take the score of the largest subset, in place of the line at 0."""
    return (sizes == sizes[-1]).astype(float)


def average_of_subsets(sizes: Any) -> Any:
    """Take the mean of all subsets' scores."""
    return np.full(sizes.size, 1.0 / sizes.size)


def line_in(power: float) -> Callable[[Any], Any]:
    """Fit a line in N^power in place of 1/N."""

    def weights(sizes: Any) -> Any:
        return np.linalg.pinv(np.stack([np.ones_like(sizes), sizes**power], axis=1))[0]

    return weights


def unscrambled(d: int, n: int, rng: np.random.Generator) -> Any:
    """Give the points of the Sobol sequence itself, the same every time."""
    from scipy.stats import qmc

    return qmc.Sobol(d, scramble=False).random(n)


def seen_enough(p: Any, t: Any) -> Any:
    """Miss a class of probability p with as many landmarks as it takes."""
    return (1 - p) ** (t / p)


_distances = _rates._distances


def unbiased(arm: FrechetArm, n: int, count: int, rng: np.random.Generator) -> Any:
    """Give a corrected score, which has the spread of the plug-in and no bias."""
    values = _distances(arm, n, count, rng)
    return values - values.mean() + arm.facts["distance"] + rng.normal(0.0, 1e-4)


def wrong_truth(factor: float) -> Callable[..., Any]:
    """Measure the plug-in against a true distance that is off by `factor`."""

    def distances(arm: FrechetArm, n: int, count: int, rng: np.random.Generator) -> Any:
        return _distances(arm, n, count, rng) - (factor - 1.0) * arm.facts["distance"]

    return distances


_play = _rates.regret


def shrunk_bonus(factor: float) -> Callable[..., Any]:
    """Give the index with `factor` times the bonus."""

    def regret(arms: Any, losses: Any, index: Any, **options: Any) -> Any:
        def less(k: int, rows: Any) -> tuple[float, float]:
            value, bonus = index(k, rows)
            return value + (1.0 - factor) * bonus, factor * bonus

        return _play(arms, losses, less, **options)

    return regret


def plants() -> tuple[Plant, ...]:
    """List all errors; every study has at least two."""
    exponents = [
        Plant(id=name, what=f"exponent {exponent:g} in place of -1",
              constants={"exponent": exponent}, replications=replications)
        for name, exponent, replications in (
            ("c20.fid-bias", -0.7, 600), ("c20.fid-bias", -0.9, 10_000),
            ("c20.fid-variance", -0.7, 600), ("c20.fid-variance", -0.9, 10_000),
            ("c20.is-bias", -0.7, 10_000),
        )
    ]  # fmt: skip
    leads = [
        Plant(id="c20.is-bias", what="the leading term 30 % too small", constants={"lead": 0.35},
              replications=2000),
        Plant(id="c20.is-bias", what="the leading term 10 % too small", constants={"lead": 0.45},
              replications=10_000),
        Plant(id="c20.is-bias", what="the factor ½ left out", constants={"lead": 1.0}),
    ]  # fmt: skip
    distances = "_distances"
    biases = [
        Plant(id="c20.fid-bias", what="true distance 10 % too large",
              patches={distances: wrong_truth(1.1)}),
        Plant(id="c20.fid-bias", what="a corrected score in place of the plug-in",
              patches={distances: unbiased}),
        Plant(id="c20.rank-flip", what="a corrected score in place of the plug-in",
              patches={distances: unbiased}),
        Plant(id="c20.rank-flip", what="the generators exchanged: true distance of the rival",
              patches={distances: lambda arm, n, count, rng: -_distances(arm, n, count, rng)}),
    ]  # fmt: skip
    weights = "intercept_weights"
    lines = [
        Plant(id="c20.fid-infinity", what="the plain score in place of the line at 0",
              patches={weights: plain}, replications=20),
        Plant(id="c20.fid-infinity", what="the mean of the subsets in place of the line at 0",
              patches={weights: average_of_subsets}, replications=20),
        Plant(id="c20.fid-infinity", what="a line in 1/√N", patches={weights: line_in(-0.5)},
              replications=20),
        Plant(id="c20.fid-infinity", what="a line in N", patches={weights: line_in(1.0)},
              replications=20),
        Plant(id="c20.fid-infinity", what="subsets drawn with replacement",
              patches={"_REPLACED": frozenset({"c20.fid-infinity"})}, replications=20),
        Plant(id="c20.spacing", what="the two spacings exchanged",
              patches={"even_sizes": _rates.even_inverses,
                       "even_inverses": _rates.even_sizes},
              replications=10_000),
        Plant(id="c20.spacing", what="a claim of a tenth of the error", constants={"ratio": 0.1}),
    ]  # fmt: skip
    samplers = [
        Plant(id=name, what=what, patches={"_SAMPLERS": drawn})
        for name in ("c20.sobol", "c20.sobol-mean")
        for what, drawn in (("iid points in place of Sobol points", ("iid", "iid", "iid")),
                            ("Sobol and iid exchanged", ("inverse", "iid", "iid")))
    ]  # fmt: skip
    points = [
        Plant(id="c20.sobol-rate", what="iid points in place of Sobol points",
              patches={"_points": lambda d, n, rng: rng.random((n, d))}),
        Plant(id="c20.sobol-rate", what="points that are not scrambled",
              patches={"_points": unscrambled}),
        Plant(id="c20.sobol-rate", what="exponent -1.5 in place of -1",
              constants={"exponent": -1.5}),
    ]  # fmt: skip
    policies = [
        Plant(id="m25.is-ucb-regret", what=f"the bonus times {factor:g}",
              patches={"regret": shrunk_bonus(factor)}, seen=seen,
              replications=5000 if factor > 0.0 else 600)
        for factor, seen in ((0.7, False), (0.01, True), (-1.0, True))
    ]  # fmt: skip
    empty = [
        Plant(id=name, what=f"the bonus times {factor:g}",
              patches={"regret": shrunk_bonus(factor)}, seen=seen)
        for name in ("o24.fid-ucb-regret", "m25.fd-ucb-regret")
        for factor, seen in ((0.7, False), (-1.0, True))
    ]  # fmt: skip
    nystrom = [
        Plant(id="v24.nystrom", what="exponent -1 in place of -1/2", constants={"exponent": -1.0}),
        Plant(id="v24.nystrom-proof", what="t ≥ C r log(n)/p landmarks, p the smallest class",
              patches={"_unseen": seen_enough}, seen=False),
        Plant(id="v24.nystrom-product", what="log(2/δ) times 1 + t τ² log(n)²",
              constants={"offset": 1.0}, seen=False),
    ]  # fmt: skip
    others = [
        Plant(id="c20.fid-infinity-with-replacement", what="subsets drawn without replacement",
              patches={"_REPLACED": frozenset()}, replications=20, seen=False),
        Plant(id="o24.is-ucb-regret", what="the bonus times -1",
              patches={"regret": shrunk_bonus(-1.0)}),
    ]  # fmt: skip
    return (*others, *exponents, *leads, *biases, *lines, *samplers, *points, *policies, *empty,
            *nystrom)  # fmt: skip
