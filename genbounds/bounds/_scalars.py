"""Printed statements about scalar means: Gaussian, bounded, chi-square, sub-exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    CENTRED,
    GAUSSIAN,
    SCALAR,
    STANDARD_NORMAL,
    SUB_EXPONENTIAL,
    UNIT_INTERVAL,
    at_least,
)
from genbounds.bounds._bound import Assumption, Bound, Constants, Facts, Quantity
from genbounds.bounds._quantities import (
    MEAN_ERROR,
    MEAN_PRODUCT,
    MEAN_SHORTFALL,
    SQUARE_ERROR,
    SQUARED_MEAN,
    SQUARED_NORM_ERROR,
    UNIT_RANGE,
)
from genbounds.validation import Float


def gaussian_mean(c: Constants, n: Any, delta: Any, variance: Any) -> Any:
    """√(factor σ² log(union/δ) / n)."""
    return np.sqrt(c["factor"] * variance / n * np.log(c["union"] / delta))


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


def chi_square_mean(c: Constants, n: Any, delta: Any) -> Any:
    """√(factor log(union/δ) / n)."""
    return np.sqrt(c["factor"] / n * np.log(c["union"] / delta))


def squared_mean(c: Constants, n: Any, delta: Any) -> Any:
    """√(factor log(union/δ)) / n."""
    return np.sqrt(c["factor"] * np.log(c["union"] / delta)) / n


def sub_exponential_mean(
    c: Constants, n: Any, delta: Any, sub_exponential_nu: Any, sub_exponential_alpha: Any
) -> Any:
    """max{√(root ν² log(union/δ) / n), linear α log(union/δ) / n}."""
    log = np.log(c["union"] / delta)
    return np.maximum(
        np.sqrt(c["root"] * sub_exponential_nu**2 * log / n),
        c["linear"] * sub_exponential_alpha * log / n,
    )


def weighted_chi_square(c: Constants, n: Any, delta: Any, trace_square: Any, operator: Any) -> Any:
    """max{√(root Tr Σ² log(union/δ) / n), linear ‖Σ‖ log(union/δ) / n}."""
    log = np.log(c["union"] / delta)
    return np.maximum(np.sqrt(c["root"] * trace_square * log / n), c["linear"] * operator * log / n)


def _argument(weights: Float, scales: Float, position: Any) -> Float:
    """Return s: position / max_i w_i α_i, α_i = 2 `scales`; `position` where that is 0."""
    edge = 2.0 * (weights * scales).max(axis=-1)
    return np.asarray(position / np.where(edge > 0.0, edge, 1.0))


def log_moment(
    weights: Float, shapes: Float, scales: Float, deviations: Float, position: Any
) -> Float:
    """``log E exp(s Σ w_i (X_i − μ_i))`` of X_i = Gamma(shape, scale) + N(0, deviation²)."""
    s = _argument(weights, scales, position)[..., None]
    x = s * weights * scales
    # −log(1−x) − x, without losing its digits where x is small.
    series = x * x * (0.5 + x * (1.0 / 3.0 + x * (0.25 + x * 0.2)))
    gamma = np.where(np.abs(x) < 1e-3, series, -np.log1p(-x) - x)
    return np.asarray((shapes * gamma + 0.5 * np.square(s * weights * deviations)).sum(axis=-1))


def sub_exponential_sum(
    c: Constants, weights: Float, shapes: Float, scales: Float, deviations: Float, position: Any
) -> Float:
    """``factor s²/2 Σ w_i² ν_i²``, ν² = 2 shape scale² + deviation²."""
    s = _argument(weights, scales, position)
    nu_squared = 2.0 * shapes * np.square(scales) + np.square(deviations)
    return np.asarray(0.5 * c["factor"] * s**2 * (np.square(weights) * nu_squared).sum(axis=-1))


def _sums(facts: Facts, n: int, delta: float) -> bool:
    given = (facts[name] for name in ("weights", "shapes", "scales", "deviations"))
    return all(bool((value >= 0.0).all()) for value in given) and bool(abs(facts["position"]) < 1.0)


STATEMENTS = (
    Bound(
        id="o24.gaussian-mean",
        claim="|X̄−μ| ≤ √(σ²/(2n) · log(2/δ))",
        latex=r"|\bar X-\mu| \le \sqrt{\tfrac{\sigma^2}{2n}\log\tfrac{2}{\delta}}",
        source="O24 Lemma E.1",
        setting="gaussian-scalar",
        assumptions=(GAUSSIAN, SCALAR),
        quantity=MEAN_ERROR,
        constants={"factor": 0.5, "union": 2.0},
        width_function=gaussian_mean,
    ),
    Bound(
        id="o24.hoeffding",
        claim="E Z − Z̄ ≤ √(log(1/δ)/(2n))",
        latex=r"\mathbb{E}Z-\bar Z \le \sqrt{\tfrac{1}{2n}\log\tfrac{1}{\delta}}",
        source="O24 Lemma E.2",
        setting="unit-interval",
        assumptions=(UNIT_INTERVAL,),
        quantity=MEAN_SHORTFALL,
        constants={"factor": 0.5},
        width_function=hoeffding,
        limit=UNIT_RANGE,
    ),
    Bound(
        id="o24.bennett",
        claim="E Z − Z̄ ≤ √(2 Var(Z) log(1/δ)/n) + log(1/δ)/(3n)",
        latex=r"\mathbb{E}Z-\bar Z \le \sqrt{\tfrac{2\operatorname{Var}(Z)}{n}\log\tfrac1\delta}"
        r" + \tfrac{1}{3n}\log\tfrac1\delta",
        source="O24 Lemma E.3",
        setting="unit-interval",
        assumptions=(UNIT_INTERVAL,),
        quantity=MEAN_SHORTFALL,
        constants={"root": 2.0, "linear": 1.0 / 3.0},
        width_function=bennett,
        limit=UNIT_RANGE,
    ),
    Bound(
        id="m25.empirical-bernstein",
        claim="E Z − Z̄ ≤ √(2 V_n log(2/δ)/n) + 7 log(2/δ)/(3(n−1))",
        latex=r"\mathbb{E}Z-\bar Z \le \sqrt{\tfrac{2V_n}{n}\log\tfrac2\delta}"
        r" + \tfrac{7}{3(n-1)}\log\tfrac2\delta",
        source="M25 Lemma 12, O24 Lemma E.4 (Maurer & Pontil 2009, Theorem 4)",
        setting="unit-interval",
        form="plug-in",
        assumptions=(UNIT_INTERVAL, at_least(2)),
        quantity=MEAN_SHORTFALL,
        constants={"root": 2.0, "union": 2.0, "linear": 7.0 / 3.0},
        width_function=empirical_bernstein,
        limit=UNIT_RANGE,
    ),
    Bound(
        id="o24.chi-square-mean",
        claim="|n⁻¹ΣZ_i² − 1| ≤ √((8/n) log(2/δ))",
        latex=r"\Bigl|\tfrac1n\sum_i Z_i^2-1\Bigr| \le \sqrt{\tfrac8n\log\tfrac2\delta}",
        source="O24 Lemma E.5",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=SQUARE_ERROR,
        constants={"factor": 8.0, "union": 2.0},
        width_function=chi_square_mean,
    ),
    Bound(
        id="o24.squared-mean",
        claim="(n⁻¹Σz_i)² ≤ √((32/n²) log(2/δ))",
        latex=r"\Bigl(\tfrac1n\sum_i z_i\Bigr)^2 \le \sqrt{\tfrac{32}{n^2}\log\tfrac2\delta}",
        source="O24 Lemma E.10",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=SQUARED_MEAN,
        constants={"factor": 32.0, "union": 2.0},
        width_function=squared_mean,
    ),
    Bound(
        id="o24.product-of-means",
        claim="|z̄·ū| < (1/n) √(8 log(4/δ))",
        latex=r"|\bar z\,\bar u| < \tfrac1n\sqrt{8\log\tfrac4\delta}",
        source="O24 Lemma E.11",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=MEAN_PRODUCT,
        constants={"factor": 8.0, "union": 4.0},
        width_function=squared_mean,
    ),
    Bound(
        id="m25.sub-exponential-mean",
        claim="|X̄ − E X| ≤ max{√(2ν² log(2/δ)/n), 2α log(2/δ)/n}",
        latex=r"|\bar X-\mathbb{E}X| \le \max\Bigl\{\sqrt{\tfrac{2\nu^2}{n}\log\tfrac2\delta},"
        r"\;\tfrac{2\alpha}{n}\log\tfrac2\delta\Bigr\}",
        source="M25 Lemma 5",
        setting="sub-exponential",
        assumptions=(SUB_EXPONENTIAL,),
        quantity=MEAN_ERROR,
        constants={"root": 2.0, "linear": 2.0, "union": 2.0},
        width_function=sub_exponential_mean,
    ),
    Bound(
        id="m25.sub-exponential-sum",
        claim="X_i ∈ SE(ν_i, α_i) independent, w_i ≥ 0: Σw_iX_i ∈ SE(√Σw_i²ν_i², max w_iα_i), that"
        " is log E exp(s Σw_i(X_i−μ_i)) ≤ (s²/2) Σw_i²ν_i² for |s| < 1/max w_iα_i",
        latex=r"\sum_iw_iX_i \in \mathrm{SE}\Bigl(\sqrt{\sum_iw_i^2\nu_i^2},"
        r"\;\max_iw_i\alpha_i\Bigr)",
        source="M25 Lemma 3",
        setting="independent-sums",
        form="deterministic",
        assumptions=(
            Assumption(
                text="X_i = Gamma(k_i, θ_i) + N(0, σ_i²) in SE(√(2k_iθ_i²+σ_i²), 2θ_i), w_i ≥ 0, "
                "|s| < 1/max w_iα_i",
                predicate=_sums,
            ),
        ),
        quantity=Quantity(
            name="log-moment", text="log E exp(s Σw_i(X_i−μ_i))", function=log_moment
        ),
        constants={"factor": 1.0},
        width_function=sub_exponential_sum,
    ),
    Bound(
        id="m25.weighted-chi-square",
        claim="|n⁻¹Σ‖X_i‖² − Tr Σ| ≤ max{√(8 Tr[Σ²] log(2/δ)/n), 8‖Σ‖ log(2/δ)/n}",
        latex=r"\Bigl|\tfrac1n\sum_i\|X_i\|^2-\operatorname{Tr}\Sigma\Bigr| \le"
        r" \max\Bigl\{\sqrt{\tfrac{8\operatorname{Tr}\Sigma^2}{n}\log\tfrac2\delta},"
        r"\;\tfrac{8\|\Sigma\|}{n}\log\tfrac2\delta\Bigr\}",
        source="M25 Lemma 4",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN, CENTRED),
        quantity=SQUARED_NORM_ERROR,
        constants={"root": 8.0, "linear": 8.0, "union": 2.0},
        width_function=weighted_chi_square,
    ),
)
