"""Drawings of results on matplotlib axes, for a notebook and for a page alike: rows and curves.

Rows are a name and its interval each; `Scale` is an axis of either kind. Every colour has a role,
by which a page replaces it with its own. No name is ever taken for mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genbounds._text import display, number, short

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Style = dict[str, Any]
"""What matplotlib's functions take by name: colours, widths, marks."""

COLOUR = {
    "ink": "#1c2126", "muted": "#5b646e", "grid": "#e3e6e9", "paper": "#fdfdfb",
    "accent": "#1f5fa8", "good": "#1d7a4f", "bad": "#b3362b", "open": "#8a6510",
    "series-0": "#1f5fa9", "series-1": "#c4581a", "series-2": "#1d7a50", "series-3": "#9a3f8c",
    "series-4": "#8a6511", "series-5": "#2a8296", "series-6": "#b3362c", "series-7": "#5b646f",
}  # fmt: skip
"""By role: those of a page on a light ground; no two are equal, so that each tells its role."""

SERIES = 8
DASHED: Style = {"color": COLOUR["muted"], "linewidth": 1, "linestyle": (0, (4, 3))}
"""A line for what was promised, or is true."""

MARKS = "os^DvPX*"
"""Marks of the series, as matplotlib names them."""


def new_axes(height: float = 4.8) -> Axes:
    """Return the axes of a new figure, `height` inches high."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.4, height), layout="constrained")[1]


def is_narrow(ax: Axes) -> bool:
    """Whether the figure is as narrow as a phone."""
    return ax.figure.bbox.width / ax.figure.dpi < 5.5


def tip(artist: Artist, text: str) -> None:
    """Show `text` on a page when the pointer rests on `artist`."""
    artist.set_gid(f"tip:{display(text, limit=None)}")


# --- axes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its ends, and where smaller numbers are drawn.

    Attributes
    ----------
    low, high : float
    log : bool
    floor : float
        Smaller numbers are drawn here.
    zero : float or None
        Where a tick stands for 0, which a logarithmic axis cannot show.
    """

    low: float
    high: float
    log: bool = False
    floor: float = -math.inf
    zero: float | None = None

    @classmethod
    def linear(cls, values: Iterable[float], *, margin: float = 0.04) -> Scale:
        """Return one with space for `values` so far as they are finite."""
        finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        space = margin * (high - low) or margin * abs(high) or 1.0
        return cls(low - space, high + space)

    @classmethod
    def logarithmic(cls, values: Iterable[float], zero: float | None = None) -> Scale:
        """Return one with space for `values`."""
        low, high = min(values := list(values)), max(values)
        margin = max((high / low) ** 0.04, 1.05)
        floor = -math.inf if zero is None else zero
        return cls(low / margin, high * margin, log=True, floor=floor, zero=zero)

    @classmethod
    def spread(cls, results: Sequence[Any]) -> Scale:
        """Return one for `results` with value, low and high, logarithmic if they are far apart.

        That is where no value is negative and the positive ones differ by a factor of twenty: on a
        linear axis the good models would then coincide.
        """
        values = [one.value for one in results if math.isfinite(one.value)]
        # A model with score 0 has at least the upper end of its interval to show.
        sizes = [
            size for one in results if math.isfinite(size := one.value or one.high) and size > 0.0
        ]
        if min(values, default=-1.0) < 0.0 or not sizes or max(sizes) < 20.0 * min(sizes):
            return cls.linear(end for one in results for end in (one.value, one.low, one.high))
        floor = min(sizes) / 3.0
        top = max([*sizes, *(one.high for one in results if math.isfinite(one.high))])
        margin = (top / floor) ** 0.03
        below = any(one.low < floor or one.value < floor for one in results)
        zero = floor if below else None
        return cls(floor / margin, top * margin, log=True, floor=floor, zero=zero)

    @classmethod
    def growth(cls, results: Sequence[Any], settled: Sequence[float]) -> Scale:
        """Return one on which wide bands of small samples squeeze no line.

        `settled` are values that must be seen whole.
        """
        values = [*settled, *(one.value for one in results)]
        ends = [end for one in results for end in (one.low, one.high) if math.isfinite(end)]
        low, high = min(values), max(values)
        positive = [value for value in settled if value > 0.0]
        if low >= 0.0 and positive and max(positive) >= 20.0 * min(positive):
            floor = min(positive) / 4.0
            top = min(max([*ends, high]), 4.0 * high)
            return cls(0.9 * floor, top, log=True, floor=floor, zero=floor if low < floor else None)
        span = max(high - low, 0.1 * abs(high))
        bottom, top = max(min([*ends, low]), low - span), min(max([*ends, high]), high + span)
        margin = 0.03 * (top - bottom) or 1.0  # marks at zero are shown whole
        return cls(bottom - margin, top + margin)

    def apply(self, ax: Axes, label: str, *, upright: bool = False) -> None:
        """Scale and label an axis; the texts of its ticks are plain, never mathematics."""
        from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

        letter, axis = ("y", ax.yaxis) if upright else ("x", ax.xaxis)
        ax.set(**{f"{letter}scale": "log" if self.log else "linear"})
        ax.set(**{f"{letter}lim": (self.low, self.high)})
        axis.set_label_text(label, parse_math=False)
        inches, zero = int(ax.figure.bbox.width / ax.figure.dpi), self.zero
        most = 6 if upright else min(inches, 6)
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: "0" if value == zero else short(value))
        )
        axis.set_minor_formatter(NullFormatter())
        if not self.log:
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
        elif zero is None:
            axis.set_major_locator(FixedLocator(_log_places(self.low, self.high, most=most)))
        else:  # space for the 0 and for half of the next label
            start = zero * (self.high / self.low) ** 0.12
            places = _log_places(start, self.high, most=most)
            axis.set_major_locator(FixedLocator([zero, *places]))


