"""Scores of models with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from genbounds._text import count, interval, number, percent, shown
from genbounds.report._canvas import Canvas, drawn
from genbounds.report.blocks import Cell, Figure, Name, Table, Tag, Tone
from genbounds.report.figures._axes import Row, beside, interval_rows, linear_scale, log_ticks
from genbounds.report.wording import letters_of, mark, metric_title
from genbounds.results import Ranking, Score
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rank_plot(ranking: Ranking) -> Figure:
    """Show scores with intervals, best on top, and the letters of the groups.

    Parameters
    ----------
    ranking : Ranking

    Returns
    -------
    Figure
        Models that share a letter do not differ significantly.
    """
    return _scores(
        ranking.scores,
        metric=ranking.metric,
        level=ranking.level,
        letters=letters_of(ranking),
        filled=ranking.contenders,
    )


def score_plot(scores: Mapping[str, Score], *, metric: str, level: float) -> Figure:
    """Show scores with intervals, in the order given.

    Parameters
    ----------
    scores : mapping of str to Score
    metric : str
        For the axis.
    level : float
        Of the intervals, for the caption.
    """
    if not scores:
        raise InputError("`scores` must hold at least one model.")
    return _scores(scores, metric=metric, level=level, letters={}, filled=tuple(scores))


def _scores(
    scored: Mapping[str, Score],
    *,
    metric: str,
    level: float,
    letters: Mapping[str, str],
    filled: Sequence[str],
) -> Figure:
    names = list(scored)
    title = metric_title(metric)
    widest = max((len(text) for text in letters.values()), default=0)
    right = 22 + max(40.0, 7.5 * widest) if letters else 22.0
    cut: list[bool] = []

    def scale(canvas: Canvas, axes: Axes) -> float:
        zero = _value_scale(canvas, axes, list(scored.values()))
        start, stop = axes.get_xlim()
        start = max(start, zero)
        cut.extend(s.low < start < s.value or s.high > stop for s in scored.values())
        if letters:
            beside(axes, 1.0, "Group", xycoords="axes fraction", xytext=(8, 6), va="baseline")
        return zero

    rows = []
    for name, score in scored.items():
        look = ("accent", "filled") if name in filled else ("muted", "open")
        tip = f"{shown(name)}: {number(score.value)} {interval(score.low, score.high)}"
        if not score.reliable:
            look, tip = ("bad", "cross"), f"{tip}, unreliable"
        ends = score.low, score.value, score.high
        rows.append(Row(name, ends, *look, tip, letters.get(name, "")))
    top = 24.0 if letters else 8.0
    picture = partial(interval_rows, rows=rows, label=title, scale=scale, right=right, top=top)
    first = scored[names[0]]
    crosses = any(not score.reliable for score in scored.values())
    alt = (
        f"{title} of {count(len(names), 'model')}. On top: {shown(names[0])} "
        f"with {number(first.value)}, interval {interval(first.low, first.high)}."
    )
    figure = drawn(picture, alt=alt, caption="", table=_table(scored, letters))
    joint = (
        " Filled: the models that may be the best. Models that share a group letter do not differ "
        f"significantly at {percent(level)}, all comparisons taken jointly."
    )
    caption = (
        f"{title}. Lines are {percent(level)} confidence intervals"
        + ("; one with an arrow goes on, to 0 or beyond the axis." if any(cut) else ".")
        + (" Crosses: unreliable, see the warnings." if crosses else "")
        + (joint if letters else "")
    )
    return replace(figure, caption=caption)


def _table(scored: Mapping[str, Score], letters: Mapping[str, str]) -> Table:
    tones: dict[str, Tone] = {"unreliable": "bad", "caution": "open"}
    scores = scored.values()
    columns: dict[str, list[Cell]] = {
        "Model": [Name(name) for name in scored],
        "Score": [score.value for score in scores],
        "Low": [score.low for score in scores],
        "High": [score.high for score in scores],
        "Std. error": [score.stderr for score in scores],
        "n": [score.n for score in scores],
    }
    if letters:
        columns["Group"] = [letters.get(name, "") for name in scored]
    if any(score.warnings for score in scores):
        marks = map(mark, scores)
        columns["Warnings"] = [Tag(text, tones[text]) if text else "" for text in marks]
    return Table.of(columns)


def _value_scale(canvas: Canvas, axes: Axes, scores: Sequence[Score]) -> float:
    """Choose a linear or a logarithmic axis, and its limits.

    Logarithmic where no value is negative and the positive ones differ by a factor of twenty: on a
    linear axis the good models would then coincide. Returns the place on it that stands for 0.
    """
    values = [score.value for score in scores if math.isfinite(score.value)]
    # A model with score 0 has at least the upper end of its interval to show.
    sizes = [
        size for score in scores if math.isfinite(size := score.value or score.high) and size > 0.0
    ]
    if min(values, default=-1.0) < 0.0 or not sizes or max(sizes) < 20.0 * min(sizes):
        ends = (end for score in scores for end in (score.value, score.low, score.high))
        return linear_scale(canvas, axes, values=ends)
    floor = min(sizes) / 3.0
    tops = [score.high for score in scores if math.isfinite(score.high)]
    top = max(sizes + tops)
    margin = (top / floor) ** 0.03
    axes.set_xscale("log")
    axes.set_xlim(floor / margin, top * margin)
    below = any(score.low < floor or score.value < floor for score in scores)
    log_ticks(canvas, axes, zero=floor if below else None)
    return floor
