"""Policies that spend a budget well: debiased scores of the whole sample, with their noise.

The certificate scores an arm at planned sizes only, the first of them far beyond what a small
budget allows with many features. To decide who draws next, less will do. For the Fréchet distance
the debiased one serves from `SEEN_SHARE` samples per dimension on. Before, an estimate that treats
all arms alike at every sample size: the plug-in distance with Tr (Σ̂ Σ_r)^(1/2) divided by what
that trace comes to, on average, for as many rows of the reference's own distribution, in units of
its limit Tr Σ_r. For an arm whose covariance is a multiple of Σ_r that is exact at every n; for
others it leaves the difference of two biases, not the bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import FrechetReference, RunningFrechet
from genbounds.select.policies._policy import IndexPolicy, State
from genbounds.validation import Float, check_not_negative

MINIMUM_ROWS = 10
"""Metrics but FD are not debiased before so many rows."""

SEEN_SHARE, MINIMUM_FRECHET = 0.4, 16
"""FD is not debiased before so many samples per dimension, nor before so many samples:
docs/explanation/few_samples.md, "Where it is not to be trusted"."""

TWIN_ROWS = 512
"""Rows from which each point of the twin's curve is averaged, at least."""

TWIN_GRID = 1.25
"""Ratio of neighbouring sizes on the twin's curve."""

_TWIN_SEED = 20_250_411


UNKNOWN = -math.inf, 0.0
"""Of an arm with too few rows: drawn from before all others."""


def estimate(state: State, arm: int) -> tuple[float, float]:
    """Score all rows of `arm`, a tenth of them old news at most.

    Returns
    -------
    tuple of float
        Debiased score, small is good, and its standard error.
    """
    rows, reference = state.rows[arm], state.metric.reference
    n = len(rows)
    if reference is not None and n < max(MINIMUM_FRECHET, SEEN_SHARE * reference.d):
        return calibrated(state, arm, reference)
    if n < max(MINIMUM_ROWS, state.metric.minimum):
        return UNKNOWN

    def scored() -> tuple[float, float]:
        found = state.metric.estimate(rows)
        return found.loss, found.stderr

    at, (loss, stderr) = state.refreshed(estimate, arm, scored)
    # Between two evaluations the noise shrinks with the sample.
    return loss, stderr * math.sqrt(at / n)


def calibrated(state: State, arm: int, reference: FrechetReference) -> tuple[float, float]:
    """Score few rows by the plug-in distance, calibrated by the reference's `Twin`."""
    score = state.running(arm)
    if score is None or score.n < 2:
        return UNKNOWN
    assert isinstance(score, RunningFrechet)
    twin = state.once(Twin, lambda: Twin(reference))
    n, trace = score.n, score.trace
    value = score.mean_gap**2 - trace / n + trace + twin.trace
    value -= 2.0 * score.root / twin.share(n)
    # Noise of a Gaussian with covariance c Σ_r: mean, scale, and what is of second order.
    c = trace / twin.trace
    squares = c * c * twin.sum_of_squares
    scale = 2.0 * (1.0 - 1.0 / math.sqrt(c)) ** 2 * squares if c > 0.0 else 0.0
    rows = state.rows[arm]
    _, along_gap = state.refreshed(_along_gap, arm, lambda: _along_gap(rows, reference))
    variance = (4.0 * along_gap + scale + squares / n) / n
    return value, math.sqrt(variance)


def _along_gap(rows: NDArray[Any], reference: FrechetReference) -> float:
    """Variance of the rows along the difference of the means, times its square."""
    gap = rows.mean(axis=0, dtype=np.float64) - reference.moments.mean
    return float(np.var(rows @ gap, ddof=1))


class Twin:
    """What n Gaussian rows with the reference's covariance make of Tr (Σ̂ Σ_r)^(1/2).

    Parameters
    ----------
    reference : FrechetReference

    Attributes
    ----------
    trace, sum_of_squares : float
        Tr Σ_r and Tr Σ_r².
    """

    def __init__(self, reference: FrechetReference) -> None:
        self.trace = float(np.trace(reference.moments.cov))
        lower = reference.factor
        self._inner: Float = lower.T @ lower
        self.sum_of_squares = float((self._inner * self._inner).sum())
        self._shares: dict[int, float] = {}

    def share(self, n: int) -> float:
        """Mean of Tr (Σ̂ Σ_r)^(1/2) / Tr Σ_r at n rows, from its curve over log n."""
        position = math.log(n / 2.0) / math.log(TWIN_GRID)
        left = math.floor(position)
        one, two = self._at(left), self._at(left + 1)
        return one + (position - left) * (two - one)

    def _at(self, position: int) -> float:
        n = round(2.0 * TWIN_GRID**position)
        if n not in self._shares:
            rng = np.random.default_rng([_TWIN_SEED, n])
            draws = [self._draw(n, rng) for _ in range(max(1, math.ceil(TWIN_ROWS / n)))]
            self._shares[n] = float(np.mean(draws)) / self.trace
        return self._shares[n]

    def _draw(self, n: int, rng: np.random.Generator) -> float:
        # With x = L g, the rows that count are xᵀ L = gᵀ Lᵀ L; all but one of the n centred rows
        # are free.
        r, free = len(self._inner), n - 1
        rows = rng.standard_normal((free, r)) @ self._inner
        values = np.linalg.eigvalsh(rows @ rows.T if free <= r else rows.T @ rows)
        return float(np.sqrt(np.clip(values, 0.0, None)).sum()) / math.sqrt(free)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasedUcb(IndexPolicy):
    """UCB on debiased scores: the arm with the smallest score minus `width` standard errors.

    Attributes
    ----------
    width : float
        Standard errors. 0: greedy on debiased scores.
    burn_in : int
        Samples of every arm before the first choice; 0: one batch.
    """

    name = "debiased-ucb"
    width: float = 2.0
    burn_in: int = 0

    def __post_init__(self) -> None:
        IndexPolicy.__post_init__(self)
        check_not_negative("width", self.width)

    def index(self, state: State, arm: int) -> float:
        """Debiased score minus its noise; -inf while there are too few rows."""
        loss, stderr = estimate(state, arm)
        return loss - self.width * stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Thompson(IndexPolicy):
    """The arm that is best in one draw from the normal distributions of the debiased scores.

    Attributes
    ----------
    burn_in : int
        Samples of every arm before the first choice; 0: one batch.
    """

    name = "thompson"
    burn_in: int = 0

    def index(self, state: State, arm: int) -> float:
        """Debiased score; -inf while there are too few rows."""
        loss, _spreads(state)[arm] = estimate(state, arm)
        return loss

    def select(self, state: State) -> tuple[int, ...]:
        """Burn-in first; then the best draw."""
        noise = state.rng.standard_normal(state.n.size)  # one for each arm at every step
        return self.pick(state, state.index + _spreads(state) * noise)


def _spreads(state: State) -> Float:
    """Return the standard error of the score that each arm's index was made from."""
    return state.once(Thompson, lambda: np.zeros(state.n.size))
