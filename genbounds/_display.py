"""Paths and names as one printable line."""

from __future__ import annotations

import os

# Not printable by Unicode's category, yet fit to show: no-break spaces, and what joins emoji.
_HARMLESS = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{ZERO WIDTH JOINER}"


def display(path: object, *, limit: int | None = 200) -> str:
    """Return a path or name as one printable line, with its middle cut beyond `limit` characters.

    Control characters, unpaired surrogates and marks that reorder text are shown as escapes.
    """
    text = os.fsdecode(path) if isinstance(path, (os.PathLike, bytes)) else str(path)
    if limit is not None and len(text) > limit:
        text = f"{text[: limit // 2]}…{text[-limit // 2 :]}"
    return "".join(
        character
        if character.isprintable() or character in _HARMLESS
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )
