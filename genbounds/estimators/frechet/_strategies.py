"""How the Fréchet distance is estimated: plug-in, FD∞, and the debiased methods by sample size."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._design import drawn
from genbounds.estimators._estimate import (
    EXACT,
    Estimate,
    SampleError,
    Tails,
    bias_left,
    heavy_tails,
    small_sample,
)
from genbounds.estimators._extrapolation import Subsets, extrapolate
from genbounds.estimators._inspect import leaked
from genbounds.estimators._second_order import HALVING_NOISE, halved, third_order
from genbounds.estimators._two_samples import shared_units
from genbounds.estimators.frechet._expansion import (
    PAIRING_SEED,
    PART_ROWS,
    PART_WORK,
    gaussian_bias,
)
from genbounds.estimators.frechet._pair import Pair, lends, plugin_value
from genbounds.estimators.frechet._sample import (
    FEW_RATIO,
    SIDES,
    SPLIT_RATIO,
    FrechetSample,
    moments_of,
)
from genbounds.estimators.spectrum_fit._both_samples import fit_both_samples
from genbounds.estimators.spectrum_fit._one_sample import (
    REPEATED_SHARE,
    Fit,
    fit_from_moments,
    fit_one_sample,
)
from genbounds.results import Diagnostic, Method, caution, unreliable
from genbounds.validation import Float, InputError

EFFECTIVE_RATIO = 3.3
"""Samples per dimension that the expansion needs when dependence, heavy tails or rare features are
allowed for: a bias k times that of independent Gaussian rows makes n rows as good as n/k."""

LARGEST_REMAINDER = 0.4
"""Standard errors of bias that may be left after the third order. Where the bias is k times that of
Gaussian rows, about k - 1 times the third-order correction is left: the remainder of heavy tails
falls more slowly with n than halving takes it to. Rows of Student's t with 4 and 5 degrees of
freedom, which cover too seldom, are above it, those with 8 below (docs/accuracy.md)."""

FIT_RATIO = 8
"""Below this many samples per dimension in one sample, and with the other better sampled, ..."""

FIT_DIRECTIONS = 100
"""... from so many dimensions on, the spectrum fit still errs less than the expansion, for every
distribution tried (docs/few_samples.md): its remainder falls with the samples per dimension, the
standard error with the number of dimensions as well."""

GROUPS = 5
"""Groups of the delete-group jackknife over the other sample when one sample is small."""


@dataclass(frozen=True, slots=True)
class _Regime:
    """How many samples per dimension either sample has; infinite for exact moments."""

    fake: float
    real: float

    @classmethod
    def of(cls, fake: FrechetSample, real: FrechetSample) -> _Regime:
        directions = min(fake.directions, real.directions)
        return cls(*(side.effective / directions for side in (fake, real)))

    @property
    def smaller(self) -> float:
        return min(self.fake, self.real)

    @property
    def larger(self) -> float:
        return max(self.fake, self.real)

    def by_size(
        self, fake: FrechetSample, real: FrechetSample
    ) -> tuple[FrechetSample, FrechetSample]:
        """Return both samples, the one with fewer samples per dimension first."""
        return (fake, real) if self.fake <= self.real else (real, fake)


def _estimate(
    method: Method,
    value: float,
    samples: tuple[FrechetSample, FrechetSample],
    errors: tuple[SampleError, SampleError],
    *,
    estimator: str = "debiased",
    shared_variance: float = 0.0,
    warnings: tuple[Diagnostic, ...] = (),
    assumptions: tuple[str, ...] = (),
    details: tuple[str, ...] = (),
) -> Estimate:
    """Join the errors of both samples, given in the order (generated, reference)."""
    one, two = (
        replace(
            error,
            n=sample.n,
            units=None if sample.design is None else sample.design.labels,
            row_ids=None if sample.seen is None else sample.seen.ids,
        )
        for sample, error in zip(samples, errors, strict=True)
    )
    found = Estimate(
        title="Fréchet distance",
        estimator=estimator,
        method=method,
        value=value,
        sample=one,
        reference=two,
        shared_variance=shared_variance,
        lower_limit=0.0,
        warnings=(
            _drawing_warnings(samples)
            + warnings
            + _fourth_moments_warnings(samples, warnings)
            + _size_warnings(samples)
        ),
        assumptions=_assumptions(samples) + assumptions,
        details=details,
    )
    return _unknown_size(found.warned(*heavy_tails(found)), samples)


def _unknown_size(found: Estimate, samples: tuple[FrechetSample, FrechetSample]) -> Estimate:
    """Say from how many reference rows on the interval would hold, where m is unknown."""
    fake, real = samples
    if real.n is not None or real.moments.size_known:
        return found
    pair = Pair(fake, real)
    roots = pair.directions[0] if pair.roots.any() else pair.roots
    rate = gaussian_bias(real.trace, roots, 1)
    needed = OF_STDERR * rate / found.stderr if found.stderr > 0.0 else np.inf
    warning = unreliable(
        "reference-size-unknown",
        "the reference does not say from how many samples it comes and is taken as exact: the "
        + (
            f"interval holds if they were {needed:,.0f} or more"
            if np.isfinite(needed)
            else "bias of its samples is left in"
        ),
        "Pass their number, Moments.load(path, n=...) (--reference-n), or Moments(mean, cov) if "
        "they are exact (--reference-exact).",
    )
    return replace(found, missing_rate=rate).warned(warning)


FIT_DOUBTS = ("misfit", "few-samples")
"""Warnings about the fit itself, after which the expansion is the better choice. Others, such as
heavy tails, would be true of either."""

OF_STDERR = 4.0
"""One over the share of a standard error that an unknown bias may have in an interval."""


def _assumptions(samples: tuple[FrechetSample, FrechetSample]) -> tuple[str, ...]:
    if all(sample.n is None for sample in samples):
        return ("both moments are taken as exactly known: no sampling error",)
    found = ["features have finite eighth moments"]
    for name, sample in zip(SIDES, samples, strict=True):
        if sample.n is not None:
            found.append(f"{drawn(sample.design)} ({name})")
        if sample.n is None:
            found.append(f"the {name} moments are taken as exactly known")
    return tuple(found)


def _drawing_warnings(samples: tuple[FrechetSample, FrechetSample]) -> tuple[Diagnostic, ...]:
    """Say what the rows show of how they were drawn, where their user said nothing."""
    seen = [sample.seen for sample in samples]
    found = [warning for one in seen if one is not None for warning in one.warnings]
    fake, real = seen
    if fake is not None and real is not None:
        found += leaked(fake.ids, real.ids)
    return tuple(found)


def _size_warnings(samples: tuple[FrechetSample, FrechetSample]) -> tuple[Diagnostic, ...]:
    found = tuple(
        warning
        for name, sample in zip(SIDES, samples, strict=True)
        if sample.n is not None
        for warning in small_sample(sample.effective, name=name)
    )
    fake = samples[0]
    if fake.n is not None or fake.moments.size_known:
        return found
    return (
        *found,
        unreliable(
            "moments-only",
            "the statistics of the generated samples do not say from how many samples they come "
            "and are taken as exact",
            "Write `n` beside mu and sigma: Moments.from_features(x, keep=2048).save(path).",
        ),
    )


def _fourth_moments_warnings(
    samples: tuple[FrechetSample, FrechetSample], given: tuple[Diagnostic, ...]
) -> tuple[Diagnostic, ...]:
    """Say where the fourth moments of a sample come from, if it has no rows of its own."""
    if any(warning.code == "moments-only" for warning in given):
        return ()
    found = []
    directions = min(sample.directions for sample in samples)
    for k, (name, sample) in enumerate(zip(SIDES, samples, strict=True)):
        if sample.n is None or sample.some_rows is not None:
            continue
        borrowed = lends(samples[1 - k], directions)
        source = f"of the {SIDES[1 - k]} samples" if borrowed else "of a Gaussian distribution"
        found.append(
            caution(
                "moments-only",
                f"only mean and covariance of the {name} samples are known: their fourth moments, "
                f"on which bias and interval depend, are taken to be those {source}",
                "Pass the features, or keep some rows: Moments.from_features(x, keep=2048).",
            )
        )
    return tuple(found)


def plugin(fake: FrechetSample, real: FrechetSample, every_row: bool) -> Estimate:
    """Return the biased value with the interval of its linear part."""
    errors = Pair(fake, real).errors(every_row=every_row)
    bias = errors[0].bias + errors[1].bias
    warnings: tuple[Diagnostic, ...] = ()
    if bias > 0.0:
        warnings = (bias_left(bias),)
    return _estimate(
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
    if real.n is not None:
        warnings += (
            caution(
                "bias-left",
                f"FD∞ leaves the bias of the reference sample in (about {other.bias:+.3g})",
                "The estimator 'debiased' removes both.",
            ),
        )
    return _estimate(
        "extrapolation",
        line.value,
        (fake, real),
        (replace(own, variance=own.variance + line.variance), other),
        estimator="infinity",
        warnings=warnings,
        assumptions=("the plug-in score is linear in 1/N over the subsets",),
        details=(f"{line.sizes.size} subset sizes from {line.sizes[0]} to {line.sizes[-1]}",),
    )


def debiased(fake: FrechetSample, real: FrechetSample, every_row: bool) -> Estimate:
    """Remove the bias of both samples by the method that their sizes call for."""
    regime = _Regime.of(fake, real)
    if regime.smaller < FEW_RATIO:
        # A few repeated rows, which real images have, do not disturb a fit.
        fake, real = (_without_repeats(sample) for sample in (fake, real))
    common = shared_units(fake.design, real.design)
    shared = common is not None and common.size > 1
    if shared or not (fake.independent and real.independent):
        return _designed(fake, real, regime, every_row)
    if regime.smaller < FEW_RATIO:
        return _few_samples(fake, real, regime, every_row)
    if _fit_first(fake, real, regime):
        found = _few_samples(fake, real, regime, every_row)
        doubts = {one.code for one in found.warnings if one.severity == "unreliable"}
        if doubts.isdisjoint(FIT_DOUBTS):
            return found
    return _expanded(fake, real, regime, every_row)


def _without_repeats(sample: FrechetSample) -> FrechetSample:
    design = sample.design
    if design is None or not design.found or design.units < (1.0 - REPEATED_SHARE) * design.n:
        return sample
    return sample.as_independent()


def _expanded(
    fake: FrechetSample, real: FrechetSample, regime: _Regime, every_row: bool
) -> Estimate:
    """Second order, and third order by halving whichever sample is not large."""
    pair = Pair(fake, real)
    errors = pair.errors(every_row=every_row)
    second_order = pair.plugin - errors[0].bias - errors[1].bias
    excess = _excess(pair, errors)
    small = [
        side
        for side, ratio, times in zip((fake, real), (regime.fake, regime.real), excess, strict=True)
        if side.rows is not None and (ratio < SPLIT_RATIO or ratio < EFFECTIVE_RATIO * times)
    ]
    if not small:
        return _estimate("second-order", second_order, (fake, real), errors)
    fakes, reals = (
        side.divided(2).parts if side in small else (side, side) for side in (fake, real)
    )
    halves = [Pair(*half) for half in zip(fakes, reals, strict=True)]
    value = third_order(second_order, _half_values(halves, every_row))
    one, two = (
        halved(error, both=len(small) == 2) if side in small else error
        for side, error in zip((fake, real), errors, strict=True)
    )
    found = _estimate("third-order", value, (fake, real), (one, two))
    left = (max(excess) - 1.0) * abs(value - second_order)
    # An interval that reaches down to 0 covers a small distance whatever is left of the bias.
    if left <= LARGEST_REMAINDER * found.stderr or value <= 2.0 * found.stderr:
        return found
    return found.warned(
        unreliable(
            "heavy-tails",
            f"heavy tails or rare features make the bias {max(excess):.2g} times that of Gaussian "
            f"rows: about {left:.2g} of it may be left, where the standard error is "
            f"{found.stderr:.2g}",
            "Use more samples, or features with lighter tails.",
        )
    )


def _excess(pair: Pair, errors: tuple[SampleError, SampleError]) -> list[float]:
    """How many times the bias of Gaussian rows either sample's is; 1 where no rows are known."""
    found = []
    for side, error in zip((pair.fake, pair.real), errors, strict=True):
        if side.rows is None or side.n is None:
            found.append(1.0)
            continue
        gaussian = gaussian_bias(0.0, pair.directions[0], side.n)
        found.append((error.bias - side.trace / side.n) / gaussian if gaussian > 0.0 else 1.0)
    return found


