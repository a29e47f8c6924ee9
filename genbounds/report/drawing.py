"""Drawings: matplotlib figures as inline SVG that follows the page: its colours, font and theme.

Colours are drawn as sentinels and replaced by CSS variables, so that one picture serves light,
dark and print. Text that comes from users never passes through matplotlib: a token is drawn and
replaced by the escaped text, so that no name can be taken for mark-up or mathematics and no
missing glyph matters. Every picture is drawn for a wide page and for a phone.

There are two kinds: rows, a name and its interval each, and curves. `Scale` is an axis of either.
Formulas are drawn in the same way.
"""

from __future__ import annotations

import hashlib
import html
import io
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genbounds._text import short
from genbounds.files import display
from genbounds.report.blocks import Figure, Table
from genbounds.results import Score

if TYPE_CHECKING:
    from matplotlib.artist import Artist

Style = dict[str, Any]
"""What matplotlib's functions take by name: colours, widths, marks."""

_ONE_AT_A_TIME = threading.RLock()

WIDE, NARROW = 720.0, 344.0
SERIES = 8
NAME_LIMIT = {WIDE: 28, NARROW: 20}
"""Characters of a name that are shown beside the axes, by the width of the drawing."""

# One unlikely colour a role; replaced by var(--role).
_ROLES = ["ink", "muted", "grid", "paper", "accent", "good", "bad", "open"]
_ROLES += [f"series-{index}" for index in range(SERIES)]
COLOUR = {role: f"#0{index:x}fe{index:02x}" for index, role in enumerate(_ROLES)}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "genbounds",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11.5,
    "text.color": COLOUR["ink"],
    "axes.edgecolor": COLOUR["muted"],
    "axes.labelcolor": COLOUR["muted"],
    "xtick.color": COLOUR["muted"],
    "ytick.color": COLOUR["muted"],
    "xtick.labelcolor": COLOUR["muted"],
    "ytick.labelcolor": COLOUR["ink"],
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "grid.color": COLOUR["grid"],
    "axes.axisbelow": True,
    "lines.solid_capstyle": "round",
}

DASHED: Style = {"color": COLOUR["ink"], "linewidth": 1, "linestyle": (0, (4, 3))}
"""A line for what was promised, or is true."""

MARKS = "os^DvPX*"
"""Marks of the series, as matplotlib names them."""


class Canvas:
    """One drawing, with axes inside.

    Parameters
    ----------
    width, height : float
        In CSS pixels.
    margins : tuple of float
        Left, right, top and bottom of the axes.
    grid : {"x", "y", "both", ""}
    """

    def __init__(
        self,
        width: float,
        height: float,
        margins: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
        *,
        grid: str = "",
    ) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.narrow = width < WIDE
        self._texts: list[str] = []
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="none")
        left, right, top, bottom = margins
        across, upright = width - left - right, height - top - bottom
        box = (left / width, bottom / height, across / width, upright / height)
        self.axes = self.figure.add_axes(box, facecolor="none")
        self.axes.spines[["top", "right"]].set_visible(False)
        if grid:
            self.axes.grid(axis=grid)  # type: ignore[arg-type]

    def text(self, text: str, *, limit: int | None = None) -> str:
        """Return a token to draw in place of `text`, which may hold any character."""
        self._texts.append(html.escape(display(text, limit=limit)))
        return f"@@{len(self._texts) - 1}@@"

    def tip(self, artist: Artist, text: str) -> None:
        """Show `text` when the pointer rests on `artist`."""
        artist.set_gid(self.text(text))

    def svg(self, **cut: Any) -> str:
        """Return the drawing as an `<svg>` element, in the page's colours and font.

        `cut`: what `savefig` takes of how to cut it out; then it keeps its size.
        """
        buffer = io.StringIO()
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        self.figure.savefig(buffer, format="svg", metadata=empty, **cut)
        svg = buffer.getvalue()
        svg = svg[svg.index("<svg") :]
        for role, colour in COLOUR.items():
            svg = svg.replace(colour, f"var(--{role})")
        svg = svg.replace("'DejaVu Sans'", "var(--sans)").replace("xlink:href", "href")
        dropped = r"xmlns(:xlink)?|version" + ("" if cut else "|width|height")
        head, rest = svg.split(">", 1)
        svg = re.sub(rf'\s({dropped})="[^"]*"', "", head) + ">" + rest
        # Ids must be unique in the page: the same picture has the same ones, another has others.
        content = "\n".join((svg, *self._texts))
        prefix = "s" + hashlib.sha256(content.encode()).hexdigest()[:8]
        svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", svg)
        svg = re.sub(r' id="[^"@]*@@(\d+)@@">', r"><title>@@\1@@</title>", svg)
        return re.sub(r"@@(\d+)@@", lambda found: self._texts[int(found[1])], svg)


