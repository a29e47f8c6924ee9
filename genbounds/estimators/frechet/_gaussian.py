"""Gaussian rows in closed form; the error due to a sample of known mean, covariance and size.

The covariance of a Gaussian sample is the mean parameter of an exponential family, and the debiased
distance nearly its best unbiased estimator, of variance G/m + 2 E h(y, y')²/m² (Bhattacharyya),

    G = 4 gᵀ Σ g + 2 [Tr Σ² - 2 Σ_i q_i s_i + Σ_i s_i²],  q_i = ‖Σ p_i‖²,

with g the gap of the means and p_i the columns of the projection to w. The same estimated
covariance stands in both factors of I - T and Σ, so that each part of G is freed of its own bias.
Fourth moments that are not Gaussian change bias and variance by their ratios to Gaussian ones,
from rows kept beside the statistics or borrowed from the other sample. Derivation:
docs/explanation/frechet.md.
"""

from __future__ import annotations

import math

import numpy as np

from genbounds.core.estimate import SampleError
from genbounds.core.moments import EPS
from genbounds.estimators.frechet._form import RootHessian, gaussian_bias
from genbounds.estimators.frechet._sample import FrechetSample
from genbounds.estimators.spectrum_fit._root import contour_around, contour_trace_root, root_along
from genbounds.validation import Float

CONTOUR_SHARE = 0.9
"""Dimensions per row up to which the contour is used; beyond, the spectrum reaches to 0."""


def gaussian_bias_beyond_second_order(roots: Float, n: int) -> float:
    """Rest of the bias for Gaussian features, of every order in 1/n at a fixed ratio of r to n.

    The root of the population spectrum of Lᵀ Σ L by the contour integral of the Marchenko–Pastur
    law, docs/explanation/few_samples.md, against `gaussian_bias`. Needs fewer positive roots than
    n - 1.
    """
    s = roots[roots > math.sqrt(roots.size * EPS) * roots.max(initial=0.0)]
    if not s.size:
        return 0.0
    whole = 2.0 * (contour_trace_root(s**2, sizes=[n - 1]).value - float(s.sum()))
    return whole - gaussian_bias(0.0, s, n)


def gaussian_square(hessian: RootHessian, product: float) -> float:
    """E h(x, y)² for Gaussian rows; `product` is Tr Σ², or of rows of both samples Tr Σ Σ_r.

    Tr Σ Σ_r + 2 Σ_ij H_ij² + 2 Σ_i H_ii².
    """
    squares = float((hessian.weights**2).sum()) + float((hessian.roots**2).sum()) / 16.0
    return product + 2.0 * squares


# --- A sample of which only moments are known -----------------------------------------------------


