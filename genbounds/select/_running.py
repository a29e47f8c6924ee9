"""Plug-in scores that follow a growing sample: a step costs its batch, not the whole sample."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.estimators import FrechetReference
from genbounds.select._trace_root import TraceRoot
from genbounds.validation import POSTERIOR_ATOL, Float, InputError

CACHE_BYTES = 128 * 2**20
"""Memory for the running scores of all arms of a run together; the least recently used go first.

20 arms with 250 samples of 2,048 features each need 82 MB."""

_BLOCK = 2048


class Running(Protocol):
    """A plug-in score of a sample that grows."""

    @property
    def n(self) -> int:
        """Rows taken up."""

    @property
    def nbytes(self) -> int:
        """Memory held."""

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""

    def loss(self) -> float:
        """Plug-in score of all rows so far, turned so that small is good; -inf before two."""


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
        self._root = TraceRoot(self._lower.shape[1])

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._root.nbytes

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""
        for start in range(0, rows.shape[0], _BLOCK):
            self._add(np.array(rows[start : start + _BLOCK], dtype=np.float64))

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

    def loss(self) -> float:
        """Plug-in distance; -inf before two rows."""
        if self.n < 2:
            return -math.inf
        value = self.mean_gap**2 + self.trace + self._target_trace - 2.0 * self.root
        return max(value, 0.0)


class RunningInception:
    """Sums of posteriors and of their entropies: plug-in Inception score and M25's variances.

    Parameters
    ----------
    classes : int
    """

    def __init__(self, classes: int) -> None:
        self.n = 0
        self.classes = classes
        self._origin: Float | None = None
        self._p: Float = np.zeros(classes)
        self._p2: Float = np.zeros(classes)
        self._h = 0.0
        self._h2 = 0.0

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._p.nbytes + self._p2.nbytes

    def add(self, rows: NDArray[Any]) -> None:
        """Take up posteriors of shape (b, classes)."""
        p = np.asarray(rows, dtype=np.float64)
        sums = p.sum(axis=1)
        if not (p.min() >= 0.0 and np.abs(sums - 1.0).max() <= POSTERIOR_ATOL):
            raise InputError(
                "`draw` must return posteriors for metric 'is': no negative entry, each row "
                f"summing to one; got sums {sums.min():.4g} to {sums.max():.4g}, smallest entry "
                f"{p.min():.4g}."
            )
        p = p / sums[:, None]
        if self._origin is None:  # near the mean, so that the variances do not cancel
            self._origin = p[0].copy()
        entropies = scipy.special.entr(p).sum(axis=1)
        shifted = p - self._origin
        self.n += p.shape[0]
        self._p += shifted.sum(axis=0)
        self._p2 += np.einsum("ij,ij->j", shifted, shifted)
        self._h += float(entropies.sum())
        self._h2 += float(entropies @ entropies)

    @property
    def mean(self) -> Float:
        """Mean posterior, shape (classes,)."""
        assert self._origin is not None
        mean: Float = self._origin + self._p / self.n
        return mean

    @property
    def entropy(self) -> float:
        """Mean conditional entropy."""
        return self._h / self.n

    @property
    def class_variance(self) -> Float:
        """Sample variance (divisor n - 1) of each class probability, shape (classes,)."""
        variance: Float = np.maximum(self._p2 - self._p**2 / self.n, 0.0) / (self.n - 1)
        return variance

    @property
    def entropy_variance(self) -> float:
        """Sample variance of the conditional entropy."""
        return max(self._h2 - self._h**2 / self.n, 0.0) / (self.n - 1)

    def loss(self) -> float:
        """Minus the logarithm of the plug-in score; -inf before two rows."""
        if self.n < 2:
            return -math.inf
        return self.entropy - float(scipy.special.entr(self.mean).sum())


class RunningScores:
    """The running score of every arm, within a limit of memory.

    Parameters
    ----------
    make : callable
        Of the number of columns: a score of no rows yet.
    limit : int
        Bytes. A score that was dropped is made again from all rows when it is wanted.
    """

    def __init__(self, make: Callable[[int], Running], *, limit: int = CACHE_BYTES) -> None:
        self._make = make
        self._limit = limit
        self._kept: OrderedDict[int, Running] = OrderedDict()

    def of(self, arm: int, rows: NDArray[Any]) -> Running:
        """Return the score of all `rows` of `arm`, of which it may know the first ones already."""
        score = self._kept.pop(arm, None) or self._make(rows.shape[1])
        if score.n < rows.shape[0]:
            score.add(rows[score.n :])
        self._kept[arm] = score
        held = sum(kept.nbytes for kept in self._kept.values())
        while held > self._limit and len(self._kept) > 1:
            held -= self._kept.popitem(last=False)[1].nbytes
        return score
