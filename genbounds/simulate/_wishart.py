"""Sufficient statistics of white Gaussian samples, drawn at a cost that does not grow with n.

The mean of n standard normal rows has covariance I/n and, independent of it, their scatter about
it is T Tᵀ with T Bartlett's lower triangle: Tᵢⱼ ~ N(0, 1) below the diagonal, Tⱼⱼ² ~ χ²(n−1−j) on
it; a trapezoid of n − 1 columns where n − 1 < d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from genbounds.validation import Float

# A NumPy array or a torch tensor.
Array = Any


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
