"""Files that are not what they are taken for: logits, pixels, transposed or constant arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files import display, gather
from genbounds.validation import POSTERIOR_ATOL, Float, InputError

BLOCK = 1 << 22
"""Entries that are worked on at once."""


def blocks(rows: NDArray[Any]) -> Iterator[tuple[int, Float]]:
    """Yield the rows as float64, a few at a time, with the number of the first of them."""
    step = max(1, BLOCK // rows.shape[1])
    for first in range(0, len(rows), step):
        yield first, np.array(rows[first : first + step], dtype=np.float64)


def probabilities(path: Path, rows: NDArray[Any], *, logits: bool) -> NDArray[Any]:
    """Return class probabilities, those of `logits` by a softmax; refuse one for the other.

    Raises
    ------
    InputError
        If probabilities are given as logits, or something else as probabilities. (Whether they
        are finite is checked by whoever computes with them.)
    """
    if logits:
        return _softmax(path, rows)
    for first, block in blocks(rows):
        wrong = ~_is_distribution(block) & np.isfinite(block).all(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            with np.errstate(over="ignore"):
                total = block[row].sum()
            negative = block[row].min() < 0.0
            what = "a negative entry" if negative else f"entries that sum to {total:.6g}"
            raise InputError(
                f"has {what} in row {first + row}: every row must hold class probabilities, which "
                "sum to 1. If these are logits, pass --logits.",
                argument=display(path),
            )
    return rows


def _softmax(path: Path, logits: NDArray[Any]) -> NDArray[Any]:
    """Softmax of every row, in float64; a large result is kept on disk."""
    probable = True

    def softmax() -> Iterator[bytes]:
        nonlocal probable
        for first, block in blocks(logits):
            finite = np.isfinite(block).all(axis=1)
            if not finite.all():
                row = first + int(np.flatnonzero(~finite)[0])
                raise InputError(
                    f"has NaN or an infinite value in row {row}: drop that row.",
                    argument=display(path),
                )
            probable = probable and bool(_is_distribution(block).all())
            with np.errstate(over="ignore"):  # to minus infinity, whose exponential is right
                block -= block.max(axis=1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=1, keepdims=True)
            yield block.tobytes()

    found = gather(softmax(), dtype=np.dtype(np.float64), shape=logits.shape)
    if probable:
        raise InputError(
            "holds probabilities already (every row sums to 1): leave out --logits.",
            argument=display(path),
        )
    return found


def _is_distribution(block: Float) -> NDArray[np.bool_]:
    with np.errstate(over="ignore", invalid="ignore"):
        close = np.abs(block.sum(axis=1) - 1.0) <= POSTERIOR_ATOL
        found: NDArray[np.bool_] = close & (block.min(axis=1) >= 0.0)
        return found
