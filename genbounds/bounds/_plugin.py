"""The Fréchet bonuses as a user computes them: estimates in place of the unknown norms.

Where the sources leave a choice or an O(·) open, it is a constant of the statement, with the value
that is named in docs/bounds.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    DEFINITE_REFERENCE,
    GAUSSIAN,
    at_least,
    effective_rank_samples,
)
from genbounds.bounds._bound import Bound, Constants
from genbounds.bounds._frechet import (
    DISTANCE_EXCESS,
    DISTANCE_RANGE,
    M25_BONUS,
    O24_BONUS,
    m25_bonus,
    o24_bonus,
)
from genbounds.bounds._quantities import operator_norm
from genbounds.bounds._vectors import absolute_sum_mean_norm
from genbounds.validation import Float


def truncate_entries(covariance: Float, threshold: float) -> Float:
    """Keep the entries that are at least `threshold`, as printed: negative ones all go."""
    return np.where(covariance >= threshold, covariance, 0.0)


def adaptive_threshold(covariance: Float, n: Any, factor: float) -> Float:
    """Hard-threshold each off-diagonal entry at factor √(θ_ij log d / n).

    θ_ij = σ_ii σ_jj + σ_ij² is the variance of a product of two Gaussian coordinates, the
    quantity that Cai & Liu (2011) estimate entry by entry.
    """
    d = covariance.shape[-1]
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    theta = variances[..., :, None] * variances[..., None, :] + np.square(covariance)
    keep = np.abs(covariance) >= factor * np.sqrt(theta * np.log(d) / n)
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
    mean_error = absolute_sum_mean_norm(c.part("mean"), n, delta, d, absolute_sum)
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
    kept = adaptive_threshold(covariance, n, c["threshold"])
    trace = np.trace(kept, axis1=-2, axis2=-1)
    trace_square = np.square(kept).sum(axis=(-2, -1))
    operator = operator_norm(kept)
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


STATEMENTS = (
    Bound(
        id="o24.fd-bonus-plug-in",
        claim="the bonus of O24 (7) with ‖μ−μ_r‖ = 0.5, ‖Σ‖ = max_j σ̂_j² + √(log(1/δ)/n),"
        " ℐ of Σ̂ truncated at τ = 0.05‖Σ_r‖, Tr Σ = Tr[truncate_τ(Σ̂)Σ_r]",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le \text{(7) with }"
        r"\|\mu-\mu_r\|=\tfrac12,\;\|\Sigma\|=\max_j\hat\sigma_j^2+\sqrt{\tfrac1n\log\tfrac1\delta},"
        r"\;\hat{\mathcal I}=\mathcal I(\operatorname{truncate}_\tau(\hat\Sigma)),"
        r"\;\operatorname{Tr}\Sigma=\operatorname{Tr}[\operatorname{truncate}_\tau(\hat\Sigma)\Sigma_r]",
        source="O24 Appendix D.5 for O24 (7)",
        setting="frechet-gaussian",
        form="plug-in",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE, at_least(2)),
        quantity=DISTANCE_EXCESS,
        constants={
            **O24_BONUS,
            "truncation": 0.05,
            "mean_gap": 0.5,
            "operator_slack": 1.0,
            "trace_factor": 1.0,
        },
        width_function=o24_plugin_bonus,
        limit=DISTANCE_RANGE,
    ),
    Bound(
        id="m25.fd-bonus-plug-in",
        claim="the bonus of M25 (6) with the norms of the thresholded sample covariance,"
        " M = 2, κ = 1",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le \text{(6) with the norms of }"
        r"\hat\sigma_{ij}\text{ where }|\hat\sigma_{ij}| \ge"
        r" M\sqrt{\tfrac{\theta_{ij}\log d}{n}},\;M=2,\;\kappa=1",
        source="M25 Appendix C.3 for M25 (6), Cai & Liu (2011)",
        setting="frechet-gaussian",
        form="plug-in",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE, at_least(2), effective_rank_samples(3.0)),
        quantity=DISTANCE_EXCESS,
        constants={**M25_BONUS, "threshold": 2.0, "kappa": 1.0},
        width_function=m25_plugin_bonus,
        limit=DISTANCE_RANGE,
    ),
)
