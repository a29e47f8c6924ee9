"""The scenarios that put a statement under stress: small n, tiny and huge scales, d = 1, high rank.

A pool lists, for the setting of a statement, distributions and sample sizes that go together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from genbounds.bounds import Bound
from genbounds.simulate._spectra import EMBEDDING_NORMS, embedding_spectrum
from genbounds.simulate.arms._approximations import NystromArm, VendiArm
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm, SphereArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.arms._kernels import CircleArm
from genbounds.simulate.arms._posteriors import DirichletArm
from genbounds.simulate.arms._scalars import BernoulliArm, BetaArm, GammaArm, UniformArm
from genbounds.validation import Float, InputError

# Beyond 1e-3 only exact tails and gross failures can tell; a UCB run asks for about 1e-8.
DELTAS = (0.2, 0.05, 0.01, 1e-3, 1e-6, 1e-8, 1e-12, 1e-20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One distribution at one sample size, with the failure probabilities within assumptions."""

    arm: SyntheticArm
    n: int
    deltas: tuple[float, ...] = DELTAS

    @property
    def label(self) -> str:
        """Names the scenario in stores and reports."""
        return f"{self.arm.name}, n={self.n}"


def scenarios_of(bound: Bound) -> tuple[Scenario, ...]:
    """List the scenarios of the statement's setting that lie within its assumptions.

    Raises
    ------
    InputError
        If there are none.
    """
    if bound.setting not in POOLS:
        raise InputError(
            f"`{bound.id}` has the unknown setting {bound.setting!r}: choose one for which there "
            f"are distributions, {', '.join(POOLS)}."
        )
    scenarios = []
    for arms, sizes in POOLS[bound.setting]():
        for arm, n in product(arms, sizes):
            deltas = tuple(delta for delta in DELTAS if not bound.violated(arm.facts, n, delta))
            if deltas:
                scenarios.append(Scenario(arm=arm, n=n, deltas=deltas))
    if not scenarios:
        raise InputError(
            f"`{bound.id}` cannot be audited: none of the distributions of the setting "
            f"{bound.setting!r} meets its assumptions."
        )
    return tuple(scenarios)


Pool = tuple[tuple[tuple[SyntheticArm, ...], tuple[int, ...]], ...]

# What makes the pool of a setting, once.
POOLS: dict[str, Callable[[], Pool]] = {}


def _pool(setting: str) -> Callable[[Callable[[], Pool]], Callable[[], Pool]]:
    """Put the decorated maker of a pool into `POOLS`."""

    def register(make: Callable[[], Pool]) -> Callable[[], Pool]:
        POOLS[setting] = cache(make)
        return make

    return register


_SCALAR_GAUSSIANS = (GaussianArm(0.0, 1.0), GaussianArm(0.0, 1e-6), GaussianArm(3.0, 1e6))
_UNIT_FEW = (BernoulliArm(0.02), BernoulliArm(0.5), BernoulliArm(0.999), BetaArm(0.05, 5.0))
_CLASSES = (
    CategoricalArm(np.full(2, 0.5), name="2 equal classes"),
    CategoricalArm(np.full(100, 0.01), name="100 equal classes"),
    CategoricalArm(np.r_[0.9, np.full(100, 1e-3)], name="one large class of 101"),
)


@_pool("gaussian-scalar")
def _gaussian_scalar() -> Pool:
    return ((_SCALAR_GAUSSIANS, (1, 2, 10, 1000)),)


@_pool("sub-exponential")
def _sub_exponential() -> Pool:
    arms = (GammaArm(0.5, 2.0), GammaArm(0.5, 2e-3), GammaArm(10.0, 1.0), GaussianArm(0.0, 1.0))
    return ((arms, (1, 3, 30, 1000)),)


@_pool("unit-interval")
def _unit_interval() -> Pool:
    coins = tuple(BernoulliArm(p) for p in (1e-3, 0.02, 0.1, 0.5, 0.9, 0.999))
    arms = (*coins, BetaArm(0.1, 0.1), BetaArm(0.05, 5.0), UniformArm())
    return ((arms, (1, 2, 5, 20, 100, 1000)),)


@_pool("unit-betting")
def _unit_betting() -> Pool:
    return (((*_UNIT_FEW, UniformArm()), (5, 20, 100)),)


