"""Arms given by mean and covariance: Gaussian, heavy tails, skewness, mixtures; and spectra.

Gaussian ones are drawn by their sufficient statistics, and have exact tails and tilts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds import validation
from genbounds.bounds import Facts, normal_product_tail, weighted_chi_square_tail
from genbounds.core.moments import SYMMETRY_RTOL, symmetric_part
from genbounds.simulate.arms import _tilting as tilting
from genbounds.simulate.arms._arm import Names, Statistics, SyntheticArm, Tilted, chosen, shares_of
from genbounds.validation import Float, InputError

_DEFINITE_RTOL = 1e-10  # of the largest eigenvalue: what rounding may take from the smallest


class CovarianceArm(SyntheticArm):
    """A mean, a covariance and its root.

    `eigenvalues` has shape (d,), `axes` (d, d); None for the axes themselves.
    """

    families: tuple[str, ...] = ()
    _detail = ""

    def __init__(self, mean: ArrayLike, cov: ArrayLike, *, name: str | None = None) -> None:
        center = np.atleast_1d(np.array(validation.as_floats("mean", mean)))
        matrix = np.atleast_1d(np.array(validation.as_floats("cov", cov)))
        d = max(center.size, matrix.shape[0])
        if center.shape not in {(1,), (d,)} or not np.isfinite(center).all():
            raise InputError(
                f"`mean` must be finite, of shape ({d},) to fit `cov`; got shape {center.shape}."
            )
        self.mean: Float = np.broadcast_to(center, (d,))
        self.cov: Float = _symmetric(matrix, d)
        self.axes: Float | None
        values, self.axes = (self.cov, None) if self.cov.ndim == 1 else np.linalg.eigh(self.cov)
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
            return f"{kind}({self.mean[0]:g}, {self.cov.ravel()[0]:g}{self._detail})"
        return f"{kind}(d={self.mean.size}, Tr={self.eigenvalues.sum():.6g}{self._detail})"

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
        largest = np.abs(matrix).max()
        matrix, asymmetry = symmetric_part(matrix)
        if asymmetry > SYMMETRY_RTOL * largest:
            raise InputError("`cov` must be symmetric: pass (cov + cov.T) / 2 if it nearly is.")
    matrix.flags.writeable = False
    return matrix


# --- Gaussian -----------------------------------------------------------------------------------

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
        wanted, d = set(names), self.mean.size
        if wanted & _OF_ROWS:
            return super().statistics(names, n, replications, rng)
        white = rng.standard_normal((replications, d)) / np.sqrt(n)
        out: Statistics = {}
        if "second_mean" in wanted:
            second = rng.standard_normal((replications, d)) / np.sqrt(n)
            out["second_mean"] = (self.mean + self.colour(second))[:, 0]
        factor = draw_triangle(d, n, replications, rng) if wanted & _OF_SCATTER else None
        out |= self._from_white(n, white, factor)
        if factor is None and "mean_squared_norm" in wanted:
            # In eigen-coordinates: scatter about the sample mean plus n times its square.
            moved = self.along_axes(self.mean) + white * np.sqrt(self.eigenvalues)
            scatter = rng.chisquare(n - 1, (replications, d)) if n > 1 else np.zeros(1)
            out["mean_squared_norm"] = (self.eigenvalues * scatter / n + moved**2).sum(axis=1)
        return chosen(names, out)

    def _from_white(self, n: int, white: Float, factor: Float | None) -> Statistics:
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
        if factor is None:
            return out
        factor = factor * np.sqrt(self.eigenvalues)[:, None]
        factor = factor if self.axes is None else self.axes @ factor
        scatter = factor @ np.swapaxes(factor, 1, 2) / n
        raw = scatter + mean[:, :, None] * mean[:, None, :]
        return out | {
            "covariance": scatter,
            "raw_covariance": raw,
            "mean_square": raw[:, 0, 0],
            "sample_variance": scatter[:, 0, 0] * (n / (n - 1) if n > 1 else math.nan),
            "mean_squared_norm": np.trace(raw, axis1=1, axis2=2),
        }

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
            table["squared-norm-error"] = lambda: _squares_tail(values, n, n, threshold)
        if values.size == 1:
            variance = float(values[0])
            table["mean-error"] = table["mean-norm"]
            table["covariance-error"] = lambda: _squares_tail(values, n - 1, n, threshold)
            if centred:
                table["squared-mean"] = table["mean-norm-squared"]
                table["mean-product"] = lambda: normal_product_tail(threshold * n / variance)
                table["raw-covariance-error"] = table["squared-norm-error"]
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
        d = self.mean.size
        if set(names) & _OF_ORDER:
            return super().tilted(names, n, count, rng)
        if d > _MOST_TILTED_FEATURES:
            return None
        scattered = not set(names) <= _OF_MEANS
        tilts, blocks = _tilts(self, n, scattered, gap), []
        for (move, _), k in zip(tilts, tilting.part_sizes(len(tilts), count, rng), strict=True):
            mean = rng.standard_normal((k, d)) / math.sqrt(n)
            factor = draw_triangle(d, n, k, rng) if scattered else np.zeros((k, d, 0))
            blocks.append(move(_White(self.eigenvalues, n, mean, factor), rng))
        drawn = _White(self.eigenvalues, n, *map(np.concatenate, zip(*blocks, strict=True)))
        out = self._from_white(n, drawn.mean, drawn.factor if scattered else None)
        if scattered:  # at its largest possible value; see `SyntheticArm.tilted`
            out["mean_deviation"] = np.sqrt(np.trace(out["covariance"], axis1=1, axis2=2))
        weights = tilting.mixture_weights([log_ratio(drawn) for _, log_ratio in tilts])
        return Tilted(statistics=chosen(names, out), log_weights=weights)

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

        def log_ratios(white: Float) -> list[Float]:
            sums = {start: white[:, :start].sum(axis=1) for start in {start for start, _ in parts}}
            return [shift * sums[start] - 0.5 * start * shift**2 for start, shift in parts]

        white, weights = tilting.mixture(parts, count, rng, draw, log_ratios)
        rows = self.facts["mean"] + math.sqrt(self.facts["variance"]) * white
        return rows, weights


def draw_triangle(d: int, n: int, replications: int, rng: Generator) -> Float:
    """T of shape (replications, d, min(d, n − 1)) with T Tᵀ ~ Wishart(n − 1, I)."""
    columns = min(d, n - 1)
    triangle = np.zeros((replications, d, columns))
    normals = rng.standard_normal((replications, columns * d - columns * (columns + 1) // 2))
    used = 0
    for row in range(1, d):  # slices are copied faster than indices are followed
        width = min(row, columns)
        triangle[:, row, :width] = normals[:, used : used + width]
        used += width
    diagonal = np.arange(columns)
    chi_squares = rng.chisquare((n - 1.0) - diagonal, (replications, columns))
    triangle[:, diagonal, diagonal] = np.sqrt(chi_squares)
    return triangle


def _squares_tail(values: Float, degrees: int, n: int, threshold: float) -> float:
    """P(|Σ_j λ_j χ²_j/n − Tr Σ| > threshold), each χ²_j of so many degrees of freedom."""
    total = float(values.sum())
    if degrees == 0:
        return float(total > threshold)
    upper = weighted_chi_square_tail(n * (total + threshold), values, degrees=degrees)
    below = n * (total - threshold)
    return upper + weighted_chi_square_tail(below, values, degrees=degrees, upper=False)


# --- tilts of white samples: how each moves them, and its log density over that of no tilt --------


class _White:
    """k white samples of n rows: means, (k, d), and factors A of the scatter A Aᵀ, (k, d, m).

    Along the eigenvectors of a covariance, of which `shares` are λ_j/λ_1 and `lead` is the leading
    eigenspace. The cached quantities are all that the densities depend on, beside the mean.
    """

    def __init__(self, eigenvalues: Float, n: int, mean: Float, factor: Float) -> None:
        self.n, self.mean, self.factor = n, mean, factor
        self.shares: Float = eigenvalues / eigenvalues.max()
        self.lead = self.shares >= 1.0 - 1e-9
        self.multiplicity = int(self.lead.sum())

    def directions(self, rng: Generator) -> Float:
        """Uniform unit vectors in the leading eigenspace, one for each sample."""
        v = np.zeros(self.mean.shape)
        v[:, self.lead] = tilting.random_directions(len(v), self.multiplicity, rng)
        return v

    @cached_property
    def energy(self) -> Float:
        """Σ_j λ_j/λ_1 times the sum of squares along axis j, shape (k,)."""
        squares = self.n * np.square(self.mean) + np.square(self.factor).sum(axis=2)
        return np.asarray(squares @ self.shares)

    @cached_property
    def along(self) -> Float:
        """Norm of the mean within the leading eigenspace, shape (k,)."""
        return np.asarray(np.linalg.norm(self.mean[:, self.lead], axis=1))

    @cached_property
    def second(self) -> Float:
        """Eigenvalues of the second moments times n within the leading eigenspace, shape (k, m)."""
        mean, factor = self.mean[:, self.lead], self.factor[:, self.lead]
        scatter = factor @ np.swapaxes(factor, 1, 2)
        scatter += self.n * mean[:, :, None] * mean[:, None, :]
        return np.asarray(np.linalg.eigvalsh(scatter))


# Means and factors of the moved samples; log densities.
Tilt = tuple[Callable[[_White, Generator], tuple[Float, Float]], Callable[[_White], Any]]


def _tilts(features: GaussianArm, n: int, scattered: bool, gap: Float | None) -> list[Tilt]:
    """List the mixture: the distribution itself, and tilts of the sizes that cost each level."""
    shifts = [math.sqrt(2.0 * level / n) for level in tilting.LEVELS]
    tilts = [_shift_along(0.0, np.zeros(features.mean.size)), *map(_shift, shifts)]
    if gap is not None:
        direction = features.along_axes(gap) * np.sqrt(features.eigenvalues)
        norm = float(np.linalg.norm(direction))
        if norm > 0.0:
            steps = [sign * size for sign in (1.0, -1.0) for size in shifts]
            tilts += [_shift_along(size, direction / norm) for size in steps]
    if scattered:
        shares = features.eigenvalues / features.eigenvalues.max()

        def energies(sign: float) -> list[float]:
            """Tilts by which Σ‖x‖² is larger (`sign` 1) or smaller (−1)."""

            def cost(x: float) -> float:
                return n * _inflation(1.0 / (1.0 + math.expm1(-sign * x) * shares))

            logs = tilting.strengths(cost, low=0.0, high=30.0)
            return [-math.expm1(-sign * x) for x in logs]

        tilts += map(_stretch, energies(1.0) + energies(-1.0))
        logs = tilting.strengths(lambda x: n * _inflation(np.exp([x])), low=0.0, high=60.0)
        tilts += [_stretch_lead(math.exp(x)) for x in logs]
    return tilts


def _inflation(factors: Float) -> float:
    """Information, for each row, of variances multiplied by `factors`."""
    return 0.5 * float((factors - 1.0 - np.log(factors)).sum())


def _shift_along(size: float, direction: Float) -> Tilt:
    """Shift the mean by `size` along a unit vector."""

    def log_ratio(x: _White) -> Any:
        return -0.5 * x.n * size**2 + x.n * size * (x.mean @ direction)

    return lambda x, rng: (x.mean + size * direction, x.factor), log_ratio


def _shift(size: float) -> Tilt:
    """Shift the mean by `size` in a random leading direction, integrated out of the density."""

    def log_ratio(x: _White) -> Any:
        spread = tilting.log_direction_mean(x.n * size * x.along, x.multiplicity)
        return -0.5 * x.n * size**2 + spread

    return lambda x, rng: (x.mean + size * x.directions(rng), x.factor), log_ratio


def _stretch(size: float) -> Tilt:
    """Multiply variances by 1/(1 − size λ_j/λ_1): Σ‖x‖² changes in the way that costs least."""

    def move(x: _White, rng: Generator) -> tuple[Float, Float]:
        stretch = 1.0 / np.sqrt(1.0 - size * x.shares)
        return x.mean * stretch, x.factor * stretch[:, None]

    def log_ratio(x: _White) -> Any:
        return 0.5 * x.n * np.log1p(-size * x.shares).sum() + 0.5 * size * x.energy

    return move, log_ratio


def _stretch_lead(size: float) -> Tilt:
    """Multiply the variance of a random leading direction, integrated out, by `size`."""

    def move(x: _White, rng: Generator) -> tuple[Float, Float]:
        v, more = x.directions(rng), math.sqrt(size) - 1.0
        mean = x.mean + more * (x.mean * v).sum(axis=1)[:, None] * v
        return mean, x.factor + more * v[:, :, None] * (v[:, None, :] @ x.factor)

    def log_ratio(x: _White) -> Any:
        tilt = tilting.log_sphere_mean(0.5 * (1.0 - 1.0 / size) * x.second)
        return -0.5 * x.n * math.log(size) + tilt

    return move, log_ratio


# --- heavy tails, skewness, mixtures --------------------------------------------------------------


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
        self.df, self._detail = float(df), f", df={df:g}"
        super().__init__(mean, cov, name=name)

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
        self.shape, self._detail = validation.check_positive("shape", shape), f", shape={shape:g}"
        super().__init__(mean, cov, name=name)

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
        known = all({"mean", "cov"} <= arm.facts.keys() for arm in self.components)
        if not known or len({arm.d for arm in self.components}) != 1:
            raise InputError(
                "`components` must be arms, one or more, that know their mean and covariance and "
                "have equally many features."
            )
        self.weights = shares_of("weights", weights, len(self.components))
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
