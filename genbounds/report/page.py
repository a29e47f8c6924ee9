"""One self-contained HTML page built from sections."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from genbounds.files import atomic_write, display
from genbounds.report._text import number
from genbounds.validation import InputError

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

Tone = Literal["good", "bad", "open", "plain"]


@dataclass(frozen=True, slots=True)
class Name:
    """A model's name as its owner wrote it.

    It is shown as text, cut where long, isolated from its surroundings where it runs from right
    to left.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A word with a tone: a verdict, a certificate."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Link:
    """A reference; followed only when the reader asks for it."""

    text: str
    href: str

    def __post_init__(self) -> None:
        if not self.href.startswith(("https://", "#")):
            raise InputError(f"`href` must start with https:// or #; got {self.href!r}.")


@dataclass(frozen=True, slots=True)
class Code:
    """An identifier or formula in fixed width."""

    text: str


Cell: TypeAlias = "str | int | float | bool | Name | Tag | Link | Code | None"


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose columns sort on demand.

    Attributes
    ----------
    columns : sequence of str
    rows : sequence of sequences of cells
    caption : str
        One line above the table; may be empty.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InputError(
                    f"`rows` must have {len(self.columns)} cells each; got one with {len(row)}."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture with its description and its numbers.

    Attributes
    ----------
    wide, narrow : str
        The `<svg>` for a wide page and for a phone, as `genbounds.report.figures` makes them.
    alt : str
        What the picture shows, in words, for readers who do not see it.
    caption : str
    table : Table
        The numbers behind the picture.
    """

    wide: str
    narrow: str
    alt: str
    caption: str
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A few key figures side by side: (label, value, remark) each."""

    items: Sequence[tuple[str, Cell, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Remarks as a list: what an interval assumes, and reasons not to trust it."""

    items: Sequence[str]
    title: str = "What these numbers assume"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula in LaTeX, drawn without a network; shown as written if it cannot be drawn."""

    latex: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that was made elsewhere, such as a sheet of samples.

    Attributes
    ----------
    png : bytes
    alt : str
    caption : str
    """

    png: bytes
    alt: str
    caption: str = ""


Block: TypeAlias = "str | Table | Figure | Facts | Notes | Formula | Picture"


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a page: paragraphs (plain strings), tables, figures, facts, notes."""

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


def write_page(path: str | os.PathLike[str], page: Page) -> None:
    """Write `page` to an HTML file, whole or not at all.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    atomic_write(path, page.render())


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("genbounds.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters |= {
        "cell": _cell,
        "sort_key": _sort_key,
        "numeric": _is_number,
        "long": lambda cell: isinstance(cell, str) and len(cell) > 30,
        "kind": lambda block: type(block).__name__,
        "svg": _trusted,
        "formula": _formula,
        "base64": _base64,
    }
    return environment


def _printable(value: object) -> object:
    """Show control characters and marks that reorder text instead of obeying them."""
    return display(value, limit=None) if type(value) is str else value  # mark-up stays


def _cell(cell: Cell) -> Markup:
    from markupsafe import Markup

    match cell:
        case Name():
            return Markup('<bdi class="name" title="{}">{}</bdi>').format(
                display(cell.text, limit=400), display(cell.text, limit=72)
            )
        case Tag():
            return Markup('<span class="tag {}">{}</span>').format(cell.tone, _printable(cell.text))
        case Link():
            return Markup('<a href="{}" rel="noreferrer">{}</a>').format(
                cell.href, _printable(cell.text)
            )
        case Code():
            return Markup("<code>{}</code>").format(_printable(cell.text))
    return Markup("{}").format(_printable(number(cell)))


def _sort_key(cell: Cell) -> str:
    match cell:
        case Name() | Tag() | Link() | Code():
            return cell.text[:72]
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return repr(float(cell)) if isinstance(cell, (int, float)) else cell[:72]


def _is_number(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))


def _trusted(svg: str) -> Markup:
    """Pass a drawing of ours on as mark-up: its texts were escaped when it was drawn."""
    from markupsafe import Markup

    return Markup(svg)


def _formula(latex: str) -> Markup | None:
    from genbounds.report.figures import formula

    svg = formula(latex)
    return None if svg is None else _trusted(svg)


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode("ascii")
