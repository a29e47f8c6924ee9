"""Intervals of Vendi scores that are far from normal: at the ceiling, and of tied eigenvalues.

No score exceeds the feature dimension D, and where all D eigenvalues are equal the first-order
influence vanishes. With C = I/D + Δ and Ĉ = C + noise, what the log score of the sample lacks of
log D is, for a finite order α,

    T ≈ α D/2 ‖Δ + noise‖²,

a weighted sum of noncentral chi-squares. Its central part has mean b (the bias) and variance v (the
quadratic part); by Satterthwaite's match it is a χ²(m) with a = v/(2b), m = b/a, and what the
population itself lacks, τ, is a times the noncentrality. Measured coverage:
docs/explanation/vendi.md.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.estimate import OwnInterval
from genbounds.validation import Float

REACH, AT_LEAST = 6.0, 8.0
"""The chi-square interval is used up to so many central standard deviations, and this much, of
noncentrality: beyond, the normal one covers as well, and rests on less."""

NEAR_CEILING = (
    "the score is near the largest that the feature dimension allows, where it is not normal: the "
    "interval is that of a noncentral chi-square",
)

TIE_DRAWS, TIE_ROWS, TIE_SEED = 999, 2000, 20_240_104
"""Draws of the distribution of a largest eigenvalue, from at most so many rows; seeded, so that the
same rows give the same interval."""


def ceiling_interval(
    *, value: float, bias: float, second: float, ceiling: float, n: int
) -> OwnInterval | None:
    """Return the interval of a log score so near its ceiling that a normal one fails; else None.

    Parameters
    ----------
    value : float
        Debiased log score.
    bias, second : float
        Second-order bias of the plug-in (negative) and variance of its quadratic part.
    ceiling : float
        log D.
    n : int
        Sample size; no more rows than dimensions say nothing of a ceiling.
    """
    if not (bias < 0.0 < second and math.exp(ceiling) < n):
        return None
    # The plug-in lacks `scale` times a χ²(degrees, ν) where the population lacks ν of these.
    scale = second / (-2.0 * bias)
    degrees = -bias / scale
    beyond = (ceiling - value) / scale
    if beyond > REACH * math.sqrt(2.0 * degrees) + AT_LEAST:
        return None

    def interval(level: float) -> tuple[float, float]:
        least, most = noncentrality(max(beyond + degrees, 0.0), degrees, 1.0 - level)
        return ceiling - scale * most, ceiling - scale * least

    return interval


def noncentrality(statistic: float, degrees: float, alpha: float) -> tuple[float, float]:
    """Confidence interval of the noncentrality of a χ²(m, ν), by inverting a test of every ν.

    A ν so small that values below m are no evidence against it is only refused from above, at
    `alpha`; a larger one from either side, at half of that. So the coverage is 1 - `alpha` at
    ν = 0 as well, and a statistic below m gives no shorter interval than m itself.

    References
    ----------
    .. [1] G. Cowan, K. Cranmer, E. Gross and O. Vitells, "Power-constrained limits", 2011.
    """
    switch = _solve(degrees, degrees, alpha / 2.0)
    most = max(_solve(statistic, degrees, alpha / 2.0), switch)
    least = _solve(statistic, degrees, 1.0 - alpha)
    if least >= switch:
        least = max(switch, _solve(statistic, degrees, 1.0 - alpha / 2.0))
    return least, most


def _solve(statistic: float, degrees: float, p: float) -> float:
    """Return the ν at which χ²(m, ν) < `statistic` has probability `p`; 0 if even 0 has less."""
    if statistic <= 0.0 or scipy.special.chdtr(degrees, statistic) <= p:
        return 0.0
    return float(scipy.special.chndtrinc(statistic, degrees, p))


def tied_interval(*, largest: float, stderr: float, excess: Float, degrees: float) -> OwnInterval:
    """Return the interval of a log score of order ∞ where several eigenvalues may be the largest.

    The largest of several falls short of the truth by a normal quantile most often if it is alone;
    it exceeds it most if all are equal. The two errors do not occur together: the second is allowed
    all of 1 - level, the first half.

    Parameters
    ----------
    largest : float
        Largest eigenvalue of the sample.
    stderr : float
        Standard error of its logarithm, were it alone.
    excess : ndarray of shape (draws,)
        Sorted draws of the logarithm of the largest of the group over its true value, were all of
        the group equal.
    degrees : float
        Of `stderr`.
    """
    low = -math.log(largest)

    def interval(level: float) -> tuple[float, float]:
        quantile = float(scipy.special.stdtrit(degrees, (1.0 + level) / 2.0))
        rank = math.ceil(level * (excess.size + 1)) - 1
        above = max(float(excess[min(rank, excess.size - 1)]), 0.0)
        return low - quantile * stderr, low + above

    return interval


def tie_excess(coordinates: Float) -> Float:
    """Draw log λ_max of a group of equal eigenvalues in units of their common value.

    Parameters
    ----------
    coordinates : ndarray of shape (m, k)
        Of some rows in the eigenvectors of the group, each column scaled to mean square one.

    Notes
    -----
    Weighted bootstrap of ``Ĉ - C`` within the group, with Poisson weights, whose first three
    moments are those of the multinomial.
    """
    m, k = coordinates.shape
    rng = np.random.default_rng(TIE_SEED)
    one, two = np.triu_indices(k)
    products = coordinates[:, one] * coordinates[:, two] - (one == two)
    weights = rng.poisson(1.0, size=(TIE_DRAWS, m)) - 1.0
    drawn = np.zeros((TIE_DRAWS, k, k))
    drawn[:, two, one] = weights @ products / m  # eigvalsh reads the lower triangle
    largest = np.linalg.eigvalsh(drawn)[:, -1]
    return np.sort(np.log1p(np.maximum(largest, -0.5)))
