"""Methods "truncated" and "nystrom": the leading eigenvalues, lifted to sum to one."""

from __future__ import annotations

from dataclasses import replace

from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.estimators.vendi._job import (
    DENSE_ROWS,
    Job,
    enough_rows,
    spectrum_error,
    unweighted,
)
from genbounds.estimators.vendi._spectrum import (
    Spectrum,
    from_features,
    from_gram,
    leading,
)
from genbounds.estimators.vendi._spectrum import nystrom as nystrom_spectrum
from genbounds.results import Diagnostic, Method

LANDMARKS_PER_COMPONENT = 5

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
    landmarks = min(LANDMARKS_PER_COMPONENT * t, job.n)
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
    value, error, _ = spectrum_error(job, spectrum, n, t if kept == t else None)
    if not job.plugin:
        value -= error.bias
    warnings: tuple[Diagnostic, ...] = ()
    if n < ROWS_PER_EIGENVALUE * t:
        error = replace(error, variance=error.variance + error.bias**2 / 4.0)
        warnings = (warn_of("few-for-eigenvalues", n=n, eigenvalues=t, least=ROWS_PER_EIGENVALUE),)
    return job.estimate(
        method, statistic, value, error, limit=t, warnings=warnings, details=details
    )
