"""The metric of a run: any registered one, or one of your own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genbounds.estimators import Prepared, metric_spec

MINIMUM_LOOK = 100
"""No arm is scored on fewer rows."""


def resolve_metric(
    metric: Any, reference: Any, options: Mapping[str, Any] | None = None
) -> Prepared:
    """Prepare the metric of that name, a `CustomMetric` or a callable ``metric(rows)``."""
    return metric_spec(metric).prepared(reference, options)


def first_look(metric: Prepared, columns: int) -> int:
    """Fewest rows, of so many `columns`, whose estimate a critical value is meant for."""
    return max(MINIMUM_LOOK, metric.samples_per_dimension * columns, 2 * metric.minimum)
