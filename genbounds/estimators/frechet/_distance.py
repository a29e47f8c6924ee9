"""Fréchet distance between two sets of features, and a reference that serves any number of models.

Plug-in, and with its bias removed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from genbounds import validation
from genbounds._process import threads_for
from genbounds.core.class_shares import at_reference_shares, classes_of, shares_differ
from genbounds.core.design import Index
from genbounds.core.estimate import Estimate, bias_left
from genbounds.core.moments import Moments
from genbounds.core.scale import factor_of, scaled_back, unit_of
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators._extrapolation import LINEAR, Subsets, extrapolate, not_independent
from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.frechet._few import debias_by_fit
from genbounds.estimators.frechet._pair import (
    FrechetPair,
    debias_by_expansion,
    make_estimate,
    plugin_value,
)
from genbounds.estimators.frechet._running import RunningFrechet
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    FIT_RATIO,
    FrechetSample,
    directions_of,
    sample_of,
)
from genbounds.estimators.spectrum_fit._root import REPEATED_SHARE
from genbounds.origins import UNKNOWN, check_same_encoder, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.samples import Sample
from genbounds.validation import Float, InputError

ESTIMATORS = ("debiased", "plugin", "infinity")

FIT_DIRECTIONS = 100
"""From so many dimensions on, and below `FIT_RATIO` samples per dimension, the spectrum fit still
errs less than the expansion, for every distribution tried (docs/explanation/few_samples.md): its
remainder falls with the samples per dimension, the standard error with the number of dimensions as
well."""

DOUBTS = ("misfit", "few-samples")
"""Warnings about the fit itself, after which the expansion is the better choice. Others, such as
heavy tails, would be true of either."""

DECADES = 20.0
"""How far the size of features may be from 1: eighth powers of it, and products, are formed."""

NEGLIGIBLE_TRACE = 1e-60
"""Of one covariance beside the other: its square roots are then beyond double precision."""


LARGEST_OFFSET = 1e7
"""Means of features, in standard deviations, whose differences keep eight digits or more."""

LOST_OFFSET = 1e10
"""The same, from which on moments alone, which cannot be moved, have lost what counts."""


def frechet_distance(
    fake: Any,
    real: Any,
    *,
    estimator: str = "debiased",
    level: float = 0.95,
    interval: str = "influence",
) -> Score:
    """Fréchet distance (squared, as in FID tables) between two sets of features.

    ``‖μ - μ_r‖² + Tr[Σ + Σ_r - 2 (Σ Σ_r)^(1/2)]``; covariances have divisor n - 1.

    Parameters
    ----------
    fake, real : array_like of shape (n, d), Sample or Moments
        Generated and reference features, NumPy or torch, any floating type; a `Sample` of them that
        says how rows depend on one another or are weighted; or their moments.
        ``Moments(..., n=None)`` is exactly known.
    estimator : {"debiased", "plugin", "infinity"}
        "debiased" removes the bias of both samples by a method chosen from the numbers of samples
        and features (`Score.method`); "plugin" is the usual biased number; "infinity" is FD∞ as
        published (`frechet_infinity` has its options).
    level : float
        Coverage of the interval, in (0, 1).
    interval : {"influence"}
        From the influence of every row. Resampled intervals are no longer offered.

    Returns
    -------
    Score
        Squared feature units, with warnings where the interval cannot be trusted.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal: fewer than 2 samples, different numbers of
        features, NaN or infinite entries, a covariance that is not positive semidefinite; or if
        the samples come from files that name different encoders.

    Notes
    -----
    Second-order expansion and influence function: docs/explanation/frechet.md. With fewer than 4
    samples per dimension: docs/explanation/few_samples.md. The root is never taken of a
    non-symmetric product: values are real at every sample size.

    References
    ----------
    .. [1] D. C. Dowson and B. V. Landau, "The Fréchet distance between multivariate normal
       distributions", J. Multivariate Analysis 12, 1982.
    .. [2] M. Heusel et al., "GANs trained by a two time-scale update rule converge to a local Nash
       equilibrium", NeurIPS 2017 (the FID).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> score = gb.frechet_distance(rng.normal(size=(2000, 4)), rng.normal(0.5, size=(2000, 4)))
    >>> bool(score.low < 1.0 < score.high)
    True
    """
    level = validation.check_open_unit("level", level)
    validation.check_choice("estimator", estimator, ESTIMATORS)
    if interval != "influence":
        raise validation.removed_interval()
    reference = FrechetReference(real)
    estimate = reference.estimate(fake, estimator=estimator, influences=False)
    return estimate.made_from(fake=fake, real=real).score(level)


def frechet_infinity(
    fake: Any, real: Any, *, level: float = 0.95, subsets: Subsets | None = None
) -> Score:
    """FD∞ as published: plug-in distances of random subsets, extrapolated linearly in 1/N.

    Parameters
    ----------
    fake : array_like of shape (n, d)
        The pool; n >= 20.
    real : array_like of shape (m, d) or Moments
        Its own bias is left in, as published.
    level : float
    subsets : Subsets, optional
        Number of sizes, smallest size, spacing, replacement, repeats.

    Returns
    -------
    Score
        `stderr` joins the sampling error of the pool and the scatter about the line.

    Raises
    ------
    InputError
        As `frechet_distance`; or if the pool is too small, or `subsets` not legal.

    References
    ----------
    .. [1] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020, §3.3 and §4.3.
    """
    level = validation.check_open_unit("level", level)
    reference = FrechetReference(real)
    estimate = reference.estimate(fake, estimator="infinity", subsets=subsets, influences=False)
    return estimate.score(level)


class FrechetReference:
    """A reference prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d), Sample or Moments

    Attributes
    ----------
    d : int
        Number of features.
    n : int or None
        Reference samples; None if the moments are exactly known.
    has_rows : bool
        Whether the reference is known row by row, not by its moments alone.
    serves_few_samples : bool
        Whether models with fewer than four samples per dimension get reliable scores: not if the
        reference has as few itself and only its moments are known.

    Notes
    -----
    Holds a factor ``cov = L @ L.T`` of the reference covariance, and of those of its two random
    halves where they are needed. Each model then costs its covariance, one symmetric eigenproblem
    of size at most d and the products for its error.
    """

    def __init__(self, real: Any) -> None:
        self._work = _work(real)
        with threads_for(self._work):
            self._side = sample_of("real", real)
            if isinstance(real, Moments):
                _ = self._side.factor  # refuses what is no covariance before anything is drawn
        self.d, self.n = self._side.mean.size, self._side.n
        self.has_rows = self._side.rows is not None
        self.serves_few_samples = (
            self.has_rows or self._side.effective >= FEW_RATIO * directions_of(self._side)
        )
        self._classes = classes_of(real) if isinstance(real, Sample) else None
        self._origin = origin_of(real) if hasattr(real, "origin") else UNKNOWN

    @property
    def moments(self) -> Moments:
        """Mean and covariance of the reference."""
        side = self._side
        return side.moments or Moments(side.mean, side.cov, side.n)

    @property
    def factor(self) -> Float:
        """L of shape (d, r) with ``cov = L @ L.T``, r the numerical rank."""
        return self._side.factor

    def plugin(self, fake: Any) -> float:
        """Plug-in distance of `fake`, biased upward; never negative."""
        with threads_for(max(_work(fake), self._work)):
            side, real, unit, _ = self._pair(fake, plain=True)
            return plugin_value(side, real) * factor_of(unit, 2)

    def estimate(
        self,
        fake: Any,
        *,
        estimator: str = "debiased",
        subsets: Subsets | None = None,
        influences: bool = True,
    ) -> Estimate:
        """Estimate with its variance and influences, before any level is chosen.

        `fake` and `estimator` are those of `frechet_distance`, `subsets` those of
        `frechet_infinity`. With ``influences=False``, for one score and no difference, a random
        part of the rows of a large sample stands for all in bias and variance
        (docs/explanation/frechet.md).
        """
        validation.check_choice("estimator", estimator, ESTIMATORS)
        if isinstance(fake, Sample):
            fake = at_reference_shares(fake, self._classes)
        with threads_for(max(_work(fake), self._work)):
            side, real, unit, offset = self._pair(fake)
            if estimator == "plugin":
                found = plugin(side, real, every_row=influences)
            elif estimator == "infinity":
                if not (side.independent and real.independent):
                    raise not_independent("FD∞")
                found = infinity(side, real, subsets or Subsets(), every_row=influences)
            else:
                found = debias(side, real, every_row=influences)
        if offset > LOST_OFFSET:
            found = found.warned(warn_of("far-from-zero", offset=offset))
        if influences and side.seen is not None:
            found = replace(found, sample=replace(found.sample, row_ids=side.seen.single_ids))
        if unit != 1.0:
            found = scaled_back(found, unit, power=2)
        if not isinstance(fake, Sample):
            return found
        again = partial(self.estimate, estimator=estimator, subsets=subsets, influences=influences)
        return found.warned(*shares_differ(fake, self._classes, again))

    def _pair(
        self, fake: Any, *, plain: bool = False
    ) -> tuple[FrechetSample, FrechetSample, float, float]:
        """Return both samples as they are computed with: moved and scaled where digits need it.

        And the power of two by which features were divided, and the largest mean of a feature that
        both share, in standard deviations.
        """
        if self._origin:
            check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        if plain and not isinstance(fake, Moments):
            fake = validation.check_features("fake", fake)
            validation.check_finite("fake", fake)
        side, real = sample_of("fake", fake, plain=plain), self._side
        validation.check_same_dimension("fake", side.mean.size, "real", real.mean.size)
        common = np.minimum(np.abs(side.mean), np.abs(real.mean))
        spread = math.sqrt(max(side.trace, real.trace) / common.size)
        offset = float(common.max()) / spread if spread > 0.0 else 0.0
        if offset > LARGEST_OFFSET and side.rows is not None and real.rows is not None:
            offset, origin = 0.0, np.asarray(real.rows[0], dtype=np.float64)
            side, real = (_moved(one, origin=origin) for one in (side, real))
        gap, unit = side.mean - real.mean, 1.0
        with np.errstate(over="ignore"):
            size = side.trace + real.trace + float(gap @ gap)
        if not 10.0 ** (-2.0 * DECADES) <= size <= 10.0 ** (2.0 * DECADES):
            unit = _unit(side, real, gap, size)
            side, real = (_moved(one, unit=unit) for one in (side, real))
        small, large = sorted((side.trace, real.trace))
        if 0.0 < small < NEGLIGIBLE_TRACE * large:
            raise _constant_beside(side, real, unit)
        return side, real, unit, offset


def _work(x: Any) -> float:
    """Multiply-adds of a covariance of these rows, or of a product of two covariances."""
    if isinstance(x, Moments):
        return float(x.d) ** 3
    shape: tuple[int, ...] = getattr(x, "shape", ())
    return float(shape[0]) * float(shape[1]) * min(shape) if len(shape) == 2 else 0.0


def _unit(fake: FrechetSample, real: FrechetSample, gap: Float, size: float) -> float:
    """Return the power of two by which to divide the features.

    Their `size`, squared, is that of their deviations and of the gap of their means.
    """
    if 1e-280 < size < math.inf:
        return unit_of(math.sqrt(size), decades=DECADES)
    # Squares are not to be trusted.
    sides = [side.centred for side in (fake, real) if side.rows is not None]
    roots = [math.sqrt(side.trace) for side in (fake, real) if side.rows is None]
    largest = max(float(np.abs(gap).max()), *(float(np.abs(x).max()) for x in sides), *roots)
    return unit_of(largest, decades=DECADES)


def _moved(side: FrechetSample, *, origin: Float | float = 0.0, unit: float = 1.0) -> FrechetSample:
    """Return the same sample about this row, since large means cost digits, or in other units."""
    if side.moments is not None:
        return FrechetSample(side.name, side.moments.divided_by(unit), seen=side.seen)
    rows = (np.asarray(side.rows, dtype=np.float64) - origin) / unit
    return sample_of(side.name, rows, plain=True, design=side.design, seen=side.seen)


def _constant_beside(fake: FrechetSample, real: FrechetSample, unit: float) -> InputError:
    """Return the refusal of a sample that is constant beside the other in double precision."""
    return InputError(
        f"and `real` have standard deviations of {unit * math.sqrt(fake.trace):.3g} and "
        f"{unit * math.sqrt(real.trace):.3g}: beside the larger one the smaller is constant in "
        "double precision. Bring both to one unit; what is constant by right, pass as "
        "Moments(mean, zeros of shape (d, d), n).",
        argument="fake",
    )


# --- The estimators: debiased by the method that the sizes call for; as published -----------------


def debias(fake: FrechetSample, real: FrechetSample, *, every_row: bool) -> Estimate:
    """Remove the bias of both samples by the method that their sizes call for."""
    directions = directions_of(fake, real)
    ratios = [side.effective / directions for side in (fake, real)]
    few = min(ratios) < FEW_RATIO
    if few:
        # A few repeated rows, which real images have, do not disturb a fit.
        fake, real = (_without_repeats(sample) for sample in (fake, real))
    pair = FrechetPair(fake, real, every_row=every_row)
    if pair.common is None and fake.independent and real.independent:
        small, other = (fake, real) if fake.effective <= real.effective else (real, fake)
        fits = few or (
            min(ratios) < FIT_RATIO
            and directions >= FIT_DIRECTIONS
            and small.rows is not None
            and (other.rows is not None or max(ratios) >= FIT_RATIO)
        )
        if fits:
            estimate = debias_by_fit(pair, directions)
            doubts = {one.code for one in estimate.warnings if one.severity == "unreliable"}
            if few or doubts.isdisjoint(DOUBTS):
                return estimate
    return debias_by_expansion(pair, directions)


def _without_repeats(sample: FrechetSample) -> FrechetSample:
    design = sample.design
    if design is None or not design.of_repeats:
        return sample
    return sample if design.units < (1.0 - REPEATED_SHARE) * design.n else sample.as_independent()


def plugin(fake: FrechetSample, real: FrechetSample, *, every_row: bool) -> Estimate:
    """Return the biased value with the interval of its linear part."""
    expanded = FrechetPair(fake, real, every_row=every_row).expand()
    warnings: tuple[Diagnostic, ...] = ()
    if expanded.bias > 0.0:
        warnings = (bias_left(expanded.bias),)
    return make_estimate(
        "plug-in",
        plugin_value(_as_published(fake), _as_published(real)),
        (fake, real),
        expanded.errors,
        estimator="plugin",
        shared_variance=expanded.shared_variance,
        warnings=warnings,
    )


def _as_published(sample: FrechetSample) -> FrechetSample:
    """Return a sample with the covariance of divisor n - 1, however its rows were drawn."""
    design = sample.design
    if design is None or design.independent or design.weighted:
        return sample
    return sample.as_independent()


def infinity(
    fake: FrechetSample, real: FrechetSample, subsets: Subsets, *, every_row: bool
) -> Estimate:
    """FD∞: the generated rows extrapolated in 1/N, the reference as it is."""
    if fake.rows is None or fake.n is None:
        raise InputError("must be features for the estimator 'infinity', not moments.", "fake")
    n = fake.n
    pair = FrechetPair(fake, real, every_row=every_row)
    expanded = pair.expand()
    own, other = expanded.errors

    def score(index: Index) -> float:
        if index.size == n and not subsets.replace:
            return pair.plugin()
        part = FrechetPair(fake.some(index), real)
        return part.plugin(part.roots_alone)

    line = extrapolate(score, n, subsets)
    warnings = subsets.warnings
    own = replace(own, variance=own.variance + line.variance)
    if real.n is not None:
        # Units in both samples have a product of either, which no number of generated rows changes.
        left = other.bias + (0.0 if expanded.shared is None else expanded.shared.bias)
        variance = own.variance + other.variance + expanded.shared_variance
        # A bias of one standard error: the interval covers 83 % instead of 95 %.
        severity: Severity = "unreliable" if left**2 > variance else "caution"
        warnings += (warn_of("reference-bias-left", severity=severity, bias=left),)
    return make_estimate(
        "extrapolation",
        line.value,
        (fake, real),
        (own, other),
        estimator="infinity",
        shared_variance=expanded.shared_variance,
        warnings=warnings,
        assumptions=(LINEAR,),
        details=line.details,
    )


# --- the metric -----------------------------------------------------------------------------------


def _prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    prepared = FrechetReference(reference)
    return Prepared(
        estimate=prepared.estimate,
        plugin=prepared.plugin,
        follow=lambda columns: RunningFrechet(prepared),
        columns=prepared.d,
        # The noise of a sampled reference cancels row by row from four rows per feature on.
        samples_per_dimension=2 if prepared.n is None else 4,
        few_samples_per_dimension=0.5 if prepared.serves_few_samples else None,
        reference=prepared,
        sampled_reference=prepared.n is not None,
    )


FD = MetricSpec(
    name="fd",
    title="Fréchet distance",
    summary="Fréchet distance of means and covariances (FID); `fid` is the same",
    unit="squared feature units",
    prepare=_prepare,
    moments=True,
    estimators=ESTIMATORS,
    aliases=("fid",),
)

SFID = replace(
    FD,
    name="sfid",
    title="Fréchet distance of spatial features",
    summary="The same of spatial features; of files of statistics `mu_s` and `sigma_s`",
    statistics=("mu_s", "sigma_s"),
    aliases=(),
)
