"""Sample covariances: errors, kinds of statements about them, widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import CENTRED, GAUSSIAN, effective_rank_samples
from genbounds.bounds._bound import Constants, kind, quantity
from genbounds.bounds._means import laurent_massart_mean_norm, mean_norm_squared
from genbounds.validation import Float


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


def naive_covariance(
    c: Constants, n: Any, delta: Any, d: Any, operator: Any, mean_error_norm: Any
) -> Any:
    """‖μ̂−μ‖² + `dimension`."""
    return np.square(mean_error_norm) + dimension(c, n, delta, d, operator)


def _effective_rank(c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any) -> Any:
    log = np.log(c["union"] / delta)
    return c["lead"] * operator * np.sqrt((c["rank"] * effective_rank + log) / n)


def effective_rank_variance(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any, max_variance: Any
) -> Any:
    """``lead σ²‖Σ‖ √((rank r(Σ) + log(union/δ))/n)`` with σ² = max_i Σ_ii."""
    return max_variance * _effective_rank(c, n, delta, operator, effective_rank)


def effective_rank_psi(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any, kappa: Any
) -> Any:
    """``lead κ²‖Σ‖ √((rank r(Σ) + log(union/δ))/n)`` with the ψ₂ constant κ."""
    return kappa**2 * _effective_rank(c, n, delta, operator, effective_rank)


def effective_rank_operator(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any
) -> Any:
    """Evaluate lead ‖Σ‖² √((rank r + log(union/δ))/n): a Gaussian has σ² = ‖Σ‖."""
    return effective_rank_variance(c, n, delta, operator, effective_rank, operator)


def effective_rank_gaussian(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any
) -> Any:
    """``lead κ²‖Σ‖ √((rank r(Σ) + log(union/δ))/n)`` with κ² = 8/3, that of a Gaussian."""
    return effective_rank_psi(c, n, delta, operator, effective_rank, c["kappa_squared"] ** 0.5)


def centred_variance(
    c: Constants,
    n: Any,
    delta: Any,
    operator: Any,
    effective_rank: Any,
    max_variance: Any,
    mean_error_norm: Any,
) -> Any:
    """`effective_rank_variance` + ‖μ̂−μ‖²."""
    first = effective_rank_variance(c, n, delta, operator, effective_rank, max_variance)
    return first + np.square(mean_error_norm)


def centred_psi(
    c: Constants,
    n: Any,
    delta: Any,
    operator: Any,
    effective_rank: Any,
    kappa: Any,
    trace_square: Any,
) -> Any:
    """`effective_rank_psi` + (Δ_μ)², the printed Δ_Σ."""
    first = effective_rank_psi(c, n, delta, operator, effective_rank, kappa)
    return first + mean_norm_squared(c.part("mean"), n, delta, trace_square, operator)


def centred_covariance(
    c: Constants,
    n: Any,
    delta: Any,
    trace: Any,
    trace_square: Any,
    operator: Any,
    effective_rank: Any,
) -> Any:
    """`effective_rank_gaussian` + `laurent_massart_mean_norm`, which bounds ‖μ̂−μ‖²."""
    mean = c.part("mean", union=c["union"])
    first = effective_rank_gaussian(c, n, delta, operator, effective_rank)
    return first + laurent_massart_mean_norm(mean, n, delta, trace, trace_square, operator)


def gordon(c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any) -> Any:
    """‖Σ‖ (2η + η²), η = (√r(Σ) + offset + √(tail log(union/δ))) / √n."""
    eta = np.sqrt(effective_rank) + c["offset"] + np.sqrt(c["tail"] * np.log(c["union"] / delta))
    eta = eta / np.sqrt(n)
    return operator * (2.0 * eta + eta**2)
