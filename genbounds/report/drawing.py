"""Figures of a page: drawings and formulas as inline SVG in the page's colours, font and theme.

What matplotlib draws in a colour that has a role gets the page's colour of that role, so that one
picture serves light, dark and print. Every picture is drawn for a wide page and for a phone.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from genbounds._drawing import COLOUR, Row, Scale, interval_rows
from genbounds.report.blocks import Figure, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_ONE_AT_A_TIME = threading.RLock()

WIDE, NARROW = 720.0, 344.0
"""Widths in CSS pixels."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "genbounds",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11.5,
    "text.parse_math": False,
    "text.color": COLOUR["ink"],
    "axes.edgecolor": COLOUR["muted"],
    "axes.facecolor": "none",
    "axes.labelcolor": COLOUR["muted"],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "figure.autolayout": True,
    "legend.columnspacing": 1.0,
    "legend.handlelength": 1.6,
    "xtick.color": COLOUR["muted"],
    "ytick.color": COLOUR["muted"],
    "xtick.labelcolor": COLOUR["muted"],
    "ytick.labelcolor": COLOUR["ink"],
    "grid.color": COLOUR["grid"],
    "lines.solid_capstyle": "round",
}


def drawn(
    paint: Callable[[Axes], Any],
    *,
    height: float = 300.0,
    alt: str,
    caption: str,
    table: Table,
) -> Figure:
    """Draw for a wide page and for a phone.

    Parameters
    ----------
    paint : callable
        Draws on the axes that it gets.
    height : float
        In CSS pixels.
    alt, caption : str
    table : Table
    """
    from matplotlib.figure import Figure as Canvas

    def svg(width: float) -> str:
        canvas = Canvas(figsize=(width / 72, height / 72), dpi=72)
        paint(canvas.add_subplot())
        return _svg(canvas)

    with _style(STYLE):
        return Figure(wide=svg(WIDE), narrow=svg(NARROW), alt=alt, caption=caption, table=table)


def drawn_rows(
    rows: Sequence[Row],
    label: str,
    scale: Scale,
    *,
    lines: Sequence[float] = (),
    heading: str = "",
    **words: Any,
) -> Figure:
    """Draw values with their intervals; `words` are those of `drawn`."""

    def paint(ax: Axes) -> None:
        interval_rows(ax, rows, label, scale, lines=lines, heading=heading)

    return drawn(paint, height=rows_height(len(rows)), **words)


def rows_height(rows: int) -> float:
    """Return the height of a drawing of so many rows: generous while there are few."""
    return 64.0 + rows * (26.0 if rows <= 30 else 18.0)


@contextmanager
def _style(style: dict[Any, Any]) -> Iterator[None]:
    """Set matplotlib's parameters, which belong to the whole process: one thread at a time.

    From its defaults on: a file `matplotlibrc`, also one that lies in the working folder, would
    change pages, or have a program named latex set their texts. The font of the measures lacks
    glyphs that a reader's font has: no warning.
    """
    from matplotlib import rc_context, rcdefaults, rcParams

    with _ONE_AT_A_TIME, rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        rcdefaults()
        rcParams.update(style)
        yield


_PAGE_WORDS = {colour: f"var(--{role})" for role, colour in COLOUR.items()}
_PAGE_WORDS |= {"'DejaVu Sans'": "var(--sans)", "xlink:href": "href"}


def _svg(canvas: Canvas, **cut: Any) -> str:
    """Return a drawing as an `<svg>` element, in the page's colours and font.

    `cut`: what `savefig` takes of how to cut it out; then it keeps its size.
    """
    buffer = io.StringIO()
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    canvas.savefig(buffer, format="svg", metadata=empty, **cut)
    svg = buffer.getvalue()
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    dropped = r"xmlns(:xlink)?|version" + ("" if cut else "|width|height")
    svg = re.sub(rf'\s({dropped})="[^"]*"', "", head) + ">" + rest
    svg = re.sub(r' id="tip:([^"]*)">', r"><title>\1</title>", svg)
    # Ids must be unique in the page: the same picture has the same ones, another has others.
    prefix = "s" + hashlib.sha256(svg.encode()).hexdigest()[:8]

    def of_the_page(tag: re.Match[str]) -> str:
        words = "|".join(_PAGE_WORDS)
        text = re.sub(words, lambda found: _PAGE_WORDS[found[0]], tag[0])
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)

    return re.sub("<[^>]*>", of_the_page, svg)  # not in texts, which hold any name


# --- formulas -------------------------------------------------------------------------------------


def formula(latex: str) -> str | None:
    """Draw a formula as inline SVG in the page's colour; None if matplotlib cannot read it."""
    from matplotlib.figure import Figure as Canvas

    style = STYLE | {"svg.fonttype": "path", "mathtext.fontset": "stix", "text.parse_math": True}
    try:
        with _style(style | {"figure.autolayout": False}):
            canvas = Canvas(figsize=(1, 1), dpi=72)
            canvas.text(0, 0, f"${_mathtext(latex)}$", fontsize=17)
            return _svg(canvas, bbox_inches="tight", pad_inches=0.03)
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
