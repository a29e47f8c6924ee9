"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from genbounds._tables import Line, Warned
from genbounds._text import percent, short, shown
from genbounds.results import Diagnostic, Score, hedged, listing, titled
from genbounds.validation import Float, InputError


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
        shortfall = self._shortfall(truth, higher_is_better)
        return _running_mean(shortfall)

    def optimal_pick_ratio(
        self, truth: Mapping[str, float], *, higher_is_better: bool = False
    ) -> Float:
        """Share of steps spent on a best arm, after each step (the papers' OPR).

        `truth` and `higher_is_better` as for `average_regret`.
        """
        shortfall = self._shortfall(truth, higher_is_better)
        return _running_mean((shortfall == 0.0).astype(np.float64))

    def _shortfall(self, truth: Mapping[str, float], higher_is_better: bool) -> Float:
        """Of each pick, against the best arm there was."""
        losses = self._values(truth) * (-1.0 if higher_is_better else 1.0)
        steps = np.arange(self.picks.size)
        best = np.full(self.picks.size, np.inf)
        for loss, joined in zip(losses, self.joined or (0,) * losses.size, strict=True):
            if joined >= 0:
                best = np.where(steps >= joined, np.minimum(best, loss), best)
        shortfall: Float = losses[self.picks] - best
        return shortfall

    def _values(self, truth: Mapping[str, float]) -> Float:
        missing = [name for name in self.names if name not in truth]
        if missing:
            raise InputError(f"has no value for {', '.join(map(repr, missing))}.", argument="truth")
        return np.array([truth[name] for name in self.names], dtype=np.float64)


def _running_mean(x: Float) -> Float:
    mean: Float = np.cumsum(x) / np.arange(1, x.size + 1)
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
