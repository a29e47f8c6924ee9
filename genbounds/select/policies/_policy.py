"""The contract of a policy: which arm draws the next batch.

A policy sees the `State` and nothing else, must not change it, and takes randomness from
`State.rng` only. Whatever it decides, the certificate stays valid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import quoted
from genbounds.estimators import Prepared
from genbounds.select._state import State
from genbounds.validation import InputError, check_count

MINIMUM_FOR_COVARIANCE = 2


class Policy:
    """Base of all policies.

    Attributes
    ----------
    name : str
        As written in results.
    certifies : bool
        Whether the policy stops by itself; the others run until the budget is spent.
    metrics : tuple of str
        Those that it has a formula for; none: every metric.
    """

    name: str
    certifies: bool = False
    metrics: tuple[str, ...] = ()

    def check(self, metric: Prepared) -> None:
        """Raise `InputError` if the policy cannot work with `metric`."""
        if self.metrics and metric.name not in self.metrics:
            names = " or ".join(map(repr, self.metrics))
            raise InputError(
                f"{self.name!r} needs metric {names}; got {metric.name!r}.", argument="policy"
            )

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

    def __post_init__(self) -> None:
        check_count("burn_in", self.burn_in, minimum=0)

    def select(self, state: State) -> tuple[int, ...]:
        """Burn-in first, in the order of the arms; then the smallest index (ties: first arm)."""
        return self.pick(state, state.index)

    def pick(self, state: State, index: NDArray[np.float64]) -> tuple[int, ...]:
        """Return the available arm of `state` in burn-in, or else with the smallest `index`."""
        available = np.flatnonzero(state.available)
        if available.size == 0:
            return ()
        fresh = available[state.n[available] < max(self.burn_in, MINIMUM_FOR_COVARIANCE)]
        if fresh.size:
            return (int(fresh[0]),)
        return (int(available[np.argmin(index[available])]),)


def least_sampled(state: State, arms: NDArray[np.int64]) -> tuple[int, ...]:
    """Those of `arms` with the smallest number of samples."""
    if arms.size == 0:
        return ()
    n = state.n[arms]
    return tuple(int(arm) for arm in arms[n == n.min()])


def set_as_published(policy: Any, published: Mapping[str, Any]) -> None:
    """Set options of a frozen `policy` as its paper has them; refuse others that were given."""
    for option in fields(policy):
        given = getattr(policy, option.name)
        value = published.get(option.name, given)
        if given not in (value, option.default):
            raise InputError(
                f"is {value} as published: leave it out; got {given}.", argument=option.name
            )
        object.__setattr__(policy, option.name, value)


LARGEST = 1e75
"""Of an option of a policy."""


def check_positive(name: str, value: float, alternative: str = "") -> None:
    """Refuse anything but a positive number, of which fourth powers are finite."""
    if not 0.0 < value <= LARGEST:
        what = " ".join(("a positive number", *filter(None, (alternative,))))
        raise InputError(f"must be {what}; got {quoted(value)}.", argument=name)