def fourth_moments(x: Float, w: Float, gap: Float, hessian: RootHessian) -> Float:
    """Return what rows show of fourth moments: mean h of the root, Var IF and E h(y, y')².

    Parameters
    ----------
    x, w : ndarray of shape (k, d) and (k, r)
        Centred rows with the covariance of the sample in question, and their coordinates.
    gap : ndarray of shape (d,)
        Mean of that sample minus mean of the other.
    hessian : RootHessian
    """
    w2 = w * w
    diagonal = w2 @ hessian.diagonal
    own = hessian.quadratic(w2, 2.0 * diagonal)
    influence = 2.0 * (x @ gap) + np.einsum("ij,ij->i", x, x) - w2 @ hessian.roots
    one, two = slice(len(x) // 2), slice(len(x) // 2, len(x) // 2 * 2)
    crossed = hessian.quadratic(w[one] * w[two], diagonal[one] + diagonal[two])
    crossed += np.einsum("ij,ij->i", x[one], x[two])
    return np.array([own.mean(), np.var(influence, ddof=1), (crossed**2).mean()])


def moments_error(
    sample: FrechetSample,
    other: FrechetSample,
    roots: Float,
    projection: Float,
    rows: tuple[Float, Float] | None = None,
) -> SampleError:
    """Error due to this sample; the mixed term with the other is not in it.

    Parameters
    ----------
    sample, other : FrechetSample
        `sample` has a size.
    roots : ndarray of shape (r,)
        The singular values s, all positive.
    projection : ndarray of shape (d, r)
        Maps centred rows to w.
    rows : tuple of ndarray of shape (k, d) and (k, r), optional
        Centred rows with this covariance and their w, to take fourth moments from.

    Returns
    -------
    SampleError
        `bias` to all orders in r/n for Gaussian rows.
    """
    assert sample.n is not None
    s, n, cov, gap = roots, sample.n, sample.cov, sample.mean - other.mean
    trace, square, cross = sample.trace, float((cov * cov).sum()), float(s @ s)
    moved = cov @ projection
    q = np.einsum("ij,ij->j", moved, moved)
    linear = float(gap @ cov @ gap)
    first = 4.0 * linear + 2.0 * (square - 2.0 * float(q @ s) + cross)
    unbiased = gaussian_influence_variance(
        linear=linear, trace=trace, square=square, roots=s, moved=q, n=n, other=other.effective
    )
    hessian = RootHessian(s)
    pairs, bias = gaussian_square(hessian, square), gaussian_bias(trace, s, n)
    of_bias, of_influence, of_pairs = np.ones(3)
    if rows is not None:  # as multiples of what Gaussian rows have
        gaussian = np.array([n * bias - trace, first, pairs])
        found = fourth_moments(*rows, gap, hessian)
        of_bias, of_influence, of_pairs = np.divide(
            found, gaussian, out=np.ones(3), where=gaussian > 0.0
        )
    rest = bias_beyond_second_order(s, n, of_bias)
    slopes = projection.T @ (cov @ moved) - np.diag(s)
    steepness = float((cov @ gap) @ (cov @ gap)) + float((hessian.weights * slopes**2).sum())
    # What is taken off the variance of the influence is the noise of the fit, as is the bias.
    variance = of_influence * (first - of_bias * (first - unbiased)) / n
    second = 2.0 / n**2 * pairs * of_pairs
    return SampleError(
        n=n,
        bias=trace / n + of_bias * (bias - trace / n) + rest,
        variance=max(variance, 0.0) + second,
        degrees_of_freedom=n - 1.0,
        curvature=4.0 * steepness / n**2 * of_influence**2,
        quadratic_variance=second,
    )


def gaussian_influence_variance(
    *,
    linear: float,
    trace: float,
    square: float,
    roots: Float,
    moved: Float,
    n: int,
    other: float = math.inf,
) -> float:
    """Variance of one row's influence for Gaussian rows, without its bias; it can be negative.

    Parameters
    ----------
    linear : float
        μᵀ Σ μ, with μ the gap between the means.
    trace, square : float
        Tr Σ, Tr Σ².
    roots : ndarray of shape (r,)
        The singular values s.
    moved : ndarray of shape (r,)
        q, of which Σ q_i s_i = Tr Σ² T.
    n : int
    other : float
        Rows of the other sample; infinite where it is exact.

    Returns
    -------
    float
    """
    size, cross = n - 1, float(roots @ roots)
    own_square = square
    if size > 1:  # two rows show nothing of how their covariance varies
        own_square = (square - trace**2 / size) * size**2 / ((size - 1.0) * (size + 2.0))
    # By so much, times its rows, the other sample lowers each root on average.
    squares = ((roots / np.add.outer(roots, roots)) ** 2).sum(axis=1)
    lowered = roots * (squares + 0.25) / 2.0
    crossed = _root_of_cube(roots, moved, size) + float(moved @ lowered) / other
    found = 4.0 * (linear - own_square / n - cross / other)
    return found + 2.0 * (own_square - 2.0 * crossed + cross)


def bias_beyond_second_order(roots: Float, n: int, ratio: float) -> float:
    """Rest of the bias, where that of second order is `ratio` times that of Gaussian rows."""
    if roots.size >= CONTOUR_SHARE * (n - 1):
        return 0.0
    return gaussian_bias_beyond_second_order(roots, n) * ratio**2


def _root_of_cube(s: Float, q: Float, size: int) -> float:
    """Tr Σ² T = Σ q_i s_i without its bias, to all orders in r / size.

    T is the map to the other sample. With λ = s² and the resolvent of a sample at z equal to w/z
    times that of the population at w = -1/m(z),

        -(1/2πi) ∮ w^{3/2} (z/w) Σ_i (q_i/λ_i) / (λ_i - z) dw - (3/8 size) Σ q_i s_i.

    To second order in 1/size where the spectrum leaves no space for the contour.
    """
    plain = float(q @ s)
    if s.size >= CONTOUR_SHARE * size:
        sums = np.add.outer(s, s)
        pairs = s**2 * (s[:, None] + 2.0 * s) / (2.0 * sums**2)
        return plain - float(q @ (pairs.sum(axis=1) + np.diagonal(pairs))) / size
    if not s.size:
        return 0.0
    unit = float(s.max())
    lam, rest = (s / unit) ** 2, 1.0 - s.size / size
    z, dz = contour_around(lam, size)
    inverse = 1.0 / (lam - z[:, None])
    m = inverse.sum(axis=1) / size - rest / z
    slope = (inverse**2).sum(axis=1) / size + rest / z**2
    total = (root_along(-1.0 / m) ** 3 * z * (inverse @ (q / lam)) * slope / m * dz).sum()
    return unit * float(total.real) - 3.0 / 8.0 * plain / size
