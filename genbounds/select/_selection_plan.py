"""The result of planning a selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from genbounds._tables import Line, Warned
from genbounds._text import number, percent
from genbounds.results import Diagnostic, Score, hedged, titled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SelectionPlan(Warned):
    """How many samples `run` will draw until the best model is certified.

    Attributes
    ----------
    budget : int or None
        Samples of all models together that suffice with probability `power`; None where the best
        is certified with a smaller probability, whatever the budget.
    feasible : bool
        Whether there is such a budget.
    median : int or None
        Samples that suffice with probability 50 %; None where no number does.
    certified : float
        Probability that a run without a budget ends with a certificate.
    ended : dict of str to float
        Probability of every reason to end: "certified", "reference" (the reference is too small),
        "limit" (samples of a model).
    samples : dict of str to int
        Median number of samples of each model.
    scores : dict of str to Score
        Of the pilots, best first, each with its own interval at `confidence`.
    best : tuple of str
        Models with the best pilots, as many as asked for.
    confidence, power, tolerance : float
        As asked for.
    first_look, limit : int
        Samples of a model at which it is scored first, and at most.
    metric : str
    warnings : tuple of Diagnostic
        Of the pilots.
    assumptions : tuple of str
    """

    _json = "target * reliable"

    _names = "Model"

    target: ClassVar = "best"
    budget: int | None
    feasible: bool
    median: int | None
    certified: float
    ended: dict[str, float]
    samples: dict[str, int]
    scores: dict[str, Score]
    best: tuple[str, ...]
    confidence: float
    power: float
    tolerance: float
    first_look: int
    limit: int
    metric: str
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the answer as one line."""
        return hedged(self._answer(), self.warnings)

    def _answer(self) -> str:
        what = f"the best {len(self.best)}" if len(self.best) > 1 else "the best"
        of = f"{what} of {len(self.samples)} models, certified at {percent(self.confidence)}"
        if self.budget is not None:
            return (
                f"{of}: {number(self.budget)} samples in all suffice with probability "
                f"{percent(self.power)} (median {number(self.median)})"
            )
        reasons = {
            "reference": "the reference is too small",
            "limit": f"{number(self.limit)} samples of a model are not enough",
        }
        otherwise = [
            f"{reason} ({percent(round(self.ended[end], 3))})"
            for end, reason in reasons.items()
            if self.ended[end] > 0.0
        ]
        return (
            f"{of}: with probability {percent(round(self.certified, 3))} only; otherwise "
            f"{', or '.join(otherwise)}"
        )

    def _lines(self) -> list[Line]:
        return [
            Line.of(name, score, samples=self.samples[name]) for name, score in self.scores.items()
        ]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        at = f"{percent(self.confidence)} interval"
        return f"{title} of the pilots, {at}, and samples of each model until it is out"
