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
from genbounds.core.moments import row_blocks
from genbounds.estimators.frechet._gaussian import WIDE, exponential_factor, root_weights
from genbounds.estimators.frechet._sample import PAIRING_SEED, FrechetSample
from genbounds.validation import Float

PART_ROWS = 2048
"""Where not every row is needed, the expansion is of random parts of at least so many rows ..."""

PART_WORK = 2048 * 2048**2
"""... and of more where a row costs little: rows times the square of the number of features."""

PIECE, PIECE_SHARE = 512, 8
"""Rows that are worked on at a time, at least, and for each direction: what is made of narrow rows
stays in the cache, where touching more memory would cost as much as their products."""

LEFT_OUT = 0.01
"""What a shorter factor of H leaves out, of the rounding of the products."""


class Rows(NamedTuple):
    """Rows of a sample, as H is applied to them.

    Attributes
    ----------
    x : ndarray of shape (k, d)
        Centred.
    w : ndarray of shape (k, r)
        Their coordinates.
    linear : ndarray of shape (k, d) or (k, r)
        Its products are the linear part of h: `x` for covariances with divisor n - 1; those of
        weighted rows as they are err with the square of the mean, which makes it √s w.
    diagonal : ndarray of shape (k,)
        Σ_i H_ii w_i² of each.
    """

    x: Float
    w: NDArray[Any]
    linear: NDArray[Any]
    diagonal: Float


class RootHessian:
    """H_ij = s_i s_j / (2 (s_i + s_j)), for products in one precision.

    The kernel of the quadratic part is, with the products l·l' of `Rows.linear`,
    ``h(x, x') = l·l' + Σ_ij H_ij (w_i w_j - δ_ij)(w'_i w'_j - δ_ij)``.

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

    def rows(self, x: Float, w: NDArray[Any], *, empirical: bool = False) -> Rows:
        """Centred rows and their coordinates; `empirical`: of weighted rows as they are."""
        diagonal = np.empty(len(w))
        for piece in _pieces(w):
            diagonal[piece] = (w[piece] * w[piece]) @ self.diagonal.astype(self.dtype)
        return Rows(x, w, np.sqrt(self.roots) * w if empirical else x, diagonal)

    def terms(self, rows: Rows, gap: Float, transport: Float) -> RowTerms:
        """Of k rows: influence, not centred; h(x, x) and its part linear in `Rows.linear` and w².

        Parameters
        ----------
        rows : Rows
        gap : ndarray of shape (d,)
            Mean of the sample less that of the other.
        transport : ndarray of shape (r,)
            The roots along which the influence is taken, freed of the noise of the transport map.
        """
        influence, own, known = np.empty((3, len(rows.x)))
        along = np.column_stack([transport, self.slopes]).astype(self.dtype)
        for piece in _pieces(rows.w):
            x, w = rows.x[piece], rows.w[piece]
            w2 = w * w
            squared_norm = linear = np.einsum("ij,ij->i", x, x)
            if rows.linear is not rows.x:
                linear = np.einsum("ij,ij->i", rows.linear[piece], rows.linear[piece])
            moved, slopes = (w2 @ along).astype(np.float64).T
            influence[piece] = 2.0 * (x @ gap) + squared_norm - moved
            own[piece] = self.square(w2) - 2.0 * rows.diagonal[piece] + linear + self.constant
            known[piece] = linear + slopes
        return RowTerms(influence, own, known)

    def square(self, v: NDArray[Any]) -> Float:
        """Σ_ij H_ij v_i v_j of every row."""
        if self.factor is None:
            square: Float = np.einsum("ij,ij->i", v @ self.weights, v).astype(np.float64)
        else:
            parts = (v @ self.factor).astype(np.float64)
            square = np.einsum("ij,ij->i", parts, parts)
        return square

    def own_sum(self, rows: Rows) -> float:
        """Σ h(x, x) of independent rows."""
        squares, square = np.zeros(self.roots.size), 0.0
        for piece in _pieces(rows.w):
            w2 = rows.w[piece] * rows.w[piece]
            squares += w2.sum(axis=0)
            if self.factor is None:
                square += float((w2.T @ w2 * self.weights).sum())
            else:
                parts = w2 @ self.factor
                square += float(np.vdot(parts, parts))
        own = square - 2.0 * float(self.diagonal @ squares) + float(np.vdot(rows.x, rows.x))
        return own + len(rows.w) * self.constant

    def across(self, one: Rows, i: Index | slice, two: Rows, j: Index | slice) -> Float:
        """H of rows i of one block with as many rows j of another."""
        values = self.square(one.w[i] * two.w[j])
        values += np.einsum("ij,ij->i", one.linear[i], two.linear[j])
        values += self.constant - one.diagonal[i] - two.diagonal[j]
        return values


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


class FrechetForm(Form):
    """The rows of one sample as a `Form`; a block is `Rows`.

    Parameters
    ----------
    sample : FrechetSample
        Rows, or a random part of them that was kept beside moments.
    gap : ndarray of shape (d,)
        Mean of the sample less that of the other.
    hessian : RootHessian
    transport : ndarray of shape (r,)
        As for `RootHessian.terms`.
    projection : ndarray of shape (d, r)
        Maps centred rows to w.

    Attributes
    ----------
    empirical : bool
        Whether the covariance is that of weighted rows as they are; else it has divisor n - 1.
    """

    seed = PAIRING_SEED

    def __init__(
        self,
        sample: FrechetSample,
        *,
        gap: Float,
        hessian: RootHessian,
        transport: Float,
        projection: Float,
    ) -> None:
        assert sample.some_rows is not None
        assert sample.n is not None
        n = self.n = sample.n
        self.rows, self.index = sample.some_rows, sample.index
        self.rows_at_hand = len(self.rows) if self.index is None else self.index.size
        self.mean, self.gap, self.empirical = sample.mean, gap, not sample.independent
        self.hessian, self.transport = hessian, transport
        self.widest = max(gap.size, hessian.roots.size)
        self.width = gap.size + hessian.roots.size
        self.part_rows = max(PART_ROWS, PART_WORK // self.widest**2)  # may stand for all
        self.divisor = float(n)  # covariances have divisor n - 1
        self.projection = projection.astype(hessian.dtype, copy=False)
        # With divisor n - 1, mean(x xᵀ) is smaller than the covariance; of a design it is the same.
        shrunk = 1.0 if self.empirical else 1.0 - 1.0 / n
        linear = float(hessian.roots.sum()) if self.empirical else sample.trace
        self.known_mean = shrunk * (linear + float(hessian.slopes.sum()))
        self.centre = shrunk * (sample.trace - float(transport.sum()))

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
        w = x.astype(self.hessian.dtype, copy=False) @ self.projection
        return self.hessian.rows(x, w, empirical=self.empirical)

    def terms(self, block: Rows, positions: Index) -> RowTerms:
        """Influence and h(x, x); w² has mean 1 and ‖x‖² the trace as mean over all rows."""
        return self.hessian.terms(block, self.gap, self.transport)

    def across(self, one: Rows, i: Index, two: Rows, j: Index) -> Float:
        """h(x_i, x_j)."""
        return self.hessian.across(one, i, two, j)

    def bias(self) -> float:
        """Mean of h(x, x) over n, from all rows: sums over them, without the terms of each."""
        total = sum(self.hessian.own_sum(block) for _, block in self.blocks(None))
        return total / self.rows_at_hand / self.divisor

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over the rows with these numbers."""
        sums = self.weighted()
        for positions, block in self.blocks(rows):
            sums.add(block, v[positions])
        return sums.square()

    def weighted(self) -> FrechetSums:
        """Return empty sums."""
        return FrechetSums(self.hessian, self.centre)


