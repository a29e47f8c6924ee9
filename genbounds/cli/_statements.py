"""Choosing statements of the catalogue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from genbounds._errors import InputError
from genbounds._text import display


def choose(patterns: Sequence[str], ids: Collection[str]) -> list[str]:
    """Return the ids that match any pattern (``o24.*``), in the order of the catalogue.

    Raises
    ------
    InputError
        If a pattern matches nothing; names the nearest ids.
    """
    chosen = set()
    for pattern in patterns:
        found = [name for name in ids if fnmatchcase(name, pattern)]
        if not found:
            near = get_close_matches(pattern, ids, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "`genbounds bounds` lists them."
            raise InputError(
                f"no statement {display(pattern, limit=60)!r} in the catalogue: {hint}"
            )
        chosen.update(found)
    return [name for name in ids if name in chosen] if patterns else list(ids)
