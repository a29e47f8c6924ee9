"""Methods "exact" and "ustat", which approximate nothing.

"exact" takes the whole spectrum, from the smaller of the n × n and the feature side; "ustat", for
order 2, no eigenvalues: it is unbiased at any number of samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.design import Index
from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.expansion import third_order
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.kernels._rke import MINIMUM, frobenius
from genbounds.estimators.vendi._ceiling import (
    NEAR_CEILING,
    TIE_ROWS,
    TIE_SEED,
    TiedInterval,
    ceiling_interval,
    tie_excess,
)
from genbounds.estimators.vendi._expansion import (
    PAIRING_SEED,
    SpectralForm,
    Spectrum,
    leading_group,
    log_vendi,
    spectral_bias,
)
from genbounds.estimators.vendi._few_samples import fitted_estimate
from genbounds.estimators.vendi._job import (
    DENSE_ROWS,
    RESOLVED_RATIO,
    STATISTIC,
    Job,
    subsample_error,
    unweighted,
)
from genbounds.estimators.vendi._spectrum import (
    FeatureRows,
    from_features,
    from_gram,
    leading,
)
from genbounds.results import Diagnostic, Method
from genbounds.validation import Float, InputError

FITTED_ORDER = 0.5
"""Least order of which a fitted spectrum says enough: below, what counts is not seen."""

SPLIT_RATIO, THIRD = 8, 0.6
SMALL_ORDER_RATIO, SMALL_ORDER_THIRD = 16, 1.0
NEGLIGIBLE = 0.1
"""From so many samples per dimension on, the bias of third order is left in where it is below this
share of a standard error. It is taken to be THIRD of the second-order bias over the samples per
dimension, the most that was measured from order 1 on (experiments/vendi/third_order.py, 0.64 for
one distribution); below order 1 it can be more."""

LARGE_ERROR = 0.25
"""Squared relative error of E k² above which its logarithm is far from normal."""


def exact(job: Job) -> Estimate:
    """Score of the whole spectrum."""
    if job.order == 2.0 and job.n >= MINIMUM:
        return u_statistic(job, statistic=STATISTIC)
    resolved, refusal = _resolved(job), ""
    if not resolved and _can_fit(job):
        fitted = fitted_estimate(job)
        if not isinstance(fitted, str):
            return fitted
        refusal = f"; {fitted}, so no spectrum is fitted"
    whole = _whole(job)
    if not resolved:
        return _empirical(job, whole, refusal)
    if math.isinf(job.order) and whole.spectrum is not None and not job.plugin:
        count, variance = leading_group(whole.spectrum.coordinates, whole.spectrum.values, job.n)
        if count > 1:
            return _tied(job, whole.spectrum, count, variance)
    return _debiased(job, whole)


@dataclass(frozen=True, slots=True)
class _Whole:
    """Plug-in log score of all rows with its error, and what it was computed from.

    Attributes
    ----------
    value : float
    error : SampleError
    noise : float
        Share of random parts of the rows in the variance.
    ratio : float
        Samples per dimension of the spectrum.
    spectrum : Spectrum or None
    features : FeatureRows or None
    gram : ndarray or None
    """

    value: float
    error: SampleError
    noise: float = 0.0
    ratio: float = math.inf
    spectrum: Spectrum | None = None
    features: FeatureRows | None = None
    gram: Float | None = None


def _resolved(job: Job) -> bool:
    """Whether the sample's own spectrum can be debiased."""
    dimension = job.rows.dimension
    return job.order >= 2.0 or (
        dimension is not None and job.n >= RESOLVED_RATIO * min(dimension, job.n)
    )


def _can_fit(job: Job) -> bool:
    dimension = job.rows.dimension
    return (
        not job.plugin
        and job.design is None  # its limit theorems are about independent rows
        and dimension is not None
        and job.order >= FITTED_ORDER
        and min(job.n, dimension) <= DENSE_ROWS
        and (job.n <= dimension or job.rows.features() is not None)
    )


