"""Fréchet distances of many Gaussian samples at once, from sufficient statistics.

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
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.random import Generator, SeedSequence

from genbounds.estimators import gaussian_bias_beyond_second_order, gaussian_influence_variance
from genbounds.simulate.arms._covariance import CovarianceArm
from genbounds.validation import Float, InputError, how_to_install

# A NumPy array or a torch tensor.
Array = Any

# Smaller triangles are multiplied as full matrices, all replications in one call.
TRIANGULAR_SIZE = 512


@dataclass(frozen=True, slots=True)
class White:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceParts:
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
    """Gaussian features and a reference, prepared for NumPy or for one torch device.

    Parameters
    ----------
    features : CovarianceArm
        Gaussian.
    gap : ndarray of shape (d,)
        μ − μ_r.
    reference_root : ndarray of shape (d, d)
        Σ_r^{1/2}.
    reference_values : ndarray of shape (d,)
        Eigenvalues of Σ_r.
    device : str or None
        A torch device such as "cuda" or "cpu"; None: NumPy.
    """

    def __init__(
        self,
        features: CovarianceArm,
        gap: Float,
        reference_root: Float,
        reference_values: Float,
        *,
        device: str | None = None,
    ) -> None:
        eigenvalues, axes = features.eigenvalues, features.axes
        turned = reference_root if axes is None else reference_root @ axes
        diagonal = np.diagonal(turned)
        # Both covariances have the same eigenvectors: products with R are then scalings.
        self.commuting = bool((turned == np.diag(diagonal)).all())
        self.reference_trace = float(reference_values.sum())
        self.device = device
        roots = np.sqrt(eigenvalues)
        factor = (diagonal * roots)[:, None] if self.commuting else turned * roots
        parts = (roots, features.along_axes(gap), factor)
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
        squared_gap = (gap * gap).sum(1)
        if not debias:
            s = xp.sqrt(xp.linalg.eigvalsh(gram).clip(min=0.0))
            return DistanceParts(gap=squared_gap, trace=trace, roots=s)
        values, vectors = xp.linalg.eigh(gram)
        s = xp.sqrt(values.clip(min=0.0))
        a = (unit * self._roots)[:, None] * t
        bias, variance = self._second_order(a, gap, trace, s, vectors, n)
        return DistanceParts(gap=squared_gap, trace=trace, roots=s, bias=bias, variance=variance)

    def _second_order(
        self, a: Array, gap: Array, trace: Array, s: Array, vectors: Array, n: int
    ) -> tuple[Array, Array]:
        """Bias of the plug-in distance and its variance, from A, μ̂ − μ_r, Tr Σ̂, s and V."""
        tiny = float(np.finfo(np.float64).tiny)  # two roots that are both zero
        shares = s[:, None, :] / (s[:, :, None] + s[:, None, :] + tiny)
        pairs = s[:, :, None] * shares
        bias = trace / n + (pairs.sum((1, 2)) + s.sum(1) / 2.0) / (2.0 * n)
        moved = (triangle_times(a, vectors) ** 2).sum(1)
        inner = a.mT @ a
        squares = (inner * inner).sum((1, 2))
        along = (gap[:, None, :] @ a)[:, 0]
        linear = (along * along).sum(1)
        second = 2.0 / n**2 * (squares + (pairs * pairs).sum((1, 2)) / 2.0 + (s * s).sum(1) / 8.0)
        columns = (linear, trace, squares, s, moved, second)
        variance = []
        for *ratios, roots, shifts, remainder in zip(*map(host, columns), strict=True):
            moments = dict(zip(("linear", "trace", "square"), ratios, strict=True))
            positive = roots > 0.0
            influence = gaussian_influence_variance(
                **moments, roots=roots[positive], moved=shifts[positive], n=n
            )
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
