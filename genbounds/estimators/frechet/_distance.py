"""Fréchet distance between two sets of features: plug-in, and with its bias removed."""

from __future__ import annotations

from typing import Any

from genbounds.estimators._extrapolation import Subsets
from genbounds.estimators.frechet._reference import ESTIMATORS, FrechetReference
from genbounds.origins import origin_of
from genbounds.results import Score
from genbounds.validation import check_choice, check_open_unit, refuse_removed_interval


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
    level = check_open_unit("level", level)
    check_choice("estimator", estimator, ESTIMATORS)
    refuse_removed_interval(interval)
    reference = FrechetReference(real)
    estimate = reference.estimate(fake, estimator=estimator, influences=False)
    origins = {"`fake`": origin_of(fake), "`real`": origin_of(real)}
    return estimate.made_from(origins).score(level)


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
    estimate = reference.estimate(fake, estimator="infinity", subsets=subsets, influences=False)
    return estimate.score(level)
