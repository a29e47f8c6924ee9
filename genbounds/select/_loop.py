"""A run: what it was asked for; a policy picks an arm, which draws; a certificate weighs it all."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genbounds._process import threads_for
from genbounds._text import count
from genbounds.arms import Arm
from genbounds.estimators import Estimate, Prepared
from genbounds.origins import DECISIVE, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.select import _looks
from genbounds.select._arms import rows_in_all
from genbounds.select._certificate import Bools, Certificate
from genbounds.select._independence import rows_of_another
from genbounds.select._sampler import Record, Sampler, agree_on_columns, all_set_aside
from genbounds.select._selection import Look, Selection
from genbounds.select.policies._policy import Policy, State
from genbounds.validation import Float, InputError

SAMPLES_PER_ARM = 50_000
"""Default limit: the sample size at which the field scores a model offline."""

STEPS = 1_000
"""Horizon of the papers' experiments: default budget, in batches, of policies that never stop."""

_ROUNDING = 1e-9

ORDER_ERROR = 1e-3
"""Probability that any honest arm of a run is set aside because of the order of its rows, at any
of its looks."""

_SAVE_SECONDS = 30.0


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
    def payable(self) -> Bools:
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
            Sampler(name, self.arms[name], self.stream(1 + position), limit=limit, **how)
            for position, (name, limit) in enumerate(zip(self.arms, limits, strict=True))
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


