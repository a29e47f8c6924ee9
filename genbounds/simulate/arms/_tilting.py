"""What the families' tilts share: how far to tilt, and how to weigh what was drawn.

A tilted sample comes from a mixture of the distribution itself and of tilted ones, which differ
from it by fixed amounts of information per sample (`LEVELS`, in nats): an event of probability
e^(−L) is common under a tilt that costs L. The weight of a sample is the density of the
distribution over that of the whole mixture, so that it never exceeds the number of parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from genbounds.validation import Float

# The audit examines failure probabilities from 1e-6 to 1e-20 by tilts: e^(−12) is about 6e-6 and
# e^(−50) about 2e-22; a width twice too large needs four times the information, hence up to 100.
LEVELS = (12.0, 25.0, 50.0, 100.0)

Part = TypeVar("Part")


def mixture(
    parts: Sequence[Part],
    count: int,
    rng: Generator,
    draw: Callable[[Part, int], Float],
    log_ratios: Callable[[Float], Sequence[Float]],
) -> tuple[Float, Float]:
    """Draw `count` samples from the equal mixture of `parts`; the samples and their log weights.

    ``draw(part, k)`` gives k samples of one part; ``log_ratios(samples)`` the log densities of all
    parts over that of the distribution.
    """
    sizes = part_sizes(len(parts), count, rng)
    samples = np.concatenate([draw(part, k) for part, k in zip(parts, sizes, strict=True)])
    return samples, mixture_weights(log_ratios(samples))


def part_sizes(parts: int, count: int, rng: Generator) -> list[int]:
    """How many of `count` samples come from each part of an equal mixture."""
    return [int(k) for k in rng.multinomial(count, np.full(parts, 1.0 / parts))]


def mixture_weights(log_ratios: Sequence[Float]) -> Float:
    """Log weights of samples from the log densities of all parts over that of the distribution."""
    mixture = np.logaddexp.reduce(np.stack(log_ratios), axis=0)
    return np.asarray(math.log(len(log_ratios)) - mixture)


def strength(cost: Callable[[float], float], level: float, low: float, high: float) -> float | None:
    """Find where an increasing cost reaches `level`; None where even `high` costs less."""
    from scipy.optimize import brentq

    if cost(high) <= level:
        return None
    return float(brentq(lambda x: cost(x) - level, low, high, xtol=1e-12))


def strengths(cost: Callable[[float], float], *, low: float, high: float) -> list[float]:
    """`strength` at every one of `LEVELS` that can be reached."""
    reached = [strength(cost, level, low=low, high=high) for level in LEVELS]
    return [x for x in reached if x is not None]


def tilted_starts(n: int) -> tuple[int, ...]:
    """How many of the first rows are tilted: a running error may be rare early or late."""
    return tuple(sorted({1, max(1, round(math.sqrt(n))), n}))


def tilted_probabilities(p: float, n: int) -> list[float]:
    """Probabilities of a coin whose n tosses cost each level against p, above p and below."""

    def divergence(q: float) -> float:
        above = q * math.log(q / p) if q > 0.0 else 0.0
        below = (1.0 - q) * math.log((1.0 - q) / (1.0 - p)) if q < 1.0 else 0.0
        return above + below

    def toward(end: float) -> list[float]:
        ways = strengths(lambda x: n * divergence(p + x * (end - p)), low=0.0, high=1.0)
        # So few tosses that even a certain outcome costs less than a level: nearly certain then.
        return [p + x * (end - p) for x in ways or [0.99]]

    return toward(1.0) + toward(0.0)


def random_directions(count: int, m: int, rng: Generator) -> Float:
    """`count` uniform unit vectors of dimension m, shape (count, m)."""
    rows = rng.standard_normal((count, m))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def log_direction_mean(x: Float, m: int) -> Float:
    """Log of E exp(x v_1), v uniform on the unit sphere of dimension m."""
    from scipy.special import gammaln, ive

    x = np.abs(x)
    if m == 1:
        return np.asarray(x + np.log1p(np.exp(-2.0 * x)) - math.log(2.0))
    order = 0.5 * m - 1.0
    safe = np.maximum(x, 1e-3)
    bessel = gammaln(0.5 * m) - order * np.log(0.5 * safe) + np.log(ive(order, safe)) + safe
    # Near 0 the Bessel function underflows; the first term of the series is exact to 1e-12 there.
    return np.where(x > 1e-3, bessel, x**2 / (2.0 * m))


def log_sphere_mean(values: Float) -> Float:
    """Log of E exp(Σ_j a_j v_j²), v uniform on the unit sphere, over the last axis of a.

    Notes
    -----
    E exp(vᵀAv) = Γ(m/2)/(2πi) ∫ e^s Π_j (s − a_j)^(−1/2) ds along a path that comes from and
    returns to −∞ around all a_j; here a parabola through the saddle point, to about 1e-9.
    """
    from scipy.special import gammaln

    top = values.max(axis=-1)
    m = values.shape[-1]
    if m == 1:
        return np.asarray(top)
    gaps = top[..., None] - values
    # The saddle point s = top + x solves Σ_j 1/(2 (x + gap_j)) = 1, by bisection on x.
    low, high = np.full(top.shape, 0.5), np.full(top.shape, 0.5 * m)
    for _ in range(40):
        middle = 0.5 * (low + high)
        right = (0.5 / (middle[..., None] + gaps)).sum(axis=-1) > 1.0
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    saddle = 0.5 * (low + high)
    reach = saddle[..., None] + gaps
    # The parabola follows the third derivative there, so that the integrand does not oscillate.
    second = (0.5 / reach**2).sum(axis=-1)
    bend = -(1.0 / reach**3).sum(axis=-1) / (6.0 * second**1.5)
    step = 1.0 / np.sqrt(second)
    # Trapezoidal rule over twelve standard deviations of the integrand, half of it by symmetry.
    spacing, nodes = 0.2, 60
    total = np.zeros(top.shape)
    for node in spacing * np.arange(nodes):
        moved = step * (1j * node + bend * node**2)
        exponent = moved - 0.5 * np.log1p(moved[..., None] / reach).sum(axis=-1)
        term = (np.exp(exponent) * (1.0 - 2j * bend * node)).real
        total += term if node else 0.5 * term
    peak = top + saddle - 0.5 * np.log(reach).sum(axis=-1)
    return np.asarray(gammaln(0.5 * m) + peak + np.log(total * spacing * step / math.pi))
