"""How far training is: a callback, and a bar on standard error that can serve as one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Told the name of a model and the share of its training that is done, from 0 to 1.
Progress = Callable[[str, float], None]


def silent(name: str, done: float) -> None:
    """Show nothing."""


@contextmanager
def bars() -> Iterator[Progress]:
    """Show one bar a model on standard error; quiet unless that is a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("training {task.description}"),
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=Console(file=sys.stderr), transient=True) as display:
        tasks: dict[str, rich.TaskID] = {}

        def advance(name: str, done: float) -> None:
            if name not in tasks:
                tasks[name] = display.add_task(name, total=1.0)
            display.update(tasks[name], completed=done)

        yield advance
