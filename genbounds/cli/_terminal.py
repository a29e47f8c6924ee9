"""What every command prints, and where: results on standard output, the rest on standard error."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import genbounds as gb
from genbounds._text import display

if TYPE_CHECKING:
    from genbounds._tables import Noted

RESULTS, PAGE = "results.json", "report.html"

# Wide enough for every table where there is no terminal to fit into.
_UNLIMITED = 400


def complain(message: str, *, program: str = "genbounds") -> None:
    """Print one line on standard error."""
    write_errors(f"{program}: {display(' '.join(message.splitlines()), limit=None)}")


def write_errors(*lines: str) -> None:
    """Print lines on standard error; if it takes none, the exit status still says what it is."""
    try:
        sys.stderr.writelines(f"{line}\n" for line in lines)
        sys.stderr.flush()
    except (OSError, ValueError):  # a full disk, a reader who has left, a closed stream
        sys.stderr = open(os.devnull, "w", encoding="utf-8")


def check_folder(out: Path | None, command: str) -> str:
    """Refuse a folder of results that cannot be written, or in which another command keeps its own.

    Before hours are spent on what it is for. Returns the results that are there.
    """
    if out is None:
        return ""
    place = next((one for one in (out, *out.parents) if os.path.exists(one)), out)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise gb.InputError(
            f"{display(out)}: cannot be written: {gb.files.reason_of(error)}."
        ) from error
    try:
        text = (out / RESULTS).read_text(encoding="utf-8")
        results = json.loads(text)
        other, complete = results.get("command", command), results.get("complete")
    except (OSError, ValueError, RecursionError, AttributeError):  # no command has kept that
        return ""
    if other != command:
        raise gb.InputError(
            f"is {display(out)}, where `genbounds {display(str(other), limit=20)}` keeps its "
            "results: give each command a folder of its own.",
            argument="--out",
        )
    return text if complete else ""


def keep(
    out: Path | None,
    command: str,
    document: dict[str, Any],
    *,
    complete: bool = True,
    before: str = "",
    page: Callable[[], gb.report.Page] | None = None,
) -> str:
    """Write what a command found, and its page, into the folder of results, if there is one.

    A page that lies there already tells of other results: it is removed first. If the results
    `before` this run were others, that is said; where the page is, if somebody is looking.
    Returns the document as JSON text; the same document gives the same text.
    """
    said = {**document, "command": command, "complete": complete}
    text = json.dumps(said, indent=2, allow_nan=False) + "\n"
    if out is None:
        return text

    with suppress(OSError):  # the next line says what is wrong with the folder
        (out / PAGE).unlink(missing_ok=True)
    with gb.files.written_aside(out / RESULTS) as file:
        file.write(text.encode())
    if before not in ("", text):
        complain(f"the results in {display(out)} were of other files or options: replaced.")
    if page is not None:
        with gb.files.written_aside(out / PAGE) as file:
            file.write(page().render().encode())
        if sys.stderr.isatty():
            write_errors(f"report: {display(out / PAGE)}")
    return text


def say(*lines: str) -> None:
    """Print lines of text on standard output; a terminal breaks them between words."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in "\n".join(lines).split("\n"):
        text = _printable(line)
        if width is not None and len(text) > width:
            text = textwrap.fill(
                text,
                width,
                subsequent_indent="  " if text.startswith("* ") else "",  # beside its bullet
                break_long_words=False,
                break_on_hyphens=False,
            )
        sys.stdout.write(f"{text}\n")


def _printable(text: str) -> str:
    """Return one line without the thin spaces inside numbers, which people copy."""
    return re.sub("(?<=\\d)\N{NARROW NO-BREAK SPACE}(?=\\d)", "", display(text, limit=None))


def print_table(table: gb.report.Table, *, without: Sequence[str] = ()) -> None:
    """Print an aligned table of a page; text is never taken for mark-up.

    On a narrow terminal texts go over several lines and names are shortened in the middle; numbers
    and ids never are. Where even that does not fit each row becomes a paragraph.
    """
    from rich import box
    from rich import table as rich_table
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    from genbounds.report.page import cell_text, numeric

    width = None if sys.stdout.isatty() else _UNLIMITED
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False, width=width)
    kept = [k for k, column in enumerate(table.columns) if column not in without]
    columns = [table.columns[k] for k in kept]
    cells = [[_printable(cell_text(row[k])) for k in kept] for row in table.rows]
    right = [each for k, each in enumerate(numeric(table)) if k in kept]
    texts = list(zip(columns, *cells, strict=True))
    # Columns of the terminal that the longest text takes on one line, and that no word is broken.
    wanted = [max(map(cell_len, column)) for column in texts]
    least = [max(map(cell_len, " ".join(column).split(" "))) for column in texts]
    room = console.width - GAP * (len(columns) - 1)
    if sum(wanted) > room and not (right[0] or columns[0] in IDS):
        # Rather a shorter name than a broken interval, unless little were left of it.
        limit = room - sum(wanted[1:])
        limit = limit if limit >= SHORT_NAME else max(room - sum(least[1:]), LEAST_NAME)
        names = _shortened([row[0] for row in cells], limit)
        cells = [[name, *row[1:]] for name, row in zip(names, cells, strict=True)]
        wanted[0] = max(map(cell_len, (columns[0], *names)))
        least[0] = max(map(cell_len, " ".join((columns[0], *names)).split(" ")))
    space = room - sum(least)
    if space < 0:
        for row in cells:
            console.print(row[0], soft_wrap=True, style="bold")
            for column, cell in zip(columns[1:], row[1:], strict=True):
                if cell:
                    console.print(f"  {column}: {cell}", overflow="fold")
        return
    # The space that is left goes first to the columns that are soon content.
    for k in sorted(range(len(least)), key=lambda k: wanted[k] - least[k]):
        given = min(wanted[k] - least[k], space)
        least[k], space = least[k] + given, space - given
    grid = rich_table.Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold"
    )
    for column, number, width in zip(columns, right, least, strict=True):
        grid.add_column(column, justify="right" if number else "left", width=width, overflow="fold")
    for row in cells:
        grid.add_row(*map(Text, row))
    console.print(grid)


