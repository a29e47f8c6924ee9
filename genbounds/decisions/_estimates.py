"""Estimates as decisions take them: on the scale of the score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from genbounds._text import number
from genbounds.estimators import Estimate, MetricSpec, Prepared, estimate_each, prepare_all
from genbounds.results import Diagnostic
from genbounds.validation import InputError, calling


def on_score_scale(estimate: Estimate) -> Estimate:
    """Return the estimate of the score itself where it is one of the logarithm.

    A margin is given in units of the score. exp is convex: value and variance then rise together,
    by half the square of the relative variance, which is added to the curvature.
    """
    if not estimate.log_scale:
        return estimate
    value = math.exp(estimate.value)
    sample, reference = (
        replace(error, curvature=error.curvature + error.variance**2 / 2.0)
        for error in (estimate.sample, estimate.reference)
    )
    return replace(
        replace(estimate, sample=sample, reference=reference).scaled(value),
        value=value,
        lower_limit=math.exp(estimate.lower_limit),
        upper_limit=math.exp(min(estimate.upper_limit, 700.0)),
        log_scale=False,
        own_interval=None,
    )


def estimated(
    spec: MetricSpec,
    samples: Mapping[str, Any],
    reference: Any,
    options: Mapping[str, Any] | None,
    partners: Mapping[str, Any] | None = None,
) -> tuple[Prepared, dict[str, Estimate]]:
    """Estimate the score of all samples against one reference, which errors call `reference`."""
    with calling("real", "reference"):
        prepared = prepare_all(spec, samples, reference, options)
    return prepared, estimate_each(spec, prepared, samples, partners=partners)


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


def in_units(
    amount: float, relative: bool, estimate: Estimate, *, whose: str, argument: str
) -> float:
    """Return an amount in units of the score; refuse a share of one that is not positive."""
    if not relative:
        return amount
    if estimate.value > 0.0:
        return amount * estimate.value
    why, instead = "not positive", ""
    if estimate.lower_limit == 0.0 and not estimate.higher_is_better:  # a distance
        why = "within the noise of 0: these samples do not tell it from the reference"
        instead = ", or use more samples"
    raise InputError(
        f"is a share of the {whose}'s score, but that is estimated at {number(estimate.value)}, "
        f"{why}. Give it in units of the score{instead}.",
        argument=argument,
    )


def distrust(warnings: Iterable[Diagnostic]) -> str:
    """Say why no decision can be based on these scores; empty if it can.

    An error rate of 5 % takes more than scores do: limits of few samples miss more often.
    """
    doubts = dict.fromkeys(
        warning.message
        for warning in warnings
        if warning.severity == "unreliable" or warning.code == "few-samples"
    )
    return f"a score cannot be relied on: {'; '.join(doubts)}" if doubts else ""