class Loop:
    """One run in progress; with contexts there are several, which take turns.

    Parameters
    ----------
    settings : Settings
    budget : Budget, optional
        One that other runs draw on as well.

    Attributes
    ----------
    samplers : list of Sampler
    budget : Budget
    cost : float
        What this run has spent of it.
    picks, drawn : list of int
        Arm and samples of each step.
    looks : list of Look
    doubts : dict of int to Diagnostic
        Why the rows of an arm are not independent draws.
    joined : list of int
        Step at which each arm joined; -1 while it has not.
    futile : bool
        No look can be evidence, as the reference has too few rows: of one context among several.
    certificate : Certificate
    state : State
        What the policy sees. Both are there once the first batches have been drawn.
    result : Selection
        There once the run has ended.
    """

    certificate: Certificate
    state: State
    result: Selection

    def __init__(self, settings: Settings, budget: Budget | None = None) -> None:
        self.settings = settings
        self.budget = budget or Budget(settings.total_budget, settings.costs, settings.batch)
        limit = SAMPLES_PER_ARM if settings.limit is None else settings.limit
        self.samplers = settings.samplers([limit] * len(settings.arms))
        self.cost = 0.0
        self.picks: list[int] = []
        self.drawn: list[int] = []
        self.looks: list[Look] = []
        self.doubts: dict[int, Diagnostic] = {}
        self.futile = False
        self._joins = [int(settings.joins.get(name, 0)) for name in settings.arms]
        self.joined = [-1 if step else 0 for step in self._joins]
        # Those that join later; the next one is popped from the end.
        later = (arm for arm, step in enumerate(self._joins) if step)
        self._waiting = sorted(later, key=lambda arm: (-self._joins[arm], arm))
        self._record: Record | None = None
        self._saved = time.monotonic()

    @property
    def failure(self) -> str:
        """Why the run has nothing to say: every arm was set aside before it had a score."""
        certificate = self.certificate
        if certificate.live.any() or certificate.levels.any() or self.doubts:
            return ""
        return all_set_aside(self.samplers)

    def score(self, estimate: Estimate, *warnings: Diagnostic) -> Score:
        """Score whose interval belongs to the family of all arms and looks of this run."""
        from scipy.special import ndtr

        level = 1.0 - 2.0 * float(ndtr(-self._score_critical))
        score = estimate.warned(*warnings).score(level)
        return replace(score, level=self.settings.confidence)

    def resume(self) -> None:
        """Take up the samples of an earlier run, if its folder has any."""
        settings = self.settings
        if settings.record is None:
            return
        arms = {name: _source(arm) for name, arm in settings.arms.items()}
        identity = {"settings": settings.identity, "arms": arms, "reference": settings.reference}
        self._record = Record(settings.record, identity)
        # Further arms may stand behind those of the record.
        for sampler, known in zip(self.samplers, self._record.load().values(), strict=False):
            sampler.resume(*known)

    def start(self) -> None:
        """Draw the first batches, which tell the dimension, and plan the looks."""
        settings, k = self.settings, len(self.samplers)
        present = [arm for arm in range(k) if not self._joins[arm]]
        for arm in present:  # one batch of each arm comes first, as in the papers
            self.samplers[arm].pull(settings.batch)
        by_metric = settings.metric.spec is not None and settings.metric.spec.reference == "none"
        whose = "the metric takes" if by_metric else "the reference has"
        self._columns = agree_on_columns(self.samplers, settings.metric.columns, whose)
        if settings.policy.certifies:
            try:
                _looks.check_reference(
                    settings.metric, [one.rows for one in self.samplers if one.failure is None]
                )
            except InputError:
                if settings.contexts == 1:
                    raise
                self.futile = True
        sizes, self._earliest = self._plan_looks()
        self.certificate = Certificate(
            k, sizes, error=settings.error, top=settings.top, tolerance=settings.tolerance
        )
        self._score_critical = _looks.critical_value(settings.error / k, sizes, sides=2, order=2)
        # Of an honest arm at one of its looks: they add up to `ORDER_ERROR`.
        self._order_error = ORDER_ERROR / (k * len(sizes) * settings.contexts)
        most = settings.total_budget or sum(sampler.limit for sampler in self.samplers)
        self.state = State(
            available=np.zeros(k, dtype=bool),
            cost=settings.costs,
            index=np.full(k, -math.inf),
            rows=[sampler.rows for sampler in self.samplers],
            certificate=self.certificate,
            metric=settings.metric,
            batch=settings.batch,
            horizon=max(1, most // settings.batch),
            error=settings.error,
            rng=settings.stream(0),
        )
        for arm in present:
            self._enter(arm, self.samplers[arm].n)

    def _plan_looks(self) -> tuple[tuple[int, ...], int]:
        """Return the sizes of all looks, and from which on any would do.

        Chosen by what the arms can give, before anything is known of it.
        """
        settings, metric = self.settings, self.settings.metric
        totals = {name: rows_in_all(arm) for name, arm in settings.arms.items()}
        first = earliest = settings.first_look or 0
        if not first:
            reach = math.inf if settings.limit is None else float(settings.limit)
            if settings.budget is not None and settings.policy.certifies:
                every = float(settings.costs.sum() * settings.contexts)
                reach = min(reach, settings.budget / every)
            # A rare context is left undecided; it does not end the runs of the others.
            if max(totals.values()) < math.inf and settings.contexts == 1:
                _looks.check_enough_samples(metric, self._columns, totals)
            first = _looks.choose_first_look(metric, self._columns, [reach, *totals.values()])
            earliest = _looks.earliest_look(metric, self._columns)
        limit = max(SAMPLES_PER_ARM, 4 * first) if settings.limit is None else settings.limit
        for sampler in self.samplers:
            sampler.limit = limit
        ends = sorted(min(limit, total) for total in totals.values())
        # With more rows than all others an arm has nothing to be compared with.
        last = min(limit, max(first, int(ends[-min(2, len(ends))])))
        return _looks.look_sizes(first, last, growth=settings.growth, ends=ends), earliest

    def rounds(self) -> Iterator[State]:
        """Draw until the policy stops, or nothing is left to draw or to spend; yield each round."""
        state, policy, waiting = self.state, self.settings.policy, self._waiting
        while self.budget.payable.any() and not self.futile:
            while waiting and self._joins[waiting[-1]] <= state.step and self.budget.payable.any():
                self._admit()
            arms = () if policy.stop(state) else policy.select(state)
            if not arms:
                if not waiting:
                    break
                self._admit()
            for arm in arms:
                self._pull(arm)
            yield state
        # An arm that has no rival (left) is owed a score: it comes to its first look.
        certificate = self.certificate
        if certificate.live.sum() == 1:
            arm = int(certificate.live.argmax())
            while state.available[arm] and not certificate.levels[arm]:
                self._pull(arm)

    def _admit(self) -> None:
        """Let the next arm join, with a first batch."""
        arm = self._waiting.pop()
        sampler = self.samplers[arm]
        self.joined[arm] = self.state.step
        drawn = sampler.pull(self.budget.affordable(arm))
        sampler.check_columns(self._columns, "other arms have")
        self._enter(arm, drawn)

    def _pull(self, arm: int) -> None:
        """Draw a batch of `arm`, as far as it can be paid."""
        affordable = self.budget.affordable(arm)
        if affordable:
            self._enter(arm, self.samplers[arm].pull(affordable))
        self.state.available &= self.budget.payable

    def _enter(self, arm: int, kept: int) -> None:
        """Take note of `kept` new rows: count, looks, index."""
        sampler, state, policy = self.samplers[arm], self.state, self.settings.policy
        state.step += 1
        state.rows[arm] = sampler.rows
        self.cost += self.budget.pay(arm, kept)
        self.picks.append(arm)
        self.drawn.append(kept)
        first = self.certificate.sizes[0]
        if sampler.exhausted and sampler.n < first:
            # With as many as the earliest look needs, it would have been chosen.
            needed = first if sampler.n >= self._earliest else self._earliest
            drawn = count(sampler.n, "sample")
            sampler.set_aside(f"exhausted after {drawn}; the first look needs {needed}")
        if sampler.failure is None:
            size, rows = self.certificate.next_size(arm), state.rows[arm]
            # Small scores take one BLAS thread; of policies that certify, only looks have any.
            idle = policy.certifies and (size is None or sampler.n < size)
            try:
                with nullcontext() if idle else threads_for(float(rows.size) * rows.shape[-1]):
                    self._look(arm)
                    if sampler.failure is None:
                        state.index[arm] = policy.index(state, arm)
            except InputError as error:
                sampler.set_aside(f"cannot be scored: {error}")
        if sampler.failure is not None:
            self.certificate.set_aside(arm)
        state.available[arm] = sampler.available

    def _look(self, arm: int) -> None:
        """Score `arm` at every planned size that it has reached, as long as its rows are sound."""
        sampler, certificate = self.samplers[arm], self.certificate
        while (size := certificate.next_size(arm)) is not None and sampler.n >= size:
            sample, doubts = sampler.sample(size)
            estimate = self.settings.metric.estimate(sample).warned(*doubts)
            if not (math.isfinite(estimate.value) and math.isfinite(estimate.stderr)):
                raise InputError(
                    f"its score at {size} samples is {estimate.value} ± {estimate.stderr}."
                )
            # Before the look counts: what it says rests on rows that are the arm's own, and
            # independent where it does not say otherwise.
            unreliable = (w for w in estimate.warnings if w.severity == "unreliable")
            doubt = next((w for w in unreliable if w.code == "leak"), None)
            rivals = {
                rival.name: rival.fingerprints(rival.n)
                for other, rival in enumerate(self.samplers)
                if other != arm and rival.failure is None and certificate.levels[other]
            }
            doubt = doubt or rows_of_another(sampler.fingerprints(size), rivals)
            if doubt is None and not sampler.labelled:
                influence = estimate.sample.influence
                doubt = sampler.dependence(size, influence, error=self._order_error)
            if doubt is not None:
                self.doubts[arm] = doubt
                sampler.set_aside(doubt.message)
                return
            score = self.score(estimate)
            beyond = (one for one in score.warnings if one not in estimate.warnings)
            unsound = (one for one in beyond if one.severity == "unreliable")
            certificate.add(arm, estimate.warned(*unsound))
            self.looks.append(Look(step=self.state.step, arm=sampler.name, score=score))
            if time.monotonic() - self._saved > _SAVE_SECONDS:
                self.save()

    def save(self) -> None:
        """Write the samples so far to the run's folder, if it has one."""
        if self._record is not None:
            self._record.save({sampler.name: sampler.record() for sampler in self.samplers})
            self._saved = time.monotonic()


def _source(arm: Arm) -> str:
    """Return what tells the source of an arm from others: its rows' digest, its encoder."""
    digest = arm.digest() if hasattr(arm, "digest") else ""
    origin = sorted((key, value) for key, value in origin_of(arm).items() if key in DECISIVE)
    return f"{digest} {origin}" if origin else str(digest)
