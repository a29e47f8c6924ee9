"""Frozen results. A number leaves the library only with its interval and what that assumes."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One score of one model.

    Attributes
    ----------
    value : float
        The estimate, in the score's own unit (squared feature units for FD).
    low, high : float
        Ends of the confidence interval.
    level : float
        Nominal coverage of [low, high], in (0, 1).
    stderr : float
        Estimated standard error of `value`.
    n : int or None
        Generated samples used; None if the moments were given as exactly known.
    estimator : str
        "debiased", "plugin", …; `notes` name the route.
    notes : tuple of str
        What the interval assumes, and every reason not to trust it.
    """

    value: float
    low: float
    high: float
    level: float
    stderr: float
    n: int | None
    estimator: str
    notes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        text = (
            f"Score({self.value:.6g}, {self.level:.0%} interval [{self.low:.6g}, {self.high:.6g}], "
            f"n={self.n}, {self.estimator}"
        )
        return text + "".join(f"; {note}" for note in self.notes) + ")"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; a float that JSON cannot hold (infinity, NaN) becomes None."""
        return {key: _json(value) for key, value in asdict(self).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Difference of two models' scores, better minus worse by point estimate.

    `low` and `high` belong to a family: all pairwise intervals of one `Ranking` hold together
    with probability `level`.

    Attributes
    ----------
    better, worse : str
        Names of the models.
    value, low, high : float
        Difference of the scores and its interval, in the units of the score.
    stderr : float
    """

    better: str
    worse: str
    value: float
    low: float
    high: float
    stderr: float

    @property
    def distinguishable(self) -> bool:
        """Whether the simultaneous interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        fields = {key: _json(value) for key, value in asdict(self).items()}
        return fields | {"distinguishable": self.distinguishable}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Several models against one reference, with all pairwise differences.

    Attributes
    ----------
    metric : str
        "fd", "kid", "is", "vendi" or "rke".
    level : float
        Joint coverage of all `differences`; also the coverage of each score on its own.
    scores : dict of str to Score
        Best first.
    differences : tuple of Difference
        Every pair, once.
    groups : tuple of tuple of str
        Maximal runs of models, best first, within which no pair is distinguishable
        (a "compact letter display"; groups may overlap).
    notes : tuple of str
        What the joint statement assumes.
    """

    metric: str
    level: float
    scores: dict[str, Score]
    differences: tuple[Difference, ...]
    groups: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The model with the best point estimate (not necessarily distinguishable)."""
        return next(iter(self.scores))

    @property
    def contenders(self) -> tuple[str, ...]:
        """Models that are not distinguishably worse than some other model."""
        beaten = {pair.worse for pair in self.differences if pair.distinguishable}
        return tuple(name for name in self.scores if name not in beaten)

    def difference(self, a: str, b: str) -> Difference:
        """Return the difference between models `a` and `b`, in whichever order it is stored."""
        for pair in self.differences:
            if {pair.better, pair.worse} == {a, b}:
                return pair
        raise KeyError(f"no pair ({a!r}, {b!r}) in this ranking")

    def __repr__(self) -> str:
        lines = [f"Ranking({self.metric}, {self.level:.0%} joint)"]
        width = max((len(name) for name in self.scores), default=0)
        for name, score in self.scores.items():
            letters = "".join(
                _letter(index) for index, group in enumerate(self.groups) if name in group
            )
            lines.append(
                f"  {name:<{width}}  {score.value:>12.6g}  "
                f"[{score.low:.6g}, {score.high:.6g}]  {letters}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "metric": self.metric,
            "level": self.level,
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "differences": [pair.to_dict() for pair in self.differences],
            "groups": [list(group) for group in self.groups],
            "contenders": list(self.contenders),
            "notes": list(self.notes),
        }


def _letter(index: int) -> str:
    """Name group `index`: a, b, …, z, aa, ab and so on."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _json(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value
