"""Axes, ticks and legends that several figures share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from genbounds.report._canvas import COLOUR, SERIES, Canvas
from genbounds.report._text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

DASHED: dict[str, Any] = {"color": COLOUR["ink"], "linewidth": 1, "linestyle": (0, (4, 3))}
"""A line for what was promised, or is true."""


def log_axis(canvas: Canvas, axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with room for `values`."""
    low, high = min(values), max(values)
    room = max((high / low) ** 0.04, 1.05)
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    log_ticks(canvas, axes)


def log_ticks(canvas: Canvas, axes: Axes, *, vertical: bool = False) -> None:
    """Ticks of a logarithmic axis as plain text, never mathematics."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    low, high = axes.get_ylim() if vertical else axes.get_xlim()
    axis = axes.yaxis if vertical else axes.xaxis
    few = math.log10(high / low) < 2.2
    subs = (1.0, 2.0, 5.0) if few else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs, numticks=5 if canvas.narrow else 8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
    if vertical:
        axis.set_minor_locator(NullLocator())


def few_ticks(axis: Axis, count: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def legend(canvas: Canvas, names: Sequence[str], *, dashed_last: bool = False) -> float:
    """Draw a legend above the axes; return the room it takes.

    Its texts are tokens, whose width matplotlib cannot know.
    """
    from matplotlib.lines import Line2D

    columns = 2 if canvas.narrow else 4
    step = (canvas.width - 24) / columns
    for index, name in enumerate(names):
        x = 12 + step * (index % columns)
        y = 1.0 - (14 + 18 * (index // columns)) / canvas.height
        dashed = dashed_last and index == len(names) - 1
        line = Line2D([x / canvas.width, (x + 16) / canvas.width], [y, y], linewidth=2.4)
        line.set(**DASHED if dashed else {"color": COLOUR[f"series-{index % SERIES}"]})
        canvas.figure.add_artist(line)
        limit = 17 if canvas.narrow else 20
        canvas.figure.text(
            (x + 22) / canvas.width, y, canvas.name(name, limit=limit), va="center_baseline"
        )
    return 22.0 + 18 * math.ceil(len(names) / columns)


def beside(axes: Axes, row: int, text: str) -> None:
    """Write at the right end of a row."""
    axes.annotate(
        text,
        (1.0, row),
        xycoords=axes.get_yaxis_transform(),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        color=COLOUR["muted"],
    )
