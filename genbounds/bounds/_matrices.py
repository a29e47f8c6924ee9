"""Printed statements about the sample covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    CENTRED,
    GAUSSIAN,
    SUB_GAUSSIAN,
    effective_rank_samples,
)
from genbounds.bounds._bound import Bound, Constants
from genbounds.bounds._quantities import COVARIANCE_ERROR, RAW_COVARIANCE_ERROR
from genbounds.bounds._vectors import mean_norm_squared


def dimension(c: Constants, n: Any, delta: Any, d: Any, operator: Any) -> Any:
    """‖Σ‖ (2√(d/n) + 2ε + (√(d/n) + ε)²), ε = √(tail log(union/δ)/n)."""
    epsilon = np.sqrt(c["tail"] * np.log(c["union"] / delta) / n)
    edge = np.sqrt(d / n) + epsilon
    return operator * (2.0 * edge + edge**2)


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


_RANK = {"lead": 20.0, "rank": 4.0}

STATEMENTS = (
    Bound(
        id="o24.covariance-dimension",
        claim="‖Σ̂−Σ‖ ≤ ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(log(2/δ)/(2n)), Σ̂ = n⁻¹Σxxᵀ",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\Sigma\|\Bigl(2\sqrt{\tfrac dn}+2\varepsilon"
        r"+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac{1}{2n}\log\tfrac2\delta}",
        source="O24 Lemma E.6",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, CENTRED),
        quantity=RAW_COVARIANCE_ERROR,
        constants={"tail": 0.5, "union": 2.0},
        width_function=dimension,
    ),
    Bound(
        id="o24.covariance-effective-rank",
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ 20σ²‖Σ‖ √((4r(Σ)+log(1/δ))/n), σ² = max_i Σ_ii",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" 20\sigma^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}}",
        source="O24 Lemma E.7 as used in (29)",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, CENTRED, effective_rank_samples(1.0)),
        quantity=RAW_COVARIANCE_ERROR,
        constants={**_RANK, "union": 1.0},
        width_function=effective_rank_variance,
    ),
    Bound(
        id="m25.covariance-effective-rank",
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ 20κ²‖Σ‖ √((4r(Σ)+log(1/δ))/n), ‖yᵀX‖_ψ2 ≤ κ√(yᵀΣy)",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" 20\kappa^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}}",
        source="M25 Lemma 6",
        setting="gaussian-matrices",
        assumptions=(SUB_GAUSSIAN, CENTRED, effective_rank_samples(1.0)),
        quantity=RAW_COVARIANCE_ERROR,
        constants={**_RANK, "union": 1.0},
        width_function=effective_rank_psi,
        repairs="o24.covariance-sub-gaussian",
    ),
    Bound(
        id="o24.covariance",
        claim="‖Σ−Σ̂‖ ≤ 20σ²‖Σ‖√((4r(Σ)+log(3/δ))/n) + ‖μ̂−μ‖²",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" 20\sigma^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(3/\delta)}{n}} + \|\hat\mu-\mu\|^2",
        source="O24 Lemma A.2 (23)",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, effective_rank_samples(3.0)),
        quantity=COVARIANCE_ERROR,
        constants={**_RANK, "union": 3.0},
        width_function=centred_variance,
    ),
    Bound(
        id="m25.covariance",
        claim="‖Σ−Σ̂‖ ≤ 20κ²‖Σ‖√((4r(Σ)+log(3/δ))/n) + (Δ_μ)², w.p. ≥ 1−2δ/3",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" 20\kappa^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(3/\delta)}{n}} + (\Delta_\mu)^2",
        source="M25 Lemma 1 (24)",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, effective_rank_samples(3.0)),
        quantity=COVARIANCE_ERROR,
        constants={
            **_RANK,
            "union": 3.0,
            "mean_root": 8.0,
            "mean_linear": 8.0,
            "mean_union": 6.0,
        },
        width_function=centred_psi,
        failure=2.0 / 3.0,
    ),
)
