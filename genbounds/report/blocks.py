"""What a page is made of: text, tables, figures, facts, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from genbounds._text import quoted
from genbounds.validation import InputError

Tone = Literal["good", "bad", "open", "plain"]


@dataclass(frozen=True, slots=True)
class Name:
    """A model's name as its owner wrote it.

    It is shown as text, cut where long, isolated from its surroundings where it runs from right
    to left.

    Attributes
    ----------
    text : str
    """

    text: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A word with a tone: a verdict, a certificate.

    Attributes
    ----------
    text : str
    tone : {"good", "bad", "open", "plain"}
    """

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Link:
    """A reference; followed only when the reader asks for it.

    Attributes
    ----------
    text : str
    href : str
        Starts with https:// or #.
    """

    text: str
    href: str

    def __post_init__(self) -> None:
        if not self.href.startswith(("https://", "#")):
            raise InputError(f"`href` must start with https:// or #; got {self.href!r}.")


@dataclass(frozen=True, slots=True)
class Code:
    """An identifier or formula in fixed width.

    Attributes
    ----------
    text : str
    """

    text: str


Cell: TypeAlias = "str | int | float | bool | Name | Tag | Link | Code | None"

Fact: TypeAlias = tuple[str, Cell, str]
"""A label, its value and a remark."""


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
    """A few key figures side by side.

    Attributes
    ----------
    items : sequence of (str, cell, str)
        Label, value and remark of each.
    """

    items: Sequence[tuple[str, Cell, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Remarks as a list: warnings, what an interval assumes, how a score was computed.

    Attributes
    ----------
    items : sequence of str
    title : str
    folded : bool
        Whether the reader has to open it.
    tone : {"good", "bad", "open", "plain"}
        "bad" or "open" for warnings.
    """

    items: Sequence[str]
    title: str = "What these numbers assume"
    folded: bool = False
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula, drawn without a network; shown as written if it cannot be drawn.

    Attributes
    ----------
    latex : str
    """

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


@dataclass(frozen=True, slots=True)
class Examples:
    """Small pictures in a row, each with its name; the name alone where there is no picture.

    Attributes
    ----------
    title : str
    items : sequence of (str, str)
        Name, and a data URI as `genbounds.features.thumbnails` makes them, or "".
    paired : bool
        Whether every two of them belong together.
    """

    title: str
    items: Sequence[tuple[str, str]]
    paired: bool = False

    def __post_init__(self) -> None:
        for _, uri in self.items:
            if uri and not uri.startswith(("data:image/jpeg;base64,", "data:image/png;base64,")):
                raise InputError(f"`items` must hold JPEG or PNG data URIs; got {quoted(uri)}.")


Block: TypeAlias = "str | Table | Figure | Facts | Notes | Formula | Picture | Examples"
