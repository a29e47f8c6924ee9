"""How the variance of a score, or of the difference of two, falls with more samples.

From one pilot with n generated and m reference rows, to second order, the variance with k and l is

    Var(k, l) = a r + b r² + c s + e s² + f r s,  r = n/k, s = m/l:

a and c from the influences, b and e from the quadratic part of either sample, f from the mixed one.
Taking the variance of the pilot as proportional to 1/n would carry the quadratic part along.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

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
from genbounds.validation import InputError

OF_N: frozenset[Method] = frozenset({"empirical", "extrapolation"})
"""Methods whose value is one of so many samples: others say nothing of it."""

Parts = tuple[float, float, float]
"""Of a variance: of first order, of second order, and what is mixed with the other side."""

LARGEST = 1e12
"""Samples beyond which none are thought of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the variance of the pilot consists of; nothing is of the reference where it is exact."""

    a: float
    b: float
    c: float = 0.0
    e: float = 0.0
    f: float = 0.0

    @classmethod
    def of(cls, ours: Parts, theirs: Parts) -> Terms:
        """Join the parts of the generated samples and of the reference."""
        return cls(a=ours[0], b=ours[1], c=theirs[0], e=theirs[1], f=ours[2] + theirs[2])

    def at(self, r: float, s: float) -> tuple[float, float, float]:
        """Variance due to the generated samples, to the reference, and mixed."""
        return r * (self.a + self.b * r), s * (self.c + self.e * s), self.f * r * s


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceModel:
    """Variance of a score, or of a difference, at any numbers of samples.

    Attributes
    ----------
    n, m : float
        Of the pilot; m is infinite where the reference is exact or not used.
    stated : Terms
        Of what the interval is made from.
    actual : Terms
        Of the value itself. Where two models share samples the interval keeps second-order noise
        that cancels in the value, and is a little too wide.
    curvature, skewness : tuple of float
        Of the pilot, due to the generated samples and due to the reference.
    degrees : tuple of float
        Degrees of freedom of the pilot's variances, of the generated samples and of the reference.
    own : tuple of callable
        From a factor on the pilot's rows to its limits about 0, of one mean of bounded values or of
        the two that are subtracted, where an interval is not made from the variance.
    """

    n: float
    m: float
    stated: Terms
    actual: Terms
    curvature: tuple[float, float] = (0.0, 0.0)
    skewness: tuple[float, float] = (0.0, 0.0)
    degrees: tuple[float, float] = (math.inf, math.inf)
    own: tuple[Any, ...] = ()

    @classmethod
    def of_score(cls, estimate: Estimate) -> VarianceModel:
        """Model of one score."""
        _refuse_seeds(estimate)
        sample, reference = estimate.sample, estimate.reference
        if estimate.shared_variance:
            return _grown_together(estimate.variance, sample, reference, _size(sample))
        terms = Terms.of(_split(sample), _split(reference))
        return cls(
            n=_size(sample),
            m=_size(reference),
            stated=terms,
            actual=terms,
            curvature=(sample.curvature, reference.curvature),
            skewness=(sample.skewness, reference.skewness),
            degrees=(sample.degrees_of_freedom, reference.degrees_of_freedom),
            own=_limits_of(estimate),
        )

    @classmethod
    def of_difference(cls, a: Estimate, b: Estimate) -> VarianceModel:
        """Model of the difference of two models that get equally many samples each."""
        _refuse_seeds(a, b)
        sizes = [_size(a.sample), _size(b.sample)]
        finite = [size for size in sizes if size < math.inf]
        n = len(finite) / sum(1.0 / size for size in finite) if finite else math.inf
        if a.shared_variance or b.shared_variance:
            return _grown_together(difference(a, b).stderr ** 2, a.sample, b.sample, n)
        fake_gap = difference(replace(a, reference=EXACT), replace(b, reference=EXACT))
        real_gap = difference(replace(a, sample=EXACT), replace(b, sample=EXACT))
        paired = _joined(a.sample, b.sample)
        common = _same_rows(a.reference, b.reference)
        # h is bilinear: of pairs with a shared row only one of both factors is alike.
        alike = 1.0 - _kept(a.sample, b.sample) if paired else 0.0
        crossed = 1.0 - math.sqrt(max(alike, 0.0))
        fake = _side(a.sample, b.sample, fake_gap.stderr**2, shared=paired, crossed=crossed)
        real = _side(a.reference, b.reference, real_gap.stderr**2, shared=common, crossed=crossed)
        stated, actual = (Terms.of(*both) for both in zip(fake, real, strict=True))
        # Samples of unequal sizes: what is of order 1/n adds up to the same with equal ones.
        if not paired and sizes[0] != sizes[1]:
            parts = list(zip(map(_split, (a.sample, b.sample)), sizes, strict=True))
            linear, square = (
                sum(part[k] * (size / n) ** (k + 1) for part, size in parts if part[k])
                for k in (0, 1)
            )
            stated, actual = (replace(terms, a=linear, b=square) for terms in (stated, actual))
        return cls(
            n=n,
            m=min(_size(a.reference), _size(b.reference)),
            stated=stated,
            actual=actual,
            curvature=(fake_gap.curvature, real_gap.curvature),
            skewness=(fake_gap.skewness, real_gap.skewness),
            degrees=(fake_gap.degrees_of_freedom, real_gap.degrees_of_freedom),
            own=() if paired else _limits_of(a, b),
        )

    @classmethod
    def of_twins(cls, estimate: Estimate) -> VarianceModel:
        """Model of the difference of two models alike: their samples vary, the reference cancels.

        Of the noise of the reference only the mixed term is left.
        """
        single = cls.of_score(estimate)
        x = single.stated
        return cls(
            n=single.n,
            m=single.m,
            stated=Terms(a=2.0 * x.a, b=2.0 * x.b, f=3.0 * x.f),
            actual=Terms(a=2.0 * x.a, b=2.0 * x.b, f=2.0 * x.f),
            degrees=(2.0 * single.degrees[0], single.degrees[1]),
            own=2 * single.own,
        )

    def stderr(self, n: float, m: float | None = None) -> float:
        """Return the standard error that an interval would be made from."""
        return math.sqrt(sum(self.stated.at(*self._ratios(n, m))))

    def scatter(self, n: float, m: float | None = None) -> float:
        """Return the standard deviation that values would have."""
        return math.sqrt(sum(self.actual.at(*self._ratios(n, m))))

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

    def reaching(
        self, *, half_width: float | None, gap: float | None, level: float, power: float
    ) -> Callable[..., bool]:
        """Return whether n generated and m reference samples reach a half-width, or find a gap."""
        if gap is not None:
            return lambda n, m=None: self.power(gap, level, n, m) >= power
        assert half_width is not None
        return lambda n, m=None: self.half_width(level, n, m) <= half_width

    def margin(self, level: float, power: float, n: float) -> float:
        """Return the distance from a limit at which a one-sided test decides with that power."""
        sure = student_quantile(2.0 * level - 1.0, self._degrees(n)) * self.stderr(n)
        return sure + student_quantile(2.0 * power - 1.0) * self.scatter(n)

    def _ratios(self, n: float, m: float | None) -> tuple[float, float]:
        """Return samples of the pilot over these; 0 where there are any number of them."""
        exact = math.isinf(self.m)
        return self.n / n, 0.0 if exact else self.m / (self.m if m is None else m)

    def _degrees(self, n: float, m: float | None = None) -> float:
        """Degrees of freedom of the variance at these numbers of samples."""
        ratios = self._ratios(n, m)
        parts = zip(self.stated.at(*ratios), self.degrees, ratios, strict=False)
        return welch_degrees_of_freedom(
            *((variance, degrees / ratio) for variance, degrees, ratio in parts if variance > 0.0)
        )

    def _interval(self, level: float, n: float, m: float | None) -> tuple[float, float]:
        """Both ends about a value of 0."""
        if self.own and math.isinf(n):
            return 0.0, 0.0
        if self.own:
            ends: list[tuple[float, float]] = [limits(n / self.n)(level) for limits in self.own]
            if len(ends) == 1:
                return ends[0]
            (low, high), (low_b, high_b) = ends
            return -math.hypot(low, high_b), math.hypot(high, low_b)
        r, s = self._ratios(n, m)
        curvature, skewness = (
            r**2 * ours + s**2 * theirs for ours, theirs in (self.curvature, self.skewness)
        )
        return EstimateDifference(
            value=0.0,
            stderr=self.stderr(n, m),
            degrees_of_freedom=self._degrees(n, m),
            curvature=curvature,
            skewness=skewness,
        ).interval(level)


def smallest(
    reached: Callable[[float], bool], low: float = 2.0, high: float = LARGEST
) -> int | None:
    """Return the smallest whole number from `low` on where `reached` holds; None if nowhere.

    `reached` is false below some number and true above it.
    """
    if reached(low):
        return math.ceil(low)
    if not reached(high):
        return None
    while high - low > 1.0 and high > low * (1.0 + 1e-9):
        middle = math.sqrt(low * high) if high > 2.0 * low else (low + high) / 2.0
        low, high = (low, middle) if reached(middle) else (middle, high)
    whole = math.floor(high)
    return whole if whole > low and reached(whole) else math.ceil(high)


def _limits_of(*estimates: Estimate) -> tuple[Any, ...]:
    """Return how the limits of bounded means shrink, if all of these are some."""
    limits = tuple(getattr(estimate.own_interval, "at", None) for estimate in estimates)
    return limits if all(limits) else ()


def _size(error: SampleError) -> float:
    return math.inf if error.n is None else float(error.n)


def _shares(variance: float, quadratic: float, mixed: float) -> Parts:
    """Divide a variance into its parts of first order, of second order, and the mixed one."""
    second = min(quadratic, variance)
    crossed = min(mixed, variance - second)
    return variance - second - crossed, second, crossed


def _split(error: SampleError) -> Parts:
    return _shares(error.variance, error.quadratic_variance, error.mixed_variance)


def _side(
    one: SampleError, two: SampleError, variance: float, *, shared: bool, crossed: float
) -> tuple[Parts, Parts]:
    """Divide what one side adds to the variance of a difference: of the interval, of the value."""
    kept = _kept(one, two) if shared else 1.0
    # Influences that are subtracted have twice the noise that the quadratic part has.
    twice = 1.0 + shared
    linear, second, mixed = _shares(
        variance,
        twice * kept * (one.quadratic_variance + two.quadratic_variance),
        twice * crossed * (one.mixed_variance + two.mixed_variance),
    )
    return (linear, second, mixed), (linear, second / twice, mixed / twice)


def _grown_together(variance: float, one: SampleError, two: SampleError, n: float) -> VarianceModel:
    """Return the model of samples that share units with the reference, which grows with them."""
    linear, second, mixed = _shares(
        variance,
        one.quadratic_variance + two.quadratic_variance,
        one.mixed_variance + two.mixed_variance,
    )
    terms = Terms(a=linear, b=second + mixed)
    degrees = one.degrees_of_freedom, math.inf
    return VarianceModel(n=n, m=math.inf, stated=terms, actual=terms, degrees=degrees)


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
