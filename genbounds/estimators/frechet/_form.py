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

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.core.expansion import Form, RowTerms
from genbounds.core.moments import is_narrow, row_blocks
from genbounds.estimators.frechet._gaussian import WIDE, exponential_factor, root_weights
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

PIECE, PIECE_SHARE = 512, 8
"""Rows that are worked on at a time, at least, and for each direction: what is made of narrow rows
stays in the cache, where touching more memory would cost as much as their products."""

LEFT_OUT = 0.01
"""What a shorter factor of H leaves out, of the rounding of the products."""


class Rows(NamedTuple):
    """Centred rows x, their coordinates w, and Σ_i H_ii w_i² of each."""

    x: Float
    w: NDArray[Any]
    diagonal: Float


class RootHessian:
    """H_ij = s_i s_j / (2 (s_i + s_j)), for products in one precision.

    Attributes
    ----------
    roots : ndarray of shape (r,)
        The singular values s.
    dtype : dtype
        Of the products.
    diagonal : ndarray of shape (r,)
        H_ii = s_i / 4.
    constant : float
        Its sum.
    slopes : ndarray of shape (r,)
        2 Σ_j H_ij - 2 H_ii.
    """

    def __init__(self, roots: Float, dtype: np.dtype[Any] | None = None) -> None:
        self.roots = roots
        self.dtype: np.dtype[Any] = dtype or np.dtype(np.float64)
        self.diagonal: Float = roots / 4.0
        self.constant = float(self.diagonal.sum())
        if roots.size > WIDE:
            factor = _short_factor(roots, self.dtype)
            self.factor: NDArray[Any] | None = factor.astype(self.dtype)
            sums: Float = factor @ factor.sum(axis=0)
        else:
            self.factor = None
            sums = self.weights.sum(axis=1, dtype=np.float64)
        self.slopes: Float = 2.0 * (sums - self.diagonal)

    @cached_property
    def weights(self) -> NDArray[Any]:
        """H, of shape (r, r)."""
        return root_weights(self.roots.astype(self.dtype))

    def form(self, v: NDArray[Any]) -> Float:
        """Σ_ij H_ij v_i v_j of every row."""
        if self.factor is None:
            form: Float = np.einsum("ij,ij->i", v @ self.weights, v).astype(np.float64)
        else:
            parts = (v @ self.factor).astype(np.float64)
            form = np.einsum("ij,ij->i", parts, parts)
        return form

    def sums(self, v: NDArray[Any], weights: Float) -> Float:
        """Σ_i weights_i v_i of every row."""
        total: Float = (v @ weights.astype(self.dtype)).astype(np.float64)
        return total


def _short_factor(roots: Float, dtype: np.dtype[Any]) -> Float:
    """Return A of shape (r, k) with A Aᵀ as near to H as products in `dtype` can tell.

    The eigenvalues of H fall so fast that k is some 15 to 50, where `exponential_factor` has 100.
    """
    left, values, _ = np.linalg.svd(exponential_factor(roots), full_matrices=False)
    # v H v, near Tr H for ‖v‖² = r, loses at most r times the largest eigenvalue left out.
    rounding = LEFT_OUT * float(np.finfo(dtype).eps) * float(roots.sum()) / 4.0
    needed = values**2 * roots.size > rounding
    factor: Float = left[:, needed] * values[needed]
    return factor


