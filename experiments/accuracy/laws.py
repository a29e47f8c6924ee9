"""Generated and reference distributions with exact moments, for the studies of accuracy.

Power-law spectra (reference ∝ 1/j; generated: a mixture of two such covariances turned at random,
with another mean) under six shapes; the reference's own distribution ("same") and one a tenth wider
("near"); and two that are a fixed pool of rows drawn with replacement: a synthetic encoder, and a
random network on handwritten digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, ndimage

from genbounds import Moments

Float = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Float]

ARMS = ("gauss", "gamma", "t8", "scales", "rectified", "ten", "same", "near", "network", "digits")


@dataclass(frozen=True, slots=True)
class Law:
    """A generated and a reference distribution: how to draw from either, and their moments."""

    draw: Draw
    mean: Float
    cov: Float
    draw_reference: Draw
    reference_mean: Float
    reference_cov: Float

    def reference(self, m: int | None, rng: np.random.Generator) -> Moments | Float:
        """Exact moments of the reference distribution, or `m` rows of it."""
        if m is None:
            return Moments(self.reference_mean, self.reference_cov)
        return self.draw_reference(m, rng)

    @property
    def truth(self) -> float:
        """Fréchet distance, from singular values: accurate also where it is small."""
        gap = self.mean - self.reference_mean
        cross = linalg.svdvals(root(self.cov) @ root(self.reference_cov)).sum()
        return float(gap @ gap + np.trace(self.cov) + np.trace(self.reference_cov) - 2.0 * cross)


def power_law(d: int, seed: int, exponent: float, trace: float) -> Float:
    """Randomly rotated covariance with spectrum ∝ j^-exponent."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    spectrum = np.arange(1.0, d + 1.0) ** -exponent
    return (q * (spectrum * trace / spectrum.sum())) @ q.T


def root(cov: Float) -> Float:
    values, vectors = linalg.eigh(cov)
    return (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T


@cache
def make_law(arm: str, d: int) -> Law:
    """Distribution of that name in d dimensions."""
    if arm == "network":
        return pooled_law(*_network(d))
    if arm == "digits":
        return pooled_law(*_digits(d))
    if arm in _FACTORS:
        return make_scaled_law("gauss", d, _FACTORS[arm])
    reference = power_law(d, 11, 1.0, 160.0)
    cov = 0.65 * reference + 0.35 * power_law(d, 12, 0.8, 150.0)
    mean, zero = np.full(d, 0.12), np.zeros(d)
    shape = _SHAPES.get(arm, _Gauss)
    # Clusters are what a model does wrong; the other shapes both distributions have.
    real = (_Gauss if shape is _Ten else shape)(zero, reference)
    return Law(*shape(mean, cov).parts, *real.parts)


@cache
def make_scaled_law(arm: str, d: int, factor: float) -> Law:
    """Set the reference of that shape against itself, its covariance times `factor`."""
    reference, zero, shape = power_law(d, 11, 1.0, 160.0), np.zeros(d), _SHAPES.get(arm, _Gauss)
    generated, real = shape(zero, factor * reference), shape(zero, reference)
    return Law(*generated.parts, *real.parts)


class _Gauss:
    """N(mean, cov)."""

    def __init__(self, mean: Float, cov: Float) -> None:
        self.mean, self.cov, self.half = mean, cov, root(cov)

    @property
    def parts(self) -> tuple[Draw, Float, Float]:
        return self.draw, self.mean, self.cov

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        return self.mean + self.factors(n, rng) @ self.half

    def factors(self, n: int, rng: np.random.Generator) -> Float:
        return rng.standard_normal((n, self.mean.size))


class _Gamma(_Gauss):
    """Skewed independent factors."""

    def factors(self, n: int, rng: np.random.Generator) -> Float:
        return rng.gamma(4.0, size=(n, self.mean.size)) / 2.0 - 2.0


class _Student(_Gauss):
    """Elliptical t with 8 degrees of freedom."""

    def factors(self, n: int, rng: np.random.Generator) -> Float:
        return super().factors(n, rng) / np.sqrt(rng.chisquare(8, n) / 6.0)[:, None]


class _Scales(_Gauss):
    """Every row at one of two scales."""

    def factors(self, n: int, rng: np.random.Generator) -> Float:
        scale = np.sqrt(np.where(rng.random(n) < 0.5, 0.4, 1.6))
        return super().factors(n, rng) * scale[:, None]


class _Rectified(_Gauss):
    """max(0, x) for x ~ N(0, cov): what pooled features of a network look like.

    Moments: the arc-cosine kernel (Cho & Saul 2009).
    """

    @property
    def parts(self) -> tuple[Draw, Float, Float]:
        sd = np.sqrt(np.diagonal(self.cov))
        product = np.outer(sd, sd)
        angle = np.arccos(np.clip(self.cov / product, -1.0, 1.0))
        mean = sd / np.sqrt(2.0 * np.pi)
        second = product * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2.0 * np.pi)
        return self.draw, mean, second - np.outer(mean, mean)

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        return np.maximum(self.factors(n, rng) @ self.half, 0.0)


