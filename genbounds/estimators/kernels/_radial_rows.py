"""Kernels of distances, whose unit is a bandwidth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import by_rows
from genbounds.estimators.kernels._kernel_rows import KernelRows, ProductRows
from genbounds.estimators.kernels._pair_kernels import CANCELLED, REACH, mend_cancelled
from genbounds.estimators.kernels._parameters import check_bandwidth, median_bandwidth
from genbounds.validation import Float, InputError

FAR = 1e3
"""Bandwidths from the mean beyond which rows are centred at their medians, in float64."""

CENTRE_ROWS = 1000
"""Rows, about, whose medians are the centre then."""


class _ScaledRows(KernelRows):
    """Rows divided by a bandwidth."""

    def __init__(self, rows: NDArray[Any], bandwidth: float | None) -> None:
        super().__init__(rows)
        if bandwidth is None:
            bandwidth = median_bandwidth(rows, kernel=self.name)
            self.chosen_by_median = True
        self.bandwidth = bandwidth = check_bandwidth(bandwidth)
        # Distances do not see the mean, but rounding does.
        with np.errstate(over="ignore", invalid="ignore"):
            mean = rows.mean(axis=0, dtype=np.float64)
        self.rows, largest = _scaled(rows, mean, bandwidth, rows.dtype)
        if not largest < FAR:  # a few rows must not draw the centre away from all others
            some = rows[:: max(1, len(rows) // CENTRE_ROWS)].astype(np.float64)
            self.dtype = np.dtype(np.float64)
            self.rows, largest = _scaled(rows, np.median(some, axis=0), bandwidth, self.dtype)
        if not largest < math.sqrt(np.finfo(self.dtype).max) / self.width:
            raise InputError(
                f"is {bandwidth:.3g}, so far below the size of the features that squared distances "
                "leave the range of floating-point numbers: give a larger one.",
                argument="bandwidth",
            )
        self.label = f"{self.name}, bandwidth {bandwidth:.10g}"


def _scaled(
    rows: NDArray[Any], centre: Float, bandwidth: float, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], float]:
    """Return centred rows in units of the bandwidth, and the largest entry of them."""
    origin, unit = centre.astype(dtype), dtype.type(bandwidth)

    def scaled(part: slice) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            out: NDArray[Any] = rows[part] - origin
            out /= unit
        return out

    out = by_rows(rows, scaled, dtype)
    return out, max(float(out.max()), -float(out.min()))


class LaplaceRows(_ScaledRows):
    """exp(-‖x-y‖₁/σ)."""

    name = "laplace"

    def block(self, one: slice, two: slice) -> NDArray[Any]:
        """From L1 distances."""
        from scipy.spatial.distance import cdist

        a, b = self.rows[one], self.rows[two]
        out: NDArray[Any] = np.exp(-cdist(a, b, "cityblock")).astype(a.dtype, copy=False)
        return out

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """In float64."""
        a, b = self.rows[i].astype(np.float64), self.rows[j].astype(np.float64)
        return np.asarray(np.exp(-np.abs(a - b).sum(axis=1)))


class RbfRows(_ScaledRows, ProductRows):
    """exp(-‖x-y‖²/(2σ²))."""

    name = "rbf"
    per_row = ("rows", "_half_squares")

    def __init__(self, rows: NDArray[Any], bandwidth: float | None) -> None:
        super().__init__(rows, bandwidth)
        self._half_squares = np.einsum("ij,ij->i", self.rows, self.rows) / 2

    def _of_products(self, out: NDArray[Any], one: slice, two: slice) -> None:
        out -= self._half_squares[one, None]
        out -= self._half_squares[None, two]
        np.minimum(out, 0, out=out)
        halves = self._half_squares[one], self._half_squares[two]
        mend_cancelled(
            out,
            self.rows[one],
            self.rows[two],
            halves,
            allowed=CANCELLED,
            relative=0.0,
            reach=REACH,
        )
        np.exp(out, out=out)

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """In float64, from differences."""
        gap = self.rows[i].astype(np.float64)
        gap -= self.rows[j].astype(np.float64)
        return np.asarray(np.exp(-0.5 * np.einsum("ij,ij->i", gap, gap)))
