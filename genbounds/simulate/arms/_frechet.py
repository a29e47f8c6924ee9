"""An arm together with a reference, so that its Fréchet distance is known; many samples at once.

The mean of n standard normal rows has covariance I/n and, independent of it, their scatter about
it is T Tᵀ with T Bartlett's lower triangle: Tᵢⱼ ~ N(0, 1) below the diagonal, Tⱼⱼ² ~ χ²(n−1−j) on
it; a trapezoid of n − 1 columns where n − 1 < d. In the eigenbasis of Σ = diag(λ) the sample
covariance is A Aᵀ with A = diag(√λ) T / √(n−1). With Σ_r = Rᵀ R and B = R A, the roots sᵢ of the
distance are the singular values of B, the roots of the eigenvalues of K = Bᵀ B = V diag(s²) Vᵀ.
All that the Gaussian second-order formulas of `genbounds.estimators` need besides is

    Tr Σ̂ = ‖A‖²,  Tr Σ̂² = ‖Aᵀ A‖²,  Σᵢ ‖Σ̂ pᵢ‖²/sᵢ = Σᵢ sᵢ ‖A vᵢ‖²,  gapᵀ Σ̂ gap = ‖Aᵀ gap‖²,

so that one replication costs one eigenproblem and three triangular products whatever n. The same
lines run on NumPy arrays and on torch tensors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.estimators import gaussian_bias_beyond_second_order, gaussian_influence_variance
from genbounds.simulate.arms._arm import Names, Outcomes, Statistics, SyntheticArm, Tilted, chosen
from genbounds.simulate.arms._covariance import GaussianArm, draw_triangle
from genbounds.validation import Float, InputError, how_to_install

# A NumPy array or a torch tensor.
Array = Any

# Smaller triangles are multiplied as full matrices, all replications in one call.
TRIANGULAR_SIZE = 512

# A lattice that reaches tails of 1e-30 in both directions and is fine enough for the accuracy that
# `FrechetArm.outcomes` states: 600 means by 294 variances.
_LATTICE_REACH = 12.0  # standard errors
_LATTICE_MEANS = 300
_LATTICE_RATIO = 1.5  # of the tail probabilities of neighbouring variances
_LATTICE_VARIANCES = 146  # down to 1e-26

_FROM_ENGINE = {"distance_plugin", "sample_mean_gap", "sample_trace_root"}
_DISTANCE = {*_FROM_ENGINE, "covariance_error"}


class FrechetArm(SyntheticArm):
    """Features with known mean and covariance against fixed reference moments.

    Parameters
    ----------
    features : SyntheticArm
        Its facts hold ``mean`` and ``cov``.
    reference_mean : array_like of shape (d,)
        A scalar is repeated.
    reference_cov : array_like of shape (d, d) or (d,)
        Reference covariance, or its diagonal.
    name : str, optional
        Label in reports.

    Notes
    -----
    FD = ‖μ−μ_r‖² + Tr Σ + Tr Σ_r − 2 Tr (Σ_r^{1/2} Σ Σ_r^{1/2})^{1/2}; the plug-in FD_n has the
    sample mean and the sample covariance with divisor n in their place.
    """

    def __init__(
        self,
        features: SyntheticArm,
        reference_mean: ArrayLike,
        reference_cov: ArrayLike,
        *,
        name: str | None = None,
    ) -> None:
        d = features.d
        if "cov" not in features.facts:
            raise InputError(f"`features` ({features.name}) does not know its covariance.")
        cov = np.atleast_1d(np.asarray(reference_cov, dtype=np.float64))
        if cov.shape not in {(d,), (d, d)}:
            raise InputError(f"`reference_cov` must have shape ({d}, {d}) or ({d},).")
        self.features = features
        self.reference_mean: Float = np.full(d, reference_mean, dtype=np.float64)
        values, vectors = np.linalg.eigh(np.diag(cov) if cov.ndim == 1 else cov)
        if values.min() < 0.0:
            raise InputError("`reference_cov` must be positive semi-definite.")
        self.reference_values: Float = values
        self.reference_root: Float = (vectors * np.sqrt(values)) @ vectors.T
        self.name = name or f"{features.name} against a reference"
        self._gap = np.broadcast_to(features.facts["mean"], (d,)) - self.reference_mean
        within = np.asarray(features.facts["cov"])
        self._cov: Float = np.diag(within) if within.ndim == 1 else within

    @cached_property
    def facts(self) -> Facts:
        """True quantities by name: those of the features and the distance."""
        gap, cov = self._gap, self._cov
        return dict(self.features.facts) | {
            "mean_gap": float(np.linalg.norm(gap)),
            "reference_definite": bool(self.reference_values.min() > 0.0),
            "reference_root_trace": float(np.sqrt(self.reference_values).sum()),
            "reference_trace": float(self.reference_values.sum()),
            "reference_operator": float(self.reference_values.max()),
            "reference_cov": self.reference_root @ self.reference_root,
            "trace_root": float(self._trace_root(cov[None])[0]),
            "product_trace": float(np.trace(self.reference_root @ cov @ self.reference_root)),
            "distance": float(self._distance(gap[None], cov[None])[0]),
        }

    @property
    def d(self) -> int:
        """Number of features."""
        return self.features.d

    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` rows of features, shape (n, d)."""
        return self.features.draw(n, rng)

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw sample quantities; see `SyntheticArm.statistics`."""
        if {*names} <= _FROM_ENGINE and isinstance(self.features, GaussianArm) and n > 1:
            return self._from_engine(names, n, replications, rng)
        out = self.features.statistics(_with_moments(names), n, replications, rng)
        return self._with_distances(names, out)

    def reduce(self, names: Names, rows: Float) -> Statistics:
        """Compute sample quantities from raw samples; see `SyntheticArm.reduce`."""
        return self._with_distances(names, self.features.reduce(_with_moments(names), rows))

    def _with_distances(self, names: Names, out: Statistics) -> Statistics:
        """Add what follows from the sample mean and covariance."""
        if set(names) & _DISTANCE:
            gap, cov = out["mean_vector"] - self.reference_mean, out["covariance"]
            out["sample_mean_gap"] = np.linalg.norm(gap, axis=1)
            out["covariance_error"] = np.abs(_eigenvalues(cov - self._cov)).max(axis=1)
            out["distance_plugin"] = self._distance(gap, cov)
            out["sample_trace_root"] = self._trace_root(cov)
        return chosen(names, out)

    def engine(self, device: str | None = None) -> FrechetEngine:
        """Prepare distances of many Gaussian samples at once, on NumPy or on a torch `device`.

        Raises
        ------
        InputError
            If the features are not Gaussian.
        """
        return FrechetEngine(self, device)

    @cached_property
    def _engine(self) -> FrechetEngine:
        return self.engine()

    def _from_engine(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        white = draw_white(self.d, n, replications, rng)
        parts = self._engine.evaluate(white, n, debias=False)
        scale = (n - 1.0) / n  # from divisor n − 1 to n
        table = {
            "sample_mean_gap": lambda: np.sqrt(parts.gap),
            "sample_trace_root": lambda: np.sqrt(scale) * parts.roots.sum(axis=1),
            "distance_plugin": lambda: self._engine.plugin(parts, scale=scale),
        }
        return chosen(names, table)

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted | None:
        """Tilt the features; Gaussian ones also along the gap of the means."""
        more = {"gap": self._gap} if isinstance(self.features, GaussianArm) else {}
        drawn = self.features.tilted(_with_moments(names), n, count, rng, **more)
        if drawn is None:
            return None
        return replace(drawn, statistics=self._with_distances(names, drawn.statistics))

    def outcomes(self, names: Names, n: int) -> Outcomes | None:
        """Lattice over sample mean and sample variance for one Gaussian feature.

        Each point stands for a rectangle with its exact probability. From one rectangle to the
        next a tail changes by a factor of at most 1.6 along the mean and 1.5 along the variance,
        so that the probability of a region with a monotone edge, which passes within half a
        rectangle of the points beside it, is right within a factor 2.5. ``mean_deviation``, no
        function of the two, is put at its largest possible value, the standard deviation with
        divisor n.
        """
        if self.d > 1 or "gaussian" not in self.features.facts["families"] or n < 2:
            return None
        variance = self.features.facts["variance"]
        z, z_weight = _mean_lattice()
        scatter, scatter_weight = _scatter_lattice(n)
        mean_error = np.repeat(z, scatter.size) * np.sqrt(variance / n)
        covariance = np.tile(scatter, z.size) * variance / n
        out = {
            "mean_vector": (mean_error + self.features.facts["mean"])[:, None],
            "covariance": covariance[:, None, None],
            "mean_error_norm": np.abs(mean_error),
            "mean_deviation": np.sqrt(covariance),
        }
        return Outcomes(
            statistics=self._with_distances(names, out),
            probabilities=np.outer(z_weight, scatter_weight).ravel(),
            accuracy=1.5,
            lower_only="mean_deviation" in names,
        )

    def size(self, names: Names, n: int) -> int:
        """Numbers held for each replication."""
        return self.features.size([*names, "covariance"], n) + 4 * self.d**2

    def plugin_distance(self, means: Float, covariances: Float) -> Float:
        """FD of `means` and `covariances`, shapes (k, d) and (k, d, d), from the reference."""
        return self._distance(means - self.reference_mean, covariances)

    def _distance(self, gap: Float, cov: Float) -> Float:
        """FD of each mean gap (k, d) and covariance (k, d, d); at least 0."""
        trace = np.trace(cov, axis1=1, axis2=2) + self.reference_values.sum()
        squared = np.square(gap).sum(axis=1)
        return np.asarray(np.maximum(squared + trace - 2.0 * self._trace_root(cov), 0.0))

    def _trace_root(self, cov: Float) -> Float:
        """Tr (Σ Σ_r)^{1/2} of each covariance (k, d, d)."""
        inner = _eigenvalues(self.reference_root @ cov @ self.reference_root)
        return np.asarray(np.sqrt(np.maximum(inner, 0.0)).sum(axis=1))


def _eigenvalues(matrices: Float) -> Float:
    """Of symmetric matrices, (k, d, d); a lattice at d = 1 has 175,000 of them."""
    if matrices.shape[-1] == 1:
        return matrices[..., 0]
    return np.asarray(np.linalg.eigvalsh(matrices))


def _with_moments(names: Names) -> list[str]:
    """`names` and the moments that their distances, if there are any, follow from."""
    moments = ["mean_vector", "covariance"] if set(names) & _DISTANCE else []
    return [*dict.fromkeys((*names, *moments))]


def _mean_lattice() -> tuple[Float, Float]:
    """Means in standard errors and their probabilities; upper tails mirrored to keep digits."""
    from scipy.special import ndtr

    edges = np.linspace(0.0, _LATTICE_REACH, _LATTICE_MEANS + 1)
    half = ndtr(-edges[:-1]) - ndtr(-edges[1:])
    middle = 0.5 * (edges[:-1] + edges[1:])
    return np.r_[-middle[::-1], middle], np.r_[half[::-1], half]


def _scatter_lattice(n: int) -> tuple[Float, Float]:
    """χ² variables of n − 1 degrees of freedom and their probabilities, both tails alike."""
    from scipy.stats import chi2

    edge = 0.5 * _LATTICE_RATIO ** -np.arange(_LATTICE_VARIANCES + 1.0)
    share = np.r_[edge[:-1] - edge[1:], edge[-1]]
    inside = np.r_[np.sqrt(edge[:-1] * edge[1:]), edge[-1]]
    scatter = np.r_[chi2.ppf(inside, n - 1), chi2.isf(inside, n - 1)]
    return scatter, np.r_[share, share]


# --- distances of many Gaussian samples -----------------------------------------------------------


class White(NamedTuple):
    """Standard normal draws behind `replications` samples of n rows in d dimensions.

    Attributes
    ----------
    mean : array of shape (replications, d)
        √n (μ̂ − μ), whitened.
    triangle : array of shape (replications, d, min(d, n − 1))
        T with T Tᵀ ~ Wishart(n − 1, I).
    """

    mean: Array
    triangle: Array


def draw_white(d: int, n: int, replications: int, rng: Generator) -> White:
    """Draw on the host with NumPy; only the triangle's own entries cost random numbers."""
    mean = rng.standard_normal((replications, d))
    return White(mean, draw_triangle(d, n, replications, rng))


