"""Divided differences (g_i - g_j) / (λ_i - λ_j) of an entropy's gradient, as quadratic forms.

For orders up to 2 the matrix of them is negative semidefinite (x^(α-1) is operator monotone for
1 <= α <= 2, and decreasing so below; Löwner's theorem), and its eigenvalues fall geometrically, as
those of every matrix of this kind: a pivoted Cholesky factor of some tens of columns holds
all of it, and a form costs so many products a row and eigenvalue, not as many as eigenvalues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from genbounds.core.design import Index
from genbounds.core.expansion import Form, RowTerms
from genbounds.validation import Float

NEGLIGIBLE = 1e-14
"""Share of the trace that may be left out of a factor."""

DEFINITE_ORDER = 2.0
"""Largest order for which the matrix is semidefinite."""


def divided_differences(a: Float, b: Float, *, order: float, power: float) -> Float:
    """(g(a) - g(b)) / (a - b) for g the gradient of the entropy of a finite `order`.

    Exact to rounding at any distance, and the derivative where a = b.

    Parameters
    ----------
    a, b : ndarray
        Positive numbers, of shapes that broadcast.
    order : float
    power : float
        Σ λ^α, by which the gradient is divided unless the order is one.
    """
    high = np.maximum(a, b)
    gap = np.abs(a - b)
    tied = gap == 0.0
    ratio = np.log1p(gap / np.minimum(a, b))  # log(high / low)
    gap = np.where(tied, 1.0, gap / high)
    if order == 1.0:
        return -np.where(tied, 1.0, ratio / gap) / high
    exponent = order - 1.0
    quotient = np.where(tied, exponent, -np.expm1(-exponent * ratio) / gap)
    return np.asarray(order / (1.0 - order) / power * high ** (exponent - 1.0) * quotient)


@dataclass(frozen=True)
class Coupling:
    """Symmetric matrix D with a zero diagonal, given as it is."""

    matrix: Float

    def form(self, a: Float) -> Float:
        """Σ_ij D_ij a_i a_j for each row of `a`."""
        return np.asarray(np.einsum("ij,ij->i", a @ self.matrix, a))

    def inner(self, other: Float) -> float:
        """Σ_ij D_ij B_ij of a symmetric matrix B."""
        return float(np.vdot(self.matrix, other))

    def times(self, vector: Float) -> Float:
        """D times a vector."""
        return np.asarray(self.matrix @ vector)

    def astype(self, dtype: Any) -> Coupling:
        """Return the same in another precision."""
        return type(self)(self.matrix.astype(dtype, copy=False))


class FactoredCoupling(Coupling):
    """D = diag(FFᵀ) - FFᵀ, of which `matrix` is F."""

    @cached_property
    def diagonal(self) -> Float:
        """Of FFᵀ."""
        return np.asarray(np.einsum("ij,ij->i", self.matrix, self.matrix))

    def form(self, a: Float) -> Float:
        """Σ_ij D_ij a_i a_j for each row of `a`."""
        inner = a @ self.matrix
        return np.asarray((a * a) @ self.diagonal - np.einsum("ij,ij->i", inner, inner))

    def inner(self, other: Float) -> float:
        """Σ_ij D_ij B_ij of a symmetric matrix B."""
        across = float(np.vdot(self.matrix, other @ self.matrix))
        return float(self.diagonal @ np.diagonal(other)) - across

    def times(self, vector: Float) -> Float:
        """D times a vector."""
        return np.asarray(self.diagonal * vector - self.matrix @ (self.matrix.T @ vector))


def factored_coupling(values: Float, order: float) -> FactoredCoupling:
    """Couple all eigenvalues of a spectrum, for an order of at most two.

    The matrix is factored as it acts on squared coordinates relative to their means, that is as
    diag(λ) D diag(λ), whose trace is `order`.
    """
    power = float((values**order).sum())

    def column(j: int) -> Float:
        quotients = divided_differences(values, values[j], order=order, power=power)
        return np.asarray(-quotients * values * values[j])

    factor = pivoted_cholesky(order * values**order / power, column)
    return FactoredCoupling(factor / values[:, None])


def pivoted_cholesky(diagonal: Float, column: Callable[[int], Float]) -> Float:
    """Return F of shape (r, k) with FFᵀ the positive semidefinite matrix with that diagonal.

    Only k of its columns are asked for; the trace of what is left out is negligible.

    References
    ----------
    .. [1] H. Harbrecht, M. Peters and R. Schneider, "On the low-rank approximation by the pivoted
       Cholesky decomposition", Appl. Numer. Math. 62, 2012.
    """
    rest = diagonal.copy()
    enough = NEGLIGIBLE * rest.sum()
    factor = np.empty((rest.size, 0))
    for _ in range(rest.size):
        if rest.sum() <= enough:
            break
        pivot = int(rest.argmax())
        new = column(pivot) - factor @ factor[pivot]
        new /= np.sqrt(rest[pivot])
        factor = np.column_stack([factor, new])
        rest = np.maximum(rest - new**2, 0.0)
    return factor


PAIRING_SEED = 20_240_102
"""Fixed, so that the random pairing and halving of rows give the same result at every call."""

SHIFTS, NARROW = 4, 100
"""Pairings of every row where there are at most so many eigenvalues; one where there are more."""

PAIR_ROWS = 4096
"""Rows of that one pairing."""

PART_ROWS, PART_WORK = 512, 2**28
"""Where not every row is needed, the expansion is of random parts of at least so many rows, more
where a row costs little (rows times the square of the number of eigenvalues)."""

GROUP = 64
"""Leading eigenvalues among which near-ties of the largest are looked for."""

GROUP_ERRORS = 4.0
"""Standard errors within which an eigenvalue cannot be told from the largest."""

BEYOND = 64
"""Eigenvalues beyond twice a cut that are taken one by one."""

ZERO = 1e-13
"""Eigenvalues below this are rounding: the trace is one."""


class Derivatives:
    """Of the log Vendi score at positive eigenvalues, largest first.

    Parameters
    ----------
    values : ndarray of shape (r,)
    order : float
        α in (0, ∞].
    kept : int or None
        Truncation t, below r; None: the whole spectrum.
    n : int
        Sample size, which says how close two eigenvalues can be and still be told apart.

    Attributes
    ----------
    value : float
    gradient : ndarray of shape (r,)
    slope, curvature : ndarray of shape (k,)
        The Hessian (g_ij) is ``J (diag(curvature) - rank_one slope slopeᵀ) J`` among the leading
        k eigenvalues and zero beyond.
    rank_one : float
    lifted : bool
        J is I - 11ᵀ/k if so, else I.
    coupling : Coupling
        (g_i - g_j) / (λ_i - λ_j), zero on the diagonal, of shape (r, r).
    """

    def __init__(self, values: Float, *, order: float, kept: int | None, n: int) -> None:
        cut = 1 if math.isinf(order) else kept
        raised = lift(values, kept)[:cut]
        self.value = log_vendi(values if kept is None else raised, order)
        if math.isinf(order):
            self.slope, self.curvature, self.rank_one = -1.0 / raised, 1.0 / raised**2, 0.0
        elif order == 1.0:
            self.slope, self.curvature, self.rank_one = -np.log(raised) - 1.0, -1.0 / raised, 0.0
        else:
            power = float((raised**order).sum())
            self.slope = order / (1.0 - order) * raised ** (order - 1.0) / power
            self.curvature, self.rank_one = -order * raised ** (order - 2.0) / power, 1.0 - order
        self.lifted = kept is not None and not math.isinf(order)
        self.gradient = np.zeros(values.size)
        self.gradient[: raised.size] = self.slope - self.slope.mean() * self.lifted
        self.coupling: Coupling
        if cut is None and order <= DEFINITE_ORDER:
            self.coupling = factored_coupling(values, order)
        else:
            self.coupling = _cut_coupling(values, raised, self.gradient, order=order, n=n)

    def form(self, a: Float, b: Float) -> Float:
        """Σ_ij g_ij a_i b_j for each row of `a` and `b`, both of shape (m, r)."""
        k = self.slope.size
        one, two = a[:, :k], b[:, :k]
        if self.lifted:
            one = one - one.mean(axis=1, keepdims=True)
            two = one if a is b else two - two.mean(axis=1, keepdims=True)
        weights = self.curvature.astype(a.dtype, copy=False)
        out: Float = np.einsum("ij,ij,j->i", one, two, weights)
        if self.rank_one:
            slope = self.slope.astype(a.dtype, copy=False)
            out -= self.rank_one * (one @ slope) * (two @ slope)
        return out


def log_vendi(values: Float, order: float) -> float:
    """Rényi entropy of `order` of a spectrum that sums to one; zeros are left out."""
    p = values[values > ZERO]
    if math.isinf(order):
        return -math.log(float(p.max()))
    if order == 1.0:
        return float(-(p * np.log(p)).sum())
    return math.log(float((p**order).sum())) / (1.0 - order)


def lift(values: Float, kept: int | None) -> Float:
    """Project the leading `kept` eigenvalues onto the simplex: λ_i + (1 - S_t)/t (V24, Def. 2)."""
    if kept is None:
        return values
    head = np.zeros(kept)
    head[: min(kept, values.size)] = values[:kept]
    return np.asarray(head + (1.0 - head.sum()) / kept)


def _cut_coupling(
    values: Float, raised: Float, gradient: Float, *, order: float, n: int
) -> Coupling:
    """Couple `values`, of which the leading count as `raised`."""
    r, k = values.size, raised.size
    divided = np.zeros((r, r))
    if not math.isinf(order):
        power = float((raised**order).sum())
        divided[:k, :k] = divided_differences(raised[:, None], raised, order=order, power=power)
        np.fill_diagonal(divided, 0.0)
    if k < r:
        top, rest = values[:k, None], values[None, k:]
        gap, noise = top - rest, 2.0 * top * rest / n
        across = gradient[:k, None] * gap / (gap**2 + noise)
        divided[:k, k:] = across
        divided[k:, :k] = across.T
    return Coupling(divided)


Coordinates = Callable[[Index | None], Iterator[tuple[Index, Float]]]
"""Yields (positions, z of shape (rows, r)) over blocks of the rows with that index, or of all;
positions count within the selection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """Eigenvalues, largest first, and the rows' coordinates in the eigenbasis."""

    values: Float
    coordinates: Coordinates

    def head(self, count: int) -> Spectrum:
        """Keep the leading eigenpairs; what is left of each row's norm is its remainder."""
        if self.values.size <= count:
            return self

        def coordinates(index: Index | None) -> Iterator[tuple[Index, Float]]:
            for positions, block in self.coordinates(index):
                yield positions, np.ascontiguousarray(block[:, :count])

        return Spectrum(values=self.values[:count], coordinates=coordinates)


