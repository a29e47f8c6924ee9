"""The scores of two samples and of their halves, turned into estimates with their warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from genbounds._text import listed
from genbounds.core.checks import Checked, drawing_warnings, drawn
from genbounds.core.estimate import (
    Estimate,
    OwnInterval,
    SampleError,
    scaled_ends,
    small_sample,
)
from genbounds.diagnostics import warn_of
from genbounds.estimators.neighbours._counts import expected_coverage
from genbounds.estimators.neighbours._result import DENSITY, NAMES, TITLES, NeighbourScores
from genbounds.estimators.neighbours._shares import ShareInterval
from genbounds.results import Diagnostic
from genbounds.validation import Float

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
    four : ndarray of shape (1 + 2 splits, 4)
        Precision, recall, density and coverage of all rows, then of both halves of every cut in
        turns.
    sizes : tuple of ndarray
        Real and generated rows behind each.
    k : int
    given : int
        Generated rows before they were thinned.
    seen : tuple of Checked
        Both samples.
    """

    four: Float
    sizes: tuple[Float, Float]
    k: int
    given: int
    seen: tuple[Checked, Checked]

    @cached_property
    def values(self) -> Float:
        """The `four` and the F-score."""
        return with_f_score(self.four)

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
            limits = _share_interval(values, differences)
        fake = self.seen[1]
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
            warnings=(*self._warnings(), *doubts, *self._crowded(name)),
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
        real, fake = (float(units_of(seen)) for seen in self.seen)
        # Of both samples, where a score has shares of two.
        counts = {"precision": fake, "recall": real, "coverage": real}
        units, share = counts.get(NAMES[at], min(real, fake)), float(self.values[0, at])
        scale = 1.0 if null is None else 1.0 / null if null > 0.0 else math.inf
        added = (share * units + 0.5) / (units + 1.0)
        limits = partial(scaled_ends, ShareInterval(share, units), scale)
        return added * (1.0 - added) / units * scale**2, limits

    def _warnings(self) -> tuple[Diagnostic, ...]:
        real, fake = self.seen
        free = [math.inf if one.design is None else one.design.free_units for one in self.seen]
        few = small_sample(min(map(units_of, self.seen)), units=min(free))
        return (*drawing_warnings(fake, real), *few)

    def _crowded(self, name: str) -> tuple[Diagnostic, ...]:
        density = float(self.four[0, 2])
        if density <= CENTRAL or name in ("recall", "f_score"):
            return ()
        return (warn_of("hubs", density=density),)

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
        cuts = len(self.four) // 2
        return (
            f"all together: {every}",
            f"k = {self.k}, {self.n} real and {self.m} generated rows",
            f"standard error from {cuts} random halvings of both samples",
            *([f"half the rows score {drift:.3f} times as much"] if math.isfinite(drift) else []),
        )


def units_of(seen: Checked) -> int:
    """Rows, or groups of rows, that were drawn independently."""
    return len(seen.rows) if seen.design is None else seen.design.units


def _share_interval(values: Float, differences: Float) -> OwnInterval:
    """Limits of a share by as many independent rows as would vary as halves do.

    Limits about a share near 0 or 1 are far from symmetrical.
    """
    half = values[1:].mean()
    rows = float(half * (1.0 - half) / np.mean(differences**2))
    return ShareInterval(float(values[0]), rows, degrees=float(differences.size))


def not_alone(name: str) -> str:
    """Say with which of the four scores another is read."""
    others = listed([other for other in NAMES[:4] if other != name])
    return f"{name} says little alone: read it with {others}"


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