class _Ten(_Gauss):
    """Ten equal Gaussian clusters; half of the variance is between them."""

    def __init__(self, mean: Float, cov: Float) -> None:
        half = root(cov)
        centres = np.random.default_rng(5).standard_normal((10, mean.size)) @ half * np.sqrt(0.5)
        self.centres = centres - centres.mean(axis=0)
        super().__init__(mean, 0.5 * cov)

    @property
    def parts(self) -> tuple[Draw, Float, Float]:
        return self.draw, self.mean, self.cov + self.centres.T @ self.centres / 10.0

    def draw(self, n: int, rng: np.random.Generator) -> Float:
        return self.centres[rng.integers(10, size=n)] + super().draw(n, rng)


_FACTORS = {"same": 1.0, "near": 1.1}
_SHAPES = {
    "gamma": _Gamma,
    "t8": _Student,
    "scales": _Scales,
    "rectified": _Rectified,
    "ten": _Ten,
}


def pooled_law(fake: Float, real: Float) -> Law:
    """Distributions that put equal weight on the rows of two pools."""

    def drawer(pool: Float) -> Draw:
        return lambda n, rng: pool[rng.integers(len(pool), size=n)]

    return Law(
        drawer(fake),
        fake.mean(axis=0),
        np.cov(fake.T, bias=True),
        drawer(real),
        real.mean(axis=0),
        np.cov(real.T, bias=True),
    )


def _network(d: int) -> tuple[Float, Float]:
    """Rectified two-layer random features of ten noisy prototypes, as an encoder makes them."""
    rng = np.random.default_rng(7)
    inputs, hidden, pool = 64, 1024, 20_000
    prototypes = rng.standard_normal((10, inputs))
    one = rng.standard_normal((inputs, hidden)) / np.sqrt(inputs)
    two = rng.standard_normal((hidden, d)) * np.sqrt(2.0 / hidden)
    decay = np.arange(1.0, inputs + 1.0) ** -0.5

    def features(classes: int, noise: float) -> Float:
        x = prototypes[rng.integers(classes, size=pool)]
        x = x + noise * decay * rng.standard_normal((pool, inputs))
        return np.maximum(np.maximum(x @ one, 0.0) @ two, 0.0)

    real, fake = features(10, 1.0), features(8, 1.3)
    return fake, real


def _digits(d: int) -> tuple[Float, Float]:
    """Run the same network on scikit-learn's digits.

    Reference: 30,000 shifted images with a little noise; model: 30,000 blurred, noisier ones of
    eight of the ten classes.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8) / 16.0
    rng = np.random.default_rng(8)
    hidden, pool = 1024, 30_000
    one = rng.standard_normal((64, hidden)) / 8.0
    two = rng.standard_normal((hidden, d)) * np.sqrt(2.0 / hidden)

    def features(classes: int, noise: float, blur: float) -> Float:
        x = images[rng.choice(np.flatnonzero(labels < classes), pool)]
        for axis in (1, 2):
            moved = rng.integers(-1, 2, size=pool)
            for step in (-1, 1):
                x[moved == step] = np.roll(x[moved == step], step, axis=axis)
        x = ndimage.gaussian_filter(x, (0.0, blur, blur))
        x = x + noise * rng.standard_normal(x.shape)
        return np.maximum(np.maximum(x.reshape(pool, 64) @ one, 0.0) @ two, 0.0)

    real, fake = features(10, 0.1, 0.0), features(8, 0.25, 0.6)
    return fake, real
