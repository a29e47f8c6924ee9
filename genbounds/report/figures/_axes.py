"""Axes, ticks and legends that several figures share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from genbounds._text import short
from genbounds.report._canvas import COLOUR, SERIES, Canvas, rows_axes
from genbounds.results import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

DASHED: dict[str, Any] = {"color": COLOUR["ink"], "linewidth": 1, "linestyle": (0, (4, 3))}
"""A line for what was promised, or is true."""

MARKS = "os^DvPX*"
"""Marks of the series, as matplotlib names them."""


def log_axis(canvas: Canvas, axes: Axes, values: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with space for `values`."""
    low, high = min(values), max(values)
    margin = max((high / low) ** 0.04, 1.05)
    axes.set_xscale("log")
    axes.set_xlim(low / margin, high * margin)
    log_ticks(canvas, axes)


def log_ticks(
    canvas: Canvas, axes: Axes, *, vertical: bool = False, zero: float | None = None
) -> None:
    """Ticks of a logarithmic axis as plain text, never mathematics.

    `zero`: where a tick stands for 0, which the axis itself cannot show.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    low, high = axes.get_ylim() if vertical else axes.get_xlim()
    axis = axes.yaxis if vertical else axes.xaxis
    start = low
    if zero is not None:  # space for the 0 and for half of the next label
        box = axes.get_position()
        length = box.height * canvas.height if vertical else box.width * canvas.width
        start = zero * (high / low) ** ((16.0 if vertical else 24.0) / length)
    found = _log_places(start, high, most=4 if canvas.narrow and not vertical else 7)
    axis.set_major_locator(FixedLocator(found if zero is None else [zero, *found]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value == zero else short(value)))
    few_decades = high / low < 1e6
    axis.set_minor_locator(FixedLocator(_grid(start, high, range(1, 10)) if few_decades else []))
    axis.set_minor_formatter(NullFormatter())


def _log_places(low: float, high: float, *, most: int) -> list[float]:
    """Return from two to `most` places for labels: the finest grid that fits the axis."""
    for digits in (range(1, 10), (1, 2, 5), (1, 3), (1,)):
        places = _grid(low, high, digits)
        if len(places) <= most:
            break
    if len(places) > most:
        places = places[:: math.ceil(len(places) / most)]
    if len(places) >= 2:
        return places
    # Less than two of them lie on a short axis: two digits of places in between.
    return [float(f"{low * (high / low) ** share:.2g}") for share in (0.1, 0.5, 0.9)]


def _grid(low: float, high: float, digits: Sequence[int]) -> list[float]:
    """Return the numbers from `low` to `high` that begin with one of the digits, then zeros."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = (digit * 10.0**power for power in powers for digit in digits)
    return [place for place in places if low <= place <= high]


