"""Steps of the papers' proofs that are printed without a name, each a statement of its own.

What bounds the number of visits by the horizon, what a burn-in changes, how the covariance splits,
and the pieces from which bonuses are put together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    CENTRED,
    DEFINITE_REFERENCE,
    GAUSSIAN,
    NORM_BOUNDED,
    POSTERIORS,
    at_least,
    effective_rank_samples,
)
from genbounds.bounds._bound import Assumption, Bound, Constants, Facts, Quantity
from genbounds.bounds._deterministic import POWER, PSD, VISITS, clip, entropy_sum, power_picks
from genbounds.bounds._frechet import DISTANCE_ERROR, mean_and_root_terms
from genbounds.bounds._inception import LOG_CLASSES, MAURER_PONTIL, marginal_class
from genbounds.bounds._matrices import dimension, effective_rank_variance
from genbounds.bounds._quantities import COVARIANCE_ERROR, RAW_COVARIANCE_ERROR, operator_norm
from genbounds.validation import Float


def samples_power(picks: Float, batch: Any, alpha: Any) -> Float:
    """Σ_g n_g(T)^{1−α}, n_g(T) = b N_g(T)."""
    return picks_power(np.asarray(batch)[..., None] * picks, alpha)


def picks_power(picks: Float, alpha: Any) -> Float:
    """Σ_g N_g(T)^{1−α}."""
    return np.asarray((picks ** (1.0 - np.asarray(alpha)[..., None])).sum(axis=-1))


def samples_log(picks: Float, batch: Any) -> Float:
    """Σ_g log n_g(T)."""
    return picks_log(np.asarray(batch)[..., None] * picks)


def picks_log(picks: Float) -> Float:
    """Σ_g log N_g(T)."""
    return np.asarray(np.log(picks).sum(axis=-1))


def horizon_power(c: Constants, picks: Float, alpha: Any) -> Float:
    """Evaluate factor G^α T^{1−α}, T = Σ_g N_g(T)."""
    order = np.asarray(alpha)
    share = np.asarray(picks).shape[-1] ** order * picks.sum(axis=-1) ** (1.0 - order)
    return np.asarray(c["factor"] * share)


def horizon_log(c: Constants, picks: Float) -> Float:
    """Evaluate factor G log T."""
    return np.asarray(c["factor"] * picks.shape[-1] * np.log(picks.sum(axis=-1)))


def sampled_power(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """Evaluate factor G^α (bT)^{1−α}."""
    return horizon_power(c, np.asarray(batch)[..., None] * picks, alpha)


def sampled_log(c: Constants, picks: Float, batch: Any) -> Float:
    """Evaluate factor G log(bT)."""
    return horizon_log(c, np.asarray(batch)[..., None] * picks)


def visits_from(picks: Float, batch: Any, burn_in: Any, alpha: Any) -> Float:
    """Σ_t n_t^{−α}: generator g holds N + b (k−1) samples before its k-th batch."""
    steps = np.arange(0.0, float(np.max(picks)))
    held = np.asarray(burn_in)[..., None, None] + np.asarray(batch)[..., None, None] * steps
    terms = held ** -np.asarray(alpha)[..., None, None]
    return np.asarray(np.where(steps < picks[..., None], terms, 0.0).sum(axis=(-2, -1)))


def _parts(factor: Float, other_factor: Float) -> tuple[Float, Float]:
    """Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ and μ̂ − μ; the columns of `other_factor` are the x_i − μ."""
    n = other_factor.shape[-1]
    raw = other_factor @ np.swapaxes(other_factor, -1, -2) / n
    return factor @ np.swapaxes(factor, -1, -2) - raw, other_factor.mean(axis=-1)


def split_error(factor: Float, other_factor: Float) -> Float:
    """‖Σ − Σ̂‖."""
    gap, mean = _parts(factor, other_factor)
    return np.asarray(operator_norm(gap + mean[..., :, None] * mean[..., None, :]))


def split(c: Constants, factor: Float, other_factor: Float) -> Float:
    """‖Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ‖ + factor ‖μ−μ̂‖²."""
    gap, mean = _parts(factor, other_factor)
    return np.asarray(operator_norm(gap) + c["factor"] * np.square(mean).sum(axis=-1))


def naive_covariance(
    c: Constants, n: Any, delta: Any, d: Any, operator: Any, mean_error_norm: Any
) -> Any:
    """‖μ̂−μ‖² + `dimension`."""
    return np.square(mean_error_norm) + dimension(c, n, delta, d, operator)


def effective_rank_operator(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any
) -> Any:
    """Evaluate lead ‖Σ‖² √((rank r + log(union/δ))/n): a Gaussian has σ² = ‖Σ‖."""
    return effective_rank_variance(c, n, delta, operator, effective_rank, operator)


def _entropy(marginal: Float) -> Float:
    return entropy_sum(marginal)


def optimistic_entropy(
    c: Constants, n: Any, delta: Any, d: Any, mean_posterior: Float, posterior_variance: Float
) -> Float:
    """ℰ(Clip_{1/e}(p̃, ε)) with ε of `marginal_class`."""
    epsilon = marginal_class(c, n, delta, d, posterior_variance)
    return entropy_sum(clip(mean_posterior, epsilon))


def bounded_decomposition(
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
    return moved + c["range"] * radius**2 * np.sqrt(np.log(c["union"] / delta) / (2.0 * n))


def _burnt_in(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts["burn_in"] >= 1)


def _a_batch_burnt_in(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts["burn_in"] >= facts["batch"])


def _deterministic(
    name: str, claim: str, latex: str, source: str, left: Quantity, width: Any, **more: Any
) -> Bound:
    return Bound(
        id=name,
        claim=claim,
        latex=latex,
        source=source,
        form="deterministic",
        quantity=left,
        width_function=width,
        **{"setting": "visits", "constants": {"factor": 1.0}, "assumptions": (VISITS,)} | more,
    )


_SAMPLES_POWER = Quantity(
    name="samples-power", text="Σ_g n_g(T)^{1−α}", function=samples_power
)  # fmt: skip
_PICKS_POWER = Quantity(name="picks-power", text="Σ_g N_g(T)^{1−α}", function=picks_power)
_SAMPLES_LOG = Quantity(name="samples-log", text="Σ_g log n_g(T)", function=samples_log)
_PICKS_LOG = Quantity(name="picks-log", text="Σ_g log N_g(T)", function=picks_log)
_VISITS_FROM = Quantity(
    name="visits-from", text="Σ_t n_t^{−α}, n_t = N + b(k−1)", function=visits_from
)
_WITH_POWER = (VISITS, POWER)
_BURN_IN = Assumption(text="burn-in N ≥ 1", predicate=_burnt_in)
_LONG_BURN_IN = Assumption(text="burn-in N ≥ b", predicate=_a_batch_burnt_in)
_RANK = {"lead": 20.0, "rank": 4.0, "union": 1.0}

STATEMENTS = (
    _deterministic(
        "o24.visit-total-power",
        "Σ_g n_g(T)^{1−α} ≤ G^α T^{1−α}, n_g(T) images",
        r"\sum_g n_g(T)^{1-\alpha} \le G^\alpha T^{1-\alpha}",
        "O24 Appendix A.2, second inequality",
        _SAMPLES_POWER,
        horizon_power,
        assumptions=_WITH_POWER,
    ),
    _deterministic(
        "o24.visit-total-log",
        "Σ_g log n_g(T) ≤ G log T, n_g(T) images",
        r"\sum_g\log n_g(T) \le G\log T",
        "O24 Appendix A.2, second inequality",
        _SAMPLES_LOG,
        horizon_log,
    ),
    _deterministic(
        "m25.visit-total-power",
        "Σ_g N_g(T)^{1−α} ≤ G^α T^{1−α}, N_g(T) picks",
        r"\sum_g N_g(T)^{1-\alpha} \le G^\alpha T^{1-\alpha}",
        "M25 Appendix A.2, second inequality",
        _PICKS_POWER,
        horizon_power,
        assumptions=_WITH_POWER,
    ),
    _deterministic(
        "m25.visit-total-log",
        "Σ_g log N_g(T) ≤ G log T, N_g(T) picks",
        r"\sum_g\log N_g(T) \le G\log T",
        "M25 Appendix A.2, second inequality",
        _PICKS_LOG,
        horizon_log,
    ),
    _deterministic(
        "m25.visit-sum-power-as-counted",
        "Σ_t n_t^{−α} ≤ (2^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}, n_t images at the beginning of step t",
        r"\sum_t n_t^{-\alpha} \le"
        r" \tfrac{2^\alpha}{b^\alpha(1-\alpha)}\sum_g N_g(T)^{1-\alpha},\quad n_t=N+b(k-1)",
        "M25 Appendix A.2, n_t as that proof defines it",
        _VISITS_FROM,
        power_picks,
        setting="visits-burn-in",
        constants={"base": 2.0},
        assumptions=(*_WITH_POWER, _BURN_IN),
    ),
    _deterministic(
        "m25.covariance-split",
        "‖Σ−Σ̂‖ ≤ ‖Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ‖ + ‖μ−μ̂‖²",
        r"\|\Sigma-\hat\Sigma\| \le"
        r" \Bigl\|\Sigma-\tfrac1n\sum_i(x_i-\mu)(x_i-\mu)^\top\Bigr\|+\|\mu-\hat\mu\|^2",
        "M25 (25), O24 (28)",
        Quantity(name="split-error", text="‖Σ−Σ̂‖", function=split_error),
        split,
        setting="factor-pair",
        assumptions=(PSD,),
    ),
    Bound(
        id="o24.naive-covariance",
        claim="‖Σ̂−Σ‖ ≤ ‖μ̂−μ‖² + ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(log(2/δ)/(2n))",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\hat\mu-\mu\|^2+\|\Sigma\|\Bigl(2\sqrt{\tfrac dn}"
        r"+2\varepsilon+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac{1}{2n}\log\tfrac2\delta}",
        source="O24 Appendix D.3",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN,),
        quantity=COVARIANCE_ERROR,
        constants={"tail": 0.5, "union": 2.0},
        width_function=naive_covariance,
    ),
    Bound(
        id="o24.covariance-sub-gaussian",
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ 20σ²‖Σ‖ √((4r(Σ)+log(1/δ))/n), X ∈ SG(σ²): σ² = ‖Σ‖ if Gaussian",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" 20\sigma^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}},"
        r"\quad\sigma^2=\|\Sigma\|",
        source="O24 Lemma E.7 as printed",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, CENTRED, effective_rank_samples(1.0)),
        quantity=RAW_COVARIANCE_ERROR,
        constants=_RANK,
        width_function=effective_rank_operator,
    ),
    Bound(
        id="m25.optimistic-entropy",
        claim="H(p) ≤ ℰ(Clip_{1/e}(p̃, ε)), ε_j of m25.marginal-class, w.p. ≥ 1−δ/2",
        latex=r"H(p) \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))",
        source="M25 Lemma 10, O24 Lemma B.2",
        setting="posteriors",
        form="plug-in",
        assumptions=(POSTERIORS, at_least(2)),
        quantity=Quantity(name="marginal-entropy", text="H(p)", function=_entropy),
        constants=MAURER_PONTIL,
        width_function=optimistic_entropy,
        failure=0.5,
        limit=LOG_CLASSES,
    ),
    Bound(
        id="m25.fd-bounded-decomposition",
        claim="|FD_n − FD| ≤ 2(‖μ−μ̂‖ + ‖μ̂−μ_r‖)‖μ̂−μ‖ + Tr[Σ_r^{1/2}]√(8‖Σ−Σ̂‖)"
        " + 4C²√(log(3/δ)/(2n)), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le 2(\|\mu-\hat\mu\|+\|\hat\mu-\mu_r\|)\|\hat\mu-\mu\|"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\|\Sigma-\hat\Sigma\|}"
        r"+4C^2\sqrt{\tfrac{1}{2n}\log\tfrac3\delta}",
        source="M25 (27)",
        setting="frechet-bounded",
        assumptions=(NORM_BOUNDED, DEFINITE_REFERENCE),
        quantity=DISTANCE_ERROR,
        constants={"perturbation": 8.0, "range": 4.0, "union": 3.0},
        width_function=bounded_decomposition,
        failure=1.0 / 3.0,
    ),
)

REPAIRED = (
    _deterministic(
        "repaired.visit-total-power",
        "Σ_g n_g(T)^{1−α} ≤ G^α (bT)^{1−α}",
        r"\sum_g n_g(T)^{1-\alpha} \le G^\alpha (bT)^{1-\alpha}",
        "Jensen; Σ_g n_g(T) = bT",
        _SAMPLES_POWER,
        sampled_power,
        assumptions=_WITH_POWER,
        repairs="o24.visit-total-power",
    ),
    _deterministic(
        "repaired.visit-total-log",
        "Σ_g log n_g(T) ≤ G log(bT)",
        r"\sum_g\log n_g(T) \le G\log(bT)",
        "n_g(T) ≤ bT",
        _SAMPLES_LOG,
        sampled_log,
        repairs="o24.visit-total-log",
    ),
    _deterministic(
        "repaired.visit-sum-power-burn-in",
        "Σ_t n_t^{−α} ≤ (1/(b^α(1−α))) Σ_g N_g(T)^{1−α}, n_t = N + b(k−1), N ≥ b",
        r"\sum_t n_t^{-\alpha} \le \tfrac{1}{b^\alpha(1-\alpha)}\sum_g N_g(T)^{1-\alpha},\quad"
        r" N\ge b",
        "N + b(k−1) ≥ bk; 1 + 2^{−α} + … + N^{−α} ≤ N^{1−α}/(1−α)",
        _VISITS_FROM,
        power_picks,
        setting="visits-long-burn-in",
        constants={"base": 1.0},
        assumptions=(*_WITH_POWER, _LONG_BURN_IN),
        repairs="m25.visit-sum-power-as-counted",
    ),
    Bound(
        id="repaired.naive-covariance",
        claim="‖Σ̂−Σ‖ ≤ ‖μ̂−μ‖² + ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(2 log(2/δ)/n)",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\hat\mu-\mu\|^2+\|\Sigma\|\Bigl(2\sqrt{\tfrac dn}"
        r"+2\varepsilon+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac2n\log\tfrac2\delta}",
        source="m25.covariance-split with Wainwright (2019), Theorem 6.1",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN,),
        quantity=COVARIANCE_ERROR,
        constants={"tail": 2.0, "union": 2.0},
        width_function=naive_covariance,
        repairs="o24.naive-covariance",
    ),
)
