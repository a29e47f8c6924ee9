"""A random part of rows that are gone: parts join, in any order, as if drawn from all at once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import Float

KEPT = 2048
"""Rows that parts read from files keep together: fourth moments of features need about as many."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows with the least of n random keys, one a row.

    Attributes
    ----------
    rows : ndarray of shape (k, d)
    keys : ndarray of shape (k,)
        In [0, 1].
    n : int
        Rows that they were drawn from.
    limit : int
        At most so many are kept when parts are joined.
    """

    rows: NDArray[Any]
    keys: Float
    n: int
    limit: int

    @classmethod
    def of_part(cls, rows: NDArray[Any], n: int, limit: int, *, seed: int = 0) -> Self:
        """Draw the keys of k rows that were chosen at random among `n`: the k least of n.

        Their content seeds them: parts that know nothing of one another have keys of their own,
        and the same parts the same keys.
        """
        content = hashlib.sha256(np.ascontiguousarray(rows).tobytes()).digest()
        rng = np.random.default_rng([seed, n, *content])
        # Uniform order statistics are ratios of sums of exponential variables (Rényi 1953).
        sums = np.cumsum(rng.exponential(size=len(rows)))
        keys = sums / (sums[-1:] + rng.gamma(n - len(rows) + 1.0))
        return cls(rows, rng.permutation(keys), n, limit)

    def joined(self, other: KeptRows) -> KeptRows:
        """Return the rows with the least keys among those of both."""
        keys = np.concatenate([self.keys, other.keys])
        known = min(self._known_up_to(), other._known_up_to())
        limit = max(self.limit, other.limit)
        least = np.argsort(keys)[: min(limit, int(np.sum(keys <= known)))]
        rows = np.concatenate([self.rows, other.rows])[least]
        return KeptRows(rows, keys[least], self.n + other.n, limit)

    def _known_up_to(self) -> float:
        """Every row with a key up to this one is here."""
        return float(self.keys.max()) if len(self.keys) < self.n else 1.0


def choose_rows(n: int, limit: int, seed: int) -> NDArray[np.intp]:
    """Choose at most `limit` of n rows at random, in their order."""
    return np.sort(np.random.default_rng(seed).choice(n, min(limit, n), False))
