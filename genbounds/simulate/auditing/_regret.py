"""Regret of the published index policies, played here at one horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from scipy import stats

from genbounds.bounds import Bound, catalog, entropy_sum
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.arms._posteriors import DirichletArm
from genbounds.simulate.auditing._fits import average, fit
from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float

_HORIZON = 1000
_BATCH = 5
_FAILURE = 1e-3  # of the event behind the proof, in one run
_DELTA = _FAILURE / _HORIZON  # a union over the steps

# ``index(k, rows)`` returns the optimistic score of arm k from all its rows, and its bonus.
Index = Callable[[int, Float], tuple[float, float]]


def fd_ucb(bonus: str, bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Regret of FD-UCB with the width of a statement as its bonus."""
    statement = catalog()[bonus]
    arms = tuple(
        FrechetArm(GaussianArm(np.r_[gap, 0.0], np.ones(2)), 0.0, np.ones(2))
        for gap in (0.0, 1.0, 2.0)
    )
    losses = np.array([arm.facts["distance"] for arm in arms])

    def index(k: int, rows: Float) -> tuple[float, float]:
        arm, n = arms[k], len(rows)
        mean = rows.mean(axis=0)
        centred = rows - mean
        sample = {
            "n": n,
            "delta": _DELTA,
            "sample_mean_gap": float(np.linalg.norm(mean - arm.reference_mean)),
            "mean_error_norm": float(np.linalg.norm(mean - arm.facts["mean"])),
            "mean_deviation": float(np.sqrt(np.square(centred).sum(axis=1)).mean()),
        }
        bonus = float(statement.width(**(dict(arm.facts) | sample)))
        value = float(arm.plugin_distance(mean[None], (centred.T @ centred / n)[None])[0])
        return value - bonus, bonus

    return _play(bound, arms, losses, index, replications, rng, "3 Gaussian arms (d=2)")


def is_ucb(bonus: str, bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Regret of IS-UCB, on arms far apart and on arms so near that a first batch misleads."""
    statement = catalog()[bonus]

    def index(k: int, rows: Float) -> tuple[float, float]:
        entropies = entropy_sum(rows)
        mean = rows.mean(axis=0)[None]
        sample = {
            "n": len(rows),
            "mean_posterior": mean,
            "posterior_variance": rows.var(axis=0, ddof=1)[None],
            "mean_entropy": entropies.mean()[None],
            "entropy_variance": entropies.var(ddof=1)[None],
        }
        limits = {"d": 3, "entropy_limit": math.log(3.0), "delta": _DELTA}
        top = float(statement.width(**sample, **limits)[0])
        return -top, top - float(entropy_sum(mean)[0] - entropies.mean())

    cases = (((0.1, 0.5, 2.0), "3 Dirichlet arms"), ((0.5, 0.55, 0.6), "3 near Dirichlet arms"))
    for parameters, what in cases:
        arms = tuple(DirichletArm(np.full(3, a)) for a in parameters)
        losses = -np.array([arm.facts["log_score"] for arm in arms])
        yield from _play(bound, arms, losses, index, replications, rng, what)


def _play(
    bound: Bound,
    arms: Sequence[SyntheticArm],
    losses: Float,
    index: Index,
    replications: int,
    rng: Generator,
    what: str,
) -> Iterator[Check]:
    runs = [
        regret(arms, losses, index, steps=_HORIZON, batch=_BATCH, rng=rng)
        for _ in range(min(max(replications // 250, 8), 20))
    ]
    worst = float(losses.max() - losses.min())
    possible = worst * np.arange(1.0, _HORIZON + 1.0)
    share = np.mean([spent for _, spent in runs], axis=0) / possible
    # A bound above all that can be lost is never contradicted: nothing was tested.
    kind = "vacuous fit" if bool((share >= 1.0).all()) else "fit"
    for check in (_within(runs, what), _judge(bound, runs, worst, share, what)):
        yield replace(check, kind=kind)


def regret(
    arms: Sequence[SyntheticArm],
    losses: Float,
    index: Index,
    *,
    steps: int,
    batch: int,
    rng: Generator,
) -> tuple[Float, Float]:
    """Play an index policy.

    Parameters
    ----------
    arms : sequence of SyntheticArm
    losses : ndarray of shape (K,)
        True scores, small is good.
    index : callable
        ``index(k, rows)`` returns the optimistic score of arm k from all its rows, and its bonus.
    steps, batch : int
    rng : numpy.random.Generator

    Returns
    -------
    regret, spent : ndarray of shape (steps,)
        Accumulated regret, and accumulated 2 · bonus of the picks, which the theorems bound it by.
    """
    rows = [arm.draw(batch, rng) for arm in arms]
    current = [index(k, part) for k, part in enumerate(rows)]
    gaps = losses - losses.min()
    lost, spent = np.zeros(steps), np.zeros(steps)
    for t in range(steps):
        pick = min(range(len(arms)), key=lambda k: current[k][0])
        lost[t], spent[t] = gaps[pick], 2.0 * current[pick][1]
        rows[pick] = np.concatenate([rows[pick], arms[pick].draw(batch, rng)])
        current[pick] = index(pick, rows[pick])
    return lost.cumsum(), spent.cumsum()


def _within(runs: Sequence[tuple[Float, Float]], what: str) -> Check:
    """Compare the regret with what its proof bounds it by: all that a finite horizon contradicts.

    The event behind the proof fails in a run with probability 1e-3 at most; that it fails in more
    than `allowed` of them has probability below 1e-6.
    """
    failed = sum(bool((lost > spent).any()) for lost, spent in runs)
    allowed = int(stats.binom.isf(FALSE_ALARM, len(runs), _FAILURE))
    largest = max(float((lost / np.maximum(spent, 1e-300)).max()) for lost, spent in runs)
    return fit(
        f"regret ≤ 2 Σ bonus of the picks at every step up to T = {runs[0][0].size}, {what}",
        failed <= allowed,
        f"fails in {failed} of {len(runs)} runs; the regret is at most {largest:.3g} times "
        "the bound",
    )


def _judge(
    bound: Bound, runs: Sequence[tuple[Float, Float]], worst: float, share: Float, what: str
) -> Check:
    """Exponent over the second half of the horizon on a log scale, and the theorem's own bound."""
    steps = runs[0][0].size
    times = np.unique(np.geomspace(math.sqrt(steps), steps, 12).astype(int)) - 1
    slopes = np.array(
        [np.polyfit(np.log(times + 1.0), np.log(lost[times] + worst), 1)[0] for lost, _ in runs]
    )
    mean, error = average(slopes)
    reach = float(stats.t.isf(FALSE_ALARM / 2.0, len(runs) - 1)) * error
    claimed = bound.constants["exponent"]
    check = fit(
        f"regret up to T = {steps}, batch {_BATCH}, {what}: exponent {claimed:g}",
        mean - reach <= claimed,
        f"fitted exponent {mean:.3f} ± {reach:.3f} (T from {times[0] + 1}; no finite T "
        f"decides); the bound 2 Σ bonus is {share[-1]:.3g} times the largest regret possible at "
        f"the end, {share.min():.3g} times at least",
    )
    return replace(check, decisive=False)  # no finite T contradicts an order at T → ∞