def _designed(
    fake: FrechetSample, real: FrechetSample, regime: _Regime, every_row: bool
) -> Estimate:
    """Remove the bias of samples that were drawn otherwise than row by row, by expansion."""
    pair = Pair(fake, real)
    found = pair.shared()
    if found is None:
        errors, shared = pair.errors(every_row=every_row), None
        value = pair.plugin - errors[0].bias - errors[1].bias
    else:
        errors, shared, curvature = found
        value = pair.plugin - errors[0].bias - errors[1].bias - shared.bias
        own, theirs = shared.influences
        errors = (
            replace(errors[0], influence=own, curvature=curvature),
            replace(errors[1], influence=theirs, curvature=0.0),
        )
    warnings = _design_effects(pair, errors)
    if regime.smaller < FEW_RATIO:
        warnings += (
            unreliable(
                "few-samples",
                f"{regime.smaller:.2g} samples per dimension: the methods for so few assume "
                f"independent rows, and the expansion needs {FEW_RATIO}",
                "Use more samples, or fewer features.",
            ),
        )
    method: Method = "second-order"
    total = 0.0 if shared is None else shared.variance
    small = [
        sample
        for sample, ratio in ((fake, regime.fake), (real, regime.real))
        if sample.rows is not None and (ratio < SPLIT_RATIO or shared is not None)
    ]
    halves = None
    if regime.smaller < SPLIT_RATIO:
        halves = _designed_halves(fake, real, small, joint=shared is not None)
    if halves is not None:
        method = "third-order"
        if shared is None:
            value = third_order(value, _half_values(halves, every_row))
            one, two = (
                halved(error, both=len(small) == 2) if sample in small else error
                for sample, error in zip((fake, real), errors, strict=True)
            )
            errors = one, two
        else:
            value = third_order(value, [_shared_value(half) for half in halves])
            total += HALVING_NOISE * shared.quadratic_variance
    apart = errors[0].variance + errors[1].variance
    return _estimate(
        method,
        value,
        (fake, real),
        errors,
        shared_variance=0.0 if shared is None else total - apart,
        warnings=warnings,
    )


