"""Results in hand: JSON, a table for a notebook, a paper or a data frame, a plot, and warnings.

A result says by `_json` what its document holds, by `_lines` and `_caption` what there is to show;
`InHand` shows it. Names come from users: each way out escapes what its reader would obey.
"""

from __future__ import annotations

import html
import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from genbounds._drawing import Row, Scale, interval_rows, new_axes
from genbounds._text import display, interval, number, shown
from genbounds.validation import InputError

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

HEADINGS = {"stderr": "Std. error", "n": "n", "p": "p", "p, adjusted": "p, adjusted"}
"""Of columns whose own name is no heading."""


class AsJson:
    """What turns a result into plain JSON types."""

    __slots__ = ()
    _json: ClassVar[str] = "*"
    """Names of what is told: attributes, ``key=attribute``, ``*`` for all fields, ``-name`` for all
    but one of them."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; a float that JSON cannot hold (infinity, NaN) becomes None."""
        names: list[str] = []
        for name in self._json.split():
            if name == "*":
                names += [field.name for field in fields(self)]  # type: ignore[arg-type]
            elif name[0] == "-":
                names.remove(name[1:])
            else:
                names.append(name)
        told = (name.partition("=") for name in names)
        return {key: as_json(getattr(self, attribute or key)) for key, _, attribute in told}


def as_json(value: Any) -> Any:
    """Return a value, and all that it holds, as plain JSON types."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if hasattr(value, "tolist"):
        return as_json(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    return [as_json(each) for each in value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table: a named value with its interval, and what else there is.

    Attributes
    ----------
    name : str
        As its owner wrote it.
    value, low, high : float
    reliable : bool
    more : dict of str to object
        Further columns by their headings.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    reliable: bool = True
    more: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, result: Any, value: str = "value", **more: Any) -> Line:
        """Return the line of a `result` with an interval; `value`: which attribute is shown."""
        return cls(
            name=name,
            value=getattr(result, value),
            low=result.low,
            high=result.high,
            reliable=getattr(result, "reliable", True),
            more=more,
        )

    @property
    def bounded(self) -> bool:
        """Whether there is an interval: a predicted value has none."""
        return not (math.isnan(self.low) and math.isnan(self.high))


class InHand(AsJson):
    """What every result can be turned into."""

    __slots__ = ()
    _names: ClassVar[str] = ""
    """Heading of the column of names."""
    _number: ClassVar[str] = ""
    """The attribute that a format such as ``.3f`` is for; without one, every line is formatted."""

    def _lines(self) -> list[Line]:
        """Return the rows of the table."""
        raise NotImplementedError

    def _caption(self) -> str:
        """Return what the values are."""
        raise NotImplementedError

    def __format__(self, spec: str) -> str:
        """Return a line for every value, formatted by `spec`; a result with one value, that one."""
        if not spec:
            return str(self)
        if self._number:
            return format(attrgetter(self._number)(self), spec)
        return "\n".join(
            f"{display(line.name)} {line.value:{spec}}"
            + (f" [{line.low:{spec}}, {line.high:{spec}}]" if line.bounded else "")
            for line in self._lines()
        )

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas data frame with one row per name.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("`to_frame` needs pandas: pip install pandas.") from None
        lines = self._lines()
        rows = [
            {"value": line.value, "low": line.low, "high": line.high, **line.more}
            | {"reliable": line.reliable}
            for line in lines
        ]
        return pandas.DataFrame(rows, index=[line.name for line in lines])

    def to_markdown(self) -> str:
        """Return a table in GitHub's Markdown.

        Returns
        -------
        str
        """
        head, numeric, rows = _grid(self, _markdown)
        rule = ["---:" if right else "---" for right in numeric]
        return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows)) + "\n"

    def to_latex(self) -> str:
        r"""Return a LaTeX ``tabular``; it needs no package.

        Returns
        -------
        str
        """
        head, numeric, rows = _grid(self, _latex, _latex)
        columns = "".join("r" if right else "l" for right in numeric)
        body = [f"{' & '.join(row)} \\\\" for row in (head, *rows)]
        lines = [f"\\begin{{tabular}}{{{columns}}}", "\\hline", body[0], "\\hline", *body[1:]]
        return "\n".join((*lines, "\\hline", "\\end{tabular}")) + "\n"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw values and intervals, the first on top.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        lines = self._lines()
        ax = ax or new_axes(1.0 + 0.32 * len(lines))
        looks = {True: ("accent", "filled"), False: ("bad", "cross")}
        rows = [Row(x.name, (x.low, x.value, x.high), *looks[x.reliable]) for x in lines]
        # What values are, in lines that fit below the axes.
        about = textwrap.fill(self._caption().partition(";")[0], 52)
        return interval_rows(ax, rows, about, Scale.spread(lines))

    def _repr_html_(self) -> str:
        """Return a small table with every interval drawn, for notebooks."""
        lines = self._lines()
        head, numeric, rows = _grid(self, _html)
        sides = ["right" if right else "left" for right in (*numeric, False)]
        heading = "".join(
            f'<th scope="col" style="text-align:{side}">{text}</th>'
            for text, side in zip((*head, "Drawn"), sides, strict=True)
        )
        parts = [
            f"<table><caption>{_html(self._caption())}</caption>",
            f"<thead><tr>{heading}</tr></thead><tbody>",
        ]
        for drawn, (name, *rest) in zip(_drawings(lines), rows, strict=True):
            parts.append(f'<tr><th scope="row">{name}</th>')
            cells = zip(rest, sides[1:-1], strict=True)
            parts += [f'<td style="text-align:{side}">{text}</td>' for text, side in cells]
            parts.append(f"<td>{drawn}</td></tr>")
        return "".join((*parts, "</tbody></table>"))


Severity = Literal["unreliable", "caution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic(AsJson):
    """One warning about a result.

    Attributes
    ----------
    code : str
        One of `CODES`.
    severity : {"unreliable", "caution"}
        "unreliable": the value or its interval cannot be trusted, and no decision is based on it.
    message : str
        What was seen.
    remedy : str
        What to do about it; may be empty.
    """

    code: str
    severity: Severity
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.severity}: {self.message}"
        return f"{text}. {self.remedy}" if self.remedy else text

    def of(self, name: str) -> Diagnostic:
        """Return the same about one of several models, whose name is said."""
        return replace(self, message=f"{shown(name)}: {self.message}")


def all_reliable(warnings: Iterable[Diagnostic]) -> bool:
    """Whether no warning is "unreliable"."""
    return all(warning.severity != "unreliable" for warning in warnings)


def hedged(text: str, warnings: Iterable[Diagnostic]) -> str:
    """Add to a verdict that it cannot be relied on, where warnings say so."""
    return text if all_reliable(warnings) else f"{text}; unreliable: see the warnings"


class Noted(InHand):
    """A result with warnings, and with what it assumes."""

    __slots__ = ()
    warnings: tuple[Diagnostic, ...]
    assumptions: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The messages of all warnings, then the assumptions."""
        return (*(warning.message for warning in self.warnings), *self.assumptions)


