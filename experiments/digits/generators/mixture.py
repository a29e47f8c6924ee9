"""A Gaussian mixture in the space of the leading principal components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from experiments.digits.data import Images, Labels
from experiments.digits.generators._base import Codes, Generator, choose, flat
from experiments.digits.networks import Array, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureConfig:
    """Size of the mixture; `ridge` is added to the diagonal of each covariance matrix."""

    dimensions: int = 24
    components: int = 20
    ridge: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture(Generator):
    """Shares (k,), centres (k, p) and covariance roots (k, p, p) of the p leading components.

    `origin` (64,) and `axes` (p, 64) lead from there back to pixels.
    """

    packages: ClassVar[tuple[str, ...]] = ("numpy", "scikit-learn")

    shares: Array
    centres: Array
    roots: Array
    origin: Array
    axes: Array

    @property
    def latent(self) -> int:
        """One number chooses the component, the others the place in it."""
        return 1 + len(self.axes)

    def decode(self, codes: Codes) -> Array:
        """Choose a component, draw from it, go back to pixels."""
        chosen = choose(codes[:, 0], self.shares)
        places = np.empty((len(codes), len(self.axes)))
        for component in np.unique(chosen):
            rows = chosen == component
            places[rows] = self.centres[component] + codes[rows, 1:] @ self.roots[component].T
        return self.origin + places @ self.axes

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: MixtureConfig,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Fit by expectation-maximisation."""
        from sklearn.mixture import GaussianMixture
        from threadpoolctl import threadpool_limits

        pixels = flat(images)
        origin = pixels.mean(axis=0)
        with threadpool_limits(limits=1):  # one order of summation, whatever the machine
            axes = np.linalg.svd(pixels - origin, full_matrices=False)[2][: config.dimensions]
            mixture = GaussianMixture(
                config.components,
                reg_covar=config.ridge,
                max_iter=500,
                random_state=int(rng.integers(2**32)),
            ).fit((pixels - origin) @ axes.T)
        report(1.0)
        return cls(
            shares=mixture.weights_,
            centres=mixture.means_,
            roots=np.linalg.cholesky(mixture.covariances_),
            origin=origin,
            axes=axes,
        )

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], config: MixtureConfig) -> Self:
        """Rebuild."""
        return cls(**arrays)

    def arrays(self) -> dict[str, Array]:
        """Everything."""
        names = ("shares", "centres", "roots", "origin", "axes")
        return {name: getattr(self, name) for name in names}
