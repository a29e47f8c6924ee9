"""Few samples per dimension: the bias of the Fréchet distance removed by a spectrum fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from genbounds.core.estimate import EXACT, Estimate, SampleError, Tails
from genbounds.core.moments import random_groups
from genbounds.diagnostics import warn_of
from genbounds.estimators.frechet._pair import FrechetPair, make_estimate, plugin_value
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    FIT_RATIO,
    PAIRING_SEED,
    FrechetSample,
    per_dimension,
)
from genbounds.estimators.spectrum_fit._few_rows import (
    Fit,
    Reference,
    fit_both_samples,
    fit_from_moments,
    fit_one_sample,
)
from genbounds.results import Diagnostic
from genbounds.validation import Float

GROUPS = 5
"""Groups of the delete-group jackknife over the other sample when one sample is small."""

DOUBTS = ("misfit", "few-samples")
"""Warnings about the fit itself, after which the expansion is the better choice. Others, such as
heavy tails, would be true of either."""


def debias_by_fit(fake: FrechetSample, real: FrechetSample, *, every_row: bool) -> Estimate:
    """Debias where one sample, or both, has few samples per dimension, by a spectrum fit."""
    smaller, larger = sorted(per_dimension(fake, real))
    few, other = (fake, real) if fake.effective <= real.effective else (real, fake)
    fit = None
    if few.rows is not None and other.rows is not None and larger < FIT_RATIO:
        fit = fit_both_samples(
            (few.centred, other.centred),
            (few.factor, other.factor),
            gap=few.mean - other.mean,
            directions=min(fake.directions, real.directions),
        )
    if fit is not None:
        value, method, warnings = fit.value, fit.method, fit.warnings
        own, rest = _errors(fit, few, other)
    else:
        assert few.n is not None
        seen = larger < FEW_RATIO or few.n > other.factor.shape[1]  # or rows show all directions
        spectrum = None if seen else other.spectrum
        fit = _fit(few, other, spectrum)
        (own,) = _errors(fit, few)
        method, warnings = fit.method, fit.warnings
        if larger < FEW_RATIO:
            value, rest, doubt = _one_by_one(few, other, fit, larger)
            method, warnings = "one-by-one", (*warnings, doubt)
        else:
            value, rest = _other_removed(few, other, fit, spectrum)
        if other.rows is not None and smaller >= FEW_RATIO:
            # The expansion holds for the other sample, and knows its noise row by row.
            pair = FrechetPair(fake, real, every_row=every_row)
            rest = pair.error_of(0 if other is fake else 1)
    errors = (own, rest) if few is fake else (rest, own)
    return make_estimate(
        method, value, (fake, real), errors, warnings=warnings, details=fit.details
    )


def _errors(fit: Fit, *samples: FrechetSample) -> list[SampleError]:
    """Error due to each sample whose bias was removed."""
    return [
        SampleError(
            n=sample.n,
            variance=variance,
            degrees_of_freedom=np.inf if sample.n is None else sample.n - 1.0,
            influence=influence,
            tails=None if influence is None else Tails.of(influence),
        )
        for sample, variance, influence in zip(samples, fit.variances, fit.influences, strict=True)
    ]


def _other_removed(
    few: FrechetSample, other: FrechetSample, fit: Fit, spectrum: Float | None
) -> tuple[float, SampleError]:
    """Remove and measure what the noise of the larger sample does to the result.

    A delete-group jackknife over its rows needs no formula; from moments alone, as for Gaussian
    rows.
    """
    if other.n is None:
        return fit.value, EXACT
    if other.rows is None:
        rest = FrechetPair(few, other).error_of(1)
        return fit.value - rest.bias, rest
    label = random_groups(PAIRING_SEED, other.n, GROUPS)
    parts = (other.some(np.flatnonzero(label != k)) for k in range(GROUPS))
    without = np.array([_fit(few, part, spectrum).value for part in parts])
    return GROUPS * fit.value - (GROUPS - 1) * float(without.mean()), SampleError(
        variance=(GROUPS - 1) ** 2 / GROUPS * float(np.var(without, ddof=1)),
        degrees_of_freedom=GROUPS - 1.0,
    )


def _one_by_one(
    few: FrechetSample, other: FrechetSample, fit: Fit, ratio: float
) -> tuple[float, SampleError, Diagnostic]:
    """Remove either bias as if it were alone, where moments are all that is known of one sample.

    Then widen by what that leaves. The rest is positive; measured at equal sizes
    (docs/explanation/few_samples.md) it is 5 % of the removed bias at three samples per dimension,
    10 % at two, 18 % at one, and most of it below.
    """
    mirrored = _fit(other, few)
    plugin = plugin_value(few, other)
    value = fit.value + mirrored.value - plugin
    removed = max(plugin - value, 0.0)
    unresolved = removed * 0.2 / ratio if ratio >= 1.0 else max(removed, value)
    (rest,) = _errors(mirrored, other)
    rest = replace(rest, variance=rest.variance + unresolved**2)
    doubt = warn_of("one-by-one", least=FEW_RATIO, bias=unresolved)
    return value, rest, doubt


def _fit(few: FrechetSample, other: FrechetSample, spectrum: Float | None = None) -> Fit:
    """Debias one sample; `spectrum`: eigenvalues of the other covariance, where they are known."""
    assert few.n is not None
    reference = Reference(few.mean - other.mean, other.factor, other.trace, spectrum)
    if few.rows is None:
        return fit_from_moments(few.cov, few.n, reference)
    return fit_one_sample(few.centred, reference)
