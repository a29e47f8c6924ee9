"""Samples from laws under which rare errors are common, with what it takes to undo that.

Each law is replaced by a mixture of the law itself and of tilted ones, which differ from it by
fixed amounts of information per sample (`_LEVELS`, in nats): an event of probability e^(−L) is
common under a tilt that costs L. The weight of a sample is the density of the law over that of
the whole mixture, so that it never exceeds the number of parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genbounds.simulate._arms import Statistics, SyntheticArm
from genbounds.simulate._bounded import CategoricalArm, SphereArm
from genbounds.simulate._frechet import FrechetArm
from genbounds.simulate._gaussian import GaussianArm
from genbounds.simulate._kernels import VendiArm
from genbounds.simulate._posteriors import DirichletArm, log_gammas
from genbounds.simulate._scalars import BernoulliArm, BetaArm, UniformArm
from genbounds.validation import Float

# From e^(−12), about 6e-6, to e^(−100): a width twice too large needs four times the information.
_LEVELS = (12.0, 25.0, 50.0, 100.0)
_MOST_FEATURES = 64
_OF_MEANS = {"mean_error_norm", "mean_vector", "sample_mean", "sample_mean_gap"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Sample quantities of independent samples from a mixture of tilted laws.

    Attributes
    ----------
    statistics : dict of str to ndarray
    log_weights : ndarray of shape (k,)
        Logarithm of the density of the law over that of the mixture.
    """

    statistics: Statistics
    log_weights: Float


def tilted(
    arm: SyntheticArm, names: Collection[str], n: int, count: int, rng: np.random.Generator
) -> Tilted | None:
    """Draw `count` tilted samples of size `n`; None where no tilt of the law is at hand.

    ``mean_deviation``, no function of mean and covariance, stands at its largest possible value,
    the root of Tr Σ̂: a width grows with it, so that misses are undercounted, never overcounted.
    """
    if isinstance(arm, GaussianArm) or (
        isinstance(arm, FrechetArm) and isinstance(arm.features, GaussianArm)
    ):
        if arm.d > _MOST_FEATURES:
            return None
        if set(names) & {"running_mean", "rows"}:
            return _gaussian_rows(arm, names, n, count, rng) if arm.d == 1 else None
        return _gaussian(arm, names, n, count, rng)
    law = arm.law if isinstance(arm, VendiArm) and arm.frequencies is None else arm
    if isinstance(law, CategoricalArm):
        return _categorical(law, names, n, count, rng)
    if isinstance(arm, BernoulliArm):
        return _bernoulli(arm, names, n, count, rng)
    if isinstance(arm, BetaArm):
        return _beta(arm, arm.a, arm.b, names, n, count, rng)
    if isinstance(arm, UniformArm) and (arm.low, arm.high) == (0.0, 1.0):
        return _beta(arm, 1.0, 1.0, names, n, count, rng)
    if isinstance(arm, DirichletArm):
        return _dirichlet(arm, names, n, count, rng)
    features = arm.features if isinstance(arm, FrechetArm) else arm
    if isinstance(features, SphereArm) and not set(names) & {"sample_spectrum"}:
        return _sphere(arm, features, names, n, count, rng)
    return None


def _solve(cost: Callable[[float], float], low: float, high: float, level: float) -> float | None:
    """Root of an increasing cost; None where even `high` costs less."""
    from scipy.optimize import brentq

    if cost(high) <= level:
        return None
    return float(brentq(lambda x: cost(x) - level, low, high, xtol=1e-12))


