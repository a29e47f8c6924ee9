"""Frozen results. A number leaves the library only with its interval and what that assumes."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, count, islice, product
from string import ascii_lowercase
from typing import Any, Literal, get_args
from unicodedata import normalize

from genbounds._errors import InputError
from genbounds._tables import Diagnostic as Diagnostic
from genbounds._tables import InHand, Line, Noted, Warned
from genbounds._tables import Severity as Severity
from genbounds._tables import all_reliable as all_reliable
from genbounds._tables import hedged as hedged
from genbounds._text import display, number, percent, quoted
from genbounds.diagnostics import CODES as CODES

Method = Literal[
    "second-order", "third-order", "spectrum-fit", "joint-spectrum-fit", "contour", "joint-contour",
    "one-by-one", "u-statistic", "empirical", "truncated", "nystrom", "random-features", "lanczos",
    "extrapolation", "plug-in", "influence", "mean", "neighbours",
]  # fmt: skip
"""How a value was computed; docs/methods.md says when each is chosen."""

METHODS: tuple[str, ...] = get_args(Method)


LARGEST_LEAN = 0.1
"""Distance of a value from the middle of its interval, over half the width, up to which a line for
a paper prints ±."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Warned):
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
    title : str
        What is measured, such as "Fréchet distance"; may be empty.
    reference_n : int or None
        Reference samples; None if there is no reference or its moments were given as exact.
    encoder : str
        Which encoder made the features, where they say so.
    higher_is_better : bool
    """

    _json = "* -higher_is_better reliable notes"

    _names, _number = "Score", "value"

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
    title: str = ""
    reference_n: int | None = None
    encoder: str = ""
    higher_is_better: bool = False

    def __float__(self) -> float:
        return self.value

    def citation(self) -> str:
        """Return the line to print in a paper: value, interval, and how it was made.

        Returns
        -------
        str
            Such as ``Fréchet distance 3.21 ± 0.14 (95% confidence interval [3.08, 3.36];
            debiased, second-order; n = 2,000; reference n = 50,000; genbounds 0.2.0)``.
        """
        package = sys.modules["genbounds"]  # which imports this module, not the reverse
        parts = [
            f"{percent(self.level, gap='')} confidence interval [{self.low:.4g}, {self.high:.4g}]",
            f"{self.estimator}, {self.method}",
        ]
        if self.n is not None:
            parts.append(f"n = {self.n:,}")
        if self.reference_n is not None:
            parts.append(f"reference n = {self.reference_n:,}")
        if self.encoder:
            parts.append(f"encoder {display(self.encoder)}")
        if not self.reliable:
            parts.append("unreliable")
        value, half = number(self.value), (self.high - self.low) / 2.0
        # Of an interval that leans, or is cut at the end of the range, ± says the wrong ends.
        leans = abs(self.low + half - self.value) > LARGEST_LEAN * half
        if half > 0.0 and math.isfinite(half) and math.isfinite(self.value) and not leans:
            digits = max(0, 1 - math.floor(math.log10(half)))  # two of the half width
            if digits <= 8 and 1e-4 <= abs(self.value or half) < 1e7:
                value = f"{self.value:,.{digits}f} ± {half:,.{digits}f}"
            else:
                value = f"{value} ± {number(half, digits=2)}"
        title = f"{display(self.title)} " if self.title else ""
        return f"{title}{value} ({'; '.join((*parts, f'genbounds {package.__version__}'))})"

    def model_index(
        self, model: str, *, dataset: str, task: str = "unconditional-image-generation"
    ) -> list[dict[str, Any]]:
        """Return what a Hugging Face model card has under ``model-index``, as `yaml` writes it.

        Parameters
        ----------
        model, dataset : str
            Their names on the card.
        task : str
            One of the Hub's kinds of task.

        Raises
        ------
        InputError
            If a name is empty.
        """
        for argument, name in {"model": model, "dataset": dataset, "task": task}.items():
            if not str(name or "").strip():
                raise InputError(f"must be a name; got {quoted(name)}.", argument=argument)
        letters = normalize("NFKD", self.title or "score").encode("ascii", "ignore").decode()
        kind = re.sub(r"[^a-z0-9]+", "_", letters.lower()).strip("_")  # an identifier, no title
        metric = {"type": kind, "value": self.value, "name": self.citation()}
        data = {"name": dataset, "type": dataset}
        result = {"task": {"type": task}, "dataset": data, "metrics": [metric]}
        return [{"name": model, "results": [result]}]

    def _lines(self) -> list[Line]:
        return [self._line(self.title or "score")]

    def _line(self, name: str, **more: Any) -> Line:
        return Line.of(name, self, stderr=self.stderr, n=self.n, **more)

    def _caption(self) -> str:
        return f"{self.title or 'Score'}, {percent(self.level)} confidence interval"

    def __repr__(self) -> str:
        text = (
            f"Score({self.value:.6g}, {percent(self.level, gap='')} interval "
            f"[{self.low:.6g}, {self.high:.6g}], n={self.n}, {self.estimator}, {self.method})"
        )
        return "\n  ".join((text, *map(str, self.warnings)))


def titled(scores: Iterable[Score], metric: str) -> str:
    """Return the title of some `scores`; the name of their `metric` where they have none."""
    return next((score.title for score in scores), "") or metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(InHand):
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
    pvalue : float
        Of no difference between these two models, two-sided.
    pvalue_adjusted : float
        The same for all pairs of the ranking together: at most 1 - level exactly if the interval
        excludes zero.
    """

    _json = "* distinguishable"

    _names, _number = "Difference", "value"

    better: str
    worse: str
    value: float
    low: float
    high: float
    stderr: float
    pvalue: float
    pvalue_adjusted: float

    @property
    def distinguishable(self) -> bool:
        """Whether the simultaneous interval excludes zero."""
        return self.low > 0.0 or self.high < 0.0

    def _lines(self) -> list[Line]:
        more: dict[str, Any] = {
            "stderr": self.stderr,
            "p, adjusted": self.pvalue_adjusted,
            "significant": "yes" if self.distinguishable else "no",
        }
        return [Line.of(f"{self.better} − {self.worse}", self, **more)]

    def _caption(self) -> str:
        return "Difference of two scores, simultaneous interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Noted):
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
    log_scale : bool
        Whether `differences` are those of logarithms: exp of them is the ratio of two scores.
    reference_rows_needed : int or None
        Where the size of the reference is unknown: the minimum number of samples that it must come
        from for the significant differences to be so. None elsewhere.
    chosen : Score or None
        What `winner` returns; None where nothing was computed for it.
    """

    _json = "* -chosen winner=chosen letters contenders notes"

    _names = "Model"

    metric: str
    level: float
    scores: dict[str, Score]
    differences: tuple[Difference, ...]
    groups: tuple[tuple[str, ...], ...]
    log_scale: bool = False
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()
    reference_rows_needed: int | None = None
    chosen: Score | None = None

    @property
    def letters(self) -> dict[str, str]:
        """For every model, the letters of its groups: models that share none differ.

        Letters are a, b, … z, aa, ab and so on, those of one model joined by a space where one has
        more than a single character.
        """
        spelled = (product(ascii_lowercase, repeat=size) for size in count(1))
        names = ["".join(word) for word in islice(chain.from_iterable(spelled), len(self.groups))]
        gap = " " if len(names) > len(ascii_lowercase) else ""
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

    def winner(self) -> Score:
        """Score the best model with an interval that is corrected for having been chosen.

        Of equal models the one with the best estimate was lucky: the own interval of the best of
        twenty misses in four of ten. This one, which is 1.35 times as wide there and hardly wider
        where the winner is clear, is that of I. Andrews, T. Kitagawa and A. McCloskey ("Inference
        on winners", Q. J. Econ. 139, 2024), for estimates with normal errors.

        Returns
        -------
        Score
            Of which the value is as likely too large as too small.
        """
        return self.scores[self.best] if self.chosen is None else self.chosen

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

    def _lines(self) -> list[Line]:
        letters = self.letters
        return [score._line(name, group=letters[name]) for name, score in self.scores.items()]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        return (
            f"{title}, {percent(self.level)} confidence intervals; "
            "models that share a group letter do not differ significantly"
        )

    def __repr__(self) -> str:
        letters = self.letters
        rows = [
            (display(name, limit=60), score, letters[name] + "  unreliable" * (not score.reliable))
            for name, score in self.scores.items()
        ]
        head = f"{type(self).__name__}({self.metric}, {percent(self.level, gap='')} joint)"
        return listing(head, rows, *self.warnings)


def listing(head: str, rows: Iterable[tuple[str, Score | None, str]], *below: object) -> str:
    """Return a text of lines below a head: of each score its name, ends, and a remark."""
    rows = list(rows)
    width = max((len(name) for name, _, _ in rows), default=0)
    lines = [head]
    for name, score, remark in rows:
        told: tuple[str, ...] = ()
        if score is not None:
            told = (f"{score.value:>12.6g}", f"[{score.low:.6g}, {score.high:.6g}]")
        lines.append("  ".join(("", name.ljust(width), *told, remark)))
    return "\n".join((*lines, *(f"  {text}" for text in below)))
