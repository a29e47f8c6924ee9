"""Means of scalars and vectors, and sample covariances: errors, kinds, widths.

Parameter names of an error are the vocabulary that arms fill. Sample quantities carry the
replications on their leading axis; true quantities have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds._betting import betting_lower_limit
from genbounds.bounds import _assumptions as on
from genbounds.bounds._bound import Composed, Constants, Part, gap, kind, quantity
from genbounds.bounds._numbers import operator_norm
from genbounds.bounds._tails import normal_product_tail, weighted_chi_square_quantile
from genbounds.validation import Float


def _mean_product(sample_mean: Float, second_mean: Float) -> Float:
    return np.abs(sample_mean * second_mean)


def _square_error(mean_square: Float) -> Float:
    return np.abs(mean_square - 1.0)


def _norm_range(radius: float) -> float:
    return 2.0 * radius


MEAN_ERROR = quantity("mean-error", "|X̄ − μ|", gap, "sample_mean", "mean")
MEAN_SHORTFALL = quantity("mean-shortfall", "E Z − Z̄", np.subtract, "mean", "sample_mean")
UNIT_RANGE = quantity("unit-range", "E Z", np.asarray, "mean")
RUNNING_ERROR = quantity("running-error", "|X̄_t − μ| for some t ≤ n", gap, "running_mean", "mean")
RUNNING_SHORTFALL = quantity(
    "running-shortfall", "E Z − Z̄_t for some t ≤ n", np.subtract, "mean", "running_mean"
)
SQUARE_ERROR = quantity("square-error", "|n⁻¹ Σ Z_i² − 1|", _square_error)
SQUARED_MEAN = quantity("squared-mean", "(n⁻¹ Σ z_i)²", np.square, "sample_mean")
MEAN_PRODUCT = quantity("mean-product", "|z̄ ū|", _mean_product)
SQUARED_NORM_ERROR = quantity(
    "squared-norm-error", "|n⁻¹ Σ ‖X_i‖² − Tr Σ|", gap, "mean_squared_norm", "trace"
)
MEAN_NORM = quantity("mean-norm", "‖μ̂ − μ‖", np.asarray, "mean_error_norm")
MEAN_NORM_SQUARED = quantity("mean-norm-squared", "‖μ̂ − μ‖²", np.square, "mean_error_norm")
NORM_RANGE = quantity("norm-range", "2C", _norm_range)

GAUSSIAN_MEAN = kind("gaussian-scalar", MEAN_ERROR, on.GAUSSIAN, on.SCALAR)
UNIT_MEAN = kind("unit-interval", MEAN_SHORTFALL, on.UNIT_INTERVAL, limit=UNIT_RANGE)
NORMAL_SQUARES = kind("gaussian-scalar", SQUARE_ERROR, on.STANDARD_NORMAL)
SQUARED_NORMAL = kind("gaussian-scalar", SQUARED_MEAN, on.STANDARD_NORMAL)
NORMAL_PRODUCT = kind("gaussian-scalar", MEAN_PRODUCT, on.STANDARD_NORMAL)
SQUARED_NORMS = kind("gaussian-norms", SQUARED_NORM_ERROR, on.GAUSSIAN, on.CENTRED)
GAUSSIAN_NORM = kind("gaussian-norms", MEAN_NORM, on.GAUSSIAN)
SQUARED_NORM = kind("gaussian-norms", MEAN_NORM_SQUARED, on.GAUSSIAN)
BOUNDED_NORM = kind("bounded-vectors", MEAN_NORM, on.NORM_BOUNDED, limit=NORM_RANGE)


# --- scalars ------------------------------------------------------------------------------------


def gaussian_mean(c: Constants, n: Any, delta: Any, variance: Any) -> Any:
    """√(factor σ² log(union/δ) / n)."""
    return np.sqrt(c["factor"] * variance / n * np.log(c["union"] / delta))


def normal_quantile(c: Constants, n: Any, delta: Any, variance: Any) -> Any:
    """Take the normal quantile at δ/sides of √(σ²/n)."""
    from scipy.special import ndtri

    return -ndtri(delta / c["sides"]) * np.sqrt(variance / n)


def hoeffding(c: Constants, n: Any, delta: Any) -> Any:
    """√(factor log(1/δ) / n)."""
    return np.sqrt(c["factor"] / n * np.log(1.0 / delta))


def bennett(c: Constants, n: Any, delta: Any, variance: Any) -> Any:
    """√(root Var log(1/δ) / n) + linear log(1/δ) / n."""
    log = np.log(1.0 / delta)
    return np.sqrt(c["root"] * variance * log / n) + c["linear"] * log / n


def empirical_bernstein(c: Constants, n: Any, delta: Any, sample_variance: Any) -> Any:
    """√(root V_n log(union/δ) / n) + linear log(union/δ) / (n−1)."""
    log = np.log(c["union"] / delta)
    return np.sqrt(c["root"] * sample_variance * log / n) + c["linear"] * log / (n - 1)


def betting(c: Constants, n: Any, delta: Any, rows: Float) -> Any:
    """Largest mean that a fixed mixture of bets on W = 1 - Z does not reject, minus Z̄."""
    rows = 1.0 - rows
    stakes = c["largest"] * 0.5 ** np.arange(c["bets"])
    low = betting_lower_limit(rows, np.log(1.0 / delta), stakes)
    return rows.mean(axis=-1) - low


def root_log(c: Constants, n: Any, delta: Any) -> Any:
    """√(factor log(union/δ) / n)."""
    return np.sqrt(c["factor"] / n * np.log(c["union"] / delta))


def root_log_over_n(c: Constants, n: Any, delta: Any) -> Any:
    """√(factor log(union/δ)) / n."""
    return np.sqrt(c["factor"] * np.log(c["union"] / delta)) / n


def log_over_n(c: Constants, n: Any, delta: Any) -> Any:
    """``factor log(union/δ) / n``."""
    return c["factor"] * np.log(c["union"] / delta) / n


def product_quantile(c: Constants, n: Any, delta: Any) -> Any:
    """Threshold that |z u|/n exceeds with probability `share` δ, by root search."""
    from scipy.optimize import brentq

    def one(target: float) -> float:
        # P(|zu| > x) ≤ 2 e^{-x}, so the quantile lies below log(2/δ).
        high = np.log(2.0 / target) + 1.0
        return float(brentq(lambda x: np.log(normal_product_tail(x) / target), 0.0, high))

    return np.vectorize(one, otypes=[float])(c["share"] * np.asarray(delta)) / n


def normal_mixture(c: Constants, n: Any, delta: Any, variance: Any) -> Float:
    """σ √((t+ρ)(log((t+ρ)/ρ) + union log(1/δ)))/t for t = 1 … n, one column each."""
    t = np.arange(1.0, n + 1.0)[None, :]
    grown = t + c["tuned_for"]
    log = np.log(grown / c["tuned_for"]) + c["union"] * np.log(1.0 / delta)
    return np.asarray(np.sqrt(variance * grown * log) / t)


def stitched(c: Constants, n: Any, delta: Any) -> Float:
    """½ lead √((log log(2t) + slope log(union/δ))/t) for t = 1 … n, one column each."""
    t = np.arange(1.0, n + 1.0)[None, :]
    inside = np.log(np.log(2.0 * t)) + c["slope"] * np.log(c["union"] / delta)
    return np.asarray(0.5 * c["lead"] * np.sqrt(np.maximum(inside, 0.0) / t))


# --- norms of vectors ---------------------------------------------------------------------------


def weighted_chi_square(c: Constants, n: Any, delta: Any, trace_square: Any, operator: Any) -> Any:
    """max{√(root Tr Σ² log(union/δ) / n), linear ‖Σ‖ log(union/δ) / n}."""
    log = np.log(c["union"] / delta)
    return np.maximum(np.sqrt(c["root"] * trace_square * log / n), c["linear"] * operator * log / n)


def sub_exponential_mean(
    c: Constants, n: Any, delta: Any, sub_exponential_nu: Any, sub_exponential_alpha: Any
) -> Any:
    """max{√(root ν² log(union/δ) / n), linear α log(union/δ) / n}."""
    return weighted_chi_square(c, n, delta, sub_exponential_nu**2, sub_exponential_alpha)


def laurent_massart(c: Constants, n: Any, delta: Any, trace_square: Any, operator: Any) -> Any:
    """``root`` √(Tr[Σ²] log(union/δ)/n) + linear ‖Σ‖ log(union/δ)/n."""
    log = np.log(c["union"] / delta)
    return c["root"] * np.sqrt(trace_square * log / n) + c["linear"] * operator * log / n


def one(c: Constants) -> float:
    return 1.0


laurent_massart_squares = Composed(laurent_massart, trace_square=one, operator=one)


def vector_bernstein(c: Constants, n: Any, delta: Any, radius: Any) -> Any:
    """Radius at which exp(−nε²/(factor c²) + offset) equals δ."""
    return radius * np.sqrt(c["factor"] / n * (np.log(1.0 / delta) + c["offset"]))


def naive_mean_norm(c: Constants, n: Any, delta: Any, d: Any, max_variance: Any) -> Any:
    """σ √(factor (d/n) log(union d/δ))."""
    return np.sqrt(c["factor"] * max_variance * d / n * np.log(c["union"] * d / delta))


def absolute_sum_mean_norm(c: Constants, n: Any, delta: Any, d: Any, absolute_sum: Any) -> Any:
    """√(lead ℐ/n) · (inner log(union d/δ))^power."""
    log = np.log(c["union"] * d / delta)
    return np.sqrt(c["lead"] * absolute_sum / n) * (c["inner"] * log) ** c["power"]


def mean_norm_squared(c: Constants, n: Any, delta: Any, trace_square: Any, operator: Any) -> Any:
    """(√(root Tr[Σ²] log(union/δ)) + linear ‖Σ‖ log(union/δ)) / n, the printed (Δ_μ)²."""
    log = np.log(c["union"] / delta)
    return (np.sqrt(c["root"] * trace_square * log) + c["linear"] * operator * log) / n


def mean_norm(c: Constants, n: Any, delta: Any, trace_square: Any, operator: Any) -> Any:
    """Root of `mean_norm_squared`: the printed Δ_μ."""
    return np.sqrt(mean_norm_squared(c, n, delta, trace_square, operator))


def bounded_mean_norm(c: Constants, n: Any, delta: Any, d: Any, radius: Any, trace: Any) -> Any:
    """√(factor d C² log(union d/δ)/n + Tr Σ/n), the printed Δ₁."""
    log = np.log(c["union"] * d / delta)
    return np.sqrt(c["factor"] * d * radius**2 * log / n + trace / n)


def borell_mean_norm(c: Constants, n: Any, delta: Any, trace: Any, operator: Any) -> Any:
    """√(Tr Σ/n) + √(tail ‖Σ‖ log(union/δ)/n)."""
    return np.sqrt(trace / n) + np.sqrt(c["tail"] * operator * np.log(c["union"] / delta) / n)


def laurent_massart_mean_norm(
    c: Constants, n: Any, delta: Any, trace: Any, trace_square: Any, operator: Any
) -> Any:
    """(Tr Σ + root √(Tr[Σ²] L) + linear ‖Σ‖ L) / n, L = log(union/δ)."""
    log = np.log(c["union"] / delta)
    return (trace + c["root"] * np.sqrt(trace_square * log) + c["linear"] * operator * log) / n


def exact_mean_norm(c: Constants, n: Any, delta: Any, eigenvalues: Any) -> Any:
    """Root of the quantile of Σ_j λ_j Z_j² at `share` δ, over √n."""
    quantile = np.vectorize(
        lambda share: weighted_chi_square_quantile(float(share), eigenvalues), otypes=[float]
    )
    return np.sqrt(quantile(c["share"] * np.asarray(delta)) / n)


# --- covariances ----------------------------------------------------------------------------------


def dense(cov: Float) -> Float:
    """Matrix of a covariance that may be given by its diagonal."""
    return np.diag(cov) if cov.ndim == 1 else cov


def _operator_gap(covariance: Float, cov: Float) -> Any:
    return operator_norm(covariance - dense(cov))


COVARIANCE_ERROR = quantity("covariance-error", "‖Σ̂ − Σ‖", _operator_gap)
RAW_ERROR = quantity(
    "raw-covariance-error", "‖n⁻¹ Σ X_i X_iᵀ − Σ‖", _operator_gap, "raw_covariance", "cov"
)

COVARIANCE = kind("gaussian-matrices", COVARIANCE_ERROR, on.GAUSSIAN)
BY_RANK = kind("gaussian-matrices", COVARIANCE_ERROR, on.GAUSSIAN, on.rank_samples(3.0))
RAW = kind("gaussian-matrices", RAW_ERROR, on.GAUSSIAN, on.CENTRED)
RAW_BY_RANK = kind("gaussian-matrices", RAW_ERROR, on.GAUSSIAN, on.CENTRED, on.rank_samples(1.0))


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
