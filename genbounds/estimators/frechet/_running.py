"""The Fréchet distance of a growing sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.linalg import few_times
from genbounds.estimators.frechet._distance import FrechetReference
from genbounds.estimators.frechet._trace_root import TraceRoot
from genbounds.validation import Float

BLOCK = 2048
"""Rows taken up at once."""


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

    def __init__(self, reference: FrechetReference) -> None:
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
