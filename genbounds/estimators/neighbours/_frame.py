"""Rows about a reference and in its unit, so that distances of double precision lose no digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from genbounds.core.scale import unit_of
from genbounds.estimators.neighbours._pairs import Rows
from genbounds.validation import Float

FAR = 100.0
"""Distance from the origin, in standard deviations, from which rows are centred first."""

DECADES = 9.0
"""Powers of ten from 1 up to which features have an ordinary size."""

BLOCK_ROWS = 1024


def framing(reference: Rows) -> Callable[[Rows], Rows]:
    """Return what brings rows about a reference and into its unit, a power of two.

    Products of matrices lose digits far from the origin, squares of numbers of extreme size all of
    them. Single precision is multiplied out in double precision and has no digits to lose.
    """
    starts = range(0, len(reference), BLOCK_ROWS)
    largest = max(float(np.abs(reference[start : start + BLOCK_ROWS]).max()) for start in starts)
    unit = unit_of(largest, decades=DECADES)
    shift: Float | None = None
    if reference.dtype.itemsize > 4:
        few = np.asarray(reference[:: max(1, len(reference) // BLOCK_ROWS)], np.float64) / unit
        centre = few.mean(axis=0)
        if float(centre @ centre) > FAR**2 * float(few.var(axis=0).sum()):
            shift = centre * unit

    def framed(rows: Rows) -> Rows:
        kind = np.float64 if rows.dtype.itemsize > 4 else np.float32
        if shift is None and unit == 1.0:
            return np.asarray(rows, dtype=kind)
        out = np.array(rows, dtype=np.float64)
        if shift is not None:
            out -= shift
        out /= unit
        return out

    return framed
