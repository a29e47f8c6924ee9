"""Exact tail probabilities behind Gaussian statements, accurate in relative terms far out."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from genbounds.validation import Float, InputError, check_open_unit

# Trapezoid rule along the contour, in units of the width of the saddle: the integrand is analytic
# within 0.7 on either side, so that a step of 0.1 leaves exp(-2π·7) of its peak. Evaluated in
# blocks until it has decayed, which it has before 60.
_STEP = 0.1
_NODES = (_STEP * np.arange(600)).reshape(-1, 50)


def weighted_chi_square_tail(
    x: float, weights: ArrayLike, *, degrees: float = 1.0, upper: bool = True
) -> float:
    """Tail probability of Q = Σ_j w_j χ²_j with independent chi-square variables.

    Parameters
    ----------
    x : float
        Threshold.
    weights : array_like of shape (d,)
        Non-negative w_j, not all zero.
    degrees : float
        Degrees of freedom of every χ²_j.
    upper : bool
        P(Q > x) if True, else P(Q < x).

    Returns
    -------
    float
        To about 1e-9 in relative terms, down to the smallest floats.

    Raises
    ------
    InputError
        If a weight is negative or not finite, or none is positive.

    Notes
    -----
    With K(s) = −½ Σ_j k log(1 − 2 s w_j), the upper tail is (1/2πi) ∫ exp(K(s) − s x) ds/s along
    any path that crosses the real axis between 0 and 1/(2 max w); the lower tail, with −1/s,
    any path that crosses it below 0. The path used is a parabola through the saddle point of the
    integrand, open to the right, on which it decays like a Gaussian; its size at the saddle is
    factored out, so that no cancellation spoils a small tail [1]_.

    References
    ----------
    .. [1] S. O. Rice (1980). Distribution of quadratic forms in normal random variables:
       evaluation by numerical integration. SIAM J. Sci. Stat. Comput. 1(4).
    """
    from scipy.optimize import brentq
    from scipy.special import chdtr, chdtrc

    values, counts = _positive(weights)
    if x <= 0.0:
        return float(upper)
    if math.isinf(x):
        return float(not upper)
    if values.size == 1:
        tail = chdtrc if upper else chdtr
        return float(tail(degrees * counts[0], x / values[0]))
    if (x > degrees * float(values @ counts)) != upper:  # the other tail is the smaller one
        return 1.0 - weighted_chi_square_tail(x, weights, degrees=degrees, upper=not upper)
    scale = float(values.max())
    values, x = values / scale, x / scale
    half = 0.5 * degrees * counts
    sign = 1.0 if upper else -1.0

    def slope(c: float) -> float:
        return float((2.0 * half * values / (1.0 - 2.0 * c * values)).sum() - x - 1.0 / c)

    low = high = 0.25 if upper else -1.0
    while slope(low) > 0.0:
        low *= 0.5 if upper else 2.0
    while slope(high) < 0.0:  # towards 1/2 or 0
        high = 0.5 * (high + (0.5 if upper else 0.0))
    c = low if low == high else float(brentq(slope, low, high, xtol=1e-300, rtol=1e-12))

    gap = 1.0 - 2.0 * c * values
    ratio = c * values / gap  # derivatives at the saddle in units of c, which can be huge
    spread = float(4.0 * half @ ratio**2)
    skew = float(np.abs(16.0 * half @ ratio**3))
    second = spread + 1.0
    step = abs(c) / math.sqrt(second)
    # Bent less than this the integrand decays too slowly where few weights rule; bent more where
    # many do, it would grow at first: 8 spread³/skew² are the effective degrees of freedom.
    bend = max(skew / (6.0 * second**1.5), min(0.1, skew / math.sqrt(8.0 * spread**3)))
    total = 0.0
    for block in _NODES:
        s = c + step * (1j * block + bend * block**2)
        exponent = -(half * np.log1p(-2.0 * np.multiply.outer(s - c, values) / gap)).sum(axis=1)
        exponent += -(s - c) * x - np.log(s / c)
        terms = np.exp(exponent) * (1.0 - 2j * bend * block)
        total += float(terms.real.sum()) - (0.5 if block[0] == 0.0 else 0.0)
        if np.abs(terms[-1]) < 1e-18:  # the first term is 1
            break
    peak = -float((half * np.log(gap)).sum()) - c * x - math.log(sign * c)
    total *= _STEP * step / math.pi
    return min(max(math.exp(peak + math.log(total)), 0.0), 1.0) if total > 0.0 else 0.0


def weighted_chi_square_quantile(
    probability: float, weights: ArrayLike, *, degrees: float = 1.0
) -> float:
    """Threshold x that Q = Σ_j w_j χ²_j exceeds with `probability`.

    Parameters
    ----------
    probability : float
        Upper tail, in (0, 1).
    weights : array_like of shape (d,)
        Non-negative w_j, not all zero.
    degrees : float
        Degrees of freedom of every χ²_j.

    Returns
    -------
    float
        To about 1e-9 in relative terms.
    """
    array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    _positive(array)
    return _quantile(check_open_unit("probability", probability), array.tobytes(), degrees)


@lru_cache(maxsize=512)
def _quantile(probability: float, buffer: bytes, degrees: float) -> float:
    """`weighted_chi_square_quantile` of weights given by their bytes, kept for the next call."""
    from scipy.optimize import brentq

    weights = np.frombuffer(buffer)
    values, counts = _positive(weights)
    target = math.log(probability)
    excess = -target
    # Laurent–Massart: the quantile lies below this (one more unit for the rounding).
    high = degrees * float((values * counts).sum())
    high += 2.0 * math.sqrt(degrees * float((values**2 * counts).sum()) * excess)
    high += 2.0 * float(values.max()) * (excess + 1.0)
    low = high

    def distance(x: float) -> float:
        tail = weighted_chi_square_tail(x, weights, degrees=degrees)
        return (math.log(tail) if tail > 0.0 else -math.inf) - target

    while distance(low) < 0.0:
        high, low = low, 0.5 * low
    return float(brentq(distance, low, high, rtol=1e-13, xtol=1e-300)) if low < high else low


def normal_product_tail(x: ArrayLike) -> Float:
    """``P(|z u| > x)`` for two independent standard normal variables.

    Parameters
    ----------
    x : array_like
        Non-negative thresholds.

    Returns
    -------
    ndarray
        (2/π) ∫_x^∞ K₀(y) dy, the density of ``|z u|``, by quadrature to a relative 1e-9.
    """
    from scipy.integrate import quad
    from scipy.special import k0e

    def one(threshold: float) -> float:
        # y = x + t²: the logarithmic singularity of K₀ at 0 and the decay e^(-t²) both smooth.
        value, _ = quad(
            lambda t: 2.0 * t * k0e(threshold + t * t) * math.exp(-t * t),
            0.0,
            7.0,
            epsabs=0.0,
            epsrel=1e-11,
            limit=200,
        )
        return float(2.0 / math.pi * math.exp(-threshold) * value)

    return np.asarray(np.vectorize(one, otypes=[float])(x))


def _positive(weights: ArrayLike) -> tuple[Float, Float]:
    """Distinct positive weights and how often each occurs."""
    array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    if not (array.ndim == 1 and np.isfinite(array).all() and (array >= 0.0).all()):
        raise InputError("`weights` must be finite, non-negative and one-dimensional.")
    values, counts = np.unique(array[array > 0.0], return_counts=True)
    if values.size == 0:
        raise InputError("`weights` must hold a positive number; all are zero.")
    return values, counts.astype(np.float64)
