"""How the variance of a score, or of the difference of two, falls with more samples.

From one pilot with n generated and m reference rows, to second order, the variance with k and l is

    Var(k, l) = a r + b r² + c s + e s² + f r s,  r = n/k, s = m/l:

a and c from the influences, b and e from the quadratic part of either sample, f from the mixed one.
Taking the variance of the pilot as proportional to 1/n would carry the quadratic part along.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.difference import EstimateDifference, any_shared, difference
from genbounds.core.estimate import (
    EXACT,
    Estimate,
    SampleError,
    student_quantile,
    welch_degrees_of_freedom,
)
from genbounds.results import Method
from genbounds.validation import Float, InputError

OF_N: frozenset[Method] = frozenset({"empirical", "extrapolation"})
"""Methods whose value is one of so many samples: others say nothing of it."""

Target = Literal["half_width", "gap"]
"""What a plan is asked for."""

LARGEST = 10**12
"""Samples beyond which none are thought of."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarianceModel:
    """Variance of a score, or of a difference, at any numbers of samples.

    Rows of arrays are the generated samples and the reference, of which nothing comes where it is
    exact.

    Attributes
    ----------
    n, m : float
        Of the pilot; m is infinite where the reference is exact or not used.
    stated : ndarray of shape (2, 3)
        Variance of the pilot that the interval is made from: of first order (a, c), of second order
        (b, e), and what is mixed with the other side (f is the sum of both).
    actual : ndarray of shape (2, 3)
        Of the value itself. Where two models share samples the interval keeps second-order noise
        that cancels in the value, and is a little too wide.
    curvature, skewness : ndarray of shape (2,)
        Of the pilot.
    degrees : ndarray of shape (2,)
        Degrees of freedom of the pilot's variances.
    own : tuple of callable
        From a factor on the pilot's rows to its limits about 0, of one mean of bounded values or of
        the two that are subtracted, where an interval is not made from the variance.
    """

    n: float
    m: float
    stated: Float
    actual: Float
    curvature: Float
    skewness: Float
    degrees: Float
    own: tuple[Any, ...] = ()

    @classmethod
    def of_score(cls, estimate: Estimate) -> VarianceModel:
        """Model of one score."""
        _refuse_seeds(estimate)
        errors = (estimate.sample, estimate.reference)
        if estimate.shared_variance:
            errors = (_grown_together(estimate.variance, *errors), EXACT)
        parts = np.array([_split(error.variance, error) for error in errors])
        return cls(
            n=_size(errors[0]),
            m=_size(errors[1]),
            stated=parts,
            actual=parts,
            curvature=np.array([error.curvature for error in errors]),
            skewness=np.array([error.skewness for error in errors]),
            degrees=np.array([error.degrees_of_freedom for error in errors]),
            own=_limits_of(estimate),
        )

    @classmethod
    def of_difference(cls, a: Estimate, b: Estimate) -> VarianceModel:
        """Model of the difference of two models that get equally many samples each."""
        _refuse_seeds(a, b)
        sizes = np.array([_size(a.sample), _size(b.sample)])
        finite = np.isfinite(sizes)
        n = float(finite.sum() / (1.0 / sizes).sum()) if finite.any() else math.inf
        if a.shared_variance or b.shared_variance:
            one = _grown_together(difference(a, b).stderr ** 2, a.sample, b.sample)
            return replace(cls.of_score(Estimate(value=0.0, sample=one, reference=EXACT)), n=n)
        gaps = [
            difference(replace(a, reference=EXACT), replace(b, reference=EXACT)),
            difference(replace(a, sample=EXACT), replace(b, sample=EXACT)),
        ]
        paired = _joined(a.sample, b.sample)
        # h is bilinear: of pairs with a shared row only one of both factors is alike.
        alike = 1.0 - _kept(a.sample, b.sample) if paired else 0.0
        crossed = 1.0 - math.sqrt(max(alike, 0.0))
        sides = [
            (a.sample, b.sample, paired),
            (a.reference, b.reference, _same_rows(a.reference, b.reference)),
        ]
        stated, actual = np.zeros((2, 2, 3))
        for side, (one, two, shared) in enumerate(sides):
            # Influences that are subtracted have twice the noise that the quadratic part has.
            twice = 1.0 + shared
            kept = _kept(one, two) if shared else 1.0
            stated[side] = _split(gaps[side].stderr ** 2, one, two, twice * kept, twice * crossed)
            actual[side] = stated[side] / (1.0, twice, twice)
        # Samples of unequal sizes: what is of order 1/n adds up to the same with equal ones.
        if not paired and sizes[0] != sizes[1]:
            parts = np.array([_split(x.sample.variance, x.sample)[:2] for x in (a, b)])
            ratios = np.where(finite, sizes, 0.0)[:, None] / n
            stated[0, :2] = actual[0, :2] = (parts * ratios ** (1.0, 2.0)).sum(axis=0)
        return cls(
            n=n,
            m=min(_size(a.reference), _size(b.reference)),
            stated=stated,
            actual=actual,
            curvature=np.array([gap.curvature for gap in gaps]),
            skewness=np.array([gap.skewness for gap in gaps]),
            degrees=np.array([gap.degrees_of_freedom for gap in gaps]),
            own=() if paired else _limits_of(a, b),
        )

    @classmethod
    def of_twins(cls, estimate: Estimate) -> VarianceModel:
        """Model of the difference of two models alike: their samples vary, the reference cancels.

        Of the noise of the reference only the mixed term is left.
        """
        one = cls.of_score(estimate)
        return replace(
            one,
            stated=one.stated * [(2.0, 2.0, 3.0), (0.0, 0.0, 3.0)],
            actual=one.actual * [(2.0, 2.0, 2.0), (0.0, 0.0, 2.0)],
            curvature=np.zeros(2),
            skewness=np.zeros(2),
            degrees=one.degrees * (2.0, 1.0),
            own=2 * one.own,
        )

    def stderr(self, n: float, m: float | None = None) -> float:
        """Return the standard error that an interval would be made from."""
        return math.sqrt((self.stated * self._powers(n, m)).sum())

    def scatter(self, n: float, m: float | None = None) -> float:
        """Return the standard deviation that values would have."""
        return math.sqrt((self.actual * self._powers(n, m)).sum())

    def half_width(self, level: float, n: float, m: float | None = None) -> float:
        """Half the width of an interval at these numbers of samples."""
        low, high = self._interval(level, n, m)
        return (high - low) / 2.0

    def power(self, gap: float, level: float, n: float, m: float | None = None) -> float:
        """Probability that the interval of a true difference `gap` > 0 lies above 0."""
        low, _ = self._interval(level, n, m)
        scatter = self.scatter(n, m)
        if not scatter > 0.0:
            return float(gap + low > 0.0)
        return float(scipy.special.ndtr((gap + low) / scatter))

    def reaches(
        self, target: Target, size: float, level: float, power: float, n: float, m: float | None
    ) -> bool:
        """Whether n generated and m reference samples reach a half-width, or find a gap."""
        if target == "gap":
            return self.power(size, level, n, m) >= power
        return self.half_width(level, n, m) <= size

    def margin(self, level: float, power: float, n: float) -> float:
        """Return the distance from a limit at which a one-sided test decides with that power."""
        sure = student_quantile(2.0 * level - 1.0, self._degrees(n)) * self.stderr(n)
        return sure + student_quantile(2.0 * power - 1.0) * self.scatter(n)

    def _powers(self, n: float, m: float | None) -> Float:
        """Return r, r², rs and s, s², rs; r and s are 0 where there are any number of samples."""
        r = self.n / n
        s = 0.0 if math.isinf(self.m) else self.m / (m or self.m)
        return np.array([(r, r**2, r * s), (s, s**2, r * s)])

    def _degrees(self, n: float, m: float | None = None) -> float:
        """Degrees of freedom of the variance at these numbers of samples."""
        powers = self._powers(n, m)
        variances = (self.stated * powers)[:, :2].sum(axis=1).tolist()
        parts = zip(variances, self.degrees.tolist(), powers[:, 0].tolist(), strict=True)
        return welch_degrees_of_freedom(
            *((variance, degrees / ratio) for variance, degrees, ratio in parts if variance > 0.0)
        )

    def _interval(self, level: float, n: float, m: float | None) -> tuple[float, float]:
        """Both ends about a value of 0."""
        if self.own and math.isinf(n):
            return 0.0, 0.0
        if self.own:  # of the score that is subtracted the other end counts
            ends: list[tuple[float, float]] = [limits(n / self.n)(level) for limits in self.own]
            low, high = (math.hypot(*(each[k - i] for i, each in enumerate(ends))) for k in (0, 1))
            return -low, high
        squares = self._powers(n, m)[:, 1]
        return EstimateDifference(
            value=0.0,
            stderr=self.stderr(n, m),
            degrees_of_freedom=self._degrees(n, m),
            curvature=float(squares @ self.curvature),
            skewness=float(squares @ self.skewness),
        ).interval(level)


