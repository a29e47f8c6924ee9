"""Deterministic inequalities: the error is the left side, the width the right side.

A positive semi-definite matrix A enters by a factor F with A = F Fᵀ: Tr √A is then the sum of the
singular values of F, which keeps its digits where A is singular. All inputs may carry leading
batch axes; without them they may be exact numbers (`_numbers`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from genbounds.bounds import _assumptions as on
from genbounds.bounds import _numbers as num
from genbounds.bounds._bound import Assumption, Bound, Constants, kind, quantity
from genbounds.validation import Float

CLIP = float(np.exp(-1.0))


def inequality(
    setting: str, text: str, left: Callable[..., Any], *assumptions: Assumption
) -> Callable[..., Callable[..., Bound]]:
    """Return the kind of statements that hold without probability; `left` is their left side."""
    error = quantity(left.__name__.replace("_", "-"), text, left)
    return kind(setting, error, *assumptions, form="deterministic")


# --- roots of matrices --------------------------------------------------------------------------


def _nuclear(matrices: Float) -> Float:
    return np.asarray(num.singular_values(matrices).sum(axis=-1))


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
    gap = num.operator_norm(_gram(factor) - _gram(other_factor))
    return np.asarray(_nuclear(reference_factor) * num.root(c["factor"] * gap))


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
    return np.asarray(num.operator_norm(num.whitened(larger, smaller)))


def ratio(c: Constants) -> float:
    """Largest ratio that an order or a comparison allows."""
    return c["ratio"]


def _parts(factor: Float, other_factor: Float) -> tuple[Float, Float]:
    """Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ and μ̂ − μ; the columns of `other_factor` are the x_i − μ."""
    n = other_factor.shape[-1]
    raw = other_factor @ np.swapaxes(other_factor, -1, -2) / n
    return factor @ np.swapaxes(factor, -1, -2) - raw, other_factor.sum(axis=-1) / n


def split_error(factor: Float, other_factor: Float) -> Float:
    """‖Σ − Σ̂‖."""
    gap, mean = _parts(factor, other_factor)
    return np.asarray(num.operator_norm(gap + mean[..., :, None] * mean[..., None, :]))


def split(c: Constants, factor: Float, other_factor: Float) -> Float:
    """‖Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ‖ + factor ‖μ−μ̂‖²."""
    gap, mean = _parts(factor, other_factor)
    return np.asarray(num.operator_norm(gap) + c["factor"] * np.square(mean).sum(axis=-1))


# --- entropies, spectra, norms ------------------------------------------------------------------


def entropy_sum(z: Float) -> Float:
    """ℰ(z) = −Σ_j z_j log z_j over the last axis."""
    return np.asarray(num.entr(z).sum(axis=-1))


def clip(p: Float, epsilon: Float, *, point: float = CLIP) -> Float:
    """Move each entry of `p` by `epsilon` towards `point`, and no further than there."""
    step = np.where(p < point, epsilon, -epsilon)
    return np.where(np.abs(p - point) >= epsilon, p + step, point)


def entropy(p: Float) -> Float:
    return entropy_sum(p)


def clipped_entropy(c: Constants, p: Float, p_estimate: Float) -> Float:
    """ℰ(Clip_{point}(p̃, |p̃−p|))."""
    reach = num.reals(np.abs(p_estimate - p))
    return entropy_sum(clip(num.reals(p_estimate), reach, point=num.reals(c["point"])))


def spectral_distance(a: Float, b: Float) -> Float:
    return np.asarray(num.norm(num.eigenvalues(a) - num.eigenvalues(b)))


def frobenius(c: Constants, a: Float, b: Float) -> Any:
    """‖A−B‖_F, times the printed factor 1."""
    return c["factor"] * num.norm(a - b, (-2, -1))


def truncate(v: Float, t: Any) -> Float:
    """v_j + (1−S_t)/t for j ≤ t and 0 beyond, S_t the sum of the first `t` entries of `v`."""
    kept = np.arange(v.shape[-1]) < np.asarray(t)[..., None]
    head = np.where(kept, v, 0)
    lift = (1 - head.sum(axis=-1, keepdims=True)) / np.asarray(t)[..., None]
    return np.where(kept, head + lift, 0)


def projection_distance(v: Float, t: Any) -> Float:
    return np.asarray(num.norm(v - truncate(v, t)))


def rival_distance(c: Constants, v: Float, w: Float) -> Any:
    """‖v−w‖ for another point w of the t-simplex, times the printed factor 1."""
    return c["factor"] * num.norm(v - w)


def alpha_norm(v: Float, alpha: Any) -> Float:
    order = np.asarray(alpha)
    return np.asarray(num.power(num.power(np.abs(v), order[..., None]).sum(axis=-1), 1 / order))


def embedding(c: Constants, v: Float, alpha: Any) -> Any:
    """d^{(2−α)/root} ‖v‖₂."""
    exponent = (2 - np.asarray(alpha)) / c["root"]
    return num.power(v.shape[-1], exponent) * num.norm(v)


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
    gamma = -num.log(1 - x) - x if num.is_exact(x) else _minus_log(x)
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


# --- sums over the visits of a policy -------------------------------------------------------------

# With b samples a batch, generator g is picked N_g(T) times; n_g(T) = b N_g(T) is the number of its
# samples, T = Σ_g N_g(T) the horizon.


def visits_from(picks: Float, batch: Any, burn_in: Any, alpha: Any) -> Float:
    """Σ_t n_t^{−α}: generator g holds N + b (k−1) samples before its k-th batch."""
    steps = np.arange(int(np.max(picks)))
    samples = np.asarray(burn_in)[..., None, None] + np.asarray(batch)[..., None, None] * steps
    terms = num.power(samples, -np.asarray(alpha)[..., None, None])
    return np.asarray(np.where(steps < picks[..., None], terms, 0).sum(axis=(-2, -1)))


def visit_sum(picks: Float, batch: Any, alpha: Any) -> Float:
    """Σ_t n_t^{−α}: generator g holds b k samples after its k-th batch."""
    return visits_from(picks, batch, batch, alpha)


def harmonic_visits(picks: Float, batch: Any) -> Float:
    """Σ_t 1/n_t."""
    return visit_sum(picks, batch, np.ones(np.shape(batch)))


def picks_power(picks: Float, alpha: Any) -> Float:
    """Σ_g N_g(T)^{1−α}."""
    return np.asarray(num.power(picks, 1 - np.asarray(alpha)[..., None]).sum(axis=-1))


def samples_power(picks: Float, batch: Any, alpha: Any) -> Float:
    """Σ_g n_g(T)^{1−α}, n_g(T) = b N_g(T)."""
    return picks_power(np.asarray(batch)[..., None] * picks, alpha)


def picks_log(picks: Float) -> Float:
    """Σ_g log N_g(T)."""
    return np.asarray(num.log(picks).sum(axis=-1))


def samples_log(picks: Float, batch: Any) -> Float:
    """Σ_g log n_g(T)."""
    return picks_log(np.asarray(batch)[..., None] * picks)


def power_samples(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """Evaluate ((base b)^α/(1−α)) Σ_g n_g(T)^{1−α}."""
    order = np.asarray(alpha)
    factor = num.power(c["base"] * np.asarray(batch), order) / (1 - order)
    return np.asarray(factor * samples_power(picks, batch, alpha))


def power_picks(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """(base^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}."""
    order = np.asarray(alpha)
    factor = num.power(c["base"] / np.asarray(batch), order) / (1 - order)
    return np.asarray(factor * picks_power(picks, alpha))


def log_samples(c: Constants, picks: Float, batch: Any) -> Float:
    """``factor b Σ_g log n_g(T)``."""
    return np.asarray(c["factor"] * np.asarray(batch) * samples_log(picks, batch))


def log_picks(c: Constants, picks: Float, batch: Any) -> Float:
    """(factor/b) Σ_g log N_g(T)."""
    return np.asarray(c["factor"] / np.asarray(batch) * picks_log(picks))


def offset_log_picks(c: Constants, picks: Float, batch: Any) -> Float:
    """Σ_g (offset + log N_g(T))/b."""
    return np.asarray((c["offset"] + num.log(picks)).sum(axis=-1) / batch)


def horizon_power(c: Constants, picks: Float, alpha: Any) -> Float:
    """Evaluate factor G^α T^{1−α}, T = Σ_g N_g(T)."""
    order = np.asarray(alpha)
    share = num.power(picks.shape[-1], order) * num.power(picks.sum(axis=-1), 1 - order)
    return np.asarray(c["factor"] * share)


def horizon_log(c: Constants, picks: Float) -> Float:
    """Evaluate factor G log T."""
    return np.asarray(c["factor"] * picks.shape[-1] * num.log(picks.sum(axis=-1)))


def sampled_power(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """Evaluate factor G^α (bT)^{1−α}."""
    return horizon_power(c, np.asarray(batch)[..., None] * picks, alpha)


def sampled_log(c: Constants, picks: Float, batch: Any) -> Float:
    """Evaluate factor G log(bT)."""
    return horizon_log(c, np.asarray(batch)[..., None] * picks)


# --- quasi-Monte Carlo: the two sides of Koksma–Hlawka --------------------------------------------

# Both are known exactly for a product of step functions, one of each coordinate, at points in the
# unit cube of one dimension or a few.


def integral_error(points: Float, knots: Float, levels: Float) -> Float:
    """``|∫f − N⁻¹Σf(x_i)|``; f(x) = Π_k levels[k, j] where j of knots[k] are at most x_k."""
    ends = np.zeros((*knots.shape[:-1], 1), dtype=int)
    lengths = np.diff(np.concatenate([ends, knots, ends + 1], axis=-1), axis=-1)
    integral = (levels * lengths).sum(axis=-1).prod(axis=-1)
    passed = points[..., :, :, None] >= knots[..., None, :, :]
    step = np.take_along_axis(levels[..., None, :, :], passed.sum(axis=-1, keepdims=True), axis=-1)[
        ..., 0
    ]
    return np.asarray(np.abs(integral - step.prod(axis=-1).sum(axis=-1) / points.shape[-2]))


def star_discrepancy(points: Float) -> Float:
    """D*_N: the largest error of the share of `points`, (N, s), in a box that begins at 0.

    Boxes need to be tried only where a coordinate is that of a point, or 1: just short of the
    points there, and with them.
    """
    n, s = points.shape[-2:]
    ends = np.concatenate([points, np.ones((*points.shape[:-2], 1, s), dtype=int)], axis=-2)
    chosen = np.array(list(product(range(n + 1), repeat=s)))
    corners = np.stack([ends[..., chosen[:, k], k] for k in range(s)], axis=-1)[..., None, :]
    volume = corners[..., 0, :].prod(axis=-1)
    short = num.share((points[..., None, :, :] < corners).all(axis=-1), num.is_exact(points))
    with_them = num.share((points[..., None, :, :] <= corners).all(axis=-1), num.is_exact(points))
    return np.asarray(np.maximum(volume - short, with_them - volume).max(axis=-1))


def variation(levels: Float, faces: float = 1.0) -> Float:
    """Variation of Hardy and Krause of the product; without its `faces` at 1, that of Vitali."""
    jumps = np.abs(np.diff(levels, axis=-1)).sum(axis=-1)
    last = faces * np.abs(levels[..., -1])
    return np.asarray((jumps + last).prod(axis=-1) - last.prod(axis=-1))


def koksma_hlawka(c: Constants, points: Float, levels: Float) -> Float:
    """Evaluate factor V[f] D*_N."""
    return c["factor"] * variation(levels, c["faces"]) * star_discrepancy(points)


# --- the kinds of statements ----------------------------------------------------------------------

MOMENTS = inequality("independent-sums", "log E exp(s Σw_i(X_i−μ_i))", log_moment, on.SUMS)
ROOT_CHANGE = inequality(
    "factor-triple", "|Tr(ΣΣ_r)^{1/2} − Tr(Σ̂Σ_r)^{1/2}|", root_change, on.FULL_RANK_REFERENCE
)
LARGER_ROOT = inequality("factor-pair", "max{Tr√A, Tr√B}", larger_root, on.PSD)
ROOT_OF_SUM = inequality("factor-pair", "Tr√(A+B)", root_of_sum, on.PSD)
INVERSES = inequality("ordered-pair", "λ_max(B^{1/2}A⁻¹B^{1/2})", inverse_ratio, on.ORDERED)
SPLIT = inequality("factor-pair", "‖Σ−Σ̂‖", split_error, on.PSD)
ENTROPY = inequality(
    "distribution-pair", "H(p)", entropy, on.distributions("p, p̃ distributions", "p", "p_estimate")
)
SPECTRA = inequality("symmetric-pair", "‖λ(A) − λ(B)‖₂", spectral_distance, on.SYMMETRIC)
PROJECTION = inequality(
    "simplex-triple",
    "‖v − v^{(t)}‖",
    projection_distance,
    on.distributions("v a distribution, w a distribution on the first t entries", "v", "w"),
)
ALPHA_NORM = inequality(
    "vector-order", "‖v‖_α", alpha_norm, on.between("alpha", 1.0, 2.0, "1 ≤ α < 2")
)
HARMONIC = inequality("visits", "Σ_t 1/n_t", harmonic_visits, on.VISITS)
VISIT_SUM = inequality("visits", "Σ_t n_t^{−α}", visit_sum, on.VISITS, on.POWER)
SAMPLES_POWER = inequality("visits", "Σ_g n_g(T)^{1−α}", samples_power, on.VISITS, on.POWER)
PICKS_POWER = inequality("visits", "Σ_g N_g(T)^{1−α}", picks_power, on.VISITS, on.POWER)
SAMPLES_LOG = inequality("visits", "Σ_g log n_g(T)", samples_log, on.VISITS)
PICKS_LOG = inequality("visits", "Σ_g log N_g(T)", picks_log, on.VISITS)
COUNTED = inequality(
    "visits-burn-in", "Σ_t n_t^{−α}, n_t = N + b(k−1)", visits_from, on.VISITS, on.POWER, on.BURN_IN
)
INTEGRAL = inequality("step-products", "|I − Î|", integral_error, on.IN_CUBE)
