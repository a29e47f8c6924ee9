"""Gaussian arms: drawn by their sufficient statistics, with exact tails and with tilts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from genbounds.bounds import Facts, normal_product_tail, weighted_chi_square_tail
from genbounds.simulate.arms import _tilting as tilting
from genbounds.simulate.arms._arm import Names, Statistics, Tilted
from genbounds.simulate.arms._covariance import CovarianceArm
from genbounds.simulate.arms._engine import draw_triangle
from genbounds.validation import Float

_OF_SCATTER = {"covariance", "raw_covariance", "sample_variance", "mean_square"}
_OF_ORDER = {"running_mean", "rows"}
_OF_ROWS = {"mean_deviation", *_OF_ORDER}  # no functions of mean and covariance
_OF_MEANS = {"mean_error_norm", "mean_vector", "sample_mean", "sample_mean_gap"}
_KAPPA_SQUARED = 8.0 / 3.0  # E exp(X²/κ²) = 2 for X ~ N(0, 1)
_MOST_TILTED_FEATURES = 64  # a tilted sample costs a matrix of d² numbers and its eigenvalues


class GaussianArm(CovarianceArm):
    """N(mean, cov), drawn through sufficient statistics: the cost does not grow with n.

    Parameters
    ----------
    mean : array_like of shape (d,)
        A scalar is repeated.
    cov : array_like of shape (d, d) or (d,)
        Covariance, or its diagonal (then nothing of size d² is held or computed).
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        If `cov` is not a finite positive semi-definite matrix that fits `mean`.

    Notes
    -----
    μ̂ ~ N(μ, Σ/n) and, independent of it, n Σ̂ ~ Wishart(n−1, Σ) by Bartlett's decomposition,
    whose factor is a trapezoid where n − 1 < d.
    """

    families = ("gaussian", "sub-gaussian")

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        facts: dict[str, Any] = dict(super().facts) | {"kappa": _KAPPA_SQUARED**0.5}
        if self.mean.size == 1:
            # Gaussian tails throughout: any α > 0 serves, so the limit α = 0 does.
            facts["sub_exponential_nu"] = float(self.eigenvalues[0]) ** 0.5
            facts["sub_exponential_alpha"] = 0.0
        return facts

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        return self.mean + self.colour(rng.standard_normal((n, self.mean.size)))

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw sample quantities; see `SyntheticArm.statistics`."""
        wanted = set(names)
        if wanted & _OF_ROWS:
            return super().statistics(names, n, replications, rng)
        d = self.mean.size
        white = rng.standard_normal((replications, d)) / np.sqrt(n)
        out: Statistics = {}
        if "second_mean" in wanted:
            second = rng.standard_normal((replications, d)) / np.sqrt(n)
            out["second_mean"] = (self.mean + self.colour(second))[:, 0]
        if wanted & _OF_SCATTER:
            factor = draw_triangle(d, n, replications, rng)
            return out | self._from_white(names, n, white, factor)
        out |= self._from_white(names, n, white, None)
        if "mean_squared_norm" in wanted:
            # In eigen-coordinates: scatter about the sample mean plus n times its square.
            moved = self.along_axes(self.mean) + white * np.sqrt(self.eigenvalues)
            scatter = rng.chisquare(n - 1, (replications, d)) if n > 1 else np.zeros(1)
            out["mean_squared_norm"] = (self.eigenvalues * scatter / n + moved**2).sum(axis=1)
        return out

    def _from_white(self, names: Names, n: int, white: Float, factor: Float | None) -> Statistics:
        """Compute sample quantities from the sufficient statistics of white samples.

        `white` are means of n white vectors along the eigenvectors, (k, d); `factor` is A of shape
        (k, d, m) with A Aᵀ their scatter about that mean, None where no quantity needs it.
        """
        mean = self.mean + self.colour(white)
        out: Statistics = {
            "mean_error_norm": np.linalg.norm(white * np.sqrt(self.eigenvalues), axis=1),
            "mean_vector": mean,
            "sample_mean": mean[:, 0],
        }
        if factor is not None:
            factor = factor * np.sqrt(self.eigenvalues)[:, None]
            factor = factor if self.axes is None else self.axes @ factor
            scatter = factor @ np.swapaxes(factor, 1, 2) / n
            raw = scatter + mean[:, :, None] * mean[:, None, :]
            out |= {"covariance": scatter, "raw_covariance": raw, "mean_square": raw[:, 0, 0]}
            if n > 1:
                out["sample_variance"] = scatter[:, 0, 0] * (n / (n - 1))
            out["mean_squared_norm"] = np.trace(raw, axis1=1, axis2=2)
        return {name: out[name] for name in names if name in out}

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        d = self.mean.size
        if set(names) & _OF_ROWS:
            return n * d
        return 4 * d * d if set(names) & _OF_SCATTER else 2 * d

    def tail(self, quantity: str, n: int, threshold: float) -> float | None:
        """Exact tails of means, norms and (d = 1) variances."""
        values, centred = self.eigenvalues, not self.mean.any()
        if threshold < 0.0 or not values.any():
            return float(threshold < 0.0)
        table: dict[str, Callable[[], Any]] = {
            "mean-norm": lambda: weighted_chi_square_tail(n * threshold**2, values),
            "mean-norm-squared": lambda: weighted_chi_square_tail(n * threshold, values),
        }
        if centred:
            table["squared-norm-error"] = lambda: _norm_tail(values, n, threshold)
        if values.size == 1:
            variance = float(values[0])
            table["mean-error"] = lambda: _normal_tail(threshold * np.sqrt(n / variance))
            table["covariance-error"] = lambda: _variance_tail(n - 1, n, variance, threshold)
            if centred:
                table["squared-mean"] = lambda: _normal_tail(np.sqrt(threshold * n / variance))
                table["mean-product"] = lambda: normal_product_tail(threshold * n / variance)
                table["raw-covariance-error"] = lambda: _variance_tail(n, n, variance, threshold)
                if variance == 1.0:
                    table["square-error"] = table["raw-covariance-error"]
        return float(table[quantity]()) if quantity in table else None

    def tilted(
        self, names: Names, n: int, count: int, rng: Generator, *, gap: Float | None = None
    ) -> Tilted | None:
        """Tilt mean and covariance; the first rows where their order counts and d = 1.

        `names`, `n`, `count` and `rng` are as `SyntheticArm.tilted` takes them; the mean is shifted
        also along `gap`, shape (d,), a direction in units of the features.
        """
        if set(names) & _OF_ORDER:
            return super().tilted(names, n, count, rng)
        d = self.mean.size
        if d > _MOST_TILTED_FEATURES:
            return None
        scattered = not set(names) <= _OF_MEANS
        frame = _Frame(self.eigenvalues, n)
        tilts, blocks = _tilts(self, frame, scattered, gap), []
        for tilt, k in zip(tilts, tilting.part_sizes(len(tilts), count, rng), strict=True):
            mean = rng.standard_normal((k, d)) / math.sqrt(n)
            factor = draw_triangle(d, n, k, rng) if scattered else np.zeros((k, d, 0))
            blocks.append(tilt.move(_White(frame, mean, factor), rng))
        mean = np.concatenate([block.mean for block in blocks])
        drawn = _White(frame, mean, np.concatenate([block.factor for block in blocks]))
        deviation = {"covariance"} if "mean_deviation" in names else set[str]()
        factors = drawn.factor if scattered else None
        statistics = self._from_white({*names} | deviation, n, drawn.mean, factors)
        if deviation:  # at its largest possible value; see `SyntheticArm.tilted`
            scatter = np.trace(statistics["covariance"], axis1=1, axis2=2)
            statistics["mean_deviation"] = np.sqrt(scatter)
        return Tilted(
            statistics={name: statistics[name] for name in names if name in statistics},
            log_weights=tilting.mixture_weights([tilt.log_ratio(drawn) for tilt in tilts]),
        )

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float] | None:
        """Shift the first rows of scalar samples, either way."""
        if self.mean.size > 1:
            return None
        parts = [(0, 0.0)] + [
            (start, sign * math.sqrt(2.0 * level / start))
            for start in tilting.tilted_starts(n)
            for level in tilting.LEVELS
            for sign in (1.0, -1.0)
        ]

        def draw(part: tuple[int, float], k: int) -> Float:
            start, shift = part
            z = rng.standard_normal((k, n))
            z[:, :start] += shift
            return z

        white = tilting.draw_parts(parts, count, rng, draw)
        sums = {start: white[:, :start].sum(axis=1) for start in {start for start, _ in parts}}
        ratios = [shift * sums[start] - 0.5 * start * shift**2 for start, shift in parts]
        rows = self.facts["mean"] + math.sqrt(self.facts["variance"]) * white
        return rows[:, :, None], tilting.mixture_weights(ratios)