def smallest(reached: Callable[[int], bool], low: float = 2.0) -> int | None:
    """Return the smallest whole number from `low` on where `reached` holds; None if nowhere.

    `reached` is false below some number and true above it.
    """
    first = math.ceil(low)
    high = first
    while not reached(high):
        if high == LARGEST:
            return None
        first, high = high + 1, min(2 * high, LARGEST)
    return first + bisect_left(range(first, high), True, key=reached)


def _limits_of(*estimates: Estimate) -> tuple[Any, ...]:
    """Return how the limits of bounded means shrink, if all of these are some."""
    limits = tuple(getattr(estimate.own_interval, "at", None) for estimate in estimates)
    return limits if all(limits) else ()


def _size(error: SampleError) -> float:
    return math.inf if error.n is None else float(error.n)


def _split(
    variance: float,
    one: SampleError,
    two: SampleError = EXACT,
    kept: float = 1.0,
    mixed: float = 1.0,
) -> Float:
    """Divide a variance into its parts of first order, of second order, and the mixed one.

    Of the quadratic parts of the errors the share `kept` counts, of the mixed ones `mixed`.
    """
    second = min(kept * (one.quadratic_variance + two.quadratic_variance), variance)
    both = min(mixed * (one.mixed_variance + two.mixed_variance), variance - second)
    return np.array([variance - second - both, second, both])


