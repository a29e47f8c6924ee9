"""Products of large matrices, a block at a time: triangles, few rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float

EPS = float(np.finfo(np.float64).eps)

PANEL = 256
"""Columns that are worked on at a time where only a triangle is needed."""

FEW = 48
"""The same where few rows are multiplied: small products do not copy the matrix first."""


@lru_cache(maxsize=8)
def _above(d: int) -> NDArray[np.bool_]:
    """Mask of the entries above the diagonal."""
    return ~np.tri(d, dtype=bool)


def mirror_lower(matrix: Float) -> Float:
    """Copy the lower triangle onto the upper one, in place."""
    d = matrix.shape[0]
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        square = matrix[start:stop, start:stop]
        np.copyto(square, square.T.copy(), where=_above(stop - start))
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
    return matrix


def symmetric_part(matrix: Float) -> tuple[Float, float]:
    """Return ``(A + A.T) / 2``, a new array, and the largest entry of ``|A - A.T|``."""
    d = matrix.shape[0]
    part = np.empty_like(matrix, order="C")
    gap = 0.0
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        rows, columns = matrix[start:stop, start:], matrix[start:, start:stop].T
        gap = max(gap, float(np.abs(rows - columns).max()))
        np.add(rows, columns, out=part[start:stop, start:])
        part[start:stop, start:] *= 0.5
        part[stop:, start:stop] = part[start:stop, stop:].T
    return part, gap


def congruence(cov: Float, lower: Float, *, triangular: bool) -> Float:
    """Return ``L.T @ cov @ L``, a new array, of which only the lower triangle is to be read.

    Of a lower triangular L in d³ flops where plain products take 4 d³.
    """
    product: Float
    if triangular:
        product, _ = scipy.linalg.lapack.dsygst(cov.T, lower, itype=2, lower=1)
    else:
        product = lower.T @ (cov @ lower)
    return product


def few_times(rows: Float, matrix: Float, *, lower: bool = False) -> Float:
    """Return ``B @ A`` for few rows B and a matrix A in Fortran's order; `lower`: a triangular one.

    Few rows times a large matrix take as long as it takes to read it: a triangular one by half.
    """
    columns = np.ascontiguousarray(rows.T)
    product = np.empty((matrix.shape[1], rows.shape[0]))
    for start in range(0, matrix.shape[1], FEW):
        stop, first = start + FEW, start if lower else 0
        np.matmul(matrix[first:, start:stop].T, columns[first:], out=product[start:stop])
    return np.ascontiguousarray(product.T)


def singular_values(matrix: Float) -> Float:
    """Singular values, largest first."""
    if 0 in matrix.shape:
        return np.zeros(0)
    values: Float = scipy.linalg.svdvals(matrix, check_finite=False)
    return values
