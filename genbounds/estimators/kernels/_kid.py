"""Kernel Inception distance: the squared MMD of a polynomial kernel, by its U-statistic.

With a kernel k, x generated and y real,

    KID = E k(x, x') + E k(y, y') - 2 E k(x, y).

Averages over pairs of *different* rows are unbiased at every sample size. What a row adds to first
order is twice its witness w(x) = E k(x, x') - E k(x, y); where both distributions are equal the
witness is constant, and the variance is that of the doubly centred kernels alone. Derivation:
docs/kid.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb, log10, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._design import Design, Index, drawn, row_design
from genbounds.estimators._estimate import (
    Estimate,
    SampleError,
    Tails,
    bias_left,
    heavy_tails,
    small_sample,
)
from genbounds.estimators._inspect import Inspected, inspect, leaked
from genbounds.estimators._moments import Moments, is_narrow
from genbounds.estimators._scale import power_of, scaled_back, unit_of
from genbounds.estimators._second_order import NumberedRows, RowTerms, expand_design
from genbounds.estimators._two_samples import (
    Side,
    mixed_square,
    shared_error,
    shared_units,
    with_mixed_term,
)
from genbounds.estimators.kernels._kernels import PolynomialKernel
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_features,
    check_finite,
    check_open_unit,
    check_same_dimension,
)

PAIRING_SEED = 20_240_105
"""Fixed, so that random pairs of rows give the same result at every call."""

ESTIMATORS = ("debiased", "plugin")

MINIMUM = 4
"""Minimum number of rows: the unbiased variance of the doubly centred kernel divides by n - 3."""

BLOCK_ROWS = 1024
"""Side of the square blocks of the kernel matrix that exist at any one time."""

CURVED_ROWS = 2048
"""Rows of either side, evenly spaced, whose pairs show how value and variance move together."""

SINGLE_ROWS = 4096
"""Above so many rows on both sides, kernels of float32 features are evaluated in float32."""

SINGLE_DECADES = 30
"""Decades that sums of squared kernels may reach in float32."""

DECADES = 250
"""Decades that fourth powers of kernels, squared variances, may reach in float64."""


def kernel_inception_distance(
    fake: Any,
    real: Any,
    *,
    estimator: str = "debiased",
    degree: int = 3,
    gamma: float | None = None,
    offset: float = 1.0,
    level: float = 0.95,
) -> Score:
    """Kernel Inception distance (KID): squared MMD with the kernel (γ x·y + offset)^degree.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features, at least 4 independent rows.
    real : array_like of shape (m, d)
        Reference features, at least 4 independent rows.
    estimator : {"debiased", "plugin"}
        "debiased" averages over pairs of different rows (the U-statistic; unbiased); "plugin"
        includes each row with itself.
    degree : int
    gamma : float, optional
        γ; one over the number of features if None, as published.
    offset : float
        Non-negative.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Score
        In units of the kernel. Zero exactly if the two distributions agree in all mixed moments up
        to `degree`. A negative estimate is reported as 0, with a caution.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or `Moments` are given; or if the samples
        come from files that name different encoders.

    Notes
    -----
    All pairs are used, in blocks: memory does not grow with n, time grows with n². The published
    habit of averaging over random subsets of 1,000 rows has a larger variance and its spread over
    subsets is no standard error: subsets share rows.

    References
    ----------
    .. [1] M. Bińkowski et al., "Demystifying MMD GANs", ICLR 2018, §4 (the KID).
    .. [2] A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Lemma 6.
    .. [3] G. J. Székely and M. L. Rizzo, "Partial distance correlation with methods for
       dissimilarities", Ann. Statist. 42, 2014 (unbiased double centring).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = rng.normal(1.0, size=(500, 4)), rng.normal(size=(500, 4))
    >>> score = gb.kernel_inception_distance(fake, real)
    >>> score.low > 0.0
    True
    """
    level = check_open_unit("level", level)
    reference = KernelReference(real, degree=degree, gamma=gamma, offset=offset)
    found = reference.estimate(fake, estimator=estimator)
    origins = {"`fake`": origin_of(fake), "`real`": origin_of(real)}
    return found.made_from(origins).score(level)


class KernelReference:
    """Reference features prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d)
    degree, gamma, offset
        As in `kernel_inception_distance`.
    """

    def __init__(
        self, real: Any, *, degree: int = 3, gamma: float | None = None, offset: float = 1.0
    ) -> None:
        self._seen = _inspected("real", real)
        self._rows, self._design = self._seen.rows, self._seen.design
        self._origin = origin_of(real)
        d = self._rows.shape[1]
        given = PolynomialKernel(degree=degree, gamma=gamma, offset=offset)
        self._kernel = _Kernel(given.degree, given.gamma or 1.0 / d, given.offset)
        self._largest = _largest("real", self._rows)
        self._within: dict[_Kernel, _Within] = {}

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self._rows.shape[1])

    @property
    def n(self) -> int:
        """Reference samples."""
        return len(self._rows)

    @property
    def v_statistic(self) -> float:
        """Mean of the kernel over all pairs of reference rows, each with itself included."""
        within = self._prepared(self._kernel)
        return (within.mean * (within.n - 1) + within.diagonal) / within.n

    def pair_sum(self, one: Any, two: Any = None) -> float:
        """Sum of the kernel, less its constant, over all pairs of a row of `one` and one of `two`.

        Parameters
        ----------
        one : array_like of shape (n, d)
        two : array_like of shape (k, d), optional
            By default the reference rows.

        Returns
        -------
        float
        """
        rows = check_features("one", one, minimum=1)
        others = self._rows if two is None else check_features("two", two, minimum=1)
        return sum(
            float(self._kernel.block(a, b).sum(dtype=np.float64))
            for _, a in _blocks(rows, self._kernel)
            for _, b in _blocks(others, self._kernel)
        )

    def _prepared(self, kernel: _Kernel) -> _Within:
        if kernel not in self._within:
            self._within = {kernel: _Within.of(self._rows, kernel)}
        return self._within[kernel]

    def estimate(self, fake: Any, *, estimator: str = "debiased") -> Estimate:
        """Estimate of `fake` with its variance and influences, before any level is chosen.

        `estimator` as for `kernel_inception_distance`.
        """
        check_choice("estimator", estimator, ESTIMATORS)
        check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        seen = _inspected("fake", fake)
        rows, design = seen.rows, seen.design
        check_same_dimension("fake", rows.shape[1], "real", self.d)
        kernel = self._kernel.for_rows(max(self._largest, _largest("fake", rows)))
        if self._must_expand(design):
            found = designed_kid(
                (rows, self._rows), (design, self._design), kernel, estimator=estimator
            )
            return self._finished(found, seen, kernel)
        found = _estimate(
            _Within.of(rows, kernel),
            self._prepared(kernel),
            _Between.of(rows, self._rows, kernel),
            estimator=estimator,
            statistic=kernel.label,
        )
        own, other = _curvatures(found, rows, self._rows, kernel)
        found = replace(
            found,
            sample=replace(found.sample, curvature=own, units=_labels(design)),
            reference=replace(found.reference, curvature=other, units=_labels(self._design)),
        )
        return self._finished(found, seen, kernel)

    def _finished(self, found: Estimate, seen: Inspected, kernel: _Kernel) -> Estimate:
        """Add what the samples show of how they were drawn, in the units of the features."""
        warnings = (
            *seen.warnings,
            *self._seen.warnings,
            *leaked(seen.ids, self._seen.ids),
            *heavy_tails(found),
            *found.warnings,
        )
        sample = replace(found.sample, row_ids=seen.ids)
        found = replace(found, sample=sample, warnings=warnings)
        return scaled_back(found, kernel.unit, power=kernel.power)

    def _must_expand(self, design: Design | None) -> bool:
        """Whether the samples are more than independent rows of their own."""
        common = shared_units(design, self._design)
        designs = (design, self._design)
        plain = all(one is None or one.independent for one in designs)
        return not plain or (common is not None and common.size > 1)


def _labels(design: Design | None) -> NDArray[Any] | None:
    return None if design is None else design.labels


def _inspected(name: str, x: Any) -> Inspected:
    if isinstance(x, Moments):
        raise InputError(
            "is given by its moments; the kernel distance needs the features themselves.",
            argument=name,
        )
    return inspect(name, x, minimum=MINIMUM, what="generated" if name == "fake" else "reference")


def _largest(name: str, rows: NDArray[Any]) -> float:
    """Check the rows; return the largest length of one."""
    largest = 0.0
    for start in range(0, len(rows), BLOCK_ROWS):
        with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
            block: Float = np.array(rows[start : start + BLOCK_ROWS], dtype=np.float64)
        check_finite(name, block, first_row=start)
        entry = float(np.abs(block).max())
        if entry > largest / sqrt(block.shape[1]):  # else no row of it can be longer
            squares = ((block / entry) ** 2).sum(axis=1)
            largest = max(largest, entry * sqrt(float(squares.max())))
    return largest


@dataclass(frozen=True, slots=True)
class _Kernel:
    """(γ x·y + offset)^degree - offset^degree on blocks of rows that were divided by `unit`.

    The constant cancels in the distance, whose last digits it would cost where features are small.
    What is left is divided by ``unit**power``, of which the remaining powers of the unit are no
    larger than 1.
    """

    degree: int
    gamma: float
    offset: float
    unit: float = 1.0
    in_single: bool = True

    @property
    def label(self) -> str:
        return (
            f"KID, polynomial kernel, degree {self.degree}, γ {self.gamma:.10g}, "
            f"offset {self.offset:g}"
        )

    @property
    def power(self) -> int:
        """Power of the features that the kernel grows with, at their extreme size."""
        return 2 if self.unit < 1.0 and self.offset > 0.0 else 2 * self.degree

    def for_rows(self, largest: float) -> _Kernel:
        """Choose unit and precision for rows of no more than that length."""
        size = sqrt(self.gamma) * largest
        unit = unit_of(size, decades=DECADES / (8.0 * self.degree))
        in_single = size == 0.0 or 4.0 * self.degree * abs(log10(size)) <= SINGLE_DECADES
        return replace(self, unit=unit, in_single=in_single)

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        base: NDArray[Any] = a @ b.T
        base *= base.dtype.type(self.gamma)
        return self._polynomial(base)

    def pairs(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        """Kernel of each row of `a` with that of `b`."""
        base: Float = np.einsum("ij,ij->i", a, b) * self.gamma
        return self._polynomial(base)

    def _polynomial(self, base: NDArray[Any]) -> NDArray[Any]:
        out: NDArray[Any] = base * base.dtype.type(self._coefficient(self.degree))
        for k in range(self.degree - 1, 0, -1):
            out += base.dtype.type(self._coefficient(k))
            out *= base
        return out

    def _coefficient(self, k: int) -> float:
        """Of (γ x·y)^k."""
        share = power_of(self.unit, 2 * k - self.power)
        return comb(self.degree, k) * self.offset ** (self.degree - k) * share


@dataclass(frozen=True, slots=True)
class _Within:
    """Kernel of one sample with itself.

    `sums` are row sums without the diagonal, `squares` the sum of k² off the diagonal, `diagonal`
    the mean of k(x, x).
    """

    sums: Float
    squares: float
    diagonal: float

    @classmethod
    def of(cls, rows: NDArray[Any], kernel: _Kernel) -> _Within:
        sums, squares, diagonal = np.zeros(len(rows)), 0.0, 0.0
        for i, a in _blocks(rows, kernel):
            for j, b in _blocks(rows, kernel, first=i.start):
                values = kernel.block(a, b)
                if i == j:
                    diagonal += float(np.trace(values))
                    np.fill_diagonal(values, 0.0)
                sums[i] += values.sum(axis=1, dtype=np.float64)
                total = float(np.einsum("ij,ij->i", values, values).sum(dtype=np.float64))
                squares += total
                if i != j:
                    sums[j] += values.sum(axis=0, dtype=np.float64)
                    squares += total
        return cls(sums, squares, diagonal / len(rows))

    @property
    def n(self) -> int:
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
class _Between:
    """Kernel of two samples: sums over the real rows, over the generated rows, and of k²."""

    over_real: Float
    over_fake: Float
    squares: float

    @classmethod
    def of(cls, fake: NDArray[Any], real: NDArray[Any], kernel: _Kernel) -> _Between:
        over_real, over_fake, squares = np.zeros(len(fake)), np.zeros(len(real)), 0.0
        for i, a in _blocks(fake, kernel):
            for j, b in _blocks(real, kernel):
                values = kernel.block(a, b)
                over_real[i] += values.sum(axis=1, dtype=np.float64)
                over_fake[j] += values.sum(axis=0, dtype=np.float64)
                squares += float(np.einsum("ij,ij->i", values, values).sum(dtype=np.float64))
        return cls(over_real, over_fake, squares)

    @property
    def mean(self) -> float:
        return float(self.over_real.mean()) / self.over_fake.size

    @property
    def centred_square(self) -> float:
        """Unbiased estimate of the mean square of the doubly centred kernel."""
        n, m = self.over_real.size, self.over_fake.size
        centred = self.squares - float(self.over_real @ self.over_real) / m
        centred += -float(self.over_fake @ self.over_fake) / n + n * m * self.mean**2
        return max(centred / ((n - 1.0) * (m - 1.0)), 0.0)


def _blocks(
    rows: NDArray[Any], kernel: _Kernel, *, first: int = 0
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield slices of rows with a copy of each, divided by the unit."""
    single = kernel.in_single and is_narrow(rows) and len(rows) > SINGLE_ROWS
    for start in range(first, len(rows), BLOCK_ROWS):
        part = slice(start, min(start + BLOCK_ROWS, len(rows)))
        yield part, _rescaled(rows[part], kernel, np.float32 if single else np.float64)


