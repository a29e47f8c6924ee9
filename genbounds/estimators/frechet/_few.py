"""The Fréchet distance from few samples per dimension, in one of both samples or in both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from genbounds.core.estimate import EXACT, Estimate, SampleError
from genbounds.core.moments import random_groups
from genbounds.diagnostics import warn_of
from genbounds.estimators.frechet._pair import FrechetPair, make_estimate, plugin_value
from genbounds.estimators.frechet._sample import FEW_RATIO, FIT_RATIO, PAIRING_SEED, FrechetSample
from genbounds.estimators.spectrum_fit import _few_rows as few_rows
from genbounds.estimators.spectrum_fit._few_rows import Fit
from genbounds.validation import Float

GROUPS = 5
"""Groups of the delete-group jackknife over the other sample when one sample is small."""


def debias_by_fit(pair: FrechetPair, directions: int) -> Estimate:
    """Debias where one sample, or both, has few samples per dimension, by a spectrum fit."""
    fake, real = pair.samples
    smaller, larger = sorted(side.effective / directions for side in pair.samples)
    few, other = (fake, real) if fake.effective <= real.effective else (real, fake)
    fit = None
    if few.rows is not None and other.rows is not None and larger < FIT_RATIO:
        fit = few_rows.fit_both_samples(
            (few.centred, other.centred),
            (few.factor, other.factor),
            gap=few.mean - other.mean,
            directions=directions,
        )
    if fit is None:
        assert few.n is not None
        seen = larger < FEW_RATIO or few.n > other.factor.shape[1]  # or rows show all directions
        spectrum = None if seen else other.spectrum
        fit = _fit(few, other, spectrum)
        if larger < FEW_RATIO:
            fit = _one_by_one(few, other, fit, larger)
        else:
            fit = _other_removed(few, other, fit, spectrum)
        if other.rows is not None and smaller >= FEW_RATIO:
            # The expansion holds for the other sample, and knows its noise row by row.
            fit = replace(fit, errors=(fit.errors[0], pair.error_of(0 if other is fake else 1)))
    return make_estimate(
        fit.method,
        fit.value,
        pair.samples,
        fit.errors if few is fake else fit.errors[::-1],
        warnings=fit.warnings,
        details=fit.details,
    )


def _other_removed(
    few: FrechetSample, other: FrechetSample, fit: Fit, spectrum: Float | None
) -> Fit:
    """Remove and measure what the noise of the larger sample does to the result.

    A delete-group jackknife over its rows needs no formula; from moments alone, as for Gaussian
    rows.
    """
    value, rest = fit.value, EXACT
    if other.rows is not None and other.n is not None:
        label = random_groups(PAIRING_SEED, other.n, GROUPS)
        parts = (other.some(np.flatnonzero(label != k)) for k in range(GROUPS))
        without = np.array([_fit(few, part, spectrum).value for part in parts])
        value = GROUPS * value - (GROUPS - 1) * float(without.mean())
        rest = SampleError(
            variance=(GROUPS - 1) ** 2 / GROUPS * float(np.var(without, ddof=1)),
            degrees_of_freedom=GROUPS - 1.0,
        )
    elif other.n is not None:
        rest = FrechetPair(few, other).error_of(1)
        value -= rest.bias
    return replace(fit, value=value, errors=(*fit.errors, rest))


def _one_by_one(few: FrechetSample, other: FrechetSample, fit: Fit, ratio: float) -> Fit:
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
    (rest,) = mirrored.errors
    rest = replace(rest, variance=rest.variance + unresolved**2)
    doubt = warn_of("one-by-one", least=FEW_RATIO, bias=unresolved)
    return replace(
        fit,
        value=value,
        errors=(*fit.errors, rest),
        method="one-by-one",
        warnings=(*fit.warnings, doubt),
    )


def _fit(few: FrechetSample, other: FrechetSample, spectrum: Float | None = None) -> Fit:
    """Debias one sample; `spectrum`: eigenvalues of the other covariance, where they are known."""
    assert few.n is not None
    reference = few_rows.Reference(few.mean - other.mean, other.factor, other.trace, spectrum)
    if few.rows is None:
        return few_rows.fit_from_moments(few.cov, few.n, reference)
    return few_rows.fit_one_sample(few.centred, reference)
