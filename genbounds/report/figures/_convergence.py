"""Estimates against the number of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from genbounds._text import interval, number, percent, shown
from genbounds.report._canvas import COLOUR, SERIES, WIDE, Canvas, drawn
from genbounds.report.blocks import Cell, Figure, Name, Table
from genbounds.report.figures._axes import (
    DASHED,
    band,
    few_ticks,
    legend,
    log_axis,
    log_ticks,
    series_style,
)
from genbounds.report.wording import metric_title
from genbounds.results import Score
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BANDS = 4
"""Bands of more lines than these hide one another: the table has the intervals."""


# Branches: what is drawn depends on which results there are.
def convergence_plot(
    series: Mapping[str, Sequence[tuple[int, Score]]],
    *,
    truth: float | None = None,
    metric: str = "fd",
    lines: str = "Estimator",
) -> Figure:
    """Show estimates, with their intervals, against the number of samples.

    Parameters
    ----------
    series : mapping of str to sequence of (n, Score)
        One line per entry, such as "plug-in" and "debiased", or one per model as
        `genbounds.estimators.convergence` returns them; n increasing.
    truth : float or None
        Drawn as a level line.
    metric : str
        For the axis.
    lines : str
        What one line is, for the table: "Estimator", "Model".
    """
    if not series or not all(series.values()):
        raise InputError("`series` must hold at least one line of at least one point.")
    title = metric_title(metric)
    labels = list(series)
    scores = [score for points in series.values() for _, score in points]
    settled = [points[-1][1].value for points in series.values()]
    settled += [] if truth is None else [truth]

    def picture(width: float) -> Canvas:
        canvas = Canvas(width, 300 if width == WIDE else 270)
        entries = [*labels[:SERIES], *([] if truth is None else ["truth"])]
        top = legend(canvas, entries, dashed_last=truth is not None)
        axes = canvas.axes(left=62, right=14, top=top, bottom=46, grid="both")
        log_axis(canvas, axes, [n for points in series.values() for n, _ in points])
        floor = upright_scale(canvas, axes, scores, settled)
        # The first on top.
        for index, (label, points) in reversed(list(enumerate(series.items()))):
            _growth(canvas, axes, label, points, index, floor, banded=len(series) <= BANDS)
        if truth is not None:
            axes.axhline(truth, **DASHED)
        axes.set_xlabel("samples n")
        axes.set_ylabel(title)
        return canvas

    rows: list[tuple[Cell, ...]] = [
        (Name(label), n, s.value, s.low, s.high)
        for label, points in series.items()
        for n, s in points
    ]
    return drawn(
        picture,
        alt=f"{title} against the number of samples. "
        + " ".join(
            f"{shown(label)}: {number(points[-1][1].value)} at n = {number(points[-1][0])}."
            for label, points in list(series.items())[:SERIES]
        )
        + ("" if truth is None else f" Truth: {number(truth)}."),
        caption=f"{title} as the number of samples grows. {_caption(series, truth)}",
        table=Table(columns=(lines, "n", "Value", "Low", "High"), rows=rows),
    )


def _caption(series: Mapping[str, Sequence[tuple[int, Score]]], truth: float | None) -> str:
    """Say what is drawn, and how."""
    levels = {score.level for points in series.values() for _, score in points}
    at = f"{percent(levels.pop())} confidence intervals" if len(levels) == 1 else "intervals"
    parts = [f"Bands are {at}" if len(series) <= BANDS else f"The table has the {at}"]
    if truth is not None:
        parts.append("the dashed line is the truth")
    if len(series) > SERIES:
        parts.append(f"the legend names the first {SERIES} lines")
    return f"{'; '.join(parts)}. What lies beyond an axis is drawn at its edge."


def _growth(
    canvas: Canvas,
    axes: Axes,
    label: str,
    points: Sequence[tuple[int, Score]],
    index: int,
    floor: float,
    *,
    banded: bool,
) -> None:
    """Draw one line of estimates, with their intervals as a band; pale if beyond the legend."""
    style = series_style(index) if index < SERIES else {"color": COLOUR["grid"], "marker": "o"}
    sizes = [n for n, _ in points]
    values = [max(score.value, floor) for _, score in points]
    if banded:
        band(axes, sizes, [score for _, score in points], floor, style["color"])
    axes.plot(sizes, values, color=style["color"], linewidth=1.6)
    for (n, score), value in zip(points, values, strict=True):
        (mark,) = axes.plot(n, value, **(style | {"linestyle": "none"}))
        canvas.tip(
            mark,
            f"{shown(label)}, n = {number(n)}: {number(score.value)} "
            f"{interval(score.low, score.high)}",
        )


def upright_scale(
    canvas: Canvas, axes: Axes, scores: Sequence[Score], settled: Sequence[float]
) -> float:
    """Scale the upright axis so that wide bands of small samples squeeze no line.

    `settled` are values that must be seen whole. Returns the smallest value that is drawn.
    """
    values = [*settled, *(score.value for score in scores)]
    ends = [end for score in scores for end in (score.low, score.high) if math.isfinite(end)]
    low, high = min(values), max(values)
    positive = [value for value in settled if value > 0.0]
    if low >= 0.0 and positive and max(positive) >= 20.0 * min(positive):
        floor = min(positive) / 4.0
        axes.set_yscale("log")
        axes.set_ylim(0.9 * floor, min(max([*ends, high]), 4.0 * high))
        log_ticks(canvas, axes, vertical=True, zero=floor if low < floor else None)
        return floor
    span = max(high - low, 0.1 * abs(high))
    bottom, top = max(min([*ends, low]), low - span), min(max([*ends, high]), high + span)
    margin = 0.03 * (top - bottom) or 1.0  # marks at zero are shown whole
    axes.set_ylim(bottom - margin, top + margin)
    few_ticks(axes.yaxis, 6)
    return -math.inf