def _designed_halves(
    fake: FrechetSample, real: FrechetSample, small: list[FrechetSample], *, joint: bool
) -> list[Pair] | None:
    """Random halves of the units of the small samples; None where a stratum has too few units.

    `joint`: shared units go into the same half of either sample.
    """
    parts: list[list[FrechetSample]] = []
    names = None
    for sample in (fake, real):
        if sample not in small:
            parts.append([sample, sample])
            continue
        if sample.design is None:
            parts.append(list(sample.divided(2).parts))
            continue
        index = sample.design.halves(np.random.default_rng(PAIRING_SEED), names)
        if index is None:
            return None
        if joint:
            names = sample.design.named_halves(index)
        parts.append(sample.halves(index))
    return [Pair(one, two) for one, two in zip(*parts, strict=True)]


def _shared_value(pair: Pair) -> float:
    """Plug-in less its second-order bias, of two samples that share units; halves may not."""
    found = pair.shared()
    if found is None:
        return _half_values([pair], every_row=True)[0]
    errors, shared, _ = found
    return pair.plugin - errors[0].bias - errors[1].bias - shared.bias


def _design_effects(pair: Pair, errors: tuple[SampleError, SampleError]) -> tuple[Diagnostic, ...]:
    """Doubt the expansion where dependence leaves too few effective samples per dimension."""
    found = []
    roots = pair.directions[0]
    for name, side, error in zip(SIDES, (pair.fake, pair.real), errors, strict=True):
        if side.rows is None or side.n is None:
            continue
        # Of independent Gaussian rows, the bias of the root alone.
        gaussian = gaussian_bias(0.0, roots, side.n) + float(roots.sum()) / side.n
        excess = error.bias / gaussian if gaussian > 0.0 else 1.0
        ratio = side.n / max(excess, 1.0) / max(roots.size, 1)
        if ratio < EFFECTIVE_RATIO:
            found.append(
                unreliable(
                    "heavy-tails" if side.independent else "dependent-rows",
                    f"the bias is {excess:.2g} times that of independent Gaussian rows: {side.n} "
                    f"{name} samples are as good as {ratio:.2g} per dimension, where the method "
                    f"needs {EFFECTIVE_RATIO}",
                    "Use more groups of rows, or fewer features.",
                )
            )
    return tuple(found)


