"""Scores of models with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from genbounds.files import display
from genbounds.report._canvas import COLOUR, Canvas, draw, rows_axes
from genbounds.report._text import interval, metric_title, number, percent
from genbounds.report.blocks import Figure, Name, Table
from genbounds.report.figures._axes import beside, few_ticks, log_ticks
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
    figure = _scores(
        ranking.scores,
        metric=ranking.metric,
        level=ranking.level,
        letters=ranking.letters,
        coloured=ranking.contenders,
    )
    return replace(
        figure,
        caption=(
            f"{figure.caption} Models that share a letter do not differ significantly at that "
            "level, jointly. In colour: the models that may still be the best."
        ),
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
    return _scores(scores, metric=metric, level=level, letters={}, coloured=tuple(scores))


def _scores(
    scored: Mapping[str, Score],
    *,
    metric: str,
    level: float,
    letters: Mapping[str, str],
    coloured: Sequence[str],
) -> Figure:
    names, scores = list(scored), list(scored.values())
    title = metric_title(metric)
    widest = max((len(text) for text in letters.values()), default=0)

    def picture(width: float) -> Canvas:
        canvas, axes = rows_axes(width, names, right=18 + 7.5 * widest)
        floor = _value_scale(canvas, axes, scores)
        for row, (name, score) in enumerate(scored.items()):
            colour = COLOUR["accent" if name in coloured else "muted"]
            _interval_mark(canvas, axes, row, name, score, colour, floor)
            if letters:
                beside(axes, row, letters[name])
        axes.set_xlabel(title)
        return canvas

    wide, narrow = draw(picture)
    first = scores[0]
    grouped = bool(letters)
    return Figure(
        wide=wide,
        narrow=narrow,
        alt=(
            f"{title} of {_models(len(names))}. On top: {display(names[0], limit=60)} "
            f"with {number(first.value)}, interval {interval(first.low, first.high)}."
        ),
        caption=f"{title}. Lines are {percent(level)} intervals.",
        table=Table(
            columns=("Model", "Score", "Low", "High", "Std. error", "n", *["Group"] * grouped),
            rows=[
                (
                    Name(name),
                    score.value,
                    score.low,
                    score.high,
                    score.stderr,
                    score.n,
                    *[letters.get(name, "")] * grouped,
                )
                for name, score in scored.items()
            ],
        ),
    )


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"


def _interval_mark(
    canvas: Canvas, axes: Axes, row: int, name: str, score: Score, colour: str, floor: float | None
) -> None:
    ends = [score.low, score.high]
    value = score.value
    if floor is not None:
        ends, value = [max(end, floor) for end in ends], max(value, floor)
    if all(map(math.isfinite, ends)):
        axes.hlines(row, ends[0], ends[1], color=colour, linewidth=2.4)
    (mark,) = axes.plot(value, row, "o", color=colour, markersize=6.5)
    canvas.tip(
        mark, f"{display(name, limit=60)}: {number(score.value)} {interval(score.low, score.high)}"
    )


def _value_scale(canvas: Canvas, axes: Axes, scores: Sequence[Score]) -> float | None:
    """Choose a linear or logarithmic axis; returns the smallest value that a log axis shows."""
    values = [score.value for score in scores if math.isfinite(score.value)]
    if not values or min(values) <= 0.0 or max(values) < 20.0 * min(values):
        few_ticks(axes.xaxis, 5)
        return None
    floor = min(values) / 2.0
    tops = [score.high for score in scores if math.isfinite(score.high)]
    axes.set_xscale("log")
    axes.set_xlim(floor * 0.95, max(values + tops) * 1.1)
    log_ticks(canvas, axes)
    return floor
