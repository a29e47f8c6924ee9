"""The spectrum of a covariance from the eigenvalues of a sample covariance, with few samples.

The sample covariance of N effective rows in r dimensions is compared with its population through
one smooth curve, the resolvent fraction

    ρ(x) = N⁻¹ Tr M̂ (M̂ + x)⁻¹,  x > 0,

whose limit for population eigenvalues t_1 ≥ … ≥ t_r and row scales b_i is given by the separable
Marchenko–Pastur equation. For the product of two sample covariances the equations of both are
multiplied. The population spectrum is a smooth curve log t_j against log j, fitted
by generalised least squares with the covariance of the noise of ρ (Bai & Silverstein 2004, Thm
1.1) and their O(1/N) bias taken off. Where a spectrum of like shape is known, the curve may also be
what the spectrum is beside that one. Derivations: docs/explanation/few_samples.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.moments import EPS
from genbounds.validation import Float

POINTS = 40
"""Points x at which ρ is compared ..."""

LOWEST, LOWEST_QUANTILE = 0.3, 0.05
"""... from this share of this quantile of the positive eigenvalues, up to 30 times the largest."""

RIDGE = 0.1
"""Noise, relative to its own variance, added to every ρ(x): directions that are known better than
this are not believed better, since the limit itself holds to O(1/N)."""

BEND = 2.0
"""Prior standard deviation of the slope of log t_j against log j over one e-fold of j."""

CLIFFS = 1.0
"""A bend of b prior standard deviations costs CLIFFS log(1 + b²/CLIFFS): few cliffs are allowed."""

KNOT_STEP = 0.2
"""Distance of the knots of that curve in log j."""

EXACT_NODES = 24
"""So many of the largest eigenvalues are nodes of their own; the rest are grouped."""

GROUPED_NODES = 120

GOOD_FIT = 0.5
"""Objective, -2 log density, below which no other start of the same curve is tried: as it is never
negative, none can be better by more. Smooth spectra are below it, cliffs and spikes are not."""

MISFIT = 0.4
"""Mean squared whitened residual above which no smooth spectrum fits. Measured: below 0.1 on
smooth spectra, 0.3-0.9 where they fall tenfold at one place, above 50 at a factor of 10⁴."""

STEPS = 80
"""Most Levenberg–Marquardt steps; 5–20 are usual."""


@dataclass(frozen=True, slots=True)
class RowLaw:
    """Number of rows of a sample, less one if a mean was estimated, and their scales.

    Attributes
    ----------
    n_effective : int
    radii : ndarray of shape (n,) or None
        Scales b_i of the rows, mean 1; None: all equal.
    noise_share : float
        Share of noise in the spread that they were drawn from.
    """

    n_effective: int
    radii: Float | None = None
    noise_share: float = 0.0


@dataclass(frozen=True, slots=True)
class ScaleWeights:
    """Derivative of the functional in mean_i b_i E / (1 + b_i E) at E = `odds`, of shape (k,)."""

    weights: Float
    odds: Float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpectrumFit:
    """A functional of a population spectrum, by a fit or (`_root`) along a contour.

    Attributes
    ----------
    value : float
        Σ_j √t_j unless another functional was asked for.
    points : ndarray of shape (k,)
        The x at which ρ was compared.
    weights : ndarray of shape (k,)
        Derivative of `value` in each measured ρ(x), of the first sample.
    scales : tuple of ScaleWeights or None
        Of each sample; None where all its rows have the same scale.
    prior_variance : float
        Part of the posterior variance of `value` that is due to the smoothness prior: what
        the sample cannot see.
    misfit : float
        Mean squared whitened residual; about 1 or less where the model holds.
    """

    value: float
    points: NDArray[Any]
    weights: NDArray[Any]
    scales: tuple[ScaleWeights | None, ...]
    prior_variance: float = 0.0
    misfit: float = 0.0

    @property
    def inflation(self) -> float:
        """Factor on the variance for a poor fit."""
        return max(1.0, self.misfit / MISFIT)


Functional = Callable[[Float, Float], tuple[float, Float]]
"""(t_j, multiplicities) -> its value, and its derivatives in log t_j."""


def trace_root(spectrum: Float, counts: Float) -> tuple[float, Float]:
    """Σ_j √t_j."""
    roots = counts * np.sqrt(spectrum)
    return float(roots.sum()), 0.5 * roots


def fit_spectrum(
    values: Float,
    *,
    rows: Sequence[RowLaw],
    rank: int,
    functional: Functional = trace_root,
    shape: Float | None = None,
) -> SpectrumFit:
    """Fit the population spectrum.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Positive eigenvalues of the sample covariance (divisor `n_effective`), k <= both sizes, or
        of the product of two.
    rows : sequence of RowLaw
        Of the sample, or of both; ρ is of the first, which must not have more rows.
    rank : int
        Number of population eigenvalues.
    functional : callable
        What is wanted of the spectrum; smooth in log t.
    shape : ndarray of shape (rank,) or None
        Positive and descending: what the spectrum may be a smooth multiple of. It is taken so, or
        as smooth itself, whichever has the lower objective.
    """
    scale = float(values.max())
    lam = np.sort(values)[::-1] / scale
    problem = _Problem(lam, rows)
    curves = [_Curve.of(rank)] if shape is None else [_Curve.of(rank), _Curve.of(rank, shape)]
    fits = []
    for curve in curves:
        for start in curve.starts(lam):
            fits.append((_minimise(problem, curve, start), curve))
            if fits[-1][0].objective < GOOD_FIT:
                break
    state, curve = min(fits, key=lambda fit: fit[0].objective)
    jacobian, residual = state.jacobian, state.residual
    value, slopes = functional(scale * curve.spectrum(state.theta), curve.weights)
    direction = _solve(jacobian.T @ jacobian + state.prior, slopes @ curve.basis)
    weights = problem.whiten.T @ (jacobian @ direction)
    return SpectrumFit(
        value=value,
        points=scale * problem.x,
        weights=weights,
        scales=tuple(problem.scale_weights(k, weights, state) for k in range(len(rows))),
        # As a sum of squares: the quadratic form of `prior` itself can round to below 0.
        prior_variance=float(state.weight @ (curve.bends @ direction) ** 2),
        misfit=float(residual @ residual) / residual.size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """A trial spectrum: its ρ(x) and k(ρ), and what the next step needs."""

    theta: Float
    rho: Float
    ratio: Float
    pull: Float
    residual: Float
    jacobian: Float
    weight: Float
    prior: Float
    objective: float


class _Problem:
    """ρ(x) as it was measured, and what it is of a trial spectrum.

    Attributes
    ----------
    x, rho : ndarray of shape (k,)
    whiten : ndarray of shape (k, k)
        Makes the noise of ρ white, up to a ridge.
    rows : sequence of RowLaw
    maps : list of RowMap
    shares : list of float
        Rows of the first sample over those of each.
    """

    def __init__(self, lam: Float, rows: Sequence[RowLaw]) -> None:
        sizes = [law.n_effective for law in rows]
        self.x, self.rho, noise = _measure(lam, sizes)
        spread = np.sqrt(np.diagonal(noise))
        inertia, axes = np.linalg.eigh(noise / np.outer(spread, spread))
        self.whiten: Float = (axes / np.sqrt(np.maximum(inertia, 0.0) + RIDGE)).T / spread
        self.rows, self.shares = rows, [sizes[0] / size for size in sizes]
        self.maps = [
            _equal_rows if law.radii is None else _row_scale_map(law.radii) for law in rows
        ]

    def trial(self, curve: _Curve, theta: Float, guess: Float) -> _State:
        """Compare a spectrum with what was measured; `guess` of its ρ(x).

        ρ is the root of ρ = N⁻¹ Σ_j t_j / (t_j + x k(ρ)), k(ρ) = E(ρ)/ρ, or the product of those
        of both samples; the right side falls in ρ, so that the root is unique and a Newton step
        kept inside (0, 1) finds it.
        """
        t, x = curve.spectrum(theta), self.x
        mass = curve.weights * t / self.rows[0].n_effective
        rho = guess
        for _ in range(60):
            k, k_slope = self.maps[0](rho)  # the first sample has the share 1
            for row_map, share in zip(self.maps[1:], self.shares[1:], strict=True):
                more, slope = row_map(share * rho)
                k, k_slope = k * more, k_slope * more + k * share * slope
            u = x * k
            inverse = 1.0 / (t + u[:, None])
            squares = inverse * inverse
            pull = (squares @ mass) * x
            damp = 1.0 + pull * k_slope
            step = (inverse @ mass - rho) / damp
            new = np.minimum(np.maximum(rho + step, 0.3 * rho), 1.0 - 0.3 * (1.0 - rho))
            change = float(np.abs(new - rho).max())
            rho = new
            if change < 1e-11:
                break
        residual = self.whiten @ (self.rho - rho)
        bends = curve.bends @ theta
        weight = 1.0 / (1.0 + bends**2 / CLIFFS)
        slopes = (squares @ (mass[:, None] * curve.basis)) * (u / damp)[:, None]
        return _State(
            theta=theta,
            rho=rho,
            ratio=k,
            pull=pull / damp,
            residual=residual,
            jacobian=self.whiten @ slopes,
            weight=weight,
            prior=(curve.bends.T * weight) @ curve.bends,
            objective=float(residual @ residual - CLIFFS * np.log(weight).sum()),
        )

    def scale_weights(self, sample: int, weights: Float, model: _State) -> ScaleWeights | None:
        """E ρ⁻¹ of a sample moves k, the product of maps; None if its rows have one scale."""
        radii, rho = self.rows[sample].radii, self.shares[sample] * model.rho
        if radii is None:
            return None
        own, _ = self.maps[sample](rho)
        odds = rho * own
        steepness = (radii / (1.0 + np.outer(odds, radii)) ** 2).mean(axis=1)
        return ScaleWeights(-weights * model.pull * (model.ratio / own) / (rho * steepness), odds)


def _minimise(problem: _Problem, curve: _Curve, start: Float) -> _State:
    """Levenberg–Marquardt on the whitened residuals and the reweighted prior."""
    state = problem.trial(curve, start, np.clip(problem.rho, 1e-9, 1.0 - 1e-9))
    damping = 1e-2
    for _ in range(STEPS):
        hessian = state.jacobian.T @ state.jacobian + state.prior
        damped = hessian.copy()
        np.fill_diagonal(damped, (1.0 + damping) * np.diagonal(hessian))
        step = _solve(damped, state.jacobian.T @ state.residual - state.prior @ state.theta)
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), EPS))
        trial = problem.trial(curve, state.theta + step, state.rho)
        if trial.objective < state.objective:
            gain = state.objective - trial.objective
            state, damping = trial, max(damping / 5.0, 1e-9)
            if gain < 1e-6 * (1.0 + state.objective):
                break
        else:
            damping *= 8.0
            if damping > 1e12:
                break
    return state


def _measure(lam: Float, sizes: Sequence[int]) -> tuple[Float, Float, Float]:
    """Points x, the measured ρ less its O(1/N) bias, and the covariance of its noise.

    With m the Stieltjes transform of the N×N side at z = -x, so that ρ = 1 - x m,

        N Cov(m(z), m(w)) = (2/N) [m'(z) m'(w) / (m(z) - m(w))² - 1/(z - w)²],
        N (E m - m) = m''/(2m') - m'/m

    for real Gaussian rows: Bai & Silverstein (2004), (1.21) and (1.20), written in m alone. Of two
    samples each adds its own, as if the other's covariance were the population's.
    """
    k = lam.size  # in descending order, of which a quantile is found without sorting
    low = LOWEST * float(np.interp(LOWEST_QUANTILE * (k - 1), np.arange(k), lam[::-1]))
    x = np.geomspace(low, 30.0 * lam[0], POINTS)
    inverse = 1.0 / (lam + x[:, None])
    squares = inverse * inverse
    powers = [
        power.sum(axis=1) for power in (inverse, squares, squares * inverse, squares * squares)
    ]
    count = (lam * inverse).sum(axis=1)
    noise = np.zeros((POINTS, POINTS))
    for size in sizes:
        bias, part = _moments_of_noise(x, powers, zeros=size - lam.size, N=float(size))
        count += bias
        noise += part
    N = float(sizes[0])
    # A single eigenvalue leaves no noise in some directions: keep the variances positive.
    floor = (8.0 * EPS) ** 0.5
    np.fill_diagonal(noise, np.maximum(np.diagonal(noise), floor**2))
    return x, count / N, noise / N**2


def _moments_of_noise(
    x: Float, powers: Sequence[Float], *, zeros: int, N: float
) -> tuple[Float, Float]:
    """Less the bias of N ρ, and the covariance of its noise; `powers` Σ_i 1/(λ_i + x)^k."""
    m0, m1, m2, m3 = (
        factor * (power + zeros / x**k) / N
        for k, (factor, power) in enumerate(zip((1.0, 1.0, 2.0, 6.0), powers, strict=True), 1)
    )
    rise = np.subtract.outer(m0, m0)
    run = np.subtract.outer(x, x)
    np.fill_diagonal(rise, 1.0)
    np.fill_diagonal(run, 1.0)
    kernel = np.outer(m1, m1) / rise**2 - 1.0 / run**2
    np.fill_diagonal(kernel, m3 / (6.0 * m1) - (m2 / (2.0 * m1)) ** 2)
    return x * (m2 / (2.0 * m1) - m1 / m0), 2.0 * np.outer(x, x) * kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """log t_j, less that of a known shape, piecewise linear in log j, with a prior on its bends.

    `places` are the log j at which it is evaluated, for as many eigenvalues each as `weights` say.
    """

    places: Float
    weights: Float
    basis: Float
    bends: Float
    knots: Float
    shape: Float
    offset: Float

    @classmethod
    def of(cls, rank: int, shape: Float | None = None) -> _Curve:
        curve = _smooth_curve(rank)
        if shape is None:
            return curve
        logs = np.log(shape)
        offset = np.interp(curve.places, np.log(np.arange(1, rank + 1)), logs)
        return replace(curve, shape=logs, offset=offset)

    def starts(self, lam: Float) -> list[Float]:
        """Power law through the upper half of the sample spectrum; the sample spectrum itself.

        Both with the sample's trace.
        """
        logs, index = np.log(lam) - self.shape[: lam.size], np.log(np.arange(1, lam.size + 1))
        half = max(2, lam.size // 2)
        if lam.size > 2:
            middle = index[:half].mean()
            slope = (index[:half] - middle) @ logs[:half] / ((index[:half] - middle) @ index[:half])
            level = logs[:half].mean() - slope * middle
        else:
            slope, level = 0.0, float(logs[0])
        law = level + slope * self.knots
        itself = np.interp(self.knots, index, logs)
        beyond = np.maximum(self.knots - index[-1], 0.0)
        return [
            theta + np.log(lam.sum() / float(self.weights @ self.spectrum(theta)))
            for theta in (law, itself + slope * beyond)
        ]

    def spectrum(self, theta: Float) -> Float:
        logs = self.basis @ theta + self.offset
        values: Float = np.exp(np.minimum(np.maximum(logs, -300.0), 300.0))
        return values


@lru_cache(maxsize=16)
def _smooth_curve(rank: int) -> _Curve:
    """Curve without a known shape."""
    edges = np.arange(0.5, min(rank, EXACT_NODES) + 1.0)
    if rank > EXACT_NODES:
        grouped = np.geomspace(EXACT_NODES + 0.5, rank + 0.5, GROUPED_NODES)
        # Whole eigenvalues in every group: half-integer edges, without repeats.
        edges = np.concatenate([edges, np.unique(np.floor(grouped[1:]) + 0.5)])
        edges = np.unique(edges[edges <= rank + 0.5])
    places = np.log(np.sqrt((edges[:-1] + 0.5) * (edges[1:] - 0.5)))
    count = int(np.ceil(np.log(rank) / KNOT_STEP)) + 1
    if count == 1:
        knots, basis, bends = np.zeros(1), np.ones((1, 1)), np.zeros((1, 1))
    else:
        knots = np.linspace(0.0, np.log(rank), count)
        basis = np.column_stack([np.interp(places, knots, unit) for unit in np.eye(count)])
        bends = np.diff(np.eye(count), 2, axis=0) / (BEND * (knots[1] - knots[0]) ** 1.5)
    return _Curve(
        places=places,
        weights=np.diff(edges),
        basis=basis,
        bends=bends,
        knots=knots,
        shape=np.zeros(rank),
        offset=np.zeros(places.size),
    )


RowMap = Callable[[Float], tuple[Float, Float]]
"""ρ -> (E/ρ, its derivative), where ρ = mean_i b_i E / (1 + b_i E)."""


def _equal_rows(rho: Float) -> tuple[Float, Float]:
    rest = 1.0 / (1.0 - rho)
    return rest, rest**2


def _row_scale_map(radii: Float) -> RowMap:
    """Invert ρ = mean b E/(1 + b E) once, as a smooth offset of log E from logit ρ."""
    log_e = np.linspace(-25.0, 25.0, 301)
    odds = radii * np.exp(log_e)[:, None]
    kept = 1.0 / (1.0 + odds)
    rest = kept.mean(axis=1)
    rho = (odds * kept).mean(axis=1)
    logit = np.log(rho) - np.log(rest)
    from scipy.interpolate import CubicSpline  # half a second that only this method should pay

    offset = CubicSpline(logit, log_e - logit)
    first, last = float(logit[0]), float(logit[-1])

    def ratio(rho: Float) -> tuple[Float, Float]:
        at = np.clip(np.log(rho) - np.log1p(-rho), first, last)
        value = np.exp(at + offset(at))
        slope = value * (1.0 + offset(at, 1)) / (rho * (1.0 - rho))
        return value / rho, slope / rho - value / rho**2

    return ratio


def _solve(matrix: Float, vector: Float) -> Float:
    """Solve a symmetric positive semidefinite system, scaled to a unit diagonal."""
    scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), EPS**2))
    scaled = matrix * (scale[:, None] * scale)
    # More than rounding can take off the smallest eigenvalue.
    scaled.flat[:: scaled.shape[0] + 1] += scaled.shape[0] * EPS
    solution: Float = scale * np.linalg.solve(scaled, scale * vector)
    return solution
