"""Limits of the mean of bounded values by betting: valid at every number of values.

I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86,
2024, here with fixed stakes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def betting_lower_limit(
    sums: Float, needed: Any, stakes: Any, *, sizes: Any = 1.0, halvings: int
) -> Float:
    """Lower limit of a mean: the smallest that a mixture of bets does not reject.

    Stakes θ/m on "more than m" give the capital Π (1 + θ (S_i/m - s_i)), a non-negative martingale
    if E[S_i - m s_i] = 0, and decreasing in m, so that bisection finds the limit.

    Parameters
    ----------
    sums : ndarray of shape (trials, n)
        S_i, non-negative; of single values in [0, 1] these values, of a group the sum over its
        values.
    needed : float or ndarray of shape (trials,)
        Logarithm of the capital that rejects: log(1/δ).
    stakes : sequence of float
        θ, in (0, 1); the capital is shared equally among them.
    sizes : float or ndarray of shape (n,)
        s_i in (0, 1]: 1 for single values; for groups, sums and sizes are divided by the largest
        size that a group can have.
    halvings : int
        Steps of the bisection; what is left goes to the safe side.

    Returns
    -------
    ndarray of shape (trials,)
    """
    average = sums.mean(axis=-1) / np.mean(sizes)
    low: Float = np.zeros_like(average)
    high = average.copy()
    goal = np.asarray(needed) + np.log(len(stakes))
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore", invalid="ignore"):
            edge = np.where(middle[:, None] > 0.0, sums / middle[:, None] - sizes, 0.0)
        wealth = np.logaddexp.reduce([np.log1p(s * edge).sum(axis=-1) for s in stakes], axis=0)
        rejected = wealth >= goal
        low = np.where(rejected, middle, low)
        high = np.where(rejected, high, middle)
    return low
