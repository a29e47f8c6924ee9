"""Sample covariances: errors, kinds of statements about them, widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import CENTRED, GAUSSIAN, effective_rank_samples
from genbounds.bounds._bound import Composed, Constants, Part, kind, quantity
from genbounds.bounds._means import laurent_massart_mean_norm, mean_norm_squared
from genbounds.bounds._numbers import eigenvalues
from genbounds.validation import Float


def operator_norm(matrices: Float) -> Any:
    """Largest absolute eigenvalue of each symmetric matrix, over the last two axes."""
    if matrices.shape[-1] == 1:
        return np.abs(matrices[..., 0, 0])
    return np.abs(eigenvalues(matrices)).max(axis=-1)


def dense(cov: Float) -> Float:
    """Matrix of a covariance that may be given by its diagonal."""
    return np.diag(cov) if cov.ndim == 1 else cov


def _covariance_error(covariance: Float, cov: Float) -> Float:
    return np.asarray(operator_norm(covariance - dense(cov)))


def _raw_covariance_error(raw_covariance: Float, cov: Float) -> Float:
    return np.asarray(operator_norm(raw_covariance - dense(cov)))


COVARIANCE_ERROR = quantity("covariance-error", "‖Σ̂ − Σ‖", _covariance_error)
RAW_ERROR = quantity("raw-covariance-error", "‖n⁻¹ Σ X_i X_iᵀ − Σ‖", _raw_covariance_error)

COVARIANCE = kind("gaussian-matrices", COVARIANCE_ERROR, GAUSSIAN)
BY_RANK = kind("gaussian-matrices", COVARIANCE_ERROR, GAUSSIAN, effective_rank_samples(3.0))
RAW = kind("gaussian-matrices", RAW_ERROR, GAUSSIAN, CENTRED)
RAW_BY_RANK = kind("gaussian-matrices", RAW_ERROR, GAUSSIAN, CENTRED, effective_rank_samples(1.0))


def dimension(c: Constants, n: Any, delta: Any, d: Any, operator: Any) -> Any:
    """‖Σ‖ (2√(d/n) + 2ε + (√(d/n) + ε)²), ε = √(tail log(union/δ)/n)."""
    epsilon = np.sqrt(c["tail"] * np.log(c["union"] / delta) / n)
    edge = np.sqrt(d / n) + epsilon
    return operator * (2.0 * edge + edge**2)


def squared_error(c: Constants, mean_error_norm: Any) -> Any:
    """‖μ̂−μ‖²."""
    return np.square(mean_error_norm)


def _rank(c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any) -> Any:
    log = np.log(c["union"] / delta)
    return c["lead"] * operator * np.sqrt((c["rank"] * effective_rank + log) / n)


def effective_rank_variance(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any, max_variance: Any
) -> Any:
    """``lead σ²‖Σ‖ √((rank r(Σ) + log(union/δ))/n)`` with σ² = max_i Σ_ii."""
    return max_variance * _rank(c, n, delta, operator, effective_rank)


def effective_rank_psi(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any, kappa: Any
) -> Any:
    """``lead κ²‖Σ‖ √((rank r(Σ) + log(union/δ))/n)`` with the ψ₂ constant κ."""
    return kappa**2 * _rank(c, n, delta, operator, effective_rank)


def _largest_variance(c: Constants, operator: Any) -> Any:
    """σ² = ‖Σ‖ of a Gaussian."""
    return operator


def _gaussian_kappa(c: Constants) -> Any:
    """κ of a Gaussian, κ² = 8/3."""
    return c["kappa_squared"] ** 0.5


def gordon(c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any) -> Any:
    """‖Σ‖ (2η + η²), η = (√r(Σ) + offset + √(tail log(union/δ))) / √n."""
    eta = np.sqrt(effective_rank) + c["offset"] + np.sqrt(c["tail"] * np.log(c["union"] / delta))
    eta = eta / np.sqrt(n)
    return operator * (2.0 * eta + eta**2)


effective_rank_operator = Composed(effective_rank_variance, max_variance=_largest_variance)
effective_rank_gaussian = Composed(effective_rank_psi, kappa=_gaussian_kappa)

# Of Σ̂: what bounds ‖n⁻¹Σ(x−μ)(x−μ)ᵀ − Σ‖, and ‖μ̂−μ‖² or its bound.
naive_covariance = Composed(squared_error, dimension)
centred_variance = Composed(effective_rank_variance, squared_error)
centred_psi = Composed(effective_rank_psi, Part("mean", mean_norm_squared))
centred_covariance = Composed(
    effective_rank_gaussian, Part("mean", laurent_massart_mean_norm, "union")
)
