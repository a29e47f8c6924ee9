"""A lower bound of the Fréchet distance that is linear in both distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.linalg import EPS
from genbounds.core.moments import Moments
from genbounds.validation import Float

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
