"""V24, on the convergence of Vendi scores: errors, kinds, widths, and the printed statements.

VENDI_α^{(1−α)/α} is ‖λ‖_α, the norm of the spectrum of the kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genbounds.bounds import _assumptions as on
from genbounds.bounds import _inequalities as ineq
from genbounds.bounds import _means as means
from genbounds.bounds import _rates as rates
from genbounds.bounds._bound import Constants, kind, quantity, unit
from genbounds.bounds._inequalities import entropy_sum, truncate
from genbounds.validation import Float


def alpha_norm(spectrum: Float, order: float) -> Float:
    """‖λ‖_α over the last axis; α = ∞ is the largest eigenvalue."""
    return np.asarray(np.linalg.norm(spectrum, ord=order, axis=-1))


def _distance(spectrum: Float, kernel_spectrum: Float) -> Float:
    return np.asarray(np.linalg.norm(spectrum - kernel_spectrum, axis=-1))


def _order_error(sample_spectrum: Float, kernel_spectrum: Float, order: float) -> Float:
    return np.abs(alpha_norm(sample_spectrum, order) - alpha_norm(kernel_spectrum, order))


def _truncated_error(
    sample_spectrum: Float, kernel_spectrum: Float, order: float, kept: int
) -> Float:
    return _order_error(truncate(sample_spectrum, kept), truncate(kernel_spectrum, kept), order)


def _fkea_error(
    fourier_spectrum: Float, kernel_spectrum: Float, order: float, frequencies: int
) -> Float:
    # A kernel of d features has no more than d eigenvalues: with t ≥ d nothing is cut off.
    kept = min(frequencies, kernel_spectrum.shape[-1])
    return _order_error(fourier_spectrum, truncate(kernel_spectrum, kept), order)


def _spectrum_range() -> float:
    return math.sqrt(2.0)


def _span(d: Any, order: float) -> Float:
    """1 − d^{(1−α)/α}: norms of distributions on d points differ by no more."""
    power = -1.0 if np.isinf(order) else (1.0 - order) / order
    return np.asarray(1.0 - float(d) ** power)


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


SPECTRUM_ERROR = quantity(
    "spectrum-error", "‖λ̂−λ̃‖₂", _distance, "sample_spectrum", "kernel_spectrum"
)
SPECTRUM_RANGE = quantity("spectrum-range", "√2", _spectrum_range)
ORDER_ERROR = quantity("order-error", "|‖λ̂‖_α − ‖λ̃‖_α|", _order_error)
SPAN = quantity("span", "1 − d^{(1−α)/α}", _span)
TRUNCATED_ERROR = quantity("truncated-error", "|‖λ̂^{(t)}‖_α − ‖λ̃^{(t)}‖_α|", _truncated_error)
TRUNCATED_SPAN = quantity("truncated-span", "1 − t^{(1−α)/α}", _span, "kept", "order")
FKEA_ERROR = quantity("fkea-error", "|‖λ^{FKEA}‖_α − ‖λ̃^{(t)}‖_α|", _fkea_error)
LOG_SCORE_ERROR = quantity("log-vendi-error", "|log VENDI_1(x) − log VENDI_1(P)|", _log_score_error)
LOG_DIMENSION = quantity("log-dimension", "log d", _log_dimension)
COLLISION_ERROR = quantity("collision-error", "|U_n(k²) − E k(x, x′)²|", _collision_error)
NYSTROM_ERROR = quantity(
    "nystrom-error", "‖λ^Nys−λ̃‖₂", _distance, "nystrom_spectrum", "kernel_spectrum"
)
UNIT = quantity("unit", "1", unit)

KERNEL = (on.NORMALISED_KERNEL, on.VENDI_SAMPLES)
SPECTRUM = kind("spectra", SPECTRUM_ERROR, *KERNEL, limit=SPECTRUM_RANGE)
ORDER = kind("kernels", ORDER_ERROR, *KERNEL, limit=SPAN)
TRUNCATED = kind("kernels", TRUNCATED_ERROR, *KERNEL, limit=TRUNCATED_SPAN)
FKEA = kind("fourier-kernels", FKEA_ERROR, *KERNEL, limit=SPAN)
LANDMARKS = kind("landmarks", NYSTROM_ERROR, on.NORMALISED_KERNEL, limit=SPECTRUM_RANGE)


def order_below_two(c: Constants, n: Any, delta: Any, d: Any, order: Any) -> Any:
    """√(factor d^{2−α} log(union/δ)/n)."""
    return np.sqrt(float(d) ** (2.0 - order)) * means.root_log(c, n, delta)


def truncated(c: Constants, n: Any, delta: Any, order: Any, kept: Any) -> Any:
    """√(factor max{1, t^{2−α}} log(union/δ)/n)."""
    power = float(kept) ** (2.0 - order)
    return np.sqrt(np.maximum(1.0, power)) * means.root_log(c, n, delta)


def fkea(c: Constants, n: Any, delta: Any, order: Any, frequencies: Any) -> Float:
    """√(factor max{1, t^{2−α}} log(union/δ)/min{n, t})."""
    power = np.sqrt(np.maximum(1.0, float(frequencies) ** (2.0 - order)))
    return np.asarray(power * means.root_log(c, np.minimum(n, frequencies), delta))


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


def nystrom_product(
    c: Constants, n: Any, delta: Any, landmarks: Any, tau: Any, order: Any
) -> Float:
    """√(max{1, t^{2−α}} log(union/δ) (offset + t τ² log(n)²) / n), up to a constant."""
    spectrum = c["offset"] + landmarks * np.square(tau * np.log(n))
    many = np.maximum(1.0, np.asarray(landmarks, dtype=np.float64) ** (2.0 - order))
    return np.asarray(np.sqrt(many * np.log(c["union"] / delta) * spectrum / n))


STATEMENTS = (
    means.BOUNDED_NORM("v24.vector-bernstein", means.vector_bernstein, factor=8.0, offset=0.25)(
        claim="P(‖z̄‖ ≥ ε) ≤ exp(−nε²/(8c²) + 1/4) for 0 ≤ ε ≤ c",
        latex=r"\mathbb{P}(\|\bar z\|\ge\varepsilon) \le"
        r" \exp\Bigl(-\tfrac{n\varepsilon^2}{8c^2}+\tfrac14\Bigr),\quad 0\le\varepsilon\le c",
        source="V24 Lemma 1",
        assumptions=(on.NORM_BOUNDED, on.CENTRED, on.BERNSTEIN_RANGE),
    ),
    ineq.SPECTRA("v24.hoffman-wielandt", ineq.frobenius, factor=1.0)(
        claim="‖λ(A) − λ(B)‖₂ ≤ ‖A−B‖_F, eigenvalues sorted",
        latex=r"\|\lambda(A)-\lambda(B)\|_2 \le \|A-B\|_F",
        source="V24 Appendix A.1",
    ),
    ineq.PROJECTION("v24.simplex-projection", ineq.rival_distance, factor=1.0)(
        claim="‖v − v^{(t)}‖ ≤ ‖v − w‖ for every w of the t-simplex, v^{(t)}_j = v_j + (1−S_t)/t",
        latex=r"\|v-v^{(t)}\| \le \|v-w\|\;\;\forall w\in\Delta_t,\quad"
        r" v^{(t)}_j=v_j+\tfrac{1-S_t}{t}\;(j\le t)",
        source="V24 Lemma 2",
    ),
    ineq.ALPHA_NORM("v24.norm-embedding", ineq.embedding, root=2.0)(
        claim="‖v‖_α ≤ d^{(2−α)/2} ‖v‖₂, 1 ≤ α < 2",
        latex=r"\|v\|_\alpha \le d^{(2-\alpha)/2}\|v\|_2,\quad 1\le\alpha<2",
        source="V24 Appendix A.3",
    ),
    SPECTRUM("v24.eigenvalues", means.root_log, factor=32.0, union=2.0)(
        claim="‖λ̂−λ̃‖₂ ≤ √(32 log(2/δ)/n)",
        latex=r"\|\hat\lambda-\tilde\lambda\|_2 \le \sqrt{\tfrac{32}{n}\log\tfrac2\delta}",
        source="V24 Theorem 1",
    ),
    ORDER("v24.order-ge-2", means.root_log, factor=32.0, union=2.0)(
        claim="|‖λ̂‖_α − ‖λ̃‖_α| ≤ √(32 log(2/δ)/n), α ≥ 2",
        latex=r"\bigl|\|\hat\lambda\|_\alpha-\|\tilde\lambda\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32}{n}\log\tfrac2\delta},\quad \alpha\ge2",
        source="V24 Corollary 1",
        assumptions=(*KERNEL, on.between("order", 2.0, math.inf, "α ≥ 2")),
    ),
    ORDER("v24.order-lt-2", order_below_two, factor=32.0, union=2.0)(
        claim="|‖λ̂‖_α − ‖λ̃‖_α| ≤ √(32 d^{2−α} log(2/δ)/n), 1 ≤ α < 2",
        latex=r"\bigl|\|\hat\lambda\|_\alpha-\|\tilde\lambda\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32\,d^{2-\alpha}}{n}\log\tfrac2\delta},\quad 1\le\alpha<2",
        source="V24 Corollary 2",
        assumptions=(*KERNEL, on.between("order", 1.0, 2.0, "1 ≤ α < 2")),
    ),
    ORDER("v24.order-one", order_below_two, factor=32.0, union=2.0)(
        claim="Corollary 2 at α = 1, the order of the Vendi score itself",
        latex=r"\bigl|\mathrm{VENDI}_1(x)^0-\mathrm{VENDI}_1(P)^0\bigr| \le"
        r" \sqrt{\tfrac{32\,d}{n}\log\tfrac2\delta}",
        source="V24 Corollary 2 at α = 1",
        assumptions=(*KERNEL, on.between("order", 1.0, 1.0 + 1e-12, "α = 1")),
    ),
    TRUNCATED("v24.truncated", truncated, factor=32.0, union=2.0)(
        claim="|‖λ̂^{(t)}‖_α − ‖λ̃^{(t)}‖_α| ≤ √(32 max{1,t^{2−α}} log(2/δ)/n)",
        latex=r"\bigl|\|\hat\lambda^{(t)}\|_\alpha-\|\tilde\lambda^{(t)}\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32\max\{1,t^{2-\alpha}\}}{n}\log\tfrac2\delta}",
        source="V24 Theorem 2",
        assumptions=(*KERNEL, on.ANY_ORDER, on.has("kept", "t eigenvalues kept")),
    ),
    FKEA("v24.fkea", fkea, factor=128.0, union=3.0)(
        claim="|‖λ^{FKEA}‖_α − ‖λ̃^{(t)}‖_α| ≤ √(128 max{1,t^{2−α}} log(3/δ)/min{n,t})",
        latex=r"\bigl|\|\lambda^{\mathrm{FKEA}}\|_\alpha-\|\tilde\lambda^{(t)}\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{128\max\{1,t^{2-\alpha}\}}{\min\{n,t\}}\log\tfrac3\delta}",
        source="V24 Theorem 3(a)",
        assumptions=(
            *KERNEL,
            on.ANY_ORDER,
            on.has("frequencies", "shift-invariant kernel, t random frequencies"),
        ),
    ),
    rates.BIAS("v24.nystrom-product", nystrom_product, union=2.0, offset=0.0)(
        claim="Nyström with t points, where λ_r(K) ≤ τ and t ≥ r τ log n for some r: error"
        " O(√(max{1,t^{2−α}} log(2/δ) t τ² log(n)²/n)) w.p. ≥ 1−δ−2n⁻³",
        latex=r"\lambda_r(K)\le\tau,\;t\ge r\tau\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}\log\tfrac2\delta\,t\tau^2\log(n)^2}\Bigr)",
        source="V24 Theorem 3(b), the main text",
        assumptions=on.any_law("normalised kernel"),
    ),
    rates.BIAS("v24.nystrom-proof", rates.order, exponent=-0.5)(
        claim="Nyström with t points, where λ_r(K) ≤ τ and t ≥ C r log n for some r: error"
        " O(√(max{1,t^{2−α}}(log(2/δ) + t log(n)²τ²)/n)) w.p. ≥ 1−δ−2n⁻³",
        latex=r"\lambda_r(K)\le\tau,\;t\ge Cr\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}(\log\tfrac2\delta+t\log(n)^2\tau^2)}\Bigr)",
        source="V24 Theorem 3(b), Appendix A.5",
        repairs="v24.nystrom-product",
        assumptions=on.any_law("normalised kernel"),
    ),
    rates.BIAS("v24.nystrom", rates.order, exponent=-0.5)(
        claim="Nyström with t points, where λ_r(K) ≤ τ and t ≥ r τ log n for some r: error"
        " O(√(max{1,t^{2−α}}(log(2/δ) + t log(n)²τ²)/n)) w.p. ≥ 1−δ−2n⁻³",
        latex=r"\lambda_r(K)\le\tau,\;t\ge r\tau\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}(\log\tfrac2\delta+t\log(n)^2\tau^2)}\Bigr)",
        source="V24 Theorem 3(b), its condition with the error of Appendix A.5",
        assumptions=on.any_law("normalised kernel"),
    ),
)
