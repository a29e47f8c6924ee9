"""Results of following a run: one look, the kept checkpoint, the whole track."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from genbounds._drawing import COLOUR, DASHED, Scale, Style, band, new_axes, tip
from genbounds._tables import InHand, Line, Noted
from genbounds._text import count, interval, listed, number, percent, short
from genbounds.results import Diagnostic, Score, all_reliable, listing, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

State = Literal["first", "improved", "undecided", "collapsed", "unreliable"]
"""What one look says about its checkpoint, compared with all earlier ones."""

Outcome = Literal["improved", "plateau", "collapsed", "undecided"]
"""What a run says at its last look."""

MARKS: dict[State, tuple[str, str]] = {
    "first": ("o", "accent"),
    "improved": ("^", "good"),
    "undecided": ("o", "accent"),
    "collapsed": ("v", "bad"),
    "unreliable": ("X", "muted"),
}
"""Mark and colour of every state of a look: told apart without colours too."""

NAMED_STEPS = 4
"""So many steps are named in a sentence; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(InHand):
    """One checkpoint, compared with all earlier ones.

    Attributes
    ----------
    step : int or float
    number : int
        Of the look, from 1.
    score : Score
        Its interval is the band: those of all looks together hold with probability `score.level`.
    state : str
        "improved": better than every earlier checkpoint. "collapsed": worse than an earlier one.
        "undecided": neither can be said. "first": there is no earlier one. "unreliable": the
        score has such a warning, and takes part in no comparison.
    better_than : tuple
        Steps from the first one on, without a gap, of which every one is worse than this.
    worse_than : tuple
        Steps that are better than this one.
    best : int or float
        The step with the best value so far.
    gain_high : float or None
        This checkpoint is better than any of the last `patience` ones by no more than this, on the
        scale of the differences (logarithms for some scores); None while there are fewer.
    """

    _names = "Step"

    step: float
    number: int
    score: Score
    state: State
    better_than: tuple[float, ...] = ()
    worse_than: tuple[float, ...] = ()
    best: float
    gain_high: float | None = None

    @property
    def improved(self) -> bool:
        """Whether it is better than every earlier checkpoint."""
        return self.state == "improved"

    @property
    def collapsed(self) -> bool:
        """Whether it is worse than an earlier checkpoint."""
        return self.state == "collapsed"

    @property
    def band(self) -> tuple[float, float]:
        """Both ends of the interval of its score."""
        return self.score.low, self.score.high

    def _lines(self) -> list[Line]:
        return [self.score._line(short(self.step), state=self.state)]

    def _caption(self) -> str:
        return f"{self.score.title or 'Score'} of one checkpoint, {jointly(self.score.level)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(InHand):
    """The checkpoint to keep, with a score that its choice does not flatter.

    Attributes
    ----------
    step : int or float
    score : Score
        Of fresh rows, with their own interval; or corrected for the choice, with the interval that
        holds for all looks together.
    as_chosen : float
        The value by which it was chosen: too good on average.
    fresh : bool
        Whether `score` comes from fresh rows.
    """

    _names, _number = "Step", "score.value"

    step: float
    score: Score
    as_chosen: float
    fresh: bool

    def __float__(self) -> float:
        return self.score.value

    def _lines(self) -> list[Line]:
        return [self.score._line(short(self.step))]

    def _caption(self) -> str:
        how = "fresh rows" if self.fresh else "corrected for the choice"
        return f"{self.score.title or 'Score'} of the kept checkpoint, {how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Track(Noted):
    """A training run, one look after the other.

    Attributes
    ----------
    metric : str
    level : float
        With this probability no look of the run is wrongly called improved or collapsed; also that
        of all bands together, and of all `gain_high` together.
    planned : int
        Looks for which the level was planned.
    scores : dict of int or float to Score
        By step; the intervals hold together.
    looks : tuple of Look
    kept : Checkpoint
        The checkpoint to keep, with its honest score.
    verdict : str
        At the last look. "collapsed": it is worse than an earlier checkpoint. "improved": one of
        the last `patience` looks is better than every look before them. "plateau": none is, and
        at most `gain_high` was missed. "undecided": nothing can be said yet.
    patience : int
        Looks without an improvement that make a plateau.
    min_delta : float or None
        A plateau is only called one if `gain_high` is no more than this.
    gain_high : float or None
        The last checkpoint is better than any of the `patience` before it by no more than this;
        a difference of logarithms where `log_scale`. None while there are fewer looks.
    higher_is_better : bool
    log_scale : bool
        Whether differences are those of logarithms.
    warnings : tuple of Diagnostic
        About the run, and why looks are unreliable; each score has its own.
    assumptions : tuple of str
    """

    _json = "* -scores best notes"

    _names = "Step"

    metric: str
    level: float
    planned: int
    scores: dict[float, Score]
    looks: tuple[Look, ...]
    kept: Checkpoint
    verdict: Outcome
    patience: int
    min_delta: float | None = None
    gain_high: float | None = None
    higher_is_better: bool = False
    log_scale: bool = False
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def best(self) -> float:
        """Step of the checkpoint to keep."""
        return self.kept.step

    @property
    def best_score(self) -> Score:
        """Honest score of the checkpoint to keep."""
        return self.kept.score

    @property
    def summary(self) -> str:
        """The verdict in one or two sentences."""
        last = self.looks[-1]
        at = f"({jointly(self.level)})"
        gain = number(self.gain_high)
        if self.log_scale and self.gain_high is not None:
            gain = f"a factor {number(math.exp(self.gain_high))}"
        if self.verdict == "collapsed":
            step, better = short(last.step), _steps(last.worse_than)
            return f"Collapsed: step {step} is worse than {better} {at}."
        if self.verdict == "improved":
            best = max(self.looks[-self.patience :], key=lambda look: len(look.better_than))
            later = "" if best is last else "; no later step is better than all before it"
            step, worse = short(best.step), _steps(best.better_than)
            return f"Improving: step {step} is better than {worse} {at}{later}."
        if self.verdict == "plateau":
            return (
                f"Plateau: none of the last {count(self.patience, 'look')} is better than all "
                f"before; what they may have gained is no more than {gain} {at}."
            )
        of_looks = {warning for score in self.scores.values() for warning in score.warnings}
        if not all_reliable((*last.score.warnings, *(set(self.warnings) - of_looks))):
            return "Nothing can be said: the run or its last score is unreliable, see the warnings."
        if self.gain_high is None:
            return (
                f"Nothing can be said yet: no change is seen, and a plateau takes "
                f"{self.patience + 1} reliable looks."
            )
        return (
            f"Nothing can be said yet: no improvement is seen, but one of up to {gain} may have "
            f"been missed {at}. More samples per look would tell."
        )

    def _lines(self) -> list[Line]:
        return [look._lines()[0] for look in self.looks]

    def _caption(self) -> str:
        return f"{titled(self.scores.values(), self.metric)} by step, {jointly(self.level)}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the values with their bands by step, and mark the kept checkpoint.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = ax or new_axes(3.6)
        scores, steps = [look.score for look in self.looks], [look.step for look in self.looks]
        margin = 0.03 * (steps[-1] - steps[0]) or 1.0
        scale = Scale.growth(scores, [score.value for score in scores])
        Scale(steps[0] - margin, steps[-1] + margin).apply(ax, "step")
        scale.apply(ax, titled(scores, self.metric), upright=True)
        band(ax, steps, scores, scale, COLOUR["accent"])
        values = [max(score.value, scale.floor) for score in scores]
        ax.plot(steps, values, color=COLOUR["accent"], linewidth=1.6)
        ax.axvline(self.best, **DASHED)
        for look, value in zip(self.looks, values, strict=True):
            shape, role = MARKS[look.state]
            style: Style = {"color": COLOUR[role], "markeredgecolor": COLOUR["paper"]}
            size = 7.0 if shape == "o" else 10.0
            (mark,) = ax.plot(look.step, value, shape, markersize=size, **style)
            ends = interval(look.score.low, look.score.high)
            at = f"{number(look.score.value)} {ends}, {look.state}"
            tip(mark, f"step {short(look.step)}: {at}")
        return ax

    @property
    def advice(self) -> str:
        """Which checkpoint to keep, in words; empty if its score is unreliable.

        Only of fresh rows the value is said: corrected for the choice it can lie above the scores
        of all checkpoints.
        """
        score, keep = self.kept.score, f"Keep step {short(self.best)}"
        ends = interval(score.low, score.high)
        if not score.reliable:
            return ""
        if self.kept.fresh:
            return f"{keep}: {number(score.value)} {ends}, from fresh rows."
        return f"{keep}. Corrected for having been chosen, its interval is {ends}."

    def __repr__(self) -> str:
        width = max(len(short(look.step)) for look in self.looks)
        rows = [(short(look.step).rjust(width), look.score, look.state) for look in self.looks]
        head = f"Track({self.metric}, {jointly(self.level)})"
        return listing(head, rows, *filter(None, (self.summary, self.advice)), *self.warnings)


def jointly(level: float) -> str:
    return f"{percent(level)}, all looks together"


def _steps(steps: Sequence[float]) -> str:
    if len(steps) > NAMED_STEPS:
        return f"{len(steps)} earlier ones, step {short(steps[0])} the first of them"
    return f"step{'s' * (len(steps) > 1)} {listed([short(step) for step in steps])}"
