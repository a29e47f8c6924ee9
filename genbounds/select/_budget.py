"""What samples cost, and what is left to spend."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import Float

_ROUNDING = 1e-9


class Budget:
    """Counts what samples cost.

    Parameters
    ----------
    total : float or None
        Most that may be spent; None: no limit.
    cost : ndarray of shape (K,)
        Of one sample of each arm.
    batch : int
        Samples of a step.

    Attributes
    ----------
    spent : float
    """

    def __init__(self, total: float | None, cost: Float, batch: int) -> None:
        self.total = total
        self.spent = 0.0
        self._cost = cost
        self._batch = batch

    @property
    def exhausted(self) -> bool:
        """Whether not even a sample of the cheapest arm can be paid."""
        return self.affordable(int(self._cost.argmin())) == 0

    def affordable(self, arm: int) -> int:
        """Return how many samples of a batch of `arm` can be paid."""
        if self.total is None:
            return self._batch
        left = (self.total - self.spent) / float(self._cost[arm])
        return max(0, min(self._batch, math.floor(left * (1.0 + _ROUNDING))))

    @property
    def payable(self) -> NDArray[np.bool_]:
        """Arms of which at least one sample can be paid."""
        if self.total is None:
            return np.ones(self._cost.size, dtype=bool)
        left: Float = (self.total - self.spent) / self._cost
        return left * (1.0 + _ROUNDING) >= 1.0

    def pay(self, arm: int, n: int) -> float:
        """Take `n` samples of `arm` off; return what they cost."""
        price = n * float(self._cost[arm])
        self.spent += price
        return price
