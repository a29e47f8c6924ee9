"""Scores by neighbours by name, and all of them as one result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np

from genbounds._tables import InHand, Line
from genbounds._text import listed, percent
from genbounds.core.checks import Checked, drawing_warnings, drawn
from genbounds.core.estimate import (
    Estimate,
    OwnInterval,
    SampleError,
    scaled_ends,
    small_sample,
    student_quantile,
)
from genbounds.diagnostics import warn_of
from genbounds.results import Diagnostic, Score, all_reliable
from genbounds.validation import Float

TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "density": "Density",
    "coverage": "Coverage",
    "f_score": "F-score of precision and recall",
}
NAMES = tuple(TITLES)
DENSITY = NAMES.index("density")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores(Mapping[str, T], Generic[T]):
    """What is counted by neighbours, by attribute or by name.

    Attributes
    ----------
    precision, recall, density, coverage, f_score : object
    """

    precision: T
    recall: T
    density: T
    coverage: T
    f_score: T

    def __getitem__(self, name: str) -> T:
        if name not in NAMES:
            raise KeyError(name)
        found: T = getattr(self, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRecall(InHand):
    """Precision, recall, density and coverage of one model: to be read together.

    Attributes
    ----------
    precision, recall, density, coverage : Score
        As published.
    f_score : Score
        Harmonic mean of precision and recall.
    calibrated : NeighbourScores of Score, or None
        The same as ratios to what real rows get at the same sizes: 1 is as good as real. By
        attribute or name (``calibrated.recall``, ``calibrated["recall"]``). Never cut off at 1:
        above, generated rows are more central than real ones. None without a `null`.
    null : NeighbourScores of float, or None
        What real rows get.
    drift : NeighbourScores of float
        Mean score of random halves of both samples, over that of all rows.
    k, n, m : int
        Neighbours, real rows, generated rows as used.
    level : float
    """

    _json = (
        "precision recall density coverage f_score calibrated null drift k n m level reliable "
        "warnings assumptions notes"
    )

    _names = "Score"

    precision: Score
    recall: Score
    density: Score
    coverage: Score
    f_score: Score
    calibrated: NeighbourScores[Score] | None
    null: NeighbourScores[float] | None
    drift: NeighbourScores[float]
    k: int
    n: int
    m: int
    level: float

    @property
    def scores(self) -> dict[str, Score]:
        """The scores by name, then the calibrated ones as "precision / real" and so on."""
        found = {name: getattr(self, name) for name in self.drift}
        ratios = {} if self.calibrated is None else self.calibrated
        return found | {f"{name} / real": score for name, score in ratios.items()}

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of all scores, each once."""
        return tuple(dict.fromkeys(w for score in self.scores.values() for w in score.warnings))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the intervals assume."""
        return tuple(dict.fromkeys(a for score in self.scores.values() for a in score.assumptions))

    @property
    def notes(self) -> tuple[str, ...]:
        """The messages of all warnings, the assumptions, and how the scores were computed."""
        messages = tuple(warning.message for warning in self.warnings)
        return (*messages, *self.assumptions, *self.precision.details[:3])

    @property
    def reliable(self) -> bool:
        """False exactly if a warning is "unreliable"."""
        return all_reliable(self.warnings)

    def _lines(self) -> list[Line]:
        return [score._line(name) for name, score in self.scores.items()]

    def _caption(self) -> str:
        return (
            f"k = {self.k}, {self.n} real and {self.m} generated rows, "
            f"{percent(self.level)} confidence intervals"
        )

    def __repr__(self) -> str:
        lines = [f"PrecisionRecall({self._caption()})"]
        for name, score in self.scores.items():
            doubt = "" if score.reliable else "  unreliable"
            interval = f"[{score.low:.4g}, {score.high:.4g}]"
            lines.append(f"  {name:<16}  {score.value:>8.4g}  {interval}{doubt}")
        return "\n".join((*lines, *(f"  {warning}" for warning in self.warnings)))


def share_limit(hits: Any, n: float, delta: float) -> Float:
    """Clopper-Pearson upper limit of a share; `hits` and `n` need not be whole."""
    from scipy.special import betaincinv

    hits = np.asarray(hits, dtype=np.float64)
    rest = np.maximum(n - hits, 1e-9)
    return np.asarray(np.where(hits >= n, 1.0, betaincinv(hits + 1.0, rest, 1.0 - delta)))


def share_interval(share: float, rows: float, *, degrees: float = math.inf) -> OwnInterval:
    """Return the two-sided limits of a share, by level.

    Source: E. Korn and B. Graubard, Survey Methodology 24, 1998.

    Parameters
    ----------
    share : float
    rows : float
        Independent rows that would show it with this variance.
    degrees : float
        Degrees of freedom of that variance; as many rows fewer are counted as widens limits as
        Student's quantile does. Infinite: `rows` is known.
    """
    return partial(_share_ends, share, rows, degrees)  # can be pickled


def _share_ends(share: float, rows: float, degrees: float, level: float) -> tuple[float, float]:
    plain, wide = (student_quantile(level, free) for free in (math.inf, degrees))
    counted = rows * (plain / wide) ** 2
    tail = (1.0 - level) / 2.0
    most, rest = (
        float(share_limit(hits * counted, counted, tail)) for hits in (share, 1.0 - share)
    )
    return 1.0 - rest, most


LARGEST_DRIFT = 0.15
"""Relative change of a score at half the size beyond which halves say nothing of the whole. A
judgement: measured scores whose intervals hold drift by up to 7 %, one that fails by 28 %."""

LARGEST_WIDENING = 2.0
"""Factor beyond which halves of a share near 1 say nothing of the whole: a judgement."""

CENTRAL = 1.5
"""Density from which on generated rows are said to crowd the middle of the data."""


@dataclass(frozen=True)
class Scored:
    """The scores of two samples and of their halves.

    Attributes
    ----------
    values : ndarray of shape (1 + 2 splits, 5)
        Precision, recall, density, coverage and F-score of all rows, then of both halves of every
        cut in turns.
    sizes : tuple of ndarray
        Real and generated rows behind each.
    k : int
    given : int
        Generated rows before they were thinned.
    seen : tuple of Checked
        Both samples.
    """

    values: Float
    sizes: tuple[Float, Float]
    k: int
    given: int
    seen: tuple[Checked, Checked]

    @property
    def n(self) -> int:
        """Real rows."""
        return len(self.seen[0].rows)

    @property
    def m(self) -> int:
        """Generated rows, as used."""
        return len(self.seen[1].rows)

    @property
    def drift(self) -> Float:
        """Mean of the scores at half the size, over those of all rows."""
        return _drift(self.values)

    @cached_property
    def widening(self) -> Float:
        """Factors by which all rows move more than halves do; 1 where they move less.

        A share v varies as sqrt(v (1 - v)). If the k neighbours are a good part of a class, shares
        of half the rows are nearer to 1, where less is left to vary.
        """
        whole, half = self.values[0], self.values[1:].mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Float = np.sqrt(whole * (1.0 - whole) / (half * (1.0 - half)))
        found[DENSITY] = 1.0  # no share
        return np.fmax(found, 1.0)

    def estimates(self) -> NeighbourScores[Estimate]:
        """Estimate the scores as published."""
        return NeighbourScores(
            *(self._estimate(at, values) for at, values in enumerate(self.values.T))
        )

    def ratios(self, null: Float) -> NeighbourScores[Estimate]:
        """Estimate the scores as multiples of the `null`, of the same shape, in every half."""
        with np.errstate(divide="ignore", invalid="ignore"):
            columns = (self.values / null).T
        ratios = (
            replace(
                self._estimate(at, values, float(null[0, at])),
                title=f"{TITLES[NAMES[at]]} relative to real rows",
                statistic="",
                upper_limit=math.inf,
            )
            for at, values in enumerate(columns)
        )
        return NeighbourScores(*ratios)

    def exact_nulls(self, held: Float) -> Float:
        """Return what real rows get: `held` for precision and recall, known for the others."""
        n, m = self.sizes
        return with_f_score(
            np.stack(
                [held[:, 0], held[:, 1], np.ones_like(n), expected_coverage(n, m, self.k)], axis=1
            )
        )

    def _estimate(self, at: int, values: Float, null: float | None = None) -> Estimate:
        """Estimate one score, or its multiple of a `null`, from all rows and every half."""
        name, value = NAMES[at], float(values[0])
        drift = float(_drift(values[:, None])[0])
        doubts = self._doubts(at, value, drift)
        constant = self._is_constant(at)
        differences = (values[1::2] - values[2::2]) / 2.0
        halves = (float(self.widening[at]) if constant or not doubts else math.nan) * differences
        variance, limits = float(np.mean(halves**2)), None
        if constant:
            variance, limits = self._of_constant(at, null)
        elif null is None and at != DENSITY and not doubts:
            # As many independent rows would vary as halves do. Limits about a share near 0 or 1 are
            # far from symmetrical.
            half = values[1:].mean()
            rows = float(half * (1.0 - half) / np.mean(differences**2))
            limits = share_interval(value, rows, degrees=float(differences.size))
        fake, density = self.seen[1], float(self.values[0, DENSITY])
        crowded = [warn_of("hubs", density=density)] * (
            density > CENTRAL and name not in ("recall", "f_score")
        )
        return Estimate(
            title=TITLES[name],
            method="neighbours",
            value=value,
            sample=SampleError(
                n=self.m,
                variance=variance,
                degrees_of_freedom=float(halves.size),
                units=fake.labels,
                row_ids=fake.single_ids,
            ),
            reference=SampleError(n=self.n),
            halves=halves,
            own_interval=limits,
            combined=constant,
            lower_limit=0.0,
            upper_limit=math.inf if at == DENSITY else 1.0,
            higher_is_better=True,
            statistic=f"{name} of {self.m} generated and {self.n} real rows with k = {self.k}",
            warnings=(*self._warnings(), *doubts, *crowded),
            assumptions=self._assumptions(),
            details=self._details(drift),
        )

    def _is_constant(self, at: int) -> bool:
        """Whether no row counts, or all do in every half: halves then say nothing."""
        counted = self.values[:, at]
        return at != DENSITY and bool(counted[0] == 0.0 or (counted == 1.0).all())

    def _doubts(self, at: int, value: float, drift: float) -> tuple[Diagnostic, ...]:
        """Warn where halves do not show how the score varies."""
        name, counted = NAMES[at], self.values[:, at]
        if self._is_constant(at):
            return (warn_of("extreme-share", name=name, counted=counted[0]),)
        if (counted[1::2] == counted[2::2]).all():
            return (warn_of("no-halves", name=name, counted=counted[0]),)
        if abs(drift - 1.0) <= LARGEST_DRIFT and self.widening[at] <= LARGEST_WIDENING:
            return ()
        return (warn_of("halves-disagree", name=name, value=value, drift=drift * value),)

    def _of_constant(self, at: int, null: float | None) -> tuple[float, OwnInterval | None]:
        """Variance and limits of a share of 0 or 1: those of as many independent rows."""
        real, fake = (float(seen.drawing.units) for seen in self.seen)
        # Of both samples, where a score has shares of two.
        counts = {"precision": fake, "recall": real, "coverage": real}
        units, share = counts.get(NAMES[at], min(real, fake)), float(self.values[0, at])
        scale = 1.0 if null is None else 1.0 / null if null > 0.0 else math.inf
        added = (share * units + 0.5) / (units + 1.0)
        limits = partial(scaled_ends, share_interval(share, units), scale)
        return added * (1.0 - added) / units * scale**2, limits

    def _warnings(self) -> tuple[Diagnostic, ...]:
        real, fake = self.seen
        designs = [one.drawing for one in self.seen]
        free = min(design.free_units for design in designs)
        few = small_sample(min(design.units for design in designs), units=free)
        return (*drawing_warnings(fake, real), *few)

    def _assumptions(self) -> tuple[str, ...]:
        real, fake = (drawn(one.design) for one in self.seen)
        how = fake if fake == real else f"generated: {fake}; real: {real}"
        thinned = f"a random {self.m} of {self.given} generated rows, as many as real ones"
        return (
            how,
            *([thinned] if self.given > self.m else []),
            f"the interval is for the expected score at these sample sizes with k = {self.k}; at "
            "other sizes, or with another k, it is another score",
        )

    def _details(self, drift: float) -> tuple[str, ...]:
        every = ", ".join(
            f"{name} {value:.4g}" for name, value in zip(NAMES, self.values[0], strict=True)
        )
        return (
            f"all together: {every}",
            f"k = {self.k}, {self.n} real and {self.m} generated rows",
            f"standard error from {len(self.values) // 2} random halvings of both samples",
            *([f"half the rows score {drift:.3f} times as much"] if math.isfinite(drift) else []),
        )


def not_alone(name: str) -> str:
    """Say with which of the four scores another is read."""
    others = listed([other for other in NAMES[:4] if other != name])
    return f"{name} says little alone: read it with {others}"


def expected_coverage(n: Float, m: Float, k: int) -> Float:
    """Mean coverage of equal distributions without ties, whatever they are.

    Of a real row's n - 1 real neighbours and m generated rows, all in random order of distance,
    the k nearest are all real with probability ∏ (n - 1 - i) / (n - 1 + m - i).
    """
    i = np.arange(k)[:, None]
    return np.asarray(1.0 - np.prod((n - 1.0 - i) / (n - 1.0 + m - i), axis=0))


def with_f_score(four: Float) -> Float:
    """Append the harmonic mean of precision and recall, the first two columns; 0 if both are."""
    precision, recall = four[:, 0], four[:, 1]
    both = precision + recall
    f_score = np.divide(2.0 * precision * recall, both, out=np.zeros_like(both), where=both > 0.0)
    return np.column_stack([four, f_score])


def _drift(values: Float) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN where a score is 0 throughout
        found: Float = values[1:].mean(axis=0) / values[0]
    return found
