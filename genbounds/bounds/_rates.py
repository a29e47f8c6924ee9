"""Printed claims about orders of growth and comparisons: judged by fits, not by miss rates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from genbounds.bounds._bound import Assumption, Bound, Constants, Facts, Quantity
from genbounds.validation import Float


def order(c: Constants, n: Any) -> Float:
    """``n^exponent``, up to a constant that the claim leaves open."""
    return np.asarray(np.asarray(n, dtype=np.float64) ** c["exponent"])


def leading_order(c: Constants, n: Any) -> Float:
    """``lead n^exponent``, up to a constant of the distribution that the claim names."""
    return np.asarray(c["lead"] * order(c, n))


def ratio(c: Constants) -> float:
    """Largest ratio that the comparison allows."""
    return c["ratio"]


def nystrom_product(
    c: Constants, n: Any, delta: Any, landmarks: Any, tau: Any, order: Any
) -> Float:
    """√(max{1, t^{2−α}} log(union/δ) (offset + t τ² log(n)²) / n), up to a constant."""
    spectrum = c["offset"] + landmarks * np.square(tau * np.log(n))
    many = np.maximum(1.0, np.asarray(landmarks, dtype=np.float64) ** (2.0 - order))
    return np.asarray(np.sqrt(many * np.log(c["union"] / delta) * spectrum / n))


def _difference(expected_score: Any, score: Any) -> Any:
    return np.abs(expected_score - score)


def _spread(score_variance: Any) -> Any:
    return score_variance


def _compared(score_variance: Any, rival_variance: Any) -> Any:
    return score_variance / rival_variance


def _regret(regret: Any) -> Any:
    return regret


def _integral(integral: Any, mean: Any) -> Any:
    return np.abs(integral - mean)


def _any_law(facts: Facts, n: int, delta: float) -> bool:
    return True


BIAS = Quantity(name="bias", text="|E score_N − score|", function=_difference)
VARIANCE = Quantity(name="variance", text="Var score_N", function=_spread)
RATIO = Quantity(name="variance-ratio", text="variance over the rival's", function=_compared)
INTEGRAL = Quantity(name="integral", text="|I − Î_N|", function=_integral)
REGRET = Quantity(name="regret", text="Σ_t (score of the pick − best score)", function=_regret)


def _rate(
    name: str, claim: str, latex: str, source: str, quantity: Quantity, law: str, **constants: float
) -> Bound:
    return Bound(
        id=name,
        claim=claim,
        latex=latex,
        source=source,
        setting="rates",
        form="rate",
        assumptions=(Assumption(text=law, predicate=_any_law),),
        quantity=quantity,
        constants=constants,
        width_function=order if "exponent" in constants else ratio,
    )


_FEATURES = "features with four moments"
STATEMENTS = (
    _rate(
        "c20.fid-bias",
        "E FD_N = FD + K/N + O(N⁻²), K depends on the generator",
        r"\mathbb E\,\mathrm{FD}_N = \mathrm{FD}+\tfrac KN+O(N^{-2})",
        "C20 (6)",
        BIAS,
        _FEATURES,
        exponent=-1.0,
    ),
    _rate(
        "c20.fid-variance",
        "Var FD_N = K₁/N + O(N⁻²)",
        r"\operatorname{Var}\mathrm{FD}_N = \tfrac{K_1}{N}+O(N^{-2})",
        "C20 (8)",
        VARIANCE,
        _FEATURES,
        exponent=-1.0,
    ),
    replace(
        _rate(
            "c20.is-bias",
            "E log IS_N = log IS − (1/2N) Σ_j Var(p_j)/p_j + O(N⁻²)",
            r"\mathbb E\log\mathrm{IS}_N = \log\mathrm{IS}"
            r"-\tfrac1{2N}\sum_j\tfrac{\operatorname{Var}p_j}{p_j}+O(N^{-2})",
            "C20 (13), multiclass",
            BIAS,
            "posteriors on the simplex",
            exponent=-1.0,
            lead=0.5,
        ),
        width_function=leading_order,
    ),
    _rate(
        "c20.rank-flip",
        "two generators and an N exist with FD_a < FD_b but E FD_{a,N} > E FD_{b,N}",
        r"\exists\,a,b,N:\;\mathrm{FD}_a<\mathrm{FD}_b,\;"
        r"\mathbb E\,\mathrm{FD}_{a,N}>\mathbb E\,\mathrm{FD}_{b,N}",
        "C20, on (6)",
        BIAS,
        _FEATURES,
        exponent=-1.0,
    ),
    replace(
        _rate(
            "c20.fid-infinity",
            "FID∞, the regression of FD_N on 1/N at 15 sizes evenly spaced in N from 5,000 to the"
            " pool, read at 0, of subsets drawn without replacement, is effectively unbiased: at"
            " most a tenth of the pool's own bias is left",
            r"|\mathbb E\,\mathrm{FD}_\infty - \mathrm{FD}| \le \tfrac1{10}"
            r"|\mathbb E\,\mathrm{FD}_N - \mathrm{FD}|",
            "C20 Algorithm 1",
            BIAS,
            "pools of more than 5,000 samples",
            ratio=0.1,
        ),
        repairs="c20.fid-infinity-with-replacement",
    ),
    _rate(
        "c20.fid-infinity-with-replacement",
        "FID∞ as above, of subsets drawn from the pool with replacement, is effectively unbiased",
        r"|\mathbb E\,\mathrm{FD}_\infty - \mathrm{FD}| \le \tfrac1{10}"
        r"|\mathbb E\,\mathrm{FD}_N - \mathrm{FD}|",
        "C20 Section 4.3, as the text says",
        BIAS,
        "pools of more than 5,000 samples",
        ratio=0.1,
    ),
    _rate(
        "c20.spacing",
        "sizes evenly spaced in N give a better FD∞ than sizes evenly spaced in 1/N",
        r"\operatorname{MSE}(\text{even in }N) \le \operatorname{MSE}(\text{even in }1/N)",
        "C20, on extrapolation to FID∞",
        RATIO,
        _FEATURES,
        ratio=1.0,
    ),
    _rate(
        "c20.sobol",
        "scrambled Sobol points mapped to normals give FD_N and IS_N of lower variance than iid",
        r"\operatorname{Var}_{\text{Sobol}} \le \operatorname{Var}_{\text{iid}}",
        "C20 Table 1",
        RATIO,
        "generators driven by normal latent variables",
        ratio=1.0,
    ),
    _rate(
        "c20.sobol-mean",
        "scrambled Sobol points mapped to normals always give better means: E FD_N no higher and"
        " E log IS_N no lower than iid",
        r"\mathbb E\,\mathrm{FD}_N^{\text{Sobol}} \le \mathbb E\,\mathrm{FD}_N^{\text{iid}},\;"
        r"\mathbb E\log\mathrm{IS}_N^{\text{Sobol}} \ge \mathbb E\log\mathrm{IS}_N^{\text{iid}}",
        "C20 Table 1, its caption",
        BIAS,
        "generators driven by normal latent variables",
        ratio=1.0,
    ),
    _rate(
        "c20.sobol-rate",
        "scrambled Sobol points: |I − Î_N| = O((log N)^d/N) for functions of bounded variation,"
        " E Î_N = I",
        r"|I-\hat I_N| = O\bigl((\log N)^dN^{-1}\bigr),\quad \mathbb E\hat I_N = I",
        "C20 (9), the rate below it",
        INTEGRAL,
        "functions of bounded Hardy–Krause variation",
        exponent=-1.0,
    ),
    replace(
        _rate(
            "v24.nystrom-product",
            "Nyström with t points, where λ_r(K) ≤ τ and t ≥ r τ log n for some r: error"
            " O(√(max{1,t^{2−α}} log(2/δ) t τ² log(n)²/n)) w.p. ≥ 1−δ−2n⁻³",
            r"\lambda_r(K)\le\tau,\;t\ge r\tau\log n:\;"
            r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}\log\tfrac2\delta\,t\tau^2\log(n)^2}\Bigr)",
            "V24 Theorem 3(b), the main text",
            BIAS,
            "normalised kernel",
            union=2.0,
            offset=0.0,
        ),
        width_function=nystrom_product,
    ),
    replace(
        _rate(
            "v24.nystrom-proof",
            "Nyström with t points, where λ_r(K) ≤ τ and t ≥ C r log n for some r: error"
            " O(√(max{1,t^{2−α}}(log(2/δ) + t log(n)²τ²)/n)) w.p. ≥ 1−δ−2n⁻³",
            r"\lambda_r(K)\le\tau,\;t\ge Cr\log n:\;"
            r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}(\log\tfrac2\delta+t\log(n)^2\tau^2)}\Bigr)",
            "V24 Theorem 3(b), Appendix A.5",
            BIAS,
            "normalised kernel",
            exponent=-0.5,
        ),
        repairs="v24.nystrom-product",
    ),
    _rate(
        "v24.nystrom",
        "Nyström with t points, where λ_r(K) ≤ τ and t ≥ r τ log n for some r: error"
        " O(√(max{1,t^{2−α}}(log(2/δ) + t log(n)²τ²)/n)) w.p. ≥ 1−δ−2n⁻³",
        r"\lambda_r(K)\le\tau,\;t\ge r\tau\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}(\log\tfrac2\delta+t\log(n)^2\tau^2)}\Bigr)",
        "V24 Theorem 3(b), its condition with the error of Appendix A.5",
        BIAS,
        "normalised kernel",
        exponent=-0.5,
    ),
    _rate(
        "o24.fid-ucb-regret",
        "regret of FID-UCB is Õ(T^{3/4}) in the number of steps",
        r"\operatorname{Regret}(T) = \tilde O(T^{3/4})",
        "O24 Theorem 5.2",
        REGRET,
        "Gaussian features",
        exponent=0.75,
    ),
    _rate(
        "m25.fd-ucb-regret",
        "regret of FD-UCB is Õ(T^{3/4}) in the number of steps",
        r"\operatorname{Regret}(T) = \tilde O(T^{3/4})",
        "M25 Theorem 3",
        REGRET,
        "Gaussian features",
        exponent=0.75,
    ),
    _rate(
        "o24.is-ucb-regret",
        "regret of IS-UCB is Õ(√T) in the number of steps",
        r"\operatorname{Regret}(T) = \tilde O(\sqrt T)",
        "O24 Theorem 6.2",
        REGRET,
        "posteriors on the simplex",
        exponent=0.5,
    ),
    _rate(
        "m25.is-ucb-regret",
        "regret of IS-UCB is Õ(√T) in the number of steps",
        r"\operatorname{Regret}(T) = \tilde O(\sqrt T)",
        "M25 Theorem 6",
        REGRET,
        "posteriors on the simplex",
        exponent=0.5,
    ),
)