def _rescaled(rows: NDArray[Any], kernel: _Kernel, dtype: type = np.float64) -> NDArray[Any]:
    block: NDArray[Any] = np.array(rows, dtype=dtype)
    if kernel.unit != 1.0:
        block /= kernel.unit
    return block


def _estimate(
    fake: _Within, real: _Within, between: _Between, *, estimator: str, statistic: str
) -> Estimate:
    n, m = fake.n, real.n
    value = fake.mean + real.mean - 2.0 * between.mean
    bias = (fake.diagonal - fake.mean) / n + (real.diagonal - real.mean) / m
    warnings: tuple[Diagnostic, ...] = ()
    if estimator == "plugin":
        value += bias
        warnings = (bias_left(bias),)
    crossed = between.centred_square
    # The noise of the pairs (x, y) belongs to both samples: half of it is booked on either.
    shared = 2.0 * crossed / (n * m)
    errors = []
    for side, against, others in ((fake, between.over_real, m), (real, between.over_fake, n)):
        witness = side.sums / (side.n - 1) - against / others
        witness -= witness.mean()
        own = side.centred_square
        # The estimated witness carries the noise of the averages it is made of.
        noise = own * (side.n - 2) / (side.n - 1) ** 2 + crossed / others
        first = max(float(np.var(witness, ddof=1)) - noise, 0.0)
        second = 2.0 * own / (side.n * (side.n - 1.0))
        variance = 4.0 * first / side.n + second
        influence = 2.0 * witness
        errors.append(
            SampleError(
                n=side.n,
                variance=variance + shared,
                degrees_of_freedom=side.n - 1.0,
                influence=influence,
                skewness=float((influence**3).mean()) / side.n**2,
                quadratic_variance=second,
                mixed_variance=shared,
                tails=Tails.of(influence),
            )
        )
    return Estimate(
        title="kernel Inception distance",
        estimator=estimator,
        method="plug-in" if estimator == "plugin" else "u-statistic",
        value=value,
        sample=errors[0],
        reference=errors[1],
        lower_limit=0.0,
        statistic=statistic,
        warnings=(
            *warnings,
            *small_sample(n, name="generated"),
            *small_sample(m, name="reference"),
        ),
        assumptions=("the rows are independent and have finite sixth moments",),
    )