def _half_values(halves: list[Pair], every_row: bool) -> list[float]:
    """Plug-in less second-order bias of both halves.

    For large samples only the first half pays for eigenvectors: the second differs from it in the
    Gaussian part of the bias, a function of the eigenvalues, and takes the rest from it.
    """
    costly = not every_row and any(
        side.n is not None and side.n > PART_ROWS and side.n * side.d**2 > PART_WORK
        for side in (halves[0].fake, halves[0].real)
    )
    values, rest = [], 0.0
    for k, half in enumerate(halves):
        if k == 0 or not costly:
            errors = half.errors_alone(every_row=every_row, bias_only=True)
            bias = sum(error.bias for error in errors)
            if costly:
                rest = bias - half.gaussian_bias()
        else:
            bias = half.gaussian_bias() + rest
        values.append(half.plugin - bias)
    return values


def _fit_first(fake: FrechetSample, real: FrechetSample, regime: _Regime) -> bool:
    few, other = regime.by_size(fake, real)
    wide = min(fake.directions, real.directions) >= FIT_DIRECTIONS
    known = other.rows is not None or regime.larger >= FIT_RATIO
    return few.rows is not None and regime.smaller < FIT_RATIO and wide and known


def _few_samples(
    fake: FrechetSample, real: FrechetSample, regime: _Regime, every_row: bool
) -> Estimate:
    """Debias where one sample, or both, has few samples per dimension, by a spectrum fit."""
    few, other = regime.by_size(fake, real)
    if few.rows is not None and other.rows is not None and regime.larger < FIT_RATIO:
        joint = _fitted_jointly(few, other, fake, real)
        if joint is not None:
            return joint
    spectrum = _known_spectrum(few, other) if regime.larger >= FEW_RATIO else None
    fit = _fit(few, other, spectrum)
    own = SampleError(
        n=few.n,
        variance=fit.variance,
        degrees_of_freedom=_degrees(few),
        influence=fit.influence,
        tails=None if fit.influence is None else Tails.of(fit.influence),
    )
    method, warnings = fit.method, fit.warnings
    if regime.larger < FEW_RATIO:
        value, rest, doubt = _one_by_one(few, other, fit, regime.larger)
        method, warnings = "one-by-one", (*warnings, doubt)
    else:
        value, rest = _other_removed(few, other, fit, spectrum)
        if other.rows is not None and regime.smaller >= FEW_RATIO:
            # The expansion holds for the other sample, and knows its noise row by row.
            rest = Pair(fake, real).error_of(other, every_row=every_row)
    errors = (own, rest) if few is fake else (rest, own)
    return _estimate(method, value, (fake, real), errors, warnings=warnings, details=fit.details)


