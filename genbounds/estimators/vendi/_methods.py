"""Methods "exact" and "ustat", which approximate nothing.

"exact" takes the whole spectrum, from the smaller of the n × n and the feature side; "ustat", for
order 2, no eigenvalues: it is unbiased at any number of samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.design import Index, row_design
from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.expansion import third_order
from genbounds.diagnostics import Severity, warn_of
from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.kernels._rke import LEAST_ROWS, frobenius
from genbounds.estimators.vendi._ceiling import TIE_ROWS, TIE_SEED, tie_excess, tied_interval
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
    enough_rows,
    subsample_error,
    unweighted,
)
from genbounds.estimators.vendi._spectrum import (
    FeatureRows,
    fourier_features,
    from_features,
    from_gram,
    lanczos_entropy,
    leading,
    nystrom_spectrum,
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
    if job.order == 2.0 and job.n >= LEAST_ROWS:
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
    matrix = rows.matrix(rows.given.dtype if order >= 1.0 else np.float64)
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
    if _third_order_counts(job.order, whole) and job.n >= 8 * LEAST_ROWS:
        found = _halved(job, whole, value)
        if found is not None:
            value, added = found
            error = replace(error, variance=error.variance + added)
            method = "third-order"
    near = job.near_ceiling(
        value=value,
        bias=error.bias,
        second=error.quadratic_variance,
        seeds=error.seeds is not None,
    )
    return job.estimate(method, STATISTIC, value, error, limit=dimension, **near)


def _third_order_counts(order: float, whole: _Whole) -> bool:
    least, share = (SPLIT_RATIO, THIRD) if order >= 1.0 else (SMALL_ORDER_RATIO, SMALL_ORDER_THIRD)
    third = share * abs(whole.error.bias) / whole.ratio
    return whole.ratio < least or third > NEGLIGIBLE * math.sqrt(whole.error.variance)


def _halved(job: Job, whole: _Whole, value: float) -> tuple[float, float] | None:
    """Value to third order, and what parts of the rows add to its variance beyond their noise.

    None where a stratum of the design has too few units to be halved.
    """
    values, added = [], 7.0 / 9.0 * whole.noise
    design = job.design or row_design(job.n)
    half_of_unit = design.halves(np.random.default_rng(PAIRING_SEED))
    if half_of_unit is None:
        return None
    halves = design.rows_of_halves(half_of_unit)
    for half, spectrum in zip(halves, _half_spectra(job, whole, halves), strict=True):
        form = SpectralForm(spectrum, n=half.size, order=job.order, every_row=job.every_row)
        bias, noise = spectral_bias(form, job.design and job.design.restricted(half))
        values.append(form.at.value - bias)
        added += noise / 36.0
    return third_order(value, values), added


def _half_spectra(job: Job, whole: _Whole, halves: tuple[Index, Index]) -> Iterator[Spectrum]:
    features, gram = whole.features, whole.gram
    weights: list[Float | None] = [None, None]
    if job.weights is not None:
        weights = [job.weights[half] / job.weights[half].sum() for half in halves]
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
    interval = tied_interval(
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
    if job.n < LEAST_ROWS:
        raise InputError(f"method 'ustat' needs at least {LEAST_ROWS} samples; got {job.n}.")
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
    near: dict[str, Any] = {}
    if not job.plugin:
        log_value -= relative / 2.0  # E log U falls short of log E U by that
        near = job.near_ceiling(
            value=log_value,
            bias=(1.0 - 1.0 / value) / job.n,
            second=square.quadratic_variance,
            seeds=square.seeds is not None,
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
        warnings=warnings,
        **near,
    )


PROBES, STEPS = 64, 16

LANDMARKS_PER_COMPONENT = 5
"""As many as the components, as in V24, leave out trace, whose lift makes scores too large."""

ROWS_PER_EIGENVALUE = 10
"""With fewer, bias can be left, so that the interval is widened."""


def truncated(job: Job) -> Estimate:
    """Score of the leading `job.components` eigenvalues (V24, Definition 2)."""
    enough_rows(job, job.components)
    details: tuple[str, ...] = ()
    features = job.features()
    if features is not None and features.d < job.n:
        spectrum = from_features(features, None, job.weights)
    elif job.n <= DENSE_ROWS:
        spectrum = from_gram(job.rows.matrix(), job.weights)
    else:
        unweighted(job)
        spectrum, residual = leading(job.rows, job.components, job.seed)
        details = (f"leading eigenpairs by block Krylov, largest residual {residual:.1g}",)
    statistic = f"vendi, truncated at t={job.components}"
    return _of_leading(job, "truncated", statistic, spectrum, details)


def nystrom(job: Job) -> Estimate:
    """Score of the leading eigenvalues of the Nyström approximation on random landmarks."""
    t = job.components
    unweighted(job)
    enough_rows(job, t)
    landmarks = job.landmarks or min(LANDMARKS_PER_COMPONENT * t, job.n)
    if not t <= landmarks <= job.n:
        legal = f"must be from {t}, the components, to {job.n}, the rows"
        raise InputError(f"{legal}; got {landmarks}.", argument="landmarks")
    spectrum, trace = nystrom_spectrum(job.rows, landmarks, job.seed)
    found = _of_leading(job, "nystrom", f"vendi, nystrom, truncated at t={t}", spectrum, ())
    return replace(
        found,
        assumptions=(
            *found.assumptions,
            f"each eigenvalue is low by at most {1.0 - trace:.2g}, all together, which the "
            "interval does not cover",
        ),
        details=(*found.details, f"{landmarks} landmarks capture {trace:.1%} of the trace"),
    )


def _of_leading(
    job: Job, method: Method, statistic: str, spectrum: Spectrum, details: tuple[str, ...]
) -> Estimate:
    t, n = job.components, job.n
    kept = min(t, spectrum.values.size)
    if kept < t:
        details += (f"only {kept} eigenvalues are positive; the others of the {t} kept are 0",)
    value, error, _ = job.expanded(spectrum, t if kept == t else None)
    if not job.plugin:
        value -= error.bias
    warnings: tuple[Diagnostic, ...] = ()
    if n < ROWS_PER_EIGENVALUE * t:
        error = replace(error, variance=error.variance + error.bias**2 / 4.0)
        warnings = (warn_of("few-for-eigenvalues", n=n, eigenvalues=t, least=ROWS_PER_EIGENVALUE),)
    return job.estimate(
        method, statistic, value, error, limit=t, warnings=warnings, details=details
    )


def random_features(job: Job) -> Estimate:
    """Score of the kernel made of `job.components` random frequencies."""
    t, n, rows = job.components, job.n, job.rows
    if rows.name not in {"rbf", "laplace"}:
        raise InputError(
            f"method 'fkea' needs a shift-invariant kernel ('rbf' or 'laplace'); got {rows.name!r}."
        )
    features = fourier_features(rows, t, job.seed)
    if job.order < 1.0:
        features = features.double()
    value, error, _ = job.expanded(from_features(features, None, job.weights))
    warnings: tuple[Diagnostic, ...] = ()
    if not job.plugin and (job.order >= 2.0 or n >= RESOLVED_RATIO * 2 * t):
        value -= error.bias
    elif not job.plugin:
        warnings = (warn_of("few-for-frequencies", n=n, dimensions=2 * t, least=RESOLVED_RATIO),)
    warnings += (warn_of("score-of-frequencies", frequencies=t),)
    return job.estimate(
        "random-features",
        f"vendi, fkea with {t} frequencies, seed {job.seed}",
        value,
        error,
        limit=2 * t,
        warnings=warnings,
    )


def lanczos(job: Job) -> Estimate:
    """Empirical score by stochastic Lanczos quadrature."""
    rows, n = job.rows, job.n
    if math.isinf(job.order):
        raise InputError("method 'lanczos' is for finite orders; order inf needs one eigenvalue.")
    unweighted(job)
    error = subsample_error(job)
    found = lanczos_entropy(
        rows,
        order=job.order,
        deflated=min(job.components, n // 4),
        probes=PROBES,
        steps=min(STEPS, n),
        seed=job.seed,
    )
    variance = error.variance + found.stderr**2 + found.bracket**2
    warning = warn_of("grows-with-n", n=n)
    return job.estimate(
        "lanczos",
        f"vendi, empirical at n={n}",
        found.value,
        replace(error, variance=variance, influence=None),
        warnings=(warning,),
        details=(
            f"Lanczos quadrature: error of the log score from {PROBES} probes {found.stderr:.2g}, "
            f"from quadrature {found.bracket:.2g}, both in the interval",
        ),
    )
