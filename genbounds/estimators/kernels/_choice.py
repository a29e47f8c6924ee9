"""The kernel that a name stands for, fitted to reference rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.moments import row_blocks
from genbounds.core.scale import unit_of
from genbounds.estimators.kernels._pair_kernels import (
    Energy,
    PairKernel,
    Polynomial,
    Radial,
    unit_rows,
)
from genbounds.estimators.kernels._parameters import (
    PolynomialKernel,
    check_bandwidth,
    median_bandwidth,
)
from genbounds.validation import Float, InputError, check_choice

KERNELS = ("polynomial", "rbf", "cmmd", "kad", "energy")

TITLES = {"rbf": "squared MMD, RBF kernel", "cmmd": "CMMD", "kad": "kernel audio distance"}

FACTORS = {"rbf": 1.0, "cmmd": 1000.0, "kad": 100.0}
"""By which the published scores are multiplied."""

CMMD_BANDWIDTH = 10.0

DECADES_APART = 60
"""Decades between features and bandwidth beyond which powers of their ratio leave float64."""


def pair_kernel(kernel: Any, bandwidth: Any, rows: NDArray[Any], *, largest: float) -> PairKernel:
    """Return the kernel that is meant.

    Parameters
    ----------
    kernel : str or PolynomialKernel
    bandwidth : float, sequence of float or None
    rows : ndarray of shape (m, d)
        Of the reference, checked.
    largest : float
        Largest length of a row.
    """
    if isinstance(kernel, PolynomialKernel):
        name = "polynomial"
    else:
        name, kernel = check_choice("kernel", kernel, KERNELS), PolynomialKernel()
    if bandwidth is not None and name in ("polynomial", "energy"):
        raise InputError(
            f"is for the kernels 'rbf', 'cmmd' and 'kad'; {name!r} has none.",
            argument="bandwidth",
        )
    if name == "polynomial":
        return Polynomial(kernel.degree, kernel.gamma or 1.0 / rows.shape[1], kernel.offset)
    if name == "energy":
        return Energy(_mean(rows, directions=False))
    return _radial(name, bandwidth, rows, largest)


def _radial(name: str, bandwidth: Any, rows: NDArray[Any], largest: float) -> Radial:
    directions = name == "cmmd"
    assumptions: tuple[str, ...] = ()
    if bandwidth is None and directions:
        bandwidth = CMMD_BANDWIDTH
    elif bandwidth is None:
        unit = unit_of(largest, decades=100.0)  # squares of distances stay in range
        bandwidth = median_bandwidth(rows / unit if unit != 1.0 else rows) * unit
        assumptions = (
            f"the bandwidth, {bandwidth:.6g} by the median heuristic on the reference, is fixed",
        )
    bandwidths = _check_bandwidths(bandwidth)
    size = 1.0 if directions else largest
    far = [b for b in bandwidths if size and abs(math.log10(size / b)) > DECADES_APART]
    if far:
        raise InputError(
            f"is {far[0]:.3g}, too far from the size of the features, {size:.1g}: give one of the "
            "order of their distances.",
            argument="bandwidth",
        )
    centre = _mean(rows, directions=directions)
    spread = _spread(rows, centre, bandwidths[0], directions=directions)
    near_one = tuple(spread * (bandwidths[0] / b) ** 2 <= 1.0 for b in bandwidths)
    values = ", ".join(f"{b:.10g}" for b in bandwidths)
    of_what = " of rows of length one" if directions else ""
    label = f"RBF kernel{of_what}, bandwidth{'s' * (len(bandwidths) > 1)} {values}"
    factor = FACTORS[name]
    return Radial(
        title=TITLES[name],
        label=label if factor == 1.0 else f"{label}, times {factor:g}",
        bandwidths=bandwidths,
        near_one=near_one,
        centre=centre,
        factor=factor,
        directions=directions,
        assumptions=assumptions,
    )


def _check_bandwidths(bandwidth: Any) -> tuple[float, ...]:
    several = isinstance(bandwidth, (Sequence, np.ndarray)) and not isinstance(bandwidth, str)
    found = tuple(check_bandwidth(one) for one in (bandwidth if several else [bandwidth]))
    if not found:
        raise InputError("is empty: give one bandwidth or several.", argument="bandwidth")
    return found


def _mean(rows: NDArray[Any], *, directions: bool) -> Float:
    """Mean of the rows, or of their directions, without overflow."""
    total = np.zeros(rows.shape[1])
    for _, block in row_blocks(rows):
        total += (unit_rows(block) if directions else block).mean(axis=0) * (len(block) / len(rows))
    return total


def _spread(rows: NDArray[Any], centre: Float, unit: float, *, directions: bool) -> float:
    """Mean squared distance from the centre, half of that of two rows, in units of `unit`."""
    total = 0.0
    for _, block in row_blocks(rows):
        gap = ((unit_rows(block) if directions else block) - centre) / unit
        total += float(np.einsum("ij,ij->", gap, gap))
    return total / len(rows)
