"""Small arms and a cheap metric, so that a run takes a millisecond."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genbounds.estimators import Estimate, SampleError


def mean_metric(rows: np.ndarray) -> Estimate:
    """The mean of the first column, small is good: exactly Student for normal rows."""
    x = np.asarray(rows[:, 0], dtype=np.float64)
    variance = float(x.var(ddof=1)) / x.size
    return Estimate(
        value=float(x.mean()),
        sample=SampleError(n=x.size, variance=variance, degrees_of_freedom=x.size - 1.0),
        method="mean",
    )


@dataclass
class Normal:
    """N(mean, sd²), one column."""

    mean: float
    sd: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.mean + self.sd * rng.standard_normal((n, 1))


@dataclass
class Finite:
    """A source with `size` rows, then nothing."""

    mean: float
    size: int
    given: int = 0

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        n = min(n, self.size - self.given)
        self.given += n
        return self.mean + rng.standard_normal((n, 1))


@dataclass
class Faulty:
    """Normal(0), but each call listed in `faults` returns or raises what is given there."""

    faults: dict[int, Any]
    calls: int = 0
    asked: list[int] = field(default_factory=list)

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        self.calls += 1
        self.asked.append(n)
        fault = self.faults.get(self.calls)
        if isinstance(fault, BaseException):
            raise fault
        if fault is not None:
            return fault
        return rng.standard_normal((n, 1))
