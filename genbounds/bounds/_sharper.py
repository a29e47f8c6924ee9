"""Statements sharper than the printed ones, data-driven ones, and ones for running samples.

Derivations in docs/bounds.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds._betting import betting_lower_limit
from genbounds.bounds._assumptions import (
    CENTRED,
    CLASSES,
    DEFINITE_REFERENCE,
    GAUSSIAN,
    NORMALISED_KERNEL,
    SCALAR,
    UNIT_INTERVAL,
    at_least,
)
from genbounds.bounds._bound import Bound, Constants, Quantity
from genbounds.bounds._deterministic import entropy_sum
from genbounds.bounds._frechet import DISTANCE_EXCESS, DISTANCE_RANGE
from genbounds.bounds._quantities import (
    MEAN_SHORTFALL,
    RAW_COVARIANCE_ERROR,
    UNIT_RANGE,
    operator_norm,
)
from genbounds.bounds._vendi import SPECTRUM_ERROR, SPECTRUM_RANGE
from genbounds.validation import Float


def _running_error(running_mean: Float, mean: float) -> Float:
    return np.abs(running_mean - mean)


def _running_shortfall(running_mean: Float, mean: float) -> Float:
    return mean - running_mean


def _log_score_error(sample_spectrum: Float, kernel_spectrum: Float) -> Float:
    return np.abs(entropy_sum(sample_spectrum) - entropy_sum(kernel_spectrum))


def _log_dimension(d: Any) -> Float:
    return np.asarray(np.log(float(d)))


def collision_statistic(sample_spectrum: Float, n: Any) -> Float:
    """U-statistic of E k(x, x′)²: (n ‖λ̂‖₂² − 1)/(n − 1), since k(x, x) = 1."""
    return np.asarray((n * np.square(sample_spectrum).sum(axis=-1) - 1.0) / (n - 1.0))


def _collision_error(sample_spectrum: Float, n: Any, kernel_spectrum: Float) -> Float:
    truth = np.square(kernel_spectrum).sum(axis=-1)
    return np.asarray(np.abs(collision_statistic(sample_spectrum, n) - truth))


def _nystrom_error(nystrom_spectrum: Float, kernel_spectrum: Float) -> Float:
    return np.asarray(np.linalg.norm(nystrom_spectrum - kernel_spectrum, axis=-1))


def _one() -> float:
    return 1.0


RUNNING_ERROR = Quantity(
    name="running-error", text="|X̄_t − μ| for some t ≤ n", function=_running_error
)
RUNNING_SHORTFALL = Quantity(
    name="running-shortfall", text="E Z − Z̄_t for some t ≤ n", function=_running_shortfall
)
LOG_SCORE_ERROR = Quantity(
    name="log-vendi-error", text="|log VENDI_1(x) − log VENDI_1(P)|", function=_log_score_error
)
LOG_DIMENSION = Quantity(name="log-dimension", text="log d", function=_log_dimension)
COLLISION_ERROR = Quantity(
    name="collision-error", text="|U_n(k²) − E k(x, x′)²|", function=_collision_error
)
NYSTROM_ERROR = Quantity(name="nystrom-error", text="‖λ^Nys−λ̃‖₂", function=_nystrom_error)
UNIT = Quantity(name="unit", text="1", function=_one)


def gordon(c: Constants, n: Any, delta: Any, operator: Any, effective_rank: Any) -> Any:
    """‖Σ‖ (2η + η²), η = (√r(Σ) + offset + √(tail log(union/δ))) / √n."""
    eta = np.sqrt(effective_rank) + c["offset"] + np.sqrt(c["tail"] * np.log(c["union"] / delta))
    eta = eta / np.sqrt(n)
    return operator * (2.0 * eta + eta**2)


def _moved_terms(c: Constants, n: Any, log: Any, gap: Any, operator: Any, square: Any) -> Any:
    """Mean and trace terms of the bonus: what ⟨g, μ̂−μ⟩ and n⁻¹Σ‖x−μ‖² exceed."""
    first = 2.0 * gap * np.sqrt(c["tail"] * operator * log / n)
    return first + c["root"] * np.sqrt(square * log / n) + c["linear"] * operator * log / n


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
        operator = np.divide(scale * operator_norm(covariance), shrink)
        product = np.divide(scale * np.einsum("...ij,ji->...", covariance, reference_cov), shrink)
        reach = np.sqrt(scale) * sample_trace_root + np.sqrt(product) * spread
        most = np.minimum(np.divide(reach, unbiased), np.sqrt(trace * reference_trace))
    gap = sample_mean_gap + 2.0 * np.sqrt(c["tail"] * operator * log / n)
    moved = _moved_terms(c, n, log, gap, operator, operator * trace)
    return moved + 2.0 * (most - sample_trace_root)


def kernel_covariance(c: Constants, n: Any, delta: Any, kernel_spectrum: Float) -> Any:
    """√((1 − ‖λ‖₂²)/n) + √(tail log(1/δ)/n)."""
    mean = np.sqrt((1.0 - np.square(kernel_spectrum).sum(axis=-1)) / n)
    return mean + np.sqrt(c["tail"] * np.log(1.0 / delta) / n)


def collision(c: Constants, n: Any, delta: Any) -> Any:
    """√(log(union/δ) / (pairs ⌊n/2⌋))."""
    return np.sqrt(np.log(c["union"] / delta) / (c["pairs"] * np.floor(np.asarray(n) / 2.0)))


def fannes_audenaert(c: Constants, n: Any, delta: Any, d: Any, kernel_spectrum: Float) -> Float:
    """T log(d−1) + h(T), T = half √d · `kernel_covariance`; log d from T = 1 − 1/d on."""
    distance = c["half"] * np.sqrt(d) * kernel_covariance(c, n, delta, kernel_spectrum)
    most = 1.0 - 1.0 / d
    clipped = np.minimum(distance, most)
    pair = np.stack([clipped, 1.0 - clipped], axis=-1)
    width = clipped * np.log(np.maximum(d - 1.0, 1.0)) + entropy_sum(pair)
    return np.asarray(np.where(distance >= most, np.log(float(d)), width))


def landmark_width(c: Constants, n: Any, delta: Any, nystrom_residual: Any) -> Any:
    """ρ + (mean + √(tail log(1/δ)))/√n, ρ the share of the trace that the landmarks leave out."""
    return nystrom_residual + (c["mean"] + np.sqrt(c["tail"] * np.log(1.0 / delta))) / np.sqrt(n)


def seen_classes(c: Constants, n: Any, delta: Any, landmarks: Any, kernel_spectrum: Float) -> Float:
    """(mean + √(tail log(1/δ′)))/√n, δ′ = δ − unseen Σ(1−p_j)^t; infinite where δ′ ≤ 0."""
    missed = ((1.0 - kernel_spectrum) ** landmarks).sum(axis=-1)
    left = np.asarray(delta - c["unseen"] * missed)
    log = np.log(1.0 / np.where(left > 0.0, left, 1.0))
    width = (c["mean"] + np.sqrt(c["tail"] * log)) / np.sqrt(n)
    return np.asarray(np.where(left > 0.0, width, np.inf))


def betting(c: Constants, n: Any, delta: Any, rows: Float) -> Any:
    """Largest mean that a fixed mixture of bets on W = 1 - Z does not reject, minus Z̄."""
    rows = 1.0 - rows
    stakes = c["largest"] * 0.5 ** np.arange(c["bets"])
    low = betting_lower_limit(rows, np.log(1.0 / delta), stakes, halvings=14)
    return rows.mean(axis=-1) - low


def normal_mixture(c: Constants, n: Any, delta: Any, variance: Any) -> Float:
    """σ √((t+ρ)(log((t+ρ)/ρ) + union log(1/δ)))/t for t = 1 … n, one column each."""
    t = np.arange(1.0, n + 1.0)[None, :]
    grown = t + c["tuned_for"]
    log = np.log(grown / c["tuned_for"]) + c["union"] * np.log(1.0 / delta)
    return np.asarray(np.sqrt(variance * grown * log) / t)


def stitched(c: Constants, n: Any, delta: Any) -> Float:
    """½ lead √((log log(2t) + slope log(union/δ))/t) for t = 1 … n, one column each."""
    t = np.arange(1.0, n + 1.0)[None, :]
    inside = np.log(np.log(2.0 * t)) + c["slope"] * np.log(c["union"] / delta)
    return np.asarray(0.5 * c["lead"] * np.sqrt(np.maximum(inside, 0.0) / t))


_MOVED = {"tail": 2.0, "root": 2.0, "linear": 2.0, "bias": 0.5}

STATEMENTS = (
    Bound(
        id="repaired.covariance-gordon",
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ ‖Σ‖(2η+η²), η = (√r(Σ) + 1 + √(2 log(2/δ)))/√n, every n",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le \|\Sigma\|(2\eta+\eta^2),\quad"
        r" \eta=\tfrac{1}{\sqrt n}\Bigl(\sqrt{r(\Sigma)}+1+\sqrt{2\log\tfrac2\delta}\Bigr)",
        source="Koltchinskii & Lounici (2017) with constants, by Gordon's comparison:"
        " docs/bounds.md",
        setting="gaussian-matrices",
        assumptions=(GAUSSIAN, CENTRED),
        quantity=RAW_COVARIANCE_ERROR,
        constants={"offset": 1.0, "tail": 2.0, "union": 2.0},
        width_function=gordon,
        repairs="m25.covariance-effective-rank",
    ),
    Bound(
        id="repaired.fd-bonus-sharp",
        claim="FD_n − FD ≤ 2‖μ−μ_r‖√(2‖Σ‖L/n) + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n"
        " + 2(R − √(1−1/n)·max{R(1−(d+1)/(2m)) − √(2 Tr[ΣΣ_r]L/m), R(1−√(d/m)−√(2L/m)), 0}),"
        " R = Tr(ΣΣ_r)^{1/2}, m = n−1, L = log(3/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\|\mu-\mu_r\|\sqrt{\tfrac{2\|\Sigma\|L}{n}}"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2R-2\sqrt{\tfrac mn}\max\Bigl\{R\bigl(1-\tfrac{d+1}{2m}\bigr)"
        r"-\sqrt{\tfrac{2\operatorname{Tr}[\Sigma\Sigma_r]L}{m}},\;"
        r"R\bigl(1-\sqrt{\tfrac dm}-\sqrt{\tfrac{2L}{m}}\bigr),\;0\Bigr\},\quad"
        r" R=\operatorname{Tr}(\Sigma\Sigma_r)^{1/2},\;m=n-1,\;L=\log\tfrac3\delta",
        source="docs/bounds.md: order n^(-1/2) where the published bonuses have n^(-1/4)",
        setting="frechet-gaussian",
        assumptions=(GAUSSIAN, at_least(2)),
        quantity=DISTANCE_EXCESS,
        constants={**_MOVED, "union": 3.0},
        width_function=sharp_bonus,
        limit=DISTANCE_RANGE,
        repairs="m25.fd-bonus",
    ),
    Bound(
        id="repaired.fd-bonus-data-driven",
        claim="the bonus of repaired.fd-bonus-sharp with upper limits of R, Tr Σ, ‖Σ‖ and"
        " ‖μ−μ_r‖ from the sample, L = log(7/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\bar g\sqrt{\tfrac{2\bar aL}{n}}"
        r"+2\sqrt{\tfrac{\bar a\bar TL}{n}}+\tfrac{2\bar aL}{n}"
        r"+2\bigl(\bar R-\operatorname{Tr}(\hat\Sigma\Sigma_r)^{1/2}\bigr),"
        r"\quad L=\log\tfrac7\delta",
        source="docs/bounds.md: seven events at δ/7 each, nothing unknown in the width",
        setting="frechet-gaussian",
        form="plug-in",
        assumptions=(GAUSSIAN, DEFINITE_REFERENCE, at_least(2)),
        quantity=DISTANCE_EXCESS,
        constants={**_MOVED, "union": 7.0},
        width_function=data_driven_bonus,
        limit=DISTANCE_RANGE,
        repairs="o24.fd-bonus-plug-in",
    ),
    Bound(
        id="repaired.kernel-covariance",
        claim="‖λ̂−λ̃‖₂ ≤ ‖C_n−C‖_F ≤ √((1−‖C‖_F²)/n) + √(log(1/δ)/n), every n and δ",
        latex=r"\|\hat\lambda-\tilde\lambda\|_2 \le \|C_n-C\|_F \le"
        r" \sqrt{\tfrac{1-\|C\|_F^2}{n}}+\sqrt{\tfrac1n\log\tfrac1\delta}",
        source="McDiarmid (1989) and Hoffman–Wielandt: docs/bounds.md",
        setting="spectra",
        assumptions=(NORMALISED_KERNEL,),
        quantity=SPECTRUM_ERROR,
        constants={"tail": 1.0},
        width_function=kernel_covariance,
        limit=SPECTRUM_RANGE,
        repairs="v24.eigenvalues",
    ),
    Bound(
        id="repaired.nystrom",
        claim="‖λ^Nys−λ̃‖₂ ≤ ρ + (1 + √log(1/δ))/√n, ρ = 1 − n⁻¹Tr K^Nys, any landmarks, every n"
        " and δ",
        latex=r"\|\lambda^{\mathrm{Nys}}-\tilde\lambda\|_2 \le \rho"
        r"+\tfrac{1}{\sqrt n}\Bigl(1+\sqrt{\log\tfrac1\delta}\Bigr),\quad"
        r" \rho=1-\tfrac1n\operatorname{Tr}K^{\mathrm{Nys}}",
        source="K^Nys ⪯ K and Weyl's inequality, with repaired.kernel-covariance: docs/bounds.md",
        setting="landmarks",
        form="plug-in",
        assumptions=(NORMALISED_KERNEL,),
        quantity=NYSTROM_ERROR,
        constants={"mean": 1.0, "tail": 1.0},
        width_function=landmark_width,
        limit=SPECTRUM_RANGE,
        repairs="v24.nystrom",
    ),
    Bound(
        id="repaired.nystrom-classes",
        claim="k(x, y) = [x = y], classes of probabilities p_j: ‖λ^Nys−λ̃‖₂ ≤ (1 + √log(1/δ′))/√n,"
        " δ′ = δ − Σ_j (1−p_j)^t",
        latex=r"\|\lambda^{\mathrm{Nys}}-\tilde\lambda\|_2 \le"
        r" \tfrac{1}{\sqrt n}\Bigl(1+\sqrt{\log\tfrac1{\delta'}}\Bigr),\quad"
        r" \delta'=\delta-\sum_j(1-p_j)^t",
        source="all classes are seen but for Σ(1−p_j)^t, with repaired.kernel-covariance",
        setting="landmarks",
        assumptions=(CLASSES,),
        quantity=NYSTROM_ERROR,
        constants={"mean": 1.0, "tail": 1.0, "unseen": 1.0},
        width_function=seen_classes,
        limit=SPECTRUM_RANGE,
        repairs="v24.nystrom-proof",
    ),
    Bound(
        id="repaired.rke-u-statistic",
        claim="|U_n(k²) − 1/RKE| ≤ √(log(2/δ)/(2⌊n/2⌋)), RKE = VENDI_2 = 1/E k(x,x′)²",
        latex=r"\bigl|U_n(k^2)-\mathrm{RKE}^{-1}\bigr| \le"
        r" \sqrt{\tfrac{1}{2\lfloor n/2\rfloor}\log\tfrac2\delta}",
        source="Hoeffding (1963), Section 5: U-statistics of a kernel in [0, 1]",
        setting="spectra",
        assumptions=(NORMALISED_KERNEL, at_least(2)),
        quantity=COLLISION_ERROR,
        constants={"union": 2.0, "pairs": 2.0},
        width_function=collision,
        limit=UNIT,
        repairs="v24.order-ge-2",
    ),
    Bound(
        id="repaired.vendi-order-one",
        claim="|log VENDI_1(x) − log VENDI_1(P)| ≤ T log(d−1) + h(T) up to T = 1−1/d, then log d,"
        " T = ½√d(√((1−‖C‖_F²)/n) + √(log(1/δ)/n))",
        latex=r"\bigl|\log\mathrm{VENDI}_1(x)-\log\mathrm{VENDI}_1(P)\bigr| \le"
        r" T\log(d-1)+h(T),\quad T=\tfrac{\sqrt d}{2}\Bigl("
        r"\sqrt{\tfrac{1-\|C\|_F^2}{n}}+\sqrt{\tfrac1n\log\tfrac1\delta}\Bigr)",
        source="Audenaert (2007), sharp Fannes inequality, with repaired.kernel-covariance",
        setting="spectra",
        assumptions=(NORMALISED_KERNEL,),
        quantity=LOG_SCORE_ERROR,
        constants={"tail": 1.0, "half": 0.5},
        width_function=fannes_audenaert,
        limit=LOG_DIMENSION,
        repairs="v24.order-one",
    ),
    Bound(
        id="repaired.betting",
        claim="E Z ≤ the largest mean that a mixture of bets on W = 1−Z does not reject at 1/δ",
        latex=r"1-\mathbb EZ \ge \inf\Bigl\{m:\tfrac16\sum_{j=0}^{5}\prod_{i}"
        r"\bigl(1+\theta_j((1-Z_i)/m-1)\bigr)<\tfrac1\delta\Bigr\},\quad \theta_j=0.9\cdot2^{-j}",
        source="Waudby-Smith & Ramdas (2024), JRSS B 86, with fixed stakes",
        setting="unit-betting",
        form="plug-in",
        assumptions=(UNIT_INTERVAL,),
        quantity=MEAN_SHORTFALL,
        limit=UNIT_RANGE,
        constants={"largest": 0.9, "bets": 6.0},
        width_function=betting,
        repairs="m25.empirical-bernstein",
    ),
    Bound(
        id="repaired.gaussian-mean-uniform",
        claim="|X̄_t−μ| ≤ σ√((t+ρ)(log((t+ρ)/ρ) + 2 log(1/δ)))/t for all t at once, ρ = 100",
        latex=r"\forall t:\;|\bar X_t-\mu| \le \tfrac{\sigma}{t}\sqrt{(t+\rho)\Bigl("
        r"\log\tfrac{t+\rho}{\rho}+2\log\tfrac1\delta\Bigr)},\quad\rho=100",
        source="Robbins (1970): normal mixture and Ville's inequality",
        setting="gaussian-sequence",
        assumptions=(GAUSSIAN, SCALAR),
        quantity=RUNNING_ERROR,
        constants={"tuned_for": 100.0, "union": 2.0},
        width_function=normal_mixture,
        repairs="o24.gaussian-mean",
    ),
    Bound(
        id="repaired.hoeffding-uniform",
        claim="E Z − Z̄_t ≤ 0.85 √((log log(2t) + 0.72 log(5.2/δ))/t) for all t at once",
        latex=r"\forall t:\;\mathbb EZ-\bar Z_t \le 0.85\sqrt{\tfrac1t\bigl("
        r"\log\log(2t)+0.72\log\tfrac{5.2}\delta\bigr)}",
        source="Howard, Ramdas, McAuliffe & Sekhon (2021), Ann. Statist. 49, (1.2): stitching",
        setting="unit-sequence",
        assumptions=(UNIT_INTERVAL,),
        quantity=RUNNING_SHORTFALL,
        constants={"lead": 1.7, "slope": 0.72, "union": 5.2},
        width_function=stitched,
        repairs="o24.hoeffding",
    ),
)
