"""Deterministic inequalities: the error is the left side, the width the right side.

A positive semi-definite matrix A enters by a factor F with A = F Fᵀ: Tr √A is then the sum of the
singular values of F, which keeps its digits where A is singular. All inputs may carry leading
batch axes; without them they may be exact numbers (`_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genbounds.bounds._assumptions import (
    FULL_RANK_REFERENCE,
    ORDERED,
    PSD,
    SUMS,
    SYMMETRIC,
    alpha_in,
    distributions,
)
from genbounds.bounds._bound import Assumption, Bound, Constants, kind, quantity
from genbounds.bounds._covariances import operator_norm
from genbounds.bounds._numbers import (
    eigenvalues,
    entr,
    is_exact,
    log,
    norm,
    power,
    reals,
    root,
    singular_values,
    whitened,
)
from genbounds.validation import Float

CLIP = float(np.exp(-1.0))


def inequality(
    setting: str, name: str, text: str, left: Any, *assumptions: Assumption
) -> Callable[..., Callable[..., Bound]]:
    """Return the kind of statements that hold without probability; `left` is their left side."""
    return kind(setting, quantity(name, text, left), *assumptions, form="deterministic")


# --- roots of matrices --------------------------------------------------------------------------


def _nuclear(matrices: Float) -> Float:
    return np.asarray(singular_values(matrices).sum(axis=-1))


def _gram(factor: Float) -> Float:
    return factor @ np.swapaxes(factor, -1, -2)


def _trace_root(factor: Float, reference_factor: Float) -> Float:
    """Tr (Σ Σ_r)^{1/2} of Σ = F Fᵀ, Σ_r = R Rᵀ: the nuclear norm of Fᵀ R."""
    return _nuclear(np.swapaxes(factor, -1, -2) @ reference_factor)


def root_change(factor: Float, other_factor: Float, reference_factor: Float) -> Float:
    return np.abs(
        _trace_root(factor, reference_factor) - _trace_root(other_factor, reference_factor)
    )


def root_change_bound(
    c: Constants, factor: Float, other_factor: Float, reference_factor: Float
) -> Float:
    """Tr[Σ_r^{1/2}] √(factor ‖Σ−Σ̂‖)."""
    gap = operator_norm(_gram(factor) - _gram(other_factor))
    return np.asarray(_nuclear(reference_factor) * root(c["factor"] * gap))


def larger_root(factor: Float, other_factor: Float) -> Float:
    return np.maximum(_nuclear(factor), _nuclear(other_factor))


def root_of_sum(factor: Float, other_factor: Float) -> Float:
    return _nuclear(np.concatenate([factor, other_factor], axis=-1))


def root_of_sum_bound(c: Constants, factor: Float, other_factor: Float) -> Float:
    """Tr √(A+B), times the printed factor 1."""
    return c["factor"] * root_of_sum(factor, other_factor)


def sum_of_roots(c: Constants, factor: Float, other_factor: Float) -> Float:
    """Tr √A + Tr √B, times the printed factor 1."""
    return c["factor"] * (_nuclear(factor) + _nuclear(other_factor))


def inverse_ratio(larger: Float, smaller: Float) -> Float:
    """Largest eigenvalue of B^{1/2} A⁻¹ B^{1/2}: at most 1 exactly if B⁻¹ ⪰ A⁻¹."""
    return np.asarray(operator_norm(whitened(larger, smaller)))


def one(c: Constants) -> float:
    """Ratio 1: the printed order itself."""
    return c["ratio"]


def _parts(factor: Float, other_factor: Float) -> tuple[Float, Float]:
    """Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ and μ̂ − μ; the columns of `other_factor` are the x_i − μ."""
    n = other_factor.shape[-1]
    raw = other_factor @ np.swapaxes(other_factor, -1, -2) / n
    return factor @ np.swapaxes(factor, -1, -2) - raw, other_factor.sum(axis=-1) / n


def split_error(factor: Float, other_factor: Float) -> Float:
    """‖Σ − Σ̂‖."""
    gap, mean = _parts(factor, other_factor)
    return np.asarray(operator_norm(gap + mean[..., :, None] * mean[..., None, :]))


def split(c: Constants, factor: Float, other_factor: Float) -> Float:
    """‖Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ‖ + factor ‖μ−μ̂‖²."""
    gap, mean = _parts(factor, other_factor)
    return np.asarray(operator_norm(gap) + c["factor"] * np.square(mean).sum(axis=-1))


# --- entropies, spectra, norms ------------------------------------------------------------------


def entropy_sum(z: Float) -> Float:
    """ℰ(z) = −Σ_j z_j log z_j over the last axis."""
    return np.asarray(entr(z).sum(axis=-1))


def clip(p: Float, epsilon: Float, *, point: float = CLIP) -> Float:
    """Move each entry of `p` by `epsilon` towards `point`, and no further than there."""
    step = np.where(p < point, epsilon, -epsilon)
    return np.where(np.abs(p - point) >= epsilon, p + step, point)


def entropy(p: Float) -> Float:
    return entropy_sum(p)


def clipped_entropy(c: Constants, p: Float, p_estimate: Float) -> Float:
    """ℰ(Clip_{point}(p̃, |p̃−p|))."""
    reach = reals(np.abs(p_estimate - p))
    return entropy_sum(clip(reals(p_estimate), reach, point=reals(c["point"])))


def spectral_distance(a: Float, b: Float) -> Float:
    return np.asarray(norm(eigenvalues(a) - eigenvalues(b)))


def frobenius(c: Constants, a: Float, b: Float) -> Any:
    """‖A−B‖_F, times the printed factor 1."""
    return c["factor"] * norm(a - b, (-2, -1))


def truncate(v: Float, t: Any) -> Float:
    """v_j + (1−S_t)/t for j ≤ t and 0 beyond, S_t the sum of the first `t` entries of `v`."""
    kept = np.arange(v.shape[-1]) < np.asarray(t)[..., None]
    head = np.where(kept, v, 0)
    lift = (1 - head.sum(axis=-1, keepdims=True)) / np.asarray(t)[..., None]
    return np.where(kept, head + lift, 0)


def projection_distance(v: Float, t: Any) -> Float:
    return np.asarray(norm(v - truncate(v, t)))


def rival_distance(c: Constants, v: Float, w: Float) -> Any:
    """‖v−w‖ for another point w of the t-simplex, times the printed factor 1."""
    return c["factor"] * norm(v - w)


def alpha_norm(v: Float, alpha: Any) -> Float:
    order = np.asarray(alpha)
    return np.asarray(power(power(np.abs(v), order[..., None]).sum(axis=-1), 1 / order))


def embedding(c: Constants, v: Float, alpha: Any) -> Any:
    """d^{(2−α)/root} ‖v‖₂."""
    exponent = (2 - np.asarray(alpha)) / c["root"]
    return power(v.shape[-1], exponent) * norm(v)


# --- moments of sums ----------------------------------------------------------------------------


def _argument(weights: Float, scales: Float, position: Any) -> Float:
    """Return s: position / max_i w_i α_i, α_i = 2 `scales`; `position` where that is 0."""
    edge = 2 * (weights * scales).max(axis=-1)
    return np.asarray(position / np.where(edge > 0, edge, 1))


def log_moment(
    weights: Float, shapes: Float, scales: Float, deviations: Float, position: Any
) -> Float:
    """``log E exp(s Σ w_i (X_i − μ_i))`` of X_i = Gamma(shape, scale) + N(0, deviation²)."""
    s = _argument(weights, scales, position)[..., None]
    x = s * weights * scales
    gamma = -log(1 - x) - x if is_exact(x) else _minus_log(x)
    return np.asarray((shapes * gamma + np.square(s * weights * deviations) / 2).sum(axis=-1))


def _minus_log(x: Float) -> Float:
    """−log(1−x) − x, without losing its digits where x is small."""
    series = x * x * (0.5 + x * (1.0 / 3.0 + x * (0.25 + x * 0.2)))
    return np.where(np.abs(x) < 1e-3, series, -np.log1p(-x) - x)


def sub_exponential_sum(
    c: Constants, weights: Float, shapes: Float, scales: Float, deviations: Float, position: Any
) -> Float:
    """``factor s²/2 Σ w_i² ν_i²``, ν² = 2 shape scale² + deviation²."""
    s = _argument(weights, scales, position)
    nu_squared = 2 * shapes * np.square(scales) + np.square(deviations)
    return np.asarray(c["factor"] * s**2 * (np.square(weights) * nu_squared).sum(axis=-1) / 2)


MOMENTS = inequality(
    "independent-sums", "log-moment", "log E exp(s Σw_i(X_i−μ_i))", log_moment, SUMS
)
ROOT_CHANGE = inequality(
    "factor-triple",
    "root-change",
    "|Tr(ΣΣ_r)^{1/2} − Tr(Σ̂Σ_r)^{1/2}|",
    root_change,
    FULL_RANK_REFERENCE,
)
LARGER_ROOT = inequality("factor-pair", "larger-root", "max{Tr√A, Tr√B}", larger_root, PSD)
ROOT_OF_SUM = inequality("factor-pair", "root-of-sum", "Tr√(A+B)", root_of_sum, PSD)
INVERSES = inequality(
    "ordered-pair", "inverse-ratio", "λ_max(B^{1/2}A⁻¹B^{1/2})", inverse_ratio, ORDERED
)
SPLIT = inequality("factor-pair", "split-error", "‖Σ−Σ̂‖", split_error, PSD)
ENTROPY = inequality(
    "distribution-pair",
    "entropy",
    "H(p)",
    entropy,
    distributions("p, p̃ distributions", "p", "p_estimate"),
)
SPECTRA = inequality(
    "symmetric-pair", "spectral-distance", "‖λ(A) − λ(B)‖₂", spectral_distance, SYMMETRIC
)
PROJECTION = inequality(
    "simplex-triple",
    "projection-distance",
    "‖v − v^{(t)}‖",
    projection_distance,
    distributions("v a distribution, w a distribution on the first t entries", "v", "w"),
)
ALPHA_NORM = inequality(
    "vector-order", "alpha-norm", "‖v‖_α", alpha_norm, alpha_in(1.0, 2.0, "1 ≤ α < 2")
)
