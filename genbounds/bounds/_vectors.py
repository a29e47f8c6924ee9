"""Printed statements about the sample mean of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import CENTRED, GAUSSIAN, NORM_BOUNDED
from genbounds.bounds._bound import Assumption, Bound, Constants, Facts
from genbounds.bounds._quantities import MEAN_NORM, MEAN_NORM_SQUARED, NORM_RANGE


def vector_bernstein(c: Constants, n: Any, delta: Any, radius: Any) -> Any:
    """Radius at which exp(−nε²/(factor c²) + offset) equals δ."""
    return radius * np.sqrt(c["factor"] / n * (np.log(1.0 / delta) + c["offset"]))


def _bernstein_range(facts: Facts, n: int, delta: float) -> bool:
    return bool(8.0 * (np.log(1.0 / delta) + 0.25) <= n)


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


def bounded_mean_norm(c: Constants, n: Any, delta: Any, d: Any, radius: Any, trace: Any) -> Any:
    """√(factor d C² log(union d/δ)/n + Tr Σ/n), the printed Δ₁."""
    log = np.log(c["union"] * d / delta)
    return np.sqrt(c["factor"] * d * radius**2 * log / n + trace / n)


STATEMENTS = (
    Bound(
        id="v24.vector-bernstein",
        claim="P(‖z̄‖ ≥ ε) ≤ exp(−nε²/(8c²) + 1/4) for 0 ≤ ε ≤ c",
        latex=r"\mathbb{P}(\|\bar z\|\ge\varepsilon) \le"
        r" \exp\Bigl(-\tfrac{n\varepsilon^2}{8c^2}+\tfrac14\Bigr),\quad 0\le\varepsilon\le c",
        source="V24 Lemma 1",
        setting="bounded-vectors",
        assumptions=(
            NORM_BOUNDED,
            CENTRED,
            Assumption(text="ε ≤ c, that is 8 (log(1/δ) + 1/4) ≤ n", predicate=_bernstein_range),
        ),
        quantity=MEAN_NORM,
        constants={"factor": 8.0, "offset": 0.25},
        width_function=vector_bernstein,
        limit=NORM_RANGE,
    ),
    Bound(
        id="o24.naive-mean-norm",
        claim="‖μ̂−μ‖ ≤ σ √((d/n) log(2d/δ)), σ² = max_i Σ_ii",
        latex=r"\|\hat\mu-\mu\| \le \sigma\sqrt{\tfrac dn\log\tfrac{2d}{\delta}},"
        r"\quad \sigma^2=\max_i\Sigma_{ii}",
        source="O24 Appendix D.3",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM,
        constants={"factor": 1.0, "union": 2.0},
        width_function=naive_mean_norm,
    ),
    Bound(
        id="o24.mean-norm",
        claim="‖μ̂−μ‖ ≤ √(2ℐ/n) · (32 log(24d/δ))^{1/4}, ℐ = Σ_jl |Σ_jl|, w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac{2\mathcal I}{n}}"
        r"\Bigl(32\log\tfrac{24d}{\delta}\Bigr)^{1/4},\quad \mathcal I=\sum_{jl}|\Sigma_{jl}|",
        source="O24 Lemma A.2 (22)",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM,
        constants={"lead": 2.0, "inner": 32.0, "union": 24.0, "power": 0.25},
        width_function=absolute_sum_mean_norm,
        failure=1.0 / 3.0,
    ),
    Bound(
        id="m25.mean-norm",
        claim="‖μ̂−μ‖² ≤ (1/n)(√(8 Tr[Σ²] log(6/δ)) + 8‖Σ‖ log(6/δ)), w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\|^2 \le \tfrac1n\Bigl("
        r"\sqrt{8\operatorname{Tr}[\Sigma^2]\log\tfrac6\delta}"
        r" + 8\|\Sigma\|\log\tfrac6\delta\Bigr)",
        source="M25 Lemma 1 (23)",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM_SQUARED,
        constants={"root": 8.0, "linear": 8.0, "union": 6.0},
        width_function=mean_norm_squared,
        failure=1.0 / 3.0,
    ),
    Bound(
        id="m25.bounded-mean-norm",
        claim="‖μ̂−μ‖ ≤ √(2dC² log(6d/δ)/n + Tr Σ/n), w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac{2dC^2}{n}\log\tfrac{6d}{\delta}"
        r" + \tfrac{\operatorname{Tr}\Sigma}{n}}",
        source="M25 (28)",
        setting="bounded-vectors",
        assumptions=(NORM_BOUNDED,),
        quantity=MEAN_NORM,
        constants={"factor": 2.0, "union": 6.0},
        width_function=bounded_mean_norm,
        failure=1.0 / 3.0,
        limit=NORM_RANGE,
    ),
)
