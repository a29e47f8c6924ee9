"""Kernel distance of independent rows: sums over pairs, and the exact variance of the U-statistic.

Derivation: docs/explanation/kid.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.estimate import (
    Estimate,
    SampleError,
    Tails,
    bias_left,
    mean_variance,
    small_sample,
)
from genbounds.estimators.kernels._pair_kernels import PairKernel, kernel_blocks, upper_blocks
from genbounds.validation import Float

CURVED_ROWS = 2048
"""Rows of either side, evenly spaced, whose pairs show how value and variance move together."""


def _square(values: NDArray[Any]) -> float:
    return float(np.einsum("ij,ij->i", values, values).sum(dtype=np.float64))


@dataclass(frozen=True, slots=True)
class Within:
    """Kernel of one sample with itself.

    `sums` are row sums without the diagonal, `squares` the sum of k² off the diagonal, `diagonal`
    the mean of k(x, x).
    """

    sums: Float
    squares: float
    diagonal: float

    @classmethod
    def of(cls, rows: NDArray[Any], kernel: PairKernel) -> Within:
        """Sum over the rows of one sample."""
        sums, squares, diagonal = np.zeros(len(rows)), 0.0, 0.0
        for i, j, values in upper_blocks(rows, kernel):
            if i == j:
                diagonal += float(np.trace(values))
                np.fill_diagonal(values, 0.0)
            sums[i] += values.sum(axis=1, dtype=np.float64)
            squares += (total := _square(values))
            if i != j:
                sums[j] += values.sum(axis=0, dtype=np.float64)
                squares += total
        return cls(sums, squares, diagonal / len(rows))

    @property
    def n(self) -> int:
        """Rows."""
        return self.sums.size

    @property
    def mean(self) -> float:
        """U-statistic of E k(x, x')."""
        return float(self.sums.mean()) / (self.n - 1)

    @property
    def centred_square(self) -> float:
        """Unbiased estimate of the mean square of the doubly centred kernel."""
        n = self.n
        total = float(self.sums.sum())
        centred = self.squares - 2.0 * float(self.sums @ self.sums) / (n - 2)
        centred += total**2 / ((n - 1) * (n - 2))
        return max(centred / (n * (n - 3.0)), 0.0)


@dataclass(frozen=True, slots=True)
class Between:
    """Kernel of two samples: sums over the real rows, over the generated rows, and of k²."""

    over_real: Float
    over_fake: Float
    squares: float

    @classmethod
    def of(cls, fake: NDArray[Any], real: NDArray[Any], kernel: PairKernel) -> Between:
        """Sum over all pairs of two samples."""
        over_real, over_fake, squares = np.zeros(len(fake)), np.zeros(len(real)), 0.0
        for i, j, values in kernel_blocks(fake, real, kernel):
            over_real[i] += values.sum(axis=1, dtype=np.float64)
            over_fake[j] += values.sum(axis=0, dtype=np.float64)
            squares += _square(values)
        return cls(over_real, over_fake, squares)

    @property
    def mean(self) -> float:
        """Mean of the kernel."""
        return float(self.over_real.mean()) / self.over_fake.size

    @property
    def centred_square(self) -> float:
        """Unbiased estimate of the mean square of the doubly centred kernel."""
        n, m = self.over_real.size, self.over_fake.size
        centred = self.squares - float(self.over_real @ self.over_real) / m
        centred += -float(self.over_fake @ self.over_fake) / n + n * m * self.mean**2
        return max(centred / ((n - 1.0) * (m - 1.0)), 0.0)


def rows_estimate(
    fake: Within, real: Within, between: Between, *, kernel: PairKernel, estimator: str
) -> Estimate:
    """Estimate the distance of independent rows from its sums."""
    n, m = fake.n, real.n
    value = fake.mean + real.mean - 2.0 * between.mean
    bias = (fake.diagonal - fake.mean) / n + (real.diagonal - real.mean) / m
    crossed = between.centred_square
    found = kernel_estimate(
        kernel,
        (value + bias, value),
        [
            _sample_error(fake, between.over_real, crossed, m),
            _sample_error(real, between.over_fake, crossed, n),
        ],
        estimator=estimator,
        sizes=[(n, math.inf), (m, math.inf)],
    )
    moments = f" and have {kernel.moments}" if kernel.moments else ""
    return replace(found, assumptions=(f"the rows are independent{moments}", *kernel.assumptions))


def _sample_error(own: Within, across: Float, crossed: float, others: int) -> SampleError:
    """Error due to one sample, from its sums over `others` and the mean square across, `crossed`.

    The noise of the pairs (x, y) belongs to both samples: half of it is booked on either.
    """
    n = own.n
    # By n - 2, not the n - 1 others, as the jackknife has it: a term f(x) + f(x') of the kernel,
    # which cancels in the distance, is then f(x) and a constant in both parts, and cancels here.
    witness = own.sums / (n - 2) - across / others
    witness -= witness.mean()
    # A far row that stands once cancels in the distance, and two would not: its tail is in f(x).
    kept = own.sums / (n - 1) - across / others
    square, shared = own.centred_square, 2.0 * crossed / (n * others)
    # The estimated witness carries the noise of the averages it is made of.
    noise = square / (n - 2) + crossed / others
    first = max(float(np.var(witness, ddof=1)) - noise, 0.0)
    second = 2.0 * square / (n * (n - 1.0))
    influence = 2.0 * witness
    return SampleError(
        n=n,
        variance=4.0 * first / n + second + shared,
        degrees_of_freedom=n - 1.0,
        influence=influence,
        skewness=float((influence**3).mean()) / n**2,
        quadratic_variance=second,
        mixed_variance=shared,
        tails=Tails.of(2.0 * (kept - kept.mean())),
    )


def kernel_estimate(
    kernel: PairKernel,
    values: tuple[float, float],
    errors: Sequence[SampleError],
    *,
    estimator: str,
    sizes: Sequence[tuple[float, float]],
) -> Estimate:
    """Make the estimate from plug-in and debiased value, with the errors of both samples.

    `sizes`: samples and independent units of either.
    """
    plugin, debiased = values
    few = [
        warning
        for name, (n, units) in zip(("generated", "reference"), sizes, strict=True)
        for warning in small_sample(n, name=name, units=units)
    ]
    left_in = estimator == "plugin"
    return Estimate(
        title=kernel.title,
        estimator=estimator,
        method="plug-in" if left_in else "u-statistic",
        value=plugin if left_in else debiased,
        sample=errors[0],
        reference=errors[1],
        lower_limit=0.0,
        statistic=kernel.label,
        warnings=(*([bias_left(plugin - debiased)] if left_in else []), *few),
    )


def curved(
    found: Estimate, fake: NDArray[Any], real: NDArray[Any], kernel: PairKernel
) -> tuple[SampleError, SampleError]:
    """Add the mean of IF(x) IF(x') h(x, x') over pairs to either side; h is the centred kernel.

    The pairs (x, y) belong to both samples: half of them is booked on either.
    """
    sides, own = [], []
    errors = found.sample, found.reference
    influences = [error.influence for error in errors if error.influence is not None]
    for rows, influence in zip((fake, real), influences, strict=True):
        n, k = len(rows), min(len(rows), CURVED_ROWS)
        chosen = np.linspace(0, n - 1, k).astype(int)
        x, g = kernel.prepared(rows[chosen]), influence[chosen]
        g -= g.mean()
        values = kernel.block(x, x)
        means = values.mean(axis=0)
        diagonal = np.diagonal(values) - 2.0 * means + means.mean()
        own.append(float(g @ values @ g - (g**2) @ diagonal) / (k * (k - 1.0)) / n**2)
        sides.append((x, g / (k * n)))
    (a, one), (b, two) = sides
    crossed = float(one @ kernel.block(a, b) @ two)
    sample, reference = (
        replace(
            error,
            curvature=alone - crossed,
            lean=alone / first if first > 0.0 else 0.0,
            pair_variance=error.quadratic_variance,
        )
        for error, first, alone in zip(errors, map(mean_variance, influences), own, strict=True)
    )
    return sample, reference