class WitnessRows(NumberedRows):
    """One sample of a kernel distance as a `QuadraticForm`; a block is the numbers of its rows.

    With r and c the weighted means of the kernel over the sample itself and over the other,
    IF(x) = 2 (r(x) - c(x)) less its mean, and h(x, x') = k(x, x') - r(x) - r(x') + mean r.
    """

    seed = PAIRING_SEED

    def __init__(
        self, rows: NDArray[Any], kernel: _Kernel, weights: Float, own: Float, other: Float
    ) -> None:
        self.rows, self.kernel = rows, kernel
        self.own, self.witness = own, own - other
        self.mean = float(weights @ own)
        self.shift = float(weights @ self.witness)
        self.n = len(rows)

    @property
    def width(self) -> int:
        """Numbers a row."""
        return int(self.rows.shape[1])

    def values(self, rows: Index) -> Float:
        """Return rows as the kernel takes them."""
        return _rescaled(self.rows[rows], self.kernel)

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


def designed_kid(
    rows: tuple[NDArray[Any], NDArray[Any]],
    designs: tuple[Design | None, Design | None],
    kernel: _Kernel,
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
        WitnessRows(fake, kernel, one.weights, own, other),
        WitnessRows(real, kernel, two.weights, theirs, back),
    )
    crossed = float(one.weights @ other)

    def between(x: Index, i: Index, y: Index, j: Index) -> Float:
        a, b = x[i], y[j]
        values = kernel.pairs(forms[0].values(a), forms[1].values(b))
        return other[a] + back[b] - values - crossed

    errors = (expand_design(forms[0], one)[0], expand_design(forms[1], two)[0])
    sides = Side(forms[0], one), Side(forms[1], two)
    common = shared_units(one, two)
    bias, shared_variance = errors[0].bias + errors[1].bias, 0.0
    if common is not None and common.size > 1:
        shared = shared_error(sides, errors, common, between)
        bias += shared.bias
        shared_variance = shared.variance - errors[0].variance - errors[1].variance
        errors = (
            replace(errors[0], influence=shared.influences[0]),
            replace(errors[1], influence=shared.influences[1]),
        )
    else:
        errors = with_mixed_term(errors, 2.0 * mixed_square(*sides, between))
    value = forms[0].mean + forms[1].mean - 2.0 * crossed
    return Estimate(
        estimator=estimator,
        method="plug-in" if estimator == "plugin" else "u-statistic",
        value=value if estimator == "plugin" else value - bias,
        sample=_skewed(errors[0]),
        reference=_skewed(errors[1]),
        shared_variance=shared_variance,
        lower_limit=0.0,
        statistic=kernel.label,
        warnings=(
            *([bias_left(bias)] if estimator == "plugin" else []),
            *small_sample(one.effective, name="generated"),
            *small_sample(two.effective, name="reference"),
        ),
        assumptions=(
            f"{drawn(designs[0])} (generated)",
            f"{drawn(designs[1])} (reference)",
            "features have finite sixth moments",
        ),
    )