def _degrees(sample: FrechetSample) -> float:
    return np.inf if sample.n is None else sample.n - 1.0


def _known_spectrum(few: FrechetSample, other: FrechetSample) -> Float | None:
    """Eigenvalues of the other covariance, where few rows do not show all directions."""
    assert few.n is not None
    return other.spectrum if few.n <= other.factor.shape[1] else None


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
        rest = Pair(few, other).error_of(other, every_row=True)
        return fit.value - rest.bias, rest
    divided = other.divided(GROUPS)
    without = np.array([_fit(few, divided.without(k), spectrum).value for k in range(GROUPS)])
    return GROUPS * fit.value - (GROUPS - 1) * float(without.mean()), SampleError(
        variance=(GROUPS - 1) ** 2 / GROUPS * float(np.var(without, ddof=1)),
        degrees_of_freedom=GROUPS - 1.0,
    )


def _fitted_jointly(
    few: FrechetSample, other: FrechetSample, fake: FrechetSample, real: FrechetSample
) -> Estimate | None:
    """Debias two small samples by the equations of both at once."""
    one, two = few.centred(), other.centred()
    found = fit_both_samples(
        (one, two),
        (few.factor, other.factor),
        gap=few.mean - other.mean,
        directions=min(fake.directions, real.directions),
    )
    if found is None:
        return None
    errors = tuple(
        SampleError(
            variance=variance,
            degrees_of_freedom=len(rows) - 1.0,
            influence=influence,
            tails=Tails.of(influence),
        )
        for rows, variance, influence in zip(
            (one, two), found.variances, found.influences, strict=True
        )
    )
    ordered = (errors[0], errors[1]) if few is fake else (errors[1], errors[0])
    return _estimate(
        found.method,
        found.value,
        (fake, real),
        ordered,
        warnings=found.warnings,
        details=found.details,
    )


