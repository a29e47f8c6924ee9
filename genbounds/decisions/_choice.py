"""What a choice does to the score of what was chosen, and how to correct it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from genbounds.results import Score
from genbounds.validation import Float, InputError, check_count

DRAWS = 20_000
"""Simulated choices: the correction is then known to a hundredth of a standard error."""


def choice_bias(losses: Float, covariance: Float, rng: np.random.Generator) -> float:
    """Return by how much the least of several estimates is too small on average.

    Parameters
    ----------
    losses : ndarray of shape (t,)
        Estimates, small is good.
    covariance : ndarray of shape (t, t)
        Of their errors.
    rng : Generator

    Returns
    -------
    float
        Negative, or 0.

    Notes
    -----
    A parametric bootstrap: values are drawn around the estimates, which are first shrunk to their
    mean by as much of their spread as is noise (they spread more than the truth does).
    """
    t = losses.size
    if t < 2:
        return 0.0
    spread = float(((losses - losses.mean()) ** 2).sum())
    # Expected spread of pure noise; what is common to all moves no choice.
    noise = float(np.trace(covariance) - covariance.sum() / t)
    kept = max(0.0, 1.0 - noise / spread) if spread > 0.0 else 0.0
    centre = losses.mean() + kept * (losses - losses.mean())
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    errors = rng.standard_normal((DRAWS, t)) @ root.T
    chosen = (centre + errors).argmin(axis=1)
    return min(0.0, float(errors[np.arange(DRAWS), chosen].mean()))


def best_of(score: Score, k: int) -> Score:
    """Correct a score for being the best of several evaluations of one model.

    Parameters
    ----------
    score : Score
        The best of them: the least, or the largest where higher is better.
    k : int
        How many evaluations there were, each with rows of its own and as many.

    Returns
    -------
    Score
        With the bias of the choice removed, and an interval for the score of the model.

    Raises
    ------
    InputError
        If `k` is no whole number of at least 1, or `score` is no `Score`.

    Notes
    -----
    The least of k normal values lies 0.56, 0.85, 1.16 and 1.54 standard errors below their mean at
    k = 2, 3, 5 and 10. With q(p) = Φ⁻¹(1 − (1 − p)^{1/k}), its quantiles, the interval is
    [y − q(1 − α/2) se, y − q(α/2) se]. The mean of all k evaluations is both simpler and more
    exact; use this where only the best one was reported. The best of k *training runs* is
    another matter: see `compare_recipes`.

    Examples
    --------
    >>> import genbounds as gb
    >>> score = gb.Score(value=3.0, low=2.8, high=3.2, level=0.95, stderr=0.1, n=1000,
    ...                  estimator="debiased", method="second-order")
    >>> print(f"{gb.best_of(score, 3):.3f}")
    3.085
    """
    if not isinstance(score, Score):
        raise InputError(f"must be a Score; got {type(score).__name__}.", argument="score")
    k = check_count("k", k)
    if k == 1:
        return score
    tail = (1.0 - score.level) / 2.0
    mean, spread = _least_moments(k)
    offsets = [-mean, -_least_quantile(1.0 - tail, k), -_least_quantile(tail, k)]
    if score.higher_is_better:
        offsets = [-offsets[0], -offsets[2], -offsets[1]]
    value, low, high = (score.value + offset * score.stderr for offset in offsets)
    return replace(
        score,
        value=value,
        low=low,
        high=high,
        stderr=score.stderr * spread,
        assumptions=(
            *score.assumptions,
            f"it is the best of {k} evaluations of one model, each with rows of its own and as "
            "many; what they share (a small reference) makes the correction too large",
        ),
        details=(*score.details, f"corrected for the best of {k} evaluations"),
    )


def _least_quantile(p: float, k: int) -> float:
    """Return the p-quantile of the least of k standard normal values."""
    from scipy.special import ndtri

    # 1 - (1 - p)^(1/k), exact for small p as well.
    return float(ndtri(-math.expm1(math.log1p(-p) / k)))


def _least_moments(k: int) -> tuple[float, float]:
    """Return mean and standard deviation of the least of k standard normal values."""
    from scipy.special import log_ndtr

    x = np.linspace(-12.0, 12.0, 4801)  # the trapezoidal rule is exact to rounding for such curves
    weights = k * np.exp(-0.5 * x**2 + (k - 1) * log_ndtr(-x)) / math.sqrt(2.0 * math.pi) * 0.005
    mean = float(weights @ x)
    return mean, math.sqrt(float(weights @ (x - mean) ** 2))
