"""Method "fkea": the kernel of random frequencies, whose feature map is finite."""

from __future__ import annotations

from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.estimators.vendi._job import RESOLVED_RATIO, Job, spectrum_error
from genbounds.estimators.vendi._spectrum import fourier_features, from_features
from genbounds.results import Diagnostic
from genbounds.validation import InputError


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
    value, error, _ = spectrum_error(job, from_features(features, None, job.weights), n)
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
