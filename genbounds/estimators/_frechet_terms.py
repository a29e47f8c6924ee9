"""First- and second-order terms of the Fréchet distance in one sample.

With cov_r = L Lᵀ and the eigendecomposition Lᵀ Σ L = U diag(s²) Uᵀ, the coordinates
z = Uᵀ Lᵀ (x - μ) have covariance diag(s²), and in E_ij = mean(z_i z_j) - δ_ij s_i²

    FD(Σ + ΔΣ) - FD(Σ) = Tr ΔΣ - Σ_i E_ii / s_i + Σ_ij E_ij² / (2 s_i s_j (s_i + s_j)) + O(E³),

because the divided difference of the derivative x^(-1/2)/2 of the root at (s_i², s_j²) is
-1 / (2 s_i s_j (s_i + s_j)). The linear part gives the influence function, the quadratic part the
bias. Swapping the roles of the two samples gives the same formulas with z = Uᵀ Lᵀ Σ (y - μ_r) / s,
since both directions share the singular values s. Derivation: docs/frechet.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._expansion import mean_variance
from genbounds.estimators._linalg import EPS
from genbounds.estimators._moments import row_blocks
from genbounds.validation import Float

PAIRING_SEED = 20_190_110
"""Fixed, so that the random pairing and halving of rows give the same result at every call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTerms:
    """What one sample contributes to the error of the plug-in distance.

    Attributes
    ----------
    bias : float
        Second-order bias of the plug-in due to this sample.
    variance : float
        Variance due to this sample: first order with the optimism of the fitted transport map
        removed, and second order, which is all there is where the two laws are equal.
    degrees_of_freedom : float
        Of `variance`.
    influence : ndarray of shape (n,) or None
        Centred leave-one-out influence of each row.
    """

    bias: float
    variance: float
    degrees_of_freedom: float
    influence: Float | None


EXACT = SideTerms(bias=0.0, variance=0.0, degrees_of_freedom=math.inf, influence=None)
"""A side whose moments are exactly known."""


def gaussian_bias(trace: float, roots: Float, n: int) -> float:
    """Second-order bias for Gaussian features, where Var(z_i z_j) = s_i² s_j² (1 + δ_ij).

    Tr Σ / n + (1/2n) Σ_ij s_i s_j (1 + δ_ij) / (s_i + s_j).
    """
    s = roots[roots > 0.0]
    if s.size == 0:
        return trace / n
    pairs = np.outer(s, s) / np.add.outer(s, s)
    return float(trace / n + (pairs.sum() + s.sum() / 2.0) / (2.0 * n))


def gaussian_second_order_variance(roots: Float, sum_of_squares: float, n: int) -> float:
    """Variance of the quadratic part for Gaussian features; `sum_of_squares` is Tr Σ².

    (2/n²) [ Tr Σ² + (1/2) Σ_ij s_i² s_j² / (s_i + s_j)² + (1/8) Σ_i s_i² ].
    """
    s = roots[roots > 0.0]
    pairs = (np.outer(s, s) / np.add.outer(s, s)) ** 2 if s.size else np.zeros(1)
    return float(2.0 / n**2 * (sum_of_squares + pairs.sum() / 2.0 + (s**2).sum() / 8.0))


def gaussian_terms(*, gap: Float, cov: Float, projection: Float, roots: Float, n: int) -> SideTerms:
    """Terms from the moments alone, as if the features were Gaussian.

    Parameters
    ----------
    gap : ndarray of shape (d,)
        Mean of this side minus mean of the other.
    cov : ndarray of shape (d, d)
        Covariance of this side.
    projection : ndarray of shape (d, r)
        Maps centred rows to z.
    roots : ndarray of shape (r,)
        The singular values s, all positive.
    n : int
    """
    # Var[2 gapᵀx + xᵀ(I - T)x] for x ~ N(0, cov): 4 gapᵀ cov gap + 2 Tr[((I - T) cov)²].
    sum_of_squares = float((cov * cov).sum())
    moved = cov @ projection
    crossed = float(((moved * moved).sum(axis=0) / roots).sum())
    quadratic = max(sum_of_squares - 2.0 * crossed + float((roots**2).sum()), 0.0)
    linear = float(gap @ (cov @ gap))
    second = gaussian_second_order_variance(roots, sum_of_squares, n)
    return SideTerms(
        bias=gaussian_bias(float(np.trace(cov)), roots, n),
        # The fitted map overstates the first-order variance by twice the second-order one.
        variance=max((4.0 * linear + 2.0 * quadratic) / n - second, second),
        degrees_of_freedom=n - 1.0,
        influence=None,
    )