class Kernel:
    """Influence of rows, and the kernel h of the quadratic part.

    ``h(x, x') = x·x' + Σ_ij H_ij (w_i w_j - δ_ij)(w'_i w'_j - δ_ij)``. That is for covariances with
    divisor n - 1. Those of weighted rows as they are (`empirical`) err with the square of the mean,
    which turns x·x' into Σ_i s_i w_i w'_i.

    Parameters
    ----------
    gap : ndarray of shape (d,)
        Mean of the sample less that of the other.
    hessian : RootHessian
    transport : ndarray of shape (r,), optional
        The roots, freed of the noise of the transport map, along which the influence is taken.
    empirical : bool
    """

    def __init__(
        self,
        gap: Float,
        hessian: RootHessian,
        *,
        transport: Float | None = None,
        empirical: bool = False,
    ) -> None:
        self.gap, self.hessian, self.empirical = gap, hessian, empirical
        self.transport = hessian.roots if transport is None else transport
        self._weights = np.column_stack([self.transport, hessian.slopes, hessian.roots])

    def rows(self, x: Float, w: NDArray[Any]) -> Rows:
        """Centred rows and their coordinates, as the other methods take them."""
        diagonal = np.empty(len(w))
        for piece in _pieces(w):
            diagonal[piece] = self.hessian.sums(w[piece] * w[piece], self.hessian.diagonal)
        return Rows(x, w, diagonal)

    def terms(self, rows: Rows) -> RowTerms:
        """Of k rows: influence, not centred; h(x, x) and its part linear in ‖x‖² and w²."""
        influence, own, known = np.empty((3, len(rows.x)))
        for piece in _pieces(rows.w):
            x, w, diagonal = rows.x[piece], rows.w[piece], rows.diagonal[piece]
            w2 = w * w
            squared_norm = np.einsum("ij,ij->i", x, x)
            along, slopes, roots = self.hessian.sums(w2, self._weights).T
            linear = roots if self.empirical else squared_norm
            influence[piece] = 2.0 * (x @ self.gap) + squared_norm - along
            own[piece] = self.hessian.form(w2) - 2.0 * diagonal + linear + self.hessian.constant
            known[piece] = linear + slopes
        return RowTerms(influence, own, known)

    def own_sum(self, rows: Rows) -> float:
        """Σ h(x, x) of independent rows."""
        hessian = self.hessian
        squares, form = np.zeros(hessian.roots.size), 0.0
        for piece in _pieces(rows.w):
            w2 = rows.w[piece] * rows.w[piece]
            squares += w2.sum(axis=0)
            if hessian.factor is None:
                form += float((w2.T @ w2 * hessian.weights).sum())
            else:
                parts = w2 @ hessian.factor
                form += float(np.vdot(parts, parts))
        own = form - 2.0 * float(hessian.diagonal @ squares) + float(np.vdot(rows.x, rows.x))
        return own + len(rows.w) * hessian.constant

    def cross(self, one: Rows, i: Index | slice, two: Rows, j: Index | slice) -> Float:
        """H of rows i of one block with as many rows j of another."""
        product = one.w[i] * two.w[j]
        values = self.hessian.form(product)
        values += self.hessian.constant
        values += (
            self.hessian.sums(product, self.hessian.roots)
            if self.empirical
            else np.einsum("ij,ij->i", one.x[i], two.x[j])
        )
        values -= one.diagonal[i] + two.diagonal[j]
        return values


