"""Rows about a reference and in its unit, so that distances of double precision lose no digits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from genbounds.estimators.neighbours._pairs import Rows
from genbounds.validation import Float

FAR = 100.0
"""Distance from the origin, in standard deviations, from which rows are centred first."""

BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What to subtract from rows, and what to divide them by.

    Products of matrices lose digits far from the origin, squares of numbers of extreme size all of
    them. Single precision is multiplied out in double precision and has no digits to lose.

    Attributes
    ----------
    shift : ndarray of shape (d,) or None
        The mean, if it is far off.
    unit : float
        A power of two; 1 for features of an ordinary size.
    """

    shift: Float | None
    unit: float

    @classmethod
    def of(cls, rows: Rows) -> Frame:
        """Look where rows lie and how large they are."""
        largest = max(
            float(np.abs(rows[start : start + BLOCK_ROWS]).max())
            for start in range(0, len(rows), BLOCK_ROWS)
        )
        exponent = math.frexp(largest)[1] if largest > 0.0 else 0
        unit = math.ldexp(1.0, exponent) if abs(exponent) > 30 else 1.0
        if rows.dtype.itemsize <= 4:
            return cls(None, unit)
        few = np.asarray(rows[:: max(1, len(rows) // BLOCK_ROWS)], dtype=np.float64) / unit
        centre = few.mean(axis=0)
        spread = float(few.var(axis=0).sum())
        far = float(centre @ centre) > FAR**2 * spread
        return cls(centre * unit if far else None, unit)

    def rows(self, rows: Rows) -> Rows:
        """Rows about the reference and in its unit, where double precision asks for it."""
        kind = np.float64 if rows.dtype.itemsize > 4 else np.float32
        if self.shift is None and self.unit == 1.0:
            return np.asarray(rows, dtype=kind)
        out = np.array(rows, dtype=np.float64)
        if self.shift is not None:
            out -= self.shift
        out /= self.unit
        return out