def _normal_tail(threshold: float) -> float:
    """P(|Z| > threshold)."""
    from scipy.special import ndtr

    return float(2.0 * ndtr(-threshold))


def _norm_tail(values: Float, n: int, threshold: float) -> float:
    """P(|Σ_i ‖x_i‖²/n − Tr Σ| > threshold), mean 0."""
    total = float(values.sum())
    upper = weighted_chi_square_tail(n * (total + threshold), values, degrees=n)
    lower = weighted_chi_square_tail(n * (total - threshold), values, degrees=n, upper=False)
    return upper + lower


def _variance_tail(degrees: int, n: int, variance: float, threshold: float) -> float:
    """P(|variance χ²/n − variance| > threshold)."""
    from scipy.special import chdtr, chdtrc

    if degrees == 0:
        return float(variance > threshold)
    ratio = threshold / variance
    upper, lower = n * (1.0 + ratio), n * max(1.0 - ratio, 0.0)
    return float(chdtrc(degrees, upper) + chdtr(degrees, lower))


def _tilts(features: GaussianArm, frame: _Frame, scattered: bool, gap: Float | None) -> list[_Tilt]:
    """List the mixture: the distribution itself, and tilts of the sizes that cost each level."""
    n = frame.n
    shifts = [math.sqrt(2.0 * level / n) for level in tilting.LEVELS]
    tilts: list[_Tilt] = [_Tilt(), *(_Shift(size) for size in shifts)]
    if gap is not None:
        white_gap = features.along_axes(gap) * np.sqrt(features.eigenvalues)
        norm = float(np.linalg.norm(white_gap))
        if norm > 0.0:
            steps = [sign * size for sign in (1.0, -1.0) for size in shifts]
            tilts += [_AlongGap(size, direction=white_gap / norm) for size in steps]
    if scattered:
        tilts += _norm_tilts(frame, 1.0) + _norm_tilts(frame, -1.0)
        logs = tilting.strengths(lambda x: n * _inflation(np.exp([x])), low=0.0, high=60.0)
        tilts += [_Lead(math.exp(x)) for x in logs]
    return tilts


