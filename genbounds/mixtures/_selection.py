"""The result of a run that looks for the best mixture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from genbounds._tables import Line
from genbounds._text import interval, number, percent, short, shown
from genbounds.results import Diagnostic, Score, hedged, titled
from genbounds.select._selection import ArmStatus, Drawn


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MixtureSelection(Drawn):
    """A mixture of arms, and how far it is at most from the best one.

    Attributes
    ----------
    weights : dict of str to float
        Share of every live arm; they add up to one.
    score : Score
        Of the mixture with these weights.
    scores : dict of str to Score
        Of every live arm alone. The intervals of mixture and arms at all looks of the run hold
        together with probability `confidence`.
    gap_high : float
        Upper confidence bound of how much better the score of the best mixture is; in units of
        the score. Infinite where RKE has none yet.
    certified : bool
        Whether the gap is at most `tolerance` with probability at least `confidence`: `gap_high`
        says so, from rows that are not in doubt.
    tolerance, confidence : float
    samples : dict of str to int
        Samples drawn from each arm.
    looks : int
        How often the bound was computed.
    steps : int
        Batches drawn.
    stopped : str
        Why the run ended: "certified", "budget", "limit", "exhausted" or "no rival", as for
        `Selection`.
    policy, metric : str
    cost : float
        Of all samples; their number if no costs were given.
    arms : dict of str to ArmStatus
        Whether each arm is live or set aside, and why.
    warnings : tuple of Diagnostic
        Of the last look.
    assumptions : tuple of str
    """

    _json = "* set_aside reliable"

    _names = "Arm"

    weights: dict[str, float]
    score: Score
    scores: dict[str, Score]
    gap_high: float
    certified: bool
    tolerance: float
    confidence: float
    samples: dict[str, int]
    looks: int
    steps: int
    stopped: str
    policy: str
    metric: str
    cost: float
    arms: dict[str, ArmStatus] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for a log."""
        score = f"{number(self.score.value)} {interval(self.score.low, self.score.high)}"
        side = "below" if self.score.higher_is_better else "above"
        gap = f"at most {number(self.gap_high)}" if math.isfinite(self.gap_high) else "maybe far"
        bound = f"{gap} {side} the best mixture ({percent(self.confidence)})"
        verdict = "certified" if self.certified else f"not certified, stopped: {self.stopped}"
        took = f"tolerance {short(self.tolerance)}, {number(self.total_samples)} samples"
        text = f"{self.metric} of {in_words(self.weights)}: {score}, {bound}; {verdict} ({took})"
        return hedged(text, self.warnings)

    def _lines(self) -> list[Line]:
        return [
            Line.of("mixture", self.score, weight=1.0, samples=self.total_samples),
            *(
                Line.of(
                    name, self.scores[name], weight=self.weights[name], samples=self.samples[name]
                )
                for name in largest_first(self.weights)
            ),
        ]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        return f"{title} of the mixture and of each arm, {percent(self.confidence)} intervals"


def largest_first(weights: Mapping[str, float]) -> list[str]:
    """Return the names of models, that with the largest share first."""
    return sorted(weights, key=lambda name: -weights[name])


def in_words(weights: Mapping[str, float]) -> str:
    """Return the shares of a mixture that a reader would see, the largest first."""
    return ", ".join(
        f"{percent(round(weights[name], 3))} {shown(name)}"
        for name in largest_first(weights)
        if weights[name] >= 0.0005
    )
