"""What a formula needs besides arithmetic, for floats and for exact numbers alike.

An array of objects holds fractions, which stay fractions as long as they can, and numbers of
mpmath, of as many digits as its context has. Matrices of exact numbers come one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np


def is_exact(x: Any) -> bool:
    """Whether an array holds exact numbers."""
    return np.asarray(x).dtype == object


def _mp() -> Any:
    """Return the numbers of mpmath, which is there where exact ones are asked for."""
    from mpmath import mp

    return mp


def real(value: Any) -> Any:
    """Turn a fraction into a number of mpmath."""
    if isinstance(value, Fraction):
        return _mp().mpf(value.numerator) / value.denominator
    return _mp().mpf(value)


def _each(function: Callable[..., Any], *arrays: Any) -> Any:
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)


def reals(x: Any) -> Any:
    """Turn fractions into numbers that irrational ones can be compared with."""
    return _each(real, x) if is_exact(x) else x


def log(x: Any) -> Any:
    return _each(lambda value: _mp().log(real(value)), x) if is_exact(x) else np.log(x)


def root(x: Any) -> Any:
    return _each(lambda value: _mp().sqrt(real(value)), x) if is_exact(x) else np.sqrt(x)


def power(x: Any, exponent: Any) -> Any:
    """Return x^exponent; a fraction to a whole power is one."""

    def exact(base: Any, order: Any) -> Any:
        whole = int(order)
        return base**whole if order == whole else real(base) ** real(order)

    return _each(exact, x, exponent) if is_exact(x) or is_exact(exponent) else x**exponent


def entr(x: Any) -> Any:
    """−x log x, and 0 at 0."""
    from scipy import special

    if is_exact(x):
        return _each(lambda value: -value * log(value) if value else 0, x)
    return special.entr(x)


def share(flags: Any, exact: bool) -> Any:
    """Return how large a part of the last axis is true."""
    if not exact:
        return flags.mean(axis=-1)
    return _each(lambda count: Fraction(count, flags.shape[-1]), flags.sum(axis=-1))


def norm(x: Any, axis: int | tuple[int, int] = -1) -> Any:
    """Root of the sum of squares over the last axis, or two."""
    if is_exact(x):
        return root(np.asarray(np.square(x).sum(axis=axis), dtype=object))
    return np.linalg.norm(x, axis=axis)


def _matrix(rows: Any) -> Any:
    return _mp().matrix(_each(real, rows).tolist())


def singular_values(matrices: Any) -> Any:
    if not is_exact(matrices):
        return np.linalg.svd(matrices, compute_uv=False)
    tall = matrices if matrices.shape[0] >= matrices.shape[1] else matrices.T
    return np.array(list(_mp().svd_r(_matrix(tall), compute_uv=False)), dtype=object)


def eigenvalues(matrices: Any) -> Any:
    """Eigenvalues of symmetric matrices, smallest first."""
    if not is_exact(matrices):
        return np.linalg.eigvalsh(matrices)
    if matrices.shape == (1, 1):
        return matrices[0]
    return np.array(sorted(_mp().eigsy(_matrix(matrices), eigvals_only=True)), dtype=object)


def operator_norm(matrices: Any) -> Any:
    """Largest absolute eigenvalue of each symmetric matrix, over the last two axes."""
    if matrices.shape[-1] == 1:
        return np.abs(matrices[..., 0, 0])
    return np.abs(eigenvalues(matrices)).max(axis=-1)


def whitened(larger: Any, smaller: Any) -> Any:
    """Rᵀ A⁻¹ R with R Rᵀ the smaller matrix and A the larger."""
    if not is_exact(larger):
        triangle = np.linalg.cholesky(smaller)
        return np.swapaxes(triangle, -1, -2) @ np.linalg.solve(larger, triangle)
    triangle = _mp().cholesky(_matrix(smaller))
    inner = triangle.T * _mp().inverse(_matrix(larger)) * triangle
    return np.array(((inner + inner.T) / 2).tolist(), dtype=object)
