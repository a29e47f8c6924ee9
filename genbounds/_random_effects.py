"""Values whose own errors are known and which vary beyond them: runs of a recipe, contexts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def paule_mandel(values: Float, within: Float) -> float:
    """Return the variance between values at which they spread as much as is expected of them.

    Paule & Mandel, J. Res. NBS 87, 1982.

    Parameters
    ----------
    values, within : ndarray of shape (k,)
        Values and the variances of their own errors.

    Returns
    -------
    float
        0 where their own errors explain the spread.
    """
    from scipy.optimize import brentq

    k = values.size
    spread = float(np.var(values, ddof=1))

    def excess(between: float) -> float:
        weights = 1.0 / (within + between)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2) - (k - 1.0)

    if not spread > 0.0:
        return 0.0
    smallest = 0.0 if (within > 0.0).all() else 1e-12 * spread
    if excess(smallest) <= 0.0:
        return 0.0
    # At k times the spread every weight is below what makes the excess positive.
    return float(brentq(excess, smallest, k * spread, xtol=1e-12 * spread, rtol=1e-10))


def shrunken(values: Float, within: Float) -> Float:
    """Return values moved towards their mean by as much of their spread as is their own error.

    The empirical Bayes estimate of normal effects (Efron & Morris, JASA 70, 1975), with the
    variance between them after Paule and Mandel: where they agree all become their mean, where
    they differ by far more than their errors they stay.

    Parameters
    ----------
    values, within : ndarray of shape (k,)
        Values and the variances of their own errors.

    Returns
    -------
    ndarray of shape (k,)
        The values themselves if there is one alone, or if they have no errors.
    """
    if values.size < 2 or not (within > 0.0).all():
        return values
    between = paule_mandel(values, within)
    weights = 1.0 / (within + between)
    mean = weights @ values / weights.sum()
    found: Float = mean + between * weights * (values - mean)
    return found
