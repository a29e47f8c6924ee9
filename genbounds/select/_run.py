"""The loop: a policy picks an arm, the arm draws a batch, the certificate weighs it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from genbounds.arms import Arm
from genbounds.estimators import Expansion, Moments
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Score
from genbounds.select._boundary import critical_value, look_sizes
from genbounds.select._certificate import Certificate
from genbounds.select._debiased import DebiasedUcb, Thompson
from genbounds.select._feed import Feed
from genbounds.select._metric import CustomMetric, Metric, Rows, loss, resolve_metric
from genbounds.select._policies import (
    Elimination,
    EpsilonGreedy,
    Greedy,
    Lucb,
    Random,
    Uniform,
)
from genbounds.select._policy import Policy, State
from genbounds.select._record import Record
from genbounds.select._selection import History, Look, Selection
from genbounds.select._ucb_fd import FdUcb, FidUcb
from genbounds.select._ucb_is import IsUcb, NaiveUcb
from genbounds.validation import InputError, check_choice, check_count, check_open_unit

POLICIES: dict[str, Callable[[], Policy]] = {
    "lucb": Lucb,
    "elimination": Elimination,
    "uniform": Uniform,
    "random": Random,
    "greedy": Greedy,
    "epsilon-greedy": EpsilonGreedy,
    "fd-ucb": FdUcb,
    "fid-ucb": FidUcb,
    "is-ucb": IsUcb,
    "naive-ucb": NaiveUcb,
    "thompson": Thompson,
    "debiased-ucb": DebiasedUcb,
}

SAMPLES_PER_ARM = 50_000
"""Default limit: the sample size at which the field scores a model offline."""

STEPS = 1_000
"""Horizon of the papers' experiments: default budget, in batches, of policies that never stop."""

_SAVE_SECONDS = 30.0
_ROUNDING = 1e-9


