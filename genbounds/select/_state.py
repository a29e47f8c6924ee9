"""A run as its policy sees it, and what policies keep from step to step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Moments, Prepared, Running
from genbounds.select._certificate import Certificate

Bools = NDArray[np.bool_]
T = TypeVar("T")

CACHE_BYTES = 128 * 2**20
"""Memory for the running scores of all arms of a run together; the least recently used go first.

20 arms with 250 samples of 2,048 features each need 111 MB."""

GROWTH = 0.1
"""What costs a pass over all rows is computed anew when a sample has grown by this share."""


class RunningScores:
    """The running score of every arm, within a limit of memory.

    Parameters
    ----------
    make : callable
        Of the number of columns: a score of no rows yet.
        One that was dropped is made again from all rows when it is wanted.
    """

    def __init__(self, make: Callable[[int], Running]) -> None:
        self._make = make
        self._kept: dict[int, Running] = {}  # the least recently used first

    def of(self, arm: int, rows: NDArray[Any]) -> Running:
        """Return the score of all `rows` of `arm`, of which it may know the first ones already."""
        score = self._kept.pop(arm, None) or self._make(rows.shape[1])
        if score.n < rows.shape[0]:
            score.add(rows[score.n :])
        self._kept[arm] = score
        held = sum(other.nbytes for other in self._kept.values())
        while held > CACHE_BYTES and len(self._kept) > 1:
            held -= self._kept.pop(next(iter(self._kept))).nbytes
        return score


@dataclass(slots=True, kw_only=True)
class State:
    """A run as its policy sees it.

    Attributes
    ----------
    available : ndarray of bool, shape (K,)
        Arms that can be pulled: not set aside, not exhausted, below the limit.
    index : ndarray of shape (K,)
        What `Policy.index` said after each arm's last batch; the smaller, the more wanted.
    rows : list of ndarray
        Samples of each arm, (n, d), read-only.
    certificate : Certificate
    metric : Prepared
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
    """

    available: Bools
    index: NDArray[np.float64]
    rows: list[NDArray[Any]]
    certificate: Certificate
    metric: Prepared
    batch: int
    horizon: int
    error: float
    rng: np.random.Generator
    step: int = 0
    cost: NDArray[np.float64] | None = None
    _kept: dict[object, Any] = field(default_factory=dict, repr=False, init=False)

    @property
    def n(self) -> NDArray[np.int64]:
        """Samples held by each arm, shape (K,)."""
        return np.array([len(rows) for rows in self.rows])

    @property
    def reference(self) -> Moments | None:
        """The reference's moments, for bonuses that need them."""
        reference = self.metric.reference
        return None if reference is None else cast(Moments, reference.moments)

    def memory(self, kind: type[T]) -> T:
        """Return this run's one object of type `kind`, made at its first use.

        Policies are values that may serve several runs; what they learn in one of them they keep
        in a class of their own, such as ``state.memory(MyNotes).seen``.
        """
        return self.once(kind, kind)

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """Return what `compute` gives, called once in this run and kept under `key`."""
        if key not in self._kept:
            self._kept[key] = compute()
        return cast(T, self._kept[key])

    def refreshed(
        self, key: object, arm: int, compute: Callable[[], T], *, growth: float = GROWTH
    ) -> tuple[int, T]:
        """Return what `compute` gave of `arm`, and its rows then; anew once they grew by a share.

        Parameters
        ----------
        key : object
            What is computed.
        arm : int
        compute : callable
        growth : float
            The share.
        """
        n = len(self.rows[arm])
        known = self._kept.get((key, arm))
        if known is None or n - known[0] >= growth * known[0]:
            known = self._kept[key, arm] = n, compute()
        return cast(tuple[int, T], known)

    def running(self, arm: int) -> Running | None:
        """Plug-in score of all rows of `arm`, brought up to date; None if the metric has none."""
        follow = self.metric.follow
        if follow is None or self.rows[arm].shape[0] == 0:
            return None
        scores = self.once(RunningScores, lambda: RunningScores(follow))
        return scores.of(arm, self.rows[arm])

    def plugin_loss(self, arm: int) -> float:
        """Plug-in score of all rows of `arm`, small is good; -inf while there are too few."""
        if self.rows[arm].shape[0] < self.metric.minimum:
            return -math.inf
        running = self.running(arm)
        return self.metric.plugin_loss(self.rows[arm]) if running is None else running.loss()
