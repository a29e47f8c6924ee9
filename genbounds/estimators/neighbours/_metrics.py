"""Precision, recall, density, coverage and the F-score as metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from genbounds.core.estimate import Estimate
from genbounds.estimators._metric_spec import MetricSpec, Prepare, Prepared
from genbounds.estimators.neighbours._precision_recall import neighbour_estimates
from genbounds.estimators.neighbours._reference import NeighbourReference
from genbounds.estimators.neighbours._result import TITLES
from genbounds.validation import check_choice

SUMMARIES = {
    "precision": "share of generated rows in a neighbourhood of a real one",
    "recall": "share of real rows in a neighbourhood of a generated one",
    "density": "generated rows per neighbourhood of a real one, over k",
    "coverage": "share of neighbourhoods of real rows that hold a generated one",
    "f_score": "harmonic mean of precision and recall",
}


def _prepare(name: str) -> Prepare:
    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = NeighbourReference(reference, **options)

        def estimate(x: Any, *, estimator: str = "debiased") -> Estimate:
            check_choice("estimator", estimator, ("debiased", "plugin"))
            return replace(neighbour_estimates(prepared, x)[name], estimator=estimator)

        return Prepared(
            estimate=estimate,
            columns=prepared.d,
            minimum=prepared.minimum,
            sampled_reference=True,
        )

    return prepare


METRICS = tuple(
    MetricSpec(
        name=name,
        title=TITLES[name],
        summary=summary,
        prepare=_prepare(name),
        higher_is_better=True,
        options=("k", "splits", "seed"),
        fixed_size=True,
    )
    for name, summary in SUMMARIES.items()
)