def sample_terms(
    rows: NDArray[Any],
    index: NDArray[np.intp] | None,
    *,
    mean: Float,
    gap: Float,
    projection: Float,
    roots: Float,
) -> SideTerms:
    """Terms from the rows themselves: right for any law with four moments.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Not centred; any floating type.
    index : ndarray of shape (m,) or None
        The rows to use, in increasing order; None: all.
    mean : ndarray of shape (d,)
        Mean of the rows.
    gap, projection, roots
        As in `gaussian_terms`.

    Notes
    -----
    Let h(x, x') be the symmetric kernel of the quadratic part. Then

    * bias = mean_i h(x_i, x_i) / n;
    * the plug-in influence of x_i contains the row itself, (2/n) h(x_i, x_i): it is taken out
      (leave-one-out to first order), without which heavy tails inflate the variance;
    * the fitted transport map adds 4 E h(x, x')² / n to the variance of the influence, where the
      quadratic part itself has variance 2 E h(x, x')² / n²: half of it is taken back. E h² is
      estimated from disjoint pairs of rows.
    """
    d = rows.shape[1]
    n = rows.shape[0] if index is None else index.size
    half_weights = 0.5 / (np.outer(roots, roots) * np.add.outer(roots, roots))
    weighted = np.diagonal(half_weights) * roots**2
    constant = float((weighted * roots**2).sum())
    influence = np.empty(n)
    own = np.empty(n)
    pair_sum, pairs = 0.0, 0
    shuffler = np.random.default_rng(PAIRING_SEED)
    for chosen, block in row_blocks(rows, index, width=max(d, roots.size)):
        shuffled = shuffler.permutation(block.shape[0])  # pairs must not follow the file's order
        x = block[shuffled] - mean
        chosen = chosen[shuffled]
        z = x @ projection
        z2 = z * z
        squared_norm = np.einsum("ij,ij->i", x, x)
        influence[chosen] = 2.0 * (x @ gap) + squared_norm - z2 @ (1.0 / roots)
        diagonal = z2 @ weighted
        own[chosen] = (
            squared_norm + np.einsum("ij,ij->i", z2 @ half_weights, z2) - 2.0 * diagonal + constant
        )
        k = chosen.size // 2
        cross = z[:k] * z[k : 2 * k]
        kernel = (
            np.einsum("ij,ij->i", x[:k], x[k : 2 * k])
            + np.einsum("ij,ij->i", cross @ half_weights, cross)
            - diagonal[:k]
            - diagonal[k : 2 * k]
            + constant
        )
        pair_sum += float(kernel @ kernel)
        pairs += k
    influence -= influence.mean() + (2.0 / n) * (own - own.mean())
    first = mean_variance(influence)
    second = 2.0 * pair_sum / max(pairs, 1) / n**2
    return SideTerms(
        bias=float(own.mean()) / n,
        # first ≈ Var(IF)/n + 2 second; the truth Var(IF)/n + second is never below half of first.
        variance=max(first - second, first / 2.0),
        degrees_of_freedom=n - 1.0,
        influence=influence,
    )


def positive_roots(values: Float) -> NDArray[np.bool_]:
    """Mask of the directions in which both laws vary beyond rounding."""
    largest = float(values.max(initial=0.0))
    mask: NDArray[np.bool_] = values > np.sqrt(values.size * EPS) * largest
    return mask