class SpectralForm(Form):
    """The rows of a sample as a `Form`; a block is the array z of their coordinates.

    Right for any distribution of the rows. Norms are one, so an incomplete eigensystem leaves a
    remainder of known size: it is taken as one further direction per row, at the mean of the
    eigenvalues that are left. Eigenvalues far beyond a cut are left out: they act through their sum
    alone. Coordinates in float32 are worked on in float32.

    Parameters
    ----------
    spectrum : Spectrum
    n : int
        Rows.
    order : float
    kept : int, optional
        Truncation, as for `Derivatives`.
    every_row : bool
        Whether the influence of every row is wanted. If not, a random part of the rows of a large
        sample, `part_rows`, stands for all of them: of h(x, x) only what is not linear in z_i²,
        whose mean over all rows is λ_i, is averaged over it.
    """

    seed = PAIRING_SEED
    bounded = True  # rows have norm one

    def __init__(
        self,
        spectrum: Spectrum,
        *,
        n: int,
        order: float,
        kept: int | None = None,
        every_row: bool = True,
    ) -> None:
        cut = 1 if math.isinf(order) and kept is None else kept
        spectrum = spectrum if cut is None else spectrum.head(2 * cut + BEYOND)
        values = spectrum.values
        # Of an order below 1 rare rows, whose influence is large, may carry it all.
        whole = every_row or order < 1.0
        self.part_rows = None if whole else max(PART_ROWS, PART_WORK // max(values.size, 1) ** 2)
        at = Derivatives(values, order=order, kept=kept, n=n)
        self.n = self.rows_at_hand = n
        self.width, self.divisor = values.size, n - 1.0
        self.partners = SHIFTS
        if values.size > NARROW:  # a pair costs more
            self.partners, self.paired_rows = 1, PAIR_ROWS
        self.coordinates, self.at, self.values = spectrum.coordinates, at, values
        self.shift = float(at.gradient @ values)
        self.slopes: Float = at.coupling.times(values)
        self.known_mean = 0.5 * float(values @ self.slopes)
        # The remainder is orthogonal to what is known; its own couplings are at eigenvalue 0.
        self.outside: Float | None = None
        if cut is not None:
            self.outside = np.where(values > 0.0, at.gradient / np.maximum(values, ZERO), 0.0)
        self._cast = (at.gradient, self.slopes, values, at.coupling)

    def blocks(self, part: Index | None) -> Iterator[tuple[Index, Float]]:
        """Yield coordinates."""
        return self.coordinates(part)

    def block(self, rows: Index) -> Float:
        """Return the coordinates of the rows with these numbers."""
        return np.concatenate([z for _, z in self.blocks(rows)])

    def terms(self, z: Float, positions: Index) -> RowTerms:
        """Of every row: influence; h(x, x) and its part linear in z²."""
        squares = z * z
        gradient, slopes, values, coupling = self._like(z)
        influence: Float = squares @ gradient - self.shift
        excess = squares - values
        own = 0.5 * self.at.form(excess, excess)
        own += 0.5 * coupling.form(squares)
        if self.outside is not None:
            outside = self.outside.astype(z.dtype, copy=False)
            own += np.maximum(1.0 - squares.sum(axis=1), 0.0) * (squares @ outside)
        known: Float = squares @ slopes - self.known_mean
        return RowTerms(influence, own, known)

    def across(self, a: Float, i: Index, b: Float, j: Index) -> Float:
        """h(x_i, x_j)."""
        *_, values, coupling = self._like(a)
        one, two = a[i], b[j]
        kernel = 0.5 * self.at.form(one * one - values, two * two - values)
        kernel += 0.5 * coupling.form(one * two)
        return kernel.astype(np.float64, copy=False)

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over the rows with these numbers."""
        total = np.zeros((self.values.size, self.values.size))
        for positions, z in self.blocks(rows):
            total += z.T @ (v[positions, None] * z)
        excess = (np.diagonal(total) - float(v.sum()) * self.values)[None]
        square = float(self.at.form(excess, excess)[0])
        return 0.5 * (square + self.at.coupling.inner(total * total))

    def _like(self, z: Float) -> tuple[Float, Float, Float, Coupling]:
        """Gradient, slopes, eigenvalues and coupling in the precision of `z`."""
        if self._cast[0].dtype != z.dtype:
            arrays = (self.at.gradient, self.slopes, self.values)
            one, two, three = (a.astype(z.dtype) for a in arrays)
            self._cast = (one, two, three, self.at.coupling.astype(z.dtype))
        return self._cast


def leading_group(coordinates: Coordinates, values: Float, n: int) -> tuple[int, float]:
    """Count the eigenvalues that the sample cannot tell from the largest; and a variance.

    The variance is that of the logarithm of their mean or of the largest, whichever is greater.
    """
    k = min(values.size, GROUP)
    fourth, total = np.zeros((k, k)), np.zeros(k)
    for _, block in coordinates(None):
        squares = block[:, :k] ** 2
        fourth += squares.T @ squares
        total += squares.sum(axis=0)
    mean = total / n
    covariance = fourth / n - np.outer(mean, mean)  # covariance of the z_i²
    own = np.diagonal(covariance)
    # λ_1 and λ_j repel through mean(z_1 z_j), and differ by what their own squares do.
    noise = np.maximum(own + own[0] - 2.0 * covariance[0], 4.0 * fourth[0] / n) / n
    near = values[:k] >= values[0] - GROUP_ERRORS * np.sqrt(noise)
    near[0] = True
    count = int(np.argmin(near)) if not near.all() else k
    spread = float(covariance[:count, :count].sum()) / float(values[:count].sum()) ** 2
    return count, max(spread, float(own[0]) / float(values[0]) ** 2) / n
