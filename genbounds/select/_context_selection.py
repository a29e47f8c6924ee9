"""The result of a run with contexts: which model for which kind of prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass

from genbounds._tables import InHand, Line
from genbounds._text import count, number, percent, shown
from genbounds.results import Score
from genbounds.select._selection import Selection

Context = str | int


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
        lines, scores, winners = [], self.recommended_scores, self.winners
        for context, selection in self.contexts.items():
            winner = winners[context]
            lines.append(
                Line.of(
                    str(context),
                    scores.get(str(context), Line(name="", value=math.nan)),
                    winner="undecided" if winner is None else shown(winner),
                    undecided=", ".join(map(shown, selection.undecided)) or "–",
                    recommended=shown(self.recommended[context] or "–"),
                    samples=selection.total_samples,
                )
            )
        return lines

    def _caption(self) -> str:
        return (
            f"{self.metric} of the recommended arm in each context, "
            f"{percent(self.confidence)} intervals"
        )
