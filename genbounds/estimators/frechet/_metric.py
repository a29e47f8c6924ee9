"""The Fréchet distance as a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.frechet._distance import ESTIMATORS, FrechetReference
from genbounds.estimators.frechet._running import RunningFrechet


def _prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
    prepared = FrechetReference(reference)
    return Prepared(
        estimate=prepared.estimate,
        plugin=prepared.plugin,
        follow=lambda columns: RunningFrechet(prepared),
        columns=prepared.d,
        # The noise of a sampled reference cancels row by row from four rows per feature on.
        samples_per_dimension=2 if prepared.n is None else 4,
        few_samples_per_dimension=0.5 if prepared.serves_few_samples else None,
        reference=prepared,
        sampled_reference=prepared.n is not None,
    )


FD = MetricSpec(
    name="fd",
    title="Fréchet distance",
    summary="Fréchet distance of means and covariances (FID); `fid` is the same",
    unit="squared feature units",
    prepare=_prepare,
    moments=True,
    estimators=ESTIMATORS,
    aliases=("fid",),
)

SFID = replace(
    FD,
    name="sfid",
    title="Fréchet distance of spatial features",
    summary="The same of spatial features; of files of statistics `mu_s` and `sigma_s`",
    statistics=("mu_s", "sigma_s"),
    aliases=(),
)
