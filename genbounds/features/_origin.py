"""Where features came from, and whether two files' features may be compared."""

from __future__ import annotations

from collections.abc import Mapping

from genbounds.validation import InputError

DECISIVE = ("encoder", "weights", "preprocessing")
"""Features that differ in one of these live in different spaces."""

NOTED = ("precision", "libraries")
"""Features that differ in these are close; how close nobody has measured."""

RANDOM = "random"
"""How the digest of weights that were never trained begins."""


def check_same_encoder(origins: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse features from different encoders, weights or preprocessing.

    Parameters
    ----------
    origins : mapping of str to mapping
        For every file its metadata; empty where it carries none.

    Raises
    ------
    InputError
        If two files say that they were made differently; names both.
    """
    for field in DECISIVE:
        known = {name: origin[field] for name, origin in origins.items() if origin.get(field)}
        (first, value), *others = known.items() or [("", "")]
        for name, other in others:
            if other != value:
                raise InputError(
                    f"{first} and {name} do not compare: their {field} differ "
                    f"({_short(value)}; {_short(other)}). Encode both alike. If the numbers are "
                    "the same all the same, save them as .npy, which carries no such mark."
                )


def origin_notes(origins: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return what a reader must know about where the features came from."""
    notes = []
    marked = [name for name, origin in origins.items() if origin.get("encoder")]
    unmarked = [name for name in origins if name not in marked]
    if marked and unmarked:
        notes.append(
            f"{', '.join(unmarked)} does not say which encoder made it; "
            f"{', '.join(marked)} does: whether they compare was not checked"
        )
    for field in NOTED:
        values = {origin[field] for origin in origins.values() if origin.get(field)}
        if len(values) > 1:
            notes.append(f"the features' {field} differ: {'; '.join(sorted(values))}")
    if any(origin.get("weights", "").startswith(RANDOM) for origin in origins.values()):
        notes.append("the encoder's weights are RANDOM: these scores mean nothing")
    return notes


def _short(text: str, limit: int = 90) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
