"""KID as it is published: the mean over random subsets of both samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import number
from genbounds.core.estimate import Estimate
from genbounds.core.scale import factor_of
from genbounds.diagnostics import warn_of
from genbounds.estimators.kernels._pair_kernels import PairKernel
from genbounds.validation import Float, InputError, seeded


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSubsets:
    """Which subsets are scored: `count` of them, each of `size` rows of either side."""

    count: int
    size: int
    seed: int

    def check(self, rows: int) -> None:
        """Refuse subsets of more rows than the smaller sample has."""
        if self.size > rows:
            raise InputError(
                f"must be at most {rows:,}, the rows of the smaller sample; got {self.size:,}.",
                argument="subset_size",
            )


def mean_of_subsets(
    found: Estimate,
    samples: tuple[NDArray[Any], NDArray[Any]],
    kernel: PairKernel,
    subsets: RandomSubsets,
) -> Estimate:
    """Return `found`, the estimate from all pairs of `samples`, with the mean of subsets as value.

    Given the samples, that mean is unbiased for the U-statistic of all pairs: the choice of subsets
    adds its own variance to that of the samples, and nothing else.
    """
    size = subsets.size
    rng = seeded(subsets.seed, "subsets")
    unscaled = [_distance_of_subset(samples, kernel, size, rng) for _ in range(subsets.count)]
    distances = np.array(unscaled) * factor_of(kernel.unit, kernel.power)
    spread = float(distances.std())
    choice = spread**2 / (subsets.count - 1)
    found = replace(
        found,
        value=float(distances.mean()),
        estimator="subsets",
        sample=replace(found.sample, variance=found.sample.variance + choice),
        details=(f"mean of {subsets.count} random subsets of {size:,} rows",),
    )
    return found.warned(
        warn_of("subset-spread", spread=number(spread), size=size, stderr=number(found.stderr))
    )


def _distance_of_subset(
    samples: tuple[NDArray[Any], NDArray[Any]],
    kernel: PairKernel,
    size: int,
    rng: np.random.Generator,
) -> float:
    """Score random `size` rows of either side by their U-statistic; no row is drawn twice."""

    def drawn(rows: NDArray[Any]) -> NDArray[Any]:
        return kernel.prepared(rows[np.sort(rng.choice(len(rows), size, replace=False))])

    def within(x: NDArray[Any]) -> float:
        values: Float = kernel.block(x, x)
        return float(values.sum() - np.trace(values)) / (size * (size - 1.0))

    x, y = (drawn(rows) for rows in samples)
    return within(x) + within(y) - 2.0 * float(kernel.block(x, y).mean())
