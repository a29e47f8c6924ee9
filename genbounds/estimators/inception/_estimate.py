"""Log Inception score with its bias removed, its error and its warnings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.checks import check_sample, drawn
from genbounds.core.design import Design
from genbounds.core.estimate import Estimate, bias_left, small_sample
from genbounds.core.expansion import expand, halved, third_order
from genbounds.diagnostics import warn_of
from genbounds.estimators._extrapolation import LINEAR, Subsets, extrapolate, not_independent
from genbounds.estimators.inception._rows import HALVING_SEED, InceptionForm, random_halves
from genbounds.results import Method
from genbounds.samples import too_even
from genbounds.validation import check_choice

ESTIMATORS = ("debiased", "plugin", "infinity")


# In one piece: value, error and warnings of the three estimators share every step.
def inception_estimate(
    probs: Any, *, estimator: str = "debiased", subsets: Subsets | None = None
) -> Estimate:
    """Log Inception score with its variance and influence, before any level is chosen.

    `probs` and `estimator` are those of `inception_score`, `subsets` those of `inception_infinity`.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    seen = check_sample("probs", probs, posteriors=True, crossed=True)
    rows, design = seen.rows, seen.design
    n = rows.shape[0]
    alone = design is None or design.independent
    if estimator == "infinity" and not alone:
        raise not_independent("IS∞")
    # Independent rows are compared with the mean posterior of their half in the same pass.
    form = InceptionForm(
        rows,
        weights=None if design is None or alone else design.weights,
        half=random_halves(n) if alone else None,
    )
    error, _ = expand(form, design)
    plugin = form.plugin()
    value: float = plugin - error.bias
    method: Method = "second-order"
    halves = form.half_values() if design is None or alone else _half_values(rows, design)
    if halves is not None:
        value, method = third_order(value, halves), "third-order"
    warnings = seen.warnings
    if not seen.told and too_even(form.top):
        warnings += (warn_of("balanced-classes"),)
    assumptions: tuple[str, ...] = (drawn(design),)
    details: tuple[str, ...] = ()
    if estimator == "plugin":
        warnings += (bias_left(plugin - value),)
        value, method = plugin, "plug-in"
    elif estimator == "debiased" and halves is not None:
        error = halved(error)
    elif estimator == "infinity":
        subsets = subsets or Subsets()
        # The line is drawn through the score itself.
        line = extrapolate(lambda index: math.exp(InceptionForm(rows, index).value()), n, subsets)
        warnings += subsets.warnings
        score = max(line.value, 1.0)
        value, method = math.log(score), "extrapolation"
        error = replace(error, variance=error.variance + line.variance / score**2)
        assumptions += (LINEAR,)
        details = line.details
    classes = int((form.marginals[:, 0] > 0.0).sum())
    warnings += small_sample(n, units=math.inf if design is None else design.free_units)
    if n < 2 * classes:
        warnings += (warn_of("few-per-class", n=n, classes=classes),)
    return Estimate(
        title="Inception score",
        estimator=estimator,
        method=method,
        value=value,
        sample=replace(error, row_ids=seen.single_ids),
        log_scale=True,
        lower_limit=0.0,
        upper_limit=math.log(rows.shape[1]),
        higher_is_better=True,
        warnings=warnings,
        assumptions=assumptions,
        details=details,
    )


def _half_values(rows: NDArray[Any], design: Design) -> list[float] | None:
    """Log IS to second order of both halves of the units of a design; None of too few units."""
    half = design.halves(np.random.default_rng(HALVING_SEED))
    if half is None:
        return None
    values = []
    for index in design.rows_of_halves(half):
        part = design.restricted(index)
        form = InceptionForm(rows, index, weights=part.weights)
        error, _ = expand(form, part, bias_only=True)  # before the value: it looks at every row
        values.append(form.plugin() - error.bias)
    return values
