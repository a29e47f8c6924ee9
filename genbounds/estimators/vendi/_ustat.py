"""Method "ustat": order 2 without eigenvalues, unbiased at any number of samples."""

from __future__ import annotations

import math

from genbounds.core.crossed import with_seeds
from genbounds.core.estimate import Estimate, SampleError
from genbounds.diagnostics import warn_of
from genbounds.estimators.kernels._rke import MINIMUM, frobenius
from genbounds.estimators.vendi._ceiling import NEAR_CEILING, ceiling_interval
from genbounds.estimators.vendi._job import Job
from genbounds.results import Diagnostic
from genbounds.validation import InputError

LARGE_ERROR = 0.25
"""Squared relative error of E k² above which its logarithm is far from normal."""


def u_statistic(job: Job, *, statistic: str = "vendi, ustat") -> Estimate:
    """Score of order 2 (RKE) from the U-statistic of E k(x, x')²."""
    if job.order != 2.0:
        raise InputError(f"method 'ustat' is for order 2; got order {job.order:g}.")
    if job.n < MINIMUM:
        raise InputError(f"method 'ustat' needs at least {MINIMUM} samples; got {job.n}.")
    square = frobenius(job.rows, job.design)
    value = square.plugin if job.plugin else square.value
    if not value > 0.0:
        raise InputError(
            "has no two rows with a positive kernel value: its RKE cannot be told from "
            "infinity. Widen the bandwidth or draw more samples.",
            argument="x",
        )
    relative = square.variance / value**2
    log_value = -math.log(value)
    own_interval = None
    if not job.plugin:
        log_value -= relative / 2.0  # E log U falls short of log E U by that
        if job.rows.dimension is not None and square.seeds is None:
            own_interval = ceiling_interval(
                value=log_value,
                bias=(1.0 - 1.0 / value) / job.n,
                second=square.second / value**2,
                ceiling=math.log(job.rows.dimension),
                n=job.n,
            )
    warnings: tuple[Diagnostic, ...] = ()
    if relative > LARGE_ERROR:
        warnings = (warn_of("noisy-square", error=math.sqrt(relative)),)
    error = SampleError(
        variance=relative,
        degrees_of_freedom=job.degrees_of_freedom,
        influence=None if square.influence is None else -square.influence / value,
    )
    if square.seeds is not None:
        error = with_seeds(error, square.seeds.scaled(-1.0 / value))
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
