"""A run as its policy sees it; which arm draws the next batch; policies that need no formula.

A policy sees the `State` and nothing else, must not change it, and takes randomness from
`State.rng` only. Whatever it decides, the certificate stays valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Moments, Prepared, Running
from genbounds.select._certificate import Bools, Certificate
from genbounds.validation import Float, InputError, check_count, check_open_unit

T = TypeVar("T")

CACHE_BYTES = 128 * 2**20
"""Memory for the running scores of all arms of a run together; the least recently used go first.

20 arms with 250 samples of 2,048 features each need 111 MB."""

GROWTH = 0.1
"""What costs a pass over all rows is computed anew when a sample has grown by this share."""

MINIMUM_FOR_COVARIANCE = 2


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
        follow, rows = self.metric.follow, self.rows[arm]
        if follow is None or len(rows) == 0:
            return None
        # The least recently used first. One that was dropped is made again, from all rows.
        kept: dict[int, Running] = self.once(Running, dict)
        score = kept.pop(arm, None) or follow(rows.shape[1])
        if score.n < len(rows):
            score.add(rows[score.n :])
        kept[arm] = score
        held = sum(other.nbytes for other in kept.values())
        while held > CACHE_BYTES and len(kept) > 1:
            held -= kept.pop(next(iter(kept))).nbytes
        return score

    def plugin_loss(self, arm: int) -> float:
        """Plug-in score of all rows of `arm`, small is good; -inf while there are too few."""
        if self.rows[arm].shape[0] < self.metric.minimum:
            return -math.inf
        running = self.running(arm)
        return self.metric.plugin_loss(self.rows[arm]) if running is None else running.loss()


# --- what a policy is -----------------------------------------------------------------------------


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

    def pick(self, state: State, index: Float) -> tuple[int, ...]:
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


# --- the plain baselines: at random, and by the plug-in score -------------------------------------


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


# --- policies that stop by themselves, once the best arm is certified -----------------------------


class Uniform(CertifyingPolicy):
    """All arms equally often until the best is certified; the others are compared with it."""

    name = "uniform"

    def select(self, state: State) -> tuple[int, ...]:
        """Every available arm with the smallest number of samples."""
        return least_sampled(state, np.flatnonzero(state.available))


class Elimination(CertifyingPolicy):
    """All arms alike, but an arm leaves as soon as it is decided.

    Stops no later than `Uniform` on the same samples, up to evidence that uniform sampling
    gathers between arms that are already out.
    """

    name = "elimination"

    def select(self, state: State) -> tuple[int, ...]:
        """Of the arms in an open pair, those with the smallest number of samples."""
        open_pairs = state.certificate.open_pairs(state.available)
        return least_sampled(state, np.flatnonzero(open_pairs.any(axis=1) & state.available))


class Lucb(CertifyingPolicy):
    """The leader against its strongest rival (Kalyanakrishnan et al. 2012).

    Looks are compared at equal sizes only, so that of the two the one with fewer samples is
    pulled, and both where they are level.
    """

    name = "lucb"

    def select(self, state: State) -> tuple[int, ...]:
        """First every arm up to its first look; then leader and rival."""
        certificate = state.certificate
        open_pairs = certificate.open_pairs(state.available)
        unscored = (certificate.levels == 0) & open_pairs.any(axis=1) & state.available
        if unscored.any():
            return least_sampled(state, np.flatnonzero(unscored))
        kept: dict[str, Any] = state.once(Lucb, dict)
        if kept.get("open pairs") is not open_pairs:  # new ones after every look
            kept["open pairs"], kept["pair"] = open_pairs, self._pair(state, open_pairs)
        return least_sampled(state, kept["pair"])

    @staticmethod
    def _pair(state: State, open_pairs: Bools) -> NDArray[np.int64]:
        """Worst plausible leader and best plausible rival among the open pairs."""
        certificate = state.certificate
        reach = certificate.critical * certificate.stderr
        live = np.flatnonzero(certificate.live)
        ranked = live[np.argsort(certificate.loss[live], kind="stable")]
        leads = np.zeros(certificate.arms, dtype=bool)
        leads[ranked[: certificate.top]] = True
        across = open_pairs & leads[:, None] & ~leads[None, :] & ~certificate.near
        if not across.any():  # the leaders are decided, others are not: any open pair serves
            across = open_pairs
        rivals = across.any(axis=0)
        if state.cost is not None:  # the cheapest first; among equals the strongest
            rivals &= state.cost == state.cost[rivals].min()
        optimistic = np.where(rivals, certificate.loss - reach, np.inf)
        rival = int(np.argmin(optimistic))
        pessimistic = np.where(across[:, rival], certificate.loss + reach, -np.inf)
        return np.array([np.argmax(pessimistic), rival])
