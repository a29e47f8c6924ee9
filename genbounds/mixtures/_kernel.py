"""The score of a mixture of models, from the kernel means of its models."""

from __future__ import annotations

import math

from genbounds.core.estimate import Estimate, heavy_tails, small_sample, student_quantile
from genbounds.estimators.kernels._crossed import CrossedMeans
from genbounds.validation import Float


def mixture_estimate(
    crossed: CrossedMeans, c: Float, *, title: str, higher_is_better: bool = False
) -> Estimate:
    """Estimate the score at the mean of the weights in `c`.

    Parameters
    ----------
    crossed : CrossedMeans
        With a reference, unless `higher_is_better`.
    c : ndarray of shape (pairs, samples)
        For every pair of folds, or one row for all; not chosen by those two folds.
    title : str
    higher_is_better : bool
        Whether the score is one over the square: that of RKE.
    """
    quadratic = crossed.functional(c[:, :, None] * c[:, None, :])
    above, variance = quadratic.value, quadratic.variance + crossed.variance_of_choice(c)
    value = above - crossed.spread(c)
    if higher_is_better:
        above, value, variance = -math.log(above), -math.log(value), variance / above**2

    def ends(level: float) -> tuple[float, float]:
        half = student_quantile(level, crossed.degrees(quadratic)) * math.sqrt(variance)
        return min(value, above) - half, max(value, above) + half

    models = len(crossed.samples) - (not higher_is_better)
    parts = (slice(None, models), slice(models, None))
    errors = [crossed.error(quadratic, part, variance) for part in parts]
    estimate = Estimate(
        title=title,
        method="u-statistic",
        value=value,
        sample=errors[0],
        reference=errors[1],
        own_interval=ends,
        lower_limit=0.0,
        log_scale=higher_is_better,
        higher_is_better=higher_is_better,
        statistic=crossed.kernel.label,
        assumptions=crossed.assumptions,
        details=(f"{crossed.folds} folds, {len(crossed.pairs)} pairs of them",),
    )
    few = [
        warning
        for design in (sample.design for sample in crossed.samples)
        for warning in small_sample(design.effective, units=design.free_units)
    ]
    return estimate.warned(*heavy_tails(estimate), *few[:1])
