"""A kernel density estimate: a training image plus Gaussian noise of the likeliest width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logsumexp

from experiments.digits.data import PIXELS, Images, Labels
from experiments.digits.generators._base import Codes, Generator, choose, flat
from experiments.digits.networks import Array, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelConfig:
    """Widths to choose among, in units of the pixel range."""

    bandwidths: tuple[float, ...] = tuple(step / 100 for step in range(5, 26))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Generator):
    """Training pixels (n, 64) and the standard deviation of the noise, an array of shape ()."""

    centres: Array
    bandwidth: Array

    @property
    def latent(self) -> int:
        """One number chooses the training image, one a pixel is noise."""
        return 1 + PIXELS

    def decode(self, codes: Codes) -> Array:
        """Choose a training image and add noise."""
        chosen = choose(codes[:, 0], np.ones(len(self.centres)))
        return self.centres[chosen] + self.bandwidth * codes[:, 1:]

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: KernelConfig,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Choose the width by the likelihood of each image given all the others."""
        pixels = flat(images)
        likelihood = [_left_out(pixels, width) for width in config.bandwidths]
        report(1.0)
        best = config.bandwidths[int(np.argmax(likelihood))]
        return cls(centres=pixels, bandwidth=np.asarray(best))

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], config: KernelConfig) -> Self:
        """Rebuild."""
        return cls(**arrays)

    def arrays(self) -> dict[str, Array]:
        """Centres and width."""
        return {"centres": self.centres, "bandwidth": self.bandwidth}


def _left_out(pixels: Array, width: float) -> float:
    """Return the mean log-likelihood of a row under the estimate from the other rows."""
    squares = (pixels**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * pixels @ pixels.T
    np.fill_diagonal(distances, np.inf)
    spread = pixels.shape[1] * np.log(width)
    return float(logsumexp(-distances / (2.0 * width**2), axis=1).mean() - spread)
