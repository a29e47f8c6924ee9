"""The scenarios that put a statement under stress: small n, tiny and huge scales, d = 1, high rank.

A pool lists, for the setting of a statement, distributions and sample sizes that go together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product

import numpy as np

from genbounds.bounds import Bound
from genbounds.simulate._coverage import Scenario
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import (
    BernoulliArm,
    BetaArm,
    CategoricalArm,
    DirichletArm,
    GammaArm,
    SphereArm,
    UniformArm,
)
from genbounds.simulate.arms._covariance import EMBEDDING_NORMS, GaussianArm, embedding_spectrum
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._kernels import CircleArm, NystromArm, VendiArm
from genbounds.validation import Float, InputError

# Beyond 1e-3 only exact tails and gross failures can tell; a UCB run asks for about 1e-8.
DELTAS = (0.2, 0.05, 0.01, 1e-3, 1e-6, 1e-8, 1e-12, 1e-20)


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
    for arm, n in (pair for pool in _pool(bound.setting) for pair in product(*pool)):
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


@cache
def _pool(setting: str) -> Pool:
    """Arms keep what is known of them: each is made once."""
    return POOLS[setting]()


_UNIT_FEW = (BernoulliArm(0.02), BernoulliArm(0.5), BernoulliArm(0.999), BetaArm(0.05, 5.0))
_SCALAR_GAUSSIANS = (GaussianArm(0.0, 1.0), GaussianArm(0.0, 1e-6), GaussianArm(3.0, 1e6))
_CLASSES = (
    CategoricalArm(np.full(2, 0.5), name="2 equal classes"),
    CategoricalArm(np.full(100, 0.01), name="100 equal classes"),
    CategoricalArm(np.r_[0.9, np.full(100, 1e-3)], name="one large class of 101"),
)


_UNIT_MANY = (
    *(BernoulliArm(p) for p in (1e-3, 0.02, 0.1, 0.5, 0.9, 0.999)),
    *(BetaArm(0.1, 0.1), BetaArm(0.05, 5.0), UniformArm()),
)
_GAMMAS = (GammaArm(0.5, 2.0), GammaArm(0.5, 2e-3), GammaArm(10.0, 1.0), GaussianArm(0.0, 1.0))


def _equicorrelated(d: int, correlation: float) -> Float:
    """Make a matrix of unit variances and one correlation."""
    return (1.0 - correlation) * np.eye(d) + correlation * np.ones((d, d))


def _centred(*variances: float, **named: Float) -> tuple[SyntheticArm, ...]:
    """Gaussian arms of mean 0: scalars by their variance, vectors by name and covariance."""
    scalars = (GaussianArm(0.0, variance) for variance in variances)
    return (*scalars, *(GaussianArm(0.0, cov, name=name) for name, cov in named.items()))


def _gaussian_norms() -> Pool:
    vectors = {
        "1e-6 I (d=16)": np.full(16, 1e-6),
        "I (d=64)": np.ones(64),
        "I (d=2048)": np.ones(2048),
        "1/j (d=256)": 1.0 / np.arange(1.0, 257.0),
        "one spike (d=256)": np.r_[1.0, np.full(255, 1e-4)],
        "correlation 0.9 (d=8)": _equicorrelated(8, 0.9),
    }
    for name, norms in EMBEDDING_NORMS.items():
        vectors[f"norms of {name} (d={norms[0]})"] = embedding_spectrum(name)
    return ((_centred(1.0, 1e-6, 1e6, **vectors), (2, 1000)),)


def _gaussian_matrices() -> Pool:
    vectors = {
        "1e-6 I (d=8)": np.full(8, 1e-6),
        "I (d=8)": np.ones(8),
        "I (d=32)": np.ones(32),
        "1/j (d=32)": 1.0 / np.arange(1.0, 33.0),
        "one spike (d=16)": np.r_[1.0, np.full(15, 1e-3)],
        "correlation 0.9 (d=8)": _equicorrelated(8, 0.9),
    }
    moved = GaussianArm(2.0, np.ones(4), name="mean 2, I (d=4)")
    return (((*_centred(1.0, 1e-6, 900.0, **vectors), moved), (2, 20, 200, 5000)),)


def _bounded_vectors() -> Pool:
    spheres = (SphereArm(1), SphereArm(3), SphereArm(3, radius=1e-3), SphereArm(20))
    many = CategoricalArm(np.full(10, 0.1), name="one-hot, 10 equal classes")
    arms = (*spheres, many, CategoricalArm([0.99, 0.01], name="one-hot, classes 0.99 and 0.01"))
    return ((arms, (2, 30, 100, 1000)),)


def _against(name: str, features: SyntheticArm, scale: float, gap: float = 0.0) -> FrechetArm:
    """Features against N(gap e₁, scale I)."""
    d = features.d
    return FrechetArm(features, np.r_[gap, np.zeros(d - 1)], np.full(d, scale), name=name)


def _frechet_gaussian() -> Pool:
    def isotropic(name: str, d: int, scale: float, gap: float = 0.0) -> FrechetArm:
        return _against(name, GaussianArm(0.0, np.full(d, scale**2)), scale**2, gap)

    scalars = (
        isotropic("N(0, 1), equal to the reference", 1, 1.0),
        isotropic("N(0, 1e-6), equal to the reference", 1, 1e-3),
        isotropic("N(0, 1e-6), reference mean 0.01", 1, 1e-3, 1e-2),
        isotropic("N(0, 1e6), equal to the reference", 1, 1e3),
        isotropic("N(0, 1), reference mean 1e4", 1, 1.0, 1e4),
        _against("N(0, 1), reference N(0, 1e-6)", GaussianArm(0.0, 1.0), 1e-6),
    )
    power, name = 1.0 / np.arange(1.0, 17.0), "1/j (d=16), reference reversed"
    spike = GaussianArm(0.0, np.r_[1.0, np.full(15, 1e-4)])
    correlated = GaussianArm(0.0, _equicorrelated(8, 0.9))
    vectors = (
        isotropic("I (d=8), equal to the reference", 8, 1.0),
        isotropic("1e-6 I (d=8), equal to the reference", 8, 1e-3),
        isotropic("I (d=16), reference mean 1", 16, 1.0, 1.0),
        FrechetArm(GaussianArm(0.0, power), 0.0, power[::-1], name=name),
        _against("one spike (d=16), reference 1e-6 I", spike, 1e-6),
        _against("correlation 0.9 (d=8), reference I", correlated, 1.0),
    )
    return (scalars, (2, 20, 100, 2000)), (vectors, (2, 20, 100, 400))


def _frechet_bounded() -> Pool:
    arms = (
        _against("sign, reference N(0, 1)", SphereArm(1), 1.0),
        _against("sign, reference N(1e4, 1)", SphereArm(1), 1.0, 1e4),
        _against("sphere (d=4), equal moments", SphereArm(4), 0.25),
        _against("sphere of radius 1e-3 (d=4)", SphereArm(4, radius=1e-3), 2.5e-7),
        _against("sphere (d=16), reference mean 1", SphereArm(16), 1.0, 1.0),
    )
    return ((arms, (20, 100, 1000)),)


def _posteriors() -> Pool:
    clusters, shares = np.full((4, 4), 0.05) + 40.0 * np.eye(4), [0.7, 0.2, 0.09, 0.01]
    many = (
        DirichletArm(np.full(10, 0.02), name="near-deterministic, 10 classes"),
        DirichletArm(np.full(10, 50.0), name="near-uniform, 10 classes"),
        DirichletArm(np.full(50, 0.02), name="near-deterministic, 50 classes"),
    )
    few = (
        DirichletArm([0.5, 0.5], name="arcsine, 2 classes"),
        DirichletArm([0.01, 1.0], name="rare class, 2 classes"),
        DirichletArm(clusters, weights=shares, name="four unequal clusters, 4 classes"),
    )
    return (many, (2, 20, 200)), (few, (2, 20, 200, 1000))


def _spectra() -> Pool:
    return (_CLASSES, (20, 200, 1000, 20_000)), ((SphereArm(3), SphereArm(20)), (20, 200))


def _kernels() -> Pool:
    def seen(*arms: SyntheticArm) -> tuple[SyntheticArm, ...]:
        orders = (1.0, 1.5, 2.0, np.inf)
        return tuple(VendiArm(arm, order=order, kept=2) for arm in arms for order in orders)

    return (seen(*_CLASSES), (20, 1000, 20_000)), (seen(SphereArm(3)), (20, 200))


def _fourier_kernels() -> Pool:
    classes = (_CLASSES[0], CategoricalArm(np.full(4, 0.25), name="4 equal classes"))
    arms = tuple(
        VendiArm(arm, order=order, frequencies=frequencies)
        for arm, order, frequencies in product(classes, (1.0, 2.0), (10, 2000))
    )
    return ((arms, (20, 20_000)),)


def _landmarks() -> Pool:
    unequal = CategoricalArm(np.r_[0.5, np.full(100, 0.005)], name="one class of 1/2 among 101")
    classes = tuple(NystromArm(arm, t) for arm in (_CLASSES[0], unequal) for t in (2, 50))
    pairs = ((SphereArm(3), 2), (SphereArm(20), 10), (CircleArm(1.0), 5))
    features = tuple(NystromArm(arm, t) for arm, t in pairs)
    return (classes, (60, 1000, 20_000)), (features, (20, 100))


# What makes the pool of a setting.
POOLS: Mapping[str, Callable[[], Pool]] = {
    "gaussian-scalar": lambda: ((_SCALAR_GAUSSIANS, (1, 2, 10, 1000)),),
    "sub-exponential": lambda: ((_GAMMAS, (1, 3, 30, 1000)),),
    "unit-interval": lambda: ((_UNIT_MANY, (1, 2, 5, 20, 100, 1000)),),
    "unit-betting": lambda: (((*_UNIT_FEW, UniformArm()), (5, 20, 100)),),
    "gaussian-sequence": lambda: ((_SCALAR_GAUSSIANS, (1, 10, 1000)),),
    "unit-sequence": lambda: ((_UNIT_FEW, (1, 10, 1000)),),
    "gaussian-norms": _gaussian_norms,
    "gaussian-matrices": _gaussian_matrices,
    "bounded-vectors": _bounded_vectors,
    "frechet-gaussian": _frechet_gaussian,
    "frechet-bounded": _frechet_bounded,
    "posteriors": _posteriors,
    "spectra": _spectra,
    "kernels": _kernels,
    "fourier-kernels": _fourier_kernels,
    "landmarks": _landmarks,
}
