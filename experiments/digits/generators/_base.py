"""What a generator is here: a fixed map from standard normal numbers to images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from experiments.digits.data import PIXELS, SIDE, Images, Labels
from experiments.digits.networks import BLOCK, Array, Report
from genbounds.validation import check_count

Codes = NDArray[np.float32]


class Generator(ABC):
    """A trained generative model of 8 x 8 images.

    Every image is a function of its own row of standard normal numbers, drawn by NumPy. So
    samples are independent, the same `rng` gives the same images, and ten images drawn at once
    are those drawn one after the other.

    Attributes
    ----------
    packages : tuple of str
        Whose versions decide what training ends in; part of the cache key.
    """

    __slots__ = ()
    packages: ClassVar[tuple[str, ...]] = ("numpy",)

    @property
    @abstractmethod
    def latent(self) -> int:
        """Standard normal numbers that one image takes."""

    @abstractmethod
    def decode(self, codes: Codes) -> Array:
        """Turn codes (n, latent) into pixels (n, 64), not yet clipped to [0, 1]."""

    @classmethod
    @abstractmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: Any,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Train on real images (n, 8, 8) in [0, 1]."""

    @classmethod
    @abstractmethod
    def restore(cls, arrays: Mapping[str, Array], config: Any) -> Self:
        """Rebuild a trained model from what `arrays` returned."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Everything training found, as named arrays."""

    def sample(self, n: int, rng: np.random.Generator) -> Images:
        """Draw new images.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
            Advanced by ``n * latent`` single-precision normal numbers.

        Returns
        -------
        ndarray of shape (n, 8, 8)
            float32 in [0, 1].
        """
        n = check_count("n", n)
        pixels = np.empty((n, PIXELS), dtype=np.float32)
        for start in range(0, n, BLOCK):
            rows = pixels[start : start + BLOCK]
            codes = rng.standard_normal((len(rows), self.latent), dtype=np.float32)
            np.clip(self.decode(codes), 0.0, 1.0, out=rows, casting="same_kind")
        return pixels.reshape(n, SIDE, SIDE)


def choose(codes: Array, shares: Array) -> NDArray[np.intp]:
    """Turn standard normal numbers (n,) into indices that have probabilities `shares`."""
    thresholds = np.cumsum(shares, dtype=np.float64)
    uniform = ndtr(np.asarray(codes, dtype=np.float64)) * thresholds[-1]
    chosen: NDArray[np.intp] = np.searchsorted(thresholds, uniform, side="right")
    return np.minimum(chosen, len(shares) - 1)


def flat(images: Images) -> NDArray[np.float64]:
    """Return images as rows of pixels in double precision."""
    return images.reshape(len(images), PIXELS).astype(np.float64)