def _weighted_means(
    rows: NDArray[Any], others: NDArray[Any], weights: Float, kernel: _Kernel
) -> Float:
    """Weighted mean over `others` of the kernel, for each row."""
    means = np.zeros(len(rows))
    for i, a in _blocks(rows, kernel):
        for j, b in _blocks(others, kernel):
            means[i] += kernel.block(a, b) @ weights[j]
    return means


def _skewed(error: SampleError) -> SampleError:
    """Add the third cumulant of the linear part, from the influence of every unit."""
    if error.influence is None:
        return error
    return replace(error, skewness=float((error.influence**3).mean()) / error.influence.size**2)


def _curvatures(
    found: Estimate, fake: NDArray[Any], real: NDArray[Any], kernel: _Kernel
) -> tuple[float, float]:
    """Mean of IF(x) IF(x') h(x, x') over pairs, of either side; h is the centred kernel.

    The pairs (x, y) belong to both samples: half of them is booked on either.
    """
    sides, own = [], []
    for rows, influence in ((fake, found.sample.influence), (real, found.reference.influence)):
        assert influence is not None
        n, k = len(rows), min(len(rows), CURVED_ROWS)
        chosen = np.linspace(0, n - 1, k).astype(int)
        x, g = _rescaled(rows[chosen], kernel), influence[chosen]
        g -= g.mean()
        values = kernel.block(x, x)
        means = values.mean(axis=0)
        diagonal = np.diagonal(values) - 2.0 * means + means.mean()
        own.append(float(g @ values @ g - (g**2) @ diagonal) / (k * (k - 1.0)) / n**2)
        sides.append((x, g / (k * n)))
    (a, one), (b, two) = sides
    crossed = float(one @ kernel.block(a, b) @ two)
    return own[0] - crossed, own[1] - crossed
