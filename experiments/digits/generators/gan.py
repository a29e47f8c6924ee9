"""A generative adversarial network, and the same network with its latent variance turned down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from experiments.digits import networks
from experiments.digits.data import PIXELS, Images, Labels
from experiments.digits.generators._base import Codes, Generator
from experiments.digits.networks import Array, Report
from genbounds import sobol_cache
from genbounds.validation import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class GanConfig:
    """Size and training; the number of steps decides how good it gets.

    `noise` blurs what the discriminator sees, `penalty` weighs its squared gradient, `decay` is
    the memory of the averaged generator that is kept. `sampler` says where the latents of training
    come from: "normal", or a shuffled cache of Sobol points, "inverse" or "box-muller".
    """

    latent: int = 16
    width: int = 256
    steps: int = 4_000
    batch: int = 64
    learning_rate: float = 2e-3
    noise: float = 0.05
    penalty: float = 1.0
    decay: float = 0.998
    sampler: str = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gan(Generator):
    """A trained generator network.

    Attributes
    ----------
    network : torch module
    config : GanConfig
    truncation : float
        Factor on the latent vector, in (0, 1]. One is the model as it was trained; the smaller,
        the less its samples vary, until all are one image.
    """

    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch")

    network: Any
    config: GanConfig
    truncation: float = 1.0

    @property
    def latent(self) -> int:
        """Dimensions of the latent vector."""
        return self.config.latent

    def decode(self, codes: Codes) -> Array:
        """Shrink the latent vector towards its mean, then generate."""
        return networks.apply(self.network, np.float32(self.truncation) * codes)

    def truncated(self, truncation: float) -> Self:
        """Return this model with its latent standard deviation multiplied by `truncation`."""
        if not 0.0 < truncation <= 1.0:
            raise InputError(f"`truncation` must be a real number in (0, 1]; got {truncation!r}.")
        return replace(self, truncation=truncation)

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: GanConfig,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Train against a discriminator that compares a real with a generated image.

        Notes
        -----
        The loss is that of relativistic pairing, softplus(D(fake) - D(real)) for the
        discriminator and the mirror image for the generator, with the squared gradient of D
        penalised on both sides (Huang et al. 2024, arXiv 2501.05441).
        """
        import torch
        from torch.nn.functional import softplus

        def noisy(batch: Any) -> Any:
            return batch + config.noise * networks.normal(rng, *batch.shape)

        latents = _sampler(config, rng)

        def generated() -> Any:
            return noisy(generator(latents()))

        pixels = torch.from_numpy(images.reshape(-1, PIXELS).copy())
        with networks.seeded_training(rng):
            generator = _generator(config)
            discriminator = networks.perceptron(PIXELS, config.width, config.width, 1)
            average = deepcopy(generator)
            optimisers = [
                torch.optim.Adam(
                    network.parameters(), lr=config.learning_rate, betas=(0.0, 0.99), fused=True
                )
                for network in (generator, discriminator)
            ]
            schedules = [
                torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, config.steps)
                for optimiser in optimisers
            ]
            for step in range(config.steps):
                real = noisy(pixels[rng.integers(len(pixels), size=config.batch)])
                with torch.no_grad():
                    fake = generated()
                both = torch.cat([real, fake]).requires_grad_()
                verdicts = discriminator(both)
                (slope,) = torch.autograd.grad(verdicts.sum(), both, create_graph=True)
                on_real, on_fake = verdicts.chunk(2)
                loss = softplus(on_fake - on_real).mean()
                loss = loss + config.penalty * slope.square().sum(dim=1).mean()
                optimisers[1].zero_grad()
                loss.backward()
                optimisers[1].step()

                with torch.no_grad():
                    on_real = discriminator(real)
                loss = softplus(on_real - discriminator(generated())).mean()
                optimisers[0].zero_grad()
                loss.backward()
                optimisers[0].step()

                for schedule in schedules:
                    schedule.step()
                networks.follow(average, generator, decay=config.decay)
                report((step + 1) / config.steps)
        return cls.restore(networks.weights(average), config)

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], config: GanConfig) -> Self:
        """Rebuild."""
        return cls(network=networks.with_weights(lambda: _generator(config), arrays), config=config)

    def arrays(self) -> dict[str, Array]:
        """Weights of the averaged generator."""
        return networks.weights(self.network)


def _sampler(config: GanConfig, rng: np.random.Generator) -> Callable[[], Any]:
    """Return what draws a batch of latents for training."""
    if config.sampler == "normal":
        return lambda: networks.normal(rng, config.batch, config.latent)
    import torch

    # As many points as training takes, so that hardly one comes twice.
    size = 1 << (2 * config.steps * config.batch - 1).bit_length()
    cache = sobol_cache(config.latent, size=size, method=config.sampler, rng=rng)
    return lambda: torch.from_numpy(np.asarray(cache.draw(config.batch), dtype=np.float32))


def _generator(config: GanConfig) -> Any:
    from torch import nn

    layers = networks.perceptron(config.latent, config.width, config.width, PIXELS)
    return nn.Sequential(*layers, nn.Sigmoid())
