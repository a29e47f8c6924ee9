"""Kernel distances as metrics: KID, CMMD, KAD and the energy distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.kernels._reference import KernelReference
from genbounds.estimators.kernels._rke import MINIMUM
from genbounds.estimators.kernels._running import RunningKid


def _metric(name: str, kernel: str, takes: tuple[str, ...] = (), **words: Any) -> MetricSpec:
    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = KernelReference(reference, kernel=kernel, **options)
        return Prepared(
            estimate=prepared.estimate,
            follow=lambda columns: RunningKid(prepared),
            columns=prepared.d,
            minimum=MINIMUM,
            sampled_reference=True,
        )

    return MetricSpec(name=name, prepare=prepare, options=takes, **words)


KID = _metric(
    "kid",
    "polynomial",
    ("degree", "gamma", "offset"),
    title="Kernel Inception distance",
    summary="kernel Inception distance: squared MMD, polynomial kernel, all pairs",
)

CMMD = _metric(
    "cmmd",
    "cmmd",
    ("bandwidth",),
    title="CMMD",
    summary="squared MMD of rows of length one, RBF kernel of bandwidth 10, × 1000",
)

KAD = _metric(
    "kad",
    "kad",
    ("bandwidth",),
    title="Kernel audio distance",
    summary="kernel audio distance: squared MMD, RBF kernel of median width, × 100",
)

ENERGY = _metric(
    "energy",
    "energy",
    title="Energy distance",
    summary="energy distance: squared MMD with the kernel -‖x-y‖, no parameters",
    unit="feature units",
)
