"""Printed statements about the plug-in Fréchet distance FD_n of Gaussian or bounded features.

Oracle forms: the widths use the true covariance and mean where the printed formulas have them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    DEFINITE_REFERENCE,
    GAUSSIAN,
    NORM_BOUNDED,
    SUB_GAUSSIAN,
    UNIT_OPERATOR,
    effective_rank_samples,
)
from genbounds.bounds._bound import Bound, Constants, Quantity
from genbounds.bounds._matrices import dimension, effective_rank_psi, effective_rank_variance
from genbounds.bounds._vectors import (
    absolute_sum_mean_norm,
    bounded_mean_norm,
    mean_norm_squared,
    naive_mean_norm,
)
from genbounds.validation import Float


def _distance_error(distance_plugin: Float, distance: float) -> Float:
    return np.abs(distance_plugin - distance)


def _distance_excess(distance_plugin: Float, distance: float) -> Float:
    return distance_plugin - distance


def _distance_range(distance_plugin: Float) -> Float:
    return distance_plugin


DISTANCE_ERROR = Quantity(name="distance-error", text="|FD_n − FD|", function=_distance_error)
DISTANCE_EXCESS = Quantity(name="distance-excess", text="FD_n − FD", function=_distance_excess)
DISTANCE_RANGE = Quantity(name="distance-range", text="FD_n", function=_distance_range)


def _trace_term(
    c: Constants, n: Any, delta: Any, trace: Any, operator: Any, classes: Any = 1.0
) -> Any:
    """Tr[Σ] √(root log(union d/δ)/n) + linear ‖Σ‖ log(union d/δ)/n; d = 1 where not printed."""
    log = np.log(c["union"] * classes / delta)
    return trace * np.sqrt(c["root"] / n * log) + c["linear"] * operator / n * log


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


def _root_term(c: Constants, reference_root_trace: Any, covariance_width: Any) -> Any:
    """Tr[Σ_r^{1/2}] √(perturbation · covariance width)."""
    return reference_root_trace * np.sqrt(c["perturbation"] * covariance_width)


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
    squared = mean_norm_squared(c.part("mean"), n, delta, trace_square, operator)
    delta_mean = np.sqrt(squared)
    covariance = squared + effective_rank_psi(
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
    delta_mean = absolute_sum_mean_norm(c.part("mean"), n, delta, d, absolute_sum)
    covariance = delta_mean**2 + effective_rank_variance(
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
    delta_mean = naive_mean_norm(c.part("mean"), n, delta, d, max_variance)
    covariance = delta_mean**2 + dimension(c.part("rank"), n, delta, d, operator)
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
    first = bounded_mean_norm(c.part("mean"), n, delta, d, radius, trace)
    second = first**2 + effective_rank_psi(
        c.part("rank"), n, delta, operator, effective_rank, kappa
    )
    mean = 2.0 * (first + sample_mean_gap) * first
    hoeffding = c["range"] * radius**2 * np.sqrt(np.log(c["union"] / delta) / (2.0 * n))
    return mean + _root_term(c, reference_root_trace, second) + hoeffding


_PERTURBATION = {"perturbation": 8.0}
_M25_TRACE = {"trace_root": 8.0, "trace_linear": 8.0, "trace_union": 6.0}
_O24_TRACE = {"trace_root": 8.0, "trace_linear": 0.0, "trace_union": 6.0}
_M25_MEAN = {"mean_root": 8.0, "mean_linear": 8.0, "mean_union": 6.0}
_RANK = {"rank_lead": 20.0, "rank_rank": 4.0, "rank_union": 3.0}
M25_BONUS = {**_PERTURBATION, **_M25_TRACE, **_M25_MEAN, **_RANK}
O24_BONUS = {
    **_PERTURBATION,
    **_O24_TRACE,
    **_RANK,
    "mean_lead": 2.0,
    "mean_inner": 32.0,
    "mean_union": 24.0,
    "mean_power": 0.25,
}

STATEMENTS = (
    Bound(
        id="m25.fd-decomposition",
        claim="|FD_n − FD| ≤ 2‖μ−μ̂‖(‖μ−μ̂‖ + ‖μ̂−μ_r‖) + Tr[Σ_r^{1/2}]√(8‖Σ−Σ̂‖)"
        " + Tr[Σ]√((8/n)log(6/δ)) + (8‖Σ‖/n)log(6/δ), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le 2\|\mu-\hat\mu\|(\|\mu-\hat\mu\|+\|\hat\mu-\mu_r\|)"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\|\Sigma-\hat\Sigma\|}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac6\delta}"
        r"+\tfrac{8\|\Sigma\|}{n}\log\tfrac6\delta",
        source="M25 Theorem 4 (18)",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE),
        quantity=DISTANCE_ERROR,
        constants={**_PERTURBATION, **_M25_TRACE},
        width_function=m25_decomposition,
        failure=1.0 / 3.0,
    ),
    Bound(
        id="o24.fd-decomposition",
        claim="|FD_n − FD| ≤ (‖μ̂−μ‖ + 2‖μ−μ_r‖)‖μ̂−μ‖ + Tr[Σ_r^{1/2}]√(8‖Σ−Σ̂‖)"
        " + Tr(Σ)√((8/n)log(6d/δ)) + ‖μ−μ̂‖(‖μ−μ̂‖ + (2/n)Σ‖f(x_i)−μ̂‖), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le (\|\hat\mu-\mu\|+2\|\mu-\mu_r\|)\|\hat\mu-\mu\|"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\|\Sigma-\hat\Sigma\|}"
        r"+\operatorname{Tr}(\Sigma)\sqrt{\tfrac8n\log\tfrac{6d}\delta}"
        r"+\|\mu-\hat\mu\|\Bigl(\|\mu-\hat\mu\|+\tfrac2n\sum_i\|f(x_i)-\hat\mu\|\Bigr)",
        source="O24 Theorem A.1 (16)",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE),
        quantity=DISTANCE_ERROR,
        constants={**_PERTURBATION, **_O24_TRACE},
        width_function=o24_decomposition,
        failure=1.0 / 3.0,
    ),
    Bound(
        id="m25.fd-bonus",
        claim="FD_n − FD ≤ 2Δ_μ(Δ_μ + ‖μ̂−μ_r‖) + Tr[Σ_r^{1/2}]√(8Δ_Σ)"
        " + Tr[Σ]√((8/n)log(6/δ)) + (8‖Σ‖/n)log(6/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\Delta_\mu(\Delta_\mu+\|\hat\mu-\mu_r\|)"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Delta_\Sigma}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac6\delta}"
        r"+\tfrac{8\|\Sigma\|}{n}\log\tfrac6\delta",
        source="M25 Theorem 1 (6)",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE, effective_rank_samples(3.0)),
        quantity=DISTANCE_EXCESS,
        constants=M25_BONUS,
        width_function=m25_bonus,
        limit=DISTANCE_RANGE,
    ),
    Bound(
        id="o24.fd-bonus",
        claim="FD_n − FD ≤ C_n√(2ℐ/n)(32 log(24d/δ))^{1/4} + Tr[Σ]√((8/n)log(6d/δ))"
        " + Tr[Σ_r^{1/2}]√(8(20σ²‖Σ‖√((4r(Σ)+log(3/δ))/n) + (2ℐ/n)√(32 log(24d/δ))))",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le"
        r" C_n\sqrt{\tfrac{2\mathcal I}{n}}\Bigl(32\log\tfrac{24d}\delta\Bigr)^{1/4}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac{6d}\delta}"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Bigl(20\sigma^2\|\Sigma\|"
        r"\sqrt{\tfrac{4r(\Sigma)+\log(3/\delta)}{n}}"
        r"+\tfrac{2\mathcal I}{n}\sqrt{32\log\tfrac{24d}\delta}\Bigr)}",
        source="O24 Theorem 5.1 (7)",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE),
        quantity=DISTANCE_EXCESS,
        constants=O24_BONUS,
        width_function=o24_bonus,
        limit=DISTANCE_RANGE,
    ),
    Bound(
        id="o24.fd-naive-bonus",
        claim="FD_n − FD ≤ C_n σ√((d/n)log(6d/δ)) + Tr[Σ]√((8/n)log(6d/δ))"
        " + Tr[Σ_r^{1/2}]√(8(‖Σ‖(2√(d/n)+2ε+(√(d/n)+ε)²) + (dσ²/n)log(6d/δ))),"
        " ε = √(log(6/δ)/(2n))",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le C_n\sigma\sqrt{\tfrac dn\log\tfrac{6d}\delta}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac{6d}\delta}"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Bigl(\|\Sigma\|\bigl(2\sqrt{\tfrac dn}"
        r"+2\varepsilon+(\sqrt{\tfrac dn}+\varepsilon)^2\bigr)"
        r"+\tfrac{d\sigma^2}{n}\log\tfrac{6d}\delta\Bigr)}",
        source="O24 (32)",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE),
        quantity=DISTANCE_EXCESS,
        constants={
            **_PERTURBATION,
            **_O24_TRACE,
            "mean_factor": 1.0,
            "mean_union": 6.0,
            "rank_tail": 0.5,
            "rank_union": 6.0,
        },
        width_function=o24_naive_bonus,
        limit=DISTANCE_RANGE,
    ),
    Bound(
        id="m25.fd-naive-bonus",
        claim="the bonus of M25 (6) with Tr Σ = d, Tr Σ² = d, ‖Σ‖ = 1",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le \text{(6) with }"
        r"\operatorname{Tr}\Sigma=\operatorname{Tr}\Sigma^2=d,\;\|\Sigma\|=1",
        source="M25 Appendix C.4",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE, effective_rank_samples(3.0), UNIT_OPERATOR),
        quantity=DISTANCE_EXCESS,
        constants=M25_BONUS,
        width_function=m25_naive_bonus,
        limit=DISTANCE_RANGE,
    ),
    Bound(
        id="m25.fd-bounded-bonus",
        claim="FD_n − FD ≤ 2(Δ₁+‖μ̂−μ_r‖)Δ₁ + Tr[Σ_r^{1/2}]√(8Δ₂) + 4C²√(log(3/δ)/(2n))",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2(\Delta_1+\|\hat\mu-\mu_r\|)\Delta_1"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Delta_2}"
        r"+4C^2\sqrt{\tfrac{1}{2n}\log\tfrac3\delta}",
        source="M25 Theorem 5",
        setting="frechet-bounded",
        assumptions=(
            NORM_BOUNDED,
            SUB_GAUSSIAN,
            DEFINITE_REFERENCE,
            effective_rank_samples(3.0),
        ),
        quantity=DISTANCE_EXCESS,
        constants={
            **_PERTURBATION,
            **_RANK,
            "mean_factor": 2.0,
            "mean_union": 6.0,
            "range": 4.0,
            "union": 3.0,
        },
        width_function=m25_bounded_bonus,
        limit=DISTANCE_RANGE,
    ),
)