@_pool("gaussian-sequence")
def _gaussian_sequence() -> Pool:
    return ((_SCALAR_GAUSSIANS, (1, 10, 1000)),)


@_pool("unit-sequence")
def _unit_sequence() -> Pool:
    return ((_UNIT_FEW, (1, 10, 1000)),)


def _equicorrelated(d: int, correlation: float) -> Float:
    """Make a matrix of unit variances and one correlation."""
    return (1.0 - correlation) * np.eye(d) + correlation * np.ones((d, d))


@_pool("gaussian-norms")
def _gaussian_norms() -> Pool:
    embeddings = (
        GaussianArm(0.0, embedding_spectrum(name), name=f"norms of {name} (d={norms[0]})")
        for name, norms in EMBEDDING_NORMS.items()
    )
    arms = (
        GaussianArm(0.0, 1.0),
        GaussianArm(0.0, 1e-6),
        GaussianArm(0.0, 1e6),
        GaussianArm(0.0, np.full(16, 1e-6), name="1e-6 I (d=16)"),
        GaussianArm(0.0, np.ones(64), name="I (d=64)"),
        GaussianArm(0.0, np.ones(2048), name="I (d=2048)"),
        GaussianArm(0.0, 1.0 / np.arange(1.0, 257.0), name="1/j (d=256)"),
        GaussianArm(0.0, np.r_[1.0, np.full(255, 1e-4)], name="one spike (d=256)"),
        GaussianArm(0.0, _equicorrelated(8, 0.9), name="correlation 0.9 (d=8)"),
        *embeddings,
    )
    return ((arms, (2, 1000)),)


@_pool("gaussian-matrices")
def _gaussian_matrices() -> Pool:
    arms = (
        GaussianArm(0.0, 1.0),
        GaussianArm(0.0, 1e-6),
        GaussianArm(0.0, 900.0),
        GaussianArm(0.0, np.full(8, 1e-6), name="1e-6 I (d=8)"),
        GaussianArm(0.0, np.ones(8), name="I (d=8)"),
        GaussianArm(0.0, np.ones(32), name="I (d=32)"),
        GaussianArm(0.0, 1.0 / np.arange(1.0, 33.0), name="1/j (d=32)"),
        GaussianArm(0.0, np.r_[1.0, np.full(15, 1e-3)], name="one spike (d=16)"),
        GaussianArm(0.0, _equicorrelated(8, 0.9), name="correlation 0.9 (d=8)"),
        GaussianArm(2.0, np.ones(4), name="mean 2, I (d=4)"),
    )
    return ((arms, (2, 20, 200, 5000)),)


@_pool("bounded-vectors")
def _bounded_vectors() -> Pool:
    arms = (
        SphereArm(1),
        SphereArm(3),
        SphereArm(3, radius=1e-3),
        SphereArm(20),
        CategoricalArm(np.full(10, 0.1), name="one-hot, 10 equal classes"),
        CategoricalArm([0.99, 0.01], name="one-hot, classes 0.99 and 0.01"),
    )
    return ((arms, (2, 30, 100, 1000)),)


@_pool("frechet-gaussian")
def _frechet_gaussian() -> Pool:
    def isotropic(d: int, scale: float, gap: float, name: str) -> FrechetArm:
        features = GaussianArm(0.0, np.full(d, scale**2))
        return FrechetArm(features, np.r_[gap, np.zeros(d - 1)], np.full(d, scale**2), name=name)

    scalars = (
        isotropic(1, 1.0, 0.0, "N(0, 1), equal to the reference"),
        isotropic(1, 1e-3, 0.0, "N(0, 1e-6), equal to the reference"),
        isotropic(1, 1e-3, 1e-2, "N(0, 1e-6), reference mean 0.01"),
        isotropic(1, 1e3, 0.0, "N(0, 1e6), equal to the reference"),
        isotropic(1, 1.0, 1e4, "N(0, 1), reference mean 1e4"),
        FrechetArm(GaussianArm(0.0, 1.0), 0.0, [1e-6], name="N(0, 1), reference N(0, 1e-6)"),
    )
    power = 1.0 / np.arange(1.0, 17.0)
    spike = np.r_[1.0, np.full(15, 1e-4)]
    vectors = (
        isotropic(8, 1.0, 0.0, "I (d=8), equal to the reference"),
        isotropic(8, 1e-3, 0.0, "1e-6 I (d=8), equal to the reference"),
        isotropic(16, 1.0, 1.0, "I (d=16), reference mean 1"),
        FrechetArm(
            GaussianArm(0.0, power), 0.0, power[::-1], name="1/j (d=16), reference reversed"
        ),
        FrechetArm(
            GaussianArm(0.0, spike),
            0.0,
            np.full(16, 1e-6),
            name="one spike (d=16), reference 1e-6 I",
        ),
        FrechetArm(
            GaussianArm(0.0, _equicorrelated(8, 0.9)),
            0.0,
            np.eye(8),
            name="correlation 0.9 (d=8), reference I",
        ),
    )
    return (scalars, (2, 20, 100, 2000)), (vectors, (2, 20, 100, 400))


