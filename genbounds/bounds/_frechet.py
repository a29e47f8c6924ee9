"""The plug-in Fréchet distance FD_n: errors, kinds of statements about it, widths.

Oracle forms: the widths use the true covariance and mean where the printed formulas have them.
Plug-in forms are the bonuses as a user computes them, with estimates in place of the unknown norms.
Where the sources leave a choice or an O(·) open, it is a constant of the statement, with the value
that is named in docs/bounds.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds import _means as means
from genbounds.bounds._assumptions import DEFINITE_REFERENCE, GAUSSIAN
from genbounds.bounds._bound import Composed, Constants, Part, Width, gap, kind, quantity
from genbounds.bounds._numbers import operator_norm
from genbounds.validation import Float

DISTANCE_ERROR = quantity("distance-error", "|FD_n − FD|", gap, "distance_plugin", "distance")
DISTANCE_EXCESS = quantity(
    "distance-excess", "FD_n − FD", np.subtract, "distance_plugin", "distance"
)
DISTANCE_RANGE = quantity("distance-range", "FD_n", np.asarray, "distance_plugin")

DISTANCE = kind("frechet-gaussian", DISTANCE_ERROR, GAUSSIAN, DEFINITE_REFERENCE)
BONUS = kind(
    "frechet-gaussian", DISTANCE_EXCESS, GAUSSIAN, DEFINITE_REFERENCE, limit=DISTANCE_RANGE
)


# --- as printed ---------------------------------------------------------------------------------


def _trace_term(c: Constants, n: Any, delta: Any, d: Any, trace: Any, operator: Any) -> Any:
    """Tr[Σ] √(root log(union d/δ)/n) + linear ‖Σ‖ log(union d/δ)/n."""
    log = np.log(c["union"] * d / delta)
    return trace * np.sqrt(c["root"] / n * log) + c["linear"] * operator / n * log


def _root_term(c: Constants, reference_root_trace: Any, covariance_error: Any) -> Any:
    """Tr[Σ_r^{1/2}] √(perturbation ‖Σ̂−Σ‖)."""
    return reference_root_trace * np.sqrt(c["perturbation"] * covariance_error)


def _range_term(c: Constants, n: Any, delta: Any, radius: Any) -> Any:
    """Hoeffding: range C² √(log(union/δ)/(2n)), which stands for the trace term."""
    return c["range"] * radius**2 * np.sqrt(np.log(c["union"] / delta) / (2.0 * n))


def _m25_mean_term(c: Constants, mean_error_norm: Any, sample_mean_gap: Any) -> Any:
    """2‖μ̂−μ‖ (‖μ̂−μ‖ + ‖μ̂−μ_r‖)."""
    return 2.0 * mean_error_norm * (mean_error_norm + sample_mean_gap)


def _o24_mean_terms(c: Constants, mean_error_norm: Any, mean_gap: Any, mean_deviation: Any) -> Any:
    """Those terms of O24 (16) that ‖μ̂−μ‖ is a factor of."""
    mean = (mean_error_norm + 2.0 * mean_gap) * mean_error_norm
    return mean + mean_error_norm * (mean_error_norm + 2.0 * mean_deviation)


def _o24_bonus_term(
    c: Constants, mean_width: Any, mean_gap: Any, mean_error_norm: Any, mean_deviation: Any
) -> Any:
    """C_n times the bound on ‖μ̂−μ‖, C_n = 2(‖μ−μ_r‖ + ‖μ̂−μ‖ + n⁻¹Σ‖x−μ̂‖)."""
    return 2.0 * (mean_gap + mean_error_norm + mean_deviation) * mean_width


def _dimension(c: Constants, d: Any) -> float:
    return float(d)


_O24_TRACE = Part("trace", _trace_term)
_M25_TRACE = Composed(_O24_TRACE, d=means.one)  # no d is printed

m25_decomposition = Composed(_m25_mean_term, _root_term, _M25_TRACE)  # M25 (18)
m25_bounded_decomposition = Composed(_m25_mean_term, _root_term, _range_term)  # M25 (27)
o24_decomposition = Composed(_o24_mean_terms, _root_term, _O24_TRACE)  # O24 (16)


def _covariance_width(mean: Width, rank: Width) -> Composed:
    """Width of Σ̂: that of ‖μ̂−μ‖, squared, and one by the rank."""
    return Composed(means.squared_error, Part("rank", rank), mean_error_norm=mean)


def _o24_bonus(mean: Width, rank: Width) -> Composed:
    return Composed(
        *(_o24_bonus_term, _root_term, _O24_TRACE),
        mean_width=Part("mean", mean),
        covariance_error=_covariance_width(Part("mean", mean), rank),
    )


# A bonus is the decomposition with widths in place of the errors: M25 (6), its Appendix C.4 with
# Tr Σ = Tr Σ² = d and ‖Σ‖ = 1, its Theorem 5; O24 (7) and (32), which share a factor C_n.
m25_bonus = Composed(
    m25_decomposition,
    mean_error_norm=Part("mean", means.mean_norm),
    covariance_error=Composed(
        Part("mean", means.mean_norm_squared), Part("rank", means.effective_rank_psi)
    ),
)
m25_naive_bonus = Composed(
    m25_bonus,
    trace=_dimension,
    trace_square=_dimension,
    operator=means.one,
    effective_rank=_dimension,
)
_BOUNDED_MEAN = Part("mean", means.bounded_mean_norm)
m25_bounded_bonus = Composed(
    m25_bounded_decomposition,
    mean_error_norm=_BOUNDED_MEAN,
    covariance_error=_covariance_width(_BOUNDED_MEAN, means.effective_rank_psi),
)
o24_bonus = _o24_bonus(means.absolute_sum_mean_norm, means.effective_rank_variance)
o24_naive_bonus = _o24_bonus(means.naive_mean_norm, means.dimension)


# --- from estimates -----------------------------------------------------------------------------


def adaptive_threshold(c: Constants, covariance: Float, n: Any) -> Float:
    """Hard-threshold each off-diagonal entry at threshold √(θ_ij log d / n).

    θ_ij = variances σ_ii σ_jj + squares σ_ij². With both 1 it is the variance of a product of two
    Gaussian coordinates, the quantity that Cai & Liu (2011) estimate entry by entry.
    """
    d = covariance.shape[-1]
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    theta = c["variances"] * variances[..., :, None] * variances[..., None, :]
    theta = theta + c["squares"] * np.square(covariance)
    keep = np.abs(covariance) >= c["threshold"] * np.sqrt(theta * np.log(d) / n)
    return np.where(keep | np.eye(d, dtype=bool), covariance, 0.0)


def o24_plugin_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    covariance: Float,
    mean_deviation: Any,
    reference_cov: Float,
    reference_operator: Any,
    reference_root_trace: Any,
) -> Any:
    """Bonus of O24 (7) with the estimates of O24 App. D.5."""
    # Truncated as printed: negative entries all go.
    kept = np.where(covariance >= c["truncation"] * reference_operator, covariance, 0.0)
    absolute_sum = np.abs(kept).sum(axis=(-2, -1))
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    max_variance = variances.max(axis=-1) * n / (n - 1)
    operator = max_variance + c["operator_slack"] * np.sqrt(np.log(1.0 / delta) / n)
    trace = c["trace_factor"] * np.einsum("...ij,ji->...", kept, reference_cov)
    # ‖μ̂−μ‖ inside C_n is unknown to the user: its printed bound stands for it.
    mean_error = means.absolute_sum_mean_norm(c.part("mean"), n, delta, d, absolute_sum)
    return o24_bonus(
        c,
        n=n,
        delta=delta,
        d=d,
        mean_gap=c["mean_gap"],
        mean_error_norm=mean_error,
        mean_deviation=mean_deviation,
        reference_root_trace=reference_root_trace,
        trace=trace,
        operator=operator,
        effective_rank=trace / operator,
        max_variance=max_variance,
        absolute_sum=absolute_sum,
    )


def m25_plugin_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    covariance: Float,
    sample_mean_gap: Any,
    reference_root_trace: Any,
) -> Any:
    """Bonus of M25 (6) with the norms of the thresholded sample covariance (M25 App. C.3)."""
    kept = adaptive_threshold(c, covariance, n)
    trace, operator = np.trace(kept, axis1=-2, axis2=-1), operator_norm(kept)
    return m25_bonus(
        c,
        n=n,
        delta=delta,
        sample_mean_gap=sample_mean_gap,
        reference_root_trace=reference_root_trace,
        trace=trace,
        trace_square=np.square(kept).sum(axis=(-2, -1)),
        operator=operator,
        effective_rank=trace / np.maximum(operator, np.finfo(np.float64).tiny),
        kappa=c["kappa"],
    )


# --- repaired and sharper: derivations in docs/bounds.md ----------------------------------------


def _mean_term(c: Constants, mean_gap: Any, mean_error_norm: Any) -> Any:
    return 2.0 * mean_gap * mean_error_norm


def _gap_term(c: Constants, n: Any, delta: Any, mean_gap: Any, operator: Any) -> Any:
    """2‖μ−μ_r‖ √(tail ‖Σ‖ log(union/δ)/n), what 2⟨μ−μ_r, μ̂−μ⟩ exceeds."""
    return 2.0 * mean_gap * np.sqrt(c["tail"] * operator * np.log(c["union"] / delta) / n)


def _perturbation_term(c: Constants, reference_root_trace: Any, covariance_error: Any) -> Any:
    """``perturbation`` Tr[Σ_r^{1/2}] √‖Σ̂−Σ‖."""
    return c["perturbation"] * reference_root_trace * np.sqrt(covariance_error)


def _sharp_root_term(
    c: Constants, n: Any, delta: Any, d: Any, trace_root: Any, product_trace: Any
) -> Any:
    """Term of the root by its own concentration and bias: of order √(1/n) + d/n."""
    m = n - 1.0
    spread = np.sqrt(c["tail"] * np.log(c["union"] / delta) / m)
    least = np.maximum(
        trace_root * (1.0 - c["bias"] * (d + 1.0) / m) - np.sqrt(product_trace) * spread,
        trace_root * (1.0 - np.sqrt(d / m) - spread),
    )
    return 2.0 * (trace_root - np.sqrt(m / n) * np.maximum(least, 0.0))


_TERMS = (_gap_term, Part("mean", means.laurent_massart, "union"), _perturbation_term)

distance_decomposition = Composed(_mean_term, means.laurent_massart, _perturbation_term)
distance_bonus = Composed(*_TERMS, covariance_error=means.centred_covariance)
distance_naive_bonus = Composed(
    *_TERMS,
    covariance_error=Composed(
        Part("raw", means.dimension, "tail"), Part("mean", means.laurent_massart_mean_norm, "union")
    ),
)
sharp_bonus = Composed(_gap_term, means.laurent_massart, _sharp_root_term)


def data_driven_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    covariance: Float,
    sample_mean_gap: Any,
    sample_trace_root: Any,
    reference_cov: Float,
    reference_trace: Any,
) -> Any:
    """Bonus from the sample alone; infinite where n − 1 ≤ 4 log(union/δ)."""
    log = np.log(c["union"] / delta)
    m = n - 1.0
    scale = n / m  # from divisor n to n − 1
    spread = np.sqrt(c["tail"] * log / m)
    shrink = np.maximum(1.0 - c["root"] * np.sqrt(log / m), 0.0)
    unbiased = np.maximum(1.0 - c["bias"] * (d + 1.0) / m, 0.0)
    with np.errstate(divide="ignore"):
        trace = np.divide(scale * np.trace(covariance, axis1=-2, axis2=-1), shrink)
        operator = np.divide(scale * operator_norm(covariance), shrink)
        product = np.divide(scale * np.einsum("...ij,ji->...", covariance, reference_cov), shrink)
        reach = np.sqrt(scale) * sample_trace_root + np.sqrt(product) * spread
        most = np.minimum(np.divide(reach, unbiased), np.sqrt(trace * reference_trace))
    gap = sample_mean_gap + 2.0 * np.sqrt(c["tail"] * operator * log / n)
    moved = means.laurent_massart(c, n, delta, operator * trace, operator)
    return _gap_term(c, n, delta, gap, operator) + moved + 2.0 * (most - sample_trace_root)