@contextmanager
def drawing_style(style: dict[Any, Any]) -> Iterator[None]:
    """Set matplotlib's parameters, which belong to the whole process: one thread at a time.

    From its defaults on: a file `matplotlibrc`, also one that lies in the working folder, would
    change pages, or have a program named latex set their texts.
    """
    from matplotlib import rc_context, rcdefaults, rcParams

    with _ONE_AT_A_TIME, rc_context():
        rcdefaults()
        rcParams.update(style)
        yield


def drawn(picture: Callable[[float], Canvas], *, alt: str, caption: str, table: Table) -> Figure:
    """Draw for a wide page and for a phone."""
    with drawing_style(STYLE):
        wide, narrow = picture(WIDE).svg(), picture(NARROW).svg()
    return Figure(wide=wide, narrow=narrow, alt=alt, caption=caption, table=table)


def left_margin(width: float, names: Iterable[str]) -> float:
    """Space for the names beside the axes."""
    longest = max((len(name) for name in names), default=0)
    return 20.0 + 6.7 * min(longest, NAME_LIMIT[width] + 1)


# --- axes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: its ends, its ticks, and where smaller numbers are drawn.

    Attributes
    ----------
    low, high : float
    log : bool
    ticks : int
        With labels, at most; seven are too many for the level axis on a phone.
    floor : float
        Smaller numbers are drawn here.
    zero : float or None
        Where a tick stands for 0, which a logarithmic axis cannot show.
    """

    low: float
    high: float
    log: bool = False
    ticks: int = 7
    floor: float = -math.inf
    zero: float | None = None

    @classmethod
    def linear(cls, values: Iterable[float], *, margin: float = 0.04, ticks: int = 5) -> Scale:
        """Return one with space for `values` so far as they are finite."""
        finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(finite), max(finite)
        space = margin * (high - low) or margin * abs(high) or 1.0
        return cls(low - space, high + space, ticks=ticks)

    @classmethod
    def logarithmic(cls, values: Iterable[float], zero: float | None = None) -> Scale:
        """Return one with space for `values`."""
        low, high = min(values := list(values)), max(values)
        margin = max((high / low) ** 0.04, 1.05)
        floor = -math.inf if zero is None else zero
        return cls(low / margin, high * margin, log=True, floor=floor, zero=zero)

    def apply(self, canvas: Canvas, label: str, *, upright: bool = False) -> None:
        """Scale and label an axis; the texts of its ticks are plain, never mathematics."""
        from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

        axes, letter = canvas.axes, "y" if upright else "x"
        axis = axes.yaxis if upright else axes.xaxis
        axes.set(**{f"{letter}scale": "log" if self.log else "linear", f"{letter}label": label})
        axes.set(**{f"{letter}lim": (self.low, self.high)})
        most = 4 if canvas.narrow and not upright and self.ticks == 7 else self.ticks
        zero = self.zero
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: "0" if value == zero else short(value))
        )
        if not self.log:
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
            return
        start, ratio = self.low, self.high / self.low
        if zero is not None:  # space for the 0 and for half of the next label
            box = axes.get_position()
            length = box.height * canvas.height if upright else box.width * canvas.width
            start = zero * ratio ** ((16.0 if upright else 24.0) / length)
        places = _log_places(start, self.high, most=most)
        axis.set_major_locator(FixedLocator(places if zero is None else [zero, *places]))
        between = _grid(start, self.high, range(1, 10)) if ratio < 1e6 else []
        axis.set_minor_locator(FixedLocator(between))
        axis.set_minor_formatter(NullFormatter())


def _log_places(low: float, high: float, *, most: int) -> list[float]:
    """Return from two to `most` places for labels: the finest grid that fits the axis."""
    for digits in (range(1, 10), (1, 2, 5), (1, 3), (1,)):
        places = _grid(low, high, digits)
        if len(places) <= most:
            break
    places = places[:: max(1, math.ceil(len(places) / most))]
    if len(places) >= 2:
        return places
    # Less than two of them lie on a short axis: two digits of places in between.
    return [float(f"{low * (high / low) ** share:.2g}") for share in (0.1, 0.5, 0.9)]


def _grid(low: float, high: float, digits: Sequence[int]) -> list[float]:
    """Return the numbers from `low` to `high` that begin with one of the digits, then zeros."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = (digit * 10.0**power for power in powers for digit in digits)
    return [place for place in places if low <= place <= high]


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
    role: str
    mark: str
    tip: str
    beside: str = ""


