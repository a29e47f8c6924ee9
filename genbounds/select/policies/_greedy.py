"""The plain baselines: at random, and by the plug-in score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from genbounds.select._state import State
from genbounds.select.policies._policy import IndexPolicy, Policy
from genbounds.validation import check_open_unit


class Random(Policy):
    """An arm at random."""

    name = "random"

    def select(self, state: State) -> tuple[int, ...]:
        """Uniformly among the available arms."""
        available = np.flatnonzero(state.available)
        return (int(state.rng.choice(available)),) if available.size else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy(IndexPolicy):
    """The arm with the best plug-in score so far.

    Attributes
    ----------
    burn_in : int
        Samples of every arm before the first choice; 0 means one batch.
    """

    name = "greedy"
    burn_in: int = 0

    def index(self, state: State, arm: int) -> float:
        """Plug-in score, small is good."""
        return state.plugin_loss(arm)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonGreedy(Greedy):
    """Greedy, but with probability `epsilon` an arm at random.

    Attributes
    ----------
    burn_in : int
        As for `Greedy`.
    epsilon : float
        In (0, 1).
    """

    name = "epsilon-greedy"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        IndexPolicy.__post_init__(self)
        check_open_unit("epsilon", self.epsilon)

    def select(self, state: State) -> tuple[int, ...]:
        """As `Greedy`, or at random."""
        if state.rng.random() < self.epsilon:
            return Random().select(state)
        return Greedy.select(self, state)
