"""The comparison of every checkpoint with all earlier ones, from their estimates.

A look can be wrong in two ways, each of which gets half of the error of the run, in equal parts for
all looks. "Better than every one of the first j": the best of any looks is one of them, so that
a wrong statement needs one certain pair to fail, for whatever j: the quantile of a single pair
will do. "Worse than one of them": the best so far may be so by luck, so that the limit is that of
the largest difference (`Limits`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._text import percent, quoted
from genbounds.decisions._estimates import all_warnings
from genbounds.decisions._looks import Checkpoint, Look, Outcome, State, Track
from genbounds.estimators import (
    Estimate,
    EstimateDifference,
    check_comparable,
    difference,
    shared_rows,
    winner_score,
)
from genbounds.results import Diagnostic, Score, all_reliable
from genbounds.validation import (
    Float,
    InputError,
    check_count,
    check_not_negative,
    check_open_unit,
    check_rng,
)

CROSSINGS = 2000
"""Simulated curves that cross a limit in a whole run: their share is then known to 2 %."""

NO_NOISE = 1e-12
"""Variance of a difference, relative to the others, below which it is rounding."""

BLOCK = 32
"""Differences that are simulated at a time."""


class Following:
    """All looks so far, of the number that is planned; `Monitor` describes what it is told."""

    def __init__(
        self, metric: str, looks: int, level: float, patience: int, min_delta: Any, rng: Any
    ) -> None:
        self.metric = metric
        self.planned = check_count("looks", looks, minimum=1)
        self.level = check_open_unit("level", level)
        self.patience = check_count("patience", patience)
        self.min_delta = None if min_delta is None else check_not_negative("min_delta", min_delta)
        self.looks: list[Look] = []
        self._estimates: list[Estimate] = []
        self._relied: list[int] = []  # looks that take part in comparisons
        steps = max(self.planned - 1, 1)
        error = 1.0 - self.level
        self._pair_level = 1.0 - error / steps  # two-sided: half of it is used
        self._gain_level = 1.0 - 2.0 * error / (steps * self.patience)
        self._limits = Limits(self.planned, error / 2.0, check_rng(rng).spawn(1)[0])

    def check_step(self, step: object) -> float:
        """Refuse a step that does not follow, or one look too many."""
        value = step.item() if isinstance(step, (np.integer, np.floating)) else step
        if isinstance(value, bool) or not (
            isinstance(value, (int, float)) and math.isfinite(value)
        ):
            raise InputError(f"must be a finite number; got {quoted(step)}.", argument="step")
        if self.looks and not value > self.looks[-1].step:
            raise InputError(
                f"must grow from look to look; got {quoted(step)} after {self.looks[-1].step!r}.",
                argument="step",
            )
        if len(self.looks) == self.planned:
            raise InputError(
                f"was planned as {self.planned}, and there are more checkpoints: plan more.",
                argument="looks",
            )
        return value

    def add(self, step: object, estimate: Estimate) -> Look:
        """Compare one more checkpoint with all earlier ones; nothing is kept if that fails."""
        number = self.check_step(step)
        trial = copy.copy(self)  # Ctrl-C leaves this one as it was: what it holds is never changed
        look = trial._add(number, estimate)
        self.__dict__ = trial.__dict__
        return look

    def _add(self, step: float, estimate: Estimate) -> Look:
        t, name = len(self._estimates), f"step {step!r}"
        if t:
            check_comparable({f"step {self.looks[0].step!r}": self._estimates[0], name: estimate})
        estimate = self._beside_looks(name, estimate)
        self._estimates = [*self._estimates, estimate.for_differences()]
        state: State = "unreliable"
        better: list[int] = []
        worse: list[int] = []
        gain = None
        if estimate.reliable:
            gaps = {s: self._loss_gap(t, s) for s in self._relied}
            self._limits = self._limits.copied()
            limit = self._limits.next(np.array([gap.stderr**2 for gap in gaps.values()]))
            # Noise that is not there shows nothing.
            low, high = self._pair_level, 1.0 - 2.0 * float(scipy.special.ndtr(-limit))
            noisy = {s: gap for s, gap in gaps.items() if gap.noisy}
            better = list(takewhile(lambda s: s in noisy and gaps[s].interval(low)[1] < 0.0, gaps))
            worse = [s for s, gap in noisy.items() if high < 1.0 and gap.interval(high)[0] > 0.0]
            gain = self._gain([gaps[s] for s in self._relied[-self.patience :]])
            state = "undecided" if gaps else "first"
            if gaps and len(better) == len(gaps):
                state = "improved"
            if worse:
                state = "collapsed"
            self._relied = [*self._relied, t]
        steps = [*(look.step for look in self.looks), step]
        look = Look(
            step=step,
            number=t + 1,
            score=self._band(estimate),
            state=state,
            better_than=tuple(steps[s] for s in better),
            worse_than=tuple(steps[s] for s in worse),
            best=steps[self._best()],
            gain_high=gain,
        )
        self.looks = [*self.looks, look]
        return look

    def _beside_looks(self, name: str, estimate: Estimate) -> Estimate:
        """Return an estimate that says which rows are copies of those of looks so far."""
        own = estimate.sample.row_ids
        found = [
            warning
            for look, each in zip(self.looks, self._estimates, strict=True)
            for warning in shared_rows({f"step {look.step!r}": each.sample.row_ids, name: own})
        ]
        return estimate.warned(*found)

    def kept(self, fresh: Estimate | None = None) -> Checkpoint:
        """Return the checkpoint to keep, scored by `fresh` rows or corrected for the choice."""
        if not self.looks:
            raise InputError("nothing to choose from: update with a sample first.")
        best = self._best()
        step, chosen = self.looks[best].step, self.looks[best].score.value
        if fresh is None:
            return Checkpoint(step=step, score=self._corrected(best), as_chosen=chosen, fresh=False)
        score = self._beside_looks("the fresh sample", fresh).score(self.level)
        return Checkpoint(step=step, score=score, as_chosen=chosen, fresh=True)

    def track(self, *, fresh: Estimate | None = None, warnings: Sequence[Diagnostic] = ()) -> Track:
        """Return everything so far, with the verdict at the last look."""
        kept = self.kept(fresh)
        first = self._estimates[0]
        scores = {look.step: look.score for look in self.looks}
        doubts = [
            warning
            for score in (*scores.values(), kept.score)
            for warning in score.warnings
            if warning.severity == "unreliable"
        ]
        return Track(
            metric=self.metric,
            level=self.level,
            planned=self.planned,
            scores=scores,
            looks=tuple(self.looks),
            kept=kept,
            verdict=self._verdict(reliable=all_reliable(warnings)),
            patience=self.patience,
            min_delta=self.min_delta,
            gain_high=self.looks[-1].gain_high,
            higher_is_better=first.higher_is_better,
            log_scale=first.log_scale,
            warnings=all_warnings(warnings, doubts),
            assumptions=self._assumptions(fresh is not None),
        )

    def _verdict(self, *, reliable: bool) -> Outcome:
        """Say what the looks show; a run that is not `reliable` has no plateau."""
        last = self.looks[-1]
        relied = [self.looks[s] for s in self._relied]
        if last.collapsed:
            return "collapsed"
        if last.state == "unreliable" or len(relied) < 2:
            return "undecided"
        window = min(self.patience, len(relied) - 1)
        before = len(relied) - window
        if any(len(look.better_than) >= before for look in relied[-window:]):
            return "improved"
        small = self.min_delta is None or (last.gain_high or 0.0) <= self.min_delta
        return "plateau" if reliable and last.gain_high is not None and small else "undecided"

    def _loss_gap(self, a: int, b: int) -> EstimateDifference:
        """Difference a - b, turned so that a positive one means that a is worse."""
        one, two = self._estimates[a], self._estimates[b]
        return difference(two, one) if one.higher_is_better else difference(one, two)

    def _gain(self, gaps: list[EstimateDifference]) -> float | None:
        """Return the upper limit of what the last look has gained on any of these."""
        if len(gaps) < self.patience:
            return None
        return max(0.0, *(-gap.interval(self._gain_level)[0] for gap in gaps))

    def _band(self, estimate: Estimate) -> Score:
        score = estimate.score(1.0 - (1.0 - self.level) / self.planned)
        together = (
            f"the intervals of all {self.planned} looks hold together with probability "
            f"{percent(self.level)} (Bonferroni)"
        )
        return replace(score, level=self.level, assumptions=(*score.assumptions, together))

    def _best(self) -> int:
        """Return the look with the least loss, among those that can be relied on."""
        candidates = self._relied or range(len(self._estimates))
        return min(candidates, key=lambda t: self._estimates[t].loss)

    def _corrected(self, best: int) -> Score:
        """Correct the score of the chosen look for the choice."""
        look, estimate = self.looks[best], self._estimates[best]
        if best not in self._relied or len(self._relied) < 2:
            return look.score
        others = [self._estimates[t] for t in self._relied if t != best]
        rivals = [(one, difference(estimate, one)) for one in others]
        found = winner_score(estimate, rivals, self.level, of="looks")
        band = self._band(estimate)
        if (band.low, band.high) == (look.score.low, look.score.high):
            return found
        # Its interval is its own, which holds at any choice as that of all looks together.
        value = min(max(found.value, look.score.low), look.score.high)
        return replace(look.score, value=value, details=found.details)

    def _assumptions(self, fresh: bool) -> tuple[str, ...]:
        drawn = "the samples of the checkpoints are independent of one another"
        if any(estimate.sample.units is not None for estimate in self._estimates):
            drawn = "samples of the checkpoints with equal group ids share what they were drawn for"
        kept = "the score of the kept checkpoint is corrected for its choice; rows drawn anew "
        kept += "would give a shorter interval"
        if fresh:
            kept = "the kept checkpoint is scored by fresh rows, which took no part in its choice"
        error = percent(1.0 - self.level)
        planned = (
            f"the number of looks ({self.planned}) was fixed beforehand; then the probability "
            f"that any look is wrongly called improved or collapsed is at most {error}"
        )
        doubtful = len(self.looks) - len(self._relied)
        left_out = f"{doubtful} of {len(self.looks)} looks are unreliable: they are not compared"
        return planned, drawn, kept, *([left_out] if doubtful else [])


class Limits:
    """When the largest of the differences to all earlier looks is too large to be noise.

    Curves of pure noise are simulated, with the covariance of the looks. The error probability is
    spent evenly: at each look that share of the curves crosses which have not crossed before.
    Pure noise is the least favourable case: a look is called wrongly only if no earlier one is
    better in truth, and every earlier one that is worse makes its own difference smaller.

    Parameters
    ----------
    looks : int
        Planned looks.
    error : float
        Probability with which a curve of pure noise crosses at any look.
    rng : Generator
    """

    def __init__(self, looks: int, error: float, rng: np.random.Generator) -> None:
        self._share = error / max(looks - 1, 1)
        self._rng = rng
        self._draws = math.ceil(CROSSINGS / error)
        # One normal per look and curve; a curve is `factor @ normals`.
        self._normals: NDArray[np.float32] = np.empty((looks, self._draws), dtype=np.float32)
        self._factor: Float = np.zeros((0, 0))
        self._alive = np.ones(self._draws, dtype=bool)

    def copied(self) -> Limits:
        """Return the same limits, whose next one is the same whatever this one's were."""
        twin = copy.copy(self)
        twin._rng, twin._alive = copy.deepcopy(self._rng), self._alive.copy()
        return twin

    def next(self, variances: Float) -> float:
        """Return the limit for a new look, in standard errors.

        Parameters
        ----------
        variances : ndarray of shape (looks so far,)
            Of the differences between the new look and each of the earlier ones.

        Returns
        -------
        float
            Infinite where nothing can differ.
        """
        self._append(variances)
        apart = self._factor[-1] - self._factor[:-1]
        sizes = np.sqrt((apart**2).sum(axis=1))
        distinct = sizes > math.sqrt(NO_NOISE * max(variances, default=0.0))
        if not distinct.any():
            return math.inf
        crossing = round(self._share * self._draws)
        if crossing < 1:  # thousands of looks
            return -float(scipy.special.ndtri(self._share / int(distinct.sum())))
        weights = (apart[distinct] / sizes[distinct, None]).astype(np.float32)
        normals = self._normals[: weights.shape[1]]
        blocks = (weights[k : k + BLOCK] for k in range(0, len(weights), BLOCK))
        largest = reduce(np.maximum, ((block @ normals).max(axis=0) for block in blocks))
        alive = largest[self._alive]
        place = alive.size - crossing - 1
        limit = float(np.partition(alive, place)[place])
        self._alive &= largest <= limit
        return limit

    def _append(self, variances: Float) -> None:
        """Place the new look so that it is as far from the others as the variances say."""
        t = len(self._factor)
        self._factor = factor = np.pad(self._factor, (0, 1))
        self._normals[t] = self._rng.standard_normal(self._draws, dtype=np.float32)
        if t == 0:  # the first look is the origin
            return
        row = factor[t]
        shared = (variances[0] + (factor[:t] ** 2).sum(axis=1) - variances) / 2.0
        for s in range(1, t):
            if factor[s, s] > 0.0:
                row[s] = (shared[s] - factor[s, :s] @ row[:s]) / factor[s, s]
        rest = float(variances[0] - row @ row)
        row[t] = math.sqrt(rest) if rest > NO_NOISE * float(variances[0]) else 0.0
