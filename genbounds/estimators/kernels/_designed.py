"""Kernel distance of samples that were drawn otherwise than row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.core.checks import drawn
from genbounds.core.design import Design, Index, row_design
from genbounds.core.estimate import Estimate, skewed
from genbounds.core.expansion import FormOfNumbers, RowTerms, WeightedSums, expand
from genbounds.core.tiles import weighted_sums
from genbounds.core.two_samples import (
    mixed_square,
    shared_error,
    shared_units,
    with_mixed_term,
)
from genbounds.estimators.kernels._pair_kernels import PairKernel, kernel_blocks, upper_blocks
from genbounds.estimators.kernels._rows import kernel_estimate
from genbounds.validation import Float

PAIRING_SEED = 20_240_105
"""Fixed, so that random pairs of rows give the same result at every call."""


class WitnessRows(NamedTuple):
    """Numbers of rows, and the sample that they are of."""

    sample: WitnessForm
    numbers: Index


class WitnessForm(FormOfNumbers):
    """One sample of a kernel distance as a `Form`; a block is `WitnessRows`.

    With r and c the weighted means of the kernel over the sample itself and over the other,
    IF(x) = 2 (r(x) - c(x)) less its mean, and h(x, x') = k(x, x') - r(x) - r(x') + mean r.
    As sums of weighted rows it keeps their coefficients v, for Σ_ij v_i v_j h(x_i, x_j).
    """

    seed = PAIRING_SEED
    centre = 0.0

    def __init__(
        self, kernel: PairKernel, rows: NDArray[Any], design: Design, across_samples: Float
    ) -> None:
        super().__init__(len(rows), int(rows.shape[1]))
        self.kernel, self.rows, self.bounded = kernel, rows, kernel.bounded
        self.own = self.means_over(rows, design.weights)
        self.across_samples = across_samples
        self.mean = float(design.weights @ self.own)
        self.mean_across = float(design.weights @ self.across_samples)
        self.grouped = design.units < design.n
        self.v: Float | None = None

    def block(self, rows: Index) -> WitnessRows:
        """Return the numbers, with their sample."""
        return WitnessRows(self, rows)

    def weighted(self) -> WeightedSums | None:
        """Return empty sums; None for rows whose curvature a few of them decide.

        Those are single rows in an unbounded kernel. Of groups the curvature is needed: without it,
        value and standard error, whose correlation is 0.8, are not shifted together.
        """
        if not (self.bounded or self.grouped):
            return None
        self.v = np.zeros(self.n)
        return self

    def add(self, block: WitnessRows, v: Float) -> None:
        """Add to the coefficients of these rows."""
        assert self.v is not None
        self.v[block.numbers] += v

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j)."""
        assert self.v is not None
        return self.square_of(np.arange(self.n), self.v)

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over the rows with these numbers."""
        x, total = self.rows[rows], float(v.sum())
        inner = float(v @ self.means_over(x, v))
        return inner - 2.0 * total * float(v @ self.own[rows]) + total**2 * self.mean

    def means_over(self, rows: NDArray[Any], weights: Float) -> Float:
        """Weighted mean of the kernel over these rows, for each of them."""
        return weighted_sums(upper_blocks(rows, self.kernel), weights, None)[0]

    def values(self, rows: Index) -> Float:
        """Return rows as the kernel takes them."""
        return self.kernel.prepared(self.rows[rows])

    def terms(self, block: WitnessRows, positions: Index) -> RowTerms:
        """Influence and h(x, x)."""
        rows = block.numbers
        x = self.values(rows)
        own = self.kernel.pairs(x, x) - 2.0 * self.own[rows] + self.mean
        witness = self.own[rows] - self.across_samples[rows]
        return RowTerms(2.0 * (witness - (self.mean - self.mean_across)), own)

    def across(self, one: WitnessRows, i: Index, two: WitnessRows, j: Index) -> Float:
        """h(x_i, x_j), and of a generated and a real row."""
        (x, a), (y, b) = (one.sample, one.numbers[i]), (two.sample, two.numbers[j])
        values = self.kernel.pairs(x.values(a), y.values(b))
        if x is y:
            return values - x.own[a] - x.own[b] + x.mean
        return x.across_samples[a] + y.across_samples[b] - values - x.mean_across


def designed_estimate(
    rows: tuple[NDArray[Any], NDArray[Any]],
    designs: tuple[Design | None, Design | None],
    kernel: PairKernel,
    *,
    estimator: str,
) -> Estimate:
    """Kernel distance of samples that were drawn otherwise than row by row.

    The score is quadratic in the weights of the rows, so that the plug-in less the trace of its
    quadratic part is unbiased: for independent rows it is the U-statistic.
    """
    one, two = (design or row_design(len(x)) for design, x in zip(designs, rows, strict=True))
    blocks = kernel_blocks(*rows, kernel)
    over_real, over_fake = weighted_sums(blocks, one.weights, two.weights)
    fake = WitnessForm(kernel, rows[0], one, over_real)
    real = WitnessForm(kernel, rows[1], two, over_fake)

    errors = [expand(fake, one)[0], expand(real, two)[0]]
    forms, designed = (fake, real), (one, two)
    common = shared_units(one, two)
    bias, shared_variance = errors[0].bias + errors[1].bias, 0.0
    if common is None:
        share = 2.0 * mixed_square(forms, designed)
        mixed = with_mixed_term((errors[0], errors[1]), share, bounded=fake.bounded)
        curvature = _curvature_across(fake, real)
        # Pairs (x, y) belong to both samples, half of them to each.
        errors = [replace(error, curvature=error.curvature + curvature) for error in mixed]
    else:
        shared = shared_error(forms, designed, (errors[0], errors[1]), common)
        bias += shared.bias
        shared_variance = shared.variance - errors[0].variance - errors[1].variance
        errors = [
            replace(error, influence=influence, curvature=0.0)
            for error, influence in zip(errors, shared.influences, strict=True)
        ]
    plugin = fake.mean + real.mean - 2.0 * fake.mean_across
    found = kernel_estimate(
        kernel,
        (plugin, plugin - bias),
        [skewed(error) for error in errors],
        estimator=estimator,
        sizes=[(design.effective, design.free_units) for design in (one, two)],
    )
    drawings = (f"{drawn(designs[0])} (generated)", f"{drawn(designs[1])} (reference)")
    moments = (f"features have {kernel.moments}",) if kernel.moments else ()
    return replace(
        found,
        shared_variance=shared_variance,
        assumptions=(*drawings, *moments, *kernel.assumptions),
    )


def _curvature_across(fake: WitnessForm, real: WitnessForm) -> float:
    """Σ_ij v_i u_j of the mixed part of the expansion; 0 where a sample has no coefficients."""
    v, u = fake.v, real.v
    if v is None or u is None:
        return 0.0
    a, b = float(v.sum()), float(u.sum())
    means = float(v @ fake.across_samples) * b + float(u @ real.across_samples) * a
    over_real, _ = weighted_sums(kernel_blocks(fake.rows, real.rows, fake.kernel), v, u)
    return means - a * b * fake.mean_across - float(v @ over_real)
