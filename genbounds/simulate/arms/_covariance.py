"""Arms given by a mean and a covariance: what they share, heavy tails, skewness, mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.simulate.arms._arm import SyntheticArm, check_weights
from genbounds.validation import Float, InputError, as_floats, check_positive

_SYMMETRY_RTOL = 1e-6  # of the largest entry, as in `Moments`
_DEFINITE_RTOL = 1e-10  # of the largest eigenvalue: what rounding may take from the smallest


class CovarianceArm(SyntheticArm):
    """A mean, a covariance and its root."""

    families: tuple[str, ...] = ()

    def __init__(self, mean: ArrayLike, cov: ArrayLike, *, name: str | None = None) -> None:
        center = np.atleast_1d(np.array(as_floats("mean", mean)))
        matrix = np.atleast_1d(np.array(as_floats("cov", cov)))
        d = max(center.size, matrix.shape[0])
        if center.ndim > 1 or center.size not in (1, d):
            raise InputError(f"`mean` must have shape ({d},) to fit `cov`; got {center.shape}.")
        if not np.isfinite(center).all():
            raise InputError("`mean` must be finite.")
        self.mean: Float = np.broadcast_to(center, (d,))
        self.cov: Float = _checked_covariance(matrix, d)
        self.name = name if name is not None else self._describe()

    def _describe(self) -> str:
        kind = type(self).__name__.removesuffix("Arm").lower()
        if self.mean.size == 1:
            return f"{kind}({self.mean[0]:g}, {self.cov.ravel()[0]:g})"
        return f"{kind}(d={self.mean.size}, Tr={self.eigenvalues.sum():.6g})"

    @cached_property
    def _spectrum(self) -> tuple[Float, Float | None]:
        if self.cov.ndim == 1:
            return self.cov, None
        values, vectors = np.linalg.eigh(self.cov)
        return np.maximum(values, 0.0), vectors

    @property
    def eigenvalues(self) -> Float:
        """Eigenvalues of the covariance, shape (d,)."""
        return self._spectrum[0]

    @property
    def axes(self) -> Float | None:
        """Eigenvectors of the covariance, shape (d, d); None for the axes themselves."""
        return self._spectrum[1]

    def along_axes(self, vector: Float) -> Float:
        """Coordinates of a vector along the eigenvectors."""
        return vector if self.axes is None else vector @ self.axes

    def colour(self, white: Float) -> Float:
        """Give white rows the covariance."""
        scaled = white * np.sqrt(self.eigenvalues)
        return scaled if self.axes is None else scaled @ self.axes.T

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        values = self.eigenvalues
        variances = self.cov if self.cov.ndim == 1 else np.diag(self.cov)
        operator = float(values.max())
        d = self.mean.size
        facts: dict[str, Any] = {
            "families": frozenset(self.families),
            "d": d,
            "mean": float(self.mean[0]) if d == 1 else self.mean,
            "centred": not self.mean.any(),
            "cov": self.cov,
            "eigenvalues": values,
            "trace": float(values.sum()),
            "trace_square": float(values @ values),
            "operator": operator,
            "effective_rank": float(values.sum() / operator) if operator > 0.0 else 1.0,
            "max_variance": float(variances.max()),
            "absolute_sum": float(np.abs(self.cov).sum()),
        }
        if d == 1:
            facts["variance"] = operator
        return facts


def _checked_covariance(matrix: Float, d: int) -> Float:
    """Return a symmetric copy that cannot be written, or a diagonal; raise if it is neither."""
    if matrix.shape not in {(d,), (d, d)} or not np.isfinite(matrix).all():
        raise InputError(
            f"`cov` must be a finite ({d}, {d}) matrix or the ({d},) diagonal of one; "
            f"got shape {matrix.shape}."
        )
    if matrix.ndim == 2:
        if np.abs(matrix - matrix.T).max() > _SYMMETRY_RTOL * np.abs(matrix).max():
            raise InputError("`cov` must be symmetric: pass (cov + cov.T) / 2 if it nearly is.")
        matrix = (matrix + matrix.T) / 2.0
    values = matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix)
    if not values.min() >= -_DEFINITE_RTOL * max(values.max(), 0.0):
        raise InputError(
            f"`cov` must be positive semi-definite; its smallest eigenvalue is {values.min():.3g}."
        )
    matrix.flags.writeable = False
    return matrix


class StudentArm(CovarianceArm):
    """Elliptical t distribution, scaled so that `cov` is its covariance.

    Parameters
    ----------
    mean : array_like of shape (d,)
    cov : array_like of shape (d, d) or (d,)
        True covariance, or its diagonal.
    df : float
        Degrees of freedom, more than 2.
    name : str, optional
        Label in reports.
    """

    def __init__(
        self, mean: ArrayLike, cov: ArrayLike, *, df: float, name: str | None = None
    ) -> None:
        if not df > 2.0:
            raise InputError(f"`df` must be more than 2, or there is no covariance; got {df!r}.")
        self.df = float(df)
        super().__init__(mean, cov, name=name)

    def _describe(self) -> str:
        return f"{super()._describe()[:-1]}, df={self.df:g})"

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        white = rng.standard_normal((n, self.mean.size))
        radius = np.sqrt((self.df - 2.0) / rng.chisquare(self.df, (n, 1)))
        return self.mean + radius * self.colour(white)


class SkewedArm(CovarianceArm):
    """Linear image of independent standardised gamma factors, with covariance `cov`.

    Parameters
    ----------
    mean : array_like of shape (d,)
    cov : array_like of shape (d, d) or (d,)
        True covariance, or its diagonal.
    shape : float
        Gamma shape of every factor, whose skewness is 2/√shape.
    name : str, optional
        Label in reports.
    """

    def __init__(
        self, mean: ArrayLike, cov: ArrayLike, *, shape: float, name: str | None = None
    ) -> None:
        self.shape = check_positive("shape", shape)
        super().__init__(mean, cov, name=name)

    def _describe(self) -> str:
        return f"{super()._describe()[:-1]}, shape={self.shape:g})"

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        factors = rng.standard_gamma(self.shape, (n, self.mean.size))
        return self.mean + self.colour((factors - self.shape) / np.sqrt(self.shape))


class MixtureArm(CovarianceArm):
    """Mixture of distributions with known mean and covariance, such as ten Gaussians.

    Parameters
    ----------
    components : sequence of SyntheticArm
        Their facts hold ``mean`` and ``cov``; all of the same d.
    weights : array_like of shape (k,), optional
        Mixture weights; equal by default.
    name : str, optional
        Label in reports.

    Raises
    ------
    InputError
        If there are no components, they do not fit together, or the weights are no distribution.

    Notes
    -----
    μ = Σ w_k μ_k, Σ = Σ w_k (Σ_k + μ_k μ_kᵀ) − μ μᵀ: exact to rounding.
    """

    def __init__(
        self,
        components: Sequence[SyntheticArm],
        *,
        weights: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.components = tuple(components)
        if not self.components:
            raise InputError("`components` must hold at least one arm.")
        if len({arm.d for arm in self.components}) > 1:
            raise InputError("`components` must all have the same number of features.")
        for arm in self.components:
            if not {"mean", "cov"} <= arm.facts.keys():
                raise InputError(f"`components`: {arm.name} does not know mean and covariance.")
        self.weights = check_weights(weights, len(self.components))
        d = self.components[0].d
        means = np.stack([np.broadcast_to(arm.facts["mean"], (d,)) for arm in self.components])
        mean = self.weights @ means
        apart = means - mean
        cov = (apart.T * self.weights) @ apart
        for weight, arm in zip(self.weights, self.components, strict=True):
            within = np.asarray(arm.facts["cov"])
            cov += weight * (np.diag(within) if within.ndim == 1 else within)
        name = name or f"mixture({len(self.components)} components, d={d})"
        super().__init__(mean, cov, name=name)

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        owner = rng.choice(len(self.components), n, p=self.weights)
        rows = np.empty((n, self.d))
        for k, arm in enumerate(self.components):
            chosen = owner == k
            rows[chosen] = arm.draw(int(chosen.sum()), rng)
        return rows
