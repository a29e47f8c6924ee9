"""One self-contained HTML page built from sections."""

from __future__ import annotations

import math
import os
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from genbounds._text import number
from genbounds.files import atomic_write, display
from genbounds.report.blocks import Block, Cell, Code, Facts, Link, Name, Tag
from genbounds.report.drawing import formula

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
        "sort_key": _sort_key,
        "numeric": is_number,
        "name": lambda name: display(name, limit=120),
        "code": lambda name: _cell(Code(display(name, limit=60))),
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
    if cell is None or cell == NO_VALUE or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, str):
        if (found := FORMATTED.match(cell)) is None:
            return cell[:72]
        digits = "".join((found["digits"] or "1").split()).replace(MINUS, "-")
        exponent = (found["exponent"] or "0").translate(FROM_SUPERSCRIPT)
        cell = float(f"{digits}e{exponent}")
    return repr(float(cell))


def is_number(cell: Cell) -> bool:
    """Whether a cell is a number, or a text that is one."""
    if isinstance(cell, str):
        found = FORMATTED.fullmatch(cell.removeprefix("<").removesuffix("%").rstrip())
        return cell == NO_VALUE or found is not None
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))