def rows_canvas(width: float, names: Sequence[str], *, right: float, top: float = 8.0) -> Canvas:
    """Canvas of the height it takes, with one named row per model, the first on top."""
    row = 26.0 if len(names) <= 30 else 18.0  # generous while there are few
    margins = (left_margin(width, names), right, top, 44.0)
    canvas = Canvas(width, 48 + top + row * len(names), margins, grid="x")
    axes = canvas.axes
    axes.set_ylim(len(names) - 0.5, -0.5)
    tokens = [canvas.text(name, limit=NAME_LIMIT[width]) for name in names]
    axes.set_yticks(range(len(names)), tokens)
    axes.tick_params(axis="y", length=0, pad=9)  # a mark at the very left stays clear of the names
    axes.spines["left"].set_visible(False)
    return canvas


def interval_rows(
    rows: Sequence[Row],
    *,
    label: str,
    scale: Scale,
    lines: Sequence[float] = (),
    shaded: Sequence[tuple[float, float]] = (),
    heading: str = "",
    alt: str,
    caption: str,
    table: Table,
) -> Figure:
    """Draw values with their intervals, the first on top.

    Parameters
    ----------
    rows : sequence of Row
    label : str
        Of the axis.
    scale : Scale
    lines : sequence of float
        Where dashed lines stand.
    shaded : sequence of (float, float)
        From where to where the ground is red.
    heading : str
        Of what stands at the right ends of the rows.
    alt, caption : str
    table : Table
    """
    longest = max(len(row.beside) for row in rows)
    right = 22.0 + (max(40.0, 7.5 * longest) if longest else 0.0)

    def picture(width: float) -> Canvas:
        names = [row.name for row in rows]
        canvas = rows_canvas(width, names, right=right, top=24.0 if heading else 8.0)
        scale.apply(canvas, label)
        if heading:
            above = {"xycoords": "axes fraction", "xytext": (8, 6), "va": "baseline"}
            beside(canvas, 1.0, heading, **above)
        for start, stop in shaded:
            canvas.axes.axvspan(start, stop, color=COLOUR["bad"], alpha=0.12, linewidth=0)
        for place in lines:
            canvas.axes.axvline(place, **DASHED)
        for height, row in enumerate(rows):
            _interval_mark(canvas, height, row, scale)
            if row.beside:
                beside(canvas, height, canvas.text(row.beside))
        return canvas

    return drawn(picture, alt=alt, caption=caption, table=table)


def beside(canvas: Canvas, height: float, text: str, **style: Any) -> None:
    """Write at the right end of a row."""
    usual: Style = {
        "color": COLOUR["muted"],
        "xycoords": canvas.axes.get_yaxis_transform(),
        "textcoords": "offset points",
        "xytext": (8, 0),
        "va": "center",
    }
    canvas.axes.annotate(text, (1.0, height), **usual | style)


def _interval_mark(canvas: Canvas, height: int, row: Row, scale: Scale) -> None:
    """Draw value and interval in one row.

    An arrow at an end: the interval goes on beyond the axis, or to 0 on a logarithmic one.
    """
    axes, left, right = canvas.axes, max(scale.low, scale.floor), scale.high
    colour = COLOUR[row.role]
    low, value, high = row.ends
    if not (math.isnan(low) or math.isnan(high)):
        start, stop = (min(max(end, left), right) for end in (low, high))
        line: Style = {"linestyles": "dashed" if row.mark == "cross" else "solid"}
        axes.hlines(height, start, stop, color=colour, linewidth=2.4, **line)
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


# --- curves ---------------------------------------------------------------------------------------


