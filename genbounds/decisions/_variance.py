"""How the variance of a score, or of the difference of two, falls with more samples.

From one pilot with n generated and m reference rows, to second order,

    Var(n, m) = a/n + b/n² + c/m + e/m² + f/nm:

a and c from the influences, b and e from the quadratic part of either sample, f from the mixed one.
Taking the variance of the pilot as proportional to 1/n would carry the quadratic part along.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genbounds.estimators import (
    EXACT,
    Estimate,
    EstimateDifference,
    SampleError,
    difference,
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
    """Coefficients of the variance; those of the reference are 0 where it is exact."""

    a: float
    b: float
    c: float = 0.0
    e: float = 0.0
    f: float = 0.0

    def at(self, n: float, m: float) -> float:
        """Variance with n generated and m reference rows; either may be infinite."""
        ours, theirs = 1.0 / n, 1.0 / m
        return ours * (self.a + self.b * ours) + theirs * (self.c + self.e * theirs + self.f * ours)


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
        n, m = _size(estimate.sample), _size(estimate.reference)
        sample, reference = estimate.sample, estimate.reference
        _refuse_seeds(estimate)
        if estimate.shared_variance:
            return _grown_together(estimate.variance, sample, reference, n)
        terms = _terms(n, m, _split(sample), _split(reference))
        return cls(
            n=n,
            m=m,
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
        gap = difference(a, b)
        fake_gap = difference(replace(a, reference=EXACT), replace(b, reference=EXACT))
        real_gap = difference(replace(a, sample=EXACT), replace(b, sample=EXACT))
        sizes = [_size(a.sample), _size(b.sample)]
        finite = [size for size in sizes if size < math.inf]
        n = len(finite) / sum(1.0 / size for size in finite) if finite else math.inf
        m = min(_size(a.reference), _size(b.reference))
        if a.shared_variance or b.shared_variance:
            return _grown_together(gap.stderr**2, a.sample, b.sample, n)
        paired = _joined(a.sample, b.sample)
        common = _same_rows(a.reference, b.reference)
        # h is bilinear: of pairs with a shared row only one of both factors is alike.
        alike = 1.0 - _kept(a.sample, b.sample) if paired else 0.0
        crossed = 1.0 - math.sqrt(max(alike, 0.0))
        fake = _side(a.sample, b.sample, fake_gap.stderr**2, shared=paired, crossed=crossed)
        real = _side(a.reference, b.reference, real_gap.stderr**2, shared=common, crossed=crossed)
        stated, actual = (_terms(n, m, *both) for both in zip(fake, real, strict=True))
        # Samples of unequal sizes: what is of order 1/n adds up to the same with equal ones.
        if not paired and sizes[0] != sizes[1]:
            parts = list(zip(map(_split, (a.sample, b.sample)), sizes, strict=True))
            linear, square = (
                sum(_times(part[k], size ** (k + 1)) for part, size in parts) for k in (0, 1)
            )
            stated, actual = (replace(terms, a=linear, b=square) for terms in (stated, actual))
        return cls(
            n=n,
            m=m,
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
        return replace(
            single,
            stated=Terms(a=2.0 * x.a, b=2.0 * x.b, f=3.0 * x.f),
            actual=Terms(a=2.0 * x.a, b=2.0 * x.b, f=2.0 * x.f),
            curvature=(0.0, 0.0),
            skewness=(0.0, 0.0),
            degrees=(2.0 * single.degrees[0], single.degrees[1]),
            own=2 * single.own,
        )

    def stderr(self, n: float, m: float | None = None) -> float:
        """Return the standard error that an interval would be made from."""
        return math.sqrt(self.stated.at(n, self.m if m is None else m))

    def scatter(self, n: float, m: float | None = None) -> float:
        """Return the standard deviation that values would have."""
        return math.sqrt(self.actual.at(n, self.m if m is None else m))

    def degrees_at(self, n: float, m: float | None = None) -> float:
        """Degrees of freedom of the variance at these numbers of samples."""
        m = self.m if m is None else m
        x = self.stated
        parts = (x.a / n + x.b / n**2, n, self.n), (x.c / m + x.e / m**2, m, self.m)
        measured = [
            (variance, degrees * size / before)
            for (variance, size, before), degrees in zip(parts, self.degrees, strict=True)
            if variance > 0.0
        ]
        return welch_degrees_of_freedom(*measured)

    def half_width(self, level: float, n: float, m: float | None = None) -> float:
        """Half the width of an interval at these numbers of samples."""
        low, high = self._interval(level, n, m)
        return (high - low) / 2.0

    def power(self, gap: float, level: float, n: float, m: float | None = None) -> float:
        """Probability that the interval of a true difference `gap` > 0 lies above 0."""
        from scipy.special import ndtr

        low, _ = self._interval(level, n, m)
        scatter = self.scatter(n, m)
        return float(ndtr((gap + low) / scatter)) if scatter > 0.0 else float(gap + low > 0.0)

    def reaching(
        self, *, half_width: float | None, gap: float | None, level: float, power: float
    ) -> Callable[..., bool]:
        """Return whether n generated and m reference samples reach a half-width, or find a gap."""
        if gap is not None:
            return lambda n, m=None: self.power(gap, level, n, m) >= power
        assert half_width is not None
        return lambda n, m=None: self.half_width(level, n, m) <= half_width

    def margin(self, level: float, power: float, n: float, m: float | None = None) -> float:
        """Return the distance from a limit at which a one-sided test decides with that power."""
        degrees = self.degrees_at(n, m)
        sure = student_quantile(2.0 * level - 1.0, degrees) * self.stderr(n, m)
        return sure + student_quantile(2.0 * power - 1.0) * self.scatter(n, m)

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
        m = self.m if m is None else m
        shares = (self.n / n) ** 2, (self.m / m) ** 2 if m < math.inf else 0.0
        curvature, skewness = (
            sum(share * part for share, part in zip(shares, parts, strict=True) if part)
            for parts in (self.curvature, self.skewness)
        )
        return EstimateDifference(
            value=0.0,
            stderr=self.stderr(n, m),
            degrees_of_freedom=self.degrees_at(n, m),
            curvature=curvature,
            skewness=skewness,
        ).interval(level)


def smallest(reached: Any, low: float = 2.0, high: float = LARGEST) -> float:
    """Return the smallest whole number from `low` on where `reached` holds; infinite if nowhere.

    `reached` is false below some number and true above it.
    """
    if reached(low):
        return math.ceil(low)
    if not reached(high):
        return math.inf
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


def _terms(n: float, m: float, own: Parts, reference: Parts) -> Terms:
    """Turn parts of the pilot's variance into coefficients."""
    mixed = 0.0 if math.isinf(n) else own[2] + reference[2]  # more samples change nothing there
    return Terms(
        a=_times(own[0], n),
        b=_times(own[1], n**2),
        c=_times(reference[0], m),
        e=_times(reference[1], m**2),
        f=_times(mixed, n * m),
    )


def _times(share: float, size: float) -> float:
    return share * size if share else 0.0


def _grown_together(variance: float, one: SampleError, two: SampleError, n: float) -> VarianceModel:
    """Return the model of samples that share units with the reference, which grows with them."""
    linear, second, mixed = _shares(
        variance,
        one.quadratic_variance + two.quadratic_variance,
        one.mixed_variance + two.mixed_variance,
    )
    terms = Terms(a=linear * n, b=(second + mixed) * n**2)
    return VarianceModel(
        n=n,
        m=math.inf,
        stated=terms,
        actual=terms,
        degrees=(one.degrees_of_freedom, math.inf),
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
    if one.units is None or two.units is None or one.influence is None or two.influence is None:
        return False
    if (one.units.dtype.kind in "iub") != (two.units.dtype.kind in "iub"):
        return False
    return np.intersect1d(one.units, two.units).size > 0


def _same_rows(one: SampleError, two: SampleError) -> bool:
    return (
        one.influence is not None
        and two.influence is not None
        and one.influence.size == two.influence.size
    )


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
