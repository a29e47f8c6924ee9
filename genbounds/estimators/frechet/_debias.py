"""How the Fréchet distance is estimated: plug-in, FD∞, and the debiased methods by sample size."""

from __future__ import annotations

from dataclasses import replace

from genbounds.core.design import Index
from genbounds.core.estimate import Estimate, bias_left
from genbounds.core.two_samples import shared_units
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators._extrapolation import LINEAR, Subsets, extrapolate
from genbounds.estimators.frechet._by_expansion import debias_by_expansion
from genbounds.estimators.frechet._by_fit import DOUBTS, debias_by_fit, fit_goes_first
from genbounds.estimators.frechet._outcome import make_estimate
from genbounds.estimators.frechet._pair import FrechetPair, plugin_value
from genbounds.estimators.frechet._sample import FEW_RATIO, FrechetSample, per_dimension
from genbounds.estimators.spectrum_fit._one_sample import REPEATED_SHARE
from genbounds.results import Diagnostic
from genbounds.validation import InputError


def debias(fake: FrechetSample, real: FrechetSample, *, every_row: bool) -> Estimate:
    """Remove the bias of both samples by the method that their sizes call for."""
    few = min(per_dimension(fake, real)) < FEW_RATIO
    if few:
        # A few repeated rows, which real images have, do not disturb a fit.
        fake, real = (_without_repeats(sample) for sample in (fake, real))
    shared = shared_units(fake.design, real.design) is not None
    if not shared and fake.independent and real.independent:
        if few:
            return debias_by_fit(fake, real, every_row=every_row)
        if fit_goes_first(fake, real):
            estimate = debias_by_fit(fake, real, every_row=every_row)
            doubts = {one.code for one in estimate.warnings if one.severity == "unreliable"}
            if doubts.isdisjoint(DOUBTS):
                return estimate
    return debias_by_expansion(fake, real, every_row=every_row)


def _without_repeats(sample: FrechetSample) -> FrechetSample:
    design = sample.design
    if design is None or not design.of_repeats:
        return sample
    return sample if design.units < (1.0 - REPEATED_SHARE) * design.n else sample.as_independent()


def plugin(fake: FrechetSample, real: FrechetSample, *, every_row: bool) -> Estimate:
    """Return the biased value with the interval of its linear part."""
    expanded = FrechetPair(fake, real, every_row=every_row).expand()
    warnings: tuple[Diagnostic, ...] = ()
    if expanded.bias > 0.0:
        warnings = (bias_left(expanded.bias),)
    return make_estimate(
        "plug-in",
        plugin_value(_as_published(fake), _as_published(real)),
        (fake, real),
        expanded.errors,
        estimator="plugin",
        shared_variance=expanded.shared_variance,
        warnings=warnings,
    )


def _as_published(sample: FrechetSample) -> FrechetSample:
    """Return a sample with the covariance of divisor n - 1, however its rows were drawn."""
    design = sample.design
    if design is None or design.independent or design.weighted:
        return sample
    return sample.as_independent()


def infinity(
    fake: FrechetSample, real: FrechetSample, subsets: Subsets, *, every_row: bool
) -> Estimate:
    """FD∞: the generated rows extrapolated in 1/N, the reference as it is."""
    if fake.rows is None or fake.n is None:
        raise InputError(
            "must be features for the estimator 'infinity', not moments.", argument="fake"
        )
    n = fake.n
    pair = FrechetPair(fake, real, every_row=every_row)
    expanded = pair.expand()
    own, other = expanded.errors

    def score(index: Index) -> float:
        if index.size == n and not subsets.replace:
            return pair.plugin()
        part = FrechetPair(fake.some(index), real)
        return part.plugin(part.roots_alone)

    line = extrapolate(score, n, subsets)
    warnings = subsets.warnings
    own = replace(own, variance=own.variance + line.variance)
    if real.n is not None:
        # Units in both samples have a product of either, which no number of generated rows changes.
        left = other.bias + (0.0 if expanded.shared is None else expanded.shared.bias)
        variance = own.variance + other.variance + expanded.shared_variance
        # A bias of one standard error: the interval covers 83 % instead of 95 %.
        severity: Severity = "unreliable" if left**2 > variance else "caution"
        warnings += (warn_of("reference-bias-left", severity=severity, bias=left),)
    return make_estimate(
        "extrapolation",
        line.value,
        (fake, real),
        (own, other),
        estimator="infinity",
        shared_variance=expanded.shared_variance,
        warnings=warnings,
        assumptions=(LINEAR,),
        details=line.details,
    )
