"""Cosine distances of rows to their nearest rows of another sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators.kernels import unit_rows
from genbounds.validation import Float, InputError

BLOCK_ROWS = 2048


def cosine_distances(x: NDArray[Any], y: NDArray[Any]) -> Float:
    """Smallest 1 - |cos(x, y)| of each row of `x` to a row of `y`.

    Parameters
    ----------
    x, y : ndarray of shapes (n, d) and (m, d)
        Without zero rows.
    """
    largest, nearest = np.full(len(x), -1.0), np.zeros(len(x), dtype=np.intp)
    for first in range(0, len(y), BLOCK_ROWS):
        directions = unit_rows(y[first : first + BLOCK_ROWS]).T
        for start in range(0, len(x), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            cosines = np.abs(unit_rows(x[rows]) @ directions)
            at = cosines.argmax(axis=1)
            best = cosines[np.arange(at.size), at]
            better = best > largest[rows]
            largest[rows][better] = best[better]
            nearest[rows][better] = first + at[better]
    found = np.empty(len(x))
    for start in range(0, len(x), BLOCK_ROWS):  # of directions, whose products lose digits
        rows = slice(start, start + BLOCK_ROWS)
        one, two = unit_rows(x[rows]), unit_rows(y[nearest[rows]])
        one *= np.where(np.einsum("ij,ij->i", one, two) < 0.0, -1.0, 1.0)[:, None]
        gap = one - two
        found[rows] = np.einsum("ij,ij->i", gap, gap) / 2.0
    return found


def check_directions(name: str, rows: NDArray[Any]) -> None:
    """Refuse zero rows."""
    for start in range(0, len(rows), BLOCK_ROWS):
        zero = ~rows[start : start + BLOCK_ROWS].any(axis=1)
        if zero.any():
            raise InputError(
                f"has zeros only in row {start + int(zero.argmax())}: it has no direction, and no "
                "cosine distance. Leave such rows out.",
                argument=name,
            )
