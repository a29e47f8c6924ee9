"""Kernel distances: squared MMDs by their U-statistics, whatever the kernel.

With a kernel k, x generated and y real,

    distance = E k(x, x') + E k(y, y') - 2 E k(x, y).

Averages over pairs of *different* rows are unbiased at every sample size. What a row adds to first
order is twice its witness w(x) = E k(x, x') - E k(x, y); where both distributions are equal the
witness is constant, and the variance is that of the doubly centred kernels alone. Derivation:
docs/explanation/kid.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds._process import threads_for
from genbounds._text import number, quoted
from genbounds.core.checks import check_rows, drawing_warnings
from genbounds.core.class_shares import classes_of, score_by_class
from genbounds.core.estimate import Estimate, heavy_tails
from genbounds.core.moments import row_blocks, spread_rows
from genbounds.core.scale import factor_of, scaled_back
from genbounds.core.two_samples import shared_units
from genbounds.diagnostics import warn_of
from genbounds.estimators._metric_spec import MetricSpec, prepared_by
from genbounds.estimators.kernels import _pair_kernels as kernels
from genbounds.estimators.kernels._estimate import Within, kernel_estimate
from genbounds.estimators.kernels._pair_kernels import PairKernel, PolynomialKernel
from genbounds.estimators.kernels._prompts import as_one_sample, beside_prompts
from genbounds.estimators.kernels._rke import LEAST_ROWS, GrowingPairs
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.validation import Float, InputError


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
    prompts: Any = None,
    prompt_bandwidth: float | None = None,
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
        Rows in each, at least 2 and at most those of the smaller sample.
    seed : int
        Of the subsets.
    prompts : array_like of shape (n, p), or a pair of them, optional
        Features of the prompt of every row, of `fake` and of `real` (one array: the same, row by
        row): the distance is then one of pairs of a prompt and an output, by the product of two
        "rbf" kernels [6]_. Equal rows are one prompt, whose noise is shared.
    prompt_bandwidth : float, optional
        σ of prompts. None: their median distance in `real`.

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
    .. [6] The joint kernel distance of arXiv 2603.23140.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = rng.normal(0.5, size=(200, 4)), rng.normal(size=(200, 4))
    >>> score = gb.kernel_distance(fake, real, kernel="energy")
    >>> score.low > 0.0
    True
    """
    level = validation.check_open_unit("level", level)
    drawn = None
    if subsets is not None:
        if estimator != "debiased":
            raise InputError(
                f"must be 'debiased' with `subsets`; got {quoted(estimator)}.", argument="estimator"
            )
        drawn = RandomSubsets(
            count=validation.check_count("subsets", subsets, minimum=2),
            size=validation.check_count("subset_size", subset_size, minimum=2),
            seed=validation.check_count("seed", seed, minimum=0),
        )
    origins = {"fake": fake, "real": real}
    if prompts is not None:
        if kernel != "rbf":
            raise InputError(
                f'takes kernel="rbf", for prompts and outputs; got {quoted(kernel)}.',
                argument="prompts",
            )
        pair = prompts if isinstance(prompts, tuple | list) and len(prompts) == 2 else [prompts] * 2
        (fake, _), (real, _) = beside_prompts(
            origins, pair, bandwidth=bandwidth, prompt_bandwidth=prompt_bandwidth
        )
        bandwidth = 1.0
    reference = KernelReference(real, kernel=kernel, bandwidth=bandwidth)
    found = reference.estimate(fake, estimator=estimator, subsets=drawn)
    if prompts is not None:
        found = as_one_sample(found)
    return found.made_from(**origins).score(level)


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
    habit of averaging over random subsets of 1,000 rows (`kernel_distance` with `subsets`) has a
    larger variance, and the spread over subsets is no standard error: it is that of a score from
    1,000 rows.

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
    kernel = PolynomialKernel(degree=degree, gamma=gamma, offset=offset)
    return kernel_distance(fake, real, kernel=kernel, estimator=estimator, level=level)


ESTIMATORS = ("debiased", "plugin")

MINIMUM = 4
"""Minimum number of rows: the unbiased variance of the doubly centred kernel divides by n - 3."""

