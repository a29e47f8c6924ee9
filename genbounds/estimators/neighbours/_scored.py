"""The scores of two samples and of their halves, turned into estimates with their warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from genbounds._text import listed
from genbounds.core.checks import Inspected, drawing_warnings
from genbounds.core.design import drawn
from genbounds.core.estimate import Estimate, SampleError, small_sample
from genbounds.core.intervals import OwnInterval, scaled_interval
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
    seen : tuple of Inspected
        Both samples.
    """

    four: Float
    sizes: tuple[Float, Float]
    k: int
    given: int
    seen: tuple[Inspected, Inspected]

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
        return NeighbourScores.of(
            self._estimate(at, values, own=at != DENSITY) for at, values in enumerate(self.values.T)
        )

    def ratios(self, null: Float) -> NeighbourScores[Estimate]:
        """Estimate the scores as multiples of the `null`, of the same shape, in every half."""
        with np.errstate(divide="ignore", invalid="ignore"):
            columns = (self.values / null).T
        return NeighbourScores.of(
            replace(
                self._estimate(at, values, null=float(null[0, at])),
                title=f"{TITLES[NAMES[at]]} relative to real rows",
                statistic="",
                upper_limit=math.inf,
            )
            for at, values in enumerate(columns)
        )

    def exact_nulls(self, held: Float) -> Float:
        """Return what real rows get: `held` for precision and recall, known for the others."""
        n, m = self.sizes
        return with_f_score(
            np.stack(
                [held[:, 0], held[:, 1], np.ones_like(n), expected_coverage(n, m, self.k)], axis=1
            )
        )

    def _estimate(
        self, at: int, values: Float, *, own: bool = False, null: float = 1.0
    ) -> Estimate:
        """Estimate one score, or its multiple of a `null`; `own`: with the limits of a share."""
        name = NAMES[at]
        value, found = float(values[0]), values[1:]
        drift, widening = float(_drift(values[:, None])[0]), float(self.widening[at])
        warnings: list[Diagnostic] = []
        counted = self.values[:, at]
        # None of the rows counts, or all in every half: halves then say nothing.
        constant = at != DENSITY and bool(counted[0] == 0.0 or (counted == 1.0).all())
        if constant:
            warnings.append(warn_of("extreme-share", name=name, counted=counted[0]))
        elif (counted[1::2] == counted[2::2]).all():
            warnings.append(warn_of("no-halves", name=name, counted=counted[0]))
        elif not (abs(drift - 1.0) <= LARGEST_DRIFT and widening <= LARGEST_WIDENING):
            warnings.append(warn_of("halves-disagree", name=name, value=value, drift=drift * value))
        known = constant or not warnings
        halves = (widening if known else math.nan) * (found[::2] - found[1::2]) / 2.0
        fake = self.seen[1]
        variance, limits = float(np.mean(halves**2)), None
        if constant:
            units = self._independent(name)
            share = (counted[0] * units + 0.5) / (units + 1.0)
            scale = 1.0 / null if null > 0.0 else math.inf
            variance = share * (1.0 - share) / units * scale**2
            limits = scaled_interval(ShareInterval(float(counted[0]), units), scale)
        elif own and known:
            limits = _share_interval(value, values)
        return Estimate(
            title=TITLES[name],
            method="neighbours",
            value=value,
            sample=SampleError(
                n=self.m,
                variance=variance,
                degrees_of_freedom=float(halves.size),
                units=None if fake.design is None else fake.design.labels,
                row_ids=fake.single_ids,
            ),
            reference=SampleError(n=self.n),
            halves=halves,
            own_interval=limits,
            combined=constant,
            lower_limit=0.0,
            upper_limit=math.inf if name == "density" else 1.0,
            higher_is_better=True,
            statistic=f"{name} of {self.m} generated and {self.n} real rows with k = {self.k}",
            warnings=(*self._warnings(), *warnings, *self._crowded(name)),
            assumptions=self._assumptions(),
            details=self._details(drift),
        )

    def _independent(self, name: str) -> float:
        """Rows, or groups of them, that a share counts; of both where it has two."""
        real, fake = (
            float(len(seen.rows) if seen.design is None else seen.design.units)
            for seen in self.seen
        )
        return {"precision": fake, "recall": real, "coverage": real}.get(name, min(real, fake))

    def _warnings(self) -> tuple[Diagnostic, ...]:
        real, fake = self.seen
        few = min(len(one.rows) if one.design is None else one.design.units for one in self.seen)
        return (
            *drawing_warnings(fake, real),
            *small_sample(
                few,
                units=min(
                    math.inf if d is None else d.free_units for d in (fake.design, real.design)
                ),
            ),
        )

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


def _share_interval(value: float, values: Float) -> OwnInterval:
    """Limits of a share by as many independent rows as would vary as halves do.

    Limits about a share near 0 or 1 are far from symmetrical.
    """
    half = values[1:].mean()
    differences = (values[1::2] - values[2::2]) / 2.0
    rows = float(half * (1.0 - half) / np.mean(differences**2))
    return ShareInterval(value, rows, degrees=float(differences.size))


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
