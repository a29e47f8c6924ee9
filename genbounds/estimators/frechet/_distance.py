"""Fréchet distance between two sets of features: plug-in, and with its bias removed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._design import design_of
from genbounds.estimators._estimate import Estimate
from genbounds.estimators._extrapolation import Subsets
from genbounds.estimators._moments import Moments
from genbounds.estimators._resampling import (
    Interval,
    Jackknife,
    bootstrap_score,
    check_interval,
    jackknife_score,
)
from genbounds.estimators._scale import factor_of, scaled_back, unit_of
from genbounds.estimators.frechet._pair import plugin_value
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    FrechetSample,
    sample_of,
    sample_of_rows,
)
from genbounds.estimators.frechet._strategies import debiased, infinity, plugin
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Score
from genbounds.samples import Sample, features_of
from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_features,
    check_open_unit,
    check_same_dimension,
)

ESTIMATORS = ("debiased", "plugin", "infinity")

DECADES = 20.0
"""How far the size of features may be from 1: eighth powers of it, and products, are formed."""

NEGLIGIBLE_TRACE = 1e-60
"""Of one covariance beside the other: its square roots are then beyond double precision."""


def frechet_distance(
    fake: Any,
    real: Any,
    *,
    estimator: str = "debiased",
    level: float = 0.95,
    interval: Interval = "influence",
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
    interval : {"influence", "jackknife", "bootstrap"} or Jackknife or Bootstrap
        How the interval is made. The default needs one estimate and is the one whose coverage is
        measured in docs/accuracy.md; the others recompute the estimate, for comparison.

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
    Second-order expansion and influence function: docs/frechet.md. With fewer than 4 samples per
    dimension: docs/few_samples.md. The root is never taken of a non-symmetric product: values are
    real at every sample size.

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
    level = check_open_unit("level", level)
    check_choice("estimator", estimator, ESTIMATORS)
    plan = check_interval(interval)
    reference = FrechetReference(real)
    found = reference.estimate(fake, estimator=estimator, influences=False)
    found = found.made_from({"`fake`": origin_of(fake), "`real`": origin_of(real)})
    if plan is None:
        return found.score(level)
    samples = (_resampled_rows("fake", fake), _resampled_rows("real", real))

    def estimate(rows: Sequence[NDArray[Any] | None]) -> float:
        one, two = rows
        # Rows drawn again repeat on purpose: they are taken as independent.
        again = reference if two is samples[1] else FrechetReference(Sample(two))
        kept = fake if one is None else Sample(one)
        return again.estimate(kept, estimator=estimator, influences=False).value

    if isinstance(plan, Jackknife):
        return jackknife_score(found, estimate, samples, plan, level)
    for name, rows in zip(("fake", "real"), samples, strict=True):
        if rows is not None and len(rows) < FEW_RATIO * rows.shape[1]:
            raise InputError(
                f"has {len(rows)} rows for {rows.shape[1]} features: the bootstrap "
                f"repeats rows and needs {FEW_RATIO} a feature. Use the default interval.",
                argument=name,
            )
    sides = (_empirical(given) for given in (fake, real))
    empirical = FrechetReference(next(sides)).plugin(next(sides))
    return bootstrap_score(found, estimate, samples, empirical, plan, level)


def _resampled_rows(name: str, x: Any) -> NDArray[Any] | None:
    """Rows to resample; None where the moments are exact."""
    if design_of(name, x) is not None:
        raise InputError(
            "is a Sample with groups, strata or weights, which has the interval 'influence' only.",
            argument=name,
        )
    if not isinstance(x, Moments):
        return check_features(name, features_of(x))
    if x.n is not None:
        raise InputError(
            "is given by its moments, which cannot be resampled: pass the features, or "
            "use the default interval.",
            argument=name,
        )
    return None


def _empirical(x: Any) -> Moments:
    """Exact moments of the distribution that puts equal weight on every row."""
    if isinstance(x, Moments):
        return x
    moments = Moments.from_features(x)
    assert moments.n is not None
    return Moments(moments.mean, moments.cov * (1.0 - 1.0 / moments.n))


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
    level = check_open_unit("level", level)
    reference = FrechetReference(real)
    found = reference.estimate(fake, estimator="infinity", subsets=subsets, influences=False)
    return found.score(level)


class FrechetReference:
    """A reference prepared once, against which any number of models can be scored.

    Parameters
    ----------
    real : array_like of shape (m, d), Sample or Moments

    Notes
    -----
    Holds a factor ``cov = L @ L.T`` of the reference covariance, and of those of its two random
    halves where they are needed. Each model then costs its covariance, one symmetric eigenproblem
    of size at most d and the products for its error.
    """

    def __init__(self, real: Any) -> None:
        self._side = sample_of("real", real)
        if isinstance(real, Moments):
            _ = self._side.factor  # refuses what is no covariance before anything is drawn
        self._origin = origin_of(real)

    @property
    def d(self) -> int:
        """Number of features."""
        return self._side.d

    @property
    def n(self) -> int | None:
        """Reference samples; None if the moments are exactly known."""
        return self._side.n

    @property
    def has_rows(self) -> bool:
        """Whether the reference is known row by row, not by its moments alone."""
        return self._side.rows is not None

    @property
    def serves_few_samples(self) -> bool:
        """Whether models with fewer than four samples per dimension get reliable scores.

        Not if the reference has as few itself and only its moments are known.
        """
        side = self._side
        return self.has_rows or side.effective >= FEW_RATIO * side.directions

    @property
    def moments(self) -> Moments:
        """Mean and covariance of the reference."""
        return self._side.moments

    @property
    def factor(self) -> Float:
        """L of shape (d, r) with ``cov = L @ L.T``, r the numerical rank."""
        return self._side.factor

    def plugin(self, fake: Any) -> float:
        """Plug-in distance of `fake`, biased upward; never negative."""
        side, real, unit = self._pair(fake if isinstance(fake, Moments) else Sample(fake))
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
        part of the rows of a large sample stands for all in bias and variance (docs/frechet.md).
        """
        side, real, unit = self._pair(fake)
        check_choice("estimator", estimator, ESTIMATORS)
        if estimator == "plugin":
            found = plugin(side, real, influences)
        elif estimator == "infinity":
            if not (side.independent and real.independent):
                raise InputError(
                    "FD∞ draws subsets of independent rows: use 'debiased' with groups, strata or "
                    "weights."
                )
            found = infinity(side, real, subsets or Subsets(), influences)
        else:
            found = debiased(side, real, influences)
        return scaled_back(found, unit, power=2)

    def _pair(self, fake: Any) -> tuple[FrechetSample, FrechetSample, float]:
        """Return both samples, and the power of two by which their features were divided."""
        check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
        side, real = sample_of("fake", fake), self._side
        check_same_dimension("fake", side.d, "real", real.d)
        unit = unit_of(_size(side, real), decades=DECADES)
        if unit != 1.0:
            side, real = _divided_by("fake", unit, side), _divided_by("real", unit, real)
        _check_ratio(side, real)
        return side, real, unit


