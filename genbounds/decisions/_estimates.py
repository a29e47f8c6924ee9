"""Estimates as decisions take them: on the scale of the score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from genbounds.estimators import (
    Estimate,
    MetricSpec,
    Prepared,
    SampleError,
    estimate_each,
    prepare_all,
)
from genbounds.origins import origin_of
from genbounds.results import Diagnostic
from genbounds.validation import calling


def on_score_scale(estimate: Estimate) -> Estimate:
    """Return the estimate of the score itself where it is one of the logarithm.

    A margin is given in units of the score. exp is convex: value and variance then rise together,
    by half the square of the relative variance, which is added to the curvature.
    """
    if not estimate.log_scale:
        return estimate
    value = math.exp(estimate.value)

    def scaled(error: SampleError) -> SampleError:
        convex = value**3 * error.variance**2 / 2.0
        found = error.scaled(value)
        return replace(found, curvature=found.curvature + convex)

    return replace(
        estimate.scaled(value),
        value=value,
        sample=scaled(estimate.sample),
        reference=scaled(estimate.reference),
        lower_limit=math.exp(estimate.lower_limit),
        upper_limit=math.exp(min(estimate.upper_limit, 700.0)),
        log_scale=False,
        own_interval=None,
    )


def estimated(
    spec: MetricSpec, samples: Mapping[str, Any], reference: Any, options: Mapping[str, Any] | None
) -> tuple[Prepared, dict[str, Estimate]]:
    """Estimate the score of all samples against one reference, which errors call `reference`."""
    with calling("real", "reference"):
        prepared = prepare_all(spec, samples, reference, options)
    return prepared, estimate_each(spec, prepared, samples)


def origins(samples: Mapping[str, Any], reference: Any) -> dict[str, Mapping[str, str]]:
    """Return what all samples, by the names that errors call them, know of their encoder."""
    named = samples if reference is None else {**samples, "`reference`": reference}
    return {name: origin_of(sample) for name, sample in named.items()}


def all_warnings(*kinds: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Join warnings, each once, unreliable ones first."""
    found = dict.fromkeys(warning for kind in kinds for warning in kind)
    return tuple(sorted(found, key=lambda warning: warning.severity != "unreliable"))


def number_or_share(given: object) -> tuple[float, bool]:
    """Read an amount, and whether it is a share of a score: from 0.5, "0.5" or "2%".

    Returns
    -------
    tuple of float and bool
        The number is NaN where `given` is none; 2 % are 0.02.
    """
    text = str(given).strip()
    relative = isinstance(given, str) and text.endswith("%")
    try:
        value = math.nan if isinstance(given, bool) else float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    return value / 100.0 if relative else value, relative