def _norm_tilts(frame: _Frame, sign: float) -> list[_Tilt]:
    """Variances changed so that Σ‖x‖² is larger (`sign` 1) or smaller (−1)."""

    def size(x: float) -> float:
        return -math.expm1(-sign * x)

    def cost(x: float) -> float:
        return frame.n * _inflation(1.0 / (1.0 - size(x) * frame.shares))

    return [_Norm(size(x)) for x in tilting.strengths(cost, low=0.0, high=30.0)]


def _inflation(factors: Float) -> float:
    """Information, for each row, of variances multiplied by `factors`."""
    return 0.5 * float((factors - 1.0 - np.log(factors)).sum())


class _Frame:
    """n Gaussian rows along the eigenvectors: shares λ_j/λ_1 and the leading eigenspace."""

    def __init__(self, eigenvalues: Float, n: int) -> None:
        self.n = n
        self.shares: Float = eigenvalues / eigenvalues.max()
        self.lead = eigenvalues >= eigenvalues.max() * (1.0 - 1e-9)
        self.multiplicity = int(self.lead.sum())


class _White:
    """k white samples of n rows: means, (k, d), and factors A of the scatter A Aᵀ, (k, d, m)."""

    def __init__(self, frame: _Frame, mean: Float, factor: Float) -> None:
        self.frame, self.mean, self.factor = frame, mean, factor

    def directions(self, rng: Generator) -> Float:
        """Uniform unit vectors in the leading eigenspace, one for each sample."""
        v = np.zeros(self.mean.shape)
        v[:, self.frame.lead] = tilting.random_directions(len(v), self.frame.multiplicity, rng)
        return v

    # All that the densities of the tilts depend on, beside the mean.

    @cached_property
    def energy(self) -> Float:
        """Σ_j λ_j/λ_1 times the sum of squares along axis j, shape (k,)."""
        squares = self.frame.n * np.square(self.mean) + np.square(self.factor).sum(axis=2)
        return np.asarray(squares @ self.frame.shares)

    @cached_property
    def along(self) -> Float:
        """Norm of the mean within the leading eigenspace, shape (k,)."""
        return np.asarray(np.linalg.norm(self.mean[:, self.frame.lead], axis=1))

    @cached_property
    def second(self) -> Float:
        """Eigenvalues of the second moments times n within the leading eigenspace, shape (k, m)."""
        mean, factor = self.mean[:, self.frame.lead], self.factor[:, self.frame.lead]
        scatter = factor @ np.swapaxes(factor, 1, 2)
        scatter += self.frame.n * mean[:, :, None] * mean[:, None, :]
        return np.asarray(np.linalg.eigvalsh(scatter))


