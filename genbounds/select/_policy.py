"""The contract of a policy, and what it is shown.

A policy decides which arm draws the next batch. It sees `State` and nothing else, must not change
it, and takes randomness from `State.rng` only. Whatever it decides, the certificate stays valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Moments, Prepared, Running
from genbounds.select._certificate import Certificate
from genbounds.select._running import RunningScores

Bools = NDArray[np.bool_]

FEWEST_ROWS_FOR_COVARIANCE = 2


@dataclass(slots=True, kw_only=True)
class State:
    """A run as its policy sees it.

    Attributes
    ----------
    n : ndarray of int, shape (K,)
        Samples held by each arm.
    available : ndarray of bool, shape (K,)
        Arms that can be pulled: not set aside, not dry, below the limit.
    index : ndarray of shape (K,)
        What `Policy.index` said after each arm's last batch; the smaller, the more wanted.
    rows : list of ndarray
        Samples of each arm, (n, d), read-only.
    certificate : Certificate
    metric : Prepared
    reference : Moments or None
        The reference's moments, for bonuses that need them.
    batch : int
    horizon : int
        Steps that the budget allows.
    error : float
        1 - confidence.
    rng : numpy.random.Generator
    step : int
        Batches drawn so far.
    cost : ndarray of shape (K,) or None
        Cost of a sample of each arm; None: all alike.
    memory : dict
        Free for the policy's own caches; lives as long as the run.
    scores : RunningScores or None
        Plug-in scores that follow the growing samples, once `running` has been asked.
    """

    n: NDArray[np.int64]
    available: Bools
    index: NDArray[np.float64]
    rows: list[NDArray[Any]]
    certificate: Certificate
    metric: Prepared
    reference: Moments | None
    batch: int
    horizon: int
    error: float
    rng: np.random.Generator
    step: int = 0
    cost: NDArray[np.float64] | None = None
    memory: dict[Any, Any] = field(default_factory=dict)
    scores: RunningScores | None = None

    def running(self, arm: int) -> Running | None:
        """Plug-in score of all rows of `arm`, brought up to date; None if the metric has none."""
        follow = self.metric.follow
        if follow is None or self.rows[arm].shape[0] == 0:
            return None
        if self.scores is None:
            self.scores = RunningScores(follow)
        return self.scores.of(arm, self.rows[arm])

    def plugin_loss(self, arm: int) -> float:
        """Plug-in score of all rows of `arm`, small is good; -inf while there are too few."""
        if self.rows[arm].shape[0] < self.metric.minimum:
            return -math.inf
        running = self.running(arm)
        return self.metric.plugin_loss(self.rows[arm]) if running is None else running.loss()


class Policy:
    """Base of all policies.

    Attributes
    ----------
    name : str
        As written in results.
    certifies : bool
        Whether the policy stops by itself; the others run until the budget is spent.
    """

    name: str
    certifies: bool = False

    def check(self, metric: Prepared) -> None:
        """Raise `InputError` if the policy cannot work with `metric`."""

    def index(self, state: State, arm: int) -> float:
        """Value to keep in `State.index` after `arm` has drawn a batch.

        `state` is the run so far. An `InputError` from here sets the arm aside.
        """
        return math.nan

    def select(self, state: State) -> tuple[int, ...]:
        """Arms to pull next given `state`, one batch each; empty if none is worth pulling."""
        raise NotImplementedError

    def stop(self, state: State) -> bool:
        """Whether `state` makes further samples pointless."""
        return not state.available.any()


class CertifyingPolicy(Policy):
    """A policy that stops once the answer is certified, or no further sample can certify it."""

    certifies = True

    def stop(self, state: State) -> bool:
        """Stop when certified, or when no undecided pair is within reach."""
        certificate = state.certificate
        return certificate.answer() is not None or not certificate.open_pairs(state.available).any()


class IndexPolicy(Policy):
    """Pulls the available arm with the smallest index, once every arm has `burn_in` samples."""

    burn_in: int

    def select(self, state: State) -> tuple[int, ...]:
        """Burn-in first, in the order of the arms; then the smallest index (ties: first arm)."""
        return self.pick(state, state.index)

    def pick(self, state: State, index: NDArray[np.float64]) -> tuple[int, ...]:
        """Return the available arm of `state` in burn-in, or else with the smallest `index`."""
        available = np.flatnonzero(state.available)
        if available.size == 0:
            return ()
        fresh = available[state.n[available] < max(self.burn_in, FEWEST_ROWS_FOR_COVARIANCE)]
        if fresh.size:
            return (int(fresh[0]),)
        return (int(available[np.argmin(index[available])]),)


def least_sampled(state: State, arms: NDArray[np.int64]) -> tuple[int, ...]:
    """Those of `arms` that hold the fewest samples."""
    if arms.size == 0:
        return ()
    n = state.n[arms]
    return tuple(int(arm) for arm in arms[n == n.min()])
