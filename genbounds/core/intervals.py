"""Ends of confidence intervals, their quantiles, and degrees of freedom."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

from genbounds.validation import InputError

LARGEST_SHIFT = 0.6
"""Standard errors by which curvature may move an interval: beyond, its expansion is not small."""


OwnInterval = Callable[[float], tuple[float, float]]
"""From a level to both ends of the confidence interval, on the scale of `Estimate.value`."""


@dataclass(frozen=True, slots=True)
class _ScaledInterval:
    """The interval of a score that is multiplied by a factor."""

    ends: OwnInterval
    factor: float

    def __call__(self, level: float) -> tuple[float, float]:
        low, high = sorted(self.factor * end for end in self.ends(level))
        return low, high


def scaled_interval(interval: OwnInterval | None, factor: float) -> OwnInterval | None:
    """Return an interval of a score that is multiplied by `factor`."""
    return None if interval is None else _ScaledInterval(interval, factor)


def studentised_interval(
    value: float, stderr: float, quantile: float, *, curvature: float = 0.0, skewness: float = 0.0
) -> tuple[float, float]:
    """Return both ends of the interval of a smooth function of means.

    Where value and estimated variance move together, a symmetric interval misses on one side: both
    ends are moved by (1 + z²) curvature / stderr³ + (1 + 2z²)/6 skewness / stderr³ standard errors,
    the Cornish–Fisher terms of the studentised statistic (P. Hall, "The bootstrap and Edgeworth
    expansion", 1992, §2.4; derivation: docs/explanation/frechet.md), by at most `LARGEST_SHIFT`.

    Parameters
    ----------
    value, stderr : float
    quantile : float
        z, two-sided.
    curvature, skewness : float
        As in `SampleError`.

    Raises
    ------
    InputError
        As `cubed`.
    """
    shift = 0.0
    if stderr > 0.0:
        cube = cubed(stderr)
        shift = (1.0 + quantile**2) * curvature + (1.0 + 2.0 * quantile**2) / 6.0 * skewness
        shift = min(max(shift / cube, -LARGEST_SHIFT), LARGEST_SHIFT)
    half = math.hypot(quantile, shift) * stderr
    centre = value + shift * stderr
    return centre - half, centre + half


def cubed(stderr: float) -> float:
    """Return the cube of a standard error above 0.

    Raises
    ------
    InputError
        If it leaves double precision, as that of NaN does.
    """
    cube = stderr * stderr * stderr
    if not sys.float_info.min <= cube < math.inf:
        raise InputError(
            "the standard error of the score, or its cube, is beyond double precision: multiply "
            "all samples by a common number."
        )
    return cube


def welch_degrees_of_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of independent variance estimates, by Welch's formula.

    Parameters
    ----------
    *parts : tuple of float
        Of each: its variance and the degrees of freedom of that.

    Returns
    -------
    float
    """
    total = sum(variance for variance, _ in parts)
    if total == 0.0:
        return math.inf
    # Shares: squares of variances leave double precision where those of a score do not.
    weight = sum((variance / total) ** 2 / degrees for variance, degrees in parts)
    return 1.0 / weight if weight > 0.0 else math.inf


def tail_probability(quantile: float, degrees_of_freedom: float = math.inf) -> float:
    """Two-sided tail of Student's distribution beyond `quantile`."""
    from scipy.special import ndtr, stdtr

    if math.isinf(degrees_of_freedom):
        return float(2.0 * ndtr(-quantile))
    return float(2.0 * stdtr(degrees_of_freedom, -quantile))


def student_quantile(level: float, degrees_of_freedom: float = math.inf) -> float:
    """Two-sided Student quantile at `level`.

    Normal (1.96 at level 0.95) for infinite `degrees_of_freedom`.
    """
    from scipy.special import ndtri, stdtrit

    tail = (1.0 - level) / 2.0
    if math.isinf(degrees_of_freedom):
        return float(-ndtri(tail))
    return float(-stdtrit(degrees_of_freedom, tail))
