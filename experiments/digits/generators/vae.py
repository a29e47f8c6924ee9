"""A variational autoencoder with fully connected layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from experiments.digits import networks
from experiments.digits.data import PIXELS, Images, Labels
from experiments.digits.generators._base import Codes, Generator
from experiments.digits.networks import Array, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class VaeConfig:
    """Size and training.

    `noise` is the standard deviation that the model assumes for a pixel given its code: the
    larger, the more the prior counts against the reconstruction.
    """

    latent: int = 12
    width: int = 256
    steps: int = 4_000
    batch: int = 128
    learning_rate: float = 2e-3
    noise: float = 0.18
    jitter: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Vae(Generator):
    """The decoder: a sample is the mean image of a code from the prior, hence a little blurred."""

    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch")

    decoder: Any
    config: VaeConfig

    @property
    def latent(self) -> int:
        """Dimensions of the code."""
        return self.config.latent

    def decode(self, codes: Codes) -> Array:
        """Decode."""
        return networks.apply(self.decoder, codes)

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: VaeConfig,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Maximise the evidence lower bound."""
        import torch

        pixels = torch.from_numpy(images.reshape(-1, PIXELS).copy())
        with networks.seeded_training(rng):
            encoder = networks.perceptron(PIXELS, config.width, config.width, 2 * config.latent)
            decoder = _decoder(config)
            optimiser = torch.optim.Adam(
                [*encoder.parameters(), *decoder.parameters()], lr=config.learning_rate, fused=True
            )
            schedule = torch.optim.lr_scheduler.OneCycleLR(
                optimiser, config.learning_rate, total_steps=config.steps
            )
            for step in range(config.steps):
                real = pixels[rng.integers(len(pixels), size=config.batch)]
                # The encoder sees noisy images, or it would learn the few training codes by heart.
                seen = real + config.jitter * networks.normal(rng, *real.shape)
                mean, log_variance = encoder(seen).chunk(2, dim=1)
                deviation = torch.exp(log_variance / 2)
                code = mean + deviation * networks.normal(rng, *mean.shape)
                error = (decoder(code) - real).square().sum(dim=1) / (2 * config.noise**2)
                divergence = (mean**2 + deviation**2 - 1 - log_variance).sum(dim=1) / 2
                loss = (error + divergence).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                report((step + 1) / config.steps)
        return cls.restore(networks.weights(decoder), config)

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], config: VaeConfig) -> Self:
        """Rebuild."""
        return cls(decoder=networks.with_weights(lambda: _decoder(config), arrays), config=config)

    def arrays(self) -> dict[str, Array]:
        """Weights of the decoder."""
        return networks.weights(self.decoder)


def _decoder(config: VaeConfig) -> Any:
    from torch import nn

    layers = networks.perceptron(config.latent, config.width, config.width, PIXELS)
    return nn.Sequential(*layers, nn.Sigmoid())