def _whole(job: Job) -> _Whole:
    """Take the cheapest way to the spectrum that this order needs."""
    rows, n = job.rows, job.n
    features, gram, ratio = job.features(), None, math.inf
    if features is not None and features.d < n:
        gram = features.gram(job.weights)
        spectrum, ratio = from_features(features, gram, job.weights), n / features.d
    elif n <= DENSE_ROWS:
        spectrum, ratio = from_gram(rows.matrix(), job.weights), 1.0
    elif math.isinf(job.order):
        unweighted(job)
        spectrum, _ = leading(rows, 1, job.seed)
    else:
        unweighted(job)
        error = subsample_error(job)
        return _Whole(_log_score(rows, job.order), error, features=features)
    return _Whole(*job.expanded(spectrum), ratio, spectrum, features, gram)


def _log_score(rows: KernelRows, order: float) -> float:
    """Plug-in log score from all eigenvalues of the n × n matrix, without eigenvectors."""
    matrix = rows.matrix(rows.dtype if order >= 1.0 else np.float64)
    # The transpose is in LAPACK's order, so that no copy is made.
    values = scipy.linalg.eigvalsh(matrix.T, check_finite=False, overwrite_a=True)[::-1]
    return log_vendi(values.astype(np.float64) / rows.n, order)


def _empirical(job: Job, whole: _Whole, refusal: str) -> Estimate:
    """Score of these n rows, where there is no limit to estimate."""
    n, dimension = job.n, job.rows.dimension
    why = (
        "the feature dimension is infinite or not known"
        if dimension is None
        else f"{n} samples for {dimension} feature dimensions{refusal}"
    )
    warning = warn_of("grows-with-n-because", n=n, why=why)
    return job.estimate(
        "empirical", f"vendi, empirical at n={n}", whole.value, whole.error, warnings=(warning,)
    )


def _debiased(job: Job, whole: _Whole) -> Estimate:
    dimension, error = job.rows.dimension, whole.error
    if job.plugin:
        return job.estimate("plug-in", STATISTIC, whole.value, error, limit=dimension)
    method: Method = "second-order"
    value = whole.value - error.bias
    if _third_order_counts(job.order, whole) and job.n >= 8 * MINIMUM:
        found = _halved(job, whole, value)
        if found is not None:
            value, added = found
            error = replace(error, variance=error.variance + added)
            method = "third-order"
    own_interval = None
    # Its noncentral distribution knows nothing of seeds.
    if dimension is not None and math.isfinite(job.order) and error.seeds is None:
        own_interval = ceiling_interval(
            value=value,
            bias=error.bias,
            second=error.quadratic_variance,
            ceiling=math.log(dimension),
            n=job.n,
        )
    return job.estimate(
        method,
        STATISTIC,
        value,
        error,
        limit=dimension,
        own_interval=own_interval,
        details=() if own_interval is None else (NEAR_CEILING,),
    )


def _third_order_counts(order: float, whole: _Whole) -> bool:
    least, share = (SPLIT_RATIO, THIRD) if order >= 1.0 else (SMALL_ORDER_RATIO, SMALL_ORDER_THIRD)
    third = share * abs(whole.error.bias) / whole.ratio
    return whole.ratio < least or third > NEGLIGIBLE * math.sqrt(whole.error.variance)


def _halved(job: Job, whole: _Whole, value: float) -> tuple[float, float] | None:
    """Value to third order, and what parts of the rows add to its variance beyond their noise.

    None where a stratum of the design has too few units to be halved.
    """
    values, added = [], 7.0 / 9.0 * whole.noise
    halves = _halves(job)
    if halves is None:
        return None
    for half, spectrum in zip(halves, _half_spectra(job, whole, halves), strict=True):
        form = SpectralForm(spectrum, n=half.size, order=job.order, every_row=job.every_row)
        design = None if job.design is None else job.design.restricted(half)
        bias, noise = spectral_bias(form, design)
        values.append(form.at.value - bias)
        added += noise / 36.0
    return third_order(value, values), added


def _halves(job: Job) -> list[Index] | None:
    rng = np.random.default_rng(PAIRING_SEED)
    if job.design is None:
        shuffled = rng.permutation(job.n)
        return [np.sort(shuffled[k::2]) for k in (0, 1)]
    half = job.design.halves(rng)
    return None if half is None else list(job.design.rows_of_halves(half))


