"""Several estimates as one: their difference, where common noise cancels, their mean, the best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core import estimate
from genbounds.core.estimate import Estimate, OwnInterval, SampleError, mean_variance
from genbounds.validation import Float

LOG_ERRORS = (-30.0, -1e-9)
"""Logarithms of the error probabilities of intervals between which p-values are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateDifference:
    """Difference of two estimates, with its error.

    Attributes
    ----------
    value : float
        ``a.value - b.value``.
    stderr : float
        Its standard error; noise that both models share does not count.
    degrees_of_freedom : float
        Of `stderr`, by Welch's formula.
    curvature, skewness : float
        As in `SampleError`, of both models together.
    own_interval : callable or None
        From a level to the ends of the interval, where it is not a studentised normal one.
    """

    value: float
    stderr: float
    degrees_of_freedom: float
    curvature: float = 0.0
    skewness: float = 0.0
    own_interval: OwnInterval | None = field(default=None, compare=False)

    @property
    def noisy(self) -> bool:
        """Whether there is noise to compare the difference with."""
        return self.stderr > 0.0 or self.own_interval is not None

    def shifted(self, shift: float) -> EstimateDifference:
        """Return the same, with a known number, the `shift`, added."""
        own = self.own_interval and partial(estimate.moved_ends, self.own_interval, 1.0, shift)
        return replace(self, value=self.value + shift, own_interval=own)

    def interval(self, level: float) -> tuple[float, float]:
        """Both ends of the interval at `level`."""
        if self.own_interval is not None:
            return self.own_interval(level)
        quantile = estimate.student_quantile(level, self.degrees_of_freedom)
        return estimate.studentised_interval(
            self.value, self.stderr, quantile, curvature=self.curvature, skewness=self.skewness
        )

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of no difference: one less the largest level whose interval misses 0.

        1 where even the shortest interval holds 0, and where there is no noise to compare with.
        """
        if self.value != 0.0 and self.own_interval is not None:
            return self._pvalue_of_ends(self.own_interval)
        if self.value == 0.0 or not self.stderr > 0.0:
            return 1.0
        from scipy.special import ndtr, stdtr

        # An end at 0 has |value| = t standard errors and z² = t² + 2 t shift, where the shift,
        # a + b z², is at most `LARGEST_SHIFT`: z² is its own largest solution between two limits.
        unit, most = math.copysign(self.stderr, self.value), estimate.LARGEST_SHIFT
        t, skewed = self.value / unit, self.skewness / 6.0
        a, b = ((self.curvature + k * skewed) / unit / unit / unit for k in (1.0, 2.0))
        low, high = t * (t - 2.0 * most), t * (t + 2.0 * most)
        if 2.0 * t * b < 1.0:
            square = min(max(t * (t + 2.0 * a) / (1.0 - 2.0 * t * b), low), high)
        else:
            square = high if a + b * high >= most else low
        at = -math.sqrt(max(square, 0.0))
        normal = math.isinf(self.degrees_of_freedom)
        return float(2.0 * (ndtr(at) if normal else stdtr(self.degrees_of_freedom, at)))

    def _pvalue_of_ends(self, interval: OwnInterval) -> float:
        from scipy.optimize import brentq

        def nearer(x: float) -> float:
            """By how much the interval of this log error probability misses 0."""
            low, high = interval(-math.expm1(x))
            return low if self.value > 0.0 else -high

        least, most = LOG_ERRORS
        if nearer(most) <= 0.0:
            return 1.0
        return math.exp(least if nearer(least) > 0.0 else brentq(nearer, least, most, xtol=1e-6))


def difference(a: Estimate, b: Estimate) -> EstimateDifference:
    """Difference of two models scored against the same reference.

    Parameters
    ----------
    a, b : Estimate

    Returns
    -------
    EstimateDifference
        `a` minus `b`, with its variance.

    Notes
    -----
    The rows of a common reference, and units that stand in several samples by name (prompts,
    latents), have one influence on the difference: their noise cancels. The part of a variance
    that influences do not explain (second order) is kept for both models. Curvatures and skewnesses
    subtract for samples of their own; of a common sample, whose noise cancels, none is taken.
    Scores with `halves` were cut alike, and the difference is that of two scores in every half.
    Where one is `combined`, and both have intervals of their own, these are combined.
    """
    if a.halves is not None and b.halves is not None:
        halves = a.halves - b.halves
        found = EstimateDifference(
            value=a.value - b.value,
            stderr=math.sqrt(np.mean(halves**2)),
            degrees_of_freedom=float(halves.size),
        )
    else:
        errors = [a.sample, b.sample.scaled(-1.0)]
        one, two = a.reference.influence, b.reference.influence
        if one is not None and two is not None and one.size == two.size:
            unexplained = a.reference.unexplained + b.reference.unexplained
            common = SampleError(
                variance=mean_variance(one - two) + unexplained,
                degrees_of_freedom=one.size - 1.0,
                influence=one - two,
                units=a.reference.units,
            )
            errors.append(common)
        else:
            errors += [a.reference, b.reference.scaled(-1.0)]
        gap = a.value - b.value
        if abs(gap) <= estimate.SAME * max(abs(a.value), abs(b.value), 1.0 if a.log_scale else 0.0):
            gap = 0.0
        found = sum_of(gap, errors)
    if not ((a.combined or b.combined) and a.own_interval and b.own_interval):
        return found
    return replace(found, own_interval=_combined(a, b, found))


def _combined(a: Estimate, b: Estimate, gap: EstimateDifference) -> OwnInterval:
    """Combine the own intervals of two scores to that of their difference.

    R. G. Newcombe, Stat. Med. 17, 1998 (his method 10); G. Y. Zou and A. Donner, Stat. Med. 27,
    2008. Pairs that agree in all that was drawn may still differ in log(2/α)/n of what was not.
    """
    product = a.stderr * b.stderr
    shared = (a.variance + b.variance - gap.stderr**2) / 2.0
    correlation = min(max(shared / product, 0.0), 1.0) if product > 0.0 else 0.0
    samples = (a.sample, b.sample)
    units = min((e.n or 1) if e.units is None else np.unique(e.units).size for e in samples)
    span = max(e.upper_limit - e.lower_limit for e in (a, b))

    # Of the module, not of this call: monitors are pickled.
    return partial(_combined_ends, a, b, correlation, units, span)


def _combined_ends(
    a: Estimate, b: Estimate, correlation: float, units: int, span: float, level: float
) -> tuple[float, float]:
    assert a.own_interval is not None
    assert b.own_interval is not None
    (low, high), (low_b, high_b) = a.own_interval(level), b.own_interval(level)
    unseen = min(-math.log((1.0 - level) / 2.0) / units, 1.0) * span

    def reach(first: float, second: float) -> float:
        most = first**2 + second**2
        return math.sqrt(max(most - 2.0 * correlation * first * second, min(unseen**2, most)))

    below, above = reach(a.value - low, high_b - b.value), reach(high - a.value, b.value - low_b)
    return a.value - b.value - below, a.value - b.value + above


def sum_of(value: float, errors: Iterable[SampleError]) -> EstimateDifference:
    """Return a sum of terms with its error, of which units of one name have one influence.

    Parameters
    ----------
    value : float
        The sum.
    errors : iterable of SampleError
        What each sample contributes to the error of each term.

    Returns
    -------
    EstimateDifference
    """
    groups, seeds = [], []  # which have names of their own
    for error in errors:
        if error.seeds is not None and error.influence is not None:
            seeds.append(error.seeds)
            error = replace(
                error,
                variance=max(error.variance - error.seeds.variance, 0.0),
                degrees_of_freedom=error.influence.size - 1.0,
                seeds=None,
            )
        groups.append(error)
    terms = []
    for errors in (groups, seeds):
        named = [
            (e.units, e.influence, e.unexplained)
            for e in errors
            if e.units is not None and e.influence is not None
        ]
        units = [names for names, *_ in named]
        if len(named) > 1 and any_shared(units):  # one error, in which influences add up
            _, at = np.unique(np.concatenate(units), return_inverse=True)
            steps = [(x - x.mean()) / math.sqrt(x.size * (x.size - 1.0)) for _, x, _ in named]
            sums = np.bincount(at, np.concatenate(steps))
            variance = float(sums @ sums) + sum(rest for *_, rest in named)
            terms.append(SampleError(variance=variance, degrees_of_freedom=sums.size - 1.0))
            errors = [e for e in errors if e.units is None or e.influence is None]
        terms += errors
    parts = [(error.variance, error.degrees_of_freedom) for error in terms]
    return EstimateDifference(
        value=value,
        stderr=math.sqrt(sum(variance for variance, _ in parts)),
        degrees_of_freedom=estimate.welch_degrees_of_freedom(*parts),
        curvature=sum(error.curvature for error in terms),
        skewness=sum(error.skewness for error in terms),
    )


def any_shared(units: list[NDArray[Any]]) -> bool:
    """Whether a name stands in several lists of different ones."""
    kinds = {array.dtype.kind in "iub" for array in units}
    if len(kinds) > 1:
        return False  # numbers here, words there
    whole = np.concatenate(units)
    return np.unique(whole).size < whole.size


# --- the mean of estimates that have nothing in common: over classes, or over halves of the rows --


def average(estimates: Sequence[Estimate], shares: Float, *, what: str) -> Estimate:
    """Weighted mean of estimates from samples that have nothing in common.

    Parameters
    ----------
    estimates : sequence of Estimate
        Of one method.
    shares : ndarray of shape (estimates,)
    what : str
        What the estimates are of, in the plural: "classes". It stands in the warning.

    Returns
    -------
    Estimate
        Without influences: differences of two means take each one's error as its own.
    """
    scaled = [one.scaled(share) for one, share in zip(estimates, shares, strict=True)]
    doubts = [w for one in estimates for w in one.warnings if w.severity == "unreliable"][:1]
    if doubts:
        many = f"{sum(not one.reliable for one in estimates)} of {len(estimates)} {what}"
        message = f"{many} cannot be relied on: {doubts[0].message}"
        doubts = [replace(doubts[0], message=message)]
    return replace(
        estimates[0],
        value=math.fsum(one.value for one in scaled),
        sample=_sum_of_errors([one.sample for one in scaled]),
        reference=_sum_of_errors([one.reference for one in scaled]),
        shared_variance=math.fsum(one.shared_variance for one in scaled),
        missing_rate=math.fsum(one.missing_rate for one in scaled),
        own_interval=None,
        halves=None,
        plugin=None,
        warnings=tuple(doubts),
        details=(),
    )


def _sum_of_errors(errors: Sequence[SampleError]) -> SampleError:
    """Error of a sum of independent estimates."""
    known = [error.n for error in errors if error.n is not None]
    names = ("variance", "curvature", "skewness", "quadratic_variance", "mixed_variance")
    sums: dict[str, Any] = {
        name: math.fsum(getattr(error, name) for error in errors) for name in names
    }
    parts = [(error.variance, error.degrees_of_freedom) for error in errors]
    n = sum(known) if len(known) == len(errors) else None
    return SampleError(n=n, degrees_of_freedom=estimate.welch_degrees_of_freedom(*parts), **sums)


# --- the best of several, which was chosen by the value that it is about --------------------------

SPENT = 0.1
"""Of the error probability, on the simultaneous interval (theirs)."""

SAME_ESTIMATE = 1e-9
"""Standard errors, nearer than which to the least another estimate is the same one, rounded; at
least so far away is its distribution cut off."""


def winner_interval(
    gaps: Float, covariances: Float, variance: float, level: float
) -> tuple[float, float, float]:
    """Return value and interval of the least of several normal estimates, less that estimate.

    Parameters
    ----------
    gaps : ndarray of shape (k - 1,)
        By how much the other estimates are larger. One within rounding of 0 is no other estimate:
        such values are those of one model, or counts.
    covariances : ndarray of shape (k - 1,)
        Of the error of each with that of the least.
    variance : float
        Of the least.
    level : float

    Returns
    -------
    value, low, high : float
        The value is as likely too large as too small.

    Notes
    -----
    The least of several estimates is too small, and an interval around it misses too often: of
    twenty equal models in four of ten. Given that model * was chosen, and the others' estimates
    less what they share with it, its estimate is normal and cut off where another model would have
    been chosen. The hybrid interval inverts that distribution within a simultaneous interval, which
    keeps it short; that one is Šidák's, which holds for errors of any correlation.

    I. Andrews, T. Kitagawa and A. McCloskey, "Inference on winners", Q. J. Econ. 139, 2024,
    section 4.
    """
    stderr = math.sqrt(variance)
    if not stderr > 0.0:
        return 0.0, 0.0, 0.0
    other = gaps > SAME_ESTIMATE * stderr
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtri

    # Where the least estimate is no longer the least, in its standard errors.
    slopes = 1.0 - covariances[other] / variance
    moving = np.abs(slopes) > 1e-12
    limits = gaps[other][moving] / slopes[moving] / stderr
    above = max(float(np.min(limits[limits > 0.0], initial=np.inf)), SAME_ESTIMATE)
    below = min(float(np.max(limits[limits < 0.0], initial=-np.inf)), -SAME_ESTIMATE)
    error = 1.0 - level
    spent = SPENT * error
    reach = float(-ndtri(-np.expm1(np.log1p(-spent) / (gaps.size + 1.0)) / 2.0))

    def smaller(mean: float) -> float:
        """Probability of a smaller value under that mean, with which it falls from 1 to 0."""
        low, high = max(below - mean, -reach), min(above - mean, reach)
        places = np.array([low, min(max(-mean, low), high), high])
        first, here, last = log_ndtr(-places if low > 0.0 else places)  # of the smaller tail
        return float(np.expm1(here - first) / np.expm1(last - first))

    tail = (error - spent) / (2.0 * (1.0 - spent))
    value, low, high = (
        stderr * float(brentq(lambda mean, p=p: smaller(mean) - p, -reach, reach, xtol=1e-12))
        for p in (0.5, 1.0 - tail, tail)
    )
    return value, low, high
