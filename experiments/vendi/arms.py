"""Laws whose kernel spectrum is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class GaussianRbf:
    """Rows N(0, diag(scales²)) under the kernel exp(-‖x-y‖²/(2σ²)).

    In one dimension with a = 1/(4s²), b = 1/(2σ²), c = √(a² + 2ab), A = a + b + c the eigenvalues
    are √(2a/A) (b/A)^k, k = 0, 1, … (Zhu, Williams, Rohwer & Morciniec 1998); in more, all their
    products.
    """

    scales: tuple[float, ...]
    bandwidth: float

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows."""
        return rng.standard_normal((n, len(self.scales))) * np.array(self.scales)

    @cached_property
    def spectrum(self) -> np.ndarray:
        """All eigenvalues above 1e-14, largest first."""
        values = np.ones(1)
        for scale in self.scales:
            a, b = 1.0 / (4.0 * scale**2), 1.0 / (2.0 * self.bandwidth**2)
            total = a + b + np.sqrt(a * a + 2.0 * a * b)
            ratio = b / total
            powers = np.arange(int(np.ceil(-34.0 / np.log(ratio))) + 1)
            values = np.outer(values, np.sqrt(2.0 * a / total) * ratio**powers).ravel()
            values = values[values > 1e-14]
        return np.sort(values)[::-1]


@dataclass(frozen=True)
class SphereClusters:
    """Clusters in orthogonal subspaces, each uniform on its own sphere, under the cosine kernel.

    A cluster of probability p and dimension m has m eigenvalues p/m; with m = 1 it is a pair of
    opposite points, which the kernel squared cannot tell from one.
    """

    probabilities: tuple[float, ...]
    dimensions: tuple[int, ...]

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows."""
        label = rng.choice(len(self.probabilities), n, p=self.probabilities)
        owner = np.repeat(np.arange(len(self.dimensions)), self.dimensions)
        rows = np.where(owner == label[:, None], rng.standard_normal((n, owner.size)), 0.0)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    @cached_property
    def spectrum(self) -> np.ndarray:
        """All eigenvalues, largest first."""
        values = np.repeat(
            np.array(self.probabilities) / np.array(self.dimensions), self.dimensions
        )
        return np.sort(values)[::-1]


Arm = GaussianRbf | SphereClusters


def truth(spectrum: np.ndarray, order: float, kept: int | None = None) -> float:
    """Vendi score of a spectrum; truncated to `kept` and lifted as V24, Definition 2."""
    p = spectrum
    if kept is not None:
        p = np.pad(p[:kept], (0, max(kept - p.size, 0)))
        p = p + (1.0 - p.sum()) / kept
    p = p[p > 0.0]
    if np.isinf(order):
        return float(1.0 / p.max())
    if order == 1.0:
        return float(np.exp(-(p * np.log(p)).sum()))
    return float((p**order).sum() ** (1.0 / (1.0 - order)))
