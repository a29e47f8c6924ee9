"""Plug-in kernel scores that follow a growing sample: a batch meets the rows before it once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators.kernels._reference import KernelReference

PairSum = Callable[[NDArray[Any], NDArray[Any]], float]
"""Sum of a kernel over all pairs of a row of the first and a row of the second argument."""

FIRST_CAPACITY = 256


class _Pairs:
    """Sum of a symmetric kernel over all pairs of rows of a growing sample, the diagonal too.

    Attributes
    ----------
    n : int
        Rows so far.
    total : float
    """

    def __init__(self, pair_sum: PairSum) -> None:
        self.n = 0
        self.total = 0.0
        self._pair_sum = pair_sum
        self._rows: NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return 0 if self._rows is None else self._rows.nbytes

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""
        if self._rows is None:
            self._rows = np.empty((FIRST_CAPACITY, rows.shape[1]), dtype=rows.dtype)
        end = self.n + rows.shape[0]
        if self.n:
            self.total += 2.0 * self._pair_sum(rows, self._rows[: self.n])
        self.total += self._pair_sum(rows, rows)
        dtype = np.result_type(self._rows, rows)
        if end > self._rows.shape[0] or dtype != self._rows.dtype:
            larger = np.empty((max(2 * self._rows.shape[0], end), rows.shape[1]), dtype=dtype)
            larger[: self.n] = self._rows[: self.n]
            self._rows = larger
        self._rows[self.n : end] = rows
        self.n = end


class RunningKid(_Pairs):
    """Plug-in kernel distance, such as KID.

    Parameters
    ----------
    reference : KernelReference
    """

    def __init__(self, reference: KernelReference) -> None:
        super().__init__(reference.pair_sum)
        self._reference = reference
        self._crossed = 0.0

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""
        super().add(rows)
        self._crossed += self._reference.pair_sum(rows)

    def loss(self) -> float:
        """Plug-in distance of all rows so far; -inf before two."""
        n, reference = self.n, self._reference
        if n < 2:
            return -math.inf
        within = self.total / n**2
        return within + reference.v_statistic - 2.0 * self._crossed / (n * reference.n)


class RunningRke(_Pairs):
    """Plug-in order-2 entropy, the logarithm of the mean squared kernel.

    Parameters
    ----------
    pair_sum : callable
        Sum of k² over pairs of rows.
    """

    def loss(self) -> float:
        """Minus the logarithm of the plug-in score of all rows so far; -inf before two."""
        n = self.n
        return math.log(self.total / n**2) if n > 1 else -math.inf
