"""A mixture by rows that did not choose its weights: quadratic scores and the Fréchet distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genbounds.estimators import (
    CrossedMeans,
    Estimate,
    MetricSpec,
    Quadratic,
    student_quantile,
)
from genbounds.estimators._crossed import crossed_means
from genbounds.mixtures._frechet import frechet_mixture
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
    alone : list of Estimate
        Of every model.
    gains : list of float
        By how much the mixture is better than every model.
    bounds : list of float
        Lower confidence bound of each, one-sided.
    folds : int
    warnings : tuple of Diagnostic
        Besides those of `mixed`.
    """

    weights: Float
    mixed: Estimate
    alone: list[Estimate]
    gains: list[float]
    bounds: list[float]
    folds: int
    warnings: tuple[Diagnostic, ...]


def judged_by_halves(
    models: Mapping[str, Any], reference: Any, *, level: float, seed: int
) -> Judged:
    """Judge a mixture by the Fréchet distance: one half chooses, the other judges, both ways."""
    found = frechet_mixture(models, reference, seed=seed)
    return Judged(
        weights=found.weights,
        mixed=found.mixed,
        alone=found.alone,
        gains=[gain.value for gain in found.gains],
        bounds=[gain.interval(_two_sided(level))[0] for gain in found.gains],
        folds=len(found.weights),
        warnings=found.warnings,
    )


def _two_sided(level: float) -> float:
    """Return the level of the two-sided interval, one end of which is the bound at `level`."""
    return 2.0 * level - 1.0


def judged_by_folds(
    spec: MetricSpec,
    models: Mapping[str, Any],
    reference: Any,
    options: Mapping[str, Any],
    *,
    level: float,
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

    gains = [_gain(crossed, weights, single, spec) for single in singles]
    return Judged(
        weights=weights[:, :count],
        mixed=estimate(weights, f"{spec.title} of a mixture"),
        alone=[estimate(single, spec.title) for single in singles],
        gains=[gain.value for gain in gains],
        bounds=[
            gain.value - student_quantile(_two_sided(level), crossed.degrees(gain)) * gain.stderr
            for gain in gains
        ],
        folds=crossed.folds,
        warnings=warnings,
    )


def _outer(c: Float) -> Float:
    out: Float = c[:, :, None] * c[:, None, :]
    return out


def _gain(crossed: CrossedMeans, weights: Float, single: Float, spec: MetricSpec) -> Quadratic:
    """By how much the mixture is better, at least; the error of scores 1/q is linearised."""
    mixed, alone = _outer(weights), _outer(single)
    choice = crossed.variance_of_choice(weights)
    if not spec.higher_is_better:
        found = crossed.functional(alone - mixed)
        return replace(found, variance=found.variance + choice)
    q, p = (crossed.functional(one).value for one in (mixed, alone))
    found = crossed.functional(alone / p**2 - mixed / q**2)
    return replace(found, value=1.0 / q - 1.0 / p, variance=found.variance + choice / q**4)