def _mixture(count: int, parts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of `count` samples come from each part; the first is the law itself."""
    return np.asarray(rng.multinomial(count, np.full(parts, 1.0 / parts)))


def _undo(ratios: list[Float]) -> Float:
    """Log weights from the log densities of all parts over that of the law."""
    stacked = np.stack(ratios)
    return np.asarray(math.log(len(ratios)) - np.logaddexp.reduce(stacked, axis=0))


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
    low, high = np.full(top.shape, 0.5), np.full(top.shape, 0.5 * m)
    for _ in range(40):
        middle = 0.5 * (low + high)
        right = (0.5 / (middle[..., None] + gaps)).sum(axis=-1) > 1.0
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    reach = (0.5 * (low + high))[..., None] + gaps
    second = (0.5 / reach**2).sum(axis=-1)
    bend = -(1.0 / reach**3).sum(axis=-1) / (6.0 * second**1.5)
    step = 1.0 / np.sqrt(second)
    spacing = 0.2
    nodes = spacing * np.arange(60)
    total = np.zeros(top.shape)
    for node in nodes:
        moved = step * (1j * node + bend * node**2)
        exponent = moved - 0.5 * np.log1p(moved[..., None] / reach).sum(axis=-1)
        term = (np.exp(exponent) * (1.0 - 2j * bend * node)).real
        total += term if node else 0.5 * term
    peak = top + 0.5 * (low + high) - 0.5 * np.log(reach).sum(axis=-1)
    return np.asarray(gammaln(0.5 * m) + peak + np.log(total * spacing * step / math.pi))


def log_direction_mean(x: Float, m: int) -> Float:
    """Log of E exp(x v_1), v uniform on the unit sphere of dimension m."""
    from scipy.special import gammaln, ive

    x = np.abs(x)
    if m == 1:
        return np.asarray(x + np.log1p(np.exp(-2.0 * x)) - math.log(2.0))
    order = 0.5 * m - 1.0
    safe = np.maximum(x, 1e-3)
    large = gammaln(0.5 * m) - order * np.log(0.5 * safe) + np.log(ive(order, safe)) + safe
    return np.where(x > 1e-3, large, x**2 / (2.0 * m))


def _directions(count: int, m: int, rng: np.random.Generator) -> Float:
    rows = rng.standard_normal((count, m))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _inflation(c: Float) -> float:
    """Information, for each sample, of variances multiplied by c."""
    return 0.5 * float((c - 1.0 - np.log(c)).sum())


def _inflations(n: int) -> list[float]:
    """Factors of one variance that cost each level."""
    found = [_solve(lambda x: n * _inflation(np.exp([x])), 0.0, 60.0, level) for level in _LEVELS]
    return [math.exp(x) for x in found if x is not None]


def _norm_tilts(shares: Float, n: int) -> list[float]:
    """Values θ for which variances multiplied by 1/(1 − θ λ_j), largest λ_j = 1, cost each level.

    They make Σ‖x‖² larger (θ > 0) or smaller in the way that costs least.
    """
    found = []
    for side in (1.0, -1.0):
        for level in _LEVELS:

            def cost(x: float, side: float = side) -> float:
                theta = -math.expm1(-side * x)
                return n * _inflation(1.0 / (1.0 - theta * shares))

            x = _solve(cost, 0.0, 30.0, level)
            found += [] if x is None else [-math.expm1(-side * x)]
    return found


def _gaussian(
    arm: GaussianArm | FrechetArm,
    names: Collection[str],
    n: int,
    count: int,
    rng: np.random.Generator,
) -> Tilted:
    """Tilt mean and covariance: shifts, and larger or smaller variances.

    Directions are uniform in the leading eigenspace and integrated out of the weights.
    """
    features = arm.features if isinstance(arm, FrechetArm) else arm
    assert isinstance(features, GaussianArm)
    d, values = features.d, features.eigenvalues
    lead = values >= values.max() * (1.0 - 1e-9)
    m = int(lead.sum())
    shares = values / values.max()
    scattered = not set(names) <= _OF_MEANS
    parts: list[tuple[str, float]] = [("law", 0.0)]
    parts += [("shift", math.sqrt(2.0 * level / n)) for level in _LEVELS]
    gap = np.zeros(d)
    if isinstance(arm, FrechetArm):
        between = np.broadcast_to(features.facts["mean"], (d,)) - arm.reference_mean
        _, vectors = features._spectrum
        gap = (between if vectors is None else between @ vectors) * np.sqrt(values)
        norm = float(np.linalg.norm(gap))
        if norm > 0.0:
            gap = gap / norm
            parts += [("gap", math.sqrt(2.0 * level / n)) for level in _LEVELS]
            parts += [("gap", -math.sqrt(2.0 * level / n)) for level in _LEVELS]
    if scattered:
        parts += [("norm", theta) for theta in _norm_tilts(shares, n)]
        parts += [("lead", c) for c in _inflations(n)]
    blocks, factors = [], []
    for (kind, size), k in zip(parts, _mixture(count, len(parts), rng), strict=True):
        white = rng.standard_normal((k, d)) / math.sqrt(n)
        factor = features.white_factor(n, k, rng) if scattered else np.zeros((k, d, 0))
        if kind == "norm":
            stretch = 1.0 / np.sqrt(1.0 - size * shares)
            white, factor = white * stretch, factor * stretch[:, None]
        elif kind == "gap":
            white = white + size * gap
        elif kind in ("shift", "lead"):
            v = np.zeros((k, d))
            v[:, lead] = _directions(k, m, rng)
            if kind == "shift":
                white = white + size * v
            else:
                more = math.sqrt(size) - 1.0
                white = white + more * (white * v).sum(axis=1)[:, None] * v
                factor = factor + more * v[:, :, None] * (v[:, None, :] @ factor)
        blocks.append(white)
        factors.append(factor)
    white, factor = np.concatenate(blocks), np.concatenate(factors)
    energy = (n * np.square(white) + np.square(factor).sum(axis=2)) @ shares
    inside = factor[:, lead]
    scatter = inside @ np.swapaxes(inside, 1, 2)
    scatter += n * white[:, lead, None] * white[:, None, lead]
    along = np.linalg.norm(white[:, lead], axis=1)
    eigenvalues = np.asarray(np.linalg.eigvalsh(scatter) if scattered else along[:, None])
    ratios = []
    for kind, size in parts:
        if kind == "law":
            ratios.append(np.zeros(count))
        elif kind == "shift":
            ratios.append(-0.5 * n * size**2 + log_direction_mean(n * size * along, m))
        elif kind == "gap":
            ratios.append(-0.5 * n * size**2 + n * size * (white @ gap))
        elif kind == "norm":
            ratios.append(0.5 * n * np.log1p(-size * shares).sum() + 0.5 * size * energy)
        else:
            tilt = log_sphere_mean(0.5 * (1.0 - 1.0 / size) * eigenvalues)
            ratios.append(-0.5 * n * math.log(size) + tilt)
    wanted = [*names, "covariance"] if "mean_deviation" in names else list(names)
    found = arm.from_white(wanted, n, white, factor if scattered else None)
    if "mean_deviation" in names:
        found["mean_deviation"] = np.sqrt(np.trace(found["covariance"], axis1=1, axis2=2))
    kept = {name: found[name] for name in names if name in found}
    return Tilted(statistics=kept, log_weights=_undo(ratios))


def _starts(n: int) -> tuple[int, ...]:
    """How many of the rows are tilted: a running error may be rare early or late."""
    return tuple(sorted({1, max(1, round(math.sqrt(n))), n}))


def _gaussian_rows(
    arm: SyntheticArm, names: Collection[str], n: int, count: int, rng: np.random.Generator
) -> Tilted:
    """Shift the first rows of scalar samples, either way."""
    facts = arm.facts
    parts = [(0, 0.0)]
    parts += [
        (start, side * math.sqrt(2.0 * level / start))
        for start in _starts(n)
        for level in _LEVELS
        for side in (1.0, -1.0)
    ]
    blocks = []
    for (start, shift), k in zip(parts, _mixture(count, len(parts), rng), strict=True):
        z = rng.standard_normal((k, n))
        z[:, :start] += shift
        blocks.append(z)
    white = np.concatenate(blocks)
    sums = {start: white[:, :start].sum(axis=1) for start in {start for start, _ in parts}}
    ratios = [shift * sums[start] - 0.5 * start * shift**2 for start, shift in parts]
    rows = facts["mean"] + math.sqrt(facts["variance"]) * white
    return Tilted(statistics=arm.reduce(names, rows[:, :, None]), log_weights=_undo(ratios))


def _divergence(q: float, p: float) -> float:
    """Information of a coin q in a coin p."""
    total = 0.0
    if q > 0.0:
        total += q * math.log(q / p)
    if q < 1.0:
        total += (1.0 - q) * math.log((1.0 - q) / (1.0 - p))
    return total


def _coins(p: float, n: int) -> list[float]:
    """Probabilities whose n tosses cost each level, above and below p."""

    def toward(end: float) -> list[float]:
        found = [
            _solve(lambda x: n * _divergence(p + x * (end - p), p), 0.0, 1.0, level)
            for level in _LEVELS
        ]
        return [p + x * (end - p) for x in found if x is not None] or [p + 0.99 * (end - p)]

    return toward(1.0) + toward(0.0)


def _bernoulli(
    arm: BernoulliArm, names: Collection[str], n: int, count: int, rng: np.random.Generator
) -> Tilted:
    parts = [(0, arm.p)]
    parts += [(start, q) for start in _starts(n) for q in _coins(arm.p, start)]
    blocks = []
    for (start, q), k in zip(parts, _mixture(count, len(parts), rng), strict=True):
        chance = np.where(np.arange(n) < start, q, arm.p)
        blocks.append((rng.random((k, n)) < chance).astype(np.float64))
    rows = np.concatenate(blocks)
    ratios = []
    for start, q in parts:
        ones = rows[:, :start].sum(axis=1)
        ratios.append(
            ones * math.log(q / arm.p) + (start - ones) * math.log((1.0 - q) / (1.0 - arm.p))
        )
    return Tilted(statistics=arm.reduce(names, rows[:, :, None]), log_weights=_undo(ratios))


def _beta(
    arm: SyntheticArm,
    a: float,
    b: float,
    names: Collection[str],
    n: int,
    count: int,
    rng: np.random.Generator,
) -> Tilted:
    """Raise one of the two parameters."""
    from scipy.special import betaln, digamma

    def cost(more_a: float, more_b: float) -> float:
        p, q = a + more_a, b + more_b
        total = digamma(p + q)
        change = more_a * (digamma(p) - total) + more_b * (digamma(q) - total)
        return n * float(betaln(a, b) - betaln(p, q) + change)

    parts = [(0.0, 0.0)]
    for level in _LEVELS:
        first = _solve(lambda x: cost(math.expm1(x) * a, 0.0), 0.0, 20.0, level)
        other = _solve(lambda x: cost(0.0, math.expm1(x) * b), 0.0, 20.0, level)
        parts += [] if first is None else [(math.expm1(first) * a, 0.0)]
        parts += [] if other is None else [(0.0, math.expm1(other) * b)]
    blocks = []
    for (more_a, more_b), k in zip(parts, _mixture(count, len(parts), rng), strict=True):
        blocks.append(rng.beta(a + more_a, b + more_b, (k, n)))
    # Rounded to an end of the interval a row has no finite logarithm.
    rows = np.clip(np.concatenate(blocks), 1e-300, 1.0 - 1e-16)
    low, high = np.log(rows).sum(axis=1), np.log1p(-rows).sum(axis=1)
    ratios = [
        more_a * low + more_b * high + n * (betaln(a, b) - betaln(a + more_a, b + more_b))
        for more_a, more_b in parts
    ]
    return Tilted(statistics=arm.reduce(names, rows[:, :, None]), log_weights=_undo(ratios))


def _categorical(
    arm: CategoricalArm, names: Collection[str], n: int, count: int, rng: np.random.Generator
) -> Tilted:
    """Make one class, drawn at random and integrated out, more or less likely."""
    p = arm.probabilities
    d = p.size
    table = [_coins(float(value), n) for value in p]
    depth = min(len(found) for found in table)
    blocks = []
    parts = _mixture(count, depth + 1, rng)
    blocks.append(rng.multinomial(n, p, parts[0]))
    for index in range(depth):
        k = int(parts[index + 1])
        chosen = rng.integers(d, size=k)
        q = np.array([table[j][index] for j in chosen])
        chances = np.tile(p, (k, 1)) * ((1.0 - q) / (1.0 - p[chosen]))[:, None]
        chances[np.arange(k), chosen] = q
        blocks.append(rng.multinomial(n, chances))
    counts = np.concatenate(blocks)
    ratios = [np.zeros(count)]
    for index in range(depth):
        q = np.array([found[index] for found in table])
        each = counts * np.log(q / p) + (n - counts) * np.log((1.0 - q) / (1.0 - p))
        ratios.append(np.logaddexp.reduce(each, axis=1) - math.log(d))
    return Tilted(statistics=arm.from_shares(names, counts / n), log_weights=_undo(ratios))


def _dirichlet_change(old: Float, new: Float) -> Float:
    """Log of the ratio of the two densities' constants, one for each component."""
    from scipy.special import gammaln

    ratio = gammaln(new.sum(axis=-1)) - gammaln(old.sum(axis=-1))
    return np.asarray(ratio - (gammaln(new) - gammaln(old)).sum(axis=-1))


def _concentrations(arm: DirichletArm, n: int) -> list[list[Float]]:
    """Parameters under which n rows cost each level: one list for each class, one for all.

    Larger parameters of a class make it more likely, larger ones of all bring the posteriors
    towards their mean.
    """
    from scipy.special import digamma

    old = arm.concentrations
    d = old.shape[1]

    def scaled(x: float, classes: slice) -> Float:
        new = old.copy()
        new[:, classes] *= math.exp(x)
        return new

    def cost(x: float, classes: slice) -> float:
        new = scaled(x, classes)
        slope = digamma(new) - digamma(new.sum(axis=1, keepdims=True))
        each = _dirichlet_change(old, new) + ((new - old) * slope).sum(axis=1)
        return n * float(arm.weights @ each)

    found = []
    for classes in [*(slice(j, j + 1) for j in range(d)), slice(0, d)]:
        tilts = []
        for side in (1.0, -1.0):
            for level in _LEVELS:

                def along(x: float, side: float = side, classes: slice = classes) -> float:
                    return cost(side * x, classes)

                x = _solve(along, 0.0, 6.0, level)
                tilts.append(scaled(side * (6.0 if x is None else x), classes))
        found.append(tilts)
    return found


def _dirichlet(
    arm: DirichletArm, names: Collection[str], n: int, count: int, rng: np.random.Generator
) -> Tilted:
    """Change the parameters of one class, drawn at random and integrated out, or of all."""
    k, d = arm.concentrations.shape
    *single, joint = _concentrations(arm, n)
    depth = len(joint)
    sizes = _mixture(count, 1 + 2 * depth, rng)
    shapes = [np.broadcast_to(arm.concentrations, (int(sizes[0]), k, d))]
    for index in range(depth):
        chosen = rng.integers(d, size=int(sizes[1 + index]))
        shapes.append(np.array([single[j][index] for j in chosen]).reshape(-1, k, d))
        shapes.append(np.broadcast_to(joint[index], (int(sizes[1 + depth + index]), k, d)))
    table = np.concatenate(shapes)
    component = rng.choice(k, (count, n), p=arm.weights)
    logs = log_gammas(table[np.arange(count)[:, None], component], rng)
    logs -= np.logaddexp.reduce(logs, axis=2, keepdims=True)
    # All that the densities depend on: rows of each component, and the sums of their logarithms.
    of = component[:, :, None] == np.arange(k)
    rows = of.sum(axis=1)
    sums = np.einsum("rnk,rnd->rkd", of, logs)

    def ratio(new: Float) -> Float:
        change = rows @ _dirichlet_change(arm.concentrations, new)
        return np.asarray(change + np.einsum("rkd,kd->r", sums, new - arm.concentrations))

    ratios = [np.zeros(count)]
    for index in range(depth):
        each = np.stack([ratio(tilts[index]) for tilts in single])
        ratios.append(np.logaddexp.reduce(each, axis=0) - math.log(d))
        ratios.append(ratio(joint[index]))
    return Tilted(statistics=arm.reduce(names, np.exp(logs)), log_weights=_undo(ratios))


def _sphere(
    arm: SyntheticArm,
    features: SphereArm,
    names: Collection[str],
    n: int,
    count: int,
    rng: np.random.Generator,
) -> Tilted:
    """Draw the rows of a sample towards one direction, uniform and integrated out."""
    d = features.d

    def spread(kappa: float) -> float:
        return float(log_direction_mean(np.asarray(kappa), d))

    def cost(kappa: float) -> float:
        slope = (spread(kappa * 1.0001) - spread(kappa * 0.9999)) / (2e-4 * kappa)
        return n * (kappa * slope - spread(kappa))

    kappas = [_solve(cost, 1e-6, 200.0, level) for level in _LEVELS]
    parts = [0.0, *(kappa for kappa in kappas if kappa is not None)]
    blocks = []
    for kappa, k in zip(parts, _mixture(count, len(parts), rng), strict=True):
        blocks.append(_towards(kappa, k, n, d, rng))
    rows = np.concatenate(blocks)
    length = np.linalg.norm(rows.sum(axis=1), axis=1)
    ratios = [log_direction_mean(kappa * length, d) - n * spread(kappa) for kappa in parts]
    return Tilted(statistics=arm.reduce(names, features.radius * rows), log_weights=_undo(ratios))


def _towards(kappa: float, k: int, n: int, d: int, rng: np.random.Generator) -> Float:
    """Von Mises–Fisher rows of shape (k, n, d), one random direction for each of the k samples."""
    if kappa == 0.0 or k == 0:
        return _directions(k * n, d, rng).reshape(k, n, d)
    if d == 1:
        sign = np.where(rng.random((k, n)) < 1.0 / (1.0 + math.exp(-2.0 * kappa)), 1.0, -1.0)
        return (sign * np.where(rng.random((k, 1)) < 0.5, 1.0, -1.0))[:, :, None]
    from scipy.stats import vonmises_fisher

    axis = np.eye(d)[0]
    rows = np.asarray(vonmises_fisher(axis, kappa).rvs(k * n, random_state=rng)).reshape(k, n, d)
    # The reflection that carries the axis to the direction; it leaves the law about the axis.
    normal = _directions(k, d, rng) - axis
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return np.asarray(rows - 2.0 * (rows @ normal[:, :, None]) * normal[:, None, :])
