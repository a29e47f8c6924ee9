"""One Gaussian for all pixels: the right mean and covariance of pixels, and plainly bad digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.digits.data import Images, Labels
from experiments.digits.generators._base import Codes, Generator, flat
from experiments.digits.networks import Array, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianConfig:
    """Nothing to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Generator):
    """Mean (64,) and a square root (64, 64) of the covariance of the training pixels."""

    mean: Array
    root: Array

    @property
    def latent(self) -> int:
        """One number a pixel."""
        return len(self.mean)

    def decode(self, codes: Codes) -> Array:
        """Correlate and shift."""
        return self.mean + codes @ self.root.T

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: GaussianConfig,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Take the sample mean and covariance."""
        pixels = flat(images)
        # Some pixels are zero in every image: the matrix is singular, its eigenvectors are not.
        values, vectors = np.linalg.eigh(np.cov(pixels, rowvar=False))
        report(1.0)
        return cls(mean=pixels.mean(axis=0), root=vectors * np.sqrt(np.clip(values, 0.0, None)))

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], config: GaussianConfig) -> Self:
        """Rebuild."""
        return cls(**arrays)

    def arrays(self) -> dict[str, Array]:
        """Mean and root."""
        return {"mean": self.mean, "root": self.root}
