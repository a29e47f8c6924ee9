"""The Fréchet distance of a growing sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float

BLOCK = 2048
"""Rows taken up at once."""

FEW = 48
"""Columns at a time where few rows are multiplied: small products do not copy the matrix first."""


class RunningFrechet:
    """Plug-in Fréchet distance (divisor n - 1, as in `FrechetReference.plugin`).

    Parameters
    ----------
    reference : FrechetReference

    Notes
    -----
    With Σ_r = L Lᵀ, Tr (Σ̂ Σ_r)^(1/2) is the sum of the singular values of the centred rows times L,
    over √(n - 1). A new row adds √(m/(m+1)) (x - mean of the m earlier rows) to the centred ones
    (Welford), so that nothing that was centred before has to be touched.
    """

    def __init__(self, reference: Any) -> None:  # which stands above, with the metric
        moments = reference.moments
        self.n = 0
        self.mean: Float = np.zeros(moments.d)
        self.scatter_trace = 0.0
        self._target: Float = moments.mean
        self._target_trace = float(np.trace(moments.cov))
        self._lower = reference.factor
        d, r = self._lower.shape
        self._triangular = d == r and not np.triu(self._lower, 1).any()
        self._root = TraceRoot(self._lower.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._root.nbytes

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""
        for start in range(0, rows.shape[0], BLOCK):
            self._add(np.array(rows[start : start + BLOCK], dtype=np.float64))

    def _add(self, rows: Float) -> None:
        b = rows.shape[0]
        counts = self.n + np.arange(b)
        rows -= self.mean
        before = np.zeros_like(rows)  # mean of the earlier rows, relative to the old mean
        np.cumsum(rows[:-1], axis=0, out=before[1:])
        before[1:] /= counts[1:, None]
        total = rows.sum(axis=0)
        rows -= before
        rows *= np.sqrt(counts / (counts + 1.0))[:, None]
        self.scatter_trace += float(np.einsum("ij,ij->", rows, rows))
        if self._triangular:
            self._root.add(few_times(rows, self._lower, lower=True))
        else:
            self._root.add(rows @ self._lower)
        self.n += b
        self.mean = self.mean + total / self.n

    @property
    def trace(self) -> float:
        """Trace of the sample covariance."""
        return self.scatter_trace / (self.n - 1)

    @property
    def root(self) -> float:
        """Tr (Σ̂ Σ_r)^(1/2)."""
        return self._root.value() / math.sqrt(self.n - 1)

    @property
    def mean_gap(self) -> float:
        """Distance of the means."""
        return float(np.linalg.norm(self.mean - self._target))

    def loss(self, *, divisor_n: bool = False) -> float:
        """Plug-in distance; -inf before two rows. `divisor_n`: with that of papers on bandits."""
        if self.n < 2:
            return -math.inf
        share = 1.0 - 1.0 / self.n if divisor_n else 1.0
        own, mixed = share * self.trace, math.sqrt(share) * self.root
        return max(self.mean_gap**2 + own + self._target_trace - 2.0 * mixed, 0.0)


def few_times(rows: Float, matrix: Float, *, lower: bool = False) -> Float:
    """Return ``B @ A`` for few rows B and a matrix A in Fortran's order; `lower`: a triangular one.

    Few rows times a large matrix take as long as it takes to read it: a triangular one by half.
    """
    columns = np.ascontiguousarray(rows.T)
    product = np.empty((matrix.shape[1], rows.shape[0]))
    for start in range(0, matrix.shape[1], FEW):
        stop, first = start + FEW, start if lower else 0
        np.matmul(matrix[first:, start:stop].T, columns[first:], out=product[start:stop])
    return np.ascontiguousarray(product.T)


# --- Tr √S of a scatter matrix that grows row by row, without an eigenproblem a step --------------
# With A = S as it was at the last eigendecomposition and V the rows since then,
#
#     Tr √(A + VᵀV) - Tr √A = (1/π) ∫₀^∞ log det M(x) dx,  M(x) = I + V (A + x²)⁻¹ Vᵀ,
#
# from √λ = (2/π) ∫ λ/(λ + x²) dx and an integration by parts. In the eigenvectors of A a row
# costs products with matrices of as many rows as the rank. M gains a row and a column for each
# row of V; its determinant gains a factor, of the part that the rows before it do not explain. A
# is decomposed anew when V has grown to a fifth of the rank: one eigenproblem of the order of the
# rank for many steps, and never a d × d root.


DENSE = 128
"""Up to this dimension all eigenvalues are cheaper than anything cleverer."""

SHARE, LEAST_PENDING, MOST_PENDING = 5, 16, 256
"""Rows that may wait for the next eigendecomposition: rank / SHARE, within these limits."""

STEP = 0.35
"""Of the trapezoidal rule; its error is about exp(-2π · 1.2 / STEP) of the increment, 4e-10."""

TAIL = 3.2
"""Double-exponential ends reach exp(±24) beyond the spectrum."""

SMALLEST = 1e-12
"""Eigenvalues below this share of the largest are integrated less exactly: they add next to
nothing."""

SMALLEST_NODE = 1e-13
"""Nodes below this share of the root of the trace weigh nothing, and M is all rounding there."""

SPAN_RTOL = 1e-10
"""Part of a row outside the span of the earlier ones that is taken for rounding."""

LARGEST_GROWTH = 4.0
"""The nodes are good until the trace has grown by this factor."""

FAR = 1e6
"""Nodes beyond this multiple of the largest trace: log det M is Tr(VᵀV)/x² there, and the error of
that adds less than that of the trapezoidal rule."""

IN_CACHE = 48
"""Rows of the span that are read from memory once for both products with them."""

PANEL = 64
"""Rows of W that are held together: panels leave out most of its upper half, which is zero."""

ROUNDING = 1e-14
"""Part of a diagonal entry of M that is taken for rounding, once the earlier rows explain it."""

AT_ONCE = 8
"""Rows that are added to M together: an eigenproblem of so many for every node."""


class TraceRoot:
    """Sum of the singular values of all rows added so far.

    Parameters
    ----------
    r : int
        Length of a row.
    """

    def __init__(self, r: int) -> None:
        self.r = r
        self._scatter: Float | None = np.zeros((r, r)) if r <= DENSE else None
        self._rows = 0
        self._trace = 0.0
        # A: orthonormal rows that span it (None: all directions), eigenvectors in their terms.
        self._span: Float | None = np.zeros((0, r))
        self._values: Float = np.zeros(0)
        self._vectors: Float = np.zeros((0, 0))
        self._root = 0.0
        # V in the eigenvectors of A and outside its span; W(x) with W M Wᵀ = I, in panels of
        # rows; log det M(x); x², weights, and (A + x²)⁻¹ at the nodes.
        self._pending = 0
        self._inside: Float = np.zeros((0, 0))
        self._outside: Float = np.zeros((0, r))
        self._whitening: list[Float] = []
        self._logs: Float = np.zeros(0)
        self._nodes: Float = np.zeros(0)
        self._weights: Float = np.zeros(0)
        self._poles: Float = np.zeros((0, 0))
        self._reach = 0.0
        self._far, self._start = 0.0, 0.0

    @property
    def nbytes(self) -> int:
        """Memory held."""
        if self._scatter is not None:
            return self._scatter.nbytes
        parts = [self._vectors, self._inside, self._outside, self._poles, *self._whitening]
        if self._span is not None:
            parts.append(self._span)
        return sum(part.nbytes for part in parts)

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
            within, outside = self._split(rows)
            inside = few_times(within, self._vectors)
            start = 0
            while start < b:  # W is written one panel at a time
                stop = start + min(AT_ONCE, PANEL - self._pending % PANEL)
                self._append(inside[start:stop], outside[start:stop])
                start = stop

    def value(self) -> float:
        """Tr √(VᵀV)."""
        if self._scatter is None:
            far = self._far * (self._trace - self._start)
            return self._root + far + float(self._weights @ self._logs)
        values = scipy.linalg.eigvalsh(self._scatter, check_finite=False)
        kept = values[max(self.r - self._rows, 0) :]  # the others are zero but for rounding
        return float(np.sqrt(np.clip(kept, 0.0, None)).sum())

    def _split(self, rows: Float) -> tuple[Float, Float]:
        """Coordinates in the span of A, and what lies outside it."""
        if self._span is None:
            return rows, rows[:, :0]
        within, outside = np.empty((len(rows), len(self._span))), rows.copy()
        size = max(IN_CACHE, len(rows))  # the more rows, the less reading matters
        for start in range(0, len(self._span), size):
            part = self._span[start : start + size]
            within[:, start : start + size] = here = rows @ part.T
            outside -= here @ part
        return within, outside

    def _append(self, inside: Float, outside: Float) -> None:
        """Take rows into V and M: their coordinates in the eigenvectors, the rest of them."""
        start, stop = self._pending, self._pending + inside.shape[0]
        self._inside[start:stop], self._outside[start:stop] = inside, outside
        nodes = self._nodes[:, None, None]
        # The new rows of M - I: V (A + x²)⁻¹ Vᵀ, in which x⁻² stands for A outside its span.
        weighted = (inside * self._poles[:, None, :]).reshape(-1, inside.shape[1])
        fresh = (weighted @ self._inside[:stop].T).reshape(nodes.size, -1, stop)
        fresh += (outside @ self._outside[:stop].T) / nodes
        explained, back = np.empty_like(fresh[:, :, :start]), np.zeros_like(fresh[:, :, :start])
        for at, panel in enumerate(self._whitening):
            first, last = at * PANEL, min((at + 1) * PANEL, start)
            earlier = panel[:, : last - first, :last]
            part = fresh[:, :, :last] @ np.swapaxes(earlier, 1, 2)
            explained[:, :, first:last] = part
            back[:, :, :last] += part @ earlier
        left = fresh[:, :, start:] - explained @ np.swapaxes(explained, 1, 2)
        values, vectors = np.linalg.eigh(left)
        # Without the identity, beside which they are lost at the largest nodes, which weigh most.
        # They are below 0 by rounding: of repeated rows at the smallest, which weigh nothing.
        values = np.maximum(values, 0.0)
        self._logs += np.log1p(values).sum(axis=1)
        # What is all rounding there stays out of W, which it would let grow with every row.
        largest = np.einsum("kii->ki", fresh[:, :, start:]).max(axis=1, keepdims=True)
        known = 1.0 + values > ROUNDING * largest
        whiten = np.swapaxes(vectors * (known / np.sqrt(1.0 + values))[:, None, :], 1, 2)
        if start % PANEL == 0:
            self._whitening.append(np.empty((nodes.size, PANEL, start + PANEL)))
        place = self._whitening[-1][:, start % PANEL : start % PANEL + inside.shape[0]]
        place[:, :, :start], place[:, :, start:stop] = -whiten @ back, whiten
        place[:, :, stop:] = 0.0
        self._pending = stop

    def _decompose(self, rows: Float) -> None:
        """Take up the pending rows and `rows` into the eigendecomposition."""
        within, outside = self._split(rows)
        within = np.concatenate([self._inside[: self._pending] @ self._vectors.T, within])
        outside = np.concatenate([self._outside[: self._pending], outside])
        m, b = self._values.size, len(within)
        fresh, lifted = within[:0], within[:, :0]
        if self._span is not None and m + b < self.r:
            # Of rows near to the span the rest is small beside the rounding of one projection:
            # a second one, or directions that lie partly in the span are taken for new ones.
            missed, outside = self._split(outside)
            fresh, lifted = self._orthonormal(outside)
            within += missed
            self._span = np.concatenate([self._span, fresh])
        # A and the scatter of the rows that come to it, in the terms of the span.
        root = self._vectors * np.sqrt(self._values)
        if self._span is not None and m + b >= self.r:  # from now on every direction is spanned
            whole = np.concatenate([root.T @ self._span, within @ self._span + outside])
            scatter = whole.T @ whole
            self._span = None
        else:
            coordinates = np.concatenate([within, lifted], axis=1)
            scatter = coordinates.T @ coordinates
            scatter[:m, :m] += root @ root.T
        # The transpose, the same matrix in Fortran's order, is not copied.
        values, self._vectors = scipy.linalg.eigh(
            scatter.T, driver="evd", check_finite=False, overwrite_a=True
        )
        self._values = np.clip(values, 0.0, None)
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
        # Of rows near to the span more than rounding of it is left: it goes, or it would grow.
        return self._split(q[:, :kept].T)[1], coordinates

    def _start_pending(self) -> None:
        m = self._values.size
        self._pending = 0
        self._reach = LARGEST_GROWTH * self._trace
        nodes, weights = _quadrature(self._values, self._trace)
        far = nodes > FAR * self._reach
        self._far, self._start = float((weights[far] / nodes[far]).sum()), self._trace
        self._nodes, self._weights = nodes[~far], weights[~far]
        self._poles = 1.0 / (self._values + self._nodes[:, None])
        capacity = min(max(m // SHARE, LEAST_PENDING), MOST_PENDING)
        self._inside = np.empty((capacity, m))
        self._outside = np.empty((capacity, 0 if self._span is None else self.r))
        self._whitening = []
        self._logs = np.zeros(self._nodes.size)


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
    kept = x > SMALLEST_NODE * math.sqrt(trace)
    return x[kept] ** 2, weights[kept]
