"""One self-contained HTML page built from sections, and its figures as inline SVG.

What matplotlib draws in a colour that has a role gets the page's colour of that role, so that one
picture serves light, dark and print. Every picture is drawn for a wide page and for a phone.
"""

from __future__ import annotations

import io
import os
import re
import threading
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from genbounds._drawing import COLOUR
from genbounds._process import silenced
from genbounds._text import display, number, shown
from genbounds.files import atomic_write
from genbounds.report.blocks import Block, Cell, Code, Facts, Figure, Link, Name, Table, Tag
from genbounds.validation import InputError

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

NO_VALUE = "–"
"""What stands where there is no number."""

MINUS = "−"
SUPERSCRIPT = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
FROM_SUPERSCRIPT = str.maketrans(SUPERSCRIPT, "-0123456789")

FORMATTED = re.compile(
    rf"\[?(?P<digits>(?!10[{SUPERSCRIPT}])[{MINUS}-]?\d[\d\N{{NARROW NO-BREAK SPACE}}]*(?:\.\d+)?)?"
    rf"(?:·?10(?P<exponent>[{SUPERSCRIPT}]+))?(?<=[\d\s{SUPERSCRIPT}])(?![\w.])"
)
"""A number at the start of a text, as `genbounds._text` writes it: of a share, of an interval, of a
score with its interval."""

NUMBER = re.compile(rf"<?(?:{FORMATTED.pattern})\s?%?|{MINUS}?∞|{NO_VALUE}")
"""A text that is a number as a whole, or an unknown one."""


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a page.

    Attributes
    ----------
    title : str
    blocks : sequence
        Paragraphs (plain strings), tables, figures, facts, notes.
    """

    title: str
    blocks: Sequence[Block]


@dataclass(slots=True)
class Page:
    """A page: what it answers first, then its sections.

    Attributes
    ----------
    title : str
    lead : str
        The answer in one or two sentences.
    facts : Facts or None
        Key figures under the lead.
    foot : str
        Last line: what made the page.
    sections : list of Section
    """

    title: str
    lead: str
    facts: Facts | None = None
    foot: str = ""
    sections: list[Section] = field(default_factory=list)

    def add(self, *sections: Section) -> Page:
        """Append sections; returns self."""
        self.sections.extend(sections)
        return self

    def render(self) -> str:
        """Return the page as HTML. Equal content gives equal text."""
        return _environment().get_template("page.html").render(page=self)


FOOT = "Made by genbounds. The page is complete in itself: it loads nothing from anywhere."
"""The last line of every page."""


def answer_page(title: str, lead: str, *facts: tuple[str, Cell, str]) -> Page:
    """Return a command's page: its question, the answer, and key figures with their remarks."""
    return Page(title, lead, Facts(items=facts), FOOT)