def _log_places(low: float, high: float, *, most: int) -> list[float]:
    """Return from two to `most` places for labels: the finest grid that fits the axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in (range(1, 10), (1, 2, 5), (1, 3), (1,)):
        numbers = (digit * 10.0**power for power in powers for digit in digits)
        places = [place for place in numbers if low <= place <= high]
        if len(places) <= most:
            break
    places = places[:: max(1, math.ceil(len(places) / most))]
    if len(places) >= 2:
        return places
    # Less than two of them lie on a short axis: two digits of places in between.
    return [float(f"{low * (high / low) ** share:.2g}") for share in (0.1, 0.5, 0.9)]


# --- rows -----------------------------------------------------------------------------------------


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
    role: str = "accent"
    mark: str = "filled"
    tip: str = ""
    beside: str = ""


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Make a named row for each, the first on top; names are cut once escapes are spelled out."""
    limit = min(28, int(4.2 * ax.figure.bbox.width / ax.figure.dpi))  # characters an inch
    texts = [display(display(name, limit=None), limit=limit) for name in names]
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_yticks(range(len(names)), texts, parse_math=False)
    ax.tick_params(axis="y", length=0, pad=9)  # a mark at the very left stays clear of the names
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.yaxis.grid(visible=False)


BESIDE: Style = {"color": COLOUR["muted"], "va": "center", "parse_math": False}
BESIDE |= {"textcoords": "offset points", "xytext": (8, 0)}
"""How texts look that stand at the right end of a row."""


def interval_rows(
    ax: Axes,
    rows: Sequence[Row],
    label: str,
    scale: Scale,
    *,
    lines: Sequence[float] = (),
    heading: str = "",
) -> Axes:
    """Draw values with their intervals, the first on top.

    An arrow at an end: the interval goes on beyond the axis, or to 0 on a logarithmic one.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    rows : sequence of Row
    label : str
        Of the axis.
    scale : Scale
    lines : sequence of float
        Where dashed lines stand.
    heading : str
        Of what stands at the right ends of the rows.
    """
    name_rows(ax, [row.name for row in rows])
    scale.apply(ax, label)
    top: Style = {"xytext": (8, 6), "va": "baseline"}
    texts = [(-0.5, heading, top), *((k, row.beside, Style()) for k, row in enumerate(rows))]
    for height, text, style in texts:
        if text:
            style = BESIDE | style
            ax.annotate(text, (1.0, height), xycoords=ax.get_yaxis_transform(), **style)
    for place in lines:
        ax.axvline(place, **DASHED)
    left, right = max(scale.low, scale.floor), scale.high
    for height, row in enumerate(rows):
        (low, value, high), cross, colour = row.ends, row.mark == "cross", COLOUR[row.role]
        if not (math.isnan(low) or math.isnan(high)):
            start, stop = (min(max(end, left), right) for end in (low, high))
            dashes: Style = {"linestyles": "dashed" if cross else "solid"}
            ax.hlines(height, start, stop, color=colour, linewidth=2.4, **dashes)
            # Where the value stands itself at the end of the axis there is no place for an arrow.
            for beyond, place, arrow in (
                (low < left < value, left, "<"),
                (high > right > value, right, ">"),
            ):
                if beyond:
                    ax.plot(place, height, arrow, color=colour, markersize=7, clip_on=False)
        shape = ">" if value > right else "X" if cross else "o"
        hollow = row.mark == "open"
        (mark,) = ax.plot(
            min(max(value, left), right),
            height,
            shape,
            color=colour,
            markerfacecolor=COLOUR["paper"] if hollow and shape == "o" else colour,
            markeredgewidth=1.6 if hollow else 0.8,
            markersize=7.5 if cross else 6.5,
            clip_on=False,
            zorder=4,
        )
        tip(mark, row.tip)
    return ax


