"""The generated tables of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from genbounds.files import atomic_write

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def rewrite(name: str, lines: Sequence[str]) -> None:
    """Replace what stands between the two marks of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, found, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    tail = rest.partition(end)[2]
    if not found or not tail:
        raise LookupError(f"{PAGE.name} has no marks {begin} … {end}")
    atomic_write(PAGE, f"{head}{begin}\n" + "\n".join(lines) + f"\n{end}{tail}")
