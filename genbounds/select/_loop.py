"""The loop: a policy picks an arm, the arm draws a batch, the certificate weighs it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from genbounds._process import threads_for
from genbounds._text import count
from genbounds.arms import Arm
from genbounds.estimators import Estimate
from genbounds.origins import DECISIVE, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.select._arms import rows_in_all
from genbounds.select._boundary import critical_value, look_sizes
from genbounds.select._budget import Budget
from genbounds.select._certificate import Certificate
from genbounds.select._first_look import (
    check_enough_samples,
    check_reference,
    choose_first_look,
    earliest_look,
)
from genbounds.select._independence import rows_of_another
from genbounds.select._record import Identity, Record
from genbounds.select._selection import Look
from genbounds.select._settings import SAMPLES_PER_ARM, Settings
from genbounds.select._state import State
from genbounds.validation import InputError

ORDER_ERROR = 1e-3
"""Probability that any honest arm of a run is set aside because of the order of its rows, at any
of its looks."""

_SAVE_SECONDS = 30.0


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
    joined : ndarray of int, shape (K,)
        Step at which each arm joined; -1 while it has not.
    futile : bool
        No look can be evidence, as the reference has too few rows: of one context among several.
    certificate : Certificate
    state : State
        What the policy sees. Both are there once the first batches have been drawn.
    """

    certificate: Certificate
    state: State

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
        # Last first, so that the next one is popped from the end.
        self._waiting = sorted(
            (
                (int(settings.joins[name]), -position)
                for position, name in enumerate(settings.arms)
                if settings.joins.get(name)
            ),
            reverse=True,
        )
        self.joined = np.zeros(len(settings.arms), dtype=np.int32)
        self.joined[[-position for _, position in self._waiting]] = -1
        self._record: Record | None = None
        self._saved = time.monotonic()

    @property
    def failure(self) -> str:
        """Why the run has nothing to say: every arm was set aside before it had a score."""
        certificate = self.certificate
        if certificate.live.any() or certificate.levels.any() or self.doubts:
            return ""
        reasons = "; ".join(f"{sampler.name}: {sampler.failure}" for sampler in self.samplers)
        return f"every arm had to be set aside ({reasons})."

    def score(self, estimate: Estimate, *warnings: Diagnostic) -> Score:
        """Score whose interval belongs to the family of all arms and looks of this run."""
        from scipy.special import ndtr

        level = 1.0 - 2.0 * float(ndtr(-self._score_critical))
        score = estimate.warned(*warnings).score(level)
        return replace(score, level=self.settings.confidence)

    def resume(self) -> None:
        """Take up the samples of an earlier run, if its folder has any."""
        if self.settings.record is None:
            return
        identity = Identity(
            settings=self.settings.identity,
            arms={name: _source(arm) for name, arm in self.settings.arms.items()},
            reference=self.settings.reference,
        )
        self._record = Record(self.settings.record, identity)
        records = self._record.load()
        for sampler in self.samplers:
            if sampler.name in records:
                sampler.resume(*records[sampler.name])

    def start(self) -> None:
        """Draw the first batches, which tell the dimension, and plan the looks."""
        settings, k = self.settings, len(self.samplers)
        absent = {-position for _, position in self._waiting}
        present = [position for position in range(k) if position not in absent]
        for position in present:  # one batch of each arm comes first, as in the papers
            self.samplers[position].pull(settings.batch)
        self._columns = self._common_columns()
        if settings.policy.certifies:
            batches = [one.rows for one in self.samplers if one.failure is None]
            try:
                check_reference(settings.metric, batches)
            except InputError:
                if settings.contexts == 1:
                    raise
                self.futile = True
        first = settings.first_look or self._first_look()
        self._earliest = settings.first_look or earliest_look(settings.metric, self._columns)
        limit = settings.limit
        if limit is None:
            limit = max(SAMPLES_PER_ARM, 4 * first)
            for sampler in self.samplers:
                sampler.limit = limit
        ends = sorted(min(limit, total) for total in self._totals.values())
        # With more rows than all others an arm has nothing to be compared with.
        last = min(limit, max(first, int(ends[-min(2, k)])))
        sizes = look_sizes(first, last, growth=settings.growth, ends=ends)
        self.certificate = Certificate(
            k, sizes, error=settings.error, top=settings.top, tolerance=settings.tolerance
        )
        self._score_critical = critical_value(settings.error / k, sizes, sides=2, order=2)
        # Of an honest arm at one of its looks: they add up to `ORDER_ERROR`.
        self._order_error = ORDER_ERROR / (k * len(sizes) * settings.contexts)
        self.state = State(
            available=np.zeros(k, dtype=bool),
            cost=settings.costs,
            index=np.full(k, -math.inf),
            rows=[sampler.rows for sampler in self.samplers],
            certificate=self.certificate,
            metric=settings.metric,
            batch=settings.batch,
            horizon=max(1, (settings.total_budget or k * limit) // settings.batch),
            error=settings.error,
            rng=settings.stream(0),
        )
        for position in present:
            self._enter(position, self.samplers[position].n)

    def _first_look(self) -> int:
        """Choose the first look by what the arms can give, before anything is known of it."""
        settings = self.settings
        totals = {name: int(total) for name, total in self._totals.items() if total < math.inf}
        reach = math.inf if settings.limit is None else float(settings.limit)
        if settings.budget is not None and settings.policy.certifies:
            reach = min(reach, settings.budget / float(settings.costs.sum() * settings.contexts))
        # A rare context is left undecided; it does not end the runs of the others.
        if len(totals) == len(self.samplers) and settings.contexts == 1:
            check_enough_samples(settings.metric, self._columns, totals)
        return choose_first_look(settings.metric, self._columns, [reach, *totals.values()])

    @property
    def _totals(self) -> dict[str, float]:
        """How many rows each arm has in all, as known before a single one is drawn."""
        return {name: rows_in_all(arm) for name, arm in self.settings.arms.items()}

    def _common_columns(self) -> int:
        """Features per row: the reference's, or the first arm's; arms that differ are set aside."""
        widths = [sampler.columns for sampler in self.samplers if sampler.columns is not None]
        wanted = self.settings.metric.columns
        columns = next(iter(widths), 1) if wanted is None else wanted
        spec = self.settings.metric.spec
        whose = "the reference has"
        if wanted is None:
            whose = "the first arm has"
        elif spec is not None and spec.reference == "none":
            whose = "the metric takes"
        for sampler in self.samplers:
            if sampler.columns not in (None, columns):
                reason = f"its rows have {sampler.columns} columns, {whose} {columns}"
                sampler.set_aside(reason)
        return columns

    def rounds(self) -> Iterator[State]:
        """Draw until the policy stops, or nothing is left to draw or to spend; yield each round."""
        state, policy, waiting = self.state, self.settings.policy, self._waiting
        while not (self.futile or self.budget.exhausted):
            while waiting and waiting[-1][0] <= state.step and not self.budget.exhausted:
                self._admit()
            arms = () if policy.stop(state) else policy.select(state)
            if not arms:
                if not waiting:
                    break
                self._admit()
            for arm in arms:
                if not self.budget.exhausted:
                    self._pull(arm)
            yield state
        self._score_lone_arm()

    def _score_lone_arm(self) -> None:
        """Bring an arm that has no rival (left) to its first look: it is owed a score."""
        certificate = self.certificate
        if certificate.live.sum() == 1:
            arm = int(np.flatnonzero(certificate.live)[0])
            while (
                self.state.available[arm]
                and not certificate.levels[arm]
                and not self.budget.exhausted
            ):
                self._pull(arm)

    def _admit(self) -> None:
        """Let the next arm join, with a first batch."""
        arm = -self._waiting.pop()[1]
        sampler = self.samplers[arm]
        self.joined[arm] = self.state.step
        drawn = sampler.pull(self.budget.affordable(arm))
        if sampler.columns not in (None, self._columns):
            sampler.set_aside(
                f"its rows have {sampler.columns} columns, other arms have {self._columns}"
            )
        self._enter(arm, drawn)

    def _pull(self, arm: int) -> None:
        affordable = self.budget.affordable(arm)
        if affordable:
            self._enter(arm, self.samplers[arm].pull(affordable))
        self.state.available &= self.budget.payable

    def _enter(self, arm: int, kept: int) -> None:
        """Take note of `kept` new rows: count, looks, index."""
        sampler, state = self.samplers[arm], self.state
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
            try:
                with self._threads(arm):
                    self._look(arm)
                    if sampler.failure is None:
                        state.index[arm] = self.settings.policy.index(state, arm)
            except InputError as error:
                sampler.set_aside(f"cannot be scored: {error}")
        if sampler.failure is not None:
            self.certificate.set_aside(arm)
        state.available[arm] = sampler.available

    def _threads(self, arm: int) -> AbstractContextManager[None]:
        """Keep small scores to one BLAS thread; of policies that certify, only looks have any."""
        rows, size = self.samplers[arm].rows, self.certificate.next_size(arm)
        if self.settings.policy.certifies and (size is None or len(rows) < size):
            return nullcontext()
        return threads_for(float(rows.size) * rows.shape[-1])

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
            doubt = _leak(estimate) or self._shared_with_a_rival(arm, size)
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

    def _shared_with_a_rival(self, arm: int, size: int) -> Diagnostic | None:
        """Say that the first rows of `arm` are those of an arm that was scored before it."""
        rivals = {
            rival.name: rival.fingerprints(rival.n)
            for other, rival in enumerate(self.samplers)
            if other != arm and rival.failure is None and self.certificate.levels[other]
        }
        return rows_of_another(self.samplers[arm].fingerprints(size), rivals)

    def save(self) -> None:
        """Write the samples so far to the run's folder, if it has one."""
        if self._record is not None:
            self._record.save({sampler.name: sampler.record() for sampler in self.samplers})
            self._saved = time.monotonic()


def _leak(estimate: Estimate) -> Diagnostic | None:
    """Say that rows are those of the reference, which more samples of the same do not mend."""
    doubts = (warning for warning in estimate.warnings if warning.severity == "unreliable")
    return next((warning for warning in doubts if warning.code == "leak"), None)


def _source(arm: Arm) -> str:
    """Return what tells the source of an arm from others: its rows' digest, its encoder."""
    digest = arm.digest() if hasattr(arm, "digest") else ""
    origin = sorted((key, value) for key, value in origin_of(arm).items() if key in DECISIVE)
    return f"{digest} {origin}" if origin else str(digest)
