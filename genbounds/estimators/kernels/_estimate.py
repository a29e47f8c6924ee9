"""Kernel distance of two samples, however they were drawn: its sums, its bias, its error.

The score is quadratic in the weights of the rows, so that the plug-in less the trace of its
quadratic part is unbiased: of independent rows it is the U-statistic, whose variance is known
exactly. Any other design is expanded in its units (`core.expansion`). Derivation:
docs/explanation/kid.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.core.checks import Checked, drawn, few_rows
from genbounds.core.design import Design, Index
from genbounds.core.estimate import Estimate, SampleError, Tails, bias_left, mean_variance, skewed
from genbounds.core.expansion import FormOfNumbers, RowTerms, WeightedSums, expand, with_mixed_term
from genbounds.core.two_samples import mixed_square, shared_error, shared_units
from genbounds.estimators.kernels._pair_kernels import (
    Block,
    PairKernel,
    Squares,
    kernel_blocks,
    weighted_sums,
)
from genbounds.validation import Float

PAIRING_SEED = 20_240_105
"""Fixed, so that random pairs of rows give the same result at every call."""

CURVED_ROWS = 2048
"""Rows of either side, evenly spaced, whose pairs show how value and variance move together."""


class Within(NamedTuple):
    """Kernel of one sample with itself.

    `others` has the weighted sum of the kernel over all other rows, for each row, `diagonal` its
    k(x, x), and `squares` is the sum of k² over pairs of different rows.
    """

    others: Float
    diagonal: Float
    squares: float

    @classmethod
    def of(cls, rows: NDArray[Any], kernel: PairKernel, weights: Float) -> Within:
        """Sum over the rows of one sample."""
        diagonal, squares = np.empty(len(rows)), Squares(symmetric=True)

        def off_diagonal() -> Iterator[Block]:
            for i, j, values in kernel_blocks(kernel, rows):
                if i == j:
                    diagonal[i] = np.diagonal(values)
                    np.fill_diagonal(values, 0.0)
                yield i, j, values

        others, _ = weighted_sums(squares.through(off_diagonal()), weights)
        return cls(others, diagonal, squares.total)

    @property
    def mean(self) -> float:
        """U-statistic of E k(x, x'), of equal weights."""
        n = self.others.size
        return float(self.others.mean()) * n / (n - 1)

    @property
    def centred_square(self) -> float:
        """Unbiased estimate of the mean square of the doubly centred kernel, of equal weights."""
        n = self.others.size
        sums = n * self.others
        centred = self.squares - 2.0 * float(sums @ sums) / (n - 2)
        centred += float(sums.sum()) ** 2 / ((n - 1) * (n - 2))
        return max(centred / (n * (n - 3.0)), 0.0)


class KernelForm(FormOfNumbers):
    """One sample as a `Form` of E k(x, x'); a block is the numbers of its rows.

    With r the weighted mean of the kernel over all of them, IF(x) = 2 r(x) less its mean, and
    h(x, x') = k(x, x') - r(x) - r(x') + mean r.

    Attributes
    ----------
    own : ndarray of shape (n,)
        r of every row.
    diagonal : ndarray of shape (n,)
        k(x, x).
    mean : float
    """

    def __init__(self, width: int, own: Float, diagonal: Float, weights: Float) -> None:
        super().__init__(own.size, width)
        self.own, self.diagonal, self.mean = own, diagonal, float(weights @ own)

    @abstractmethod
    def pairs(self, i: Index, j: Index) -> Float:
        """k(x_i, x_j) of pairs of rows."""

    def terms(self, block: Any, positions: Index) -> RowTerms:
        """Influence and h(x, x)."""
        own = self.own[block]
        return RowTerms(2.0 * (own - self.mean), self.diagonal[block] - 2.0 * own + self.mean)

    def across(self, one: Any, i: Index, two: Any, j: Index) -> Float:
        """h(x_i, x_j)."""
        a, b = one[i], two[j]
        return np.asarray(self.pairs(a, b) - self.own[a] - self.own[b] + self.mean)


WitnessRows = tuple["WitnessForm", Index]
"""A sample, and numbers of its rows."""


class WitnessForm(KernelForm):
    """One of the two samples of a kernel distance; a block says which, with numbers of rows.

    With c the weighted mean of the kernel over the other sample, IF(x) = 2 (r(x) - c(x)) less its
    mean. As sums of weighted rows it keeps their coefficients v, for Σ_ij v_i v_j h(x_i, x_j).
    """

    seed = PAIRING_SEED
    centre = 0.0

    def __init__(
        self,
        kernel: PairKernel,
        rows: NDArray[Any],
        design: Design,
        within: Within,
        across_samples: Float,
    ) -> None:
        own = within.others + design.weights * within.diagonal
        super().__init__(int(rows.shape[1]), own, within.diagonal, design.weights)
        self.kernel, self.rows, self.bounded = kernel, rows, kernel.bounded
        self.within, self.across_samples = within, across_samples
        self.mean_across = float(design.weights @ across_samples)
        self.grouped = design.units < design.n
        self.v: Float | None = None

    def block(self, rows: Index) -> WitnessRows:
        """Return the numbers, with their sample."""
        return self, rows

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
        self.v[block[1]] += v

    def square(self) -> float:
        """Σ_ij v_i v_j h(x_i, x_j)."""
        assert self.v is not None
        return self.square_of(np.arange(self.n), self.v)

    def square_of(self, rows: Index, v: Float) -> float:
        """Σ_ij v_i v_j h(x_i, x_j) over the rows with these numbers."""
        total = float(v.sum())
        inner = float(v @ weighted_sums(kernel_blocks(self.kernel, self.rows[rows]), v)[0])
        return inner - 2.0 * total * float(v @ self.own[rows]) + total**2 * self.mean

    def pairs(self, i: Index, j: Index) -> Float:
        """k(x_i, x_j) of pairs of rows."""
        return self.kernel.pairs(*(self.kernel.prepared(self.rows[k]) for k in (i, j)))

    def terms(self, block: WitnessRows, positions: Index) -> RowTerms:
        """Influence and h(x, x)."""
        rows = block[1]
        found = super().terms(rows, positions)
        other = self.across_samples[rows] - self.mean_across
        return found._replace(influence=found.influence - 2.0 * other)

    def across(self, one: WitnessRows, i: Index, two: WitnessRows, j: Index) -> Float:
        """h(x_i, x_j), and of a generated and a real row."""
        (x, rows), (y, others) = one, two
        if x is y:
            return KernelForm.across(x, rows, i, others, j)
        a, b = rows[i], others[j]
        values = self.kernel.pairs(*map(self.kernel.prepared, (x.rows[a], y.rows[b])))
        return x.across_samples[a] + y.across_samples[b] - values - x.mean_across


Parts = tuple[float, float, Sequence[SampleError], float]
"""Debiased value, bias of the plug-in, errors of both samples, and what units in both add."""


def kernel_estimate(
    seen: tuple[Checked, Checked],
    kernel: PairKernel,
    real_within: Within,
    *,
    by_rows: bool,
    estimator: str,
) -> Estimate:
    """Estimate the distance of a generated and a real sample, before any level is chosen.

    `real_within`: the sums of the real one; `by_rows`: whether rows of both are independent.
    """
    one, two = (sample.drawing for sample in seen)
    fake, real = (sample.rows for sample in seen)
    squares = Squares(symmetric=False)
    blocks = squares.through(kernel_blocks(kernel, fake, real))
    over_real, over_fake = weighted_sums(blocks, one.weights, two.weights)
    within = Within.of(fake, kernel, one.weights)
    forms = (
        WitnessForm(kernel, fake, one, within, over_real),
        WitnessForm(kernel, real, two, real_within, over_fake),
    )
    found = _by_rows(forms, squares.total) if by_rows else _by_units(forms, (one, two))
    value, bias, errors, shared_variance = found
    sample, reference = (
        replace(skewed(error), units=each.drawing.labels)
        for error, each in zip(errors, seen, strict=True)
    )
    left_in = estimator == "plugin"
    return Estimate(
        title=kernel.title,
        estimator=estimator,
        method="plug-in" if left_in else "u-statistic",
        value=value + bias if left_in else value,
        sample=replace(sample, row_ids=seen[0].single_ids),
        reference=reference,
        shared_variance=shared_variance,
        lower_limit=0.0,
        statistic=kernel.label,
        warnings=(*([bias_left(bias)] if left_in else []), *few_rows(*seen)),
        assumptions=_assumptions(seen, kernel, by_rows=by_rows),
    )


def _assumptions(
    seen: tuple[Checked, Checked], kernel: PairKernel, *, by_rows: bool
) -> tuple[str, ...]:
    if by_rows:
        moments = f" and have {kernel.moments}" if kernel.moments else ""
        return (f"the rows are independent{moments}", *kernel.assumptions)
    drawings = (f"{drawn(one.design)} ({one.what})" for one in seen)
    moments = f"features have {kernel.moments}"
    return (*drawings, *([moments] if kernel.moments else []), *kernel.assumptions)


def _by_rows(forms: tuple[WitnessForm, WitnessForm], squares: float) -> Parts:
    """Independent rows; `squares`: sum of k² over the pairs of a row of either sample."""
    (n, m), means = (form.n for form in forms), [form.within.mean for form in forms]
    one, two = (form.across_samples for form in forms)
    value = sum(means) - 2.0 * forms[0].mean_across
    diagonals = [float(form.within.diagonal.mean()) for form in forms]
    bias = (diagonals[0] - means[0]) / n + (diagonals[1] - means[1]) / m
    # Unbiased mean square of the doubly centred kernel.
    centred = squares - m * float(one @ one) - n * float(two @ two)
    centred += n * m * forms[0].mean_across ** 2
    crossed = max(centred / ((n - 1.0) * (m - 1.0)), 0.0)
    errors = _row_error(forms[0], crossed, m), _row_error(forms[1], crossed, n)
    return value, bias, _curved(forms, errors), 0.0


def _row_error(form: WitnessForm, crossed: float, others: int) -> SampleError:
    """Error due to one sample, with the mean square across, `crossed`, to `others`.

    The noise of the pairs (x, y) belongs to both samples: half of it is booked on either.
    """
    n, sums = form.n, form.n * form.within.others
    # By n - 2, not the n - 1 others, as the jackknife has it: a term f(x) + f(x') of the kernel,
    # which cancels in the distance, is then f(x) and a constant in both parts, and cancels here.
    witness = sums / (n - 2) - form.across_samples
    witness -= witness.mean()
    # A far row that stands once cancels in the distance, and two would not: its tail is in f(x).
    tail = sums / (n - 1) - form.across_samples
    square, shared = form.within.centred_square, 2.0 * crossed / (n * others)
    # The estimated witness carries the noise of the averages it is made of.
    noise = square / (n - 2) + crossed / others
    first = max(float(np.var(witness, ddof=1)) - noise, 0.0)
    second = 2.0 * square / (n * (n - 1.0))
    return SampleError(
        n=n,
        variance=4.0 * first / n + second + shared,
        degrees_of_freedom=n - 1.0,
        influence=2.0 * witness,
        quadratic_variance=second,
        mixed_variance=shared,
        pair_variance=second,
        tails=Tails.of(2.0 * (tail - tail.mean())),
    )


def _curved(
    forms: tuple[WitnessForm, WitnessForm], errors: tuple[SampleError, SampleError]
) -> list[SampleError]:
    """Add the mean of IF(x) IF(x') h(x, x') over pairs to either side; h is the centred kernel.

    The pairs (x, y) belong to both samples: half of them is booked on either.
    """
    kernel, sides, found = forms[0].kernel, [], []
    for form, error in zip(forms, errors, strict=True):
        assert error.influence is not None
        n, k = form.n, min(form.n, CURVED_ROWS)
        chosen = np.linspace(0, n - 1, k).astype(int)
        x, g = kernel.prepared(form.rows[chosen]), error.influence[chosen]
        g -= g.mean()
        values = kernel.block(x, x)
        means = values.mean(axis=0)
        diagonal = np.diagonal(values) - 2.0 * means + means.mean()
        alone = float(g @ values @ g - (g**2) @ diagonal) / (k * (k - 1.0)) / n**2
        first = mean_variance(error.influence)
        lean = alone / first if first > 0.0 else 0.0
        found.append(replace(error, curvature=alone, lean=lean))
        sides.append((x, g / (k * n)))
    (a, one), (b, two) = sides
    crossed = float(one @ kernel.block(a, b) @ two)
    return [replace(error, curvature=error.curvature - crossed) for error in found]


def _by_units(forms: tuple[WitnessForm, WitnessForm], designs: tuple[Design, Design]) -> Parts:
    """Independent units of any design."""
    fake, real = forms
    one, two = (expand(*each)[0] for each in zip(forms, designs, strict=True))
    bias, shared_variance = one.bias + two.bias, 0.0
    common = shared_units(*designs)
    if common is None:
        # The pairs (x, y) belong to both samples, half of them to each.
        share, curvature = 2.0 * mixed_square(forms, designs), _curvature_across(fake, real)
        one, two = (
            replace(error, curvature=error.curvature + curvature)
            for error in with_mixed_term((one, two), share, bounded=fake.bounded)
        )
    else:
        shared = shared_error(forms, designs, (one, two), common)
        bias += shared.bias
        shared_variance = shared.variance - one.variance - two.variance
        one, two = (
            replace(error, influence=influence, curvature=0.0)
            for error, influence in zip((one, two), shared.influences, strict=True)
        )
    plugin = fake.mean + real.mean - 2.0 * fake.mean_across
    return plugin - bias, bias, (one, two), shared_variance


def _curvature_across(fake: WitnessForm, real: WitnessForm) -> float:
    """Σ_ij v_i u_j of the mixed part of the expansion; 0 where a sample has no coefficients."""
    v, u = fake.v, real.v
    if v is None or u is None:
        return 0.0
    a, b = float(v.sum()), float(u.sum())
    means = float(v @ fake.across_samples) * b + float(u @ real.across_samples) * a
    over_real, _ = weighted_sums(kernel_blocks(fake.kernel, fake.rows, real.rows), v, u)
    return means - a * b * fake.mean_across - float(v @ over_real)
