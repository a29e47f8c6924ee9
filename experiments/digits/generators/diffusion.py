"""A diffusion model that knows the classes, sampled in a few deterministic steps."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from experiments.digits import networks
from experiments.digits.data import CLASSES, PIXELS, Images, Labels
from experiments.digits.generators._base import Codes, Generator, choose
from experiments.digits.networks import Array, Report

# Standard deviation of a pixel in [-1, 1] about its own mean: the data scale that the
# preconditioning is told.
_SCALE = 0.5
_WAVES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionConfig:
    """Size, training, and the steps of the sampler.

    Training noise has a log-normal standard deviation with parameters `log_mean` and
    `log_deviation`; sampling goes from `highest` to `lowest` noise.
    """

    width: int = 256
    steps: int = 3_000
    batch: int = 128
    learning_rate: float = 4e-3
    log_mean: float = -0.5
    log_deviation: float = 0.7
    decay: float = 0.999
    sampling_steps: int = 8
    highest: float = 8.0
    lowest: float = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Diffusion(Generator):
    """A trained denoiser, the mean of the training pixels (64,), and the shares of the classes."""

    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch")

    network: Any
    mean: Array
    shares: Array
    config: DiffusionConfig

    @property
    def latent(self) -> int:
        """One number chooses the class, one a pixel is the noise that sampling starts from."""
        return 1 + PIXELS

    def decode(self, codes: Codes) -> Array:
        """Follow the probability flow from noise to image.

        Notes
        -----
        Noise levels are spaced as in Karras et al. (2022, arXiv 2206.00364, eq. 5); the steps are
        those of the second-order multistep solver DPM-Solver++(2M) of Lu et al. (2022,
        arXiv 2211.01095), in which the signal scale is one.
        """
        one_hot = np.eye(CLASSES, dtype=np.float32)[choose(codes[:, 0], self.shares)]
        return (networks.apply(self._sample, codes[:, 1:], one_hot) + self.mean + 1.0) / 2.0

    def _sample(self, noise: Any, one_hot: Any) -> Any:
        import torch

        config = self.config
        ramp = np.linspace(
            config.highest ** (1 / 7), config.lowest ** (1 / 7), config.sampling_steps
        )
        levels = [float(level) for level in ramp**7]
        state, previous, last_step = levels[0] * noise, None, 0.0
        for level, following in zip(levels, [*levels[1:], 0.0], strict=True):
            clean = _denoise(self.network, state, torch.full((len(state), 1), level), one_hot)
            if following == 0.0:
                return clean
            step = float(np.log(level / following))
            target = clean
            if previous is not None:
                target = clean + (clean - previous) * (step / last_step / 2)
            ratio = following / level
            state = ratio * state + (1.0 - ratio) * target
            previous, last_step = clean, step
        return state

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: DiffusionConfig,
        *,
        rng: np.random.Generator,
        report: Report,
    ) -> Self:
        """Learn to remove noise of every strength (Karras et al. 2022, table 1)."""
        import torch

        pixels = 2.0 * images.reshape(-1, PIXELS) - 1.0
        mean = pixels.mean(axis=0)
        data = torch.from_numpy(pixels - mean)
        one_hot = torch.from_numpy(np.eye(CLASSES, dtype=np.float32)[labels])
        with networks.seeded_training(rng):
            network = _network(config)
            average = deepcopy(network)
            optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
            schedule = torch.optim.lr_scheduler.OneCycleLR(
                optimiser, config.learning_rate, total_steps=config.steps
            )
            for step in range(config.steps):
                rows = rng.integers(len(data), size=config.batch)
                level = torch.exp(
                    config.log_mean + config.log_deviation * networks.normal(rng, config.batch, 1)
                )
                noisy = data[rows] + level * networks.normal(rng, config.batch, PIXELS)
                error = _denoise(network, noisy, level, one_hot[rows]) - data[rows]
                weight = (level**2 + _SCALE**2) / (level * _SCALE) ** 2
                loss = (weight * error**2).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                networks.follow(average, network, decay=config.decay)
                report((step + 1) / config.steps)
        shares = np.bincount(labels, minlength=CLASSES) / len(labels)
        return cls.restore({**networks.weights(average), "mean": mean, "shares": shares}, config)

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], config: DiffusionConfig) -> Self:
        """Rebuild."""
        parameters = dict(arrays)
        mean, shares = parameters.pop("mean"), parameters.pop("shares")
        network = networks.with_weights(lambda: _network(config), parameters)
        return cls(network=network, mean=mean, shares=shares, config=config)

    def arrays(self) -> dict[str, Array]:
        """Weights of the averaged denoiser, mean and shares."""
        return {**networks.weights(self.network), "mean": self.mean, "shares": self.shares}


def _network(config: DiffusionConfig) -> Any:
    inputs = PIXELS + 2 * _WAVES + CLASSES
    return networks.perceptron(inputs, config.width, config.width, config.width, PIXELS)


def _denoise(network: Any, noisy: Any, level: Any, one_hot: Any) -> Any:
    """Estimate the clean image: preconditioned so that the network's task has unit scale."""
    import torch

    total = level**2 + _SCALE**2
    phases = level.log() / 2 * torch.logspace(-2, 3, _WAVES, base=2.0)
    inputs = torch.cat([noisy / total.sqrt(), phases.sin(), phases.cos(), one_hot], dim=1)
    return noisy * (_SCALE**2 / total) + network(inputs) * (level * _SCALE / total.sqrt())
