"""Two shares compared exactly: Fisher's test and an interval of their ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from genbounds.validation import Float

NOTED, OTHER, BASE = 0.8, 0.1, 0.1
"""How the error of an interval is spent: on the end that a claim needs, on the other end, and on
the share that turns odds into a ratio."""

STEEPEST = 60.0
"""Logarithm of the largest odds ratio that is looked for; beyond it an end is 0 or infinite."""


def fisher(k: int, n: int, k0: int, n0: int) -> float:
    """Return the p-value of k of n against k0 of n0, for "the first share is not the larger one".

    Fisher's exact test, one-sided.
    """
    from scipy.stats import hypergeom

    return float(hypergeom.sf(k - 1, n + n0, n, k + k0))


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return `pvalues` adjusted for their number (S. Holm, Scand. J. Stat. 6, 1979)."""
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(value) for value in adjusted]


def ratio_interval(k: int, n: int, k0: int, n0: int, error: float) -> tuple[float, float]:
    """Bound the ratio p / p0 of two shares from k of n and k0 of n0, where p > p0 is expected.

    Parameters
    ----------
    k, n, k0, n0 : int
    error : float
        Probability that the ratio lies outside, at most.

    Returns
    -------
    tuple of float
        Ends; the lower one is the sharper one. ``(0, inf)`` is possible.

    Notes
    -----
    The ratio is θ / (1 + p0 (θ - 1)) with θ the odds ratio. Ends of θ are exact given k + k0
    (R. A. Fisher, J. R. Stat. Soc. 98, 1935); p0 is at most u, by Clopper and Pearson (Biometrika
    26, 1934), and at least 0. Each of the three fails with its part of `error`.
    """
    from scipy.special import betaincinv

    low, high = (_odds_end(k, n, k0, n0, part * error, end) for part, end in _ENDS)
    base = 1.0 if k0 == n0 else float(betaincinv(k0 + 1.0, n0 - k0, 1.0 - BASE * error))
    # With θ > 1 the ratio falls in p0, with θ < 1 it rises.
    return _ratio(low, base if low > 1.0 else 0.0), _ratio(high, base if high < 1.0 else 0.0)


_ENDS = ((NOTED, False), (OTHER, True))


def _ratio(odds: float, base: float) -> float:
    if math.isinf(odds):
        return math.inf if base == 0.0 else 1.0 / base
    return odds / (1.0 + base * (odds - 1.0))


def _odds_end(k: int, n: int, k0: int, n0: int, error: float, upper: bool) -> float:
    """Return the end of the odds ratio at which a tail of k given k + k0 has probability `error`.

    Given the sum, k has the weights C(n, i) C(n0, k + k0 - i) θ^i (Fisher's noncentral
    hypergeometric distribution).
    """
    from scipy.optimize import brentq
    from scipy.special import gammaln

    i: Float = np.arange(max(0, k + k0 - n0), min(n, k + k0) + 1, dtype=np.float64)
    j = k + k0 - i
    weights = -(gammaln(i + 1) + gammaln(n - i + 1) + gammaln(j + 1) + gammaln(n0 - j + 1))
    tail = i <= k if upper else i >= k
    if tail.all():  # nothing speaks against any odds on this side
        return math.inf if upper else 0.0

    def excess(log_odds: float) -> float:
        terms = weights + log_odds * i
        terms = np.exp(terms - terms.max())
        return float(terms[tail].sum() / terms.sum()) - error

    end = STEEPEST if upper else -STEEPEST
    if excess(end) > 0.0:
        return math.inf if upper else 0.0
    return math.exp(float(brentq(excess, -STEEPEST, STEEPEST, xtol=1e-9)))
