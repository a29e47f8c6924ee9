"""Method "fkea": the kernel of random frequencies, whose feature map is finite."""

from __future__ import annotations

from genbounds.core.estimate import Estimate
from genbounds.estimators.vendi._job import RESOLVED_RATIO, Job, spectrum_error
from genbounds.estimators.vendi._spectrum import fourier_features, from_features
from genbounds.results import Diagnostic, caution
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
        warnings = (
            caution(
                "depends-on-n",
                f"{n} samples for {2 * t} feature dimensions, fewer than {RESOLVED_RATIO} each: "
                "the bias is left in",
                "Compare only with equally many samples, or use fewer frequencies.",
            ),
        )
    warnings += (
        caution(
            "bias-left",
            f"the score is that of the kernel made of these {t} frequencies, to which the interval "
            "is conditional; the kernel's own score is larger",
        ),
    )
    return job.estimate(
        "random-features",
        f"vendi, fkea with {t} frequencies, seed {job.seed}",
        value,
        error,
        limit=2 * t,
        warnings=warnings,
    )
