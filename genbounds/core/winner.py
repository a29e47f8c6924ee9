"""The interval of the best of several models, which was chosen by the value that it is about.

The least of several estimates is too small, and an interval around it misses too often: of twenty
equal models in four of ten. Given that model * was chosen, and the others' estimates less what they
share with it, its estimate is normal and cut off where another model would have been chosen. The
hybrid interval inverts that distribution within a simultaneous interval, which keeps it short.

I. Andrews, T. Kitagawa and A. McCloskey, "Inference on winners", Q. J. Econ. 139, 2024, section 4.
"""

from __future__ import annotations

import math

import numpy as np

from genbounds.validation import Float

SPENT = 0.1
"""Of the error probability, on the simultaneous interval (theirs)."""

SAME = 1e-9
"""Standard errors, nearer than which to the least another estimate is the same one, rounded."""


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
    The simultaneous interval is Šidák's, which holds for errors of any correlation.
    """
    stderr = math.sqrt(variance)
    if not stderr > 0.0:
        return 0.0, 0.0, 0.0
    other = gaps > SAME * stderr
    from scipy.optimize import brentq
    from scipy.special import ndtri

    # Where the least estimate is no longer the least, in its standard errors.
    slopes = 1.0 - covariances[other] / variance
    moving = np.abs(slopes) > 1e-12
    limits = gaps[other][moving] / slopes[moving] / stderr
    above = float(np.min(limits[limits > 0.0], initial=np.inf))
    below = float(np.max(limits[limits < 0.0], initial=-np.inf))
    error = 1.0 - level
    spent = SPENT * error
    reach = float(-ndtri(-np.expm1(np.log1p(-spent) / (gaps.size + 1.0)) / 2.0))

    def solve(p: float) -> float:
        """Find the mean for which a smaller value has probability p, which falls with it."""

        def excess(mean: float) -> float:
            cut = max(below - mean, -reach), min(above - mean, reach)
            return _cut_normal(-mean, *cut) - p

        if excess(-reach) <= 0.0:
            return -reach
        if excess(reach) >= 0.0:
            return reach
        return float(brentq(excess, -reach, reach, xtol=1e-12))

    tail = (error - spent) / (2.0 * (1.0 - spent))
    value, low, high = (stderr * solve(p) for p in (0.5, 1.0 - tail, tail))
    return value, low, high


def _cut_normal(x: float, low: float, high: float) -> float:
    """P(Z <= x) of a standard normal Z between `low` and `high`."""
    if x <= low:
        return 0.0
    if x >= high:
        return 1.0
    return math.exp(min(_log_mass(low, x) - _log_mass(low, high), 0.0))


def _log_mass(low: float, high: float) -> float:
    """Logarithm of P(low < Z < high), also far out."""
    from scipy.special import log_ndtr

    if low > 0.0:
        low, high = -high, -low
    large, small = float(log_ndtr(high)), float(log_ndtr(low))
    return large + math.log1p(-math.exp(small - large)) if small < large else -math.inf
