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

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Index
from genbounds.core.expansion import Form, RowTerms
from genbounds.core.moments import BLOCK_BYTES
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

WIDE = 96
"""From more directions on than this, products with H are those with its factor: faster."""

FACTOR_STEP = 0.35
FACTOR_RTOL = 1e-12
"""Of H from its factor: what the ends of the sum leave out. The step costs 1.3e-11 at most."""

PAIR_BLOCK = 1 << 16
"""Pairs of directions that are worked on at a time: they stay in the cache."""


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
    generated : bool
        Which sample they are of.
    pieces : int
        In how many they are worked on.
    """

    x: Float
    w: NDArray[Any]
    linear: NDArray[Any]
    diagonal: NDArray[Any]
    generated: bool
    pieces: int


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
    weights : ndarray of shape (r, r)
        H.
    shares, squares : ndarray of shape (r,)
        Σ_j s_j / (s_i + s_j), and Σ_j of its squares.
    """

    def __init__(self, roots: Float, dtype: np.dtype[Any] | None = None) -> None:
        self.roots = roots
        self.dtype: np.dtype[Any] = dtype or np.dtype(np.float64)
        self.diagonal: NDArray[Any] = (roots / 4.0).astype(self.dtype)
        self.constant = float(roots.sum()) / 4.0
        s = roots.astype(self.dtype)
        self.weights: NDArray[Any] = np.divide(s / 2, np.add.outer(s, s))
        self.weights *= s[:, None]
        self.factor: NDArray[Any] | None = None
        if roots.size > WIDE:
            self.factor = _short_factor(roots, self.dtype).astype(self.dtype)
        self.shares, self.squares = np.empty((2, roots.size))
        step = max(1, PAIR_BLOCK // max(roots.size, 1))
        for start in range(0, roots.size, step):
            block = slice(start, start + step)
            share = roots / (roots[block, None] + roots)
            self.shares[block] = share.sum(axis=1)
            self.squares[block] = np.einsum("ij,ij->i", share, share)
        self.slopes: Float = roots * self.shares - roots / 2.0

    def quadratic(self, both: NDArray[Any], diagonals: NDArray[Any]) -> Float:
        """Σ_ij H_ij (w_i w_j - δ_ij)(v_i v_j - δ_ij) of every row of two arrays.

        Of their products w_i v_i, and with Σ_i H_ii (w_i² + v_i²).
        """
        if self.factor is None:
            square: Float = np.einsum("ij,ij->i", both @ self.weights, both).astype(np.float64)
        else:
            parts = (both @ self.factor).astype(np.float64)
            square = np.einsum("ij,ij->i", parts, parts)
        quadratic: Float = square - diagonals + self.constant
        return quadratic


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
    other : FrechetSample
    hessian : RootHessian
    projection : ndarray of shape (d, r)
        Maps centred rows to w.
    generated : bool

    Attributes
    ----------
    gap : ndarray of shape (d,)
        Mean of the sample less that of the other.
    transport : ndarray of shape (r,)
        The roots along which the influence is taken, freed of the noise of the transport map: the
        fitted one errs on average by O(d/n).
    empirical : bool
        Whether the covariance is that of weighted rows as they are; else it has divisor n - 1.
    """

    seed = PAIRING_SEED

    def __init__(
        self,
        sample: FrechetSample,
        other: FrechetSample,
        hessian: RootHessian,
        projection: Float,
        *,
        generated: bool,
    ) -> None:
        assert sample.some_rows is not None
        assert sample.n is not None
        n = self.n = sample.n
        self.rows, self.index = sample.some_rows, sample.index
        self.rows_at_hand = len(self.rows) if self.index is None else self.index.size
        self.mean, self.gap = sample.mean, sample.mean - other.mean
        self.empirical, self.generated, self.hessian = not sample.independent, generated, hessian
        roots, shares, squares = hessian.roots, hessian.shares, hessian.squares
        transport = transport_from_sums(roots, shares, squares, sample.effective, other.effective)
        self.transport: Float = transport
        widest = max(self.gap.size, roots.size)
        self.width = self.gap.size + roots.size
        self.block_rows = max(2, BLOCK_BYTES // (8 * widest))
        self.part_rows = max(PART_ROWS, PART_WORK // widest**2)  # may stand for all
        self.divisor = float(n)  # covariances have divisor n - 1
        self.projection = projection.astype(hessian.dtype, copy=False)
        # With divisor n - 1, mean(x xᵀ) is smaller than the covariance; of a design it is the same.
        shrunk = 1.0 if self.empirical else 1.0 - 1.0 / n
        linear = float(roots.sum()) if self.empirical else sample.trace
        self.known_mean = shrunk * (linear + float(hessian.slopes.sum()))
        self.centre = shrunk * (sample.trace - float(transport.sum()))

    def block(self, rows: Index) -> Rows:
        """Return the rows with these numbers, centred, with their coordinates."""
        chosen: Index | slice = rows if self.index is None else self.index[rows]
        if (
            rows.size and self.index is None and (np.diff(rows) == 1).all()
        ):  # no copy but the one in float64
            chosen = slice(int(rows[0]), int(rows[-1]) + 1)
        x: Float = np.subtract(self.rows[chosen], self.mean, dtype=np.float64)
        hessian = self.hessian
        w = x.astype(hessian.dtype, copy=False) @ self.projection
        linear = np.sqrt(hessian.roots) * w if self.empirical else x
        pieces = max(1, len(w) // max(PIECE, PIECE_SHARE * w.shape[1]))
        diagonal = [part * part @ hessian.diagonal for part in np.array_split(w, pieces)]
        return Rows(x, w, linear, np.concatenate(diagonal), self.generated, pieces)

    def terms(self, block: Rows, positions: Index) -> RowTerms:
        """Influence and h(x, x); w² has mean 1 and ‖x‖² the trace as mean over all rows."""
        hessian = self.hessian
        along = np.column_stack([self.transport, hessian.slopes]).astype(hessian.dtype)
        moved, slopes, own = np.empty((3, len(block.w)))
        for part in np.array_split(np.arange(len(block.w)), block.pieces):
            piece = slice(part[0], part[-1] + 1)
            w2 = block.w[piece] * block.w[piece]
            moved[piece], slopes[piece] = (w2 @ along).T
            own[piece] = hessian.quadratic(w2, 2.0 * block.diagonal[piece])
        squared_norm = linear = np.einsum("ij,ij->i", block.x, block.x)
        if block.linear is not block.x:
            linear = np.einsum("ij,ij->i", block.linear, block.linear)
        influence = 2.0 * (block.x @ self.gap) + squared_norm - moved
        return RowTerms(influence, own + linear, linear + slopes)

    def across(self, one: Rows, i: Index, two: Rows, j: Index) -> Float:
        """h(x_i, x_j), also of rows of the other sample: less then, and linear in x.

        The means of two samples do not enter each other's covariance.
        """
        values = self.hessian.quadratic(one.w[i] * two.w[j], one.diagonal[i] + two.diagonal[j])
        same = one.generated == two.generated
        x, y = (one.linear[i], two.linear[j]) if same else (one.x[i], two.x[j])
        values += np.einsum("ij,ij->i", x, y)
        return values if same else -values

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over the rows with these numbers."""
        sums = self.weighted()
        for positions, block in self.blocks(rows):
            sums.add(block, v[positions])
        return sums.square()

    def weighted(self) -> FrechetSums:
        """Return empty sums."""
        r = self.hessian.roots.size
        return FrechetSums(self.hessian, self.centre, np.zeros((r, r)))


@dataclass
class FrechetSums:
    """Σ v x and Σ v (w wᵀ - 1) over rows: h is bilinear in them."""

    hessian: RootHessian
    centre: float
    with_w: Float
    with_x: Float | float = 0.0
    linear: Float | float = 0.0
    total: float = 0.0

    def add(self, block: Rows, v: Float) -> None:
        """Absorb rows with their weights."""
        self.total += float(v.sum())
        self.with_x = self.with_x + v @ block.x
        self.linear = self.with_x if block.linear is block.x else self.linear + v @ block.linear
        pieces = (np.array_split(array, block.pieces) for array in (block.w, v))
        for w, weights in zip(*pieces, strict=True):
            scaled, positive = w * np.sqrt(np.abs(weights)).astype(w.dtype)[:, None], weights > 0.0
            part = scaled[positive]  # products of a matrix with itself, at half the flops
            self.with_w += part.T @ part
            part = scaled[~positive]
            self.with_w -= part.T @ part

    def inner(self, other: FrechetSums) -> float:
        """Σ_ij v_i u_j h(x_i, y_j) with the rows y of another sample."""
        one, two = (sums.with_w - sums.total * np.eye(len(sums.with_w)) for sums in (self, other))
        product = float((one * two * self.hessian.weights).sum())
        return float(np.vdot(self.with_x, other.with_x)) + product

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j)."""
        squares = self.with_w.copy()
        squares[np.diag_indices_from(squares)] -= self.total
        squares *= squares
        squares *= self.hessian.weights
        return float(np.vdot(self.linear, self.linear)) + float(squares.sum())


# --- Gaussian rows: their bias, and what a transport map errs by ----------------------------------


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


def transport_from_sums(roots: Any, first: Any, second: Any, n: float, other: float) -> Any:
    """Take the noise of `n` own rows and of `other` rows of the other sample off the transport map.

    Estimated from them its coordinate s_i errs on average by

        s_i/2n Σ_j (1 + δ_ij) (1 - r_ij²) - s_i/2m Σ_j (1 + δ_ij) (1 - r_ij)²,
        r_ij = s_i / (s_i + s_j),

    for Gaussian rows: the third-order term of the distance. Derivation:
    docs/explanation/frechet.md.

    Parameters
    ----------
    roots : array or tensor
        The singular values s, of any shape, all positive.
    first, second : array or tensor
        Σ_j (1 - r_ij) and Σ_j (1 - r_ij)², of the same shape.
    n, other : float
        Rows of either sample; infinite where its moments are exact.

    Returns
    -------
    array or tensor
        Of the same shape: at least half and at most twice `roots`.
    """
    # 1 - r² = 2(1 - r) - (1 - r)²; r_ii = 1/2.
    own, theirs = 2.0 * first - second + 0.75, second + 0.25
    share = 1.0 - own / (2.0 * n) + theirs / (2.0 * other)
    return roots * share.clip(0.5, 2.0)
