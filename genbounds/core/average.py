"""Weighted mean of independent estimates: over classes, or over halves of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from genbounds.core.estimate import Estimate, SampleError, welch_degrees_of_freedom
from genbounds.results import Diagnostic
from genbounds.validation import Float


def average(estimates: Sequence[Estimate], shares: Float, *, what: str) -> Estimate:
    """Weighted mean of estimates from samples that have nothing in common.

    Parameters
    ----------
    estimates : sequence of Estimate
        Of one method.
    shares : ndarray of shape (estimates,)
    what : str
        What the estimates are of, in the plural: "classes". It stands in the warning.

    Returns
    -------
    Estimate
        Without influences: differences of two means take each one's error as its own.
    """
    scaled = [one.scaled(share) for one, share in zip(estimates, shares, strict=True)]
    return replace(
        estimates[0],
        value=math.fsum(one.value for one in scaled),
        sample=_sum([one.sample for one in scaled]),
        reference=_sum([one.reference for one in scaled]),
        shared_variance=math.fsum(one.shared_variance for one in scaled),
        missing_rate=math.fsum(one.missing_rate for one in scaled),
        own_interval=None,
        halves=None,
        warnings=_doubts(estimates, what),
        details=(),
    )


def _doubts(estimates: Sequence[Estimate], what: str) -> tuple[Diagnostic, ...]:
    doubts = [
        next(warning for warning in one.warnings if warning.severity == "unreliable")
        for one in estimates
        if not one.reliable
    ]
    if not doubts:
        return ()
    message = f"{len(doubts)} of {len(estimates)} {what} cannot be relied on: {doubts[0].message}"
    return (replace(doubts[0], severity="unreliable", message=message),)


def _sum(errors: Sequence[SampleError]) -> SampleError:
    """Error of a sum of independent estimates."""
    known = [error.n for error in errors if error.n is not None]
    return SampleError(
        n=sum(known) if len(known) == len(errors) else None,
        variance=math.fsum(error.variance for error in errors),
        degrees_of_freedom=welch_degrees_of_freedom(
            *((error.variance, error.degrees_of_freedom) for error in errors)
        ),
        curvature=math.fsum(error.curvature for error in errors),
        skewness=math.fsum(error.skewness for error in errors),
        quadratic_variance=math.fsum(error.quadratic_variance for error in errors),
        mixed_variance=math.fsum(error.mixed_variance for error in errors),
    )
