"""Files that are not what they are taken for: logits, pixels, transposed or constant arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import shown
from genbounds.diagnostics import warn_of
from genbounds.files import display, gather
from genbounds.results import Diagnostic
from genbounds.validation import POSTERIOR_ATOL, Float, InputError, check_same_dimension

BLOCK = 1 << 22
"""Entries that are worked on at once."""

TOO_WIDE = 100
"""Features per row beyond which an array has probably its rows and columns exchanged: the widest
encoders have 8,192 features, and below 100 rows no score is of use."""


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


def check_widths(shapes: Mapping[Path, tuple[int, int]]) -> None:
    """Refuse files of different numbers of features.

    Parameters
    ----------
    shapes : mapping of Path to tuple of int
        Rows and features of each file; statistics have no rows.

    Raises
    ------
    InputError
        Names both files, and the one that is probably transposed: it has as many rows as another
        one has features.
    """
    suspects = [
        (d / n, one, other)
        for one, (n, d) in shapes.items()
        for other, (_, width) in shapes.items()
        if n == width != d
    ]
    if suspects:
        _, one, other = max(suspects, key=lambda found: found[0])  # the widest for its height
        n, d = shapes[one]
        raise InputError(
            f"has {n} rows of {d} features, and {display(other)} has {n} features: rows and "
            "columns are probably exchanged. Save one row per sample, one column per feature.",
            argument=display(one),
        )
    (first, (_, width)), *others = shapes.items() or [(Path(), (0, 0))]
    for one, (_, d) in others:
        check_same_dimension(display(one), d, display(first), width)


def suspicions(path: Path, rows: object) -> tuple[Diagnostic, ...]:
    """Return warnings about a file of features that probably holds something else."""
    if not isinstance(rows, np.ndarray):
        return ()
    n, d = rows.shape
    name = shown(str(path))
    found = []
    if d > TOO_WIDE * n:
        found.append(warn_of("rows-for-columns", name=name, d=d, n=n))
    if rows.dtype == np.uint8:
        found.append(warn_of("bytes-not-features", name=name))
    return tuple(found)
