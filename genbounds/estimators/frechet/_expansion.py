"""First and second order of the Fréchet distance in one sample.

With cov_r = L Lᵀ and the eigendecomposition Lᵀ Σ L = U diag(s²) Uᵀ, the coordinates
w = diag(1/s) Uᵀ Lᵀ (x - μ) have unit covariance, and in E_ij = mean(w_i w_j) - δ_ij

    FD(Σ + ΔΣ) - FD(Σ) = Tr ΔΣ - Σ_i s_i E_ii + Σ_ij H_ij E_ij² + O(E³),

with H_ij = s_i s_j / (2 (s_i + s_j)), because the divided difference of the derivative x^(-1/2)/2
of the root at (s_i², s_j²) is -1 / (2 s_i s_j (s_i + s_j)). The linear part gives the influence
function, the quadratic part the bias. Swapping the roles of the two samples gives the same formulas
with w = s⁻² Uᵀ Lᵀ Σ (y - μ_r), since both directions share the singular values s. Derivation:
docs/explanation/frechet.md.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Index
from genbounds.core.estimate import SampleError
from genbounds.core.expansion import (
    DivisibleForm,
    RowTerms,
    expand_design,
    expand_rows,
)
from genbounds.core.linalg import EPS
from genbounds.core.moments import block_size, is_narrow, row_blocks
from genbounds.core.tiles import ChosenRows, over_rows
from genbounds.estimators.spectrum_fit._contour import contour_trace_root
from genbounds.validation import Float

PAIRING_SEED = 20_190_110
"""Fixed, so that the random pairing and halving of rows give the same result at every call."""

PART_ROWS = 2048
"""Where not every row is needed, the expansion is of random parts of at least so many rows ..."""

PART_WORK = 2048 * 2048**2
"""... and of more where a row costs little: rows times the square of the number of features."""

SINGLE_WIDTH = 64
"""From so many dimensions on, products of features given in single precision are formed in it. In
coordinates of unit variance its rounding is some 1e-7 of a term, also where standard deviations
span seven decades (directions in which it is coarse weigh little)."""

PART_NOISE_FACTOR = 20 / 9
"""Noise of the estimate over that of the bias: the third order takes 4/3 of the bias off and adds
1/3 of that of a half, whose noise from equally many rows has twice the standard deviation."""

WIDE = 96
"""From more directions on than this, products with H are those with its factor: faster."""

FACTOR_STEP = 0.35
FACTOR_RTOL = 1e-12
"""Of H from its factor: what the ends of the sum leave out. The step costs 1.3e-11 at most."""

PAIR_BLOCK = 1 << 16
"""Pairs of directions that are worked on at a time: they stay in the cache."""

PIECE, PIECE_SHARE = 512, 8
"""Rows that are worked on at a time, at least, and for each direction: what is made of narrow rows
stays in the cache, where touching more memory would cost as much as their products."""

LEFT_OUT = 0.01
"""What a shorter factor of H leaves out, of the rounding of the products."""


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


def low_rank_factor(roots: Float, dtype: np.dtype[Any]) -> Float:
    """Return A of shape (r, k) with A Aᵀ as near to H as products in `dtype` can tell.

    The eigenvalues of H fall so fast that k is some 15 to 50, where `exponential_factor` has 100.
    """
    left, values, _ = np.linalg.svd(exponential_factor(roots), full_matrices=False)
    # v H v, near Tr H for ‖v‖² = r, loses at most r times the largest eigenvalue left out.
    rounding = LEFT_OUT * float(np.finfo(dtype).eps) * float(roots.sum()) / 4.0
    kept = values**2 * roots.size > rounding
    factor: Float = left[:, kept] * values[kept]
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


def rows_error(
    form: FrechetRows, design: Design | None, *, every_row: bool, bias_only: bool = False
) -> SampleError:
    """Error from the rows themselves: right for any distribution with four moments.

    Parameters
    ----------
    form : FrechetRows
    design : Design or None
        None for independent rows.
    every_row : bool
        Whether the influence of every row is wanted. If not, random parts of a large sample stand
        for all of it (the same at every call), with their noise in the variance.
    bias_only : bool
        Whether the bias alone is wanted; `variance` is then that of first order, `curvature` 0.

    Notes
    -----
    As in `core.expansion`, with one addition: the fitted transport map errs on average by O(d/n),
    so that the influence is taken along `transport_roots`.
    """
    part_rows = None if every_row else max(PART_ROWS, PART_WORK // form.widest**2)
    if design is None or design.independent:
        if bias_only and (part_rows is None or part_rows >= form.known_rows):
            bias = form.bias()
            return SampleError(n=form.n, bias=bias, row_bias=bias)
        error, _ = expand_rows(
            form,
            part_rows=part_rows,
            known_rows=form.known_rows,
            bias_only=bias_only,
            noise_factor=PART_NOISE_FACTOR,
        )
        return error if design is None else replace(error, units=design.labels)
    error, _ = expand_design(
        form, design, part_rows=part_rows, bias_only=bias_only, noise_factor=PART_NOISE_FACTOR
    )
    return error


class Rows(NamedTuple):
    """Centred rows x, their coordinates w, and Σ_i H_ii w_i² of each."""

    x: Float
    w: NDArray[Any]
    diagonal: Float


class FrechetRows(DivisibleForm):
    """The rows of one sample as a `QuadraticForm`; a block is `Rows`.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Not centred; any floating type.
    index : ndarray of shape (m,) or None
        The rows to use, in increasing order; None: all.
    mean : ndarray of shape (d,)
        Mean of the rows.
    trace : float
        Trace of their covariance.
    kernel : Kernel
    projection : ndarray of shape (d, r)
        Maps centred rows to w.
    n : int, optional
        Rows of the sample, of which `rows` are a random part; by default they are all.
    """

    seed = PAIRING_SEED

    def __init__(
        self,
        rows: NDArray[Any],
        index: NDArray[np.intp] | None,
        *,
        mean: Float,
        trace: float,
        kernel: Kernel,
        projection: Float,
        n: int | None = None,
    ) -> None:
        self.chosen = ChosenRows(rows, index)
        self.n = self.chosen.n if n is None else n
        self.mean, self.kernel = mean, kernel
        self.widest = max(rows.shape[1], kernel.roots.size)
        self.step = block_size(self.widest)
        self.projection = projection.astype(kernel.dtype, copy=False)
        # Covariances have divisor n - 1, so that mean(x xᵀ) is smaller than they are; those of a
        # design are the means themselves.
        shrunk = 1.0 if kernel.empirical else 1.0 - 1.0 / self.n
        linear = float(kernel.roots.sum()) if kernel.empirical else trace
        self.known_mean = shrunk * (linear + float(kernel.slopes.sum()))
        self._centre = shrunk * (trace - float(kernel.transport.sum()))

    @property
    def known_rows(self) -> int:
        """How many of the n rows are at hand."""
        return self.chosen.n

    def holding(self, chosen: ChosenRows) -> FrechetRows:
        """Return the form of the same sample with a part of its rows at hand."""
        other = copy.copy(self)
        other.chosen = chosen
        return other

    @property
    def bias_divisor(self) -> float:
        """Covariances have divisor n - 1."""
        return float(self.n)

    @property
    def width(self) -> int:
        """Numbers a row."""
        return self.mean.size + self.kernel.roots.size

    def block(self, rows: Index) -> Rows:
        """Return the rows with these numbers, centred, with their coordinates."""
        x = np.array(self.chosen[rows], dtype=np.float64)
        x -= self.mean
        return self._of(x)

    def _of(self, x: Float) -> Rows:
        return self.kernel.rows(x, x.astype(self.kernel.dtype, copy=False) @ self.projection)

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Rows]]:
        """Yield centred rows x with their coordinates w."""
        rows, index = self.chosen.rows, self.chosen.index
        index = index if part is None else part if index is None else index[part]
        for positions, x in row_blocks(rows, index, width=self.widest):
            x -= self.mean
            yield positions, self._of(x)

    def terms(self, block: Rows, positions: Index) -> RowTerms:
        """Influence and h(x, x); w² has mean 1 and ‖x‖² the trace as mean over all rows."""
        return self.kernel(block)

    def across(self, one: Rows, i: Index, two: Rows, j: Index) -> Float:
        """h(x_i, x_j)."""
        return self.kernel.cross(one, i, two, j)

    def bias(self) -> float:
        """Mean of h(x, x) over n, from all rows: sums over them, without the terms of each."""
        bare = self.holding(self.chosen.part(slice(0, 0)))
        total: float = over_rows(_own_sum, add, self.chosen, constants=(bare,), step=self.step)
        return total / self.chosen.n / self.bias_divisor

    def weighted(self) -> _WeightedRows:
        """Return empty sums."""
        return _WeightedRows(self.kernel, self._centre)


def _own_sum(rows: ChosenRows, bare: FrechetRows) -> float:
    form = bare.holding(rows)
    return sum(form.kernel.own_sum(block) for _, block in form.blocks(None))


def product_type(rows: NDArray[Any], roots: Float) -> np.dtype[Any]:
    """Precision in which products of these rows with directions are formed."""
    width = max(rows.shape[1], roots.size)
    return np.dtype(np.float32 if is_narrow(rows) and width >= SINGLE_WIDTH else np.float64)


def _pieces(w: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows with these coordinates, in order."""
    n, step = len(w), max(PIECE, PIECE_SHARE * w.shape[1])
    return (slice(start, start + step) for start in range(0, n, step))


