"""One sample of a Fréchet distance, or exact moments, with what the distance needs of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.checks import Checked, check_kept, check_sample
from genbounds.core.design import Design, Index
from genbounds.core.moments import EPS, Moments, RowMoments, is_narrow, random_groups, row_moments
from genbounds.validation import Float, InputError

PAIRING_SEED = 20_190_110
"""Fixed, so that the random pairing and halving of rows give the same result at every call."""

SINGLE_WIDTH = 64
"""From so many dimensions on, products of features given in single precision are formed in it. In
coordinates of unit variance its rounding is some 1e-7 of a term, also where standard deviations
span seven decades (directions in which it is coarse weigh little)."""

FEW_RATIO = 4
"""Below this many samples per dimension the expansion in 1/n fails: a spectrum is fitted."""

FIT_RATIO = 8
"""Below this many samples per dimension in one sample, and with the other better sampled, a fit may
still be the better choice."""

SPLIT_RATIO = 64
"""From this many samples per dimension on, the bias of third order is negligible."""

SINGLE_RANGE = (1e-16, 1e16)
"""Variances whose sums of products are far from the ends of single precision."""

SINGLE_UNEXPLAINED = 1e-3
"""Least share of a feature's variance that the features before it leave unexplained, from which on
products in single precision are enough."""

SIDES = ("generated", "reference")
"""What the samples, the arguments `fake` and `real`, are called in warnings."""

INDEFINITE_RTOL = 1e-6
"""A covariance whose smallest eigenvalue is below minus this times the largest is refused."""

Precision = type[np.float32] | type[np.float64]


class FrechetSample:
    """Mean, covariance and its factor of one sample, or of exact moments; its random parts.

    Parameters
    ----------
    name : str
        Of the argument, for refusals.
    moments : Moments, RowMoments or None
        With divisor n - 1; of a `design` of dependent or weighted rows, their own mean squares.
        None: few rows, whose covariance is formed only where it is used.
    rows : ndarray of shape (k, d), optional
        None where only moments are known.
    index : ndarray of int, optional
        The rows that count; by default all.
    design : Design, optional
        Of the rows that count; None: independent rows without names.
    halves : tuple of RowMoments
        Of its random halves, where they will be wanted.
    precision : type
        Of the sums of products.
    seen : Checked, optional
        What the sample, or rows kept beside moments, show of how it was drawn; None for parts.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    n : int or None
        None: exact moments.
    trace : float
        Tr Σ.
    moments : Moments or None
        Where they are what was given.
    some_rows : ndarray or None
        All rows, or the random part that was kept beside moments; None if there are none.
    few_rows : bool
        Whether the rows are known, and no more than their features.
    independent : bool
        Whether nothing but independent rows of equal weight has to be accounted for.
    effective : float
        Kish's effective number of rows, 1 / Σ w²; infinite for exact moments.
    free_units : float
        How many independent groups the rows come from; infinite for independent rows.
    """

    mean: Float
    n: int | None
    rows: Any  # None where only moments are known
    some_rows: NDArray[Any] | None

    def __init__(
        self,
        name: str,
        moments: Moments | RowMoments | None,
        *,
        rows: NDArray[Any] | None = None,
        index: Index | None = None,
        design: Design | None = None,
        halves: Sequence[RowMoments] = (),
        precision: Precision = np.float64,
        seen: Checked | None = None,
    ) -> None:
        self.name, self.rows, self.index, self.design = name, rows, index, design
        self.half_moments, self.precision, self.seen = halves, precision, seen
        self.moments = moments if isinstance(moments, Moments) else None
        self.some_rows = rows if self.moments is None else self.moments.rows
        with np.errstate(over="ignore", invalid="ignore"):
            if moments is None:
                self.mean, self.n = self.rows.mean(axis=0, dtype=np.float64), len(self.rows)
                self.trace = float(np.vdot(self.centred, self.centred)) / (self.n - 1)
            else:
                self.mean, self.n, self.cov = moments.mean, moments.n, moments.cov
                self.trace = float(np.trace(self.cov))
        self.independent = design is None or design.independent
        self.few_rows = rows is not None and self.n is not None and self.n <= self.mean.size
        self.effective = math.inf if self.n is None else float(self.n)
        self.free_units = math.inf
        if design is not None:
            self.effective, self.free_units = design.effective, design.free_units

    @cached_property
    def cov(self) -> Float:
        """Covariance, shape (d, d)."""
        return row_moments(self.rows).cov

    @cached_property
    def factor(self) -> Float:
        """L of shape (d, r) with cov = L Lᵀ and r the rank; of few rows, from the rows themselves.

        Raises
        ------
        InputError
            If `cov` has an eigenvalue that is negative beyond rounding.
        """
        if self.few_rows:
            if self.design is not None and not self.independent:
                return self.centred.T * np.sqrt(self.design.weights)
            return self.centred.T / math.sqrt(len(self.centred) - 1)
        d, lower = self.mean.size, self.triangle
        if lower is not None:
            diagonal = np.diagonal(lower)
            if diagonal.min() ** 2 > 100 * d * EPS * diagonal.max() ** 2:
                return lower  # an order of magnitude cheaper than eigenvectors
        values, vectors = scipy.linalg.eigh(self.cov, check_finite=False)
        if values[0] < -INDEFINITE_RTOL * abs(values[-1]):
            raise InputError(
                f"has a covariance with eigenvalue {values[0]:.3g} (largest {values[-1]:.3g}): "
                "it is not positive semidefinite. Was it computed in half precision, or truncated?",
                argument=self.name,
            )
        kept = values > d * EPS * values[-1]
        root: Float = vectors[:, kept] * np.sqrt(values[kept])
        return root

    @cached_property
    def triangle(self) -> Float | None:
        """Cholesky's factor of the covariance, if it has one and rows are not few."""
        if self.few_rows:
            return None
        # The transpose, the same matrix in Fortran's order, is copied without being turned.
        lower, failed = scipy.linalg.lapack.dpotrf(self.cov.T, lower=1)
        return None if failed else lower

    @cached_property
    def spectrum(self) -> Float:
        """Eigenvalues of the covariance, largest first: as many as `factor` has columns."""
        values: Float = scipy.linalg.eigvalsh(self.cov, check_finite=False)
        return values[::-1][: self.factor.shape[1]]

    @cached_property
    def centred(self) -> Float:
        """Rows about their mean; of a large sample a copy of all of it."""
        return self.rows_at(slice(None))

    def rows_at(self, chosen: Index | slice) -> Float:
        """Return some of the rows, centred."""
        rows = self.rows[chosen if self.index is None else self.index[chosen]]
        return np.array(rows, dtype=np.float64) - self.mean

    def as_independent(self) -> FrechetSample:
        """Return the same rows, taken as independent."""
        return sample_of(self.name, self.rows, plain=True, seen=self.seen)

    def some(self, index: Index) -> FrechetSample:
        """Return some of the rows as an independent sample; `index` is in increasing order.

        Most of the rows are all of them without the few others.
        """
        n = len(self.rows)
        if n < 2 * index.size < 2 * n and (np.diff(index) > 0).all():
            others = row_moments(self.rows, np.delete(np.arange(n), index), dtype=self.precision)
            return self._part(index, None, self._whole.without(others))
        return self._part(index)

    def halves(self, half: Index | None = None) -> tuple[FrechetSample, FrechetSample]:
        """Return both halves of the units of its design; `half`: 0 or 1 for each of them.

        By default random halves of independent rows.
        """
        designs: Sequence[Design | None] = (None, None)
        moments: Sequence[RowMoments | None] = self.half_moments or (None, None)
        if half is None:
            indices = halves_of(len(self.rows))
        else:
            assert self.design is not None
            indices = self.design.rows_of_halves(half)
            designs = [self.design.restricted(rows) for rows in indices]
            moments = None, None
            if self.independent:
                first = row_moments(self.rows, indices[0], dtype=self.precision)
                moments = first, self._whole.without(first)
        one, two = map(self._part, indices, designs, moments)
        return one, two

    @property
    def _whole(self) -> RowMoments:
        assert self.n is not None
        return RowMoments(self.mean, self.cov, self.n)

    def _part(
        self, index: Index, design: Design | None = None, moments: RowMoments | None = None
    ) -> FrechetSample:
        """Return some rows, drawn by this design, as a sample; `moments`: where they are known."""
        if moments is None:
            weights = None if design is None or design.independent else design.weights
            moments = row_moments(self.rows, index, weights=weights, dtype=self.precision)
        return FrechetSample(
            self.name, moments, rows=self.rows, index=index, design=design, precision=self.precision
        )


