"""How the Fréchet distance is estimated: plug-in, FD∞, and the debiased methods by sample size.

From four samples per dimension on by the expansion in 1/n: second order, and third order by halving
the samples that are not large; for rows, groups, strata, weights and shared units alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from genbounds.core.design import Index
from genbounds.core.estimate import EXACT, Estimate, SampleError, bias_left
from genbounds.core.expansion import HALVING_NOISE, halved, third_order
from genbounds.core.moments import random_groups
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators._extrapolation import LINEAR, Subsets, extrapolate
from genbounds.estimators.frechet._form import PART_ROWS, PART_WORK, gaussian_bias
from genbounds.estimators.frechet._pair import FrechetPair, make_estimate, plugin_value
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    FIT_RATIO,
    PAIRING_SEED,
    SIDES,
    SPLIT_RATIO,
    FrechetSample,
    directions_of,
)
from genbounds.estimators.spectrum_fit import _few_rows as few_rows
from genbounds.estimators.spectrum_fit._few_rows import Fit
from genbounds.estimators.spectrum_fit._root import REPEATED_SHARE
from genbounds.results import Diagnostic
from genbounds.validation import Float, InputError

FIT_DIRECTIONS = 100
"""From so many dimensions on, and below `FIT_RATIO` samples per dimension, the spectrum fit still
errs less than the expansion, for every distribution tried (docs/explanation/few_samples.md): its
remainder falls with the samples per dimension, the standard error with the number of dimensions as
well."""

EFFECTIVE_RATIO = 3.3
"""Samples per dimension that the expansion needs when dependence, heavy tails or rare features are
allowed for: a bias k times that of independent Gaussian rows makes n rows as good as n/k."""

LARGEST_REMAINDER = 0.4
"""Standard errors of bias that may be left after the third order. Where the bias is k times that of
Gaussian rows, about k - 1 times the third-order correction is left: the remainder of heavy tails
falls more slowly with n than halving takes it to. Rows of Student's t with 4 and 5 degrees of
freedom, which cover too seldom, are above it, those with 8 below (docs/evidence/accuracy.md)."""

GROUPS = 5
"""Groups of the delete-group jackknife over the other sample when one sample is small."""

DOUBTS = ("misfit", "few-samples")
"""Warnings about the fit itself, after which the expansion is the better choice. Others, such as
heavy tails, would be true of either."""


def debias(fake: FrechetSample, real: FrechetSample, *, every_row: bool) -> Estimate:
    """Remove the bias of both samples by the method that their sizes call for."""
    directions = directions_of(fake, real)
    ratios = [side.effective / directions for side in (fake, real)]
    few = min(ratios) < FEW_RATIO
    if few:
        # A few repeated rows, which real images have, do not disturb a fit.
        fake, real = (_without_repeats(sample) for sample in (fake, real))
    pair = FrechetPair(fake, real, every_row=every_row)
    if pair.common is None and fake.independent and real.independent:
        small, other = (fake, real) if fake.effective <= real.effective else (real, fake)
        fits = few or (
            min(ratios) < FIT_RATIO
            and directions >= FIT_DIRECTIONS
            and small.rows is not None
            and (other.rows is not None or max(ratios) >= FIT_RATIO)
        )
        if fits:
            estimate = debias_by_fit(pair, directions)
            doubts = {one.code for one in estimate.warnings if one.severity == "unreliable"}
            if few or doubts.isdisjoint(DOUBTS):
                return estimate
    return debias_by_expansion(pair, directions)


def _without_repeats(sample: FrechetSample) -> FrechetSample:
    design = sample.design
    if design is None or not design.of_repeats:
        return sample
    return sample if design.units < (1.0 - REPEATED_SHARE) * design.n else sample.as_independent()


# --- Few samples per dimension: a spectrum fit ----------------------------------------------------


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


# --- From four samples per dimension on: the expansion in 1/n -------------------------------------


def debias_by_expansion(pair: FrechetPair, directions: int) -> Estimate:
    """Second order, and third order by halving whichever sample is not large."""
    samples = pair.samples
    ratios = [side.effective / directions for side in samples]
    expanded = pair.expand()
    errors, shared = expanded.errors, expanded.shared
    plain = pair.plugin()
    second_order = plain - expanded.bias
    tails, dependence = _excess(pair, errors)
    # Dependent rows are as good as fewer independent ones.
    as_good_as = [
        ratio if side.n is None or side.independent else ratio * side.n / side.effective / times
        for side, ratio, times in zip(samples, ratios, dependence, strict=True)
    ]
    small = [
        side.rows is not None and ratio < max(SPLIT_RATIO, EFFECTIVE_RATIO * times)
        for side, ratio, times in zip(samples, as_good_as, tails, strict=True)
    ]
    if shared is not None and any(small):  # a unit in both lies in the same half of both
        small = [True, True]
    halves = _halves(pair, small) if any(small) else None
    value, shared_variance = second_order, expanded.shared_variance
    if halves is not None:
        value = third_order(second_order, _half_values(halves))
        if shared is None:
            errors = [
                halved(error, both=all(small)) if is_small else error
                for error, is_small in zip(errors, small, strict=True)
            ]
        else:
            shared_variance += HALVING_NOISE * shared.quadratic_variance
    warnings: tuple[Diagnostic, ...] = ()
    if min(ratios) < FEW_RATIO:  # says all: too few even if rows were independent
        warnings = (warn_of("few-per-dimension", ratio=min(ratios), least=FEW_RATIO),)
    elif not all(side.independent for side in samples):
        warnings = _dependence(samples, dependence, pair.directions.roots.size)
    estimate = make_estimate(
        "second-order" if halves is None else "third-order",
        value,
        samples,
        errors,
        shared_variance=shared_variance,
        warnings=warnings,
    )
    if all(design is None for design in pair.designs):  # else these covariances are the design's
        estimate = replace(estimate, plugin=plain)
    # What heavy tails leave of the bias; an interval down to 0 covers a small distance even so.
    left, stderr = (max(tails) - 1.0) * abs(value - second_order), estimate.stderr
    if left <= LARGEST_REMAINDER * stderr or value <= 2.0 * stderr:
        return estimate
    return estimate.warned(warn_of("tail-bias", times=max(tails), left=left, stderr=stderr))


def _halves(pair: FrechetPair, small: list[bool]) -> list[FrechetPair] | None:
    """Random halves of the units of the small samples; None where a stratum has too few units.

    Shared units go into the same half of either sample.
    """
    parts: list[tuple[FrechetSample, ...]] = []
    joint, named = pair.common is not None, None
    for sample, is_small in zip(pair.samples, small, strict=True):
        design = sample.design
        if not is_small:
            parts.append((sample, sample))
        elif design is None or (design.independent and not joint):
            parts.append(sample.halves())
        else:
            half = design.halves(np.random.default_rng(PAIRING_SEED), named)
            if half is None:
                return None
            if joint and design.labels is not None:
                named = design.labels, half
            parts.append(sample.halves(half))
    return [
        FrechetPair(one, two, every_row=pair.every_row) for one, two in zip(*parts, strict=True)
    ]


def _half_values(halves: list[FrechetPair]) -> list[float]:
    """Plug-in less second-order bias of both halves.

    For large samples only the first half pays for eigenvectors: the second differs from it in the
    Gaussian part of the bias, a function of the eigenvalues, and takes the rest from it.
    """
    first, second = halves
    bias = first.bias()
    values = [first.plugin() - bias]
    costly = not first.every_row and any(
        side.n is not None and side.n > PART_ROWS and side.n * side.mean.size**2 > PART_WORK
        for side in first.samples
    )
    if costly:
        rest = bias - first.gaussian_bias(first.directions.singular)
        roots = second.roots_alone
        values.append(second.plugin(roots) - second.gaussian_bias(roots) - rest)
    else:
        values.append(second.plugin() - second.bias())
    return values


def _excess(pair: FrechetPair, errors: Sequence[SampleError]) -> tuple[list[float], list[float]]:
    """How many times the bias of independent Gaussian rows either sample's is.

    By its tails, of rows as if they were independent; by tails and dependence, at least 1. Both
    are 1 where no rows are known. Dependence is as fewer rows, which halving deals with.
    """
    roots = pair.directions.roots
    tails, dependence = [1.0, 1.0], [1.0, 1.0]
    for k, (side, error) in enumerate(zip(pair.samples, errors, strict=True)):
        if side.rows is None or side.n is None:
            continue
        # Of independent Gaussian rows, the bias of the root alone.
        gaussian = gaussian_bias(0.0, roots, side.effective)
        if gaussian > 0.0:
            tails[k] = (error.row_bias - side.trace / side.effective) / gaussian
        gaussian = gaussian_bias(0.0, roots, side.n) + float(roots.sum()) / side.n
        if gaussian > 0.0:
            dependence[k] = max(error.bias / gaussian, 1.0)
    return tails, dependence


def _dependence(
    samples: tuple[FrechetSample, FrechetSample], dependence: list[float], directions: int
) -> tuple[Diagnostic, ...]:
    """Doubt the expansion where dependence leaves too few effective samples per dimension."""
    warnings = []
    for name, side, times in zip(SIDES, samples, dependence, strict=True):
        if side.rows is None or side.n is None:
            continue
        ratio = side.n / times / max(directions, 1)
        if ratio < EFFECTIVE_RATIO:
            warnings.append(
                warn_of(
                    "tails-as-few" if side.independent else "dependent-as-few",
                    times=times,
                    n=side.n,
                    name=name,
                    ratio=ratio,
                    least=EFFECTIVE_RATIO,
                )
            )
    return tuple(warnings)


# --- As published ---------------------------------------------------------------------------------


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