def _half_spectra(job: Job, whole: _Whole, halves: list[Index]) -> Iterator[Spectrum]:
    features, gram = whole.features, whole.gram
    weights = [None if job.weights is None else job.weights[half] for half in halves]
    if features is None:
        for half, w in zip(halves, weights, strict=True):
            yield from_gram(job.rows.subset(half).matrix(), w)
        return
    one, two = (features.subset(half) for half in halves)
    if gram is None or two.n <= features.d or job.weights is not None:
        for part, w in zip((one, two), weights, strict=True):
            yield from_features(part, None, w)
        return
    first = one.gram()
    yield from_features(one, first)
    yield from_features(two, (features.n * gram - one.n * first) / two.n)


def _tied(job: Job, spectrum: Spectrum, count: int, variance: float) -> Estimate:
    """Order ∞ where the largest eigenvalue is not alone.

    If all of the group are equal, their mean estimates it; if not, it is at most the largest seen,
    which is biased upward. The interval spans both.
    """
    values = spectrum.values[:count]
    high, low = -math.log(float(values.mean())), -math.log(float(values[0]))
    rng = np.random.default_rng(TIE_SEED)
    index = np.sort(rng.choice(job.n, min(job.n, TIE_ROWS), replace=False))
    parts = [block[:, :count] for _, block in spectrum.coordinates(index)]
    rows = np.concatenate(parts).astype(np.float64, copy=False)
    excess = tie_excess(rows / np.sqrt((rows**2).mean(axis=0)))
    own = float(np.var(rows[:, 0] ** 2, ddof=1)) / float(values[0]) ** 2 / job.n
    interval = TiedInterval(
        largest=float(values[0]),
        stderr=math.sqrt(own),
        excess=excess * math.sqrt(len(rows) / job.n),
        degrees=job.n - 1.0,
    )
    # The excess of a largest eigenvalue is drawn for independent rows.
    severity: Severity = "caution" if job.design is None else "unreliable"
    warning = warn_of("near-tie", severity=severity, eigenvalues=values.size)
    error = SampleError(
        variance=variance + ((high - low) / 2.0) ** 2, degrees_of_freedom=job.n - 1.0
    )
    return job.estimate(
        "second-order",
        STATISTIC,
        (high + low) / 2.0,
        error,
        limit=job.rows.dimension,
        own_interval=interval,
        warnings=(warning,),
    )


def u_statistic(job: Job, *, statistic: str = "vendi, ustat") -> Estimate:
    """Score of order 2 (RKE) from the U-statistic of E k(x, x')²."""
    if job.order != 2.0:
        raise InputError(f"method 'ustat' is for order 2; got order {job.order:g}.")
    if job.n < MINIMUM:
        raise InputError(f"method 'ustat' needs at least {MINIMUM} samples; got {job.n}.")
    plugin, debiased, square = frobenius(job.rows, job.design)
    value = plugin if job.plugin else debiased
    if not value > 0.0:
        raise InputError(
            "has no two rows with a positive kernel value: its RKE cannot be told from "
            "infinity. Widen the bandwidth or draw more samples.",
            argument="x",
        )
    square = square.scaled(-1.0 / value)  # of the logarithm
    relative = square.variance
    log_value = -math.log(value)
    own_interval = None
    if not job.plugin:
        log_value -= relative / 2.0  # E log U falls short of log E U by that
        if job.rows.dimension is not None and square.seeds is None:
            own_interval = ceiling_interval(
                value=log_value,
                bias=(1.0 - 1.0 / value) / job.n,
                second=square.quadratic_variance,
                ceiling=math.log(job.rows.dimension),
                n=job.n,
            )
    warnings: tuple[Diagnostic, ...] = ()
    if relative > LARGE_ERROR:
        warnings = (warn_of("noisy-square", error=math.sqrt(relative)),)
    error = SampleError(
        variance=relative,
        degrees_of_freedom=square.degrees_of_freedom,
        influence=square.influence,
        seeds=square.seeds,
    )
    return job.estimate(
        "u-statistic",
        statistic,
        log_value,
        error,
        limit=job.rows.dimension,
        own_interval=own_interval,
        warnings=warnings,
        details=() if own_interval is None else (NEAR_CEILING,),
    )