def _grown_together(variance: float, one: SampleError, two: SampleError) -> SampleError:
    """Return the error of samples that share units, or grow together, as one."""
    parts = (one.quadratic_variance, two.quadratic_variance, one.mixed_variance, two.mixed_variance)
    degrees = one.degrees_of_freedom
    return SampleError(
        n=one.n, variance=variance, degrees_of_freedom=degrees, quadratic_variance=sum(parts)
    )


def _refuse_seeds(*estimates: Estimate) -> None:
    """Refuse samples whose error does not fall with their size alone."""
    if any(error.seeds is not None for x in estimates for error in (x.sample, x.reference)):
        raise InputError(
            "a plan is for groups with seeds of their own: what seeds shared by all groups add "
            "falls with their number, not with that of the groups."
        )


def _joined(one: SampleError, two: SampleError) -> bool:
    """Whether two samples share units by name."""
    named = [e.units for e in (one, two) if e.units is not None and e.influence is not None]
    return len(named) == 2 and any_shared(named)


def _same_rows(one: SampleError, two: SampleError) -> bool:
    influences = (one.influence, two.influence)
    sizes = [influence.size for influence in influences if influence is not None]
    return len(sizes) == 2 and sizes[0] == sizes[1]


def _kept(one: SampleError, two: SampleError) -> float:
    """Which share of two quadratic parts is left in their difference, by pairs that both have.

    0 where that is not known: the whole variance is then taken to fall with 1/n, which asks for too
    many samples rather than too few.
    """
    if one.pairs is None or two.pairs is None or one.pairs.shape != two.pairs.shape:
        return 0.0
    if one.units is not None and not np.array_equal(one.units, two.units):  # type: ignore[arg-type]
        return 0.0
    apart, whole = one.pairs - two.pairs, one.pairs @ one.pairs + two.pairs @ two.pairs
    return float(apart @ apart) / float(whole) if whole > 0.0 else 0.0
