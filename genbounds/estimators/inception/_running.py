"""The Inception score of a growing sample of posteriors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import POSTERIOR_ATOL, Float, InputError


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
        """Take up posteriors, `rows` of shape (b, classes)."""
        p = np.asarray(rows, dtype=np.float64)
        sums = p.sum(axis=1)
        if not (p.min() >= 0.0 and np.abs(sums - 1.0).max() <= POSTERIOR_ATOL):
            raise InputError(
                "must return posteriors for metric 'is': no negative entry, each row "
                f"summing to one; got sums {sums.min():.4g} to {sums.max():.4g}, smallest entry "
                f"{p.min():.4g}.",
                argument="draw",
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
