"""The plug-in Fréchet distance FD_n: errors, kinds of statements about it, widths.

Oracle forms: the widths use the true covariance and mean where the printed formulas have them.
Plug-in forms are the bonuses as a user computes them, with estimates in place of the unknown norms.
Where the sources leave a choice or an O(·) open, it is a constant of the statement, with the value
that is named in docs/bounds.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds import _covariances as cov
from genbounds.bounds import _means as means
from genbounds.bounds._assumptions import DEFINITE_REFERENCE, GAUSSIAN
from genbounds.bounds._bound import Constants, kind, quantity
from genbounds.validation import Float


def _distance_error(distance_plugin: Float, distance: float) -> Float:
    return np.abs(distance_plugin - distance)


def _distance_excess(distance_plugin: Float, distance: float) -> Float:
    return distance_plugin - distance


def _distance_range(distance_plugin: Float) -> Float:
    return distance_plugin


DISTANCE_ERROR = quantity("distance-error", "|FD_n − FD|", _distance_error)
DISTANCE_EXCESS = quantity("distance-excess", "FD_n − FD", _distance_excess)
DISTANCE_RANGE = quantity("distance-range", "FD_n", _distance_range)

DISTANCE = kind("frechet-gaussian", DISTANCE_ERROR, GAUSSIAN, DEFINITE_REFERENCE)
BONUS = kind(
    "frechet-gaussian", DISTANCE_EXCESS, GAUSSIAN, DEFINITE_REFERENCE, limit=DISTANCE_RANGE
)


# --- as printed ---------------------------------------------------------------------------------


def _trace_term(
    c: Constants, n: Any, delta: Any, trace: Any, operator: Any, classes: Any = 1.0
) -> Any:
    """Tr[Σ] √(root log(union d/δ)/n) + linear ‖Σ‖ log(union d/δ)/n; d = 1 where not printed."""
    log = np.log(c["union"] * classes / delta)
    return trace * np.sqrt(c["root"] / n * log) + c["linear"] * operator / n * log


def _root_term(c: Constants, reference_root_trace: Any, covariance_width: Any) -> Any:
    """Tr[Σ_r^{1/2}] √(perturbation · covariance width)."""
    return reference_root_trace * np.sqrt(c["perturbation"] * covariance_width)


def _range_term(c: Constants, n: Any, delta: Any, radius: Any) -> Any:
    """Hoeffding: range C² √(log(union/δ)/(2n)), which stands for the trace term."""
    return c["range"] * radius**2 * np.sqrt(np.log(c["union"] / delta) / (2.0 * n))


def mean_and_root_terms(
    c: Constants,
    mean_error_norm: Any,
    sample_mean_gap: Any,
    covariance_error: Any,
    reference_root_trace: Any,
) -> Any:
    """M25 (18) without the terms of Tr Σ̂ − Tr Σ."""
    mean = 2.0 * mean_error_norm * (mean_error_norm + sample_mean_gap)
    return mean + _root_term(c, reference_root_trace, covariance_error)


def m25_decomposition(
    c: Constants,
    n: Any,
    delta: Any,
    mean_error_norm: Any,
    sample_mean_gap: Any,
    covariance_error: Any,
    reference_root_trace: Any,
    trace: Any,
    operator: Any,
) -> Any:
    """Right side of M25 (18)."""
    moved = mean_and_root_terms(
        c, mean_error_norm, sample_mean_gap, covariance_error, reference_root_trace
    )
    return moved + _trace_term(c.part("trace"), n, delta, trace, operator)


def m25_bounded_decomposition(
    c: Constants,
    n: Any,
    delta: Any,
    mean_error_norm: Any,
    sample_mean_gap: Any,
    covariance_error: Any,
    reference_root_trace: Any,
    radius: Any,
) -> Any:
    """Right side of M25 (27)."""
    moved = mean_and_root_terms(
        c, mean_error_norm, sample_mean_gap, covariance_error, reference_root_trace
    )
    return moved + _range_term(c, n, delta, radius)


def o24_decomposition(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_error_norm: Any,
    mean_gap: Any,
    mean_deviation: Any,
    covariance_error: Any,
    reference_root_trace: Any,
    trace: Any,
    operator: Any,
) -> Any:
    """Right side of O24 (16)."""
    mean = (mean_error_norm + 2.0 * mean_gap) * mean_error_norm
    mean = mean + mean_error_norm * (mean_error_norm + 2.0 * mean_deviation)
    root = _root_term(c, reference_root_trace, covariance_error)
    return mean + root + _trace_term(c.part("trace"), n, delta, trace, operator, d)


def m25_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    sample_mean_gap: Any,
    reference_root_trace: Any,
    trace: Any,
    trace_square: Any,
    operator: Any,
    effective_rank: Any,
    kappa: Any,
) -> Any:
    """Bonus of M25 (6)."""
    squared = means.mean_norm_squared(c.part("mean"), n, delta, trace_square, operator)
    delta_mean = np.sqrt(squared)
    covariance = squared + cov.effective_rank_psi(
        c.part("rank"), n, delta, operator, effective_rank, kappa
    )
    mean = 2.0 * delta_mean * (delta_mean + sample_mean_gap)
    root = _root_term(c, reference_root_trace, covariance)
    return mean + root + _trace_term(c.part("trace"), n, delta, trace, operator)


def m25_naive_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    sample_mean_gap: Any,
    reference_root_trace: Any,
    kappa: Any,
) -> Float:
    """`m25_bonus` with Tr Σ = Tr Σ² = d and ‖Σ‖ = 1."""
    return np.asarray(
        m25_bonus(c, n, delta, sample_mean_gap, reference_root_trace, d, d, 1.0, float(d), kappa)
    )


def o24_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_gap: Any,
    mean_error_norm: Any,
    mean_deviation: Any,
    reference_root_trace: Any,
    trace: Any,
    operator: Any,
    effective_rank: Any,
    max_variance: Any,
    absolute_sum: Any,
) -> Any:
    """Bonus of O24 (7)."""
    delta_mean = means.absolute_sum_mean_norm(c.part("mean"), n, delta, d, absolute_sum)
    covariance = delta_mean**2 + cov.effective_rank_variance(
        c.part("rank"), n, delta, operator, effective_rank, max_variance
    )
    lead = 2.0 * (mean_gap + mean_error_norm + mean_deviation)
    root = _root_term(c, reference_root_trace, covariance)
    return lead * delta_mean + root + _trace_term(c.part("trace"), n, delta, trace, operator, d)


def o24_naive_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_gap: Any,
    mean_error_norm: Any,
    mean_deviation: Any,
    reference_root_trace: Any,
    trace: Any,
    operator: Any,
    max_variance: Any,
) -> Any:
    """Bonus of O24 (32)."""
    delta_mean = means.naive_mean_norm(c.part("mean"), n, delta, d, max_variance)
    covariance = delta_mean**2 + cov.dimension(c.part("rank"), n, delta, d, operator)
    lead = 2.0 * (mean_gap + mean_error_norm + mean_deviation)
    root = _root_term(c, reference_root_trace, covariance)
    return lead * delta_mean + root + _trace_term(c.part("trace"), n, delta, trace, operator, d)


def m25_bounded_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    radius: Any,
    sample_mean_gap: Any,
    reference_root_trace: Any,
    trace: Any,
    operator: Any,
    effective_rank: Any,
    kappa: Any,
) -> Any:
    """Bonus of M25 Theorem 5."""
    first = means.bounded_mean_norm(c.part("mean"), n, delta, d, radius, trace)
    second = first**2 + cov.effective_rank_psi(
        c.part("rank"), n, delta, operator, effective_rank, kappa
    )
    mean = 2.0 * (first + sample_mean_gap) * first
    return mean + _root_term(c, reference_root_trace, second) + _range_term(c, n, delta, radius)


# --- from estimates -----------------------------------------------------------------------------


def truncate_entries(covariance: Float, threshold: float) -> Float:
    """Keep the entries that are at least `threshold`, as printed: negative ones all go."""
    return np.where(covariance >= threshold, covariance, 0.0)


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
    kept = truncate_entries(covariance, c["truncation"] * reference_operator)
    absolute_sum = np.abs(kept).sum(axis=(-2, -1))
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    max_variance = variances.max(axis=-1) * n / (n - 1)
    operator = max_variance + c["operator_slack"] * np.sqrt(np.log(1.0 / delta) / n)
    trace = c["trace_factor"] * np.einsum("...ij,ji->...", kept, reference_cov)
    # ‖μ̂−μ‖ inside C_n is unknown to the user: its printed bound stands for it.
    mean_error = means.absolute_sum_mean_norm(c.part("mean"), n, delta, d, absolute_sum)
    rank = trace / operator
    return o24_bonus(
        c,
        n,
        delta,
        d,
        c["mean_gap"],
        mean_error,
        mean_deviation,
        reference_root_trace,
        trace,
        operator,
        rank,
        max_variance,
        absolute_sum,
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
    trace = np.trace(kept, axis1=-2, axis2=-1)
    trace_square = np.square(kept).sum(axis=(-2, -1))
    operator = cov.operator_norm(kept)
    tiny = np.finfo(np.float64).tiny
    rank = trace / np.maximum(operator, tiny)
    return m25_bonus(
        c,
        n,
        delta,
        sample_mean_gap,
        reference_root_trace,
        trace,
        trace_square,
        operator,
        rank,
        c["kappa"],
    )


# --- repaired and sharper: derivations in docs/bounds.md ----------------------------------------


def _moved_terms(c: Constants, n: Any, log: Any, gap: Any, operator: Any, square: Any) -> Any:
    """Mean and trace terms of the bonus: what ⟨g, μ̂−μ⟩ and n⁻¹Σ‖x−μ‖² exceed."""
    mean = 2.0 * gap * np.sqrt(c["tail"] * operator * log / n)
    return mean + means.laurent_massart(c, n, log, square, operator)


def distance_decomposition(
    c: Constants,
    n: Any,
    delta: Any,
    mean_error_norm: Any,
    mean_gap: Any,
    covariance_error: Any,
    reference_root_trace: Any,
    trace_square: Any,
    operator: Any,
) -> Any:
    """Three terms of |FD_n − FD|: the mean, the trace, and the root by ‖Σ̂−Σ‖."""
    log = np.log(c["union"] / delta)
    trace = c["root"] * np.sqrt(trace_square * log / n) + c["linear"] * operator * log / n
    root = c["perturbation"] * reference_root_trace * np.sqrt(covariance_error)
    return 2.0 * mean_gap * mean_error_norm + trace + root


def _distance_terms(
    c: Constants,
    n: Any,
    delta: Any,
    mean_gap: Any,
    trace_square: Any,
    operator: Any,
    root_trace: Any,
    covariance: Any,
) -> Any:
    """Bonus at every log(union/δ) alike, of a width of the covariance."""
    terms, log = c.part("mean", tail=c["tail"]), np.log(c["union"] / delta)
    moved = _moved_terms(terms, n, log, mean_gap, operator, trace_square)
    return moved + c["perturbation"] * root_trace * np.sqrt(covariance)


def distance_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    mean_gap: Any,
    reference_root_trace: Any,
    trace: Any,
    trace_square: Any,
    operator: Any,
    effective_rank: Any,
) -> Any:
    """Bonus with the covariance width `centred_covariance`, every log at union/δ."""
    covariance = cov.centred_covariance(c, n, delta, trace, trace_square, operator, effective_rank)
    return _distance_terms(
        c, n, delta, mean_gap, trace_square, operator, reference_root_trace, covariance
    )


def distance_naive_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_gap: Any,
    reference_root_trace: Any,
    trace: Any,
    trace_square: Any,
    operator: Any,
) -> Any:
    """Bonus with the covariance width `dimension`, every log at union/δ but its own."""
    mean = c.part("mean", union=c["union"])
    raw = c.part("raw", tail=c["tail"])
    covariance = cov.dimension(raw, n, delta, d, operator)
    covariance = covariance + means.laurent_massart_mean_norm(
        mean, n, delta, trace, trace_square, operator
    )
    return _distance_terms(
        c, n, delta, mean_gap, trace_square, operator, reference_root_trace, covariance
    )


def sharp_bonus(
    c: Constants,
    n: Any,
    delta: Any,
    d: Any,
    mean_gap: Any,
    trace_square: Any,
    operator: Any,
    trace_root: Any,
    product_trace: Any,
) -> Any:
    """Bonus of order √(1/n) + d/n: the root term by its own concentration and bias."""
    log = np.log(c["union"] / delta)
    m = n - 1.0
    spread = np.sqrt(c["tail"] * log / m)
    least = np.maximum(
        trace_root * (1.0 - c["bias"] * (d + 1.0) / m) - np.sqrt(product_trace) * spread,
        trace_root * (1.0 - np.sqrt(d / m) - spread),
    )
    root = trace_root - np.sqrt(m / n) * np.maximum(least, 0.0)
    return _moved_terms(c, n, log, mean_gap, operator, trace_square) + 2.0 * root


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
        operator = np.divide(scale * cov.operator_norm(covariance), shrink)
        product = np.divide(scale * np.einsum("...ij,ji->...", covariance, reference_cov), shrink)
        reach = np.sqrt(scale) * sample_trace_root + np.sqrt(product) * spread
        most = np.minimum(np.divide(reach, unbiased), np.sqrt(trace * reference_trace))
    gap = sample_mean_gap + 2.0 * np.sqrt(c["tail"] * operator * log / n)
    moved = _moved_terms(c, n, log, gap, operator, operator * trace)
    return moved + 2.0 * (most - sample_trace_root)