def _size(fake: FrechetSample, real: FrechetSample) -> float:
    """Return the length that the features' deviations, or the gap of their means, are about."""
    gap = fake.mean - real.mean
    with np.errstate(over="ignore"):
        total = fake.trace + real.trace + float(gap @ gap)
    if 1e-280 < total < math.inf:
        return math.sqrt(total)
    # Squares are not to be trusted.
    sides = [side.centred() for side in (fake, real) if side.rows is not None]
    roots = [math.sqrt(side.trace) for side in (fake, real) if side.rows is None]
    return max(float(np.abs(gap).max()), *(float(np.abs(x).max()) for x in sides), *roots)


def _divided_by(name: str, unit: float, side: FrechetSample) -> FrechetSample:
    """Return the same sample in other units: what is known of its rows stays known."""
    if side.rows is None:
        return FrechetSample(side.moments.divided_by(unit), name=name)
    rows = np.asarray(side.rows, dtype=np.float64) / unit
    scaled = sample_of_rows(name, rows, side.design)
    scaled.seen = side.seen
    return scaled


def _check_ratio(fake: FrechetSample, real: FrechetSample) -> None:
    """Refuse a sample that is constant beside the other in double precision."""
    small, large = sorted((fake.trace, real.trace))
    if 0.0 < small < NEGLIGIBLE_TRACE * large:
        raise InputError(
            f"and `real` have variances of {fake.trace:.3g} and {real.trace:.3g} in all: "
            "beside the larger one the smaller is constant, and its sampling error cannot be "
            "computed in double precision. Pass it as Moments(mean, zeros of shape (d, d), n).",
            argument="fake",
        )
