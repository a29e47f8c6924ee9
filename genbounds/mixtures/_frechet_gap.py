"""How far a mixture's Fréchet distance is at most from that of the best mixture.

For functions φ and ψ with E φ(x) + E ψ(y) <= FD whatever x and y are (`Potentials`), chosen from
the pilot, which also fits w, the distance of a mixture v is at least Σ v_a E_a φ + E ψ. So

    f(w) - f(v) <= Σ v_a g_a,  g_a = f(w) - E_a φ - E ψ:

the noise of φ and ψ cancels most of that of f(w), and nothing depends on how well they were chosen
but the length of the bound. Proof: docs/explanation/mixture_gap.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.moments import EPS
from genbounds.estimators import Estimate, FrechetReference, Moments, SampleError, difference
from genbounds.mixtures import _frechet
from genbounds.mixtures._kernel import FEWER, PILOT, Gaps, Weighed, parted, parts
from genbounds.validation import Float, InputError

LEAST_RATIO = 2
"""Rows of the pilot for each feature: with fewer the map of φ is noise, and the bound too long."""


class FrechetJudge:
    """Weights of a mixture, and its gap, by the Fréchet distance.

    Parameters
    ----------
    real : ndarray of shape (m, d)
        Rows of the reference.
    rng : Generator
        Decides which rows of the reference are the pilot.
    tail : float
        Probability with which each bound of a look may be too small.

    Raises
    ------
    InputError
        If the reference has too few rows.
    """

    def __init__(self, real: NDArray[Any], *, rng: np.random.Generator, tail: float) -> None:
        fitting, self._real = parted(real, rng)
        if len(fitting) < LEAST_RATIO * real.shape[1]:
            raise InputError(
                f"has {len(real)} rows of {real.shape[1]} features; target 'mixture' needs "
                f"{LEAST_RATIO * PILOT * real.shape[1]} for 'fd'. 'kid' and 'energy' take fewer.",
                argument="reference",
            )
        self._fitting, self._fitting_rows = Moments.from_features(fitting), fitting
        self._reference = FrechetReference(self._real)
        self._level, self._critical = 1.0 - 2.0 * tail, -float(scipy.special.ndtri(tail))

    def look(self, rows: Mapping[str, NDArray[Any]]) -> Weighed:
        """Fit the weights of these arms to the pilot, and judge them by the other rows."""
        fitting, certifying = (
            [one[parts(len(one))[part]] for one in rows.values()] for part in range(2)
        )
        moments = [Moments.from_features(one) for one in fitting]
        fitted = _frechet.MixtureDistance(moments, self._fitting)
        weights = _frechet.least_distance(fitted) if len(rows) > 1 else np.ones(1)
        bound = Potentials.between(fitted.mixed(weights), self._fitting)
        # Rows are called by number, so that those of the mixture are known as those of an arm.
        ends = np.cumsum([len(one) for one in certifying])
        names = np.split(np.arange(ends[-1]), ends[:-1])
        arms = [
            _frechet.Part(one, units, np.zeros_like(units), np.full(len(one), 1.0 / len(one)))
            for one, units in zip(certifying, names, strict=True)
        ]
        mixed = self._reference.estimate(_frechet.mixed_sample(arms, weights))
        below = [self._linear(bound, arm) for arm in arms]
        alone = [self._reference.estimate(one, influences=False) for one in certifying]
        gaps = Gaps(
            score=max(mixed.value + self._critical * _stderr(mixed, weights, below), 0.0),
            towards=np.array([difference(mixed, one).interval(self._level)[1] for one in below]),
            parts=np.zeros((1 + len(rows), len(rows) + 1)),
            bound=min,
        )
        return Weighed(
            weights=weights,
            estimates=[_frechet.assuming(mixed, alone), *alone],
            gaps=gaps,
            guess=self._guess(fitted(weights)[0], weights, bound, fitting),
        )

    def _linear(self, bound: Potentials, arm: _frechet.Part) -> Estimate:
        """E_a φ + E ψ, which is free of bias."""
        low, real = bound.of_fake(arm.rows), bound.of_real(self._real)
        mean = float(low.mean() + real.mean())
        return Estimate(value=mean, sample=_error(low, arm.units), reference=_error(real))

    def _guess(
        self, score: float, weights: Float, bound: Potentials, fitting: list[NDArray[Any]]
    ) -> Gaps:
        """Foresee the bounds from the pilot: to first order f(w) is E φ, and ψ cancels."""
        low = [bound.of_fake(values) for values in fitting]
        real = bound.of_real(self._fitting_rows).mean()
        per_row = np.array([float(values.var(ddof=1)) / values.size for values in low])
        steps = np.vstack([weights, weights - np.eye(len(weights))]) ** 2 * per_row
        high = FEWER * self._critical * np.sqrt(steps.sum(axis=1))
        towards = np.array([score - values.mean() - real for values in low])
        return Gaps(
            score=score + float(high[0]),
            towards=towards + high[1:],
            parts=np.column_stack([steps, np.zeros(len(steps))]),
            bound=min,
        )


def _stderr(mixed: Estimate, weights: Float, below: list[Estimate]) -> float:
    """Return the standard error of f(w): its own, or that of the influences φ and ψ if it is more.

    Near a distance of 0 its own is small where the distance is underestimated, and an upper bound
    fails there; φ and ψ owe nothing to these rows.
    """
    rest = (mixed.sample, mixed.reference)
    variance = below[0].reference.variance
    variance += sum(w**2 * one.sample.variance for w, one in zip(weights, below, strict=True))
    variance += sum(one.quadratic_variance + one.mixed_variance for one in rest)
    return math.sqrt(max(variance, mixed.variance))


def _error(values: Float, units: NDArray[np.intp] | None = None) -> SampleError:
    """Error of the mean of independent values."""
    return SampleError(
        n=values.size,
        variance=float(values.var(ddof=1)) / values.size,
        degrees_of_freedom=values.size - 1.0,
        influence=values - values.mean(),
        units=units,
    )


RIDGE = 1e-9
"""Of the mean variance, added to covariances: directions without any variance have no map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Potentials:
    """Functions φ and ψ with E φ(x) + E ψ(y) <= FD for every two distributions of x and y.

    With u(x) = ½ (x-μ)'A(x-μ) + ν'x and its conjugate u*(y) = μ'(y-ν) + ½ (y-ν)'A⁻¹(y-ν), they are
    φ = ‖x‖² - 2u and ψ = ‖y‖² - 2u*. As u(x) + u*(y) >= x'y, φ(x) + ψ(y) <= ‖x-y‖², whose mean is
    the distance where x and y are Gaussian and coupled best; the means of φ and ψ depend on the
    first two moments alone. Equality holds if x -> ν + A(x-μ) is the transport map.

    Attributes
    ----------
    mean, other_mean : ndarray of shape (d,)
        μ and ν.
    map, inverse : ndarray of shape (d, d)
        A, symmetric and positive definite, and A⁻¹.

    References
    ----------
    .. [1] C. Villani, "Topics in Optimal Transportation", 2003, §2.1 (duality).
    .. [2] M. Gelbrich, "On a formula for the L² Wasserstein metric between measures on Euclidean
       and Hilbert spaces", Math. Nachr. 147, 1990.
    """

    mean: Float
    other_mean: Float
    map: Float
    inverse: Float

    @classmethod
    def between(cls, fake: Moments, real: Moments) -> Potentials:
        """Return those of the transport map from a Gaussian with the moments of `fake` to `real`.

        Parameters
        ----------
        fake, real : Moments
            Of d features.

        Returns
        -------
        Potentials
        """
        d = real.d
        ridge = RIDGE * np.trace(real.cov) / d
        lower = np.linalg.cholesky(real.cov + ridge * np.eye(d))
        # Of S² = L'CL: A = L S⁻¹ L', so that A C A = LL'.
        squares, vectors = np.linalg.eigh(lower.T @ fake.cov @ lower)
        roots = np.sqrt(np.maximum(squares, max(float(squares[-1]), ridge**2) * d * EPS))
        inverted = np.linalg.solve(lower.T, vectors * np.sqrt(roots))
        forward = lower @ (vectors / np.sqrt(roots))
        return cls(
            mean=fake.mean,
            other_mean=real.mean,
            map=forward @ forward.T,
            inverse=inverted @ inverted.T,
        )

    def of_fake(self, x: NDArray[Any]) -> Float:
        """Return φ of each row of `x`, of shape (n, d)."""
        # Both may be moved together: what is large in φ and ψ and cancels is taken off.
        x = np.asarray(x, dtype=np.float64) - self.other_mean
        centred = x - (self.mean - self.other_mean)
        low: Float = (x**2).sum(axis=1) - ((centred @ self.map) * centred).sum(axis=1)
        return low

    def of_real(self, y: NDArray[Any]) -> Float:
        """Return ψ of each row of `y`, of shape (m, d)."""
        y = np.asarray(y, dtype=np.float64) - self.other_mean
        gap = self.mean - self.other_mean
        square = (y**2).sum(axis=1) - ((y @ self.inverse) * y).sum(axis=1)
        high: Float = square - 2.0 * (y @ gap)
        return high
