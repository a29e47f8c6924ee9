"""The best of several evaluations of one model, and how to correct its score."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real

import numpy as np

from genbounds._text import percent
from genbounds.results import Score
from genbounds.validation import InputError, check_count


def best_of(score: Score, k: int, *, shared: float = 0.0) -> Score:
    """Correct a score for being the best of several evaluations of one model.

    Parameters
    ----------
    score : Score
        The best of them: the least, or the largest where higher is better.
    k : int
        How many evaluations there were, each with rows of its own and as many.
    shared : float
        Part of the variance that all evaluations have in common, from 0 to 1: that of a small
        reference. With s the standard error of the difference of two evaluations (`compare`) it is
        1 - s²/(2 se²).

    Returns
    -------
    Score
        With the bias of the choice removed, and an interval for the score of the model.

    Raises
    ------
    InputError
        If `k` is no whole number of at least 1, `shared` no number from 0 to 1, or `score` no
        `Score`.

    Notes
    -----
    The least of k normal values lies 0.56, 0.85, 1.16 and 1.54 standard errors below their mean at
    k = 2, 3, 5 and 10. With q(p) = Φ⁻¹(1 − (1 − p)^{1/k}), its quantiles, the interval is
    [y − q(1 − α/2) se, y − q(α/2) se]; what they share is a normal error more. The mean of all k
    evaluations is both simpler and more exact; use this where only the best one was reported. The
    best of k *training runs* is another matter: see `compare_recipes`.

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
    own = math.sqrt(1.0 - _check_share(shared))
    mean, spread = _least_moments(k)
    mean, spread = own * mean, math.hypot(own * spread, math.sqrt(shared))
    offsets = [-mean, *(-_least_quantile(p, k, own) for p in (1.0 - tail, tail))]
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
            f"many, which have {percent(shared)} of their variance in common",
        ),
        details=(*score.details, f"corrected for the best of {k} evaluations"),
    )


def _check_share(shared: object) -> float:
    given = isinstance(shared, Real) and not isinstance(shared, bool)
    if not (given and 0.0 <= float(shared) <= 1.0):  # type: ignore[arg-type]
        raise InputError(f"must be a number from 0 to 1; got {shared!r}.", argument="shared")
    return float(shared)  # type: ignore[arg-type]


def _least_quantile(p: float, k: int, own: float) -> float:
    """Return the p-quantile of the least of k normal values and a common error of the rest."""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtri

    if own == 1.0:
        # 1 - (1 - p)^(1/k), exact for small p as well.
        return float(ndtri(-math.expm1(math.log1p(-p) / k)))
    u = np.linspace(-9.0, 9.0, 3601)
    weights = np.exp(-0.5 * u**2) / math.sqrt(2.0 * math.pi) * 0.005
    common = math.sqrt(1.0 - own**2)

    def excess(x: float) -> float:
        least = k * log_ndtr(-(x - common * u) / max(own, 1e-6))  # log P(all are larger)
        return float(weights @ -np.expm1(least)) - p

    return float(brentq(excess, -20.0, 20.0, xtol=1e-12))


def _least_moments(k: int) -> tuple[float, float]:
    """Return mean and standard deviation of the least of k standard normal values."""
    from scipy.special import log_ndtr

    x = np.linspace(-12.0, 12.0, 4801)  # the trapezoidal rule is exact to rounding for such curves
    weights = k * np.exp(-0.5 * x**2 + (k - 1) * log_ndtr(-x)) / math.sqrt(2.0 * math.pi) * 0.005
    mean = float(weights @ x)
    return mean, math.sqrt(float(weights @ (x - mean) ** 2))
