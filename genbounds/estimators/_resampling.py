"""Intervals by recomputation: delete-group jackknife and bootstrap, to compare with influences.

Both treat the estimator as a black box of its samples. They are named alternatives, not the
default: the jackknife costs one estimate a group, the bootstrap one a resample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import quoted
from genbounds.core.design import design_of
from genbounds.core.estimate import EXACT, Estimate, SampleError
from genbounds.core.moments import Moments, random_groups
from genbounds.results import Score
from genbounds.samples import features_of
from genbounds.validation import Float, InputError, check_count, check_features

Rows = NDArray[Any]

Recompute = Callable[[Sequence[Rows | None]], float]
"""Value of an estimate, on its own scale, from generated and reference rows."""

INTERVALS = ("influence", "jackknife", "bootstrap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jackknife:
    """Delete-group jackknife; pass it as `interval`.

    Attributes
    ----------
    groups : int
        Random groups of equal size into which either sample is divided; at least 2.
    seed : int
        Of the division.
    """

    groups: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("groups", self.groups, minimum=2)
        check_count("seed", self.seed, minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Basic (reflected) bootstrap of the estimate's error; pass it as `interval`.

    Attributes
    ----------
    resamples : int
        At least 20; 1,000 and more for stable ends.
    seed : int
        Of the resampling.
    """

    resamples: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("resamples", self.resamples, minimum=20)
        check_count("seed", self.seed, minimum=0)


Interval = str | Jackknife | Bootstrap


def check_interval(interval: Any) -> Jackknife | Bootstrap | None:
    """Return how to resample; None for the interval from influences."""
    if isinstance(interval, (Jackknife, Bootstrap)):
        return interval
    named = {"influence": None, "jackknife": Jackknife(), "bootstrap": Bootstrap()}
    if isinstance(interval, str) and interval in named:
        return named[interval]
    raise InputError(
        f"must be one of {', '.join(map(repr, INTERVALS))}, a Jackknife or a Bootstrap; "
        f"got {quoted(interval)}.",
        argument="interval",
    )


def resampled_rows(name: str, x: Any) -> Rows | None:
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


def resampled_score(
    found: Estimate,
    estimate: Recompute,
    samples: Sequence[Rows | None],
    plan: Jackknife | Bootstrap,
    level: float,
    *,
    empirical: Callable[[], float],
) -> Score:
    """Score with an interval by recomputation.

    Parameters
    ----------
    found : Estimate
        The estimate from all rows.
    estimate : callable
    samples : sequence of (ndarray or None)
        Generated and reference rows; None for one that is exactly known.
    plan : Jackknife or Bootstrap
    level : float
    empirical : callable
        Returns what the estimate aims at when rows are drawn from the samples themselves: the
        statistic of the empirical distributions.
    """
    if isinstance(plan, Jackknife):
        return _jackknife_score(found, estimate, samples, plan, level)
    return _bootstrap_score(found, estimate, samples, empirical(), plan, level)


def _jackknife_score(
    found: Estimate,
    estimate: Recompute,
    samples: Sequence[Rows | None],
    plan: Jackknife,
    level: float,
) -> Score:
    """Score with the variance of the delete-group jackknife, groups deleted from either sample.

    Notes
    -----
    (g - 1)/g Σ_k (θ₋ₖ - θ̄)² for either sample, with g - 1 degrees of freedom (B. Efron, "The
    jackknife, the bootstrap and other resampling plans", 1982, ch. 3).
    """
    errors = []
    for side, rows in enumerate(samples):
        if rows is None:
            errors.append(EXACT)
            continue
        n, g = len(rows), plan.groups
        if n < 2 * g:
            raise InputError(f"the jackknife of {g} groups needs at least {2 * g} rows; got {n}.")
        label = random_groups(plan.seed, n, g)
        without = np.empty(g)
        for k in range(g):
            kept: list[Rows | None] = list(samples)
            kept[side] = rows[label != k]
            without[k] = estimate(kept)
        variance = (g - 1) ** 2 / g * float(np.var(without, ddof=1))
        errors.append(SampleError(n=n, variance=variance, degrees_of_freedom=g - 1.0))
    one, two = errors
    how = f"interval: delete-group jackknife, {plan.groups} groups"
    found = replace(found, sample=one, reference=two, details=(*found.details, how))
    return found.score(level)


def _bootstrap_score(
    found: Estimate,
    estimate: Recompute,
    samples: Sequence[Rows | None],
    empirical: float,
    plan: Bootstrap,
    level: float,
) -> Score:
    """Score with the interval of the basic bootstrap.

    Notes
    -----
    The distribution of ``estimate - truth`` is taken from ``estimate* - empirical``: the ends are
    the estimate less its upper and lower quantiles (A. C. Davison and D. V. Hinkley, "Bootstrap
    methods and their application", 1997, eq. 5.6). The percentile interval around a biased estimate
    is no interval for the truth and is not offered.
    """
    rng = np.random.default_rng(plan.seed)
    errors: Float = np.empty(plan.resamples)
    for k in range(plan.resamples):
        drawn = [
            None if rows is None else rows[np.sort(rng.integers(len(rows), size=len(rows)))]
            for rows in samples
        ]
        errors[k] = estimate(drawn) - empirical
    tail = (1.0 - level) / 2.0
    upper, lower = np.quantile(errors, [1.0 - tail, tail])
    score = found.score(level)
    low, high = (
        min(max(float(end), found.lower_limit), found.upper_limit)
        for end in (found.value - upper, found.value - lower)
    )
    stderr = float(errors.std(ddof=1))
    if found.log_scale:
        low, high, stderr = math.exp(low), math.exp(high), stderr * score.value
    how = f"interval: basic bootstrap, {plan.resamples} resamples"
    return replace(score, low=low, high=high, stderr=stderr, details=(*score.details, how))