class _WeightedRows:
    """Σ v x and Σ v (w wᵀ - 1) over rows: h is bilinear in them."""

    def __init__(self, kernel: Kernel, centre: float) -> None:
        self.kernel, self.centre = kernel, centre
        self.total = 0.0
        self.with_x: Float = np.zeros(kernel.gap.size)
        self.linear: Float = np.zeros(kernel.roots.size)
        self.with_w: Float = np.zeros((kernel.roots.size, kernel.roots.size))

    def add(self, block: Rows, v: Float) -> None:
        """Absorb rows with their weights."""
        x, w, _ = block
        self.total += float(v.sum())
        self.with_x += v @ x
        if self.kernel.empirical:
            self.linear += v @ w
        roots = np.sqrt(np.abs(v)).astype(w.dtype)[:, None]
        for piece in _pieces(w):
            scaled, positive = w[piece] * roots[piece], v[piece] > 0.0
            part = scaled[positive]  # products of a matrix with itself, at half the flops
            self.with_w += part.T @ part
            part = scaled[~positive]
            self.with_w -= part.T @ part

    def joined(self, other: _WeightedRows) -> _WeightedRows:
        """Return the sums over the rows of both."""
        both = _WeightedRows(self.kernel, self.centre)
        both.total = self.total + other.total
        both.with_x = self.with_x + other.with_x
        both.linear = self.linear + other.linear
        both.with_w = self.with_w + other.with_w
        return both

    def inner(self, other: _WeightedRows) -> float:
        """Σ_ij v_i u_j h(x_i, y_j) with the rows y of another sample."""
        product = (self._centred() * other._centred() * self.kernel.weights).sum()
        return float(self.with_x @ other.with_x) + float(product)

    def _centred(self) -> Float:
        out = self.with_w.copy()
        out[np.diag_indices_from(out)] -= self.total
        return out

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j)."""
        squares = self._centred()
        squares *= squares
        squares *= self.kernel.weights
        if self.kernel.empirical:
            linear = float(self.kernel.roots @ self.linear**2)
        else:
            linear = float(self.with_x @ self.with_x)
        return linear + float(squares.sum())


class Kernel:
    """Influence of rows, and the kernel h of the quadratic part.

    ``h(x, x') = x·x' + Σ_ij H_ij (w_i w_j - δ_ij)(w'_i w'_j - δ_ij)``; the products with H are
    formed in `dtype`. That is for covariances with divisor n - 1. Those of weighted rows as they
    are (`empirical`) err with the square of the mean, which turns x·x' into Σ_i s_i w_i w'_i.
    """

    def __init__(
        self,
        gap: Float,
        roots: Float,
        dtype: np.dtype[Any] | None = None,
        *,
        transport: Float | None = None,
        empirical: bool = False,
    ) -> None:
        self.gap, self.roots, self.empirical = gap, roots, empirical
        self.transport = roots if transport is None else transport
        self.dtype: np.dtype[Any] = dtype or np.dtype(np.float64)
        self.diagonal: Float = roots / 4.0
        self.constant = float(self.diagonal.sum())
        if roots.size > WIDE:
            factor = low_rank_factor(roots, self.dtype)
            self.factor: NDArray[Any] | None = factor.astype(self.dtype)
            sums: Float = factor @ factor.sum(axis=0)
        else:
            self.factor = None
            sums = self.weights.sum(axis=1, dtype=np.float64)
        self.slopes: Float = 2.0 * (sums - self.diagonal)

    @cached_property
    def weights(self) -> NDArray[Any]:
        """H, of shape (r, r)."""
        s = self.roots.astype(self.dtype)
        weights: NDArray[Any] = np.divide(s / 2, np.add.outer(s, s))
        weights *= s[:, None]
        return weights

    def rows(self, x: Float, w: NDArray[Any]) -> Rows:
        """Centred rows and their coordinates, as the other methods take them."""
        diagonal = np.empty(len(w))
        for piece in _pieces(w):
            diagonal[piece] = self._sum(w[piece] * w[piece], self.diagonal)
        return Rows(x, w, diagonal)

    def __call__(self, rows: Rows) -> RowTerms:
        """Of k rows: influence, not centred; h(x, x) and its part linear in ‖x‖² and w²."""
        terms = np.empty((3, len(rows.x)))
        for piece in _pieces(rows.w):
            terms[:, piece] = self._terms(*(part[piece] for part in rows))
        return RowTerms(*terms)

    def _terms(self, x: Float, w: NDArray[Any], diagonal: Float) -> tuple[Float, Float, Float]:
        w2 = w * w
        squared_norm = np.einsum("ij,ij->i", x, x)
        sums = self._sum(w2, np.column_stack([self.transport, self.slopes, self.roots]))
        influence: Float = 2.0 * (x @ self.gap) + squared_norm - sums[:, 0]
        linear = sums[:, 2] if self.empirical else squared_norm
        own: Float = self._form(w2) - 2.0 * diagonal + linear + self.constant
        return influence, own, linear + sums[:, 1]

    def own_sum(self, rows: Rows) -> float:
        """Σ h(x, x) of independent rows."""
        squares, form = np.zeros(self.roots.size), 0.0
        for piece in _pieces(rows.w):
            w2 = rows.w[piece] * rows.w[piece]
            squares += w2.sum(axis=0)
            if self.factor is None:
                form += float((w2.T @ w2 * self.weights).sum())
            else:
                parts = w2 @ self.factor
                form += float(np.vdot(parts, parts))
        own = form - 2.0 * float(self.diagonal @ squares) + float(np.vdot(rows.x, rows.x))
        return own + len(rows.w) * self.constant

    def cross(self, one: Rows, i: Index | slice, two: Rows, j: Index | slice) -> Float:
        """H of rows i of one block with as many rows j of another."""
        product = one.w[i] * two.w[j]
        values = self._form(product)
        values += self.constant
        values += (
            self._sum(product, self.roots)
            if self.empirical
            else np.einsum("ij,ij->i", one.x[i], two.x[j])
        )
        values -= one.diagonal[i] + two.diagonal[j]
        return values

    def _form(self, v: NDArray[Any]) -> Float:
        """Σ_ij H_ij v_i v_j of every row."""
        if self.factor is None:
            form: Float = np.einsum("ij,ij->i", v @ self.weights, v).astype(np.float64)
        else:
            parts = (v @ self.factor).astype(np.float64)
            form = np.einsum("ij,ij->i", parts, parts)
        return form

    def _sum(self, w2: NDArray[Any], weights: Float) -> Float:
        total: Float = (w2 @ weights.astype(self.dtype)).astype(np.float64)
        return total


def gaussian_mixed_square(kernel: Kernel, product: float) -> float:
    """E h(x, y)² for Gaussian rows; `product` is Tr Σ Σ_r.

    Tr Σ Σ_r + 2 Σ_ij H_ij² + 2 Σ_i H_ii².
    """
    squares = float((kernel.weights**2).sum()) + float((kernel.diagonal**2).sum())
    return product + 2.0 * squares


def positive_roots(values: Float) -> NDArray[np.bool_]:
    """Mask of the directions in which both samples vary beyond rounding."""
    largest = float(values.max(initial=0.0))
    mask: NDArray[np.bool_] = values > np.sqrt(values.size * EPS) * largest
    return mask