def _one_by_one(
    few: FrechetSample, other: FrechetSample, fit: Fit, ratio: float
) -> tuple[float, SampleError, Diagnostic]:
    """Remove either bias as if it were alone, where moments are all that is known of one sample.

    Then widen by what that leaves. The rest is positive; measured at equal sizes
    (docs/few_samples.md) it is 5 % of the removed bias at three samples per dimension, 10 % at two,
    18 % at one, and most of it below.
    """
    mirrored = _fit(other, few)
    plugin = Pair(few, other).plugin
    value = fit.value + mirrored.value - plugin
    removed = max(plugin - value, 0.0)
    unresolved = removed * 0.2 / ratio if ratio >= 1.0 else max(removed, value)
    rest = SampleError(
        variance=mirrored.variance + unresolved**2,
        degrees_of_freedom=_degrees(other),
        influence=mirrored.influence,
    )
    doubt = unreliable(
        "few-samples",
        f"both samples have fewer than {FEW_RATIO} samples per dimension, and of one only the "
        f"moments are known: a positive bias of about {unresolved:.2g} may be left, by which the "
        "interval is widened",
        "Pass the features instead of their moments, or use more samples.",
    )
    return value, rest, doubt


def _fit(few: FrechetSample, other: FrechetSample, spectrum: Float | None = None) -> Fit:
    """Debias one sample; `spectrum`: eigenvalues of the other covariance, where they are known."""
    assert few.n is not None
    gap = few.mean - other.mean
    if few.rows is None:
        return fit_from_moments(
            gap=gap,
            cov=few.moments.cov,
            lower=other.factor,
            n=few.n,
            reference_trace=other.trace,
            reference_spectrum=spectrum,
        )
    centred = few.centred()
    return fit_one_sample(
        centred,
        centred @ other.factor,
        gap=gap,
        reference_trace=other.trace,
        reference_spectrum=spectrum,
    )
