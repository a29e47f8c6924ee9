"""Whether a candidate may replace a baseline: non-inferiority and equivalence with a margin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from genbounds._drawing import COLOUR, Row, Scale, interval_rows, new_axes
from genbounds._tables import Line, Warned
from genbounds._text import interval, number, percent, quoted, short, shown
from genbounds.decisions._estimates import (
    all_warnings,
    distrust,
    estimated,
    in_units,
    number_or_share,
    on_score_scale,
)
from genbounds.decisions._variance import OF_N, VarianceModel, smallest
from genbounds.diagnostics import warn_of
from genbounds.estimators import Estimate, EstimateDifference, difference, metric_spec, rank
from genbounds.origins import compared
from genbounds.results import Diagnostic, Difference, Score, titled
from genbounds.validation import InputError, check_open_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Decision = Literal["pass", "fail", "inconclusive"]

POWER = 0.8
"""Probability with which `Verdict.samples_needed` samples settle it."""

SHARE = "the margin is a share of the baseline's score, whose noise is accounted for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """How much worse a candidate may be: an amount, or a share of the baseline's score.

    Attributes
    ----------
    value : float
        In units of the score, or as a share.
    relative : bool
    """

    value: float
    relative: bool = False

    @classmethod
    def of(cls, given: object) -> Margin:
        """Read what was `given`: a number, or a text such as "2%" or "0.5"."""
        value, relative = number_or_share(given)
        if not 0.0 <= value < (1.0 if relative else math.inf):
            raise InputError(
                "must be a number of at least 0, in units of the score, or a share of the "
                f"baseline's score below 100 %, such as '2%'; got {quoted(given)}.",
                argument="margin",
            )
        return cls(value=value, relative=relative)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict(Warned):
    """Whether a candidate is worse than a baseline by no more than a margin.

    Attributes
    ----------
    decision : {"pass", "fail", "inconclusive"}
    candidate, baseline : str
        Names of the models.
    worse_by : float
        How much worse the candidate is, in units of the score; negative where it is better.
    low, high : float
        One-sided limits of `worse_by`, each at `level`; with a relative margin they hold the noise
        of the margin as well. The gate passes if `high` is below the margin, and fails if `low` is
        above it.
    margin : float
        In units of the score, as used.
    relative_margin : float or None
        As a share of the baseline's score, where it was given so.
    level : float
        Of each limit: a candidate that is worse by just the margin passes, and fails, with
        probability of about ``1 - level``.
    equivalence : bool
        Whether it must not be better by more than the margin either.
    difference : Difference
        Of both scores, better minus worse by value, with its two-sided interval and p-value at
        `level`; in units of the score.
    scores : dict of str to Score
        Of the candidate and the baseline.
    samples_needed : int or None
        Where inconclusive: generated samples of each model that make it pass with probability
        80 %, if `worse_by` is the truth. None if that cannot be said, or no number does.
    reason : str
        Why it is inconclusive, or why no number of samples is given; may be empty.
    metric : str
    warnings : tuple of Diagnostic
        Of both scores and of both models together. An unreliable one, or one about few samples,
        makes it inconclusive.
    assumptions : tuple of str
    """

    _json = "* reliable"

    _names, _number = "Gate", "worse_by"

    decision: Decision
    candidate: str
    baseline: str
    worse_by: float
    low: float
    high: float
    margin: float
    relative_margin: float | None
    level: float
    equivalence: bool
    difference: Difference
    scores: dict[str, Score]
    samples_needed: int | None
    reason: str
    metric: str
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    def accepted(self, inconclusive: str = "fail") -> bool:
        """Whether to go on: it passes, or is `inconclusive` and that is to "pass" as well."""
        return self.decision == "pass" or (self.decision, inconclusive) == ("inconclusive", "pass")

    def __str__(self) -> str:
        """Return one line for a log."""
        margin = short(self.margin)
        if self.relative_margin is not None:
            margin = f"{number(self.margin)} ({percent(self.relative_margin)} of the baseline)"
        side = "better" if self.worse_by < 0.0 else "worse"
        text = (
            f"{self.decision}: {self.metric} of {shown(self.candidate)} is "
            f"{number(self.scores[self.candidate].value)}, of {shown(self.baseline)} "
            f"{number(self.scores[self.baseline].value)}: {side} by {number(abs(self.worse_by))} "
            f"({self._limits()}, {percent(self.level)}); margin {margin}"
        )
        if self.samples_needed is not None:
            text += f"; about {number(self.samples_needed)} samples of each would settle it"
        return f"{text}; {self.reason}" if self.reason else text

    def _limits(self) -> str:
        """Return the limits of the difference in words."""
        low, high = number(abs(self.low)), number(abs(self.high))
        if self.equivalence:
            if self.low < 0.0 < self.high:
                return f"from {low} better to {high} worse"
            return f"worse by {low} to {high}" if self.high > 0.0 else f"better by {high} to {low}"
        if self.decision == "fail":
            return f"worse by at least {low}"
        return f"better by at least {high}" if self.high < 0.0 else f"worse by at most {high}"

    def _lines(self) -> list[Line]:
        name = f"{self.candidate} against {self.baseline}"
        more = {"decision": self.decision, "samples needed": self.samples_needed}
        return [Line.of(name, self, "worse_by", margin=self.margin, **more)]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        return f"{title}: how much worse, one-sided limits at {percent(self.level)} each"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how much worse the candidate is, with its limits and the margin.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        margin, ends = self.margin, (self.low, self.worse_by, self.high)
        lines = [margin, -margin] if self.equivalence else [margin]
        scale = Scale.linear([0.0, *lines, *ends], margin=0.08)
        role = {"pass": "good", "fail": "bad"}.get(self.decision, "accent")
        tip = f"worse by {number(self.worse_by)} {interval(self.low, self.high)}"
        row = Row(self.candidate, ends, role, "filled" if self.reliable else "cross", tip)
        ax = ax or new_axes(1.4)
        for start, stop in [(margin, scale.high), (scale.low, -margin)][: len(lines)]:
            ax.axvspan(start, stop, color=COLOUR["bad"], alpha=0.12, linewidth=0)
        title = titled(self.scores.values(), self.metric)
        return interval_rows(ax, [row], f"{title}: worse by", scale, lines=lines)


def gate(
    candidate: Any,
    baseline: Any,
    reference: Any = None,
    *,
    margin: float | str,
    metric: Any = "fd",
    level: float = 0.95,
    equivalence: bool = False,
    options: Mapping[str, Any] | None = None,
    partners: tuple[Any, Any] | None = None,
) -> Verdict:
    """Decide whether a candidate is worse than a baseline by no more than a margin.

    Parameters
    ----------
    candidate, baseline : array_like of shape (n, d), Sample or Moments
        Generated features (posteriors for "is"). Equal group ids in both are the same prompt or
        latent, whose common noise cancels. For "fd" a baseline may be `Moments`, such as those of
        a small file that is kept with the code.
    reference : array_like of shape (m, d) or Moments, optional
        As `real` of `compare`.
    margin : float or str
        By how much the candidate may be worse: a number in units of the score, or a text such as
        "2%": a share of the baseline's score. The baseline's own noise then counts as well.
    metric : str, MetricSpec, CustomMetric or callable
        As in `compare`. Which direction is worse follows from the metric.
    level : float
        Confidence of either limit, in (0.5, 1).
    equivalence : bool
        Whether the candidate must not be better by more than the margin either: it passes if both
        limits lie within ± margin, and fails if they lie outside on one side.
    options : mapping, optional
        As in `compare`.
    partners : pair of array_like or Sample, optional
        Draws of a cheap partner of the candidate and of one of the baseline, as in `compare`.

    Returns
    -------
    Verdict
        Inconclusive where the limits hold the margin, a score is unreliable, or samples are few.

    Raises
    ------
    InputError
        As `compare`; or if `margin` or `level` is not legal, or a relative margin is asked for
        where the baseline's score is not positive.

    Notes
    -----
    Two one-sided tests at ``1 - level`` each (S. Wellek, "Testing statistical hypotheses of
    equivalence and noninferiority", 2010, §1.6 and §3). For a share p of the baseline's score the
    combination candidate - (1 + p) baseline is tested, so that the baseline is not taken for exact.
    For "is", "vendi" and "rke" the difference is that of the scores, not of their logarithms.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real, old = rng.normal(size=(4000, 4)), 1.2 * rng.normal(size=(4000, 4))
    >>> gb.gate(1.2 * rng.normal(size=(4000, 4)), old, real, margin=0.1).decision
    'pass'
    """
    spec = metric_spec(metric)
    wanted = Margin.of(margin)
    check_gate(wanted, level=level, equivalence=equivalence)
    models = {"candidate": candidate, "baseline": baseline}
    given: object = partners  # callers are not type-checked
    if given is not None and not (isinstance(given, tuple | list) and len(given) == 2):
        raise InputError(
            "must be two samples, of partners of the candidate and of the baseline.",
            argument="partners",
        )
    helped = None if partners is None else dict(zip(models, partners, strict=True))
    _, estimates = estimated(spec, models, reference, options, helped)
    return decide(
        estimates,
        margin=wanted,
        metric=spec.name,
        level=level,
        equivalence=equivalence,
        warnings=compared(
            {"`candidate`": candidate, "`baseline`": baseline, "`reference`": reference}
        ),
    )


def check_gate(margin: Margin, *, level: float, equivalence: bool) -> None:
    """Refuse a `level` or an `equivalence` margin with which nothing can pass."""
    if check_open_unit("level", level) <= 0.5:
        raise InputError(f"must be above 0.5 for a gate; got {level!r}.", argument="level")
    if equivalence and not margin.value > 0.0:
        raise InputError("must be above 0 for equivalence; got 0.", argument="margin")


def decide(
    estimates: Mapping[str, Estimate],
    *,
    margin: Margin,
    metric: str,
    level: float,
    equivalence: bool = False,
    warnings: Iterable[Diagnostic] = (),
) -> Verdict:
    """Decide from two estimates against one reference.

    Parameters
    ----------
    estimates : mapping of str to Estimate
        Of the candidate and of the baseline, in this order.
    margin : Margin
    metric : str
    level : float
    equivalence : bool
    warnings : iterable of Diagnostic
        About both together.

    Returns
    -------
    Verdict
    """
    scaled = {name: on_score_scale(estimate) for name, estimate in estimates.items()}
    ranking = rank(scaled, metric=metric, level=level)
    # Scores and their intervals are those that everything else reports.
    scores = {name: estimate.score(level) for name, estimate in estimates.items()}
    (candidate, new), (baseline, old) = scaled.items()
    share = margin.value * margin.relative * (-1.0 if old.higher_is_better else 1.0)
    size = in_units(margin.value, margin.relative, old, whose="baseline", argument="margin")
    worse_by = _beyond(new, old).value
    sides = 2.0 * level - 1.0
    low, high = _beyond(new, old, share, size).interval(sides)
    lower = _beyond(new, old, -share, -size).interval(sides)
    within = high < 0.0 and (lower[0] > 0.0 or not equivalence)
    outside = low > 0.0 or (equivalence and lower[1] < 0.0)
    doubts = all_warnings(
        *(score.warnings for score in scores.values()),
        ranking.warnings,
        warnings,
        _wide(margin, scores[baseline], baseline),
    )
    reason = distrust(doubts)
    decision: Decision = "inconclusive"
    if not reason and (within or outside):
        decision = "pass" if within else "fail"
    needed = None
    if not reason and decision == "inconclusive":
        space = size - (abs(worse_by) if equivalence else worse_by)
        # Either of two sides may fail with half of the rest.
        power = (1.0 + POWER) / 2.0 if equivalence else POWER
        needed, reason = _samples_needed(new, old.scaled(1.0 + share), space, level, power)
    assumptions = [assumption for score in scores.values() for assumption in score.assumptions]
    assumptions += ranking.assumptions[1:]  # the first is about several pairs
    if margin.relative:
        assumptions.append(SHARE)
    return Verdict(
        decision=decision,
        candidate=candidate,
        baseline=baseline,
        worse_by=worse_by,
        low=(lower[0] - size) if equivalence else (low + size),
        high=high + size,
        margin=size,
        relative_margin=margin.value if margin.relative else None,
        level=level,
        equivalence=equivalence,
        difference=ranking.difference(candidate, baseline),
        scores=scores,
        samples_needed=needed,
        reason=reason,
        metric=metric,
        warnings=doubts,
        assumptions=tuple(dict.fromkeys(assumptions)),
    )


def _beyond(
    candidate: Estimate, baseline: Estimate, share: float = 0.0, size: float = 0.0
) -> EstimateDifference:
    """How much worse the candidate is than the allowed score, negative where it is within.

    Of a relative margin the `share` of the baseline's score is in the combination that is tested,
    an absolute one, of that `size`, is a shift.
    """
    allowed = baseline.scaled(1.0 + share)
    pair = (allowed, candidate) if candidate.higher_is_better else (candidate, allowed)
    gap = difference(*pair)
    return gap if share else gap.shifted(-size)


def _wide(margin: Margin, score: Score, baseline: str) -> Iterator[Diagnostic]:
    """Warn of a margin in units of the score that is surely larger than the score itself."""
    if not margin.relative and margin.value > score.high > 0.0:
        times = margin.value / (score.value if score.value > 0.0 else score.high)
        yield warn_of("wide-margin", margin=margin.value, times=times, baseline=shown(baseline))


def _samples_needed(
    candidate: Estimate, allowed: Estimate, space: float, level: float, power: float
) -> tuple[int | None, str]:
    """Return samples of each model with which it passes, if so much `space` to a limit is true."""
    if not space > 0.0:
        why = "the difference looks larger than the margin: more samples would probably fail it"
        return None, why
    if candidate.halves is not None or {candidate.method, allowed.method} & OF_N:
        return None, "how many samples would settle it cannot be said: the score depends on n"
    if candidate.sample.seeds is not None:
        return None, "more seeds, or draws of a partner, would settle it sooner than more groups"
    model = VarianceModel.of_difference(candidate, allowed)
    if math.isinf(model.n):
        return None, "the moments of both models are exact: more samples change nothing"
    needed = smallest(lambda n: model.margin(level, power, n) <= space, low=max(2.0, model.n))
    if needed is None:
        return None, "no number of generated samples settles it: a larger reference does (`plan`)"
    return needed, ""
