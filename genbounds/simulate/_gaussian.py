"""Gaussian arms by their sufficient statistics, and arms with other tails or skewness."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from genbounds.bounds import Facts, normal_product_tail, weighted_chi_square_tail
from genbounds.simulate._arms import Statistics, SyntheticArm
from genbounds.simulate._engine import draw_triangle
from genbounds.validation import Float, InputError, as_numpy

_OF_SCATTER = {"covariance", "raw_covariance", "sample_variance", "mean_square"}
_OF_ROWS = {"mean_deviation", "running_mean", "rows"}  # no functions of mean and covariance
_SYMMETRY_RTOL = 1e-6  # of the largest entry, as in `Moments`
_KAPPA_SQUARED = 8.0 / 3.0  # E exp(X²/κ²) = 2 for X ~ N(0, 1)


class _EllipticalArm(SyntheticArm):
    """A mean, a covariance and its root; what the arms of this module share."""

    def __init__(self, mean: ArrayLike, cov: ArrayLike, *, name: str | None = None) -> None:
        center = np.atleast_1d(np.array(as_numpy("mean", mean), dtype=np.float64))
        matrix = np.atleast_1d(np.array(as_numpy("cov", cov), dtype=np.float64))
        d = max(center.size, matrix.shape[0])
        if center.ndim > 1 or center.size not in (1, d):
            raise InputError(f"`mean` must have shape ({d},) to fit `cov`; got {center.shape}.")
        center = np.broadcast_to(center, (d,))
        if matrix.shape not in {(d,), (d, d)} or not np.isfinite(matrix).all():
            raise InputError(
                f"`cov` must be a finite ({d}, {d}) matrix or the ({d},) diagonal of one; "
                f"got shape {matrix.shape}."
            )
        if not np.isfinite(center).all():
            raise InputError("`mean` must be finite.")
        if matrix.ndim == 2:
            if np.abs(matrix - matrix.T).max() > _SYMMETRY_RTOL * np.abs(matrix).max():
                raise InputError("`cov` must be symmetric: pass (cov + cov.T) / 2 if it nearly is.")
            matrix = (matrix + matrix.T) / 2.0
        eigenvalues = matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix)
        if not eigenvalues.min() >= -1e-10 * max(eigenvalues.max(), 0.0):
            raise InputError(
                f"`cov` must be positive semi-definite; its smallest eigenvalue is "
                f"{eigenvalues.min():.3g}."
            )
        matrix.flags.writeable = False
        self.mean: Float = center
        self.cov: Float = matrix
        self.name = name if name is not None else self._describe()

    def _describe(self) -> str:
        kind = type(self).__name__.removesuffix("Arm").lower()
        if self.mean.size == 1:
            return f"{kind}({self.mean[0]:g}, {self.cov.ravel()[0]:g})"
        return f"{kind}(d={self.mean.size}, Tr={self.eigenvalues.sum():.6g})"

    @cached_property
    def _spectrum(self) -> tuple[Float, Float | None]:
        """Eigenvalues and eigenvectors; None for the axes themselves."""
        if self.cov.ndim == 1:
            return self.cov, None
        values, vectors = np.linalg.eigh(self.cov)
        return np.maximum(values, 0.0), vectors

    @property
    def axes(self) -> Float | None:
        """Eigenvectors of the covariance, shape (d, d); None for the axes themselves."""
        return self._spectrum[1]

    @property
    def eigenvalues(self) -> Float:
        """Eigenvalues of the covariance, shape (d,)."""
        return self._spectrum[0]

    def _colour(self, white: Float) -> Float:
        """Give white rows the covariance."""
        values, vectors = self._spectrum
        scaled = white * np.sqrt(values)
        return scaled if vectors is None else scaled @ vectors.T

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name."""
        values = self.eigenvalues
        variances = self.cov if self.cov.ndim == 1 else np.diag(self.cov)
        operator = float(values.max())
        d = self.mean.size
        facts: dict[str, Any] = {
            "families": frozenset(self._families),
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
        return facts | self._extra_facts()

    _families: tuple[str, ...] = ()

    def _extra_facts(self) -> dict[str, Any]:
        return {}


class GaussianArm(_EllipticalArm):
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

    _families = ("gaussian", "sub-gaussian")

    def _extra_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"kappa": _KAPPA_SQUARED**0.5}
        if self.mean.size == 1:
            # Gaussian tails throughout: any α > 0 serves, so the limit α = 0 does.
            facts |= {
                "sub_exponential_nu": float(self.eigenvalues[0]) ** 0.5,
                "sub_exponential_alpha": 0.0,
            }
        return facts

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        return self.mean + self._colour(rng.standard_normal((n, self.mean.size)))

    def statistics(
        self, names: Collection[str], n: int, replications: int, rng: np.random.Generator
    ) -> Statistics:
        """Draw sample quantities; see `SyntheticArm.statistics`."""
        if set(names) & _OF_ROWS:
            return super().statistics(names, n, replications, rng)
        d, wanted = self.mean.size, set(names)
        white = rng.standard_normal((replications, d)) / np.sqrt(n)
        out: Statistics = {}
        if "second_mean" in wanted:
            second = rng.standard_normal((replications, d)) / np.sqrt(n)
            out["second_mean"] = (self.mean + self._colour(second))[:, 0]
        if wanted & _OF_SCATTER:
            out |= self.from_white(names, n, white, self.white_factor(n, replications, rng))
            return out
        out |= self.from_white(names, n, white, None)
        if "mean_squared_norm" in wanted:
            # In eigen-coordinates: scatter about the sample mean plus n times its square.
            mean = self.mean if self._spectrum[1] is None else self.mean @ self._spectrum[1]
            moved = mean + white * np.sqrt(self.eigenvalues)
            scatter = rng.chisquare(n - 1, (replications, d)) if n > 1 else np.zeros(1)
            out["mean_squared_norm"] = (self.eigenvalues * scatter / n + moved**2).sum(axis=1)
        return out

    def from_white(
        self, names: Collection[str], n: int, white: Float, factor: Float | None
    ) -> Statistics:
        """Compute sample quantities from the sufficient statistics of white samples.

        Parameters
        ----------
        names : collection of str
        n : int
        white : ndarray of shape (k, d)
            Means of n white vectors, along the eigenvectors of the covariance.
        factor : ndarray of shape (k, d, m) or None
            A with A Aᵀ their scatter about that mean; None where no quantity needs it.

        Returns
        -------
        dict of str to ndarray
        """
        out: Statistics = {}
        out["mean_error_norm"] = np.linalg.norm(white * np.sqrt(self.eigenvalues), axis=1)
        mean = self.mean + self._colour(white)
        out |= {"mean_vector": mean, "sample_mean": mean[:, 0]}
        if factor is not None:
            values, vectors = self._spectrum
            factor = factor * np.sqrt(values)[:, None]
            factor = factor if vectors is None else vectors @ factor
            scatter = factor @ np.swapaxes(factor, 1, 2) / n
            raw = scatter + mean[:, :, None] * mean[:, None, :]
            out |= {"covariance": scatter, "raw_covariance": raw}
            out["mean_square"] = raw[:, 0, 0]
            if n > 1:
                out["sample_variance"] = scatter[:, 0, 0] * (n / (n - 1))
            out["mean_squared_norm"] = np.trace(raw, axis1=1, axis2=2)
        return {name: out[name] for name in names if name in out}

    def size(self, names: Collection[str], n: int) -> int:
        """Numbers held for each replication."""
        d = self.mean.size
        if set(names) & _OF_ROWS:
            return n * d
        return 4 * d * d if set(names) & _OF_SCATTER else 2 * d

    def white_factor(self, n: int, replications: int, rng: np.random.Generator) -> Float:
        """Draw A by `rng`, (replications, d, min(d, n−1)), with A Aᵀ ~ Wishart(n−1, I)."""
        return draw_triangle(self.mean.size, n, replications, rng)

    def tail(self, quantity: str, n: int, threshold: float) -> float | None:
        """Exact tails of means, norms and (d = 1) variances."""
        from scipy.special import chdtr, chdtrc, ndtr

        values, d = self.eigenvalues, self.mean.size
        centred = not self.mean.any()
        if threshold < 0.0 or not values.any():
            return float(threshold < 0.0)

        def chi_square(degrees: int, variance: float) -> float:
            """P(|variance χ²/n − variance| > threshold)."""
            if degrees == 0:
                return float(variance > threshold)
            ratio = threshold / variance
            return float(
                chdtrc(degrees, n * (1.0 + ratio)) + chdtr(degrees, n * max(1.0 - ratio, 0.0))
            )

        if quantity == "mean-norm":
            return weighted_chi_square_tail(n * threshold**2, values)
        if quantity == "mean-norm-squared":
            return weighted_chi_square_tail(n * threshold, values)
        if quantity == "squared-norm-error" and centred:
            total = float(values.sum())
            upper = weighted_chi_square_tail(n * (total + threshold), values, degrees=n)
            lower = weighted_chi_square_tail(
                n * (total - threshold), values, degrees=n, upper=False
            )
            return upper + lower
        if d > 1:
            return None
        variance = float(values[0])
        if quantity == "mean-error":
            return float(2.0 * ndtr(-threshold * np.sqrt(n / variance)))
        if quantity == "squared-mean" and centred:
            return float(2.0 * ndtr(-np.sqrt(threshold * n / variance)))
        if quantity == "mean-product" and centred:
            return float(normal_product_tail(threshold * n / variance))
        if quantity == "square-error" and centred and variance == 1.0:
            return chi_square(n, 1.0)
        if quantity == "raw-covariance-error" and centred:
            return chi_square(n, variance)
        if quantity == "covariance-error":
            return chi_square(n - 1, variance)
        return None


class StudentArm(_EllipticalArm):
    """Elliptical t law, scaled so that `cov` is its covariance.

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

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        white = rng.standard_normal((n, self.mean.size))
        radius = np.sqrt((self.df - 2.0) / rng.chisquare(self.df, (n, 1)))
        return self.mean + radius * self._colour(white)


class SkewedArm(_EllipticalArm):
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
        if not shape > 0.0:
            raise InputError(f"`shape` must be positive; got {shape!r}.")
        self.shape = float(shape)
        super().__init__(mean, cov, name=name)

    def _describe(self) -> str:
        return f"{super()._describe()[:-1]}, shape={self.shape:g})"

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        """Return `n` rows, shape (n, d)."""
        factors = rng.standard_gamma(self.shape, (n, self.mean.size))
        return self.mean + self._colour((factors - self.shape) / np.sqrt(self.shape))