def few_ticks(axis: Axis, count: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def legend(
    canvas: Canvas, names: Sequence[str], *, dashed_last: bool = False, squares: bool = False
) -> float:
    """Draw a legend above the axes, lines with marks or `squares`; return the space it takes.

    Its texts are tokens, whose width matplotlib cannot know.
    """
    from matplotlib.lines import Line2D

    columns = 2 if canvas.narrow else 4
    step = (canvas.width - 24) / columns
    for index, name in enumerate(names):
        x = 12 + step * (index % columns)
        y = 1.0 - (14 + 18 * (index // columns)) / canvas.height
        dashed = dashed_last and index == len(names) - 1
        ends = [x / canvas.width, (x + 9) / canvas.width, (x + 18) / canvas.width]
        style = DASHED if dashed else series_style(index)
        if squares:
            style |= {"marker": "s", "markersize": 9, "linestyle": "none"}
        canvas.figure.add_artist(Line2D(ends, [y, y, y], **(style | {"markevery": [1]})))
        limit = 17 if canvas.narrow else 20
        canvas.figure.text(
            (x + 24) / canvas.width, y, canvas.name(name, limit=limit), va="center_baseline"
        )
    return 22.0 + 18 * math.ceil(len(names) / columns)


def series_style(index: int) -> dict[str, Any]:
    """Return colour and mark of the line `index`: told apart without colours too."""
    return {
        "color": COLOUR[f"series-{index % SERIES}"],
        "linewidth": 1.6,
        "marker": MARKS[index % SERIES],
        "markersize": 5.5,
        "markeredgecolor": COLOUR["paper"],
        "markeredgewidth": 0.6,
    }


def label(axes: Axes, text: str, place: tuple[float, float], right: float, **style: Any) -> None:
    """Write `right` pixels beside a place."""
    style = {"va": "center", "xytext": (right, 0), "textcoords": "offset points"} | style
    axes.annotate(text, place, **style)


def beside(axes: Axes, height: float, text: str, **style: Any) -> None:
    """Write at the right end of a row."""
    style = {"color": COLOUR["muted"], "xycoords": axes.get_yaxis_transform()} | style
    label(axes, text, (1.0, height), 8, **style)


def band(
    axes: Axes, places: Sequence[float], scores: Sequence[Score], floor: float, colour: str
) -> None:
    """Shade between the ends of the intervals of `scores`, where they are known."""
    ends = [(max(score.low, floor), max(score.high, floor)) for score in scores]
    known = [all(map(math.isfinite, pair)) for pair in ends]
    lows, highs = zip(*ends, strict=True)
    axes.fill_between(places, lows, highs, where=known, color=colour, alpha=0.16, linewidth=0)


@dataclass(frozen=True, slots=True)
class Row:
    """A value with its interval, in a row of its own.

    Attributes
    ----------
    name : str
    ends : tuple of float
        Low end, value, high end.
    role : str
        Of the colour.
    mark : {"filled", "open", "cross"}
        A cross has a dashed line.
    tip : str
        Shown when the pointer rests on the value.
    beside : str
        Stands at the right end.
    """

    name: str
    ends: tuple[float, float, float]
    role: str
    mark: str
    tip: str
    beside: str = ""


def interval_rows(
    width: float,
    *,
    rows: Sequence[Row],
    label: str,
    scale: Callable[[Canvas, Axes], float],
    right: float = 22.0,
    top: float = 8.0,
    lines: Sequence[float] = (),
) -> Canvas:
    """Draw values with their intervals, the first on top.

    Parameters
    ----------
    width : float
    rows : sequence of Row
    label : str
        Of the axis.
    scale : callable
        Sets its limits and ticks; returns where smaller numbers are drawn.
    right, top : float
        Margins in pixels.
    lines : sequence of float
        Where dashed lines stand.
    """
    canvas, axes = rows_axes(width, [row.name for row in rows], right=right, top=top)
    zero = scale(canvas, axes)
    for place in lines:
        axes.axvline(place, **DASHED)
    for height, row in enumerate(rows):
        _interval_mark(canvas, height, row, zero)
        if row.beside:
            beside(axes, height, canvas.text(row.beside))
    axes.set_xlabel(label)
    return canvas


def linear_scale(
    canvas: Canvas, axes: Axes, *, values: Iterable[float], margin: float = 0.04
) -> float:
    """Make the horizontal axis linear, with space for `values` so far as they are finite."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    space = margin * (high - low) or margin * abs(high) or 1.0
    axes.set_xlim(low - space, high + space)
    few_ticks(axes.xaxis, 5)
    return -math.inf


def _interval_mark(canvas: Canvas, height: int, row: Row, zero: float) -> None:
    """Draw value and interval in one row.

    An arrow at an end: the interval goes on beyond the axis, or to 0 on a logarithmic one.
    """
    axes = canvas.figure.axes[0]
    left, right = axes.get_xlim()
    left = max(left, zero)
    colour = COLOUR[row.role]
    low, value, high = row.ends
    if not (math.isnan(low) or math.isnan(high)):
        start, stop = (min(max(end, left), right) for end in (low, high))
        style: Literal["dashed", "solid"] = "dashed" if row.mark == "cross" else "solid"
        axes.hlines(height, start, stop, color=colour, linewidth=2.4, linestyles=style)
        # Where the value stands itself at the end of the axis there is no place for an arrow.
        for beyond, place, arrow in (
            (low < left < value, left, "<"),
            (high > right > value, right, ">"),
        ):
            if beyond:
                axes.plot(place, height, arrow, color=colour, markersize=7, clip_on=False)
    shape = ">" if value > right else "X" if row.mark == "cross" else "o"
    (value_mark,) = axes.plot(
        min(max(value, left), right),
        height,
        shape,
        color=colour,
        markerfacecolor=COLOUR["paper"] if row.mark == "open" and shape == "o" else colour,
        markeredgewidth=1.6 if row.mark == "open" else 0.8,
        markersize=7.5 if row.mark == "cross" else 6.5,
        clip_on=False,
        zorder=4,
    )
    canvas.tip(value_mark, row.tip)
