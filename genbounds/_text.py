"""Numbers and names as people read them: on a terminal, on a page, in a `repr`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_THIN = "\N{NARROW NO-BREAK SPACE}"

# Not printable by Unicode's category, yet fit to show: no-break spaces, and what joins emoji.
_HARMLESS = f"\N{NO-BREAK SPACE}{_THIN}\N{ZERO WIDTH JOINER}"

SMALLEST_P = 0.0001
"""Smaller p-values are shown as below it."""


def display(path: object, *, limit: int | None = 200) -> str:
    """Return a path or name as one printable line, with its middle cut beyond `limit` characters.

    Control characters, unpaired surrogates and marks that reorder text are shown as escapes.
    """
    text = os.fsdecode(path) if isinstance(path, (os.PathLike, bytes, str)) else _text_of(path)
    if limit is not None and len(text) > limit:
        text = f"{text[: limit // 2]}…{text[-limit // 2 :]}"
    return "".join(
        character
        if character.isprintable() or character in _HARMLESS
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def said_by(error: BaseException, *, limit: int | None = 300) -> str:
    """Return the text of an exception that is not ours as one printable line without a full stop.

    It may be made of anything: line breaks, control characters, a ``__str__`` that fails itself.
    """
    return display(" ".join(_text_of(error, "").split()), limit=limit).rstrip(".")


def quoted(value: object, *, limit: int = 100) -> str:
    """Return a value as an error quotes it: its `repr` as one printable line, cut if it is long."""
    return display(" ".join(_text_of(value, form=repr).split()), limit=limit)


def _text_of(value: object, otherwise: str | None = None, *, form: Callable[..., str] = str) -> str:
    try:
        return form(value)
    except Exception:  # nested too deep, or somebody else's
        return f"an object of type {type(value).__name__}" if otherwise is None else otherwise


def shown(name: str) -> str:
    """Return the name of a model or class as one printable, reasonably short line."""
    return display(name, limit=54) or "''"


def number(value: object, *, digits: int = 4) -> str:
    """Format `value` to so many significant `digits`; None and NaN become a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", _THIN)
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    magnitude = abs(value)
    if not magnitude:
        return "0"
    if not 1e-4 <= magnitude < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        power = str(int(exponent)).translate(_SUPERSCRIPT)
        return f"{mantissa}·10{power}".replace("-", "−")
    decimals = max(0, digits - 1 - math.floor(math.log10(magnitude)))
    text = f"{value:,.{min(decimals, 8)}f}"
    return text.replace(",", _THIN).replace("-", "−")


def short(value: float) -> str:
    """Format a `value` known exactly: no digits beyond its own, powers of ten as such."""
    if value > 0 and not 1e-3 <= value < 1e6 and math.log10(value) % 1.0 < 1e-9:
        return "10" + str(round(math.log10(value))).translate(_SUPERSCRIPT)
    mantissa, _, exponent = f"{value:,.6g}".partition("e")
    power = f"·10{str(int(exponent)).translate(_SUPERSCRIPT)}" if exponent else ""
    return mantissa.replace(",", _THIN).replace("-", "−") + power


def percent(value: float, *, gap: str = _THIN) -> str:
    """Format `value` as a percentage: 0.95 -> "95 %"; as many decimals as it has.

    Less than one is never shown as "100 %". `gap` stands before the sign: none in plain text that
    is pasted elsewhere.
    """
    shown = f"{100 * value:.6g}"
    if shown == "100" and value < 1.0:
        shown = f"{100 * value:.15g}"
    return f"{shown}{gap}%"


def shown_pvalue(p: float) -> str:
    """Format a p-value with its sign: "= 0.031"; one too small to be believed as "< 0.0001"."""
    return f"< {SMALLEST_P}" if p < SMALLEST_P else f"= {number(p, digits=2)}"


def interval(low: float | None, high: float | None) -> str:
    """Format the interval from `low` to `high`; say so where there is none."""
    if number(low) == number(high) == "–":
        return "no interval"
    return f"[{number(low)}, {number(high)}]"


def count(amount: int, word: str, plural: str = "") -> str:
    """Format `amount` things called `word`: "1 model", "12 models"."""
    return f"{number(amount)} {word if amount == 1 else plural or word + 's'}"


def listed(names: Sequence[str]) -> str:
    """Format a list of `names`: "a", "a and b", "a, b and c"."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
