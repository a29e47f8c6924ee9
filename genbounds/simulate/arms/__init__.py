"""Distributions whose truth is known, a family a file.

Each family draws, states its facts, and owns its exact tails, its list of outcomes and its tilts.
"""

from __future__ import annotations

from genbounds.simulate.arms._approximations import NystromArm, VendiArm
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm, SphereArm
from genbounds.simulate.arms._covariance import SkewedArm, StudentArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.arms._kernels import CircleArm, RbfArm, SphereClustersArm, vendi_truth
from genbounds.simulate.arms._mixtures import MixtureArm
from genbounds.simulate.arms._posteriors import DirichletArm
from genbounds.simulate.arms._scalars import BernoulliArm, BetaArm, GammaArm, UniformArm

__all__ = [
    "BernoulliArm",
    "BetaArm",
    "CategoricalArm",
    "CircleArm",
    "DirichletArm",
    "FrechetArm",
    "GammaArm",
    "GaussianArm",
    "MixtureArm",
    "NystromArm",
    "RbfArm",
    "SkewedArm",
    "SphereArm",
    "SphereClustersArm",
    "StudentArm",
    "SyntheticArm",
    "UniformArm",
    "VendiArm",
    "vendi_truth",
]