def run(
    arms: Mapping[str, Arm],
    reference: Any = None,
    *,
    policy: str | Policy = "lucb",
    metric: str | CustomMetric | Callable[[Rows], Expansion] = "fd",
    confidence: float = 0.95,
    batch: int = 5,
    budget: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    top: int = 1,
    tolerance: float = 0.0,
    limit: int | None = None,
    first_look: int | None = None,
    growth: float = 1.25,
    cost: Mapping[str, float] | None = None,
    joins: Mapping[str, int] | None = None,
    retries: int = 2,
    dtype: Any = None,
    record: str | os.PathLike[str] | None = None,
    progress: Callable[[State], None] | None = None,
) -> Selection:
    """Find the best of several generative models, drawing as few samples as possible.

    Parameters
    ----------
    arms : mapping of str to Arm
        Objects with ``draw(n, rng)`` that return n fresh independent rows, an array (n, d). Fewer
        rows than asked mean that the arm has run dry; what it gave counts. `FeatureArm` makes one
        of recorded features, `EncodedArm` of a generator and an encoder.
    reference : array_like of shape (m, d) or Moments, optional
        Real features. Needed for metrics "fd" and "kid" (there no Moments); if it is itself a
        sample, the target is the distance to its population, and the reference's noise is part
        of every comparison. For "vendi" and "rke" the features that a bandwidth is taken from.
        Not used by others.
    policy : str or Policy
        "lucb", "elimination" and "uniform" stop by themselves; "random", "greedy",
        "epsilon-greedy", "thompson", "fd-ucb", "is-ucb" and "naive-ucb" run until the budget is
        spent. A `Policy` object carries its own options.
    metric : {"fd", "kid", "is", "vendi", "rke"}, CustomMetric or callable
        A score of your own is a `CustomMetric` (value, influence function, bias correction) or
        any function of the rows that returns an `Expansion` (debiased value, its variance, its
        orientation).
    confidence : float
        A certified answer is wrong with probability at most ``1 - confidence``.
    batch : int
        Samples per step.
    budget : int, optional
        Most samples in total (with `cost`: most that they may cost). None: no limit but `limit`
        for policies that stop by themselves, 1,000 batches for the others.
    seed : int
        Each arm draws from its own child stream: its samples do not depend on the policy.
    options : mapping, optional
        For "vendi" and "rke": keyword arguments of `vendi_score` (kernel, bandwidth, order, …);
        for "kid" its degree, gamma and offset.
    top : int
        Name the best `top` arms instead of one.
    tolerance : float
        An arm counts as best if no other is better by more than this, on the scale where the
        score is linear (squared distance for FD, logarithm for IS). 0: strictly best.
    limit : int, optional
        Most samples per arm; by default 50,000, or four first looks if that is more.
    first_look : int, optional
        Samples at which an arm is scored for the first time. By default max(100, 2 d) for FD
        (max(100, 4 d) if the reference is a sample), max(100, 5 classes) for IS, 100 for a
        metric of your own.
    growth : float
        Ratio of neighbouring sample sizes at which an arm is scored.
    cost : mapping of str to float, optional
        Cost of one sample of an arm; 1 for arms not named. Decides what the budget buys, and
        "lucb" settles cheap rivals first. What a certificate needs does not depend on it: arms
        are compared at equal sizes, and each leaves at the first look that it loses.
    joins : mapping of str to int, optional
        Step from which on an arm takes part; 0 for arms not named. A run that has nothing left to
        do lets the next arm join at once. The certificate is about all arms, those to come
        included.
    retries : int
        How often a failed draw (exception, NaN, wrong shape) is repeated before its arm is set
        aside; the run goes on with the others.
    dtype : dtype-like, optional
        Floating type in which the samples are kept, such as "float16" to halve the memory of
        float32 features: 20 arms with 5,000 samples of 2,048 features then take 0.4 GB. None: as
        the arms return them. Scores are always computed in float64.
    record : path-like, optional
        Folder that keeps the samples. The same call with the same folder continues an interrupted
        run without drawing them again, with the same result as if uninterrupted; a larger budget
        is allowed, and further arms behind the others.
    progress : callable, optional
        Called with the `State` after every round.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If an argument is not legal, every arm had to be set aside, or files that the features of
        arms and reference were read from name different encoders.

    Notes
    -----
    The certificate assumes that at the planned looks the debiased scores of an arm are jointly
    normal with the stated standard errors (asymptotically true for any law with the moments that
    the estimator asks for) and that arms are independent; it holds at any stopping time, whatever
    the policy does. Derivation, error rates and sample counts: docs/selection.md.

    References
    ----------
    .. [1] S. Kalyanakrishnan et al., "PAC subset selection in stochastic multi-armed bandits",
       ICML 2012 (LUCB).
    .. [2] P. Armitage, C. K. McPherson and B. C. Rowe, "Repeated significance tests on
       accumulating data", J. Royal Statistical Society A 132, 1969.
    .. [3] X. Hu, H.-F. Leung and F. Farnia, "A multi-armed bandit approach to online selection and
       evaluation of generative models", AISTATS 2025 (FD-UCB, IS-UCB).
    """
    chosen = _policy(policy)
    prepared = resolve_metric(metric, reference, options)
    chosen.check(prepared)
    confidence = check_open_unit("confidence", confidence)
    taking_part = _arms(arms)
    check_same_encoder(
        {"`reference`": origin_of(reference)}
        | {f"arm {name!r}": origin_of(arm) for name, arm in taking_part.items()}
    )
    loop = _Loop(
        taking_part,
        policy=chosen,
        metric=prepared,
        reference=None if prepared.reference is None else prepared.reference.moments,
        confidence=confidence,
        batch=check_count("batch", batch),
        budget=None if budget is None else check_count("budget", budget),
        seed=check_count("seed", seed, minimum=0),
        top=check_count("top", top),
        tolerance=_tolerance(tolerance),
        limit=None if limit is None else check_count("limit", limit, minimum=2),
        first_look=None if first_look is None else check_count("first_look", first_look, minimum=2),
        growth=growth,
        cost=_by_arm("cost", cost, arms),
        joins=_by_arm("joins", joins, arms),
        retries=check_count("retries", retries, minimum=0),
        dtype=_dtype(dtype),
        record=record,
    )
    return loop.run(progress)


