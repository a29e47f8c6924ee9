"""A mixture by rows that did not choose its weights: quadratic scores and the Fréchet distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genbounds.estimators import CrossedMeans, Estimate, EstimateDifference, MetricSpec
from genbounds.estimators._crossed import crossed_means
from genbounds.mixtures._kernel import mixture_estimate
from genbounds.results import Diagnostic
from genbounds.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """What a mixture is decided from.

    Attributes
    ----------
    weights : ndarray of shape (cuts, models)
        Fitted to some rows, judged by others.
    mixed : Estimate
        Score of the mixture.
    alone : list of Estimate
        Of every model.
    gains : list of EstimateDifference
        By how much the mixture is better than every model.
    folds : int
    warnings : tuple of Diagnostic
        Besides those of `mixed`.
    """

    weights: Float
    mixed: Estimate
    alone: list[Estimate]
    gains: list[EstimateDifference]
    folds: int
    warnings: tuple[Diagnostic, ...]


def judged_by_folds(
    spec: MetricSpec,
    models: Mapping[str, Any],
    reference: Any,
    options: Mapping[str, Any],
    *,
    folds: int,
    seed: int,
) -> Judged:
    """Judge a mixture by a score that is quadratic in the weights, between pairs of folds."""
    crossed, warnings = crossed_means(spec, models, reference, options, folds=folds, seed=seed)
    count = len(models)
    referenced = len(crossed.samples) > count
    weights = crossed.coefficients(crossed.crossed_weights(reference=referenced))
    singles = [crossed.coefficients(row[None]) for row in np.eye(count)]

    def estimate(c: Float, title: str) -> Estimate:
        return mixture_estimate(crossed, c, title=title, higher_is_better=spec.higher_is_better)

    return Judged(
        weights=weights[:, :count],
        mixed=estimate(weights, f"{spec.title} of a mixture"),
        alone=[estimate(single, spec.title) for single in singles],
        gains=[_gain(crossed, weights, single, spec) for single in singles],
        folds=crossed.folds,
        warnings=warnings,
    )


def _outer(c: Float) -> Float:
    out: Float = c[:, :, None] * c[:, None, :]
    return out


def _gain(
    crossed: CrossedMeans, weights: Float, single: Float, spec: MetricSpec
) -> EstimateDifference:
    """By how much the mixture is better, at least; the error of scores 1/q is linearised."""
    mixed, alone = _outer(weights), _outer(single)
    choice = crossed.variance_of_choice(weights)
    if spec.higher_is_better:
        q, p = (crossed.functional(one).value for one in (mixed, alone))
        gain = crossed.functional(alone / p**2 - mixed / q**2)
        gain = replace(gain, value=1.0 / q - 1.0 / p, variance=gain.variance + choice / q**4)
    else:
        gain = crossed.functional(alone - mixed)
        gain = replace(gain, variance=gain.variance + choice)
    return EstimateDifference(
        value=gain.value, stderr=gain.stderr, degrees_of_freedom=crossed.degrees(gain)
    )
