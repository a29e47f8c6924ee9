"""Studies of FID∞: what the regression of FD_N on 1/N leaves of the bias, and which sizes it needs.

The protocol is played as printed: one pool, subsets of it at 15 sizes, their FD, a line, its value
at 0. The paper prints two ways to draw the subsets, and they are two statements.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from scipy import stats

from genbounds.bounds import Bound
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.auditing._fits import fit, normal_reach
from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float

_PROTOCOL = 5000  # C20: the smallest N of the regression
_POINTS = 15
_REPLACED = frozenset({"c20.fid-infinity-with-replacement"})


def fid_infinity(bound: Bound, replications: int, rng: Generator) -> list[Check]:
    """Compare the bias that FID∞ leaves with the bias of the plain score of the same pool.

    "Effectively unbiased" is read as: no more than `ratio` of the plain bias is left, in either
    direction. A study that could not tell the plain score from FID∞ would prove nothing, so that
    its reach stands in what it found.
    """
    runs = min(max(replications // 100, 12), 40)
    equal = FrechetArm(GaussianArm(0.0, np.ones(32)), 0.0, np.ones(32), name="I against I (d=32)")
    wider = FrechetArm(
        GaussianArm(0.0, np.ones(64)), 0.0, np.full(64, 1.1), name="I against 1.1 I (d=64)"
    )
    cases = ((equal, _PROTOCOL, 20_000), (wider, _PROTOCOL, 20_000), (wider, 130, 520))
    return [bias_left(bound, arm, least, pool, runs, rng) for arm, least, pool in cases]


def bias_left(
    bound: Bound, arm: FrechetArm, least: int, pool: int, runs: int, rng: Generator
) -> Check:
    """Judge one arm and one pool size."""
    sizes = even_sizes(least, pool)
    replaced = bound.id in _REPLACED
    drawn = np.array([_one_pool(arm, sizes, replaced, rng) for _ in range(runs)])
    left, plain = (drawn - arm.facts["distance"]).T
    allowed = bound.constants["ratio"]
    # Two sides in each of three cases; the runs are paired, and few.
    reach = float(stats.t.isf(FALSE_ALARM / 6.0, runs - 1)) / math.sqrt(runs)
    above, below = left - allowed * plain, left + allowed * plain
    visible = (
        above.mean() - reach * above.std(ddof=1) > 0.0
        or below.mean() + reach * below.std(ddof=1) < 0.0
    )
    as_asked = least == _PROTOCOL
    share, spread = left.mean() / plain.mean(), reach * left.std(ddof=1) / plain.mean()
    check = fit(
        f"FID∞ leaves at most {allowed:.0%} of the bias of the plain score, {arm.name}, "
        f"N from {least} to {pool}" + ("" if as_asked else " (fewer than the protocol asks)"),
        not visible,
        f"{share:.0%} ± {spread:.0%} is left: {left.mean():.4g} of {plain.mean():.4g}, "
        f"{runs} pools",
    )
    return replace(check, decisive=as_asked)


def even_sizes(least: int, pool: int) -> Float:
    """Return the sizes of the protocol, evenly spaced in N."""
    return np.floor(np.linspace(least, pool, _POINTS))


def even_inverses(least: int, pool: int) -> Float:
    """Return sizes evenly spaced in 1/N, the rival."""
    return np.floor(1.0 / np.linspace(1.0 / least, 1.0 / pool, _POINTS))


def _one_pool(arm: FrechetArm, sizes: Float, replaced: bool, rng: Generator) -> tuple[float, float]:
    """FID∞ and the plain score of one pool, whose size is the last of `sizes`."""
    pool = int(sizes[-1])
    rows = arm.draw(pool, rng)
    return _extrapolated(arm, rows, sizes, replaced, rng), _score(arm, rows)


def _extrapolated(
    arm: FrechetArm, rows: Float, sizes: Float, replaced: bool, rng: Generator
) -> float:
    """FID∞ of a pool of rows, from a subset of each size."""
    subsets = (rng.choice(len(rows), int(n), replace=replaced) for n in sizes)
    scores = np.array([_score(arm, rows[subset]) for subset in subsets])
    return float(scores @ intercept_weights(sizes))


def _score(arm: FrechetArm, rows: Float) -> float:
    mean = rows.mean(axis=0)
    cov = rows.T @ rows / len(rows) - np.outer(mean, mean)
    return float(arm.plugin_distance(mean[None], cov[None])[0])


def intercept_weights(sizes: Float) -> Float:
    """Weights of FD_N at `sizes` in the value at 0 of their regression on 1/N."""
    design = np.stack([np.ones_like(sizes), 1.0 / sizes], axis=1)
    return np.asarray(np.linalg.pinv(design)[0])


def spacing(bound: Bound, replications: int, rng: Generator) -> list[Check]:
    """Compare the mean squared errors of FID∞ with sizes even in N and even in 1/N.

    From a tenth of the pool on, as in the paper's experiments, the two differ little; from a
    fortieth on enough for an exchange of the two to be seen.
    """
    features = GaussianArm(0.0, np.ones(4))
    arm = FrechetArm(features, 0.0, np.full(4, 2.0), name="I against 2I (d=4)")
    return [_spaced(bound, arm, least, 4000, replications, rng) for least in (400, 100)]


def _spaced(
    bound: Bound, arm: FrechetArm, least: int, pool: int, replications: int, rng: Generator
) -> Check:
    runs = max(replications // 25, 40)
    grids = (even_sizes(least, pool), even_inverses(least, pool))
    squared = np.zeros((runs, 2))
    for run in range(runs):
        rows = arm.draw(pool, rng)
        for column, sizes in enumerate(grids):
            value = _extrapolated(arm, rows, sizes, False, rng)
            squared[run, column] = (value - arm.facts["distance"]) ** 2
    # Paired runs: the logarithm of the ratio by the delta method.
    mean = squared.mean(axis=0)
    influence = squared[:, 0] / mean[0] - squared[:, 1] / mean[1]
    error = float(influence.std(ddof=1)) / math.sqrt(runs)
    log = math.log(mean[0] / mean[1])
    low, high = (math.exp(log + side * normal_reach(2) * error) for side in (-1.0, 1.0))
    return fit(
        f"mean squared error of FD∞, even in N over even in 1/N, {arm.name}, N from {least} "
        f"to {pool}",
        low <= bound.constants["ratio"],
        f"ratio {math.exp(log):.3f}, interval [{low:.3f}, {high:.3f}]",
    )