def draw_white_on(device: str, d: int, n: int, replications: int, seeds: SeedSequence) -> White:
    """Draw on a torch device; the few χ² variables, for which torch takes no seed, on the host."""
    import torch

    normal, chi_square = seeds.spawn(2)
    generator = torch.Generator(device=device)
    generator.manual_seed(int(normal.generate_state(1, np.uint64)[0] >> np.uint64(1)))
    columns = min(d, n - 1)

    def standard(*shape: int) -> Array:
        return torch.randn(shape, generator=generator, device=device, dtype=torch.float64)

    mean, triangle = standard(replications, d), standard(replications, d, columns).tril(-1)
    degrees = (n - 1.0) - np.arange(columns)
    chi_squares = np.random.default_rng(chi_square).chisquare(degrees, (replications, columns))
    diagonal = torch.diagonal(triangle, dim1=1, dim2=2)
    diagonal.copy_(torch.from_numpy(np.sqrt(chi_squares)))
    return White(mean, triangle)


class DistanceParts(NamedTuple):
    """What the distance of each replication is made of; arrays of shape (replications,).

    Attributes
    ----------
    gap : array
        ‖μ̂ − μ_r‖².
    trace : array
        Tr Σ̂, divisor n − 1.
    roots : array of shape (replications, min(d, n − 1))
        s, with Σ s = Tr (Σ̂ Σ_r)^{1/2}.
    bias, variance : array or None
        Second-order bias of the plug-in distance and its variance, for Gaussian rows.
    """

    gap: Array
    trace: Array
    roots: Array
    bias: Array = None
    variance: Array = None


