"""The result of a run, and of a run with contexts: which model for which kind of prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds._tables import InHand, Line, Warned
from genbounds._text import count, number, percent, short, shown
from genbounds.results import Diagnostic, Score, hedged, listing, titled
from genbounds.validation import Float, InputError

Context = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One evaluation of one arm during a run.

    Attributes
    ----------
    step : int
        Batches drawn by then, from all arms together.
    arm : str
    score : Score
        From the arm's first `score.n` samples; its interval belongs to the run's simultaneous
        family (`Selection.scores`).
    """

    step: int
    arm: str
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmStatus:
    """State of one arm when the run ended.

    Attributes
    ----------
    state : {"live", "set aside"}
        An arm that is set aside has no part in the answer.
    reason : str
        Why it was set aside; of a live arm, what happened with it, such as that it is exhausted.
    """

    state: Literal["live", "set aside"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Course of a run, compact enough to keep and rich enough to plot.

    Attributes
    ----------
    names : tuple of str
        The arms; `picks` refers to them by position.
    picks : ndarray of int, shape (steps,)
        Arm of each step, read-only.
    drawn : ndarray of int, shape (steps,)
        Samples kept from each step, read-only.
    looks : tuple of Look
        All evaluations, in order.
    joined : tuple of int
        Step at which each arm joined the run, -1 if it never did; empty if all were there from
        the start.
    """

    names: tuple[str, ...]
    picks: NDArray[np.int32]
    drawn: NDArray[np.int32]
    looks: tuple[Look, ...]
    joined: tuple[int, ...] = ()

    def average_regret(
        self, truth: Mapping[str, float], *, higher_is_better: bool = False
    ) -> Float:
        """Mean shortfall of the picks against the best arm, after each step: Regret(t)/t, M25 (3).

        The best of those that have joined by then.

        Parameters
        ----------
        truth : mapping of str to float
            True score of every arm.
        higher_is_better : bool

        Returns
        -------
        ndarray of shape (steps,)
        """
        return _mean_so_far(self._shortfall(truth, higher_is_better))

    def optimal_pick_ratio(
        self, truth: Mapping[str, float], *, higher_is_better: bool = False
    ) -> Float:
        """Share of steps spent on a best arm, after each step (the papers' OPR).

        `truth` and `higher_is_better` as for `average_regret`.
        """
        return _mean_so_far(self._shortfall(truth, higher_is_better) == 0.0)

    def _shortfall(self, truth: Mapping[str, float], higher_is_better: bool) -> Float:
        """Of each pick, against the best arm there was."""
        missing = [name for name in self.names if name not in truth]
        if missing:
            raise InputError(f"has no value for {', '.join(map(repr, missing))}.", argument="truth")
        losses = np.array([truth[name] for name in self.names], dtype=np.float64)
        losses *= -1.0 if higher_is_better else 1.0
        joined = np.array(self.joined or [0] * losses.size)
        there = (joined >= 0) & (np.arange(self.picks.size)[:, None] >= joined)
        shortfall: Float = losses[self.picks] - np.where(there, losses, np.inf).min(axis=1)
        return shortfall


def _mean_so_far(values: NDArray[Any]) -> Float:
    mean: Float = np.cumsum(values) / np.arange(1, values.size + 1)
    return mean


class Drawn(Warned):
    """What a run has drawn, whatever it was after."""

    __slots__ = ()

    samples: dict[str, int]
    arms: dict[str, ArmStatus]

    @property
    def total_samples(self) -> int:
        """Samples drawn from all arms."""
        return sum(self.samples.values())

    @property
    def set_aside(self) -> dict[str, str]:
        """Arms taken out of the run, with the reason."""
        return {name: arm.reason for name, arm in self.arms.items() if arm.state == "set aside"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Drawn):
    """Which arm is best, whether that is certified, and what it took.

    Attributes
    ----------
    best : str
        The certified arm; without a certificate, the undefeated arm with the best estimate (of
        those that had their first look, if any had; of the live ones, if any are left).
    certified : bool
        Whether `top` holds with probability at least `confidence` (see `notes` for what that
        assumes). Never with fewer than two live arms, nor where `top` leaves none of them out.
    confidence : float
    tolerance : float
        By how much another arm may be better than a certified one; in units of the score.
    samples : dict of str to int
        Samples drawn from each arm.
    scores : dict of str to Score
        Latest evaluation of each arm, best first. The intervals of all arms at all looks of the
        run hold together with probability `confidence`, so that they may be read at any time.
    steps : int
        Batches drawn.
    top : tuple of str
        The best arms as asked for (`best` first); one unless ``top > 1`` was asked.
    undecided : tuple of str
        Without a certificate: arms neither proven to be among the best nor proven not to be.
    stopped : str
        Why the run ended: "certified", "budget", "limit" (samples an arm may give), "reference"
        (the reference sample is too small to separate the leading models), "exhausted" (an arm
        has no samples left, or was set aside), "no rival" (no live arm is left to compare with).
    policy, metric : str
    cost : float
        Of all samples; their number if no costs were given.
    arms : dict of str to ArmStatus
        Whether each arm is live or set aside, and why.
    history : History
    notes : tuple of str
        What the certificate assumes, and everything out of the ordinary.
    warnings : tuple of Diagnostic
        Why the scores of `top` are unreliable, if they are; others stand with the scores.
    """

    _json = "* -history set_aside reliable"

    _names = "Arm"

    best: str
    certified: bool
    confidence: float
    samples: dict[str, int]
    scores: dict[str, Score]
    steps: int
    top: tuple[str, ...]
    stopped: str
    policy: str
    metric: str
    cost: float = 0.0
    arms: dict[str, ArmStatus] = field(default_factory=dict)
    history: History = field(repr=False)
    undecided: tuple[str, ...] = ()
    tolerance: float = 0.0
    notes: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def verdict(self) -> str:
        """Whether the answer is certified, in words."""
        if not self.certified:
            if self.stopped != "no rival":
                return "not certified"
            rivals = ", ".join(map(shown, self.set_aside))
            return f"not certified, compared with nothing: {rivals} set aside"
        margin = f": no other is better by more than {short(self.tolerance)}"
        certified = f"certified at {percent(self.confidence)}{margin if self.tolerance else ''}"
        return hedged(certified, self.warnings)

    def _lines(self) -> list[Line]:
        return [
            Line.of(name, score, stderr=score.stderr, samples=self.samples[name])
            for name, score in self.scores.items()
        ]

    def _caption(self) -> str:
        top = ", ".join(map(shown, self.top))
        state = "certified" if self.certified else "not certified"
        title = titled(self.scores.values(), self.metric)
        at = f"{percent(self.confidence)} for all arms at all times"
        return f"{title}, {at}; best: {top} ({state})"

    def __repr__(self) -> str:
        best = ", ".join(map(shown, self.top))
        head = (
            f"Selection(best {best}: {self.verdict}; {self.policy}, {self.metric}, "
            f"{self.total_samples} samples, stopped: {self.stopped})"
        )
        rows: list[tuple[str, Score | None, str]] = [
            (shown(name), score, f"{self.samples[name]} samples")
            for name, score in self.scores.items()
        ]
        rows += [(shown(name), None, f"set aside: {why}") for name, why in self.set_aside.items()]
        return listing(head, rows, *self.warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSelection(InHand):
    """Which arm is best in each context, as far as that is certified.

    Attributes
    ----------
    contexts : dict of str or int to Selection
        The run of each context. All their certified winners are right together, and all their
        score intervals hold together, with probability `confidence` each.
    recommended : dict of str or int to str or None
        One arm for each context, for who must choose now: the winner; where nothing is certified,
        the best of the undefeated arms by estimates that are pooled over contexts. That is an
        estimate without any guarantee. None where every arm was set aside.
    confidence : float
    policy, metric : str
    """

    _json = "* winners undecided certified samples=total_samples cost"

    _names = "Context"

    contexts: dict[Context, Selection]
    recommended: dict[Context, str | None]
    confidence: float
    policy: str
    metric: str

    @property
    def winners(self) -> dict[Context, str | None]:
        """The certified arm of each context; None where the context is undecided."""
        return {
            context: selection.best if selection.certified else None
            for context, selection in self.contexts.items()
        }

    @property
    def undecided(self) -> dict[Context, tuple[str, ...]]:
        """The contexts without a winner, and between which arms each is undecided."""
        return {
            context: selection.undecided
            for context, selection in self.contexts.items()
            if not selection.certified
        }

    @property
    def certified(self) -> bool:
        """Whether every context has its winner."""
        return not self.undecided

    @property
    def recommended_scores(self) -> dict[str, Score]:
        """Score of each recommended arm that has one, by the context as text."""
        return {
            str(context): selection.scores[arm]
            for context, selection in self.contexts.items()
            for arm in [self.recommended[context]]
            if arm is not None and arm in selection.scores
        }

    @property
    def set_aside(self) -> dict[Context, dict[str, str]]:
        """Arms that count no longer, with the reason, in each context that has some."""
        return {
            context: selection.set_aside
            for context, selection in self.contexts.items()
            if selection.set_aside
        }

    @property
    def total_samples(self) -> int:
        """Samples drawn from all arms in all contexts."""
        return sum(selection.total_samples for selection in self.contexts.values())

    @property
    def cost(self) -> float:
        """Cost of all samples; their number if no costs were given."""
        return sum(selection.cost for selection in self.contexts.values())

    def __str__(self) -> str:
        """Return one line for a log."""
        total = len(self.contexts)
        found = ", ".join(
            f"{shown(str(context))}: {'undecided' if winner is None else shown(winner)}"
            for context, winner in self.winners.items()
        )
        aside = "".join(
            f"; set aside for {shown(str(context))}: {', '.join(map(shown, arms))}"
            for context, arms in self.set_aside.items()
        )
        return (
            f"{self.metric}, {total - len(self.undecided)} of {count(total, 'context')} certified, "
            f"together at {percent(self.confidence)}: {found}; "
            f"{number(self.total_samples)} samples{aside}"
        )

    def __repr__(self) -> str:
        return f"ContextSelection({self})"

    def _lines(self) -> list[Line]:
        scores = self.recommended_scores
        return [
            Line.of(
                str(context),
                scores.get(str(context), Line(name="", value=math.nan)),
                winner=shown(selection.best) if selection.certified else "undecided",
                undecided=", ".join(map(shown, selection.undecided)) or "–",
                recommended=shown(self.recommended[context] or "–"),
                samples=selection.total_samples,
            )
            for context, selection in self.contexts.items()
        ]

    def _caption(self) -> str:
        return (
            f"{self.metric} of the recommended arm in each context, "
            f"{percent(self.confidence)} intervals"
        )
