"""What the headers of encoded pictures say of a distance between two folders of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from genbounds._text import display, percent
from genbounds.diagnostics import Diagnostic, warn_of

PICTURES = "pictures"
"""The metadata that count what the pictures behind the features are: a JSON object of `FACTS`."""

FACTS = ("format", "mode", "side", "lost")
"""File formats, Pillow's modes, the root of width times height, and what no encoder sees."""

LARGE_GAP = 0.1
"""Shares that differ by less are not worth a line."""

SURE = 5.0
"""Standard errors by which two shares differ before they are called different."""

SMALL = 0.25
"""A thumbnail has at most so much of the side of the usual picture of its folder ..."""

MANY = 0.02
"""... and is worth a line from this share on."""

Counts = Mapping[str, int]

_WITHOUT_LOSS = dict.fromkeys(("PNG", "BMP", "TIFF", "PPM", "array"), "without loss, as PNG")


def picture_warnings(origins: Mapping[str, Mapping[str, str]]) -> list[Diagnostic]:
    """Warn of pictures that lose something, and of folders unlike the first one.

    Parameters
    ----------
    origins : mapping of str to mapping
        Metadata of every sample by its name, the one that others are compared with first.
    """
    seen = {name: _counts(origin.get(PICTURES)) for name, origin in origins.items()}
    seen = {name: facts for name, facts in seen.items() if facts}
    found = []
    for name, facts in seen.items():
        looked, lost = sum(facts["side"].values()), facts["lost"]
        if turned := lost.get("turned"):
            found.append(warn_of("turned-pictures", name=name, n=turned, of=looked))
        tool = origins[name].get("encoder", "").startswith("inception:")
        if (deep := lost.get("deep")) and tool:
            found.append(warn_of("clipped-pictures", name=name, n=deep, of=looked))
        usual = _median(facts["side"])
        small = sum(n for side, n in facts["side"].items() if float(side) <= SMALL * usual)
        if small >= MANY * looked:
            found.append(warn_of("thumbnails", name=name, n=small, of=looked, side=round(usual)))
    return found + _unlike(seen)


def _unlike(seen: Mapping[str, Mapping[str, Counts]]) -> list[Diagnostic]:
    """Warn of folders that differ from the first, a line for each fact."""
    if not seen:
        return []
    found = []
    first = next(iter(seen))
    for fact, what in {
        "format": "file format",
        "side": "resolution",
        "mode": "colour mode",
    }.items():
        counts = {name: _named(fact, facts[fact]) for name, facts in seen.items()}
        others = [name for name in counts if _differ(fact, counts[first], counts[name])]
        if others:
            shown = "; ".join(f"{name}: {_most(fact, counts[name])}" for name in (first, *others))
            found.append(warn_of("unlike-pictures", what=what, shown=shown))
    return found


def _named(fact: str, counts: Counts) -> Counts:
    """Put formats that store the same pixels together."""
    if fact != "format":
        return counts
    found: dict[str, int] = {}
    for key, n in counts.items():
        name = _WITHOUT_LOSS.get(key, key)
        found[name] = found.get(name, 0) + n
    return found


def _differ(fact: str, one: Counts, two: Counts) -> bool:
    """Whether two folders differ in more than the draw of their pictures."""
    if fact == "side":
        middle = (_median(one) + _median(two)) / 2.0
        one, two = _split(one, middle), _split(two, middle)
    n, m = sum(one.values()), sum(two.values())
    for key in {*one, *two}:
        k, j = one.get(key, 0), two.get(key, 0)
        share = (k + j) / (n + m)
        noise = math.sqrt(share * (1.0 - share) * (1.0 / n + 1.0 / m))
        if abs(k / n - j / m) > max(LARGE_GAP, SURE * noise):
            return True
    return False


def _split(sides: Counts, middle: float) -> Counts:
    large = sum(n for side, n in sides.items() if float(side) > middle)
    return {"larger": large, "smaller": sum(sides.values()) - large}


def _median(sides: Counts) -> float:
    left = sum(sides.values()) / 2.0
    for side in sorted(sides, key=float):
        left -= sides[side]
        if left <= 0.0:
            return float(side)
    return 0.0


def _most(fact: str, counts: Counts) -> str:
    if fact == "side":
        return f"{_median(counts):.0f} pixels"
    name = max(sorted(counts), key=lambda key: counts[key])
    return f"{display(name, limit=40)} ({percent(counts[name] / sum(counts.values()))})"


def _counts(text: str | None) -> dict[str, Counts]:
    """Read the facts of one folder; empty if there are none, or they are damaged."""
    try:
        facts = json.loads(text or "null")
        found = {name: {str(k): int(n) for k, n in facts[name].items()} for name in FACTS}
        sides = [float(side) for side in found["side"]]
        counts = [n for each in found.values() for n in each.values()]
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError, OverflowError):
        return {}
    whole = all(found[name] for name in ("format", "mode", "side"))
    good = whole and min(counts) > 0 and all(0.0 < side < math.inf for side in sides)
    return found if good else {}  # type: ignore[return-value]
