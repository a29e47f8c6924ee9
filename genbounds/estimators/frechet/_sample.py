"""One sample of a Fréchet distance, or exact moments, with what the distance needs of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.checks import Inspected, inspect
from genbounds.core.design import Design
from genbounds.core.linalg import factor, triangle
from genbounds.core.moments import (
    Moments,
    block_size,
    is_narrow,
    random_groups,
    row_blocks,
    without,
)
from genbounds.core.tiles import ChosenRows, over_rows
from genbounds.estimators.frechet._expansion import PAIRING_SEED, SINGLE_WIDTH
from genbounds.validation import Float, check_finite

FEW_RATIO = 4
"""Below this many samples per dimension the expansion in 1/n fails: a spectrum is fitted."""

SPLIT_RATIO = 64
"""From this many samples per dimension on, the bias of third order is negligible."""


SINGLE_RANGE = (1e-16, 1e16)
"""Variances whose sums of products are far from the ends of single precision."""

SINGLE_UNEXPLAINED = 1e-3
"""Least share of a feature's variance that the features before it leave unexplained, from which on
products in single precision are enough."""

Precision = type[np.float32] | type[np.float64]


class FrechetSample:
    """Mean, covariance and its factor of one sample, or of exact moments; its random parts.

    Attributes
    ----------
    moments : Moments
        Covariance with divisor n - 1; of a `design`, that of the weighted rows as they are.
    rows : ndarray of shape (n, d) or None
        None where only moments are known.
    index : ndarray of shape (k,) or None
        The rows that count; None: all.
    design : Design or None
        Of the rows that count, where they are not simply independent.
    parts : tuple of FrechetSample
        Random parts of it, if it was divided.
    seen : Inspected or None
        What the sample shows of how it was drawn; None for moments and parts.
    """

    seen: Inspected | None = None

    def __init__(
        self,
        moments: Moments,
        rows: NDArray[Any] | None = None,
        index: NDArray[np.intp] | None = None,
        parts: tuple[FrechetSample, ...] = (),
        design: Design | None = None,
        precision: Precision = np.float64,
        name: str = "sample",
    ) -> None:
        self.name = name
        self.moments = moments
        self.rows = rows
        self.index = index
        self.parts = parts
        self.design = design
        self.precision = precision

    @property
    def n(self) -> int | None:
        return self.moments.n

    @property
    def some_rows(self) -> NDArray[Any] | None:
        """All rows, or the random part that was kept beside moments; None if there are none."""
        return self.moments.rows if self.rows is None else self.rows

    def as_independent(self) -> FrechetSample:
        """Return the same rows, taken as independent."""
        assert self.rows is not None
        sample = sample_of_rows(self.name, self.rows, None)
        sample.seen = self.seen
        return sample

    @property
    def independent(self) -> bool:
        """Whether nothing but independent rows of equal weight has to be accounted for."""
        return self.design is None or self.design.independent

    @property
    def free_units(self) -> float:
        """How many independent groups the rows come from; infinite for independent rows."""
        return math.inf if self.design is None else self.design.free_units

    @property
    def effective(self) -> float:
        """Kish's effective number of rows, 1 / Σ w²; infinite for exact moments."""
        if self.design is not None:
            return self.design.effective
        return math.inf if self.n is None else float(self.n)

    @property
    def d(self) -> int:
        return self.moments.d

    @property
    def mean(self) -> Float:
        return self.moments.mean

    @cached_property
    def trace(self) -> float:
        return float(np.trace(self.moments.cov))

    @cached_property
    def factor(self) -> Float:
        """L of shape (d, r) with cov = L Lᵀ; from the rows themselves where there are few."""
        if self.rows is not None and self.n is not None and self.n <= self.d:
            if self.design is not None and not self.independent:
                return self.centred().T * np.sqrt(self.design.weights)
            return self.centred().T / math.sqrt(self.n - 1)
        return factor(self.moments.cov, self.triangle, name=self.name)

    @cached_property
    def triangle(self) -> Float | None:
        """Cholesky's factor of the covariance, if it has one."""
        return triangle(self.moments.cov)

    @cached_property
    def spectrum(self) -> Float:
        """Eigenvalues of the covariance, largest first: as many as `factor` has columns."""
        values: Float = scipy.linalg.eigvalsh(self.moments.cov, check_finite=False)
        return values[::-1][: self.factor.shape[1]]

    @property
    def directions(self) -> int:
        """Dimensions that the sample has to fill: the rank of the covariance, where it shows."""
        if self.n is not None and self.n <= self.d:
            return self.d
        return max(int(self.factor.shape[1]), 1)

    def centred(self) -> Float:
        assert self.rows is not None
        rows = self.rows if self.index is None else self.rows[self.index]
        return np.array(rows, dtype=np.float64) - self.mean

    def rows_at(self, chosen: NDArray[np.intp]) -> Float:
        """Return some of the rows, centred."""
        assert self.rows is not None
        rows = self.rows[chosen if self.index is None else self.index[chosen]]
        return np.array(rows, dtype=np.float64) - self.mean

    def without(self, k: int) -> FrechetSample:
        """Every part but part `k`."""
        kept = [part for i, part in enumerate(self.parts) if i != k]
        moments = kept[0].moments
        for part in kept[1:]:
            moments = moments.merge(part.moments)
        index = np.sort(np.concatenate([part.index for part in kept if part.index is not None]))
        return FrechetSample(moments, self.rows, index, precision=self.precision)

    def divided(self, parts: int) -> FrechetSample:
        """Divide the same sample at random into `parts` equal groups of rows."""
        assert self.rows is not None
        assert self.index is None
        if len(self.parts) == parts:
            return self
        divided = _whole("rows", self.rows, parts, self.precision)
        return FrechetSample(self.moments, self.rows, parts=divided.parts, precision=self.precision)

    def halves(self, index: tuple[NDArray[np.intp], NDArray[np.intp]]) -> list[FrechetSample]:
        """Return both halves of the rows: whole units of the design."""
        assert self.rows is not None
        assert self.design is not None
        designs = [self.design.restricted(rows) for rows in index]
        if self.design.weighted:
            moments = [
                weighted_moments(self.rows, half.weights, rows, name=self.name)
                for rows, half in zip(index, designs, strict=True)
            ]
        else:
            n = self.design.n
            whole = _rescaled(self.moments, n / (n - 1.0))  # sums of squares have divisor n - 1
            one = _sum_of(self, index[0])
            two = without(whole, one) or _sum_of(self, index[1])
            moments = [
                _rescaled(half, 1.0 - 1.0 / rows.size)
                for half, rows in zip((one, two), index, strict=True)
            ]
        return [
            FrechetSample(half, self.rows, rows, design=design)
            for half, rows, design in zip(moments, index, designs, strict=True)
        ]