def _pieces(w: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows with these coordinates, in order."""
    n, step = len(w), max(PIECE, PIECE_SHARE * w.shape[1])
    return (slice(start, start + step) for start in range(0, n, step))


class FrechetSums:
    """Σ v x and Σ v (w wᵀ - 1) over rows: h is bilinear in them."""

    def __init__(self, hessian: RootHessian, centre: float) -> None:
        r = hessian.roots.size
        self.hessian, self.centre = hessian, centre
        self.total = 0.0
        self.with_x: Float | float = 0.0
        self.linear: Float | float = 0.0
        self.with_w: Float = np.zeros((r, r))

    def add(self, block: Rows, v: Float) -> None:
        """Absorb rows with their weights."""
        self.total += float(v.sum())
        self.with_x = self.with_x + v @ block.x
        self.linear = self.with_x if block.linear is block.x else self.linear + v @ block.linear
        roots = np.sqrt(np.abs(v)).astype(block.w.dtype)[:, None]
        for piece in _pieces(block.w):
            scaled, positive = block.w[piece] * roots[piece], v[piece] > 0.0
            part = scaled[positive]  # products of a matrix with itself, at half the flops
            self.with_w += part.T @ part
            part = scaled[~positive]
            self.with_w -= part.T @ part

    def inner(self, other: FrechetSums) -> float:
        """Σ_ij v_i u_j h(x_i, y_j) with the rows y of another sample."""
        product = (self._centred() * other._centred() * self.hessian.weights).sum()
        return float(np.vdot(self.with_x, other.with_x)) + float(product)

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j)."""
        squares = self._centred()
        squares *= squares
        squares *= self.hessian.weights
        return float(np.vdot(self.linear, self.linear)) + float(squares.sum())

    def _centred(self) -> Float:
        out = self.with_w.copy()
        out[np.diag_indices_from(out)] -= self.total
        return out