class Warned(Noted):
    """A result that its warnings may make unreliable; they are printed below its one line."""

    __slots__ = ()

    @property
    def reliable(self) -> bool:
        """False exactly if a warning is "unreliable"."""
        return all(warning.severity != "unreliable" for warning in self.warnings)

    def __repr__(self) -> str:
        return "\n  ".join((f"{type(self).__name__}({self})", *map(str, self.warnings)))


def _grid(
    result: InHand, escape: Callable[[str], str], figure: Callable[[str], str] = str
) -> tuple[list[str], list[bool], list[list[str]]]:
    """Return headings, which columns hold numbers, and rows; `figure` is for numbers."""
    lines = result._lines()
    more = list(lines[0].more) if lines else []
    doubtful = any(not line.reliable for line in lines)
    titles = (HEADINGS.get(key, key.capitalize()) for key in more)
    bounded = any(line.bounded for line in lines) or not lines
    head = [result._names, "Value", *["Interval"] * bounded, *titles, *["Reliable"] * doubtful]
    numeric = [False, True, *[False] * bounded]
    numeric += [_is_number(lines[0].more[key]) for key in more]
    rows = [
        [
            escape(display(line.name)),
            figure(number(line.value)),
            *[figure(interval(line.low, line.high))] * bounded,
            *(
                figure(number(value)) if _is_number(value) else escape(str(value))
                for value in (line.more[key] for key in more)
            ),
            *["yes" if line.reliable else "no"] * doubtful,
        ]
        for line in lines
    ]
    return head, numeric + [False] * doubtful, rows


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, (int, float))


def _html(text: str) -> str:
    return html.escape(display(text, limit=None))


# A backslash would do for brackets and dollars too, were they not mathematics then in notebooks.
_MARKDOWN = {c: f"\\{c}" for c in "\\`*_|~#"} | {c: f"&#{ord(c)};" for c in "<>&[]$:@"}


def _markdown(text: str) -> str:
    """Escape every character that Markdown or HTML in it could obey."""
    return "".join(_MARKDOWN.get(character, character) for character in text)


_LATEX_WORDS = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "`": "asciigrave"} | (
    {"<": "less", ">": "greater", "|": "bar", '"': "quotedbl"}
)
_LATEX = (
    {c: f"\\{c}" for c in "{}&%$#_"}
    | {c: f"\\text{word}{{}}" for c, word in _LATEX_WORDS.items()}
    | {"\N{NARROW NO-BREAK SPACE}": r"\,", "−": r"$-$", "∞": r"$\infty$", "·": r"$\cdot$"}
    | {"–": "--", "…": r"\ldots{}"}
)
_SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def _latex(text: str) -> str:
    r"""Replace every character that LaTeX would obey, and those of our numbers that it lacks."""
    text = "".join(_LATEX.get(character, character) for character in text)
    return re.sub(
        "[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: f"$^{{{found[0].translate(_SUPERSCRIPT)}}}$", text
    )


WIDTH, HEIGHT, MARGIN = 160, 16, 6


def _drawings(lines: Sequence[Line]) -> list[str]:
    """Draw every interval, all on one scale; each takes the colour of the text around it."""
    scale = Scale.spread(lines)
    low, high = max(scale.low, scale.floor), scale.high
    bent = math.log if scale.log else float

    def place(x: float) -> float:
        share = (bent(min(max(x, low), high)) - bent(low)) / (bent(high) - bent(low))
        return round(MARGIN + (WIDTH - 2 * MARGIN) * share, 1)

    drawn, middle = [], HEIGHT / 2
    for line in lines:
        words = f"{number(line.value)}, interval {interval(line.low, line.high)}"
        parts = [
            f'<svg role="img" aria-label="{_html(words)}" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}"><g stroke="currentColor" fill="currentColor">'
        ]
        if not any(map(math.isnan, (line.low, line.high))):
            dashes = "" if line.reliable else ' stroke-dasharray="3 2"'
            parts.append(
                f'<line x1="{place(line.low)}" x2="{place(line.high)}" y1="{middle}" '
                f'y2="{middle}" stroke-width="2"{dashes}/>'
            )
        if not math.isnan(line.value):
            parts.append(f'<circle cx="{place(line.value)}" cy="{middle}" r="3.5"/>')
        drawn.append("".join((*parts, "</g></svg>")))
    return drawn
