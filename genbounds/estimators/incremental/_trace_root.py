"""Tr √S of a scatter matrix that grows row by row, without an eigenproblem at every step.

With A = S as it was at the last eigendecomposition and V the rows since then,

    Tr √(A + VᵀV) - Tr √A = (1/π) ∫₀^∞ log det(I + V (A + x²)⁻¹ Vᵀ) dx,

from √λ = (2/π) ∫ λ/(λ + x²) dx and an integration by parts. In the eigenvectors of A a row costs
two products with a matrix of as many rows as the rank, and the determinants are as large as V has
rows. A is decomposed anew when V has grown to an eighth of the rank: one eigenproblem of the order
of the rank for many steps, and never a d × d root.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.validation import Float

DENSE = 128
"""Up to this dimension all eigenvalues are cheaper than anything cleverer."""

SHARE, LEAST_PENDING, MOST_PENDING = 8, 16, 256
"""Rows that may wait for the next eigendecomposition: rank / SHARE, within these limits."""

STEP = 0.35
"""Of the trapezoidal rule; its error is about exp(-2π · 1.2 / STEP) of the increment, 4e-10."""

TAIL = 3.2
"""Double-exponential ends reach exp(±24) beyond the spectrum."""

SMALLEST = 1e-12
"""Eigenvalues below this share of the largest are integrated less exactly: they add next to
nothing."""

SPAN_RTOL = 1e-12
"""Part of a row outside the span of the earlier ones that is taken for rounding."""

LARGEST_GROWTH = 4.0
"""The nodes are good until the trace has grown by this factor."""

_CHUNK = 256


class TraceRoot:
    """Sum of the singular values of all rows added so far.

    Parameters
    ----------
    r : int
        Length of a row.
    """

    def __init__(self, r: int) -> None:
        self.r = r
        self._values: Float = np.zeros(0)
        self._basis: Float = np.zeros((0, r))
        self._root = 0.0
        self._rows = 0
        self._scatter: Float | None = np.zeros((r, r)) if r <= DENSE else None
        self._pending = 0
        self._inside: Float = np.zeros((0, 0))
        self._outside: Float = np.zeros((0, r))
        self._kernel: Float = np.zeros((0, 0, 0))
        self._nodes: Float = np.zeros(0)
        self._weights: Float = np.zeros(0)
        self._trace = 0.0
        self._reach = 0.0

    @property
    def nbytes(self) -> int:
        """Memory held."""
        parts = (self._basis, self._inside, self._outside, self._kernel)
        held = sum(part.nbytes for part in parts)
        return held if self._scatter is None else self._scatter.nbytes

    def add(self, rows: Float) -> None:
        """Add rows of shape (b, r) to V."""
        rows = rows[np.einsum("ij,ij->i", rows, rows) > 0.0]
        b = rows.shape[0]
        if b == 0:
            return
        self._rows += b
        if self._scatter is not None:
            self._scatter += rows.T @ rows
            return
        self._trace += float(np.einsum("ij,ij->", rows, rows))
        if self._pending + b > self._inside.shape[0] or self._trace > self._reach:
            self._decompose(rows)
        else:
            self._append(rows)

    def value(self) -> float:
        """Tr √(VᵀV)."""
        if self._scatter is not None:
            values = scipy.linalg.eigvalsh(self._scatter, check_finite=False)
            kept = values[max(self.r - self._rows, 0) :]  # the others are zero but for rounding
            return float(np.sqrt(np.clip(kept, 0.0, None)).sum())
        k = self._pending
        if k == 0:
            return self._root
        logs = np.linalg.slogdet(self._kernel[:, :k, :k] + np.eye(k))[1]
        # Never below 0; repeated rows lose the identity at the smallest nodes, which weigh nothing.
        return self._root + float(self._weights @ np.maximum(logs, 0.0))

    def _split(self, rows: Float) -> tuple[Float, Float]:
        """Coordinates in the basis, and what lies outside its span."""
        inside = rows @ self._basis.T
        outside = np.zeros_like(rows) if self._full else rows - inside @ self._basis
        return inside, outside

    @property
    def _full(self) -> bool:
        return self._values.size == self.r

    def _append(self, rows: Float) -> None:
        start, stop = self._pending, self._pending + rows.shape[0]
        inside, outside = self._split(rows)
        self._inside[start:stop], self._outside[start:stop] = inside, outside
        earlier = self._inside[:stop].T
        beyond = outside @ self._outside[:stop].T
        size = max(1, _CHUNK // rows.shape[0])
        for first in range(0, self._nodes.size, size):
            nodes = self._nodes[first : first + size, None, None]
            weighted = inside / (self._values + nodes)
            block = (weighted.reshape(-1, self._values.size) @ earlier).reshape(
                nodes.size, stop - start, stop
            )
            block += beyond / nodes
            self._kernel[first : first + size, start:stop, :stop] = block
            self._kernel[first : first + size, :stop, start:stop] = np.swapaxes(block, 1, 2)
        self._pending = stop

    def _decompose(self, rows: Float) -> None:
        """Take up the pending rows and `rows` into the eigendecomposition."""
        inside, outside = self._split(rows)
        inside = np.concatenate([self._inside[: self._pending], inside])
        outside = np.concatenate([self._outside[: self._pending], outside])
        m = self._values.size
        if self._full or m + inside.shape[0] < self.r:
            fresh, lifted = (np.zeros((0, self.r)), inside[:, :0])
            if not self._full:
                fresh, lifted = self._orthonormal(outside)
            both = np.concatenate([inside, lifted], axis=1)
            matrix = both.T @ both
            matrix[np.arange(m), np.arange(m)] += self._values
            basis = np.concatenate([self._basis, fresh]) if fresh.size else self._basis
            self._values, vectors = _eigh(matrix)
            self._basis = vectors.T @ basis
        else:  # from now on every direction is spanned
            whole = inside @ self._basis + outside
            matrix = (self._basis.T * self._values) @ self._basis + whole.T @ whole
            self._values, vectors = _eigh(matrix)
            self._basis = np.ascontiguousarray(vectors.T)
        self._values = np.clip(self._values, 0.0, None)
        self._root = float(np.sqrt(self._values[-min(self._rows, self._values.size) :]).sum())
        self._start_pending()

    def _orthonormal(self, outside: Float) -> tuple[Float, Float]:
        """Orthonormal rows Q that span `outside`, and its coordinates in them."""
        q, upper, order = scipy.linalg.qr(
            outside.T, mode="economic", pivoting=True, check_finite=False
        )
        scale = math.sqrt(self._trace)
        kept = int((np.abs(np.diagonal(upper)) > SPAN_RTOL * scale).sum())
        coordinates = np.zeros((outside.shape[0], kept))
        coordinates[order] = upper[:kept].T
        return q[:, :kept].T, coordinates

    def _start_pending(self) -> None:
        m = self._values.size
        self._pending = 0
        self._reach = LARGEST_GROWTH * self._trace
        self._nodes, self._weights = _quadrature(self._values, self._trace)
        capacity = min(max(m // SHARE, LEAST_PENDING), MOST_PENDING)
        self._inside = np.empty((capacity, m))
        self._outside = np.empty((capacity, self.r))
        self._kernel = np.empty((self._nodes.size, capacity, capacity))


def _eigh(matrix: Float) -> tuple[Float, Float]:
    values, vectors = scipy.linalg.eigh(matrix, driver="evd", check_finite=False, overwrite_a=True)
    return values, vectors


def _quadrature(values: Float, trace: float) -> tuple[Float, Float]:
    """Nodes x² and weights of (1/π) ∫₀^∞ … dx for a spectrum between min and `trace`.

    x = exp(u), u = w + e^(w-high) - e^(low-w): linear over the spectrum, whose square roots are the
    singularities at ±i√λ, double-exponential at both ends.
    """
    largest = float(values[-1])
    positive = values[values > SMALLEST * largest]
    low = 0.5 * math.log(float(positive[0])) - 1.0
    high = 0.5 * math.log(max(trace, largest)) + 0.5
    w = np.arange(low - TAIL, high + TAIL, STEP)
    rise, fall = np.exp(w - high), np.exp(low - w)
    x = np.exp(w + rise - fall)
    weights: Float = STEP / math.pi * x * (1.0 + rise + fall)
    return x * x, weights
