"""Parts of one extraction, made on several machines, as one sample."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genbounds._text import quoted
from genbounds.origins import PART_KEY
from genbounds.validation import InputError

_TEXT = re.compile(r"(\d{1,18})/(\d{1,18}) (\d{1,18}):(\d{1,18})/(\d{1,18})")


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
        found = _TEXT.fullmatch(origin[PART_KEY])
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
    known = [(part, k) for k, part in enumerate(parts) if part is not None]
    if not known:
        return list(range(len(parts)))
    known.sort(key=lambda pair: pair[0].number)
    first, at = known[0]
    for k, part in enumerate(parts):
        if part is None or (part.of, part.count) != (first.of, first.count):
            raise InputError(
                f"{shown[at]} is part {first.number} of {first.of} of an extraction of "
                f"{first.count} items, and {shown[k]} is none of it: give the parts of one "
                "extraction and nothing else."
            )
    end = 0
    for number, (part, k) in enumerate(known, start=1):
        if part.number != number:
            late = part.number > number
            what = f"part {number} is missing" if late else f"part {part.number} is there twice"
            raise InputError(f"{shown[k]}: of {part.of} parts, {what}: give every part once.")
        if part.start != end:
            raise InputError(
                f"{shown[k]}: begins with item {part.start + 1}, and the part before it ends with "
                f"item {end}: make all parts with the same --batch."
            )
        end = part.stop
    if end != first.count:
        raise InputError(
            f"{shown[known[-1][1]]}: of {first.of} parts, part {len(known) + 1} is missing: give "
            "every part once."
        )
    return [k for _, k in known]
