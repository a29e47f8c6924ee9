"""How the Fréchet distance is estimated: plug-in, FD∞, and the debiased methods by sample size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from genbounds.core.estimate import Estimate, bias_left
from genbounds.core.two_samples import shared_units
from genbounds.estimators._extrapolation import LINEAR, Subsets, extrapolate
from genbounds.estimators.frechet import _by_fit
from genbounds.estimators.frechet._by_design import designed
from genbounds.estimators.frechet._by_expansion import expanded
from genbounds.estimators.frechet._outcome import joined
from genbounds.estimators.frechet._pair import Pair, plugin_value
from genbounds.estimators.frechet._sample import FEW_RATIO, FrechetSample, Regime, moments_of
from genbounds.estimators.spectrum_fit._one_sample import REPEATED_SHARE
from genbounds.results import Diagnostic, caution, unreliable
from genbounds.validation import InputError


def plugin(fake: FrechetSample, real: FrechetSample, every_row: bool) -> Estimate:
    """Return the biased value with the interval of its linear part."""
    errors = Pair(fake, real).errors(every_row=every_row)
    bias = errors[0].bias + errors[1].bias
    warnings: tuple[Diagnostic, ...] = ()
    if bias > 0.0:
        warnings = (bias_left(bias),)
    return joined(
        "plug-in",
        plugin_value(_as_published(fake), _as_published(real)),
        (fake, real),
        errors,
        estimator="plugin",
        warnings=warnings,
    )


def _as_published(sample: FrechetSample) -> FrechetSample:
    """Return a sample with the covariance of divisor n - 1, however its rows were drawn."""
    design = sample.design
    if design is None or design.independent or design.weighted:
        return sample
    return sample.as_independent()


def infinity(
    fake: FrechetSample, real: FrechetSample, subsets: Subsets, every_row: bool
) -> Estimate:
    """FD∞: the generated rows extrapolated in 1/N, the reference as it is."""
    if fake.rows is None or fake.n is None:
        raise InputError(
            "must be features for the estimator 'infinity', not moments.", argument="fake"
        )
    rows, n = fake.rows, fake.n
    pair = Pair(fake, real)
    own, other = pair.errors(every_row=every_row)

    def score(index: NDArray[np.intp]) -> float:
        if index.size == n and not subsets.replace:
            return pair.plugin
        return Pair(FrechetSample(moments_of(fake, index), rows, index), real).plugin

    line = extrapolate(score, n, subsets)
    warnings = subsets.warnings
    own = replace(own, variance=own.variance + line.variance)
    if real.n is not None:
        # A bias of one standard error: the interval covers 83 % instead of 95 %.
        warn = unreliable if other.bias**2 > own.variance + other.variance else caution
        warnings += (
            warn(
                "bias-left",
                f"FD∞ leaves the bias of the reference sample in (about {other.bias:+.3g})",
                "The estimator 'debiased' removes both.",
            ),
        )
    return joined(
        "extrapolation",
        line.value,
        (fake, real),
        (own, other),
        estimator="infinity",
        warnings=warnings,
        assumptions=(LINEAR,),
        details=line.details,
    )


def debiased(fake: FrechetSample, real: FrechetSample, every_row: bool) -> Estimate:
    """Remove the bias of both samples by the method that their sizes call for."""
    regime = Regime.of(fake, real)
    if regime.smaller < FEW_RATIO:
        # A few repeated rows, which real images have, do not disturb a fit.
        fake, real = (_without_repeats(sample) for sample in (fake, real))
    common = shared_units(fake.design, real.design)
    shared = common is not None and common.size > 1
    if shared or not (fake.independent and real.independent):
        return designed(fake, real, regime, every_row)
    if regime.smaller < FEW_RATIO:
        return _by_fit.fitted(fake, real, regime, every_row)
    if _by_fit.goes_first(fake, real, regime):
        found = _by_fit.fitted(fake, real, regime, every_row)
        doubts = {one.code for one in found.warnings if one.severity == "unreliable"}
        if doubts.isdisjoint(_by_fit.DOUBTS):
            return found
    return expanded(fake, real, regime, every_row)


def _without_repeats(sample: FrechetSample) -> FrechetSample:
    design = sample.design
    if design is None or not design.found or design.units < (1.0 - REPEATED_SHARE) * design.n:
        return sample
    return sample.as_independent()
