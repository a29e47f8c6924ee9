"""Fréchet distance between two sets of features: plug-in, and with its bias removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from genbounds.core.moments import Moments
from genbounds.estimators._extrapolation import Subsets
from genbounds.estimators._resampling import (
    Interval,
    check_interval,
    resampled_rows,
    resampled_score,
)
from genbounds.estimators.frechet._reference import ESTIMATORS, FrechetReference
from genbounds.estimators.frechet._sample import FEW_RATIO
from genbounds.origins import origin_of
from genbounds.results import Score
from genbounds.samples import Sample
from genbounds.validation import InputError, check_choice, check_open_unit


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
        measured in docs/evidence/accuracy.md; the others recompute the estimate, for comparison.

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
    level = check_open_unit("level", level)
    check_choice("estimator", estimator, ESTIMATORS)
    plan = check_interval(interval)
    reference = FrechetReference(real)
    found = reference.estimate(fake, estimator=estimator, influences=False)
    found = found.made_from({"`fake`": origin_of(fake), "`real`": origin_of(real)})
    if plan is None:
        return found.score(level)
    samples = (resampled_rows("fake", fake), resampled_rows("real", real))

    def estimate(rows: Sequence[NDArray[Any] | None]) -> float:
        one, two = rows
        # Rows drawn again repeat on purpose: they are taken as independent.
        again = reference if two is samples[1] else FrechetReference(Sample(two))
        kept = fake if one is None else Sample(one)
        return again.estimate(kept, estimator=estimator, influences=False).value

    def empirical() -> float:
        for name, rows in zip(("fake", "real"), samples, strict=True):
            if rows is not None and len(rows) < FEW_RATIO * rows.shape[1]:
                raise InputError(
                    f"has {len(rows)} rows for {rows.shape[1]} features: the bootstrap "
                    f"repeats rows and needs {FEW_RATIO} a feature. Use the default interval.",
                    argument=name,
                )
        return FrechetReference(_empirical(fake)).plugin(_empirical(real))

    return resampled_score(found, estimate, samples, plan, level, empirical=empirical)


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
