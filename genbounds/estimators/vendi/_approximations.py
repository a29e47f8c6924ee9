"""Methods that approximate spectrum or kernel: "truncated", "nystrom", "fkea", "lanczos"."""

from __future__ import annotations

import math
from dataclasses import replace

from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.estimators.vendi._expansion import Spectrum
from genbounds.estimators.vendi._job import (
    DENSE_ROWS,
    RESOLVED_RATIO,
    Job,
    enough_rows,
    subsample_error,
    unweighted,
)
from genbounds.estimators.vendi._spectrum import (
    fourier_features,
    from_features,
    from_gram,
    lanczos_entropy,
    leading,
)
from genbounds.estimators.vendi._spectrum import nystrom as nystrom_spectrum
from genbounds.results import Diagnostic, Method
from genbounds.validation import InputError

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
    return _estimate(job, "truncated", statistic, spectrum, details)


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
    found = _estimate(job, "nystrom", f"vendi, nystrom, truncated at t={t}", spectrum, ())
    return replace(
        found,
        assumptions=(
            *found.assumptions,
            f"each eigenvalue is low by at most {1.0 - trace:.2g}, all together, which the "
            "interval does not cover",
        ),
        details=(*found.details, f"{landmarks} landmarks capture {trace:.1%} of the trace"),
    )


def _estimate(
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