class FewRows(FrechetSample):
    """A sample of no more rows than features: its covariance is formed only where it is used."""

    def __init__(self, name: str, rows: NDArray[Any], design: Design | None = None) -> None:
        self.rows, self.index, self.parts, self.design = rows, None, (), design
        self.precision = np.float64
        with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
            block: Float = np.array(rows, dtype=np.float64)
        check_finite(name, block)
        self._mean: Float = block.mean(axis=0)
        block -= self._mean
        self._centred = block

    @cached_property
    def moments(self) -> Moments:  # type: ignore[override]
        return Moments.from_features(self.rows)

    @property
    def n(self) -> int:
        return int(self._centred.shape[0])

    @property
    def d(self) -> int:
        return int(self._centred.shape[1])

    @property
    def mean(self) -> Float:
        return self._mean

    @cached_property
    def trace(self) -> float:
        return float(np.vdot(self._centred, self._centred)) / (self.n - 1)

    def centred(self) -> Float:
        return self._centred


def moments_of(sample: FrechetSample, index: NDArray[np.intp]) -> Moments:
    """Moments of some rows of a sample, in its precision; `index` is in increasing order.

    Most of the rows are all of them without the few others.
    """
    assert sample.rows is not None
    n = len(sample.rows)
    if 2 * index.size > n and (np.diff(index) > 0).all():
        others = np.delete(np.arange(n), index)
        rest = without(sample.moments, _sum_of(sample, others))
        if rest is not None:
            return rest
    return _sum_of(sample, index)


def _sum_of(sample: FrechetSample, index: NDArray[np.intp]) -> Moments:
    assert sample.rows is not None
    rows = ChosenRows(sample.rows, index)
    (found,) = _moments(rows, np.zeros(rows.n, dtype=np.int8), 1, sample.precision)
    return found


def _moments(
    rows: ChosenRows,
    label: NDArray[np.integer[Any]],
    groups: int,
    precision: Precision,
    name: str | None = None,
) -> list[Moments]:
    """Moments of groups of rows; `name`: of the argument, whose entries are still to be checked."""
    return over_rows(
        _moments_of_part,
        _merged,
        rows,
        label,
        constants=(groups, precision, name),
        step=block_size(rows.rows.shape[1], precision),
    )


def _moments_of_part(
    rows: ChosenRows,
    label: NDArray[np.integer[Any]],
    groups: int,
    precision: Precision,
    name: str | None,
) -> list[Moments]:
    moments = [Moments.empty(rows.rows.shape[1]) for _ in range(groups)]
    for positions, block in row_blocks(rows.rows, rows.index, dtype=precision):
        if name is not None:
            check_finite(name, block, first_row=rows.first + int(positions[0]))
        for k, group in enumerate(moments):
            chosen = block if groups == 1 else block[label[positions] == k]
            if chosen.size:
                group.absorb_block(chosen)
    return moments


def _merged(ones: list[Moments], twos: list[Moments]) -> list[Moments]:
    return [one.merge(two) for one, two in zip(ones, twos, strict=True)]


