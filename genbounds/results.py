"""Frozen results. A number leaves the library only with its interval and what that assumes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Severity = Literal["unreliable", "caution"]

Code = Literal[
    "few-samples",
    "misfit",
    "heavy-tails",
    "duplicates",
    "near-duplicates",
    "leak",
    "same-rows",
    "dependent-rows",
    "balanced-classes",
    "reference-size-unknown",
    "random-weights",
    "extreme-scale",
    "encoder-mismatch",
    "moments-only",
    "bias-left",
    "out-of-range",
    "no-variation",
    "depends-on-n",
    "low-rank",
    "near-tie",
]
"""Every code of a `Diagnostic`."""

Method = Literal[
    "second-order",
    "third-order",
    "spectrum-fit",
    "joint-spectrum-fit",
    "contour",
    "joint-contour",
    "one-by-one",
    "u-statistic",
    "empirical",
    "truncated",
    "nystrom",
    "random-features",
    "lanczos",
    "extrapolation",
    "plug-in",
    "influence",
    "mean",
]
"""How a value was computed; docs/choosing.md says when each is chosen."""

CODES: tuple[str, ...] = get_args(Code)
METHODS: tuple[str, ...] = get_args(Method)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One warning about a result.

    Attributes
    ----------
    code : str
        One of `CODES`.
    severity : {"unreliable", "caution"}
        "unreliable": the value or its interval cannot be trusted, and no decision is based on it.
    message : str
        What was seen.
    remedy : str
        What to do about it; may be empty.
    """

    code: Code
    severity: Severity
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.severity}: {self.message}"
        return f"{text}. {self.remedy}" if self.remedy else text

    def to_dict(self) -> dict[str, str]:
        """Plain JSON types."""
        return asdict(self)


def unreliable(code: Code, message: str, remedy: str = "") -> Diagnostic:
    """Return a warning that withdraws trust from the value or its interval."""
    return Diagnostic(code=code, severity="unreliable", message=message, remedy=remedy)


def caution(code: Code, message: str, remedy: str = "") -> Diagnostic:
    """Return a warning that a reader should know of and may accept."""
    return Diagnostic(code=code, severity="caution", message=message, remedy=remedy)


def all_reliable(warnings: Iterable[Diagnostic]) -> bool:
    """Whether no warning is "unreliable"."""
    return all(warning.severity != "unreliable" for warning in warnings)


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
        "debiased", "plugin", …
    method : str
        How the value was computed, one of `METHODS`.
    warnings : tuple of Diagnostic
        Every reason to distrust the value or its interval.
    assumptions : tuple of str
        What the interval assumes.
    details : tuple of str
        How the method was set up (subsets, bandwidth, probes), for whoever wants to repeat it.
    """

    value: float
    low: float
    high: float
    level: float
    stderr: float
    n: int | None
    estimator: str
    method: Method
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()
    details: tuple[str, ...] = ()

    @property
    def reliable(self) -> bool:
        """False exactly if a warning is "unreliable"."""
        return all_reliable(self.warnings)

    @property
    def notes(self) -> tuple[str, ...]:
        """The messages of all warnings, then the assumptions."""
        return (*(warning.message for warning in self.warnings), *self.assumptions)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        text = (
            f"Score({self.value:.6g}, {self.level:.0%} interval [{self.low:.6g}, {self.high:.6g}], "
            f"n={self.n}, {self.estimator}, {self.method})"
        )
        return "\n  ".join((text, *map(str, self.warnings)))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; a float that JSON cannot hold (infinity, NaN) becomes None."""
        return {
            "value": _json(self.value),
            "low": _json(self.low),
            "high": _json(self.high),
            "level": self.level,
            "stderr": _json(self.stderr),
            "n": self.n,
            "estimator": self.estimator,
            "method": self.method,
            "reliable": self.reliable,
            "warnings": [warning.to_dict() for warning in self.warnings],
            "assumptions": list(self.assumptions),
            "details": list(self.details),
            "notes": list(self.notes),
        }


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
        Name of the score, such as "fd".
    level : float
        Joint coverage of all `differences`; also the coverage of each score on its own.
    scores : dict of str to Score
        Best first.
    differences : tuple of Difference
        Every pair, once.
    groups : tuple of tuple of str
        Maximal runs of models, best first, within which no pair is distinguishable
        (a "compact letter display"; groups may overlap).
    warnings : tuple of Diagnostic
        About all models together; each score has its own.
    assumptions : tuple of str
        What the joint statement assumes.
    """

    metric: str
    level: float
    scores: dict[str, Score]
    differences: tuple[Difference, ...]
    groups: tuple[tuple[str, ...], ...]
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The messages of all warnings, then the assumptions."""
        return (*(warning.message for warning in self.warnings), *self.assumptions)

    @property
    def letters(self) -> dict[str, str]:
        """For every model, the letters of its groups: models that share none differ.

        Letters are a, b, … z, aa, ab and so on, those of one model joined by a space where one has
        more than a single character.
        """
        names = [group_letter(index) for index in range(len(self.groups))]
        gap = " " if len(names) > ALPHABET else ""
        return {
            model: gap.join(
                name for name, group in zip(names, self.groups, strict=True) if model in group
            )
            for model in self.scores
        }

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
        letters = self.letters
        for name, score in self.scores.items():
            doubt = "" if score.reliable else "  unreliable"
            lines.append(
                f"  {name:<{width}}  {score.value:>12.6g}  "
                f"[{score.low:.6g}, {score.high:.6g}]  {letters[name]}{doubt}"
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
            "letters": self.letters,
            "contenders": list(self.contenders),
            "warnings": [warning.to_dict() for warning in self.warnings],
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
        }


ALPHABET = 26


def group_letter(index: int) -> str:
    """Name group `index`: a, b, …, z, aa, ab and so on."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, ALPHABET)
        letters = chr(ord("a") + rest) + letters
    return letters


def _json(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value
