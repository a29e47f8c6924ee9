"""Kernel distances as metrics: KID, CMMD, KAD and the energy distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec, Prepare, Prepared
from genbounds.estimators.kernels._reference import KernelReference
from genbounds.estimators.kernels._rke import MINIMUM
from genbounds.estimators.kernels._running import RunningKid


def _with(kernel: str) -> Prepare:
    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        prepared = KernelReference(reference, kernel=kernel, **options)
        return Prepared(
            estimate=prepared.estimate,
            follow=lambda columns: RunningKid(prepared),
            columns=prepared.d,
            minimum=MINIMUM,
            sampled_reference=True,
        )

    return prepare


KID = MetricSpec(
    name="kid",
    title="Kernel Inception distance",
    summary="kernel Inception distance: squared MMD, polynomial kernel, all pairs",
    prepare=_with("polynomial"),
    options=("degree", "gamma", "offset"),
)

CMMD = MetricSpec(
    name="cmmd",
    title="CMMD",
    summary="squared MMD of rows of length one, RBF kernel of bandwidth 10, × 1000",
    prepare=_with("cmmd"),
    options=("bandwidth",),
)

KAD = MetricSpec(
    name="kad",
    title="Kernel audio distance",
    summary="kernel audio distance: squared MMD, RBF kernel of median width, × 100",
    prepare=_with("kad"),
    options=("bandwidth",),
)

ENERGY = MetricSpec(
    name="energy",
    title="Energy distance",
    summary="energy distance: squared MMD with the kernel -‖x-y‖, no parameters",
    unit="feature units",
    prepare=_with("energy"),
)