NEEDS = "the kernel distance needs"
"""What cannot do with moments, in an error."""

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

    def check(self, by_rows: bool, most: int) -> None:
        """Refuse samples that are not of independent rows, or have less than `size` of them."""
        if not by_rows:
            raise InputError(
                "are of independent rows: leave them out with groups, strata or weights, or "
                "where rows repeat (gb.Sample(x) says that they are independent all the same).",
                argument="subsets",
            )
        if self.size > most:
            raise InputError(
                f"must be at most {most:,}, the rows of the smaller sample; got {self.size:,}.",
                argument="subset_size",
            )

    def mean(
        self, found: Estimate, samples: Sequence[NDArray[Any]], kernel: PairKernel
    ) -> Estimate:
        """Return `found`, the estimate from all pairs of `samples`, with the mean as its value.

        Given the samples, that mean is unbiased for the U-statistic of all pairs: the choice of
        subsets adds its own variance to that of the samples, and nothing else.
        """
        distances = self._distances(samples, kernel) * factor_of(kernel.unit, kernel.power)
        spread = float(distances.std())
        choice = spread**2 / (self.count - 1)
        found = replace(
            found,
            value=float(distances.mean()),
            estimator="subsets",
            sample=replace(found.sample, variance=found.sample.variance + choice),
            details=(f"mean of {self.count} random subsets of {self.size:,} rows",),
        )
        spread_text, stderr = number(spread), number(found.stderr)
        return found.warned(
            warn_of("subset-spread", spread=spread_text, size=self.size, stderr=stderr)
        )

    def _distances(self, samples: Sequence[NDArray[Any]], kernel: PairKernel) -> Float:
        """Score random rows of either side by their U-statistic; no row is drawn twice."""
        size, rng, found = self.size, validation.seeded(self.seed, "subsets"), []
        for _ in range(self.count):
            x, y = (
                kernel.prepared(rows[np.sort(rng.choice(len(rows), size, replace=False))])
                for rows in samples
            )
            squares = (kernel.block(rows, rows) for rows in (x, y))
            within = (float(k.sum() - np.trace(k)) / (size * (size - 1.0)) for k in squares)
            found.append(sum(within) - 2.0 * float(kernel.block(x, y).mean()))
        return np.array(found)


