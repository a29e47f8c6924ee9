"""Statements that hold where printed ones do not; derivations in docs/bounds.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    CENTRED,
    GAUSSIAN,
    SCALAR,
    STANDARD_NORMAL,
    effective_rank_samples,
)
from genbounds.bounds._bound import Bound, Constants
from genbounds.bounds._deterministic import HARMONIC, VISITS
from genbounds.bounds._frechet import DISTANCE_ERROR, DISTANCE_EXCESS, DISTANCE_RANGE
from genbounds.bounds._matrices import dimension, effective_rank_psi
from genbounds.bounds._quantities import (
    COVARIANCE_ERROR,
    MEAN_ERROR,
    MEAN_NORM,
    MEAN_NORM_SQUARED,
    MEAN_PRODUCT,
    RAW_COVARIANCE_ERROR,
    SQUARE_ERROR,
    SQUARED_MEAN,
    SQUARED_NORM_ERROR,
)
from genbounds.bounds._scalars import gaussian_mean
from genbounds.bounds._steps import REPAIRED
from genbounds.bounds._tails import normal_product_tail, weighted_chi_square_quantile
from genbounds.bounds._vectors import naive_mean_norm


def normal_quantile(c: Constants, n: Any, delta: Any, variance: Any) -> Any:
    """Take the normal quantile at δ/sides of √(σ²/n)."""
    from scipy.special import ndtri

    return -ndtri(delta / c["sides"]) * np.sqrt(variance / n)


def laurent_massart_mean(c: Constants, n: Any, delta: Any) -> Any:
    """``root √(L/n)`` + linear L/n, L = log(union/δ)."""
    log = np.log(c["union"] / delta)
    return c["root"] * np.sqrt(log / n) + c["linear"] * log / n


def laurent_massart_norms(
    c: Constants, n: Any, delta: Any, trace_square: Any, operator: Any
) -> Any:
    """``root`` √(Tr[Σ²] L/n) + linear ‖Σ‖ L/n, L = log(union/δ)."""
    log = np.log(c["union"] / delta)
    return c["root"] * np.sqrt(trace_square * log / n) + c["linear"] * operator * log / n


def gaussian_square(c: Constants, n: Any, delta: Any) -> Any:
    """``factor log(union/δ) / n``."""
    return c["factor"] * np.log(c["union"] / delta) / n


def product_quantile(c: Constants, n: Any, delta: Any) -> Any:
    """Threshold that |z u|/n exceeds with probability `share` δ, by root search."""
    from scipy.optimize import brentq

    def one(target: float) -> float:
        # P(|zu| > x) ≤ 2 e^{-x}, so the quantile lies below log(2/δ).
        high = np.log(2.0 / target) + 1.0
        return float(brentq(lambda x: np.log(normal_product_tail(x) / target), 0.0, high))

    targets = np.asarray(c["share"] * np.asarray(delta, dtype=np.float64))
    quantiles = np.array([one(value) for value in targets.ravel()]).reshape(targets.shape)
    return quantiles / n


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
    targets = np.asarray(c["share"] * np.asarray(delta, dtype=np.float64))
    flat = [weighted_chi_square_quantile(float(value), eigenvalues) for value in targets.ravel()]
    return np.sqrt(np.array(flat).reshape(targets.shape) / n)


def effective_rank_gaussian(
    c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any
) -> Any:
    """``lead κ²‖Σ‖ √((rank r(Σ) + log(union/δ))/n)`` with κ² = 8/3, that of a Gaussian."""
    return effective_rank_psi(c, n, delta, operator, effective_rank, c["kappa_squared"] ** 0.5)


def centred_covariance(
    c: Constants,
    n: Any,
    delta: Any,
    trace: Any,
    trace_square: Any,
    operator: Any,
    effective_rank: Any,
) -> Any:
    """`effective_rank_gaussian` + `laurent_massart_mean_norm`, which bounds ‖μ̂−μ‖²."""
    mean = c.part("mean", union=c["union"])
    first = effective_rank_gaussian(c, n, delta, operator, effective_rank)
    return first + laurent_massart_mean_norm(mean, n, delta, trace, trace_square, operator)


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
    """Bonus but for the covariance width: gap, trace and root terms."""
    log = np.log(c["union"] / delta)
    gap = 2.0 * mean_gap * np.sqrt(c["tail"] * operator * log / n)
    trace = c["mean_root"] * np.sqrt(trace_square * log / n) + c["mean_linear"] * operator * log / n
    return gap + trace + c["perturbation"] * root_trace * np.sqrt(covariance)


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
    covariance = centred_covariance(c, n, delta, trace, trace_square, operator, effective_rank)
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
    covariance = dimension(raw, n, delta, d, operator)
    covariance = covariance + laurent_massart_mean_norm(
        mean, n, delta, trace, trace_square, operator
    )
    return _distance_terms(
        c, n, delta, mean_gap, trace_square, operator, reference_root_trace, covariance
    )


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


def visits_by_picks(c: Constants, picks: Any, batch: Any) -> Any:
    """Sum (offset + log N_g(T))/b over g."""
    return (c["offset"] + np.log(picks)).sum(axis=-1) / batch


_EFFECTIVE_RANK = {"lead": 20.0, "kappa_squared": 8.0 / 3.0, "rank": 4.0}
_MEAN = {"mean_root": 2.0, "mean_linear": 2.0}

STATEMENTS = (
    Bound(
        id="repaired.gaussian-mean",
        claim="|X̄−μ| ≤ √(2σ² log(2/δ)/n)",
        latex=r"|\bar X-\mu| \le \sqrt{\tfrac{2\sigma^2}{n}\log\tfrac2\delta}",
        source="Chernoff; e.g. Wainwright (2019), High-Dimensional Statistics, (2.10)",
        setting="gaussian-scalar",
        assumptions=(GAUSSIAN, SCALAR),
        quantity=MEAN_ERROR,
        constants={"factor": 2.0, "union": 2.0},
        width_function=gaussian_mean,
        repairs="o24.gaussian-mean",
    ),
    Bound(
        id="repaired.gaussian-mean-exact",
        claim="|X̄−μ| ≤ z_{1−δ/2} σ/√n, with equality in probability",
        latex=r"|\bar X-\mu| \le z_{1-\delta/2}\,\sigma/\sqrt n",
        source="The distribution of X̄ itself",
        setting="gaussian-scalar",
        assumptions=(GAUSSIAN, SCALAR),
        quantity=MEAN_ERROR,
        constants={"sides": 2.0},
        width_function=normal_quantile,
        repairs="o24.gaussian-mean",
    ),
    Bound(
        id="repaired.chi-square-mean",
        claim="|n⁻¹ΣZ_i² − 1| ≤ 2√(L/n) + 2L/n, L = log(2/δ)",
        latex=r"\Bigl|\tfrac1n\sum_i Z_i^2-1\Bigr| \le 2\sqrt{\tfrac Ln}+\tfrac{2L}{n},"
        r"\quad L=\log\tfrac2\delta",
        source="Laurent & Massart (2000), Lemma 1",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=SQUARE_ERROR,
        constants={"root": 2.0, "linear": 2.0, "union": 2.0},
        width_function=laurent_massart_mean,
        repairs="o24.chi-square-mean",
    ),
    Bound(
        id="repaired.squared-mean",
        claim="(n⁻¹Σz_i)² ≤ 2 log(2/δ)/n",
        latex=r"\Bigl(\tfrac1n\sum_i z_i\Bigr)^2 \le \tfrac2n\log\tfrac2\delta",
        source="Chernoff for √n z̄ ~ N(0, 1), squared",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=SQUARED_MEAN,
        constants={"factor": 2.0, "union": 2.0},
        width_function=gaussian_square,
        repairs="o24.squared-mean",
    ),
    Bound(
        id="repaired.product-of-means",
        claim="|z̄·ū| ≤ log(2/δ)/n",
        latex=r"|\bar z\,\bar u| \le \tfrac1n\log\tfrac2\delta",
        source="zu = (a²−b²)/2 with independent standard normals a, b; P(a² > 2x) ≤ e^(−x)",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=MEAN_PRODUCT,
        constants={"factor": 1.0, "union": 2.0},
        width_function=gaussian_square,
        repairs="o24.product-of-means",
    ),
    Bound(
        id="repaired.product-of-means-exact",
        claim="|z̄·ū| ≤ q_δ/n, P(|zu| > q_δ) = δ for independent standard normals",
        latex=r"|\bar z\,\bar u| \le q_\delta/n,\quad"
        r" \tfrac2\pi\int_{q_\delta}^\infty K_0 = \delta",
        source="The density K₀(|x|)/π of the product of two standard normals",
        setting="gaussian-scalar",
        assumptions=(STANDARD_NORMAL,),
        quantity=MEAN_PRODUCT,
        constants={"share": 1.0},
        width_function=product_quantile,
        repairs="o24.product-of-means",
    ),
    Bound(
        id="repaired.weighted-chi-square",
        claim="|n⁻¹Σ‖X_i‖² − Tr Σ| ≤ 2√(Tr[Σ²] L/n) + 2‖Σ‖L/n, L = log(2/δ)",
        latex=r"\Bigl|\tfrac1n\sum_i\|X_i\|^2-\operatorname{Tr}\Sigma\Bigr| \le"
        r" 2\sqrt{\tfrac{\operatorname{Tr}\Sigma^2 L}{n}}+\tfrac{2\|\Sigma\|L}{n},"
        r"\quad L=\log\tfrac2\delta",
        source="Laurent & Massart (2000), Lemma 1; sharper than M25 Lemma 4",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN, CENTRED),
        quantity=SQUARED_NORM_ERROR,
        constants={"root": 2.0, "linear": 2.0, "union": 2.0},
        width_function=laurent_massart_norms,
        repairs="m25.weighted-chi-square",
    ),
    Bound(
        id="repaired.mean-norm",
        claim="‖μ̂−μ‖ ≤ √(Tr Σ/n) + √(2‖Σ‖ log(1/δ)/n)",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac{\operatorname{Tr}\Sigma}{n}}"
        r" + \sqrt{\tfrac{2\|\Sigma\|}{n}\log\tfrac1\delta}",
        source="Borell–Tsirelson–Ibragimov–Sudakov; Boucheron et al. (2013), Theorem 5.6",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM,
        constants={"tail": 2.0, "union": 1.0},
        width_function=borell_mean_norm,
        repairs="m25.mean-norm",
    ),
    Bound(
        id="repaired.mean-norm-squared",
        claim="‖μ̂−μ‖² ≤ (Tr Σ + 2√(Tr[Σ²] L) + 2‖Σ‖L)/n, L = log(1/δ)",
        latex=r"\|\hat\mu-\mu\|^2 \le \tfrac1n\bigl(\operatorname{Tr}\Sigma"
        r"+2\sqrt{\operatorname{Tr}[\Sigma^2]L}+2\|\Sigma\|L\bigr),\quad L=\log\tfrac1\delta",
        source="Laurent & Massart (2000), Lemma 1: the printed bound with Tr Σ put back",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM_SQUARED,
        constants={"root": 2.0, "linear": 2.0, "union": 1.0},
        width_function=laurent_massart_mean_norm,
        repairs="m25.mean-norm",
    ),
    Bound(
        id="repaired.mean-norm-exact",
        claim="‖μ̂−μ‖ ≤ √(q_δ/n), P(Σ_j λ_j Z_j² > q_δ) = δ",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{q_\delta/n},\quad"
        r" \mathbb P\Bigl(\sum_j\lambda_jZ_j^2>q_\delta\Bigr)=\delta",
        source="The distribution of ‖μ̂−μ‖² itself, by a saddle-point contour (Rice 1980)",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM,
        constants={"share": 1.0},
        width_function=exact_mean_norm,
        repairs="o24.mean-norm",
    ),
    Bound(
        id="repaired.naive-mean-norm",
        claim="‖μ̂−μ‖ ≤ σ √(2(d/n) log(2d/δ)), σ² = max_i Σ_ii",
        latex=r"\|\hat\mu-\mu\| \le \sigma\sqrt{\tfrac{2d}{n}\log\tfrac{2d}{\delta}}",
        source="One Gaussian tail per coordinate and a union bound",
        setting="gaussian-norms",
        assumptions=(GAUSSIAN,),
        quantity=MEAN_NORM,
        constants={"factor": 2.0, "union": 2.0},
        width_function=naive_mean_norm,
        repairs="o24.naive-mean-norm",
    ),
    Bound(
        id="repaired.covariance-dimension",
        claim="‖Σ̂−Σ‖ ≤ ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(2 log(2/δ)/n)",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\Sigma\|\Bigl(2\sqrt{\tfrac dn}+2\varepsilon"
        r"+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac2n\log\tfrac2\delta}",
        source="Wainwright (2019), Theorem 6.1 and Example 6.3",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, CENTRED),
        quantity=RAW_COVARIANCE_ERROR,
        constants={"tail": 2.0, "union": 2.0},
        width_function=dimension,
        repairs="o24.covariance-dimension",
    ),
    Bound(
        id="repaired.covariance-effective-rank",
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ (160/3)‖Σ‖ √((4r(Σ)+log(1/δ))/n)",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" \tfrac{160}{3}\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}}",
        source="Zhivotovskiy (2024), Theorem 1, with κ² = 8/3: σ² is no factor of it",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, CENTRED, effective_rank_samples(1.0)),
        quantity=RAW_COVARIANCE_ERROR,
        constants={**_EFFECTIVE_RANK, "union": 1.0},
        width_function=effective_rank_gaussian,
        repairs="o24.covariance-effective-rank",
    ),
    Bound(
        id="repaired.covariance",
        claim="‖Σ−Σ̂‖ ≤ (160/3)‖Σ‖√((4r(Σ)+L)/n) + (Tr Σ + 2√(Tr[Σ²]L) + 2‖Σ‖L)/n,"
        " L = log(3/δ), w.p. ≥ 1−2δ/3",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" \tfrac{160}{3}\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+L}{n}}"
        r"+\tfrac1n\bigl(\operatorname{Tr}\Sigma+2\sqrt{\operatorname{Tr}[\Sigma^2]L}"
        r"+2\|\Sigma\|L\bigr),\quad L=\log\tfrac3\delta",
        source="repaired.covariance-effective-rank and repaired.mean-norm-squared at δ/3 each",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, effective_rank_samples(3.0)),
        quantity=COVARIANCE_ERROR,
        constants={**_EFFECTIVE_RANK, **_MEAN, "union": 3.0},
        width_function=centred_covariance,
        failure=2.0 / 3.0,
        repairs="o24.covariance",
    ),
    Bound(
        id="repaired.fd-decomposition",
        claim="|FD_n − FD| ≤ 2‖μ−μ_r‖‖μ̂−μ‖ + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n"
        " + 2Tr[Σ_r^{1/2}]√‖Σ̂−Σ‖, L = log(6/δ), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le 2\|\mu-\mu_r\|\|\hat\mu-\mu\|"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{\|\hat\Sigma-\Sigma\|},"
        r"\quad L=\log\tfrac6\delta",
        source="docs/bounds.md: an identity, and Laurent & Massart (2000) for its middle term",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN,),
        quantity=DISTANCE_ERROR,
        constants={"root": 2.0, "linear": 2.0, "perturbation": 2.0, "union": 6.0},
        width_function=distance_decomposition,
        failure=1.0 / 3.0,
        repairs="o24.fd-decomposition",
    ),
    Bound(
        id="repaired.fd-bonus",
        claim="FD_n − FD ≤ 2‖μ−μ_r‖√(2‖Σ‖L/n) + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n"
        " + 2Tr[Σ_r^{1/2}]√E, E as in repaired.covariance, L = log(4/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\|\mu-\mu_r\|\sqrt{\tfrac{2\|\Sigma\|L}{n}}"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{E},\quad L=\log\tfrac4\delta",
        source="docs/bounds.md: four events at δ/4 each",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, effective_rank_samples(4.0)),
        quantity=DISTANCE_EXCESS,
        constants={**_EFFECTIVE_RANK, **_MEAN, "union": 4.0, "tail": 2.0, "perturbation": 2.0},
        width_function=distance_bonus,
        limit=DISTANCE_RANGE,
        repairs="o24.fd-bonus",
    ),
    Bound(
        id="repaired.fd-naive-bonus",
        claim="FD_n − FD ≤ 2‖μ−μ_r‖√(2‖Σ‖L/n) + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n + 2Tr[Σ_r^{1/2}]√E,"
        " E from repaired.covariance-dimension at δ/4 plus the bound on ‖μ̂−μ‖², L = log(4/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\|\mu-\mu_r\|\sqrt{\tfrac{2\|\Sigma\|L}{n}}"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{E},\quad"
        r" \varepsilon=\sqrt{\tfrac2n\log\tfrac8\delta}",
        source="docs/bounds.md: four events at δ/4 each",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN,),
        quantity=DISTANCE_EXCESS,
        constants={**_MEAN, "union": 4.0, "raw_union": 8.0, "tail": 2.0, "perturbation": 2.0},
        width_function=distance_naive_bonus,
        limit=DISTANCE_RANGE,
        repairs="o24.fd-naive-bonus",
    ),
    Bound(
        id="repaired.visit-sum-log",
        claim="Σ_t 1/n_t ≤ (1/b) Σ_g (1 + log N_g(T))",
        latex=r"\sum_t n_t^{-1} \le \tfrac1b\sum_g\bigl(1+\log N_g(T)\bigr)",
        source="Harmonic sums: 1 + 1/2 + … + 1/N ≤ 1 + log N",
        setting="visits",
        form="deterministic",
        assumptions=(VISITS,),
        quantity=HARMONIC,
        constants={"offset": 1.0},
        width_function=visits_by_picks,
        repairs="m25.visit-sum-log",
    ),
    Bound(
        id="repaired.visit-sum-log-samples",
        claim="Σ_t 1/n_t ≤ (1/b) Σ_g (1 + log(n_g(T)/b))",
        latex=r"\sum_t n_t^{-1} \le \tfrac1b\sum_g\bigl(1+\log\tfrac{n_g(T)}{b}\bigr)",
        source="The same, by n_g(T) = b N_g(T)",
        setting="visits",
        form="deterministic",
        assumptions=(VISITS,),
        quantity=HARMONIC,
        constants={"offset": 1.0},
        width_function=visits_by_picks,
        repairs="o24.visit-sum-log",
    ),
    *REPAIRED,
)
