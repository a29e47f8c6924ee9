"""The encoder: a small convolutional classifier with 64 features and 10 posteriors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from experiments.digits import networks
from experiments.digits.data import CLASSES, SIDE, Images, Labels
from genbounds.validation import Float, InputError, as_numpy, check_count

FEATURES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Size and training of the classifier."""

    channels: int = 24
    steps: int = 1_000
    batch: int = 64
    learning_rate: float = 6e-3
    weight_decay: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A trained classifier.

    Attributes
    ----------
    body : torch module
        Images (n, 1, 8, 8) to features (n, 64).
    head : torch module
        Features to the logits of the ten classes.

    Notes
    -----
    The features are the activations before the last layer, as Inception's are. Theirs is a leaky
    rectifier: after a plain one, or a GELU, a feature can be pushed to zero for every image, get
    no gradient and stay there, and then every covariance matrix is singular.
    """

    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch")

    body: Any
    head: Any

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: EncoderConfig,
        *,
        rng: np.random.Generator,
        report: networks.Report,
    ) -> Self:
        """Train on labelled images, each seen slightly turned, sheared, scaled and shifted."""
        import torch
        from torch import nn

        inputs, targets = torch.from_numpy(images.copy())[:, None], torch.from_numpy(labels.copy())
        with networks.seeded_training(rng):
            body, head = _network(config)
            classifier = nn.Sequential(body, head)
            optimiser = torch.optim.AdamW(
                classifier.parameters(),
                lr=config.learning_rate,
                weight_decay=config.weight_decay,
                fused=True,
            )
            schedule = torch.optim.lr_scheduler.OneCycleLR(
                optimiser, config.learning_rate, total_steps=config.steps
            )
            for step in range(config.steps):
                rows = rng.integers(len(images), size=config.batch)
                logits = classifier(_distorted(inputs[rows], rng))
                loss = nn.functional.cross_entropy(logits, targets[rows])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                report((step + 1) / config.steps)
        return cls.restore(networks.weights(classifier), config)

    @classmethod
    def restore(cls, arrays: Mapping[str, networks.Array], config: EncoderConfig) -> Self:
        """Rebuild a trained encoder from its weights."""
        from torch import nn

        body, head = networks.with_weights(lambda: nn.Sequential(*_network(config)), arrays)
        return cls(body=body, head=head)

    def arrays(self) -> dict[str, networks.Array]:
        """Weights, for the cache."""
        from torch import nn

        return networks.weights(nn.Sequential(self.body, self.head))

    def features(self, images: Any) -> NDArray[np.float32]:
        """Return features of shape (n, 64), float32, of images (n, 8, 8) in [0, 1]."""
        batch = _check_images(images)
        return networks.apply(lambda x: self.body(x[:, None]), batch)

    def posteriors(self, images: Any) -> Float:
        """Return class probabilities of shape (n, 10), float64, rows summing to one."""
        return self.posteriors_of_features(self.features(images))

    def posteriors_of_features(self, features: NDArray[np.float32]) -> Float:
        """Return the class probabilities that belong to features already computed."""
        return networks.apply(lambda x: self.head(x).double().softmax(dim=1), features)

    def accuracy(self, images: Any, labels: Labels) -> float:
        """Return the share of images whose most probable class is their label."""
        return float(np.mean(self.posteriors(images).argmax(axis=1) == labels))


def _network(config: EncoderConfig) -> tuple[Any, Any]:
    from torch import nn

    few = check_count("channels", config.channels)
    many = 2 * few
    body = nn.Sequential(
        nn.Conv2d(1, few, 3, padding=1),
        nn.GELU(),
        nn.Conv2d(few, many, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Conv2d(many, many, 3, padding=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(many * (SIDE // 2) ** 2, FEATURES),
        nn.LeakyReLU(0.1),
    )
    return body, nn.Linear(FEATURES, CLASSES)


def _distorted(images: Any, rng: np.random.Generator) -> Any:
    """Turn by up to 11 degrees, scale by up to 15 %, shear a little, shift by up to one pixel."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    n = len(images)
    angle, shear = rng.uniform(-0.2, 0.2, n), rng.uniform(-0.15, 0.15, n)
    scale = rng.uniform(0.85, 1.15, n)
    maps = np.zeros((n, 2, 3), dtype=np.float32)
    maps[:, 0, 0] = maps[:, 1, 1] = scale * np.cos(angle)
    maps[:, 0, 1] = shear - scale * np.sin(angle)
    maps[:, 1, 0] = scale * np.sin(angle)
    maps[:, :, 2] = rng.uniform(-0.25, 0.25, (n, 2))
    grid = affine_grid(torch.from_numpy(maps), [n, 1, SIDE, SIDE], align_corners=False)
    return grid_sample(images, grid, align_corners=False)


def _check_images(images: Any) -> Images:
    array = as_numpy("images", images)
    if array.ndim != 3 or array.shape[1:] != (SIDE, SIDE) or len(array) == 0:
        raise InputError(
            f"`images` must have shape (n, {SIDE}, {SIDE}) with n >= 1; got shape {array.shape}."
        )
    if array.dtype.kind not in "fiub":
        raise InputError(f"`images` must hold real numbers; got dtype {array.dtype}.")
    lowest, highest = float(array.min()), float(array.max())
    if not (lowest >= 0.0 and highest <= 1.0):
        raise InputError(
            f"`images` must lie in [0, 1]; got values from {lowest:g} to {highest:g}. "
            "Divide raw digits by 16."
        )
    return array.astype(np.float32, copy=False)
