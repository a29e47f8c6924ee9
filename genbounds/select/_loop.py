"""The loop: a policy picks an arm, the arm draws a batch, the certificate weighs it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from genbounds.arms import Arm
from genbounds.estimators import Estimate, Moments, Prepared
from genbounds.results import Diagnostic, Score, unreliable
from genbounds.select._boundary import critical_value, look_sizes
from genbounds.select._certificate import Certificate
from genbounds.select._feed import Feed
from genbounds.select._metric import first_look as first_look_of
from genbounds.select._policy import Policy, State
from genbounds.select._record import Record
from genbounds.select._selection import History, Look, Selection
from genbounds.validation import InputError

SAMPLES_PER_ARM = 50_000
"""Default limit: the sample size at which the field scores a model offline."""

STEPS = 1_000
"""Horizon of the papers' experiments: default budget, in batches, of policies that never stop."""

_SAVE_SECONDS = 30.0
_ROUNDING = 1e-9


class Loop:
    """One run in progress."""

    def __init__(
        self,
        arms: dict[str, Arm],
        *,
        policy: Policy,
        metric: Prepared,
        reference: Moments | None,
        confidence: float,
        batch: int,
        budget: int | None,
        seed: int,
        top: int,
        tolerance: float,
        limit: int | None,
        first_look: int | None,
        growth: float,
        cost: dict[str, float],
        joins: dict[str, float],
        retries: int,
        dtype: np.dtype[Any] | None,
        record: str | os.PathLike[str] | None,
    ) -> None:
        k = len(arms)
        if top > max(k - 1, 1):
            raise InputError(
                f"must be smaller than the number of arms ({k}); got {top}.", argument="top"
            )
        if budget is None and not policy.certifies:
            budget = STEPS * batch
        self.names = tuple(arms)
        self.cost = np.array([cost.get(name, 1.0) for name in arms])
        if budget is not None and budget < self.cost.sum() * batch:
            raise InputError(
                f"({budget}) does not allow one batch of {batch} for each of {k} arms.",
                argument="budget",
            )
        # Last first, so that the next one is popped from the end.
        self.waiting = sorted(
            (
                (int(joins[name]), -position)
                for position, name in enumerate(arms)
                if joins.get(name)
            ),
            reverse=True,
        )
        if len(self.waiting) == k:
            raise InputError(
                "leaves no arm to start with: at least one must join at 0.", argument="joins"
            )
        self.joined = np.zeros(k, dtype=np.int32)
        self.joined[[-position for _, position in self.waiting]] = -1
        self.policy = policy
        self.metric = metric
        self.confidence = confidence
        self.budget = budget
        self.sampled_reference = metric.sampled_reference
        self.picks: list[int] = []
        self.drawn: list[int] = []
        self.looks: list[Look] = []
        self.spent = 0.0

        policy_rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self.feeds = [
            Feed(
                name,
                arm,
                np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1 + position,))),
                limit=SAMPLES_PER_ARM if limit is None else limit,
                retries=retries,
                dtype=dtype,
            )
            for position, (name, arm) in enumerate(arms.items())
        ]
        self.record: Record | None = None
        self._saved = time.monotonic()
        if record is not None:
            identity = {"seed": seed, "batch": batch, "arms": list(self.names)}
            if dtype is not None:
                identity["dtype"] = dtype.name
            self.record = Record(record, identity)
            for position, feed in enumerate(self.feeds):
                kept = self.record.load(feed.name, position)
                if kept is not None:
                    feed.resume(*kept)

        # One batch of each arm comes first, as in the papers; it also tells the dimension.
        absent = {-position for _, position in self.waiting}
        present = [position for position in range(k) if position not in absent]
        for position in present:
            self.feeds[position].pull(batch)
        columns = self.columns = self._columns()
        first = first_look_of(metric, columns) if first_look is None else first_look
        if limit is None:
            limit = max(SAMPLES_PER_ARM, 4 * first)
            for feed in self.feeds:
                feed.limit = limit
        sizes = look_sizes(first, limit, growth=growth)
        error = 1.0 - confidence
        self.certificate = Certificate(k, sizes, error=error, top=top, tolerance=tolerance)
        self.score_critical = critical_value(error / k, sizes, sides=2, order=2)
        self.state = State(
            n=np.zeros(k, dtype=np.int64),
            available=np.zeros(k, dtype=bool),
            cost=self.cost,
            index=np.full(k, -math.inf),
            rows=[feed.rows for feed in self.feeds],
            certificate=self.certificate,
            metric=metric,
            reference=reference,
            batch=batch,
            horizon=max(1, (budget or k * limit) // batch),
            error=error,
            rng=policy_rng,
        )
        for position in present:
            self._enter(position, self.feeds[position].n)

    def run(self, progress: Callable[[State], None] | None) -> Selection:
        state = self.state
        try:
            while not self._spent():
                while self.waiting and self.waiting[-1][0] <= state.step and not self._spent():
                    self._admit()
                arms = () if self.policy.stop(state) else self.policy.select(state)
                if not arms:
                    if not self.waiting:
                        break
                    self._admit()
                for arm in arms:
                    if not self._spent():
                        self._pull(arm)
                if progress is not None:
                    progress(state)
            self._score_lone_arm()
        finally:
            self._save()
        if not self.certificate.in_play.any():
            reasons = "; ".join(f"{feed.name}: {feed.failure}" for feed in self.feeds)
            raise InputError(f"every arm had to be set aside ({reasons}).")
        return self._selection()

    def _score_lone_arm(self) -> None:
        """Bring an arm that has no rival (left) to its first look: it is owed a score."""
        certificate = self.certificate
        if certificate.in_play.sum() == 1:
            arm = int(np.flatnonzero(certificate.in_play)[0])
            while not self._spent() and self.state.available[arm] and not certificate.levels[arm]:
                self._pull(arm)

    def _columns(self) -> int:
        """Features per row: the reference's, or the first arm's; arms that differ are set aside."""
        known = [feed.columns for feed in self.feeds if feed.columns is not None]
        wanted = self.metric.columns
        columns = next(iter(known), 1) if wanted is None else wanted
        whose = "the first arm" if wanted is None else "the reference"
        for feed in self.feeds:
            if feed.columns not in (None, columns):
                feed.set_aside(f"its rows have {feed.columns} columns, {whose} has {columns}")
        return columns

    def _admit(self) -> None:
        """Let the next arm join, with a first batch."""
        arm = -self.waiting.pop()[1]
        feed = self.feeds[arm]
        self.joined[arm] = self.state.step
        kept = feed.pull(self._affordable(arm))
        if feed.columns not in (None, self.columns):
            feed.set_aside(f"its rows have {feed.columns} columns, other arms have {self.columns}")
        self._enter(arm, kept)

    def _spent(self) -> bool:
        return self._affordable(int(np.argmin(self.cost))) == 0

    def _affordable(self, arm: int) -> int:
        """Return how many samples of a batch the budget allows."""
        if self.budget is None:
            return self.state.batch
        left = (self.budget - self.spent) / float(self.cost[arm])
        return max(0, min(self.state.batch, math.floor(left * (1.0 + _ROUNDING))))

    def _pull(self, arm: int) -> None:
        affordable = self._affordable(arm)
        if affordable:
            self._enter(arm, self.feeds[arm].pull(affordable))
        for other in np.flatnonzero(self.state.available):
            self.state.available[other] = self._affordable(int(other)) > 0

    def _enter(self, arm: int, kept: int) -> None:
        """Take note of `kept` new rows: count, looks, index."""
        feed, state = self.feeds[arm], self.state
        state.step += 1
        state.n[arm] = feed.n
        state.rows[arm] = feed.rows
        self.spent += kept * float(self.cost[arm])
        self.picks.append(arm)
        self.drawn.append(kept)
        if feed.dry and feed.n < self.certificate.sizes[0]:
            feed.set_aside(
                f"ran dry after {feed.n} samples; the first look needs {self.certificate.sizes[0]}"
            )
        if feed.failure is None:
            try:
                self._look(arm)
                state.index[arm] = self.policy.index(state, arm)
            except InputError as error:
                feed.set_aside(f"cannot be scored: {error}")
        if feed.failure is not None:
            self.certificate.set_aside(arm)
        state.available[arm] = feed.available

    def _look(self, arm: int) -> None:
        feed, certificate = self.feeds[arm], self.certificate
        while (size := certificate.next_size(arm)) is not None and feed.n >= size:
            estimate = self.metric.estimate(feed.rows[:size])
            if not (math.isfinite(estimate.value) and math.isfinite(estimate.stderr)):
                raise InputError(
                    f"its score at {size} samples is {estimate.value} ± {estimate.stderr}."
                )
            certificate.add(arm, estimate)
            self.looks.append(
                Look(step=self.state.step, arm=feed.name, score=self._score(estimate))
            )
            if time.monotonic() - self._saved > _SAVE_SECONDS:
                self._save()

    def _save(self) -> None:
        if self.record is not None:
            self.record.save({feed.name: feed.record() for feed in self.feeds})
            self._saved = time.monotonic()

    def _score(self, estimate: Estimate, *warnings: Diagnostic) -> Score:
        """Score whose interval belongs to the family of all arms and looks of this run."""
        from scipy.special import ndtr

        level = 1.0 - 2.0 * float(ndtr(-self.score_critical))
        return replace(estimate.warned(*warnings).score(level), level=self.confidence)

    def _selection(self) -> Selection:
        certificate = self.certificate
        scores, losses = self._final_scores()
        answer = certificate.answer()
        top = self._best_guess(losses) if answer is None else answer
        order = sorted(
            range(len(self.names)),
            key=lambda arm: (arm not in top, certificate.levels[arm] == 0, losses[arm]),
        )
        return Selection(
            best=self.names[top[0]],
            certified=answer is not None,
            confidence=self.confidence,
            samples={feed.name: feed.n for feed in self.feeds},
            scores={self.names[arm]: scores[arm] for arm in order if arm in scores},
            steps=self.state.step,
            top=tuple(self.names[arm] for arm in top),
            stopped=self._stopped(),
            policy=self.policy.name,
            metric=self.metric.name,
            set_aside={feed.name: feed.failure for feed in self.feeds if feed.failure is not None},
            history=History(
                names=self.names,
                picks=_frozen(self.picks),
                drawn=_frozen(self.drawn),
                looks=tuple(self.looks),
                joined=tuple(int(step) for step in self.joined),
            ),
            cost=self.spent,
            notes=self._notes(),
        )

    def _final_scores(self) -> tuple[dict[int, Score], list[float]]:
        """Latest evaluation of every arm, and its loss; of all its rows if it had no look."""
        first = self.certificate.sizes[0]
        scores: dict[int, Score] = {}
        losses = [math.inf] * len(self.feeds)
        for arm, feed in enumerate(self.feeds):
            estimate = self.certificate.latest[arm]
            warnings: list[Diagnostic] = []
            if estimate is None and feed.n >= 2:
                try:
                    estimate = self.metric.estimate(feed.rows)
                except InputError:  # the reason is in `set_aside`
                    continue
                warnings.append(
                    unreliable(
                        "few-samples",
                        f"{feed.n} samples, fewer than the first look ({first}): its interval is "
                        "no part of the joint statement",
                    )
                )
            if estimate is None or not math.isfinite(estimate.value):
                continue
            scores[arm] = self._score(estimate, *warnings)
            losses[arm] = estimate.loss
        return scores, losses

    def _best_guess(self, losses: list[float]) -> tuple[int, ...]:
        """Without a certificate: the `top` undefeated arms with the best estimates.

        An arm that had its first look comes before one that had none: the score of a handful of
        samples is no evidence.
        """
        certificate = self.certificate
        playing = np.flatnonzero(certificate.in_play)
        defeats = certificate.beats[playing].sum(axis=0)
        ranked = sorted(
            playing,
            key=lambda arm: (
                defeats[arm] >= certificate.top,
                certificate.levels[arm] == 0,
                losses[arm],
                -self.state.n[arm],
            ),
        )
        return tuple(int(arm) for arm in ranked[: certificate.top])

    def _stopped(self) -> str:
        if self.policy.certifies and self.certificate.answer() is not None:
            return "certified"
        playing = np.flatnonzero(self.certificate.in_play)
        if any(self._affordable(int(arm)) == 0 for arm in playing):
            return "budget"
        if self.certificate.hopeless_pairs().any():
            return "reference"
        if any(feed.dry or feed.failure is not None for feed in self.feeds):
            return "exhausted"
        return "limit"

    def _notes(self) -> tuple[str, ...]:
        certificate = self.certificate
        first = certificate.sizes[0]
        notes = [
            f"a certified answer is wrong with probability at most {1.0 - self.confidence:.3g} at "
            "any stopping time, if the debiased scores at the planned looks (first: "
            f"{first} samples) are normal with their stated standard errors and arms independent"
        ]
        if len(self.feeds) == 1:
            notes.append("one arm only: nothing to compare it with")
        if self.sampled_reference:
            notes.append(
                "the reference is a sample: the target is the distance to its population, and its "
                "noise is part of every comparison"
            )
        if certificate.answer() is None:
            notes.append("no certificate: " + self._why_not())
        notes += [
            f"{name}: {doubtful} of {levels} looks were unreliable and are no evidence"
            for name, doubtful, levels in zip(
                self.names, certificate.doubtful, certificate.levels, strict=True
            )
            if doubtful
        ]
        notes += [f"{feed.name} ran dry after {feed.n} samples" for feed in self.feeds if feed.dry]
        notes += [
            f"{feed.name} was set aside; the answer is about the other arms"
            for feed in self.feeds
            if feed.failure is not None
        ]
        notes += [
            f"{feed.name}: {len(feed.retried)} failed draws repeated, nothing of them kept "
            f"(first: {feed.retried[0]})"
            for feed in self.feeds
            if feed.retried
        ]
        return tuple(notes)

    def _why_not(self) -> str:
        certificate = self.certificate
        undecided = ", ".join(
            name for name, open_ in zip(self.names, certificate.undecided(), strict=True) if open_
        )
        unscored = [
            name
            for name, level, playing in zip(
                self.names, certificate.levels, certificate.in_play, strict=True
            )
            if playing and level == 0
        ]
        match self._stopped():
            case "budget" if unscored:
                reason = (
                    f"the budget of {self.budget} samples ended before the first look "
                    f"({certificate.sizes[0]} samples) of {', '.join(unscored)}"
                )
            case "budget":
                reason = f"the budget of {self.budget} samples is spent"
            case "reference":
                reason = (
                    "the noise of the reference sample alone exceeds the differences left: only a "
                    "larger reference can tell them apart"
                )
            case "exhausted":
                reason = "arms ran dry or were set aside before the question was settled"
            case _:
                reason = f"the limit of {certificate.sizes[-1]} samples per arm is reached"
        return f"{reason}; undecided: {undecided}"


def _frozen(values: list[int]) -> np.ndarray:
    array = np.array(values, dtype=np.int32)
    array.flags.writeable = False
    return array
