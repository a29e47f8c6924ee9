"""A `SmoothScore` as a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.smooth._rows import MINIMUM
from genbounds.estimators.smooth._score import SmoothReference, SmoothScore


def smooth_spec(score: SmoothScore) -> MetricSpec:
    """Describe a `SmoothScore` as every other metric is."""

    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = SmoothReference(score, reference)
        return Prepared(
            estimate=prepared.estimate,
            columns=prepared.d,
            minimum=MINIMUM,
            sampled_reference=score.needs_reference,
        )

    return MetricSpec(
        name=score.name,
        title=score.name,
        prepare=prepare,
        higher_is_better=score.higher_is_better,
        reference="required" if score.needs_reference else "none",
    )
