"""Errors that name the file or the option instead of an argument of the library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from genbounds._errors import InputError
from genbounds._text import display


@contextmanager
def renamed(names: Mapping[str, Path | str]) -> Iterator[None]:
    """Name the file or the option instead of the argument that it was passed as."""
    try:
        yield
    except InputError as error:
        name = names.get(error.argument)
        if name is None:
            raise
        raise error.about(display(name)) from error


def options(*names: str) -> dict[str, str]:
    """Map arguments to the options that carry their values."""
    return {name: f"--{name.replace('_', '-')}" for name in names}
