"""Kernel distances: squared MMDs by their U-statistics, whatever the kernel.

With a kernel k, x generated and y real,

    distance = E k(x, x') + E k(y, y') - 2 E k(x, y).

Averages over pairs of *different* rows are unbiased at every sample size. What a row adds to first
order is twice its witness w(x) = E k(x, x') - E k(x, y); where both distributions are equal the
witness is constant, and the variance is that of the doubly centred kernels alone. Derivation:
docs/kid.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import quoted
from genbounds.estimators._design import Design
from genbounds.estimators._estimate import Estimate, heavy_tails
from genbounds.estimators._inspect import Inspected, drawing_warnings, inspect_rows
from genbounds.estimators._scale import scaled_back
from genbounds.estimators._two_samples import shared_units
from genbounds.estimators.kernels._choice import pair_kernel
from genbounds.estimators.kernels._designed import designed_estimate
from genbounds.estimators.kernels._kernels import PolynomialKernel
from genbounds.estimators.kernels._pair_kernels import BLOCK_ROWS, PairKernel, kernel_blocks
from genbounds.estimators.kernels._rows import Between, Within, curvatures, rows_estimate
from genbounds.estimators.kernels._subsets import RandomSubsets, mean_of_subsets
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Score
from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_count,
    check_features,
    check_finite,
    check_open_unit,
    check_same_dimension,
)

ESTIMATORS = ("debiased", "plugin")

MINIMUM = 4
"""Minimum number of rows: the unbiased variance of the doubly centred kernel divides by n - 3."""

NEEDS = "the kernel distance needs"
"""What cannot do with moments, in an error."""


def kernel_distance(
    fake: Any,
    real: Any,
    *,
    kernel: str | PolynomialKernel = "polynomial",
    bandwidth: float | Sequence[float] | None = None,
    estimator: str = "debiased",
    level: float = 0.95,
    subsets: int | None = None,
    subset_size: int = 1000,
    seed: int = 0,
) -> Score:
    """Distance of two distributions by a kernel (squared MMD): KID, CMMD, KAD, energy distance.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features, at least 4 rows.
    real : array_like of shape (m, d) or Sample
        Reference features, at least 4 rows.
    kernel : str or PolynomialKernel
        "polynomial": (x·y/d + 1)³, the kernel Inception distance; a `PolynomialKernel` has other
        parameters (and is not normalised here). "rbf": exp(-‖x-y‖²/(2σ²)), averaged over the
        bandwidths σ. "cmmd": the same of rows divided by their lengths, σ = 10, times 1000. "kad":
        the same as "rbf", times 100. "energy": -‖x-y‖.
    bandwidth : float or sequence of float, optional
        σ, for "rbf", "cmmd" and "kad". None: 10 for "cmmd"; else the median distance of (up to
        1,000) reference rows.
    estimator : {"debiased", "plugin"}
        "debiased" averages over pairs of different rows (the U-statistic; unbiased); "plugin"
        includes each row with itself, as CMMD and the energy distance are published.
    level : float
        Coverage of the interval, in (0, 1).
    subsets : int, optional
        Mean over so many random subsets of both samples, at least 2, as KID is published
        (torch-fidelity and clean-fid: 100), in place of all pairs.
    subset_size : int
        Rows in each, at least 2; no more than the smaller sample has are taken.
    seed : int
        Of the subsets.

    Returns
    -------
    Score
        In units of the kernel; the energy distance in those of the features. Zero exactly if the
        two distributions are equal ("polynomial": have equal moments up to its degree; "cmmd": of
        their directions). A negative estimate is reported as 0, with a caution.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, `Moments` are given, or a row of "cmmd" is zero;
        if the samples come from files that name different encoders; or if `subsets` are asked for
        of samples with groups, strata or weights, or with `estimator="plugin"`.

    Notes
    -----
    All pairs are used, in blocks of 1,024 rows: memory stays below 0.2 GB beside the features, and
    time grows with (n + m)². The interval is for the bandwidth as it is, also where the reference
    chose it.

    With `subsets` the value is their mean, and a caution says their standard deviation, which other
    tools print beside it. The interval is from all pairs even then: the variance of the U-statistic
    and that of the choice of subsets.

    References
    ----------
    .. [1] A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Lemma 6.
    .. [2] M. Bińkowski et al., "Demystifying MMD GANs", ICLR 2018, §4 (KID).
    .. [3] S. Jayasumana et al., "Rethinking FID: towards a better evaluation metric for image
       generation", CVPR 2024 (CMMD).
    .. [4] Y. Chung et al., "KAD: no more FAD! An effective and efficient evaluation metric for
       audio generation", 2025 (KAD).
    .. [5] G. J. Székely and M. L. Rizzo, "Energy statistics", J. Stat. Plan. Inference 143, 2013.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = rng.normal(0.5, size=(200, 4)), rng.normal(size=(200, 4))
    >>> score = gb.kernel_distance(fake, real, kernel="energy")
    >>> score.low > 0.0
    True
    """
    level = check_open_unit("level", level)
    drawn = None
    if subsets is not None:
        if estimator != "debiased":
            raise InputError(
                f"must be 'debiased' with `subsets`; got {quoted(estimator)}.", argument="estimator"
            )
        drawn = RandomSubsets(
            count=check_count("subsets", subsets, minimum=2),
            size=check_count("subset_size", subset_size, minimum=2),
            seed=check_count("seed", seed, minimum=0),
        )
    reference = KernelReference(real, kernel=kernel, bandwidth=bandwidth)
    found = reference.estimate(fake, estimator=estimator, subsets=drawn)
    origins = {"`fake`": origin_of(fake), "`real`": origin_of(real)}
    return found.made_from(origins).score(level)


class KernelReference:
    """Reference features prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d) or Sample
    degree, gamma, offset
        Of the polynomial kernel, as in `kernel_inception_distance`.
    kernel, bandwidth
        As in `kernel_distance`.
    """

    def __init__(
        self,
        real: Any,
        *,
        degree: int = 3,
        gamma: float | None = None,
        offset: float = 1.0,
        kernel: str | PolynomialKernel = "polynomial",
        bandwidth: float | Sequence[float] | None = None,
    ) -> None:
        if kernel == "polynomial":
            kernel = PolynomialKernel(degree=degree, gamma=gamma, offset=offset)
        elif (degree, gamma, offset) != (3, None, 1.0):
            raise InputError(
                "gamma and offset are for kernel 'polynomial'; a PolynomialKernel has its own.",
                argument="degree",
            )
        self._seen = checked_sample("real", real)
        self._rows, self._design = self._seen.rows, self._seen.design
        self._origin = origin_of(real)
        self._directions = kernel == "cmmd"
        self._largest = self._checked("real", self._rows)
        self._kernel = pair_kernel(kernel, bandwidth, self._rows, largest=self._largest)
        self._within: tuple[tuple[float, bool], Within] | None = None

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self._rows.shape[1])

    @property
    def n(self) -> int:
        """Reference samples."""
        return len(self._rows)

    @property
    def sample(self) -> Inspected:
        """The reference, and how it was drawn."""
        return self._seen

    def kernel_of(self, models: Mapping[str, NDArray[Any]]) -> PairKernel:
        """Check the rows of several models; return the kernel that is fit for all of them."""
        largest = self._largest
        for name, rows in models.items():
            try:
                check_same_dimension("fake", rows.shape[1], "real", self.d)
                largest = max(largest, self._checked("fake", rows))
            except InputError as error:
                raise error.of_model(name) from error
        return self._kernel.for_rows(largest)

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
        blocks = kernel_blocks(rows, others, self._kernel)
        return sum(float(values.sum(dtype=np.float64)) for _, _, values in blocks)

    def _checked(self, name: str, rows: NDArray[Any]) -> float:
        """Check the rows; return the largest length of one."""
        largest = _largest(name, rows)
        if self._directions:
            zero = np.flatnonzero(~np.asarray(rows, dtype=bool).any(axis=1))
            if zero.size:
                raise InputError(
                    f"has a zero row ({zero[0]}), which has no direction: drop it, or take another "
                    "kernel.",
                    argument=name,
                )
        return largest

    def _prepared(self, kernel: PairKernel) -> Within:
        key = kernel.unit, kernel.in_single
        if self._within is None or self._within[0] != key:
            self._within = key, Within.of(self._rows, kernel)
        return self._within[1]

    def estimate(
        self, fake: Any, *, estimator: str = "debiased", subsets: RandomSubsets | None = None
    ) -> Estimate:
        """Estimate of `fake` with its variance and influences, before any level is chosen.

        `estimator` as for `kernel_distance`; with `subsets` the value is their mean.
        """
        check_choice("estimator", estimator, ESTIMATORS)
        check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        seen = checked_sample("fake", fake)
        rows, design = seen.rows, seen.design
        check_same_dimension("fake", rows.shape[1], "real", self.d)
        kernel = self._kernel.for_rows(max(self._largest, self._checked("fake", rows)))
        if self._must_expand(design):
            if subsets is not None:
                raise InputError(
                    "are of independent rows: leave them out with groups, strata or weights, or "
                    "where rows repeat (gb.Sample(x) says that they are independent all the same).",
                    argument="subsets",
                )
            found = designed_estimate(
                (rows, self._rows), (design, self._design), kernel, estimator=estimator
            )
            return self._finished(found, seen, kernel)
        found = rows_estimate(
            Within.of(rows, kernel),
            self._prepared(kernel),
            Between.of(rows, self._rows, kernel),
            kernel=kernel,
            estimator=estimator,
        )
        own, other = curvatures(found, rows, self._rows, kernel)
        found = replace(
            found,
            sample=replace(found.sample, curvature=own, units=_labels(design)),
            reference=replace(found.reference, curvature=other, units=_labels(self._design)),
        )
        found = self._finished(found, seen, kernel)
        if subsets is None:
            return found
        return mean_of_subsets(found, (rows, self._rows), kernel, subsets)

    def _finished(self, found: Estimate, seen: Inspected, kernel: PairKernel) -> Estimate:
        """Add what the samples show of how they were drawn, in the units of the features."""
        warnings = (
            *drawing_warnings(seen, self._seen),
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


def checked_sample(name: str, x: Any) -> Inspected:
    """Look at a sample of rows; refuse one that is known by its moments."""
    return inspect_rows(name, x, needs=NEEDS, minimum=MINIMUM)


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
