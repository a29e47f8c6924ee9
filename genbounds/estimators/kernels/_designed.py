"""Kernel distance of samples that were drawn otherwise than row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.design import Design, Index, drawn, row_design
from genbounds.core.estimate import Estimate, bias_left, skewed, small_sample
from genbounds.core.expansion import FormOfNumbers, RowTerms, WeightedSums, expand
from genbounds.core.two_samples import (
    TwoSamples,
    mixed_square,
    shared_error,
    shared_units,
    with_mixed_term,
)
from genbounds.estimators.kernels._pair_kernels import PairKernel, kernel_blocks
from genbounds.validation import Float

PAIRING_SEED = 20_240_105
"""Fixed, so that random pairs of rows give the same result at every call."""


class WitnessForm(FormOfNumbers):
    """One sample of a kernel distance as a `Form`; a block is the numbers of its rows.

    With r and c the weighted means of the kernel over the sample itself and over the other,
    IF(x) = 2 (r(x) - c(x)) less its mean, and h(x, x') = k(x, x') - r(x) - r(x') + mean r.
    """

    seed = PAIRING_SEED

    def __init__(
        self, rows: NDArray[Any], kernel: PairKernel, design: Design, own: Float, other: Float
    ) -> None:
        super().__init__(len(rows), int(rows.shape[1]))
        weights = design.weights
        self.rows, self.kernel = rows, kernel
        self.bounded, self.grouped = kernel.bounded, design.units < design.n
        self.own, self.witness = own, own - other
        self.mean = float(weights @ own)
        self.shift = float(weights @ self.witness)
        self.sums: _WeightedRows | None = None

    def weighted(self) -> WeightedSums | None:
        """Return empty sums; None for rows whose curvature a few of them decide.

        Those are single rows in an unbounded kernel. Of groups the curvature is needed: without it,
        value and standard error, whose correlation is 0.8, are not shifted together.
        """
        if not (self.bounded or self.grouped):
            return None
        self.sums = _WeightedRows(self)
        return self.sums

    def values(self, rows: Index) -> Float:
        """Return rows as the kernel takes them."""
        return self.kernel.prepared(self.rows[rows])

    def terms(self, block: Index, positions: Index) -> RowTerms:
        """Influence and h(x, x)."""
        x = self.values(block)
        own = self.kernel.pairs(x, x) - 2.0 * self.own[block] + self.mean
        return RowTerms(2.0 * (self.witness[block] - self.shift), own)

    def across(self, one: Index, i: Index, two: Index, j: Index) -> Float:
        """h(x_i, x_j)."""
        a, b = one[i], two[j]
        values = self.kernel.pairs(self.values(a), self.values(b))
        return values - self.own[a] - self.own[b] + self.mean


class _WeightedRows:
    """Coefficients v of all rows, and Σ_ij v_i v_j h(x_i, x_j)."""

    centre = 0.0

    def __init__(self, form: WitnessForm) -> None:
        self.form, self.v = form, np.zeros(form.n)

    def add(self, block: Index, v: Float) -> None:
        self.v[block] += v

    def square(self) -> float:
        form, v, total = self.form, self.v, float(self.v.sum())
        inner = _double_sum(form.rows, form.rows, v, v, form.kernel)
        return inner - 2.0 * total * float(v @ form.own) + total**2 * form.mean


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
    fake, real = rows
    own = _weighted_means(fake, fake, one.weights, kernel)
    other = _weighted_means(fake, real, two.weights, kernel)
    theirs = _weighted_means(real, real, two.weights, kernel)
    back = _weighted_means(real, fake, one.weights, kernel)
    forms = (
        WitnessForm(fake, kernel, one, own, other),
        WitnessForm(real, kernel, two, theirs, back),
    )
    crossed = float(one.weights @ other)

    def between(x: Index, i: Index, y: Index, j: Index) -> Float:
        a, b = x[i], y[j]
        values = kernel.pairs(forms[0].values(a), forms[1].values(b))
        return other[a] + back[b] - values - crossed

    errors = (expand(forms[0], one)[0], expand(forms[1], two)[0])
    samples = TwoSamples(forms, (one, two), between)
    common = shared_units(one, two)
    bias, shared_variance = errors[0].bias + errors[1].bias, 0.0
    if common is not None:
        shared = shared_error(samples, errors, common)
        bias += shared.bias
        shared_variance = shared.variance - errors[0].variance - errors[1].variance
        errors = (
            replace(errors[0], influence=shared.influences[0], curvature=0.0),
            replace(errors[1], influence=shared.influences[1], curvature=0.0),
        )
    else:
        share = 2.0 * mixed_square(samples)
        errors = with_mixed_term(errors, share, bounded=kernel.bounded)
        v, u = (None if form.sums is None else form.sums.v for form in forms)
        if v is not None and u is not None:  # pairs (x, y) belong to both: half of them each
            a, b = float(v.sum()), float(u.sum())
            mixed = float(v @ other) * b + float(u @ back) * a - a * b * crossed
            mixed -= _double_sum(fake, real, v, u, kernel)
            one_error, two_error = errors
            errors = (
                replace(one_error, curvature=one_error.curvature + mixed),
                replace(two_error, curvature=two_error.curvature + mixed),
            )
    value = forms[0].mean + forms[1].mean - 2.0 * crossed
    return Estimate(
        title=kernel.title,
        estimator=estimator,
        method="plug-in" if estimator == "plugin" else "u-statistic",
        value=value if estimator == "plugin" else value - bias,
        sample=skewed(errors[0]),
        reference=skewed(errors[1]),
        shared_variance=shared_variance,
        lower_limit=0.0,
        statistic=kernel.label,
        warnings=(
            *([bias_left(bias)] if estimator == "plugin" else []),
            *small_sample(one.effective, name="generated", units=one.free_units),
            *small_sample(two.effective, name="reference", units=two.free_units),
        ),
        assumptions=(
            f"{drawn(designs[0])} (generated)",
            f"{drawn(designs[1])} (reference)",
            *([f"features have {kernel.moments}"] if kernel.moments else []),
            *kernel.assumptions,
        ),
    )


def _weighted_means(
    rows: NDArray[Any], others: NDArray[Any], weights: Float, kernel: PairKernel
) -> Float:
    """Weighted mean over `others` of the kernel, for each row."""
    means = np.zeros(len(rows))
    for i, j, values in kernel_blocks(rows, others, kernel):
        means[i] += values @ weights[j]
    return means


def _double_sum(
    rows: NDArray[Any], others: NDArray[Any], v: Float, u: Float, kernel: PairKernel
) -> float:
    """Σ_ij v_i u_j k(x_i, y_j)."""
    return float(v @ _weighted_means(rows, others, u, kernel))