def curve_canvas(
    width: float,
    x: tuple[str, Scale],
    y: tuple[str, Scale],
    *,
    legend: Sequence[tuple[str, Style]] = (),
    right: float = 14.0,
    grid: str = "both",
) -> Canvas:
    """Canvas for curves, with the label and the scale of either axis.

    Parameters
    ----------
    width : float
    x, y : tuple of str and Scale
    legend : sequence of (str, style)
        Stands above the axes. Its texts are tokens, whose width matplotlib cannot know.
    right : float
        Margin in pixels.
    grid : {"both", "y", ""}
    """
    from matplotlib.lines import Line2D

    columns = 2 if width < WIDE else 4
    top = 22.0 + 18 * math.ceil(len(legend) / columns) if legend else 12.0
    height = 300.0 if width == WIDE else 270.0
    canvas = Canvas(width, height, (62.0, right, top, 46.0), grid=grid)
    step = (width - 24) / columns
    for index, (name, style) in enumerate(legend):
        left = 12 + step * (index % columns)
        level = 1.0 - (14 + 18 * (index // columns)) / height
        ends = [left / width, (left + 9) / width, (left + 18) / width]
        canvas.figure.add_artist(Line2D(ends, [level] * 3, **style | {"markevery": [1]}))
        token = canvas.text(name, limit=17 if canvas.narrow else 20)
        canvas.figure.text((left + 24) / width, level, token, va="center_baseline")
    x[1].apply(canvas, x[0])
    y[1].apply(canvas, y[0], upright=True)
    return canvas


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


def growth_scale(scores: Sequence[Score], settled: Sequence[float]) -> Scale:
    """Return an upright scale on which wide bands of small samples squeeze no line.

    `settled` are values that must be seen whole.
    """
    values = [*settled, *(score.value for score in scores)]
    ends = [end for score in scores for end in (score.low, score.high) if math.isfinite(end)]
    low, high = min(values), max(values)
    positive = [value for value in settled if value > 0.0]
    if low >= 0.0 and positive and max(positive) >= 20.0 * min(positive):
        floor = min(positive) / 4.0
        top = min(max([*ends, high]), 4.0 * high)
        return Scale(0.9 * floor, top, log=True, floor=floor, zero=floor if low < floor else None)
    span = max(high - low, 0.1 * abs(high))
    bottom, top = max(min([*ends, low]), low - span), min(max([*ends, high]), high + span)
    margin = 0.03 * (top - bottom) or 1.0  # marks at zero are shown whole
    return Scale(bottom - margin, top + margin, ticks=6)


def band(
    canvas: Canvas, places: Sequence[float], scores: Sequence[Score], scale: Scale, colour: str
) -> None:
    """Shade between the ends of the intervals of `scores`, where they are known."""
    ends = [(max(score.low, scale.floor), max(score.high, scale.floor)) for score in scores]
    known = [all(map(math.isfinite, pair)) for pair in ends]
    lows, highs = zip(*ends, strict=True)
    style: Style = {"color": colour, "alpha": 0.16, "linewidth": 0}
    canvas.axes.fill_between(places, lows, highs, where=known, **style)


# --- formulas -------------------------------------------------------------------------------------


def formula(latex: str) -> str | None:
    """Draw a formula as inline SVG in the page's colour; None if matplotlib cannot read it."""
    style = STYLE | {"svg.fonttype": "path", "mathtext.fontset": "stix"}
    try:
        with drawing_style(style):
            canvas = Canvas(72, 72)
            canvas.axes.remove()
            canvas.figure.text(0, 0, f"${_mathtext(latex)}$", fontsize=17, color=COLOUR["ink"])
            return canvas.svg(bbox_inches="tight", pad_inches=0.03)
    except ValueError:  # mathtext knows a part of LaTeX
        return None


# What the catalogue uses of LaTeX beyond mathtext, in mathtext's words.
_TOKEN = r"\s*(\\[A-Za-z]+|[^\s{}\\\[])"
_GROUP = r"\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[A-Za-z]+|[^\s{}\\])"
_FRACTION = re.compile(rf"\\[td]frac{_GROUP}{_GROUP}")
_WORDS = re.compile(r"\\text\{([^{}]*)\}")
_TRANSLATIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"\\(sqrt|mathcal|mathbb|hat|tilde|bar){_TOKEN}", r"\\\1{\2}"),
        (r"\\[Bb]igg?l(?![A-Za-z])", r"\\left"),
        (r"\\[Bb]igg?r(?![A-Za-z])", r"\\right"),
        (r"\\le(?![A-Za-z])", r"\\leq "),
        (r"\\ge(?![A-Za-z])", r"\\geq "),
    )
)


def _mathtext(latex: str) -> str:
    latex = _WORDS.sub(lambda found: r"\mathrm{" + found[1].replace(" ", r"\ ") + "}", latex)
    for pattern, replacement in _TRANSLATIONS:
        latex = pattern.sub(replacement, latex)
    found = 1
    while found:  # a fraction may hold another
        latex, found = _FRACTION.subn(r"\\frac{\1}{\2}", latex)
    return latex