class FrechetForm(Form):
    """The rows of one sample as a `Form`; a block is `Rows`.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        Not centred; any floating type.
    index : ndarray of shape (m,) or None
        The rows to use, in increasing order; None: all.
    n : int
        Rows of the sample, of which these may be a random part.
    mean : ndarray of shape (d,)
        Mean of the sample.
    trace : float
        Trace of its covariance.
    kernel : Kernel
    projection : ndarray of shape (d, r)
        Maps centred rows to w.
    """

    seed = PAIRING_SEED

    def __init__(
        self,
        rows: NDArray[Any],
        index: Index | None,
        *,
        n: int,
        mean: Float,
        trace: float,
        kernel: Kernel,
        projection: Float,
    ) -> None:
        hessian = kernel.hessian
        self.rows, self.index, self.n = rows, index, n
        self.rows_at_hand = len(rows) if index is None else index.size
        self.mean, self.kernel = mean, kernel
        self.widest = max(mean.size, hessian.roots.size)
        self.width = mean.size + hessian.roots.size
        self.divisor = float(n)  # covariances have divisor n - 1
        self.projection = projection.astype(hessian.dtype, copy=False)
        # With divisor n - 1, mean(x xᵀ) is smaller than the covariance; of a design it is the same.
        shrunk = 1.0 if kernel.empirical else 1.0 - 1.0 / n
        linear = float(hessian.roots.sum()) if kernel.empirical else trace
        self.known_mean = shrunk * (linear + float(hessian.slopes.sum()))
        self._centre = shrunk * (trace - float(kernel.transport.sum()))

    @property
    def part_rows(self) -> int:
        """Rows that may stand for all of a large sample."""
        return max(PART_ROWS, PART_WORK // self.widest**2)

    def block(self, rows: Index) -> Rows:
        """Return the rows with these numbers, centred, with their coordinates."""
        x = np.array(self.rows[rows if self.index is None else self.index[rows]], dtype=np.float64)
        return self._of(x)

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Rows]]:
        """Yield centred rows x with their coordinates w."""
        index = self.index
        index = index if part is None else part if index is None else index[part]
        for positions, x in row_blocks(self.rows, index, width=self.widest):
            yield positions, self._of(x)

    def _of(self, x: Float) -> Rows:
        x -= self.mean
        w = x.astype(self.kernel.hessian.dtype, copy=False) @ self.projection
        return self.kernel.rows(x, w)

    def terms(self, block: Rows, positions: Index) -> RowTerms:
        """Influence and h(x, x); w² has mean 1 and ‖x‖² the trace as mean over all rows."""
        return self.kernel.terms(block)

    def across(self, one: Rows, i: Index, two: Rows, j: Index) -> Float:
        """h(x_i, x_j)."""
        return self.kernel.cross(one, i, two, j)

    def bias(self) -> float:
        """Mean of h(x, x) over n, from all rows: sums over them, without the terms of each."""
        total = sum(self.kernel.own_sum(block) for _, block in self.blocks(None))
        return total / self.rows_at_hand / self.divisor

    def weighted(self) -> FrechetSums:
        """Return empty sums."""
        return FrechetSums(self.kernel, self._centre)


def product_type(rows: NDArray[Any], roots: Float) -> np.dtype[Any]:
    """Precision in which products of these rows with directions are formed."""
    width = max(rows.shape[1], roots.size)
    return np.dtype(np.float32 if is_narrow(rows) and width >= SINGLE_WIDTH else np.float64)


def _pieces(w: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows with these coordinates, in order."""
    n, step = len(w), max(PIECE, PIECE_SHARE * w.shape[1])
    return (slice(start, start + step) for start in range(0, n, step))


class FrechetSums:
    """Σ v x and Σ v (w wᵀ - 1) over rows: h is bilinear in them."""

    def __init__(self, kernel: Kernel, centre: float) -> None:
        r = kernel.hessian.roots.size
        self.kernel, self.centre = kernel, centre
        self.total = 0.0
        self.with_x: Float = np.zeros(kernel.gap.size)
        self.linear: Float = np.zeros(r)
        self.with_w: Float = np.zeros((r, r))

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

    def inner(self, other: FrechetSums) -> float:
        """Σ_ij v_i u_j h(x_i, y_j) with the rows y of another sample."""
        product = (self._centred() * other._centred() * self.kernel.hessian.weights).sum()
        return float(self.with_x @ other.with_x) + float(product)

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j)."""
        squares = self._centred()
        squares *= squares
        squares *= self.kernel.hessian.weights
        if self.kernel.empirical:
            linear = float(self.kernel.hessian.roots @ self.linear**2)
        else:
            linear = float(self.with_x @ self.with_x)
        return linear + float(squares.sum())

    def _centred(self) -> Float:
        out = self.with_w.copy()
        out[np.diag_indices_from(out)] -= self.total
        return out
