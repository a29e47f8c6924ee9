"""The settings of a run, checked against one another; what it may spend."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.arms import Arm
from genbounds.estimators import Prepared
from genbounds.select._sampler import Sampler
from genbounds.select.policies._policy import Policy
from genbounds.validation import Float, InputError

SAMPLES_PER_ARM = 50_000
"""Default limit: the sample size at which the field scores a model offline."""

STEPS = 1_000
"""Horizon of the papers' experiments: default budget, in batches, of policies that never stop."""

_ROUNDING = 1e-9


class Budget:
    """Counts what samples cost.

    Parameters
    ----------
    total : float or None
        Most that may be spent; None: no limit.
    cost : ndarray of shape (K,)
        Of one sample of each arm.
    batch : int
        Samples of a step.

    Attributes
    ----------
    spent : float
    """

    def __init__(self, total: float | None, cost: Float, batch: int) -> None:
        self.total = math.inf if total is None else total
        self.spent = 0.0
        self._cost, self._batch = cost, batch

    @property
    def payable(self) -> NDArray[np.bool_]:
        """Arms of which at least one sample can be paid."""
        left: Float = (self.total - self.spent) / self._cost
        return left * (1.0 + _ROUNDING) >= 1.0

    def affordable(self, arm: int) -> int:
        """Return how many samples of a batch of `arm` can be paid."""
        left = (self.total - self.spent) / float(self._cost[arm])
        return int(min(self._batch, max(0.0, left * (1.0 + _ROUNDING))))

    def pay(self, arm: int, n: int) -> float:
        """Take `n` samples of `arm` off; return what they cost."""
        price = n * float(self._cost[arm])
        self.spent += price
        return price


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What every run was asked for, whatever it is after. `run` describes each.

    Attributes
    ----------
    arms : dict of str to Arm
    cost : mapping of str to float
        Of the arms that are named in it; 1 of others.
    confidence, tolerance, growth : float
    batch, seed, retries : int
    budget, limit, first_look : int or None
    dtype : numpy.dtype or None
    """

    arms: dict[str, Arm]
    cost: Mapping[str, float]
    confidence: float
    tolerance: float
    growth: float
    batch: int
    seed: int
    retries: int
    budget: int | None
    limit: int | None
    first_look: int | None
    dtype: np.dtype[Any] | None

    @property
    def error(self) -> float:
        """Admitted probability of a wrong answer."""
        return 1.0 - self.confidence

    @property
    def costs(self) -> Float:
        """Cost of a sample of every arm."""
        return np.array([self.cost.get(name, 1.0) for name in self.arms])

    def stream(self, *key: int) -> np.random.Generator:
        """Return the generator of one arm (1 + its position), or of everything else (0)."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def samplers(self, limits: Iterable[int]) -> list[Sampler]:
        """Return what draws from each arm, at most so many samples of it."""
        how: dict[str, Any] = {"retries": self.retries, "dtype": self.dtype}
        return [
            Sampler(name, arm, self.stream(1 + position), limit=limit, **how)
            for position, ((name, arm), limit) in enumerate(
                zip(self.arms.items(), limits, strict=True)
            )
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Drawing):
    """What a run for the best arm was asked for.

    Attributes
    ----------
    policy : Policy
    metric : Prepared
    top : int
    joins : mapping of str to float
    record : path-like or None
    reference : str
        Digest of the reference.
    place : int or None
        Position of this run's context among the `contexts`; None without contexts.
    context : str
        Its name.
    contexts : int
        Runs, one for each context, that share budget and error.
    """

    policy: Policy
    metric: Prepared
    top: int
    joins: Mapping[str, float]
    record: str | os.PathLike[str] | None
    reference: str
    place: int | None = None
    context: str = ""
    contexts: int = 1

    def __post_init__(self) -> None:
        k = len(self.arms)
        if self.top > max(k - 1, 1):
            raise InputError(
                f"must be smaller than the number of arms ({k}); got {self.top}.", argument="top"
            )
        total = self.total_budget
        if total is not None and total < self.costs.sum() * self.batch * self.contexts:
            each = "" if self.place is None else f" in each of {self.contexts} contexts"
            raise InputError(
                f"({total}) does not allow one batch of {self.batch} for each of {k} arms{each}.",
                argument="budget",
            )
        if all(self.joins.get(name) for name in self.arms):
            raise InputError(
                "leaves no arm to start with: at least one must join at 0.", argument="joins"
            )

    @property
    def error(self) -> float:
        """Admitted probability of a wrong answer: of all contexts, an equal share."""
        return (1.0 - self.confidence) / self.contexts

    def stream(self, *key: int) -> np.random.Generator:
        """Every context has streams of its own."""
        return Drawing.stream(self, *(() if self.place is None else (self.place,)), *key)

    @property
    def total_budget(self) -> int | None:
        """Most that may be spent; policies that never stop by themselves have a default."""
        if self.budget is None and not self.policy.certifies:
            return STEPS * self.batch
        return self.budget

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the arms' streams, beside the arms themselves."""
        decisive: dict[str, Any] = {"seed": self.seed, "batch": self.batch}
        if self.place is not None:
            decisive["context"] = self.context
        return decisive if self.dtype is None else decisive | {"dtype": self.dtype.name}
