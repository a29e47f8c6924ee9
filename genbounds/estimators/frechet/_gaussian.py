"""What the Fréchet distance of Gaussian rows does: bias, variance and transport map in closed form.

With the singular values s of Aᵀ L and H_ij = s_i s_j / (2 (s_i + s_j)), as in `_form`. Rows of any
other distribution are measured against these (docs/explanation/frechet.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.linalg import EPS
from genbounds.estimators.spectrum_fit._contour import contour_trace_root
from genbounds.validation import Float

WIDE = 96
"""From more directions on than this, products with H are those with its factor: faster."""

FACTOR_STEP = 0.35
FACTOR_RTOL = 1e-12
"""Of H from its factor: what the ends of the sum leave out. The step costs 1.3e-11 at most."""

PAIR_BLOCK = 1 << 16
"""Pairs of directions that are worked on at a time: they stay in the cache."""


def exponential_factor(roots: Float) -> Float:
    """Return A of shape (r, k) with ``A @ A.T`` = H, H_ij = s_i s_j / (2 (s_i + s_j)).

    1/x = ∫ exp(u - x exp(u)) du by the trapezoidal rule, whose error falls exponentially with the
    step. All terms are positive, and k, some 100, grows with the logarithm of the ratio of the
    `roots` only.
    """
    low = math.log(FACTOR_RTOL / 2.0 / float(roots.max()))
    high = math.log(-math.log(FACTOR_RTOL) / 2.0 / float(roots.min()))
    rates = np.exp(np.arange(low, high + FACTOR_STEP, FACTOR_STEP))
    factor = np.exp(-np.outer(roots, rates))
    factor *= roots[:, None]
    factor *= np.sqrt(FACTOR_STEP / 2.0 * rates)
    return factor


def gaussian_bias(trace: float, roots: Float, n: float) -> float:
    """Second-order bias for Gaussian features, where Var(w_i w_j) = 1 + δ_ij.

    Tr Σ / n + (1/2n) Σ_ij s_i s_j (1 + δ_ij) / (s_i + s_j), with `trace` = Tr Σ, singular values
    `roots` of shape (r,) and `n` rows.
    """
    s = roots[roots > 0.0]
    if s.size > WIDE:
        sums = exponential_factor(s).sum(axis=0)
        pairs = 2.0 * float(sums @ sums)
    else:
        pairs = float((s / (s / s[:, None] + 1.0)).sum())
    return float(trace / n + (pairs + s.sum() / 2.0) / (2.0 * n))


def transport_roots(roots: Float, n: float, other: float = math.inf) -> Float:
    """Take the noise of `n` own rows and of `other` rows of the other sample off the transport map.

    Estimated from them its coordinate s_i errs on average by

        s_i/2n Σ_j (1 + δ_ij) (1 - r_ij²) - s_i/2m Σ_j (1 + δ_ij) (1 - r_ij)²,
        r_ij = s_i / (s_i + s_j),

    for Gaussian rows: the third-order term of the distance. Derivation:
    docs/explanation/frechet.md.

    Parameters
    ----------
    roots : ndarray of shape (r,)
        The singular values s, all positive.
    n, other : float
        Rows of either sample; infinite where its moments are exact.

    Returns
    -------
    ndarray of shape (r,)
        At least half and at most twice `roots`.
    """
    first, second = np.empty_like(roots), np.empty_like(roots)
    step = max(1, PAIR_BLOCK // max(roots.size, 1))
    for start in range(0, roots.size, step):
        block = slice(start, start + step)
        rest = roots / (roots[block, None] + roots)  # 1 - r
        first[block], second[block] = rest.sum(axis=1), np.einsum("ij,ij->i", rest, rest)
    moved: Float = transport_from_sums(roots, first, second, n, other)
    return moved


def transport_from_sums(roots: Any, first: Any, second: Any, n: float, other: float) -> Any:
    """Take the noise off the transport map, from sums over its directions: `transport_roots`.

    Parameters
    ----------
    roots : array or tensor
        The singular values s, of any shape.
    first, second : array or tensor
        Σ_j (1 - r_ij) and Σ_j (1 - r_ij)² with r_ij = s_i / (s_i + s_j), of the same shape.
    n, other : float
        Rows of either sample; infinite where its moments are exact.

    Returns
    -------
    array or tensor
        Of the same shape.
    """
    # 1 - r² = 2(1 - r) - (1 - r)²; r_ii = 1/2.
    own, theirs = 2.0 * first - second + 0.75, second + 0.25
    share = 1.0 - own / (2.0 * n) + theirs / (2.0 * other)
    return roots * share.clip(0.5, 2.0)


def gaussian_bias_beyond_second_order(roots: Float, n: int) -> float:
    """Rest of the bias for Gaussian features, of every order in 1/n at a fixed ratio of r to n.

    The root of the population spectrum of Lᵀ Σ L by the contour integral of the Marchenko–Pastur
    law, docs/explanation/few_samples.md, against `gaussian_bias`. Needs fewer positive roots than
    n - 1.
    """
    s = roots[positive_roots(roots)]
    if not s.size:
        return 0.0
    whole = 2.0 * (contour_trace_root(s**2, sizes=[n - 1]).trace_root - float(s.sum()))
    return whole - gaussian_bias(0.0, s, n)


def gaussian_second_order_variance(roots: Float, sum_of_squares: float, n: int) -> float:
    """Variance of the quadratic part for Gaussian features; `sum_of_squares` is Tr Σ².

    (2/n²) [ Tr Σ² + (1/2) Σ_ij s_i² s_j² / (s_i + s_j)² + (1/8) Σ_i s_i² ].
    """
    s = roots[roots > 0.0]
    pairs = (np.outer(s, s) / np.add.outer(s, s)) ** 2 if s.size else np.zeros(1)
    return float(2.0 / n**2 * (sum_of_squares + pairs.sum() / 2.0 + (s**2).sum() / 8.0))


def gaussian_mixed_square(roots: Float, product: float) -> float:
    """E h(x, y)² for Gaussian rows; `product` is Tr Σ Σ_r.

    Tr Σ Σ_r + 2 Σ_ij H_ij² + 2 Σ_i H_ii².
    """
    weights = root_weights(roots)
    return product + 2.0 * (float((weights**2).sum()) + float((roots**2).sum()) / 16.0)


def root_weights(roots: Float) -> Float:
    """H, of shape (r, r), in the precision of the `roots`."""
    weights: Float = np.divide(roots / 2, np.add.outer(roots, roots))
    weights *= roots[:, None]
    return weights


def positive_roots(values: Float) -> NDArray[np.bool_]:
    """Mask of the directions in which both samples vary beyond rounding."""
    largest = float(values.max(initial=0.0))
    mask: NDArray[np.bool_] = values > np.sqrt(values.size * EPS) * largest
    return mask