@dataclass(frozen=True, slots=True)
class _Tilt:
    """A part of the mixture; this one is the distribution itself, the others are tilts of it."""

    size: float = 0.0

    def move(self, x: _White, rng: Generator) -> _White:
        """Turn white samples into tilted ones."""
        return x

    def log_ratio(self, x: _White) -> Float:
        """Log density of each sample over that of the distribution itself."""
        return np.zeros(len(x.mean))


class _Shift(_Tilt):
    """The mean shifted by `size` in a random leading direction, integrated out of the density."""

    def move(self, x: _White, rng: Generator) -> _White:
        return _White(x.frame, x.mean + self.size * x.directions(rng), x.factor)

    def log_ratio(self, x: _White) -> Float:
        n = x.frame.n
        spread = tilting.log_direction_mean(n * self.size * x.along, x.frame.multiplicity)
        return np.asarray(-0.5 * n * self.size**2 + spread)


@dataclass(frozen=True, slots=True)
class _AlongGap(_Tilt):
    """The mean shifted by `size` along a unit vector."""

    direction: Float = field(kw_only=True)

    def move(self, x: _White, rng: Generator) -> _White:
        return _White(x.frame, x.mean + self.size * self.direction, x.factor)

    def log_ratio(self, x: _White) -> Float:
        n = x.frame.n
        return np.asarray(-0.5 * n * self.size**2 + n * self.size * (x.mean @ self.direction))


class _Norm(_Tilt):
    """Variances multiplied by 1/(1 − size λ_j/λ_1): Σ‖x‖² changes in the way that costs least."""

    def move(self, x: _White, rng: Generator) -> _White:
        stretch = 1.0 / np.sqrt(1.0 - self.size * x.frame.shares)
        return _White(x.frame, x.mean * stretch, x.factor * stretch[:, None])

    def log_ratio(self, x: _White) -> Float:
        log_det = np.log1p(-self.size * x.frame.shares).sum()
        return np.asarray(0.5 * x.frame.n * log_det + 0.5 * self.size * x.energy)


class _Lead(_Tilt):
    """The variance of a random leading direction, integrated out, multiplied by `size`."""

    def move(self, x: _White, rng: Generator) -> _White:
        v, more = x.directions(rng), math.sqrt(self.size) - 1.0
        mean = x.mean + more * (x.mean * v).sum(axis=1)[:, None] * v
        factor = x.factor + more * v[:, :, None] * (v[:, None, :] @ x.factor)
        return _White(x.frame, mean, factor)

    def log_ratio(self, x: _White) -> Float:
        tilt = tilting.log_sphere_mean(0.5 * (1.0 - 1.0 / self.size) * x.second)
        return np.asarray(-0.5 * x.frame.n * math.log(self.size) + tilt)
