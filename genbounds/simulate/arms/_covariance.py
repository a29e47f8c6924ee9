"""Arms given by mean and covariance: what they share, heavy tails, skewness, mixtures, spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds import validation
from genbounds.bounds import Facts
from genbounds.simulate.arms._arm import SyntheticArm, check_shares
from genbounds.validation import Float, InputError

_SYMMETRY_RTOL = 1e-6  # of the largest entry, as in `Moments`
_DEFINITE_RTOL = 1e-10  # of the largest eigenvalue: what rounding may take from the smallest


class CovarianceArm(SyntheticArm):
    """A mean, a covariance and its root.

    `eigenvalues` has shape (d,), `axes` (d, d); None for the axes themselves.
    """

    families: tuple[str, ...] = ()

    def __init__(self, mean: ArrayLike, cov: ArrayLike, *, name: str | None = None) -> None:
        center = np.atleast_1d(np.array(validation.as_floats("mean", mean)))
        matrix = np.atleast_1d(np.array(validation.as_floats("cov", cov)))
        d = max(center.size, matrix.shape[0])
        if center.ndim > 1 or center.size not in (1, d):
            raise InputError(f"`mean` must have shape ({d},) to fit `cov`; got {center.shape}.")
        if not np.isfinite(center).all():
            raise InputError("`mean` must be finite.")
        self.mean: Float = np.broadcast_to(center, (d,))
        self.cov: Float = _symmetric(matrix, d)
        values, self.axes = _spectrum(self.cov)
        if not values.min() >= -_DEFINITE_RTOL * max(values.max(), 0.0):
            raise InputError(
                "`cov` must be positive semi-definite; its smallest eigenvalue is "
                f"{values.min():.3g}."
            )
        self.eigenvalues: Float = np.maximum(values, 0.0)
        self.name = name if name is not None else self._describe()

    def _describe(self) -> str:
        kind = type(self).__name__.removesuffix("Arm").lower()
        if self.mean.size == 1:
            return f"{kind}({self.mean[0]:g}, {self.cov.ravel()[0]:g})"
        return f"{kind}(d={self.mean.size}, Tr={self.eigenvalues.sum():.6g})"

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


def _symmetric(matrix: Float, d: int) -> Float:
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
    matrix.flags.writeable = False
    return matrix


def _spectrum(cov: Float) -> tuple[Float, Float | None]:
    """Eigenvalues and eigenvectors; None for the axes themselves, which a diagonal has."""
    if cov.ndim == 1:
        return cov, None
    values, vectors = np.linalg.eigh(cov)
    return values, vectors


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
        self.shape = validation.check_positive("shape", shape)
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
        self.weights = check_shares("weights", weights, len(self.components))
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


# --- covariance spectra: simple families, and those with the norms of real embeddings ------------

# Tr Σ, √Tr Σ², ‖Σ‖ as printed for 5,000 real images (M25 Tables 1-3); ends of the printed ranges
# that go together, so that the effective ranks span the printed ones.
EMBEDDING_NORMS: Mapping[str, tuple[int, float, float, float]] = MappingProxyType(
    {
        "inception low r": (2048, 181.0, 16.0, 13.0),
        "inception high r": (2048, 181.0, 12.0, 9.05),
        "clip low r": (1024, 528.0, 63.0, 44.0),
        "clip high r": (1024, 637.0, 54.0, 32.0),
        "dinov2 low r": (1024, 1886.0, 120.0, 69.0),
        "dinov2 high r": (1024, 2113.0, 85.0, 21.0),
    }
)


def matched_spectrum(d: int, *, trace: float, frobenius: float, operator: float) -> Float:
    """Spectrum with given Tr Σ, √Tr Σ² and ‖Σ‖: a few equal leading eigenvalues and a power law.

    Parameters
    ----------
    d : int
        Number of eigenvalues.
    trace, frobenius, operator : float
        Tr Σ, √Tr Σ² and ‖Σ‖.

    Returns
    -------
    ndarray of shape (d,)
        Decreasing; the three norms are met to 1e-9 in relative terms.

    Raises
    ------
    InputError
        If no spectrum has these norms.
    """
    validation.check_count("d", d, minimum=2)
    norms = f"operator={operator!r}, frobenius={frobenius!r}, trace={trace!r}, d={d}."
    if not (0.0 < operator <= frobenius <= trace <= d * operator):
        raise InputError(
            f"no spectrum has these norms: need ‖Σ‖ ≤ √Tr Σ² ≤ Tr Σ ≤ d ‖Σ‖; got {norms}"
        )
    for leading in range(1, d):
        first = trace - leading * operator
        second = frobenius**2 - leading * operator**2
        # What is left must have a positive sum, and squares that so many numbers can have.
        if not (first > 0.0 and second >= first**2 / (d - leading) * (1.0 - 1e-12)):
            break
        tail = _power_law(d - leading, first, second)
        if tail is not None and tail[0] <= operator * (1.0 + 1e-12):
            return np.concatenate([np.full(leading, operator), np.minimum(tail, operator)])
    raise InputError(
        f"no spectrum of equal leading eigenvalues and a power law has these norms: {norms}"
    )


def _power_law(count: int, total: float, squares: float) -> Float | None:
    """Numbers ∝ j^(−power) with this sum and sum of squares; None above power 60."""
    from scipy.optimize import brentq

    ranks = np.arange(1.0, count + 1.0)
    target = squares / total**2

    def excess(power: float) -> float:
        tail = ranks**-power
        return float((tail @ tail) / tail.sum() ** 2) - target

    if excess(60.0) < 0.0:
        return None
    power = 0.0 if excess(0.0) >= 0.0 else float(brentq(excess, 0.0, 60.0, xtol=1e-14))
    tail = ranks**-power
    return np.asarray(tail * (total / tail.sum()))


def power_law_spectrum(d: int, *, exponent: float, trace: float) -> Float:
    """Eigenvalues ∝ j^(−`exponent`), j = 1 … `d`, summing to `trace`; `exponent` at least 0."""
    validation.check_not_negative("exponent", exponent)
    validation.check_positive("trace", trace)
    shape = np.arange(1.0, validation.check_count("d", d) + 1.0) ** -exponent
    return np.asarray(shape * (trace / shape.sum()))


def embedding_spectrum(name: str) -> Float:
    """Spectrum with the norms of real embeddings; `name` is a key of `EMBEDDING_NORMS`."""
    validation.check_choice("name", name, EMBEDDING_NORMS)
    d, trace, frobenius, operator = EMBEDDING_NORMS[name]
    return matched_spectrum(d, trace=trace, frobenius=frobenius, operator=operator)