class FrechetEngine:
    """An arm of Gaussian features, prepared for NumPy or for one torch device.

    Parameters
    ----------
    arm : FrechetArm
        Its features are Gaussian.
    device : str or None
        A torch device such as "cuda" or "cpu"; None: NumPy.
    """

    def __init__(self, arm: FrechetArm, device: str | None = None) -> None:
        features = arm.features
        if not isinstance(features, GaussianArm):
            raise InputError(f"`features` ({features.name}) must be a GaussianArm.")
        turned = arm.reference_root if features.axes is None else arm.reference_root @ features.axes
        diagonal = np.diagonal(turned)
        # Both covariances have the same eigenvectors: products with R are then scalings.
        self.commuting = bool((turned == np.diag(diagonal)).all())
        self.reference_trace = float(arm.reference_values.sum())
        self.device = device
        roots = np.sqrt(features.eigenvalues)
        factor = (diagonal * roots)[:, None] if self.commuting else turned * roots
        parts = (roots, features.along_axes(arm._gap), factor)
        if device is not None:
            import torch

            parts = tuple(torch.from_numpy(np.array(array)).to(device) for array in parts)
        self._roots, self._gap, self._factor = parts

    def evaluate(self, white: White, n: int, *, debias: bool) -> DistanceParts:
        """Evaluate draws of n ≥ 2 rows that lie on the engine's own device."""
        xp = np if self.device is None else import_module("torch")
        gap = self._gap + self._roots * white.mean / math.sqrt(n)
        t, unit = white.triangle, 1.0 / math.sqrt(n - 1)
        factor = unit * self._factor
        b = factor * t if self.commuting else times_triangle(factor, t)
        gram = b.mT @ b
        trace = unit**2 * (xp.einsum("kij,kij->ki", t, t) @ self._roots**2)
        values, vectors = xp.linalg.eigh(gram) if debias else (xp.linalg.eigvalsh(gram), None)
        s = xp.sqrt(values.clip(min=0.0))
        bias = variance = None
        if debias:
            a = (unit * self._roots)[:, None] * t
            bias, variance = self._second_order(a, gap, trace, s, vectors, n)
        return DistanceParts((gap * gap).sum(1), trace, s, bias, variance)

    def _second_order(
        self, a: Array, gap: Array, trace: Array, s: Array, vectors: Array, n: int
    ) -> tuple[Array, Array]:
        """Bias of the plug-in distance and its variance, from A, μ̂ − μ_r, Tr Σ̂, s and V."""
        tiny = float(np.finfo(np.float64).tiny)  # two roots that are both zero
        shares = s[:, None, :] / (s[:, :, None] + s[:, None, :] + tiny)
        pairs = s[:, :, None] * shares
        bias = trace / n + (pairs.sum((1, 2)) + s.sum(1) / 2.0) / (2.0 * n)
        moved = (triangle_times(a, vectors) ** 2).sum(1)
        squares = ((a.mT @ a) ** 2).sum((1, 2))
        linear = ((gap[:, None, :] @ a)[:, 0] ** 2).sum(1)
        second = 2.0 / n**2 * (squares + (pairs * pairs).sum((1, 2)) / 2.0 + (s * s).sum(1) / 8.0)
        variance = []
        columns = map(host, (linear, trace, squares, s, moved, second))
        for *ratios, roots, shifts, remainder in zip(*columns, strict=True):
            moments = dict(zip(("linear", "trace", "square"), ratios, strict=True))
            moments |= {"roots": roots[roots > 0.0], "moved": shifts[roots > 0.0]}
            influence = gaussian_influence_variance(**moments, n=n)
            variance.append(max(influence, 0.0) / n + float(remainder))
        return bias, np.array(variance)

    def plugin(self, parts: DistanceParts, *, scale: float = 1.0) -> Array:
        """FD with the sample moments, Σ̂ multiplied by `scale`; at least 0."""
        value = parts.gap + scale * parts.trace + self.reference_trace
        return (value - 2.0 * math.sqrt(scale) * parts.roots.sum(1)).clip(min=0.0)

    def debiased(self, parts: DistanceParts, n: int) -> Float:
        """FD with its bias removed, as `frechet_distance` does from moments; can be negative."""
        values = host(self.plugin(parts) - parts.bias)
        for k, roots in enumerate(host(parts.roots)):
            values[k] -= gaussian_bias_beyond_second_order(roots, n)
        return values

    def describe(self) -> str:
        """Who computes, for reports."""
        if self.device is None:
            return f"NumPy {np.__version__}, CPU"
        import torch

        kind = torch.device(self.device)
        name = torch.cuda.get_device_name(kind) if kind.type == "cuda" else kind.type.upper()
        return f"torch {torch.__version__}, {name}"


