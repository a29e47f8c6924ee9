"""Matplotlib figures as inline SVG that follows the page: its colours, its font, its theme.

Colours are drawn as sentinels and replaced by CSS variables, so that one picture serves light,
dark and print. Text that comes from users never passes through matplotlib: a token is drawn and
replaced by the escaped text, so that no name can be taken for mark-up or mathematics and no
missing glyph matters. Every picture is drawn twice, for a wide page and for a phone.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from genbounds.files import display
from genbounds.report.blocks import Figure, Table

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_ONE_AT_A_TIME = threading.RLock()

WIDE, NARROW = 720.0, 344.0
SERIES = 8
NAME_LIMIT = {False: 28, True: 20}
"""Characters of a name that are shown beside the axes, by whether the drawing is narrow."""

# One unlikely colour a role; replaced by var(--role).
_ROLES = ["ink", "muted", "grid", "paper", "accent", "good", "bad", "open"]
_ROLES += [f"series-{index}" for index in range(SERIES)]
COLOUR = {role: f"#0{index:x}fe{index:02x}" for index, role in enumerate(_ROLES)}

_STYLE: dict[Any, Any] = {
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


class Canvas:
    """One drawing of a given size in CSS pixels."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.narrow = width < WIDE
        self._texts: list[str] = []
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72, facecolor="none")

    def axes(
        self, *, left: float, right: float, top: float, bottom: float, grid: str = "x"
    ) -> Axes:
        """Add axes with margins in pixels; `grid` is "x", "y", "both" or ""."""
        w, h = self.width, self.height
        box = (left / w, bottom / h, (w - left - right) / w, (h - top - bottom) / h)
        axes = self.figure.add_axes(box, facecolor="none")
        axes.spines[["top", "right"]].set_visible(False)
        if grid:
            axes.grid(axis=grid)  # type: ignore[arg-type]
        return axes

    def text(self, text: str) -> str:
        """Return a token to draw in place of `text`, which may hold any character."""
        self._texts.append(html.escape(text))
        return f"@@{len(self._texts) - 1}@@"

    def name(self, name: str, *, limit: int | None = None) -> str:
        """Return a token for a model's name, cut to what fits beside the axes."""
        return self.text(display(name, limit=limit or NAME_LIMIT[self.narrow]))

    def tip(self, artist: Artist, text: str) -> None:
        """Show `text` when the pointer rests on `artist`."""
        artist.set_gid(self.text(text))

    def svg(self) -> str:
        """Return the drawing as an `<svg>` element for a page."""
        buffer = io.StringIO()
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        self.figure.savefig(buffer, format="svg", metadata=empty)
        svg = inline(buffer.getvalue(), salt="\n".join(self._texts))
        svg = re.sub(r' id="[^"@]*@@(\d+)@@">', r"><title>@@\1@@</title>", svg)
        return re.sub(r"@@(\d+)@@", lambda found: self._texts[int(found[1])], svg)


def inline(svg: str, *, keep_size: bool = False, salt: str = "") -> str:
    """Make matplotlib's SVG file an element of a page, in the page's colours and font."""
    svg = svg[svg.index("<svg") :]
    for role, colour in COLOUR.items():
        svg = svg.replace(colour, f"var(--{role})")
    svg = svg.replace("'DejaVu Sans'", "var(--sans)").replace("xlink:href", "href")
    dropped = r"xmlns(:xlink)?|version" + ("" if keep_size else "|width|height")
    head, rest = svg.split(">", 1)
    svg = re.sub(rf'\s({dropped})="[^"]*"', "", head) + ">" + rest
    # Ids must be unique in the page: the same picture has the same ones, another has others.
    prefix = "s" + hashlib.sha256((svg + salt).encode()).hexdigest()[:8]
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", svg)


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
    with drawing_style(_STYLE):
        wide, narrow = picture(WIDE).svg(), picture(NARROW).svg()
    return Figure(wide=wide, narrow=narrow, alt=alt, caption=caption, table=table)


def left_margin(names: Sequence[str], *, narrow: bool) -> float:
    """Space for the names beside the axes."""
    limit = NAME_LIMIT[narrow] + 1
    return 20.0 + 6.7 * max((min(len(name), limit) for name in names), default=0)


def rows_axes(
    width: float, names: Sequence[str], *, right: float, top: float = 8.0
) -> tuple[Canvas, Axes]:
    """Canvas of the height it takes, and axes with one named row per model, the first on top."""
    row = 26.0 if len(names) <= 30 else 18.0  # generous while there are few
    canvas = Canvas(width, 48 + top + row * len(names))
    axes = canvas.axes(
        left=left_margin(names, narrow=canvas.narrow), right=right, top=top, bottom=44.0
    )
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [canvas.name(name) for name in names])
    axes.tick_params(axis="y", length=0, pad=9)  # a mark at the very left stays clear of the names
    axes.spines["left"].set_visible(False)
    return canvas, axes
