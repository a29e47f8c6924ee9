"""Divided differences (g_i - g_j) / (λ_i - λ_j) of an entropy's gradient, as quadratic forms.

For orders up to 2 the matrix of them is negative semidefinite (x^(α-1) is operator monotone for
1 <= α <= 2, and decreasing so below; Löwner's theorem), and its eigenvalues fall geometrically, as
those of every matrix of this kind: a pivoted Cholesky factor of some tens of columns holds
all of it, and a form costs so many products a row and eigenvalue, not as many as eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

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
    out: Float = order / (1.0 - order) / power * high ** (exponent - 1.0) * quotient
    return out


@dataclass(frozen=True)
class Coupling:
    """Symmetric matrix D with a zero diagonal, given as it is."""

    matrix: Float

    def form(self, a: Float) -> Float:
        """Σ_ij D_ij a_i a_j for each row of `a`."""
        out: Float = np.einsum("ij,ij->i", a @ self.matrix, a)
        return out

    def inner(self, other: Float) -> float:
        """Σ_ij D_ij B_ij of a symmetric matrix B."""
        return float(np.vdot(self.matrix, other))

    def times(self, vector: Float) -> Float:
        """D times a vector."""
        out: Float = self.matrix @ vector
        return out

    def astype(self, dtype: Any) -> Coupling:
        """Return the same in another precision."""
        return type(self)(self.matrix.astype(dtype, copy=False))


class FactoredCoupling(Coupling):
    """D = diag(FFᵀ) - FFᵀ, of which `matrix` is F."""

    @cached_property
    def diagonal(self) -> Float:
        """Of FFᵀ."""
        out: Float = np.einsum("ij,ij->i", self.matrix, self.matrix)
        return out

    def form(self, a: Float) -> Float:
        """Σ_ij D_ij a_i a_j for each row of `a`."""
        inner = a @ self.matrix
        out: Float = (a * a) @ self.diagonal - np.einsum("ij,ij->i", inner, inner)
        return out

    def inner(self, other: Float) -> float:
        """Σ_ij D_ij B_ij of a symmetric matrix B."""
        across = float(np.vdot(self.matrix, other @ self.matrix))
        return float(self.diagonal @ np.diagonal(other)) - across

    def times(self, vector: Float) -> Float:
        """D times a vector."""
        out: Float = self.diagonal * vector - self.matrix @ (self.matrix.T @ vector)
        return out


def factored_coupling(values: Float, order: float) -> FactoredCoupling:
    """Couple all eigenvalues of a spectrum, for an order of at most two.

    The matrix is factored as it acts on squared coordinates relative to their means, that is as
    diag(λ) D diag(λ), whose trace is `order`.
    """
    power = float((values**order).sum())

    def column(j: int) -> Float:
        quotients = divided_differences(values, values[j], order=order, power=power)
        out: Float = -quotients * values * values[j]
        return out

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