class KernelReference:
    """Reference features prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d) or Sample
    degree, gamma, offset
        Of the polynomial kernel, as in `kernel_inception_distance`.
    kernel, bandwidth
        As in `kernel_distance`.

    Attributes
    ----------
    n, d : int
        Number of rows and of features.
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
            self.sample = check_rows("real", real, needs=NEEDS, minimum=MINIMUM, crossed=True)
            self._rows = self.sample.rows
            self.n, self.d = len(self._rows), self._rows.shape[1]
            self._weights = self.sample.drawing.weights
            self._largest = self._checked("real", self._rows)
            self._kernel = kernels.pair_kernel(kernel, bandwidth, self._rows, largest=self._largest)
        # By the unit of the features, and whether the kernel is evaluated in single precision.
        self._within: dict[tuple[float, bool], Within] = {}

    def kernel_of(self, models: Mapping[str, NDArray[Any]]) -> PairKernel:
        """Check the rows of models, by name; return the kernel that is fit for all of them."""
        largest = self._largest
        for name, rows in models.items():
            with validation.about_model(name):
                validation.check_same_dimension("fake", rows.shape[1], "real", self.d)
                largest = max(largest, self._checked("fake", rows))
        kernel = self._kernel.for_rows(largest)
        factor_of(kernel.unit, kernel.power)  # refuses what leaves double precision
        return kernel

    @property
    def v_statistic(self) -> float:
        """Mean of the kernel over all pairs of reference rows, each with itself included."""
        within, weights = self._prepared(self._kernel), self._weights
        return float(weights @ (within.others + weights * within.diagonal))

    def pair_sum(self, one: NDArray[Any], two: NDArray[Any] | None = None) -> float:
        """Sum of the kernel, less its constant, over all pairs of a row of `one` and one of `two`.

        Parameters
        ----------
        one : ndarray of shape (n, d)
        two : ndarray of shape (k, d), optional
            By default the reference rows, by their weights.

        Returns
        -------
        float
        """
        others, weights = self._rows, self.n * self._weights
        if two is not None:
            others, weights = two, np.ones(len(two))
        blocks = kernels.kernel_blocks(self._kernel, one, others)
        return float(kernels.weighted_sums(blocks, np.ones(len(one)), weights)[0].sum())

    def _checked(self, name: str, rows: NDArray[Any]) -> float:
        """Check the rows; return the largest length of one."""
        if self._directions:
            kernels.check_directions(name, rows.any(axis=1))
        largest = 0.0
        for _, block in row_blocks(rows):
            entry = float(np.abs(block).max())
            if entry > largest / sqrt(block.shape[1]):  # else no row of it can be longer
                squares = ((block / entry) ** 2).sum(axis=1)
                largest = max(largest, entry * sqrt(float(squares.max())))
        return largest

    def _prepared(self, kernel: PairKernel) -> Within:
        key = kernel.unit, kernel.in_single
        if key not in self._within:
            self._within = {key: Within.of(self._rows, kernel, self._weights)}
        return self._within[key]

    def estimate(
        self, fake: Any, *, estimator: str = "debiased", subsets: RandomSubsets | None = None
    ) -> Estimate:
        """Estimate of `fake` with its variance and influences, before any level is chosen.

        `estimator` as for `kernel_distance`; with `subsets` the value is their mean.
        """
        validation.check_choice("estimator", estimator, ESTIMATORS)
        if self._origin:
            check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        with threads_for(max(_work(fake), _work(self._rows))):
            return score_by_class(
                fake, self._classes, lambda x: self._estimate(x, estimator, subsets)
            )

    def _estimate(self, fake: Any, estimator: str, subsets: RandomSubsets | None) -> Estimate:
        seen = check_rows("fake", fake, needs=NEEDS, minimum=MINIMUM, crossed=True)
        kernel, real = self.kernel_of({"": seen.rows}), self.sample
        by_rows = all(one.design is None or one.design.independent for one in (seen, real))
        by_rows = by_rows and shared_units(seen.design, real.design) is None
        if subsets is not None:
            subsets.check(by_rows, most=min(len(seen.rows), self.n))
        within = self._prepared(kernel)
        found = kernel_estimate((seen, real), kernel, within, by_rows=by_rows, estimator=estimator)
        # What the samples show of how they were drawn, in the units of the features.
        warnings = (
            *drawing_warnings(seen, real),
            *heavy_tails(found),
            *found.warnings,
            *self._blindness,
            *lost_digits(kernel, (seen.rows, self._rows)),
        )
        found = scaled_back(replace(found, warnings=warnings), kernel.unit, power=kernel.power)
        if subsets is None:
            return found
        return subsets.mean(found, (seen.rows, self._rows), kernel)

    @cached_property
    def _blindness(self) -> tuple[Diagnostic, ...]:
        """Warn of a bandwidth that lets no row of the reference see another."""
        kernel = self._kernel
        if not isinstance(kernel, kernels.Radial) or any(kernel.near_one):
            return ()
        rows = kernel.prepared(spread_rows(self._rows, SEEN_ROWS))
        values = kernel.block(rows, rows)
        nearness = float(values.sum() - np.trace(values)) / (len(rows) * (len(rows) - 1))
        if nearness * (self.n - 1) >= LEAST_SEEN * kernel.factor:
            return ()
        return (warn_of("blind-kernel", bandwidth=max(kernel.bandwidths)),)


def _work(x: Any) -> float:
    """Multiply-adds of the kernel of all pairs of these rows."""
    shape: tuple[int, ...] = getattr(x, "shape", ())
    return float(shape[0]) ** 2 * float(shape[1]) if len(shape) == 2 else 0.0


def lost_digits(kernel: PairKernel, samples: Sequence[NDArray[Any]]) -> tuple[Diagnostic, ...]:
    """Warn of a polynomial of samples all of which lie too far from 0."""
    if not isinstance(kernel, kernels.Polynomial):
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


class RunningKid(GrowingPairs):
    """Plug-in kernel distance, such as KID.

    Parameters
    ----------
    reference : KernelReference
    """

    def __init__(self, reference: KernelReference) -> None:
        super().__init__(reference.pair_sum)
        self._reference = reference
        self._crossed = 0.0

    def add(self, rows: NDArray[Any]) -> None:
        """Take up rows of shape (b, d)."""
        super().add(rows)
        self._crossed += self._reference.pair_sum(rows)

    def loss(self) -> float:
        """Plug-in distance of all rows so far; -inf before two."""
        n, reference = self.n, self._reference
        if n < 2:
            return -math.inf
        within = self.total / n**2
        return within + reference.v_statistic - 2.0 * self._crossed / (n * reference.n)


def _spec(name: str, kernel: str, **said: Any) -> MetricSpec:
    prepare = partial(
        prepared_by,
        partial(KernelReference, kernel=kernel),
        follow=RunningKid,
        minimum=LEAST_ROWS,
        sampled_reference=True,
    )
    return MetricSpec(name=name, prepare=prepare, **said)


KID = _spec(
    "kid",
    "polynomial",
    options=("degree", "gamma", "offset"),
    title="Kernel Inception distance",
    summary="kernel Inception distance: squared MMD, polynomial kernel, all pairs",
)

CMMD = _spec(
    "cmmd",
    "cmmd",
    options=("bandwidth",),
    title="CMMD",
    summary="squared MMD of rows of length one, RBF kernel of bandwidth 10, × 1000",
)

KAD = _spec(
    "kad",
    "kad",
    options=("bandwidth",),
    title="Kernel audio distance",
    summary="kernel audio distance: squared MMD, RBF kernel of median width, × 100",
)

ENERGY = _spec(
    "energy",
    "energy",
    title="Energy distance",
    summary="energy distance: squared MMD with the kernel -‖x-y‖, no parameters",
    unit="feature units",
)