def _whole(name: str, rows: NDArray[Any], parts: int, precision: Precision) -> FrechetSample:
    """Moments of all rows, and of random groups of equal size, in one pass."""
    label = random_groups(PAIRING_SEED, len(rows), parts)
    moments = _moments(ChosenRows(rows), label, parts, precision, name)
    whole = moments[0]
    if parts == 1:
        return FrechetSample(whole, rows, precision=precision)
    for group in moments[1:]:
        whole = whole.merge(group)
    groups = tuple(
        FrechetSample(group, rows, np.flatnonzero(label == k), precision=precision)
        for k, group in enumerate(moments)
    )
    return FrechetSample(whole, rows, parts=groups, precision=precision)


def _single_may_do(rows: NDArray[Any]) -> bool:
    """Whether single precision loses nothing of the features and is worth its check."""
    n, d = rows.shape
    return is_narrow(rows) and d >= SINGLE_WIDTH and n >= FEW_RATIO * d


def _single_is_enough(sample: FrechetSample) -> bool:
    """Whether a covariance of single-precision products is as good as one of double precision.

    Their rounding, some 1e-8 of σ_i σ_j, changes every root s by at most half its norm over the
    least eigenvalue of the correlation matrix. Of that, the share of a feature that the ones before
    it do not explain, a squared pivot of Cholesky's factor over the variance, is an upper limit.
    """
    variance = np.diagonal(sample.moments.cov)
    if not SINGLE_RANGE[0] < float(variance.min()) <= float(variance.max()) < SINGLE_RANGE[1]:
        return False
    if sample.triangle is None:
        return False
    pivots = np.diagonal(sample.triangle)
    return bool((pivots**2 > SINGLE_UNEXPLAINED * variance).all())


def sample_of(name: str, x: Any) -> FrechetSample:
    """Prepare features, a `Sample` of them, or moments; `name` is that of the argument."""
    if isinstance(x, Moments):
        _ = x.cov  # at least two samples
        return FrechetSample(x, name=name)
    seen = inspect(name, x, what=SIDES[name == "real"])
    sample = sample_of_rows(name, seen.rows, seen.design)
    sample.seen = seen
    return sample


SIDES = ("generated", "reference")
"""What the samples, the arguments `fake` and `real`, are called in warnings."""


@dataclass(frozen=True, slots=True)
class Regime:
    """How many samples per dimension either sample has; infinite for exact moments."""

    fake: float
    real: float

    @classmethod
    def of(cls, fake: FrechetSample, real: FrechetSample) -> Regime:
        directions = min(fake.directions, real.directions)
        return cls(*(side.effective / directions for side in (fake, real)))

    @property
    def smaller(self) -> float:
        return min(self.fake, self.real)

    @property
    def larger(self) -> float:
        return max(self.fake, self.real)

    def by_size(
        self, fake: FrechetSample, real: FrechetSample
    ) -> tuple[FrechetSample, FrechetSample]:
        """Return both samples, the one with fewer samples per dimension first."""
        return (fake, real) if self.fake <= self.real else (real, fake)


def sample_of_rows(name: str, rows: NDArray[Any], design: Design | None) -> FrechetSample:
    """Prepare rows that were drawn by this design."""
    n, d = rows.shape
    dependent = design is not None and not design.independent
    if design is not None and design.weighted:
        moments = weighted_moments(rows, design.weights, name=name)
        return FrechetSample(moments, rows, design=design, name=name)
    if n <= d and not dependent:
        return FewRows(name, rows, design)
    # Halves will be wanted: one pass for all. Those of a design follow from the other sample's.
    parts = 2 if FEW_RATIO * d <= n < SPLIT_RATIO * d and not dependent else 1
    sample = None
    if _single_may_do(rows):
        with np.errstate(over="ignore", invalid="ignore"):
            sample = _whole(name, rows, parts, np.float32)
        if not _single_is_enough(sample):
            sample = None
    if sample is None:
        sample = _whole(name, rows, parts, np.float64)
    if dependent:
        moments = _rescaled(sample.moments, 1.0 - 1.0 / n)
        return FrechetSample(moments, rows, design=design, precision=sample.precision, name=name)
    sample.design, sample.name = design, name
    return sample


def _rescaled(moments: Moments, factor: float) -> Moments:
    return Moments(moments.mean, moments.cov * factor, moments.n)


def weighted_moments(
    rows: NDArray[Any], weights: Float, index: NDArray[np.intp] | None = None, *, name: str
) -> Moments:
    """Mean and covariance of the distribution that puts these weights on the rows."""
    mean = np.zeros(rows.shape[1])
    for positions, block in row_blocks(rows, index):
        check_finite(name, block, first_row=int(positions[0]))
        mean += weights[positions] @ block
    step = block_size(mean.size)
    cov = over_rows(
        _scatter, np.add, ChosenRows(rows, index), weights, constants=(mean,), step=step
    )
    return Moments(mean, cov, weights.size)


def _scatter(rows: ChosenRows, weights: Float, mean: Float) -> Float:
    """Weighted sum of squares and products about the mean."""
    cov: Float = np.zeros((mean.size, mean.size))
    for positions, block in row_blocks(rows.rows, rows.index):
        block -= mean
        block *= np.sqrt(weights[positions])[:, None]
        cov += block.T @ block
    return cov
