"""The score of the best of several models, corrected for having been chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from genbounds.core.difference import EstimateDifference
from genbounds.core.estimate import Estimate
from genbounds.core.winner import winner_interval
from genbounds.results import Score


@dataclass(frozen=True, slots=True)
class _Ends:
    """An interval that was computed for one level."""

    low: float
    high: float

    def __call__(self, level: float) -> tuple[float, float]:
        return self.low, self.high


def winner_score(
    best: Estimate,
    rivals: Sequence[tuple[Estimate, EstimateDifference]],
    level: float,
    *,
    of: str = "models",
) -> Score:
    """Score the best of several models, its interval corrected for having been chosen.

    Parameters
    ----------
    best : Estimate
    rivals : sequence of tuple
        Every other estimate, with the difference of the best one to it, in either order.
    level : float
    of : str
        What they are estimates of.

    Returns
    -------
    Score
        Either half of the interval is as much longer or shorter than its own as that of normal
        errors: quantiles of Student's t and curvature stay in it.
    """
    from scipy.special import ndtri

    plain = best.score(level)
    if not rivals or not best.stderr > 0.0:
        return plain
    apart = np.array([gap.stderr**2 for _, gap in rivals])
    covariances = (best.variance + np.array([one.variance for one, _ in rivals]) - apart) / 2.0
    gaps = np.array([abs(gap.value) for _, gap in rivals])
    value, low, high = winner_interval(gaps, covariances, best.variance, level)
    if best.higher_is_better:
        value, low, high = -value, -high, -low
    half = -float(ndtri((1.0 - level) / 2.0)) * best.stderr
    ends = best.interval(level)
    moved = replace(
        best,
        value=best.value + value,
        own_interval=_Ends(
            best.value + low * (best.value - ends[0]) / half,
            best.value + high * (ends[1] - best.value) / half,
        ),
        details=(*best.details, f"corrected for the choice of the best of {len(rivals) + 1} {of}"),
    )
    return moved.score(level)