@_pool("frechet-bounded")
def _frechet_bounded() -> Pool:
    def against(features: SyntheticArm, scale: float, gap: float, name: str) -> FrechetArm:
        d = features.d
        return FrechetArm(features, np.r_[gap, np.zeros(d - 1)], np.full(d, scale), name=name)

    arms = (
        against(SphereArm(1), 1.0, 0.0, "sign, reference N(0, 1)"),
        against(SphereArm(1), 1.0, 1e4, "sign, reference N(1e4, 1)"),
        against(SphereArm(4), 0.25, 0.0, "sphere (d=4), equal moments"),
        against(SphereArm(4, radius=1e-3), 2.5e-7, 0.0, "sphere of radius 1e-3 (d=4)"),
        against(SphereArm(16), 1.0, 1.0, "sphere (d=16), reference mean 1"),
    )
    return ((arms, (20, 100, 1000)),)


@_pool("posteriors")
def _posteriors() -> Pool:
    many = (
        DirichletArm(np.full(10, 0.02), name="near-deterministic, 10 classes"),
        DirichletArm(np.full(10, 50.0), name="near-uniform, 10 classes"),
        DirichletArm(np.full(50, 0.02), name="near-deterministic, 50 classes"),
    )
    few = (
        DirichletArm([0.5, 0.5], name="arcsine, 2 classes"),
        DirichletArm([0.01, 1.0], name="rare class, 2 classes"),
        DirichletArm(
            np.full((4, 4), 0.05) + 40.0 * np.eye(4),
            weights=[0.7, 0.2, 0.09, 0.01],
            name="four unequal clusters, 4 classes",
        ),
    )
    return (many, (2, 20, 200)), (few, (2, 20, 200, 1000))


@_pool("spectra")
def _spectra() -> Pool:
    return (_CLASSES, (20, 200, 1000, 20_000)), ((SphereArm(3), SphereArm(20)), (20, 200))


@_pool("kernels")
def _kernels() -> Pool:
    orders = (1.0, 1.5, 2.0, np.inf)

    def seen(arms: tuple[SyntheticArm, ...]) -> tuple[SyntheticArm, ...]:
        return tuple(VendiArm(arm, order=order, kept=2) for arm in arms for order in orders)

    return (seen(_CLASSES), (20, 1000, 20_000)), (seen((SphereArm(3),)), (20, 200))


@_pool("fourier-kernels")
def _fourier_kernels() -> Pool:
    classes = (
        CategoricalArm(np.full(2, 0.5), name="2 equal classes"),
        CategoricalArm(np.full(4, 0.25), name="4 equal classes"),
    )
    arms = tuple(
        VendiArm(arm, order=order, frequencies=frequencies)
        for arm in classes
        for order in (1.0, 2.0)
        for frequencies in (10, 2000)
    )
    return ((arms, (20, 20_000)),)


@_pool("landmarks")
def _landmarks() -> Pool:
    unequal = CategoricalArm(np.r_[0.5, np.full(100, 0.005)], name="one class of 1/2 among 101")
    classes = tuple(NystromArm(arm, t) for arm in (_CLASSES[0], unequal) for t in (2, 50))
    features = (NystromArm(SphereArm(3), 2), NystromArm(SphereArm(20), 10))
    circle = (NystromArm(CircleArm(1.0), 5),)
    return (classes, (60, 1000, 20_000)), ((*features, *circle), (20, 100))
