"""Spectra of kernels and Vendi scores: errors, kinds of statements about them, widths.

VENDI_α^{(1−α)/α} is ‖λ‖_α, the norm of the spectrum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import NORMALISED_KERNEL, VENDI_SAMPLES
from genbounds.bounds._bound import Constants, kind, quantity
from genbounds.bounds._inequalities import entropy_sum, truncate
from genbounds.bounds._means import root_log
from genbounds.validation import Float


def alpha_norm(spectrum: Float, order: float) -> Float:
    """‖λ‖_α over the last axis; α = ∞ is the largest eigenvalue."""
    return np.asarray(np.linalg.norm(spectrum, ord=order, axis=-1))


def _spectrum_error(sample_spectrum: Float, kernel_spectrum: Float) -> Float:
    return np.asarray(np.linalg.norm(sample_spectrum - kernel_spectrum, axis=-1))


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


def _spectrum_range() -> Any:
    return np.sqrt(2.0)


def _span(d: Any, order: float) -> Float:
    """1 − d^{(1−α)/α}: norms of distributions on d points differ by no more."""
    power = -1.0 if np.isinf(order) else (1.0 - order) / order
    return np.asarray(1.0 - float(d) ** power)


def _truncated_span(kept: Any, order: float) -> Float:
    return _span(kept, order)


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


SPECTRUM_ERROR = quantity("spectrum-error", "‖λ̂−λ̃‖₂", _spectrum_error)
SPECTRUM_RANGE = quantity("spectrum-range", "√2", _spectrum_range)
ORDER_ERROR = quantity("order-error", "|‖λ̂‖_α − ‖λ̃‖_α|", _order_error)
SPAN = quantity("span", "1 − d^{(1−α)/α}", _span)
TRUNCATED_ERROR = quantity("truncated-error", "|‖λ̂^{(t)}‖_α − ‖λ̃^{(t)}‖_α|", _truncated_error)
TRUNCATED_SPAN = quantity("truncated-span", "1 − t^{(1−α)/α}", _truncated_span)
FKEA_ERROR = quantity("fkea-error", "|‖λ^{FKEA}‖_α − ‖λ̃^{(t)}‖_α|", _fkea_error)
LOG_SCORE_ERROR = quantity("log-vendi-error", "|log VENDI_1(x) − log VENDI_1(P)|", _log_score_error)
LOG_DIMENSION = quantity("log-dimension", "log d", _log_dimension)
COLLISION_ERROR = quantity("collision-error", "|U_n(k²) − E k(x, x′)²|", _collision_error)
NYSTROM_ERROR = quantity("nystrom-error", "‖λ^Nys−λ̃‖₂", _nystrom_error)
UNIT = quantity("unit", "1", _one)

KERNEL = (NORMALISED_KERNEL, VENDI_SAMPLES)
SPECTRUM = kind("spectra", SPECTRUM_ERROR, *KERNEL, limit=SPECTRUM_RANGE)
ORDER = kind("kernels", ORDER_ERROR, *KERNEL, limit=SPAN)
TRUNCATED = kind("kernels", TRUNCATED_ERROR, *KERNEL, limit=TRUNCATED_SPAN)
FKEA = kind("fourier-kernels", FKEA_ERROR, *KERNEL, limit=SPAN)
LANDMARKS = kind("landmarks", NYSTROM_ERROR, NORMALISED_KERNEL, limit=SPECTRUM_RANGE)


def order_below_two(c: Constants, n: Any, delta: Any, d: Any, order: Any) -> Any:
    """√(factor d^{2−α} log(union/δ)/n)."""
    return np.sqrt(float(d) ** (2.0 - order)) * root_log(c, n, delta)


def truncated(c: Constants, n: Any, delta: Any, order: Any, kept: Any) -> Any:
    """√(factor max{1, t^{2−α}} log(union/δ)/n)."""
    power = float(kept) ** (2.0 - order)
    return np.sqrt(np.maximum(1.0, power)) * root_log(c, n, delta)


def fkea(c: Constants, n: Any, delta: Any, order: Any, frequencies: Any) -> Float:
    """√(factor max{1, t^{2−α}} log(union/δ)/min{n, t})."""
    power = np.sqrt(np.maximum(1.0, float(frequencies) ** (2.0 - order)))
    return np.asarray(power * root_log(c, np.minimum(n, frequencies), delta))


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
