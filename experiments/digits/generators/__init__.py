"""Generators of plainly different quality, one a file."""

from experiments.digits.generators._base import Generator as Generator
from experiments.digits.generators.diffusion import Diffusion as Diffusion
from experiments.digits.generators.diffusion import DiffusionConfig as DiffusionConfig
from experiments.digits.generators.gan import Gan as Gan
from experiments.digits.generators.gan import GanConfig as GanConfig
from experiments.digits.generators.gaussian import Gaussian as Gaussian
from experiments.digits.generators.gaussian import GaussianConfig as GaussianConfig
from experiments.digits.generators.kde import Kernel as Kernel
from experiments.digits.generators.kde import KernelConfig as KernelConfig
from experiments.digits.generators.mixture import Mixture as Mixture
from experiments.digits.generators.mixture import MixtureConfig as MixtureConfig
from experiments.digits.generators.vae import Vae as Vae
from experiments.digits.generators.vae import VaeConfig as VaeConfig
