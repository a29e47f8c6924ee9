"""How often a bound misses on a distribution: by plain samples, exactly, by tilted samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from genbounds._betting import betting_lower_limit
from genbounds.bounds import Bound
from genbounds.bounds._catalog import borrows_name
from genbounds.simulate._pieces import chunks
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.validation import Float, InputError

# Numbers held at once by one chunk: 2²² doubles are 32 MiB.
_CHUNK_SIZE = 2**22
_LARGEST_CHUNK = 20_000

# A quantile is reported where at least so many replications of a chunk lie beyond it.
_BEYOND = 10.0

# Failure probabilities below this are examined by tilted samples.
RARE = 1e-4

# Relative accuracy of exact tails, granted to the statement.
TAIL_ACCURACY = 1e-7


@dataclass(frozen=True, slots=True)
class Scenario:
    """One distribution at one sample size, with the failure probabilities that are tried."""

    arm: SyntheticArm
    n: int
    deltas: tuple[float, ...]

    @property
    def label(self) -> str:
        """Names the scenario in stores and reports."""
        return f"{self.arm.name}, n={self.n}"

    def chunk_sizes(self, bound: Bound, replications: int) -> tuple[int, ...]:
        """Cut `replications` into chunks that fit in memory, whatever the number of workers."""
        most = _CHUNK_SIZE // max(self.arm.size(bound.needs, self.n), 1)
        return chunks(replications, min(max(most, 1), _LARGEST_CHUNK))


def run_chunk(bound: Bound, scenario: Scenario, count: int, seeds: SeedSequence) -> dict[str, Any]:
    """Draw `count` samples and count how often the bound misses.

    Returns
    -------
    dict
        ``replications``, and in ``found`` for each failure probability: ``misses``; ``width``, the
        median; ``quantile`` of the error at one minus the claimed miss probability, NaN with fewer
        than ten replications beyond it; ``trivial``, the number of replications whose width is no
        less than what the error can be at most.
    """
    arm, n, rng = scenario.arm, scenario.n, np.random.default_rng(seeds)
    quantities = dict(arm.facts) | arm.statistics(bound.needs, n, count, rng) | {"n": n}
    error = as_rows(bound.error(**quantities), count)
    if np.isnan(error).any():
        raise InputError(
            f"`{bound.id}` bounds a quantity that is NaN at n = {n}: say in an assumption, such as "
            "n ≥ 2, where it exists."
        )
    most = as_rows(bound.most(**quantities), count)
    largest = error.max(axis=1)
    found = []
    for delta in scenario.deltas:
        width = as_rows(bound.width(**quantities, delta=delta), count)
        hits = (error <= width).all(axis=1)  # not error > width: NaN on either side is a miss
        claimed = bound.claimed(delta)
        enough = count * claimed >= _BEYOND
        found.append(
            {
                "misses": int(count - np.count_nonzero(hits)),
                "width": float(np.median(width.max(axis=1))),
                "quantile": float(np.quantile(largest, 1.0 - claimed)) if enough else math.nan,
                "trivial": int(np.count_nonzero((width >= most).all(axis=1))),
            }
        )
    return {"replications": count, "found": found}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """All chunks of a study together, at one failure probability."""

    replications: int
    misses: int
    width: float
    tightness: float
    trivial: bool


def pool(chunks: Sequence[Mapping[str, Any]], index: int) -> Pooled:
    """Put chunks of `run_chunk` together: sums, and averages by their numbers of replications."""
    weights = [chunk["replications"] for chunk in chunks]

    found = [chunk["found"][index] for chunk in chunks]

    def average(key: str) -> float:
        return float(np.average([each[key] for each in found], weights=weights))

    width = average("width")
    return Pooled(
        replications=sum(weights),
        misses=sum(each["misses"] for each in found),
        width=width,
        tightness=tightness(width, average("quantile")),
        trivial=sum(each["trivial"] for each in found) == sum(weights),
    )


# A probability with its numerical limits.
Exact = tuple[float, float, float]


def exact_misses(bound: Bound, scenario: Scenario) -> list[Exact | None]:
    """Probability of a miss from the exact distribution of the error, for each delta.

    Either the arm knows that distribution and the width is no function of the sample, or the arm
    can list the outcomes; None where neither is so.
    """
    arm, n, deltas = scenario.arm, scenario.n, scenario.deltas
    facts: dict[str, Any] = dict(arm.facts) | {"n": n}
    name = bound.quantity.name
    known = not borrows_name(bound.quantity)
    if known and {*bound.width_needs} <= facts.keys() | {"delta"}:
        widths = [bound.width(**facts, delta=delta) for delta in deltas]
        tails = [arm.tail(name, n, float(width)) if width.ndim == 0 else None for width in widths]
        if None not in tails:
            return [None if tail is None else (tail, tail, tail) for tail in tails]
    listed = arm.outcomes(bound.needs, n)
    if listed is None:
        return [None] * len(deltas)
    facts |= listed.statistics
    if not {*bound.width_needs, *bound.error_needs} <= facts.keys() | {"delta"}:
        return [None] * len(deltas)
    error, exact = bound.error(**facts), list[Exact | None]()
    for delta in deltas:
        width = bound.width(**facts, delta=delta)
        # An outcome on the very edge of the bound is decided by rounding: granted to the bound.
        missed = ~(error <= width + 1e-12 * np.abs(width))
        probabilities = listed.probabilities
        miss = float(probabilities[np.broadcast_to(missed, probabilities.shape)].sum())
        high = 1.0 if listed.lower_only else min(miss * (1.0 + listed.accuracy), 1.0)
        exact.append((miss, miss / (1.0 + listed.accuracy), high))
    return exact


# A probability and its lower limit.
MissEstimate = tuple[float, float]


def rare_misses(
    bound: Bound, scenario: Scenario, count: int, seeds: SeedSequence, alpha: float
) -> list[MissEstimate | None]:
    """Estimate the probability of a miss at each delta below `RARE` by importance sampling.

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
    arm, n, deltas = scenario.arm, scenario.n, scenario.deltas
    estimates: list[MissEstimate | None] = [None] * len(deltas)
    logs: dict[int, list[Float]] = {i: [] for i, delta in enumerate(deltas) if delta < RARE}
    rng = np.random.default_rng(seeds)
    for size in scenario.chunk_sizes(bound, count) if logs else ():
        drawn = arm.tilted(bound.needs, n, size, rng)
        if drawn is None:
            return estimates
        quantities = dict(arm.facts) | drawn.statistics | {"n": n}
        error = as_rows(bound.error(**quantities), size)
        for index, values in logs.items():
            width = as_rows(bound.width(**quantities, delta=deltas[index]), size)
            # Not "not error ≤ width", as for plain samples: NaN must not refute here.
            missed = (error > width).any(axis=1)
            values.append(np.where(missed, drawn.log_weights, -np.inf))
    for index, values in logs.items():
        joined = np.concatenate(values)
        miss = min(float(np.exp(joined).mean()), 1.0)
        estimates[index] = miss, min(lower_limit(joined, alpha), miss)
    return estimates


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


def miss_limits(misses: int, replications: int, alpha: float) -> tuple[float, float]:
    """Clopper–Pearson limits of a miss rate, each wrong with probability at most alpha/2."""
    from scipy.special import betainccinv, betaincinv

    hits = replications - misses
    # Equal to statsmodels.stats.proportion.proportion_confint(method="beta") to the last bit.
    low = float(betaincinv(misses, hits + 1, alpha / 2.0)) if misses else 0.0
    high = float(betainccinv(misses + 1, hits, alpha / 2.0)) if hits else 1.0
    return low, high


def tightness(width: float, quantile: float) -> float:
    """Width over the quantile of the error; NaN where the error is nothing but rounding."""
    return width / quantile if quantile > 1e-12 * width else math.nan


def as_rows(values: Float, replications: int) -> Float:
    """One row a replication; several columns where a statement bounds several errors at once."""
    if values.ndim < 2:
        return np.broadcast_to(values, (replications,))[:, None]
    return values