def times_triangle(factor: Array, triangle: Array) -> Array:
    """Return ``factor @ triangle`` of shape (k, d, d), skipping the zeros above its diagonals.

    `factor` is one matrix, `triangle` k lower triangles. Half the flops where they are many.
    """
    if not _skips_zeros(triangle):
        return factor @ triangle
    # What is C-ordered here is its transpose to BLAS.
    return _stacked([scipy.linalg.blas.dtrmm(1.0, lower.T, factor.T).T for lower in triangle])


def triangle_times(triangle: Array, factor: Array) -> Array:
    """Return ``triangle @ factor``, both of shape (k, d, d), likewise."""
    if not _skips_zeros(triangle):
        return triangle @ factor
    pairs = zip(triangle, factor, strict=True)
    return _stacked([scipy.linalg.blas.dtrmm(1.0, a.T, b.T, side=1).T for a, b in pairs])


def _stacked(matrices: list[Float]) -> Float:
    return matrices[0][None] if len(matrices) == 1 else np.stack(matrices)


def _skips_zeros(triangle: Array) -> bool:
    square = triangle.shape[-2] == triangle.shape[-1] >= TRIANGULAR_SIZE
    return square and isinstance(triangle, np.ndarray)


def host(x: Array) -> Float:
    """Copy from whatever device; a NumPy array is returned as it is."""
    return np.asarray(x.cpu() if hasattr(x, "cpu") else x)


def check_device(device: str | None) -> str | None:
    """Return `device` if torch has it."""
    if device is None:
        return None
    try:
        import torch
    except ImportError:
        raise InputError(f"`device` needs torch: {how_to_install('torch')}.") from None
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"`device` {device!r} cannot be used ({reason}): leave it out for NumPy, or name a "
            "torch device such as 'cpu' or 'cuda'."
        ) from None
    return device
