"""What every command prints, and where: results on standard output, the rest on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genbounds.files import atomic_write, display
from genbounds.validation import InputError

if TYPE_CHECKING:
    from rich.console import Console

# Wide enough for every table where there is no terminal to fit into.
_UNLIMITED = 400

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Keep results.json and the page report.html in this folder.",
        show_default=False,
    ),
]
Logits = Annotated[
    bool, typer.Option("--logits", help="The files hold logits: apply a softmax first.")
]


def complain(message: str, *, program: str = "genbounds") -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"{program}: {display(' '.join(message.splitlines()), limit=None)}\n")


def print_json(document: dict[str, Any]) -> None:
    """Print a JSON document on standard output."""
    with _reader_may_leave():
        sys.stdout.write(dumps(document))


def dumps(document: dict[str, Any]) -> str:
    """Return a document as JSON text; the same document gives the same text."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def keep(out: Path | None, document: dict[str, Any]) -> None:
    """Write ``results.json`` into the folder of results, if there is one."""
    if out is not None:
        atomic_write(out / "results.json", dumps(document))


def announce(page: Path) -> None:
    """Say on standard error where the page is, if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"report: {display(page)}\n")


def say(*lines: str) -> None:
    """Print lines of text on standard output."""
    with _reader_may_leave():
        for line in "\n".join(lines).split("\n"):
            _console().print(display(line, limit=None), soft_wrap=True)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: Sequence[str] = ()
) -> None:
    """Print an aligned table on standard output; text is never taken for mark-up."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in numeric else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(display(cell, limit=None)) for cell in row))
    with _reader_may_leave():
        _console().print(table)


def shown(name: str) -> str:
    """Return a model's name as one printable, reasonably short line."""
    return display(name, limit=60)


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """Show a progress bar with the time left on standard error, if that is a terminal.

    Yields a function of the number done, of how many there are (None: nobody knows) and of a
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


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into one line and exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        complain(f"interrupted: {advice}")
        raise typer.Exit(130) from None


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """End quietly when whoever reads our output goes away, as `head` does; a full disk is said."""
    try:
        yield
        sys.stdout.flush()
    except (OSError, SystemExit) as error:  # rich turns a broken pipe into the latter
        # What is still in the buffer must not fail again on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise InputError(
                f"standard output cannot be written: {error.strerror}: write to another place."
            ) from error
        raise typer.Exit(0) from None


def _console() -> Console:
    from rich.console import Console

    return Console(
        file=sys.stdout,
        markup=False,
        highlight=False,
        emoji=False,
        width=None if sys.stdout.isatty() else _UNLIMITED,
    )
