"""Square roots of covariances and the trace of a geometric mean, accurate for singular input."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float, InputError

EPS = float(np.finfo(np.float64).eps)

INDEFINITE_RTOL = 1e-6
"""A covariance whose smallest eigenvalue is below minus this times the largest is refused."""

ROOT_RTOL = 1e-10
"""Accepted relative rounding error of a sum of square roots of eigenvalues."""

PANEL = 256
"""Columns that are worked on at a time where only a triangle is needed."""

FEW = 48
"""The same where few rows are multiplied: small products do not copy the matrix first."""


def is_lower(matrix: Float) -> bool:
    """Whether a matrix is square, zero above its diagonal and not on it, as Cholesky leaves it."""
    d = matrix.shape[0]
    if matrix.shape != (d, d) or not np.diagonal(matrix).all():
        return False
    return not any(
        matrix[:start, start : start + PANEL].any()
        or matrix[start : start + PANEL, start : start + PANEL][_above(min(PANEL, d - start))].any()
        for start in range(0, d, PANEL)
    )


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


def congruence(cov: Float, lower: Float) -> Float:
    """Return ``L.T @ cov @ L``, a new array, of which only the lower triangle is to be read.

    Of a triangular L in d³ flops where plain products take 4 d³.
    """
    product: Float
    if is_lower(lower):
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


def factor(cov: Float, lower: Float | None, *, name: str) -> Float:
    """Return A of shape (d, r) with ``cov = A @ A.T``, r the numerical rank.

    `lower`, its Cholesky factor if it has one, where the matrix is safely positive definite (an
    order of magnitude cheaper), eigenvectors otherwise. `name`: of the argument that it came in.

    Raises
    ------
    InputError
        If `cov` has an eigenvalue that is negative beyond rounding.
    """
    d = cov.shape[0]
    if lower is not None:
        diagonal = np.diagonal(lower)
        if diagonal.min() ** 2 > 100 * d * EPS * diagonal.max() ** 2:
            return lower
    values, vectors = scipy.linalg.eigh(cov, check_finite=False)
    largest = values[-1]
    if values[0] < -INDEFINITE_RTOL * abs(largest):
        raise InputError(
            f"has a covariance with eigenvalue {values[0]:.3g} (largest {largest:.3g}): "
            "it is not positive semidefinite. Was it computed in half precision, or truncated?",
            argument=name,
        )
    kept = values > d * EPS * largest
    root: Float = vectors[:, kept] * np.sqrt(values[kept])
    return root


def checked_roots(values: Float, *, rank: int) -> tuple[Float, bool]:
    """Take roots of the `rank` largest of the ascending eigenvalues `values`, and their accuracy.

    The flag tells whether rounding (about ``eps * largest`` on each eigenvalue, hence
    ``eps * largest / (2 root)`` on its root) is negligible in the sum of the roots; if not, take
    singular values of the factor instead.
    """
    values = values[::-1][:rank]
    roots: Float = np.sqrt(np.clip(values, 0.0, None))
    largest = max(float(values[0]), 0.0) if values.size else 0.0
    if largest == 0.0:
        return roots, True
    rounding = 4.0 * EPS * largest
    error = np.minimum(rounding / (2.0 * np.maximum(roots, EPS)), np.sqrt(rounding))
    return roots, bool(np.linalg.norm(error) <= ROOT_RTOL * roots.sum())


def singular_values(matrix: Float) -> Float:
    """Singular values, largest first."""
    if 0 in matrix.shape:
        return np.zeros(0)
    values: Float = scipy.linalg.svdvals(matrix, check_finite=False)
    return values