def write_page(path: str | os.PathLike[str], page: Page) -> None:
    """Write `page` to an HTML file at `path`, whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    atomic_write(path, page.render())


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("genbounds.report")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    # Style and script are texts, no templates.
    environment.globals |= {
        name: Markup(loader.get_source(environment, f"page.{name}")[0]) for name in ("css", "js")
    }
    filters: dict[str, Callable[..., Any]] = {
        "cell": _cell,
        "numeric": numeric,
        "name": lambda name: display(name, limit=120),
        "code": lambda name: _cell(Code(display(name, limit=60)))[1],
        "long": lambda cell: isinstance(cell, str) and len(cell) > 30,
        "kind": lambda block: type(block).__name__,
        "formula": formula,
        "base64": lambda data: b64encode(data).decode("ascii"),
        "sha256": lambda text: sha256(text.encode()).digest(),
    }
    environment.filters |= filters
    return environment


def _printable(value: object) -> object:
    """Show control characters and marks that reorder text instead of obeying them.

    An interval, and a letter with its value ("p = 0.03"), stay in one line.
    """
    if type(value) is not str:
        return value  # mark-up stays
    text = re.sub(r"\[(\S+), (\S+)\]", "[\\1,\N{NO-BREAK SPACE}\\2]", display(value, limit=None))
    return re.sub(r"\b(\w) = (?=\S)", "\\1\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", text)


def _cell(cell: Cell) -> tuple[str, Markup]:
    """Return what a cell is sorted by, and its mark-up."""
    from markupsafe import Markup

    match cell:
        case Name():
            full, name = display(cell.text, limit=400), display(cell.text, limit=72)
            html = Markup('<bdi class="name" title="{}">{}</bdi>').format(full, name)
            return cell.text[:72], html
        case Tag():
            html = Markup('<span class="tag {}">{}</span>')
            return cell.text[:72], html.format(cell.tone, _printable(cell.text))
        case Link():
            html = Markup('<a href="{}" rel="noreferrer">{}</a>')
            return cell.text[:72], html.format(cell.href, _printable(cell.text))
        case Code():
            return cell.text[:72], Markup("<code>{}</code>").format(_printable(cell.text))
    text = number(cell)
    html = Markup("{}").format(_printable(text))
    if text == NO_VALUE:
        return "", html
    if not isinstance(cell, str):
        return repr(float(cell or 0)), html
    if (found := FORMATTED.match(cell)) is None:
        return cell[:72], html
    digits = "".join((found["digits"] or "1").split()).replace(MINUS, "-")
    exponent = (found["exponent"] or "0").translate(FROM_SUPERSCRIPT)
    return repr(float(f"{digits}e{exponent}")), html


def cell_text(cell: Cell) -> str:
    """Return a cell as plain text."""
    if isinstance(cell, Name):
        return shown(cell.text)
    return cell.text if isinstance(cell, (Tag, Link, Code)) else number(cell)


def numeric(table: Table) -> list[bool]:
    """Return which columns of a table hold numbers, some of which may be unknown.

    Raises
    ------
    InputError
        If a row has more cells than there are columns, or fewer.
    """
    width = len(table.columns)
    for row in table.rows:
        if len(row) != width:
            raise InputError(f"`rows` must have {width} cells each; got one with {len(row)}.")
    known = ([row[k] for row in table.rows if row[k] not in ("", NO_VALUE)] for k in range(width))
    texts = ({number(cell) for cell in column} for column in known)
    return [bool(column) and all(map(NUMBER.fullmatch, column)) for column in texts]


# --- figures --------------------------------------------------------------------------------------

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
    paint: Callable[[Axes], Any], *, alt: str, caption: str, table: Table, rows: int | None = None
) -> Figure:
    """Draw for a wide page and for a phone.

    Parameters
    ----------
    paint : callable
        Draws on the axes that it gets.
    alt, caption : str
    table : Table
    rows : int, optional
        Of a drawing of named rows, which is as high as they need: generous while they are few.
    """
    height = 300.0 if rows is None else 64.0 + rows * (26.0 if rows <= 30 else 18.0)
    wide, narrow = (
        _svg(lambda canvas: paint(canvas.add_subplot()), (width / 72, height / 72), STYLE)
        for width in (WIDE, NARROW)
    )
    return Figure(wide=wide, narrow=narrow, alt=alt, caption=caption, table=table)


def _svg(
    paint: Callable[[Canvas], Any], size: tuple[float, float], style: dict[Any, Any], **cut: Any
) -> str:
    """Return a drawing as an `<svg>` element, in the page's colours and font.

    Matplotlib's parameters belong to the whole process: one thread at a time sets them. From its
    defaults on: a file `matplotlibrc`, also one that lies in the working folder, would change
    pages, or have a program named latex set their texts. The font of the measures lacks glyphs
    that a reader's font has: no warning. `cut`: what `savefig` takes of how to cut the drawing
    out; then it keeps its size.
    """
    from matplotlib import rc_context, rcdefaults, rcParams
    from matplotlib.figure import Figure as Canvas

    buffer = io.StringIO()
    with _ONE_AT_A_TIME, rc_context(), silenced(UserWarning, "Glyph .* missing"):
        rcdefaults()
        rcParams.update(style)
        paint(canvas := Canvas(figsize=size, dpi=72))
        empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.savefig(buffer, format="svg", metadata=empty, **cut)
    svg = buffer.getvalue()
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    dropped = r"xmlns(:xlink)?|version" + ("" if cut else "|width|height")
    svg = re.sub(rf'\s({dropped})="[^"]*"', "", head) + ">" + rest
    # In single quotes where the name has a double one.
    svg = re.sub(r""" id=(["'])tip:(.*?)\1>""", r"><title>\2</title>", svg)
    # Ids must be unique in the page: the same picture has the same ones, another has others.
    prefix = "s" + sha256(svg.encode()).hexdigest()[:8]
    words = {colour: f"var(--{role})" for role, colour in COLOUR.items()}
    words |= {"'DejaVu Sans'": "var(--sans)", ' id="': f' id="{prefix}'}
    words |= {'xlink:href="#': f'href="#{prefix}', "url(#": f"url(#{prefix}"}
    # Texts, which hold any name, stay.
    pattern = "|".join((">[^<]*", *map(re.escape, words)))
    return re.sub(pattern, lambda found: words.get(found[0], found[0]), svg)


# --- formulas -------------------------------------------------------------------------------------


def formula(latex: str) -> str | None:
    """Draw a formula as inline SVG in the page's colour; None if matplotlib cannot read it."""
    style = STYLE | {"svg.fonttype": "path", "mathtext.fontset": "stix", "text.parse_math": True}
    style |= {"figure.autolayout": False}
    text = f"${_mathtext(latex)}$"
    cut = {"bbox_inches": "tight", "pad_inches": 0.03}
    try:
        return _svg(lambda canvas: canvas.text(0, 0, text, fontsize=17), (1, 1), style, **cut)
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
