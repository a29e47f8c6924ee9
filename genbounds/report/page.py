"""One self-contained HTML page built from sections."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from genbounds._text import number
from genbounds.files import atomic_write, display
from genbounds.report.blocks import Block, Cell, Code, Facts, Link, Name, Tag

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


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
        "name": lambda name: display(name, limit=120),
        "unbroken": _unbroken,
        "code": lambda name: _cell(Code(display(name, limit=60))),
        "long": lambda cell: isinstance(cell, str) and len(cell) > 30,
        "kind": lambda block: type(block).__name__,
        "svg": _trusted,
        "formula": _formula,
        "base64": _base64,
    }
    return environment


def _unbroken(text: str) -> str:
    """Keep intervals in one line."""
    return re.sub(r"\[(\S+), (\S+)\]", "[\\1,\N{NO-BREAK SPACE}\\2]", text)


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
