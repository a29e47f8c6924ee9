"""Train everything once, keep it, and put the arms together."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from experiments.digits import generators as models
from experiments.digits import networks
from experiments.digits.arm import DigitsArm, Output, encode
from experiments.digits.cache import Entry
from experiments.digits.data import Images, Labels, Split, SplitConfig, load_split
from experiments.digits.encoder import Encoder, EncoderConfig
from experiments.digits.progress import Progress, silent
from genbounds.validation import InputError, check_count

DEFAULT_CACHE = Path(".cache") / "digits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that decides what the trained models are.

    Attributes
    ----------
    truncations : tuple of float
        Factors on the GAN's latent vector, each in (0, 1), one more arm for each: variance-
        controlled generators, as the truncated StyleGAN arms of the papers.
    seed : int
        Of all training; the split has its own.
    """

    split: SplitConfig = field(default_factory=SplitConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    gaussian: models.GaussianConfig = field(default_factory=models.GaussianConfig)
    mixture: models.MixtureConfig = field(default_factory=models.MixtureConfig)
    kde: models.KernelConfig = field(default_factory=models.KernelConfig)
    vae: models.VaeConfig = field(default_factory=models.VaeConfig)
    gan: models.GanConfig = field(default_factory=models.GanConfig)
    diffusion: models.DiffusionConfig = field(default_factory=models.DiffusionConfig)
    # A density estimate too narrow to be one. A grey level is 1/16: the noise cannot be seen.
    memoriser: models.KernelConfig = field(
        default_factory=lambda: models.KernelConfig(bandwidths=(0.02,))
    )
    truncations: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """Real images, the encoder and the trained generators.

    Attributes
    ----------
    split : Split
    encoder : Encoder
    generators : dict of str to Generator
        In the order of `line_up`.
    """

    split: Split
    encoder: Encoder
    generators: dict[str, models.Generator]

    def reference(self, output: Output = "features") -> NDArray[Any]:
        """Encode the held-out real images: features (897, 64) or posteriors (897, 10)."""
        return encode(self.encoder, self.split.reference_images, output)

    def arms(self, output: Output = "features") -> dict[str, DigitsArm]:
        """Return one arm a generator."""
        return {
            name: DigitsArm(
                name=name,
                description=_describe(name, generator),
                generator=generator,
                encoder=self.encoder,
                control=name == "memoriser",
            ).with_output(output)
            for name, generator in self.generators.items()
        }


_DESCRIPTIONS = {
    "gaussian": "one Gaussian for all pixels",
    "mixture": "Gaussian mixture of leading principal components",
    "kde": "kernel density estimate, likeliest bandwidth",
    "vae": "variational autoencoder",
    "gan": "generative adversarial network",
    "diffusion": "class-conditional diffusion model",
    "memoriser": "control: training images with invisible noise",
}


def _describe(name: str, generator: models.Generator) -> str:
    if isinstance(generator, models.Gan) and generator.truncation < 1.0:
        return f"the GAN with its latent standard deviation times {generator.truncation:g}"
    return _DESCRIPTIONS[name]


class _Model(Protocol):
    """What the encoder and the generators have in common."""

    packages: ClassVar[tuple[str, ...]]

    @classmethod
    def fit(
        cls,
        images: Images,
        labels: Labels,
        config: Any,
        *,
        rng: np.random.Generator,
        report: networks.Report,
    ) -> Self: ...

    @classmethod
    def restore(cls, arrays: Mapping[str, networks.Array], config: Any) -> Self: ...

    def arrays(self) -> dict[str, networks.Array]: ...


_M = TypeVar("_M", bound=_Model)
_GENERATORS: dict[str, type[models.Generator]] = {
    "gaussian": models.Gaussian,
    "mixture": models.Mixture,
    "kde": models.Kernel,
    "vae": models.Vae,
    "gan": models.Gan,
    "diffusion": models.Diffusion,
    "memoriser": models.Kernel,
}


def prepare(
    cache_dir: str | os.PathLike[str] = DEFAULT_CACHE,
    *,
    config: Config | None = None,
    progress: Progress = silent,
) -> Digits:
    """Load the digits and every model, training and keeping those that are not in the cache.

    Parameters
    ----------
    cache_dir : path-like
        One ``.safetensors`` file a model. Its name carries a digest of the model's configuration
        and source code, of its training images and of the versions of the packages that decide
        the outcome, so that a file is never used for anything else. A damaged file is trained
        again, with a warning.
    config : Config, optional
    progress : callable
        Told ``(name, share done)`` as each model trains; see `experiments.digits.progress.bars`.

    Returns
    -------
    Digits

    Raises
    ------
    InputError
        If the folder cannot be written, or the configuration cannot be trained.

    Notes
    -----
    Given the same machine and packages, training ends in the same weights to the last bit,
    whatever the number of threads; another processor may round differently.
    """
    config = config or Config()
    for truncation in config.truncations:
        if not 0.0 < truncation < 1.0:
            raise InputError(f"`truncations` must be real numbers in (0, 1); got {truncation!r}.")
    seed = check_count("seed", config.seed, minimum=0)
    split = load_split(config.split)
    load = partial(_load, folder=Path(cache_dir), seed=seed, progress=progress)
    encoder = load(Encoder, "encoder", config.encoder, split.encoder_images, split.encoder_labels)
    generators: dict[str, models.Generator] = {}
    for name, kind in _GENERATORS.items():
        model = load(
            kind, name, getattr(config, name), split.generator_images, split.generator_labels
        )
        if isinstance(model, models.Gan):
            for truncation in sorted(config.truncations):
                generators[f"{name}-{truncation:g}"] = model.truncated(truncation)
        generators[name] = model
    return Digits(split=split, encoder=encoder, generators=generators)


def prepare_gan(
    cache_dir: str | os.PathLike[str] = DEFAULT_CACHE,
    *,
    config: Config,
    progress: Progress = silent,
) -> models.Gan:
    """Return the GAN of a configuration alone, trained and kept as `prepare` does."""
    split = load_split(config.split)
    return _load(
        models.Gan,
        "gan",
        config.gan,
        split.generator_images,
        split.generator_labels,
        folder=Path(cache_dir),
        seed=check_count("seed", config.seed, minimum=0),
        progress=progress,
    )


def line_up(
    cache_dir: str | os.PathLike[str] = DEFAULT_CACHE,
    *,
    config: Config | None = None,
    output: Output = "features",
    progress: Progress = silent,
) -> dict[str, DigitsArm]:
    """Return all arms by name; see `prepare`, which also gives the reference.

    The memoriser is among them, marked ``control=True``.
    """
    return prepare(cache_dir, config=config, progress=progress).arms(output)


def _load(
    kind: type[_M],
    name: str,
    config: Any,
    images: Images,
    labels: Labels,
    *,
    folder: Path,
    seed: int,
    progress: Progress,
) -> _M:
    """Load one model, or train it."""
    recipe = {
        "config": asdict(config),
        "seed": seed,
        "source": [inspect.getsource(sys.modules[kind.__module__]), inspect.getsource(networks)],
        "data": hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest(),
        "packages": {package: version(package) for package in kind.packages},
    }

    def train() -> dict[str, networks.Array]:
        # A stream of its own, so that no model depends on which others are trained.
        entropy = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
        rng = np.random.default_rng([seed, entropy])
        return kind.fit(images, labels, config, rng=rng, report=partial(progress, name)).arrays()

    return kind.restore(Entry(folder=folder, name=name, recipe=recipe).load_or(train), config)
