"""Scores by neighbours by name, and all of them as one result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np

from genbounds._tables import InHand, Line
from genbounds._text import percent
from genbounds.core.checks import Checked, drawing_warnings, drawn
from genbounds.core.estimate import (
    Estimate,
    OwnInterval,
    SampleError,
    moved_ends,
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
    "clipped-density": "Clipped density",
    "clipped-coverage": "Clipped coverage",
}
NAMES = tuple(TITLES)[:5]
DENSITY = NAMES.index("density")
NO_SHARES = ("density", "clipped-density", "clipped-coverage")
"""Scores that may exceed 1."""

CROWDED = ("precision", "density", "coverage")
"""Scores that crowded generated rows make too good."""

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
    values : ndarray of shape (1 + 2 splits, scores)
        Every score of all rows, then of both halves of every cut in turns.
    names : tuple of str
        What the columns are.
    sizes : tuple of ndarray
        Real and generated rows behind each row of them.
    k : int
    given : int
        Generated rows before they were thinned.
    seen : tuple of Checked
        Both samples.
    """

    values: Float
    names: tuple[str, ...]
    sizes: tuple[Float, Float]
    k: int
    given: int
    seen: tuple[Checked, Checked]

    @property
    def rows(self) -> tuple[int, int]:
        """Real rows, and generated ones as used."""
        return len(self.seen[0].rows), len(self.seen[1].rows)

    @cached_property
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
        found[[name in NO_SHARES for name in self.names]] = 1.0
        return np.fmax(found, 1.0)

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What both samples show, whatever the score."""
        real, fake = self.seen
        designs = [one.drawing for one in self.seen]
        free = min(design.free_units for design in designs)
        few = small_sample(min(design.units for design in designs), units=free)
        return (*drawing_warnings(fake, real), *few)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What all intervals assume."""
        real, fake = (drawn(one.design) for one in self.seen)
        m = self.rows[1]
        return (
            fake if fake == real else f"generated: {fake}; real: {real}",
            *[f"a random {m} of {self.given} generated rows, as many as real ones"]
            * (self.given > m),
            f"the interval is for the expected score at these sample sizes with k = {self.k}; at "
            "other sizes, or with another k, it is another score",
        )

    def estimates(self, null: Float | None = None) -> dict[str, Estimate]:
        """Estimate the scores, or how many times those of a `null` they are, in every half."""
        nulls = [None] * len(self.names) if null is None else null.T
        return {
            name: self._estimate(name, counted, real)
            for name, counted, real in zip(self.names, self.values.T, nulls, strict=True)
        }

    def _estimate(self, name: str, counted: Float, null: Float | None) -> Estimate:
        """Estimate one score from all rows and every half."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = counted if null is None else counted / null
        value, drift = float(values[0]), float(_drift(values))
        share = name not in NO_SHARES
        # Where no row counts, or all do in every half, halves say nothing.
        constant = share and bool(counted[0] == 0.0 or (counted == 1.0).all())
        widening = float(self.widening[self.names.index(name)])
        doubts = self._doubts(name, constant, value, drift)
        moved = (values[1::2] - values[2::2]) / 2.0
        halves = (widening if constant or not doubts else math.nan) * moved
        variance, limits = float(np.mean(halves**2)), None
        if constant:
            variance, limits = self._of_constant(name, counted[0], null)
        elif null is None and share and not doubts:
            # As many independent rows would vary as halves do. Limits about a share near 0 or 1 are
            # far from symmetrical.
            half = values[1:].mean()
            rows = float(half * (1.0 - half) / np.mean(moved**2))
            limits = share_interval(value, rows, degrees=float(moved.size))
        (n, m), fake = self.rows, self.seen[1]
        crowded = []
        if name in CROWDED and (density := float(self.values[0, DENSITY])) > CENTRAL:
            crowded = [warn_of("hubs", density=density)]
        statistic = f"{name} of {m} generated and {n} real rows with k = {self.k}"
        return Estimate(
            title=TITLES[name] + " relative to real rows" * (null is not None),
            method="neighbours",
            value=value,
            sample=SampleError(
                n=m,
                variance=variance,
                degrees_of_freedom=float(halves.size),
                units=fake.drawing.labels,
                row_ids=fake.single_ids,
            ),
            reference=SampleError(n=n),
            halves=halves,
            own_interval=limits,
            combined=constant,
            lower_limit=0.0,
            upper_limit=1.0 if share and null is None else math.inf,
            higher_is_better=True,
            statistic=statistic if null is None else "",
            warnings=(*self.warnings, *doubts, *crowded),
            assumptions=self.assumptions,
            details=self._details(name, drift),
        )

    def _doubts(self, name: str, constant: bool, value: float, drift: float) -> list[Diagnostic]:
        """Warn where halves do not show how the score varies."""
        at = self.names.index(name)
        counted = self.values[:, at]
        if constant:
            return [warn_of("extreme-share", name=name, counted=counted[0])]
        if (counted[1::2] == counted[2::2]).all():
            return [warn_of("no-halves", name=name, counted=counted[0])]
        if abs(drift - 1.0) <= LARGEST_DRIFT and self.widening[at] <= LARGEST_WIDENING:
            return []
        return [warn_of("halves-disagree", name=name, value=value, drift=drift * value)]

    def _of_constant(
        self, name: str, share: float, null: Float | None
    ) -> tuple[float, OwnInterval | None]:
        """Variance and limits of a share of 0 or 1: those of as many independent rows."""
        real, fake = (float(seen.drawing.units) for seen in self.seen)
        # Of both samples, where a score has shares of two.
        units = {"precision": fake, "recall": real, "coverage": real}.get(name, min(real, fake))
        scale = 1.0
        if null is not None:
            scale = 1.0 / float(null[0]) if null[0] > 0.0 else math.inf
        added = (float(share) * units + 0.5) / (units + 1.0)
        limits = partial(moved_ends, share_interval(float(share), units), scale, 0.0)
        return added * (1.0 - added) / units * scale**2, limits

    def _details(self, name: str, drift: float) -> tuple[str, ...]:
        every = zip(self.names, self.values[0], strict=True)
        n, m = self.rows
        return (
            f"all together: {', '.join(f'{name} {value:.4g}' for name, value in every)}",
            f"k = {self.k}, {n} real and {m} generated rows",
            f"standard error from {len(self.values) // 2} random halvings of both samples",
            *([f"half the rows score {drift:.3f} times as much"] if math.isfinite(drift) else []),
            *["not cut off at 1, as published numbers are"] * name.startswith("clipped"),
        )


def expected_coverage(n: Float, m: Float, k: int) -> Float:
    """Mean coverage of equal distributions without ties, whatever they are.

    Of a real row's n - 1 real neighbours and m generated rows, all in random order of distance,
    the k nearest are all real with probability ∏ (n - 1 - i) / (n - 1 + m - i).
    """
    i = np.arange(k)[:, None]
    return np.asarray(1.0 - np.prod((n - 1.0 - i) / (n - 1.0 + m - i), axis=0))


def with_f_score(*four: Float) -> dict[str, Float]:
    """Add the harmonic mean of precision and recall, the first two of four; 0 if both are."""
    precision, recall = four[:2]
    both = precision + recall
    f_score = np.divide(2.0 * precision * recall, both, out=np.zeros_like(both), where=both > 0.0)
    return dict(zip(NAMES, (*four, f_score), strict=True))


def _drift(values: Float) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN where a score is 0 throughout
        found: Float = values[1:].mean(axis=0) / values[0]
    return found
