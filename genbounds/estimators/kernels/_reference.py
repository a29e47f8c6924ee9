"""Kernel distances from one reference, prepared once: checks, sums over pairs, and the variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._process import threads_for
from genbounds._text import number
from genbounds.core.checks import Checked, check_rows, drawing_warnings
from genbounds.core.class_shares import classes_of, score_by_class
from genbounds.core.estimate import Estimate, heavy_tails
from genbounds.core.moments import spread_rows
from genbounds.core.scale import factor_of, scaled_back
from genbounds.core.two_samples import shared_units
from genbounds.diagnostics import warn_of
from genbounds.estimators.kernels._designed import designed_estimate
from genbounds.estimators.kernels._pair_kernels import (
    BLOCK_ROWS,
    PairKernel,
    Polynomial,
    Radial,
    kernel_blocks,
    pair_kernel,
)
from genbounds.estimators.kernels._parameters import PolynomialKernel
from genbounds.estimators.kernels._rows import Between, Within, curved, rows_estimate
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Diagnostic
from genbounds.validation import (
    Float,
    InputError,
    about_model,
    check_choice,
    check_features,
    check_same_dimension,
    seeded,
)

ESTIMATORS = ("debiased", "plugin")

MINIMUM = 4
"""Minimum number of rows: the unbiased variance of the doubly centred kernel divides by n - 3."""

NEEDS = "the kernel distance needs"
"""What cannot do with moments, in an error."""

NEEDED: dict[str, Any] = {"needs": NEEDS, "minimum": MINIMUM, "crossed": True}
"""What `check_rows` is told of either sample."""


SEEN_ROWS, LEAST_SEEN = 256, 1e-4
"""Rows that are looked at, and the least sum of the kernel over all other rows of the reference."""

LARGEST_OFFSET = 3000.0
"""Beyond so many standard deviations from 0 squares of a polynomial have lost what varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSubsets:
    """Which subsets are scored: `count` of them, each of `size` rows of either side."""

    count: int
    size: int
    seed: int


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
        self._classes, self._origin = classes_of(real), origin_of(real)
        self._directions = kernel == "cmmd"
        with threads_for(_work(real)):
            self._seen = check_rows("real", real, **NEEDED)
            self._rows, self._design = self._seen.rows, self._seen.design
            self._largest = self._checked("real", self._rows)
            self._kernel = pair_kernel(kernel, bandwidth, self._rows, largest=self._largest)
        self._within: tuple[tuple[float, bool], Within] | None = None
        self._nearness: tuple[tuple[float, bool], float] | None = None

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self._rows.shape[1])

    @property
    def n(self) -> int:
        """Reference samples."""
        return len(self._rows)

    @property
    def sample(self) -> Checked:
        """The reference, and how it was drawn."""
        return self._seen

    def kernel_of(self, models: Mapping[str, NDArray[Any]]) -> PairKernel:
        """Check the rows of several models; return the kernel that is fit for all of them."""
        largest = self._largest
        for name, rows in models.items():
            with about_model(name):
                check_same_dimension("fake", rows.shape[1], "real", self.d)
                largest = max(largest, self._checked("fake", rows))
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
        largest = _largest(rows)
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
        if self._origin:
            check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        with threads_for(max(_work(fake), _work(self._rows))):
            return score_by_class(
                fake, self._classes, lambda x: self._estimate(x, estimator, subsets)
            )

    def _estimate(self, fake: Any, estimator: str, subsets: RandomSubsets | None) -> Estimate:
        seen = check_rows("fake", fake, **NEEDED)
        rows, design = seen.rows, seen.design
        check_same_dimension("fake", rows.shape[1], "real", self.d)
        kernel = self._kernel.for_rows(max(self._largest, self._checked("fake", rows)))
        designs = (design, self._design)
        plain = all(one is None or one.independent for one in designs)
        if not plain or shared_units(*designs) is not None:
            if subsets is not None:
                raise InputError(
                    "are of independent rows: leave them out with groups, strata or weights, or "
                    "where rows repeat (gb.Sample(x) says that they are independent all the same).",
                    argument="subsets",
                )
            found = designed_estimate((rows, self._rows), designs, kernel, estimator=estimator)
            return self._finished(found, seen, kernel)
        most = min(len(rows), self.n)
        if subsets is not None and subsets.size > most:
            raise InputError(
                f"must be at most {most:,}, the rows of the smaller sample; got {subsets.size:,}.",
                argument="subset_size",
            )
        found = rows_estimate(
            Within.of(rows, kernel),
            self._prepared(kernel),
            Between.of(rows, self._rows, kernel),
            kernel=kernel,
            estimator=estimator,
        )
        own, other = curved(found, rows, self._rows, kernel)
        found = replace(
            found,
            sample=replace(own, units=seen.labels),
            reference=replace(other, units=self._seen.labels),
        )
        found = self._finished(found, seen, kernel)
        if subsets is None:
            return found
        return mean_of_subsets(found, (rows, self._rows), kernel, subsets)

    def _finished(self, found: Estimate, seen: Checked, kernel: PairKernel) -> Estimate:
        """Add what the samples show of how they were drawn, in the units of the features."""
        warnings = (
            *drawing_warnings(seen, self._seen),
            *heavy_tails(found),
            *found.warnings,
            *self._blindness(kernel),
            *lost_digits(kernel, (seen.rows, self._rows)),
        )
        sample = replace(found.sample, row_ids=seen.single_ids)
        found = replace(found, sample=sample, warnings=warnings)
        return scaled_back(found, kernel.unit, power=kernel.power)

    def _blindness(self, kernel: PairKernel) -> tuple[Diagnostic, ...]:
        """Warn of a bandwidth that lets no row of the reference see another."""
        if not isinstance(kernel, Radial) or any(kernel.near_one):
            return ()
        key = kernel.unit, kernel.in_single
        if self._nearness is None or self._nearness[0] != key:
            rows = kernel.prepared(self._rows[:: max(1, self.n // SEEN_ROWS)])
            values = kernel.block(rows, rows)
            total = float(values.sum() - np.trace(values))
            self._nearness = key, total / (len(rows) * (len(rows) - 1))
        if self._nearness[1] * (self.n - 1) >= LEAST_SEEN * kernel.factor:
            return ()
        return (warn_of("blind-kernel", bandwidth=max(kernel.bandwidths)),)


def _work(x: Any) -> float:
    """Multiply-adds of the kernel of all pairs of these rows."""
    shape: tuple[int, ...] = getattr(x, "shape", ())
    return float(shape[0]) ** 2 * float(shape[1]) if len(shape) == 2 else 0.0


def _largest(rows: NDArray[Any]) -> float:
    """Return the largest length of a row."""
    largest = 0.0
    for start in range(0, len(rows), BLOCK_ROWS):
        block: Float = np.array(rows[start : start + BLOCK_ROWS], dtype=np.float64)
        entry = float(np.abs(block).max())
        if entry > largest / sqrt(block.shape[1]):  # else no row of it can be longer
            squares = ((block / entry) ** 2).sum(axis=1)
            largest = max(largest, entry * sqrt(float(squares.max())))
    return largest


def lost_digits(kernel: PairKernel, samples: Sequence[NDArray[Any]]) -> tuple[Diagnostic, ...]:
    """Warn of a polynomial of samples all of which lie too far from 0."""
    if not isinstance(kernel, Polynomial):
        return ()
    offset = min(_offset(rows) for rows in samples)
    if offset <= LARGEST_OFFSET:
        return ()
    return (warn_of("far-from-zero-in-kernel", offset=offset),)


def _offset(rows: NDArray[Any]) -> float:
    """Return the length of the mean row, in standard deviations: ‖m‖ over the root of ‖C‖.

    What of x·y differs from pair to pair is (x - m)·(y - m), of mean square ‖C‖².
    """
    some = spread_rows(rows, SEEN_ROWS).astype(np.float64)
    some = some / (float(np.abs(some).max()) or 1.0)
    mean = some.mean(axis=0)
    some -= mean
    # The smaller Gram matrix has the same sum of squares; a row's product with itself is no pair.
    gram = some @ some.T if len(some) < some.shape[1] else some.T @ some
    alone = np.einsum("ij,ij->i", some, some)
    pairs = float(np.vdot(gram, gram)) - float(alone @ alone)
    spread = sqrt(sqrt(max(pairs, 0.0)) / len(some))
    return float(np.linalg.norm(mean)) / spread if spread > 0.0 else 0.0


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