class _Loop:
    """One run in progress."""

    def __init__(
        self,
        arms: dict[str, Arm],
        *,
        policy: Policy,
        metric: Metric,
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
            raise InputError(f"`top` must be smaller than the number of arms ({k}); got {top}.")
        if budget is None and not policy.certifies:
            budget = STEPS * batch
        self.names = tuple(arms)
        self.cost = np.array([cost.get(name, 1.0) for name in arms])
        if budget is not None and budget < self.cost.sum() * batch:
            raise InputError(
                f"`budget` ({budget}) does not allow one batch of {batch} for each of {k} arms."
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
            raise InputError("`joins` leaves no arm to start with: at least one must join at 0.")
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
        first = metric.first_look(columns) if first_look is None else first_look
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
            expansion = self.metric.expand(feed.rows[:size])
            if not (math.isfinite(expansion.value) and math.isfinite(expansion.stderr)):
                raise InputError(
                    f"its score at {size} samples is {expansion.value} ± {expansion.stderr}."
                )
            certificate.add(arm, expansion)
            self.looks.append(
                Look(step=self.state.step, arm=feed.name, score=self._score(expansion))
            )
            if time.monotonic() - self._saved > _SAVE_SECONDS:
                self._save()

    def _save(self) -> None:
        if self.record is not None:
            self.record.save({feed.name: feed.record() for feed in self.feeds})
            self._saved = time.monotonic()

    def _score(self, expansion: Expansion, *notes: str) -> Score:
        """Score whose interval belongs to the family of all arms and looks of this run."""
        from scipy.special import ndtr

        level = 1.0 - 2.0 * float(ndtr(-self.score_critical))
        score = expansion.score(level)
        return replace(score, level=self.confidence, notes=score.notes + notes)

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
            expansion = self.certificate.latest[arm]
            notes: list[str] = []
            if expansion is None and feed.n >= 2:
                try:
                    expansion = self.metric.expand(feed.rows)
                except InputError:  # the reason is in `set_aside`
                    continue
                notes.append(f"{feed.n} samples, fewer than the first look ({first}): not covered")
            if expansion is None or not math.isfinite(expansion.value):
                continue
            scores[arm] = self._score(expansion, *notes)
            losses[arm] = loss(expansion)
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


def _policy(policy: str | Policy) -> Policy:
    if isinstance(policy, Policy):
        return policy
    return POLICIES[check_choice("policy", policy, POLICIES)]()


def _arms(arms: Mapping[str, Arm]) -> dict[str, Arm]:
    if not isinstance(arms, Mapping):
        raise InputError(f"`arms` must be a mapping of names to arms; got {type(arms).__name__}.")
    if not arms:
        raise InputError("`arms` is empty: there is nothing to choose from.")
    for name, arm in arms.items():
        if not isinstance(name, str):
            raise InputError(f"`arms` must have names (str) as keys; got {name!r}.")
        if not isinstance(arm, Arm):
            raise InputError(f"arm {name!r} ({type(arm).__name__}) has no method `draw(n, rng)`.")
    return dict(arms)


def _by_arm(name: str, given: Any, arms: Mapping[str, Arm]) -> dict[str, float]:
    """Check a number for each arm: `cost` above 0, `joins` whole."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"`{name}` must map arms to numbers; got {type(given).__name__}.")
    for arm, value in given.items():
        if arm not in arms:
            raise InputError(f"`{name}` names {arm!r}, which is not among the arms.")
        if name == "joins":
            check_count(f"joins[{arm!r}]", value, minimum=0)
        elif not (isinstance(value, Real) and 0.0 < float(value) < math.inf):
            raise InputError(f"`{name}` must be positive and finite; got {value!r} for {arm!r}.")
    return {arm: float(value) for arm, value in given.items()}


def _dtype(value: Any) -> np.dtype[Any] | None:
    if value is None:
        return None
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind != "f":
        raise InputError(f"`dtype` must be a floating type such as 'float32'; got {value!r}.")
    return dtype


def _tolerance(value: object) -> float:
    if isinstance(value, bool) or not (isinstance(value, Real) and 0.0 <= float(value) < math.inf):
        raise InputError(f"`tolerance` must be a finite number of at least 0; got {value!r}.")
    return float(value)
