"""Square roots of covariances and the trace of a geometric mean, accurate for singular input."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from genbounds.validation import Float, InputError

EPS = float(np.finfo(np.float64).eps)

INDEFINITE_RTOL = 1e-6
"""A covariance whose smallest eigenvalue is below minus this times the largest is refused."""

ROOT_RTOL = 1e-10
"""Accepted relative rounding error of a sum of square roots of eigenvalues."""


def factor(cov: Float) -> Float:
    """Return A of shape (d, r) with ``cov = A @ A.T``, r the numerical rank.

    Cholesky where the matrix is safely positive definite (an order of magnitude cheaper),
    eigenvectors otherwise.

    Raises
    ------
    InputError
        If `cov` has an eigenvalue that is negative beyond rounding.
    """
    d = cov.shape[0]
    try:
        lower: Float = linalg.cholesky(cov, lower=True, check_finite=False)
    except linalg.LinAlgError:
        pass
    else:
        diagonal = np.diagonal(lower)
        if diagonal.min() ** 2 > 100 * d * EPS * diagonal.max() ** 2:
            return lower
    values, vectors = linalg.eigh(cov, check_finite=False)
    largest = values[-1]
    if values[0] < -INDEFINITE_RTOL * abs(largest):
        raise InputError(
            f"a covariance has eigenvalue {values[0]:.3g} (largest {largest:.3g}): "
            "it is not positive semidefinite. Was it computed in half precision, or truncated?"
        )
    kept = values > d * EPS * largest
    root: Float = vectors[:, kept] * np.sqrt(values[kept])
    return root


def gram_roots(gram: Float, *, rank: int) -> tuple[Float, bool]:
    """Square roots of the `rank` largest eigenvalues of a symmetric PSD matrix, and their accuracy.

    The flag tells whether rounding (about ``eps * largest`` on each eigenvalue, hence
    ``eps * largest / (2 root)`` on its root) is negligible in the sum of the roots; if not, take
    singular values of the factor instead.
    """
    values = linalg.eigvalsh(gram, check_finite=False)[::-1][:rank]
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
    values: Float = linalg.svdvals(matrix, check_finite=False)
    return values
