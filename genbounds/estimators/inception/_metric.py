"""The Inception score as a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.inception._estimate import ESTIMATORS, inception_estimate
from genbounds.estimators.inception._running import RunningInception


def _prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    return Prepared(estimate=inception_estimate, follow=RunningInception, samples_per_dimension=5)


IS = MetricSpec(
    name="is",
    title="Inception score",
    summary="Inception score: confidence and variety of class probabilities",
    prepare=_prepare,
    higher_is_better=True,
    data="posteriors",
    reference="none",
    estimators=ESTIMATORS,
)
