"""Where features came from, and whether two sets of them may be compared.

Their metadata say which encoder made them, and what the headers of encoded pictures said.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import display, percent, quoted
from genbounds.diagnostics import Diagnostic, warn_of
from genbounds.validation import InputError

DECISIVE = ("encoder", "weights", "preprocessing")
"""Features that differ in one of these live in different spaces."""

NOTED = ("precision", "libraries")
"""Features that differ in these are close; docs/evidence/experiments.md measures how close."""

RANDOM = "random"
"""The digest of untrained weights begins with this word."""

PART_KEY = "part"
"""The metadata that say which items of its input a file of features holds: "2/3 …"."""

STAMPS = ("run", PART_KEY)
"""What belongs to one file, not to its features: the run that made it, and which part of its items
it holds."""

PICTURES = "pictures"
"""The metadata that count what the pictures behind the features are: a JSON object of `FACTS`."""

FACTS = ("format", "mode", "side", "lost")
"""File formats, Pillow's modes, the root of width times height, and what no encoder sees."""

UNKNOWN: Mapping[str, str] = {}


class FeatureArray(np.ndarray[Any, np.dtype[Any]]):
    """An array of features that carries its file's metadata: which encoder made it, and how.

    Rows and columns taken from it carry them too; what NumPy computes from it is a plain array.
    ``np.asarray`` drops them.

    Attributes
    ----------
    origin : mapping of str to str
        ``encoder``, ``weights``, ``preprocessing``, ``precision``, ``libraries``.
    """

    origin: Mapping[str, str] = UNKNOWN

    def __array_finalize__(self, parent: Any) -> None:
        """Take over the metadata of the array that this is a part of."""
        self.origin = getattr(parent, "origin", UNKNOWN)

    def __array_wrap__(
        self, array: NDArray[Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        """Return results of arithmetic as plain arrays: they are no longer what was encoded."""
        return array[()] if return_scalar else array


def marked(array: NDArray[Any], origin: Mapping[str, str]) -> NDArray[Any]:
    """Return `array` with metadata; a plain array if they do not name its encoder."""
    if not any(origin.get(field) for field in DECISIVE):
        return array
    view = array.view(FeatureArray)
    view.origin = dict(origin)
    return view


def origin_of(thing: object) -> Mapping[str, str]:
    """Return the metadata of features, moments or an arm; empty if there are none."""
    origin = getattr(thing, "origin", UNKNOWN)
    return origin if isinstance(origin, Mapping) else UNKNOWN


def together(one: Mapping[str, str], other: Mapping[str, str]) -> Mapping[str, str]:
    """Return the metadata of two samples in one: what belongs to one file of them is left out."""
    if not one or not other:
        return one or other
    own = {*STAMPS, *({PICTURES} if one.get(PICTURES) != other.get(PICTURES) else ())}
    return {key: value for key, value in one.items() if key not in own}


def check_same_encoder(origins: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse features from different encoders, weights or preprocessing.

    Parameters
    ----------
    origins : mapping of str to mapping
        Metadata of every file or array, by the name that errors call it; may be empty.

    Raises
    ------
    InputError
        If two of them differ in encoder, weights or preprocessing; names both.
    """
    for field in DECISIVE:
        known = {name: origin[field] for name, origin in origins.items() if origin.get(field)}
        (first, value), *others = known.items() or [("", "")]
        for name, other in others:
            if other != value:
                raise InputError(
                    f"{first} and {name} cannot be compared: their {field} differ "
                    f"({_unlike(value, other)}): use one encoder for both. If the features are "
                    "compatible, drop the metadata with np.asarray(...) or a .npy file."
                )


def _unlike(one: str, other: str) -> str:
    """Return two metadata that differ as an error shows them: of JSON only what differs."""
    try:
        fields, others = json.loads(one), json.loads(other)
        both = (fields, others), (others, fields)
        one, other = (
            json.dumps({key: value for key, value in mine.items() if theirs.get(key) != value})
            for mine, theirs in both
        )
    except (AttributeError, RecursionError, ValueError):  # a digest, or somebody else's text
        pass
    return f"{display(one, limit=90)}; {display(other, limit=90)}"


def compared(things: Mapping[str, Any]) -> list[Diagnostic]:
    """Refuse features of different encoders, by the name of each; return warnings about them."""
    origins = {name: origin_of(thing) for name, thing in things.items() if thing is not None}
    check_same_encoder(origins)
    return origin_warnings(origins)


def origin_warnings(origins: Mapping[str, Mapping[str, str]]) -> list[Diagnostic]:
    """Return warnings about `origins`, the metadata of every file by its name."""
    found = []
    known = [name for name, origin in origins.items() if origin.get("encoder")]
    unknown = [name for name in origins if name not in known]
    if known and unknown:
        found.append(warn_of("encoder-unknown", unknown=", ".join(unknown), known=", ".join(known)))
    for name in NOTED:
        values = {origin[name] for origin in origins.values() if origin.get(name)}
        if len(values) > 1:
            shown = "; ".join(display(value) for value in sorted(values))
            found.append(warn_of("metadata-differ", name=name, values=shown))
    # "2/3 ...": one of several parts of an extraction.
    said = {name: origin.get(PART_KEY) for name, origin in origins.items()}
    parts = [name for name, part in said.items() if part and not part.startswith("1/1 ")]
    if parts:
        found.append(warn_of("one-part", parts=", ".join(parts)))
    if any(origin.get("weights", "").startswith(RANDOM) for origin in origins.values()):
        found.append(warn_of("random-weights"))
    if any(PICTURES in origin for origin in origins.values()):
        found += picture_warnings(origins)
    return found


# --- parts of one extraction, made on several machines, as one sample ----------------------------

_PART = re.compile(r"(\d{1,18})/(\d{1,18}) (\d{1,18}):(\d{1,18})/(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """Items `start` to `stop` of `count`: share `number`, from 1, of `of`."""

    number: int
    of: int
    start: int
    stop: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of} {self.start}:{self.stop}/{self.count}"

    @classmethod
    def share(cls, number: int, of: int, *, count: int, batch: int) -> Part:
        """Return share `number` of `of` of so many items: whole batches, in their order.

        So every batch, and every row, is the same as where one machine makes all of them.
        """
        batches = -(-count // batch)
        start, stop = (min(count, batch * (batches * k // of)) for k in (number - 1, number))
        return cls(number, of, start, stop, count)

    @classmethod
    def of_origin(cls, origin: Mapping[str, str], shown: str, n: int) -> Part | None:
        """Return the part that a file of n rows says it is; None if it is whole."""
        if PART_KEY not in origin:
            return None
        found = _PART.fullmatch(origin[PART_KEY])
        part = cls(*map(int, found.groups())) if found else None
        if part is None or part.stop - part.start != n:
            raise InputError(
                f"{shown}: says that it is part {quoted(origin[PART_KEY])} and holds {n} rows: "
                "write it again."
            )
        return part


def part_order(shown: Sequence[str], parts: Sequence[Part | None]) -> list[int]:
    """Return the order in which files hold their items; refuse some parts without the others.

    Parameters
    ----------
    shown : sequence of str
        What errors call each file.
    parts : sequence of (Part or None)
        What each says that it is; all None: they are no parts, and stay in their order.
    """
    known = sorted((part.number, k, part) for k, part in enumerate(parts) if part is not None)
    if not known:
        return list(range(len(parts)))
    _, at, first = known[0]
    for k, part in enumerate(parts):
        if part is None or (part.of, part.count) != (first.of, first.count):
            raise InputError(
                f"{shown[at]} is part {first.number} of {first.of} of an extraction of "
                f"{first.count} items, and {shown[k]} is none of it: give the parts of one "
                "extraction and nothing else."
            )
    end = 0
    for number, (given, k, part) in enumerate(known, start=1):
        if given != number:
            what = f"part {number} is missing" if given > number else f"part {given} is there twice"
        elif part.start != end:
            raise InputError(
                f"{shown[k]}: begins with item {part.start + 1}, and the part before it ends with "
                f"item {end}: make all parts with the same --batch."
            )
        elif number == len(known) and part.stop != part.count:
            what = f"part {number + 1} is missing"
        else:
            end = part.stop
            continue
        raise InputError(f"{shown[k]}: of {part.of} parts, {what}: give every part once.")
    return [k for _, k, _ in known]


# --- what the headers of pictures say of a distance between two folders of them ------------------

LARGE_GAP = 0.1
"""Shares that differ by less are not worth a line."""

SURE = 5.0
"""Standard errors by which two shares differ before they are called different."""

SMALL = 0.25
"""A thumbnail has at most so much of the side of the usual picture of its folder ..."""

MANY = 0.02
"""... and is worth a line from this share on."""

_WITHOUT_LOSS = dict.fromkeys(("PNG", "BMP", "TIFF", "PPM", "array"), "without loss, as PNG")


def picture_warnings(origins: Mapping[str, Mapping[str, str]]) -> list[Diagnostic]:
    """Warn of pictures that lose something, and of folders unlike the first one.

    Parameters
    ----------
    origins : mapping of str to mapping
        Metadata of every sample by its name, the one that others are compared with first.
    """
    read = {name: _facts(origin.get(PICTURES)) for name, origin in origins.items()}
    seen = {name: facts for name, facts in read.items() if facts}
    found = []
    for name, facts in seen.items():
        sides, lost = facts["side"], facts["lost"]
        looked, usual = sides.total(), _median(sides)
        if turned := lost["turned"]:
            found.append(warn_of("turned-pictures", name=name, n=turned, of=looked))
        tool = origins[name].get("encoder", "").startswith("inception:")
        if (deep := lost["deep"]) and tool:
            found.append(warn_of("clipped-pictures", name=name, n=deep, of=looked))
        small = sum(n for side, n in sides.items() if float(side) <= SMALL * usual)
        if small >= MANY * looked:
            found.append(warn_of("thumbnails", name=name, n=small, of=looked, side=round(usual)))
    words = {"format": "file format", "side": "resolution", "mode": "colour mode"}
    for fact, what in words.items():
        first, *others = seen or [""]
        others = [name for name in others if _differ(seen[first][fact], seen[name][fact], fact)]
        if others:
            shown = "; ".join(
                f"{name}: {_most(fact, seen[name][fact])}" for name in (first, *others)
            )
            found.append(warn_of("unlike-pictures", what=what, shown=shown))
    return found


def _facts(text: str | None) -> dict[str, Counter[str]]:
    """Read what was counted in one folder; empty if there is nothing, or it is damaged.

    Formats that store the same pixels are one.
    """
    found = {name: Counter[str]() for name in FACTS}
    try:
        facts = json.loads(text or "null")
        for name, counts in found.items():
            for key, n in facts[name].items():
                if not 0 < int(n) < 2**53 or (name == "side" and not 0.0 < float(key) < math.inf):
                    return {}
                counts[_WITHOUT_LOSS.get(key, key)] += int(n)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError, OverflowError):
        return {}
    return found if all(found[name] for name in ("format", "mode", "side")) else {}


def _differ(one: Counter[str], two: Counter[str], fact: str) -> bool:
    """Whether two folders differ in more than the draw of their pictures."""
    if fact == "side":
        middle = (_median(one) + _median(two)) / 2.0
        large = [sum(n for side, n in c.items() if float(side) > middle) for c in (one, two)]
        one, two = (
            Counter(up=k, down=c.total() - k) for k, c in zip(large, (one, two), strict=True)
        )
    n, m = one.total(), two.total()
    k, j = (np.array([counts[key] for key in one | two], dtype=float) for counts in (one, two))
    share = (k + j) / (n + m)
    noise = np.sqrt(share * (1.0 - share) * (1.0 / n + 1.0 / m))
    return bool((np.abs(k / n - j / m) > np.maximum(LARGE_GAP, SURE * noise)).any())


def _median(sides: Counter[str]) -> float:
    order = sorted(sides, key=float)
    below = np.cumsum([sides[side] for side in order])
    return float(order[int(np.searchsorted(below, below[-1] / 2.0))])


def _most(fact: str, counts: Counter[str]) -> str:
    if fact == "side":
        return f"{_median(counts):.0f} pixels"
    name = max(sorted(counts), key=lambda key: counts[key])
    return f"{display(name, limit=40)} ({percent(counts[name] / counts.total())})"