def halves_of(n: int) -> tuple[Index, Index]:
    """Divide n rows at random into halves."""
    label = random_groups(PAIRING_SEED, n, 2)
    return np.flatnonzero(label == 0), np.flatnonzero(label == 1)


def _single_is_enough(sample: FrechetSample) -> bool:
    """Whether a covariance of single-precision products is as good as one of double precision.

    Their rounding, some 1e-8 of σ_i σ_j, changes every root s by at most half its norm over the
    least eigenvalue of the correlation matrix. Of that, the share of a feature that the ones before
    it do not explain, a squared pivot of Cholesky's factor over the variance, is an upper limit.
    """
    variance = np.diagonal(sample.cov)
    if not SINGLE_RANGE[0] < float(variance.min()) <= float(variance.max()) < SINGLE_RANGE[1]:
        return False
    if sample.triangle is None:
        return False
    pivots = np.diagonal(sample.triangle)
    return bool((pivots**2 > SINGLE_UNEXPLAINED * variance).all())


def sample_of(
    name: str,
    x: Any,
    *,
    plain: bool = False,
    design: Design | None = None,
    seen: Checked | None = None,
) -> FrechetSample:
    """Prepare features, a `Sample` of them, or moments; `name` is that of the argument.

    `plain`: finite rows, taken as drawn by this `design` whatever they look like, or as they were
    `seen` before.
    """
    what = SIDES[name == "real"]
    if isinstance(x, Moments):
        return FrechetSample(name, x, seen=check_kept(x, what))
    if not plain:
        seen = check_sample(name, x, what=what, crossed=True)
        x, design = seen.rows, seen.design
    rows, (n, d) = x, x.shape
    known: dict[str, Any] = {"rows": rows, "design": design, "seen": seen}
    alone = design is None or design.independent
    if n <= d and alone:
        return FrechetSample(name, None, **known)
    # Halves will be wanted: one pass for all. Those of a design follow from the other sample's.
    halved = alone and FEW_RATIO * d <= n < SPLIT_RATIO * d
    weights = None if design is None or alone else design.weights
    # Single precision loses nothing of the features; of few rows it is not worth its check.
    single = is_narrow(rows) and d >= SINGLE_WIDTH and n >= FEW_RATIO * d
    if design is not None and design.weighted:
        single = False
    kinds: tuple[Precision, ...] = (np.float32, np.float64) if single else (np.float64,)
    for precision in kinds:
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [
                row_moments(rows, index, weights=weights, dtype=precision)
                for index in (halves_of(n) if halved else (None,))
            ]
            whole = parts[0].joined(parts[1]) if halved else parts[0]
        halves = parts if halved else ()
        sample = FrechetSample(name, whole, halves=halves, precision=precision, **known)
        if precision is np.float64 or _single_is_enough(sample):
            break
    return sample


def directions_of(*samples: FrechetSample) -> int:
    """Dimensions that samples have to fill: the least rank of a covariance, where it shows."""
    return min(
        side.mean.size
        if side.n is not None and side.n <= side.mean.size
        else max(side.factor.shape[1], 1)
        for side in samples
    )
