"""Limits of the largest of several correlated differences, spent over the looks of a run."""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import Float

CROSSINGS = 2000
"""Simulated curves that cross a limit in a whole run: their share is then known to 2 %."""

NO_NOISE = 1e-12
"""Variance of a difference, relative to the others, below which it is rounding."""

BLOCK = 32
"""Differences that are simulated at a time."""


class Limits:
    """When the largest of the differences to all earlier looks is too large to be noise.

    Curves of pure noise are simulated, with the covariance of the looks. The error probability is
    spent evenly: at each look that share of the curves crosses which have not crossed before.
    Pure noise is the least favourable case: a look is called wrongly only if no earlier one is
    better in truth, and every earlier one that is worse makes its own difference smaller.

    Parameters
    ----------
    looks : int
        Planned looks.
    error : float
        Probability with which a curve of pure noise crosses at any look.
    rng : Generator
    """

    def __init__(self, looks: int, error: float, rng: np.random.Generator) -> None:
        self._share = error / max(looks - 1, 1)
        self._rng = rng
        self._draws = math.ceil(CROSSINGS / error)
        # One normal per look and curve; a curve is `factor @ normals`.
        self._normals: NDArray[np.float32] = np.empty((looks, self._draws), dtype=np.float32)
        self._factor: Float = np.zeros((0, 0))
        self._alive = np.ones(self._draws, dtype=bool)

    def copied(self) -> Limits:
        """Return the same limits, whose next one is the same whatever this one's were."""
        twin = copy.copy(self)
        twin._rng, twin._alive = copy.deepcopy(self._rng), self._alive.copy()
        return twin

    def next(self, variances: Float) -> float:
        """Return the limit for a new look, in standard errors.

        Parameters
        ----------
        variances : ndarray of shape (looks so far,)
            Of the differences between the new look and each of the earlier ones.

        Returns
        -------
        float
            Infinite where nothing can differ.
        """
        from scipy.special import ndtri

        self._append(variances)
        apart = self._factor[-1] - self._factor[:-1]
        sizes = np.sqrt((apart**2).sum(axis=1))
        distinct = sizes > math.sqrt(NO_NOISE * max(variances, default=0.0))
        if not distinct.any():
            return math.inf
        crossing = round(self._share * self._draws)
        if crossing < 1:  # thousands of looks
            return -float(ndtri(self._share / int(distinct.sum())))
        largest = self._largest((apart[distinct] / sizes[distinct, None]).astype(np.float32))
        alive = largest[self._alive]
        place = alive.size - crossing - 1
        limit = float(np.partition(alive, place)[place])
        self._alive &= largest <= limit
        return limit

    def _append(self, variances: Float) -> None:
        """Place the new look so that it is as far from the others as the variances say."""
        factor = self._factor
        t = factor.shape[0]
        self._factor = np.zeros((t + 1, t + 1))
        self._factor[:t, :t] = factor
        self._normals[t] = self._rng.standard_normal(self._draws, dtype=np.float32)
        if t == 0:  # the first look is the origin
            return
        row = self._factor[t]
        shared = (variances[0] + (factor**2).sum(axis=1) - variances) / 2.0
        for s in range(1, t):
            if factor[s, s] > 0.0:
                row[s] = (shared[s] - factor[s, :s] @ row[:s]) / factor[s, s]
        rest = float(variances[0] - row @ row)
        row[t] = math.sqrt(rest) if rest > NO_NOISE * float(variances[0]) else 0.0

    def _largest(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the largest of the weighted sums of every curve."""
        normals = self._normals[: weights.shape[1]]
        parts = (weights[k : k + BLOCK] @ normals for k in range(0, weights.shape[0], BLOCK))
        largest = np.full(self._draws, -np.inf, dtype=np.float32)
        for sums in parts:
            np.maximum(largest, sums.max(axis=0), out=largest)
        return largest