# --- curves ---------------------------------------------------------------------------------------


def series_style(index: int) -> Style:
    """Return colour and mark of the line `index`: told apart without colours too."""
    return {
        "color": COLOUR[f"series-{index % SERIES}"],
        "linewidth": 1.6,
        "marker": MARKS[index % SERIES],
        "markersize": 5.5,
        "markeredgecolor": COLOUR["paper"],
        "markeredgewidth": 0.6,
    }


def legend(ax: Axes, entries: Sequence[tuple[str, Style]]) -> None:
    """Name lines above the axes."""
    from matplotlib.lines import Line2D

    limit, columns = (17, 2) if is_narrow(ax) else (20, 4)
    box = ax.legend(
        [Line2D([], [], **style) for _, style in entries],
        [display(name, limit=limit) for name, _ in entries],
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        frameon=False,
    )
    for text in box.get_texts():
        text.set_parse_math(False)


def band(
    ax: Axes, places: Sequence[float], results: Sequence[Any], scale: Scale, colour: str
) -> None:
    """Shade between the ends of the intervals of `results`, where they are known."""
    ends = [(max(one.low, scale.floor), max(one.high, scale.floor)) for one in results]
    known = [all(map(math.isfinite, pair)) for pair in ends]
    lows, highs = zip(*ends, strict=True)
    ax.fill_between(places, lows, highs, where=known, color=colour, alpha=0.16, linewidth=0)


def predicted_curve(
    ax: Axes,
    x: tuple[Sequence[float], str],
    y: tuple[Sequence[float], str],
    *,
    wanted: float | None,
    at: float | None = None,
    floor: float | None = None,
) -> Axes:
    """Draw what is predicted by size, with its target, and the place where it is reached.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    x, y : tuple of sequence of float and str
        Sizes and values, and the label of their axis; a "power" goes from 0 to 1.
    wanted : float or None
        The target.
    at : float or None
        The size that reaches it.
    floor : float or None
        What no size gets below.
    """
    (sizes, across), (values, upright) = x, y
    seen = [*values, *(x for x in (wanted, floor) if x)]
    scale = Scale(min(seen) / 1.15, max(seen) * 1.15, log=True)
    if upright.startswith("power"):
        scale = Scale(0.0, 1.02)
    Scale.logarithmic(sizes).apply(ax, across)
    scale.apply(ax, upright, upright=True)
    (line,) = ax.plot(sizes, values, color=COLOUR["accent"], linewidth=1.8)
    ends = (f"{number(values[k])} at {number(round(sizes[k]))}" for k in (0, -1))
    tip(line, f"{upright} {', '.join(ends)}")
    if wanted is not None:
        ax.axhline(wanted, **DASHED)
    if floor is not None:
        ax.axhline(floor, color=COLOUR["muted"], linewidth=1.2, linestyle=(0, (1, 2)))
    if at is not None and wanted is not None:
        look: Style = {"markersize": 7, "clip_on": False, "zorder": 4}
        (mark,) = ax.plot(at, wanted, "o", color=COLOUR["accent"], **look)
        tip(mark, f"n = {number(at)}")
    return ax
