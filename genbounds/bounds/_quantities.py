"""The errors that statements bound. Parameter names are the vocabulary that arms fill.

Sample quantities carry the replications on their leading axis; true quantities have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._bound import Quantity
from genbounds.validation import Float


def _mean_error(sample_mean: Float, mean: float) -> Float:
    return np.abs(sample_mean - mean)


def _mean_shortfall(sample_mean: Float, mean: float) -> Float:
    return mean - sample_mean


def _unit_range(mean: float) -> float:
    return mean


def _square_error(mean_square: Float) -> Float:
    return np.abs(mean_square - 1.0)


def _squared_mean(sample_mean: Float) -> Float:
    return np.square(sample_mean)


def _mean_product(sample_mean: Float, second_mean: Float) -> Float:
    return np.abs(sample_mean * second_mean)


def _squared_norm_error(mean_squared_norm: Float, trace: float) -> Float:
    return np.abs(mean_squared_norm - trace)


def _mean_norm(mean_error_norm: Float) -> Float:
    return mean_error_norm


def _mean_norm_squared(mean_error_norm: Float) -> Float:
    return np.square(mean_error_norm)


def _norm_range(radius: float) -> float:
    return 2.0 * radius


def operator_norm(matrices: Float) -> Any:
    """Largest absolute eigenvalue of each symmetric matrix, over the last two axes."""
    if matrices.shape[-1] == 1:
        return np.abs(matrices[..., 0, 0])
    return np.abs(np.linalg.eigvalsh(matrices)).max(axis=-1)


def dense(cov: Float) -> Float:
    """Matrix of a covariance that may be given by its diagonal."""
    return np.diag(cov) if cov.ndim == 1 else cov


def _covariance_error(covariance: Float, cov: Float) -> Float:
    return np.asarray(operator_norm(covariance - dense(cov)))


def _raw_covariance_error(raw_covariance: Float, cov: Float) -> Float:
    return np.asarray(operator_norm(raw_covariance - dense(cov)))


def _quantity(name: str, text: str, function: Any) -> Quantity:
    return Quantity(name=name, text=text, function=function)


MEAN_ERROR = _quantity("mean-error", "|X̄ − μ|", _mean_error)
MEAN_SHORTFALL = _quantity("mean-shortfall", "E Z − Z̄", _mean_shortfall)
UNIT_RANGE = _quantity("unit-range", "E Z", _unit_range)
SQUARE_ERROR = _quantity("square-error", "|n⁻¹ Σ Z_i² − 1|", _square_error)
SQUARED_MEAN = _quantity("squared-mean", "(n⁻¹ Σ z_i)²", _squared_mean)
MEAN_PRODUCT = _quantity("mean-product", "|z̄ ū|", _mean_product)
SQUARED_NORM_ERROR = _quantity("squared-norm-error", "|n⁻¹ Σ ‖X_i‖² − Tr Σ|", _squared_norm_error)
MEAN_NORM = _quantity("mean-norm", "‖μ̂ − μ‖", _mean_norm)
MEAN_NORM_SQUARED = _quantity("mean-norm-squared", "‖μ̂ − μ‖²", _mean_norm_squared)
NORM_RANGE = _quantity("norm-range", "2C", _norm_range)
COVARIANCE_ERROR = _quantity("covariance-error", "‖Σ̂ − Σ‖", _covariance_error)
RAW_COVARIANCE_ERROR = _quantity(
    "raw-covariance-error", "‖n⁻¹ Σ X_i X_iᵀ − Σ‖", _raw_covariance_error
)
