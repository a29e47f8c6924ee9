"""Limits of the mean of bounded values by betting: valid at every number of values.

I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86,
2024, here with fixed stakes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

MOST_STEPS = 100
"""Of Newton's method. About eight are needed, and one more for every `LONGEST_STEP`."""

LONGEST_STEP = 50.0
"""In the logarithm of the limit: the first step, from the mean, must not leave double precision."""

CONVERGED = 1e-8
"""A step as short as this leaves its square, which is nothing."""


def betting_lower_limit(sums: Float, needed: Any, stakes: Any, *, sizes: Any = 1.0) -> Float:
    """Lower limit of a mean: the smallest that a mixture of bets does not reject.

    Stakes θ/m on "more than m" give the capital Π (1 + θ (S_i/m - s_i)), a non-negative martingale
    if E[S_i - m s_i] = 0. Its logarithm decreases in log m and is convex, and so is that of the
    mixture: a step of Newton's method ends below the limit, on the safe side, wherever it begins.

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

    Returns
    -------
    ndarray of shape (trials,)
    """
    average: Float = sums.mean(axis=-1) / np.mean(sizes)
    goal = np.asarray(needed) + np.log(len(stakes))
    low = np.where(average > 0.0, average, 1.0)
    for _ in range(MOST_STEPS):
        log_capital, slope = _log_capital(sums / low[:, None], stakes, sizes)
        # Without any sum above 0 the slope is 0, and the limit too.
        step = np.divide(log_capital - goal, slope, out=np.zeros_like(low), where=slope > 0.0)
        low *= np.exp(np.maximum(step, -LONGEST_STEP))
        if np.abs(step).max() < CONVERGED:
            break
    return np.where(average > 0.0, low, 0.0)


def _log_capital(ratios: Float, stakes: Any, sizes: Any) -> tuple[Float, Float]:
    """Logarithm of the summed capital of all stakes at S_i/m, and its fall with log m."""
    logs, falls = [], []
    for stake in stakes:
        gains = stake * (ratios - sizes)
        logs.append(np.log1p(gains).sum(axis=-1))
        falls.append((stake * ratios / (1.0 + gains)).sum(axis=-1))
    total = np.logaddexp.reduce(logs, axis=0)
    return total, (np.exp(np.subtract(logs, total)) * falls).sum(axis=0)