GAP = 3
"""Columns of the terminal between two of a table."""

SHORT_NAME, LEAST_NAME = 20, 12
"""Characters of a name that is shortened: at least, and at least where space is very short."""

IDS = ("Id", "Statement")
"""Heads of columns that hold what a person types: never shortened."""


def _shortened(names: Sequence[str], limit: int) -> list[str]:
    """Leave out the middle of long names; as they are where that does not tell them apart."""
    tail = (limit - 1) // 2
    short = [
        name if len(name) <= limit else f"{name[: limit - 1 - tail]}…{name[-tail:]}"
        for name in names
    ]
    return short if len(set(short)) == len(set(names)) else list(names)


def print_remarks(
    scores: Mapping[str, gb.Score],
    *results: Noted,
    warnings: Iterable[gb.Diagnostic] = (),
    together: Mapping[str, gb.PrecisionRecall] | None = None,
    verbose: bool,
) -> None:
    """Print warnings with the models that they concern, then assumptions; methods if `verbose`.

    Those of `scores`, and those of `results` about all of them.
    """
    from genbounds.report._scores import remarks

    doubts = [*warnings, *(warning for result in results for warning in result.warnings)]
    assumed = [text for result in results for text in result.assumptions]
    told = remarks(scores, doubts, assumed, together)
    for title, notes in zip(("Warnings", "Assumptions", "Methods"), told, strict=True):
        if notes.items and (verbose or not notes.folded):
            say("", title, *(f"* {line}" for line in notes.items))


def show(
    result: Noted,
    *tables: gb.report.Table,
    scores: Mapping[str, gb.Score] | None = None,
    verbose: bool,
) -> None:
    """Print a result in a line, its tables, its warnings, and what it assumes."""
    say(str(result))
    for table in tables:
        say("")
        print_table(table)
    print_remarks(scores or {}, result, verbose=verbose)


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """Show a progress bar with the time left on standard error, if that is a terminal.

    Yields a function of the number done, of how many there are (None: unknown) and of a
    remark.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, remark: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeLeft(),
        TextColumn("{task.fields[remark]}", markup=False),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=None, remark="")

        def advance(done: int, total: int | None, remark: str) -> None:
            bar.update(task, completed=done, total=total, remark=display(remark, limit=40))

        yield advance


class Ended(KeyboardInterrupt):
    """A signal came: Ctrl-C, or one that ends the program in the same way."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


USUAL = {
    "SIGINT": signal.default_int_handler,
    "SIGTERM": signal.SIG_DFL,
    "SIGHUP": signal.SIG_DFL,
}
"""How signals are handled where nobody has said otherwise; nohup, for one, has one ignored."""


@contextmanager
def heard(*names: str) -> Iterator[None]:
    """Raise `Ended` when one of these signals comes, where it is handled in the usual way.

    Also where compiled code makes an error of its own of it. One that came during a destructor, or
    in a library that goes on, is sent once more: Python would print what was raised there, and go
    on as well.
    """
    came: list[int] = []
    changed = {}
    before = sys.unraisablehook

    def end(number: int, frame: object) -> None:
        came.append(number)
        raise Ended(number)

    def once_more(dropped: Any) -> None:
        error = dropped.exc_value
        if isinstance(error, KeyboardInterrupt):
            number = getattr(error, "number", signal.SIGINT)
            later = threading.Timer(0.02, os.kill, (os.getpid(), number))
            later.daemon = True
            later.start()
        else:
            before(dropped)

    if threading.current_thread() is threading.main_thread():
        numbers = {getattr(signal, name, None): USUAL[name] for name in names}
        for number, usual in numbers.items():
            if number is not None and signal.getsignal(number) is usual:
                changed[number] = signal.signal(number, end)
    sys.unraisablehook = once_more
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        if came:
            raise Ended(came[0]) from error
        raise
    finally:
        sys.unraisablehook = before
        for number, usual in changed.items():
            signal.signal(number, usual)


def tidy() -> AbstractContextManager[None]:
    """End as on Ctrl-C if SIGTERM or SIGHUP comes, so that scratch and worker processes go too.

    Only around work that has such: elsewhere these signals end the process at once, even in the
    middle of a long product of matrices.
    """
    return heard("SIGTERM", "SIGHUP")
