"""Miss probabilities below what plain sampling can see, by importance sampling."""

from __future__ import annotations

import numpy as np
from numpy.random import SeedSequence

from genbounds._betting import betting_lower_limit
from genbounds.bounds import Bound
from genbounds.simulate._trials import as_rows, chunk_sizes
from genbounds.simulate.auditing._scenarios import Scenario
from genbounds.validation import Float

# Failure probabilities below this are examined by tilted samples.
RARE = 1e-4

# A probability and its lower limit.
MissEstimate = tuple[float, float]


def lower_limit(log_values: Float, alpha: float) -> float:
    """Lower limit of the mean of a non-negative variable, wrong with probability at most `alpha`.

    Parameters
    ----------
    log_values : ndarray of shape (k,)
        Logarithms of independent draws; −∞ is a draw of 0. No upper limit of them is needed.
    alpha : float
        False alarm, in (0, 1).

    Returns
    -------
    float
        The largest mean m that bets reject: Π (1 + θ(Y_i/m − 1)) has expectation at most 1 for
        θ ∈ [0, 1] if E Y ≤ m, and so has the average over ten stakes θ; it exceeds 1/α with
        probability at most α (Markov). Valid for every number of draws, however heavy the tail
        of Y.
    """
    stakes = 0.5 ** np.arange(1.0, 11.0)
    values = np.exp(log_values)[None]
    return float(betting_lower_limit(values, -np.log(alpha), stakes)[0])


def rare_misses(
    bound: Bound, scenario: Scenario, count: int, seeds: SeedSequence, alpha: float
) -> list[MissEstimate | None]:
    """Estimate the probability of a miss at each failure probability of a scenario below `RARE`.

    Parameters
    ----------
    bound : Bound
    scenario : Scenario
    count : int
        Tilted samples.
    seeds : numpy.random.SeedSequence
    alpha : float
        False alarm of each lower limit.

    Returns
    -------
    list
        None where the failure probability is larger, or no tilt of the distribution is known.
    """
    arm, n = scenario.arm, scenario.n
    rare = [index for index, delta in enumerate(scenario.deltas) if delta < RARE]
    estimates: list[MissEstimate | None] = [None] * len(scenario.deltas)
    logs: dict[int, list[Float]] = {index: [] for index in rare}
    rng = np.random.default_rng(seeds)
    for size in chunk_sizes(bound, arm, n, count) if rare else ():
        drawn = arm.tilted(bound.needs, n, size, rng)
        if drawn is None:
            return estimates
        quantities = dict(arm.facts) | drawn.statistics | {"n": n}
        error = as_rows(bound.error(**quantities), size)
        for index in rare:
            width = as_rows(bound.width(**quantities, delta=scenario.deltas[index]), size)
            # Not "not error ≤ width", as for plain samples: NaN must not refute here.
            missed = (error > width).any(axis=1)
            logs[index].append(np.where(missed, drawn.log_weights, -np.inf))
    for index in rare:
        values = np.concatenate(logs[index])
        miss = min(float(np.exp(values).mean()), 1.0)
        estimates[index] = miss, min(lower_limit(values, alpha), miss)
    return estimates
