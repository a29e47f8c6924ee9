"""Method "lanczos": the score of the sample as it is, without ever holding the kernel matrix."""

from __future__ import annotations

import math
from dataclasses import replace

from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.estimators.vendi._job import Job, subsample_error, unweighted
from genbounds.estimators.vendi._spectrum import lanczos_entropy
from genbounds.validation import InputError

PROBES, STEPS = 64, 16


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
