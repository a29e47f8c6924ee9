"""Sums over all pairs of rows: here, or tile by tile on the workers of a Dask cluster.

What compares all pairs grows with the square of the rows, while what is sent grows with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from genbounds._cluster import active_client, run_on
from genbounds._scratch import is_from_dask

Result = TypeVar("Result")
Columns = tuple[NDArray[Any], ...]
"""Arrays with one entry for every row, which are cut together; the first one holds the rows."""

SINGLE_ROWS = 4096
"""Above so many rows of a sample, kernels of float32 features are evaluated in float32."""

MOST_TILES = 64
"""Parts of a sample: tiles of larger samples are larger, so that their number stays bounded."""


def over_pairs(
    function: Callable[..., Result], one: Columns, two: Columns | None, *constants: Any
) -> Iterator[tuple[slice, slice, Result]]:
    """Yield (i, j, function(rows i of one, rows j of two, *constants)) for tiles of all pairs.

    Here all pairs are one tile. Where rows were computed by dask and a client of a cluster is
    active, its workers take many.

    Parameters
    ----------
    function : callable
    one, two : tuple of ndarray
        `two` may be None: pairs of `one` with itself, once each. On the diagonal the function is
        then called with None as well. The same array in both is the same one for the function.
    constants
        Further arguments of every call, small ones.
    """
    samples = (one,) if two is None else (one, two)
    rows = tuple(slice(0, len(columns[0])) for columns in samples)
    client = active_client() if any(is_from_dask(columns[0]) for columns in samples) else None
    if client is None:
        yield rows[0], rows[-1], function(one, two, *constants)
        return
    sent: dict[tuple[int, int], Any] = {}

    def part(columns: Columns, where: slice) -> tuple[Any, ...]:
        for column in columns:
            key = id(column), where.start
            if key not in sent:
                sent[key] = client.scatter(np.array(column[where]), hash=False)
        return tuple(sent[id(column), where.start] for column in columns)

    cuts = [_cut(columns) for columns in samples]
    places = [(i, j) for i in cuts[0] for j in cuts[-1] if two is not None or i.start <= j.start]
    others = one if two is None else two
    tasks = (
        (part(one, i), None if two is None and i == j else part(others, j), *constants)
        for i, j in places
    )
    waiting: dict[int, Result] = {}
    due = 0
    for index, result in run_on(client, function, tasks, threads=1, then="call again."):
        waiting[index] = result
        while due in waiting:  # in their order, so that sums do not depend on who is faster
            yield *places[due], waiting.pop(due)
            due += 1


def _cut(columns: Columns) -> list[slice]:
    """Cut a sample into parts, each large enough to have the precision of the whole."""
    n = len(columns[0])
    ends = np.linspace(0, n, min(max(1, n // (SINGLE_ROWS + 1)), MOST_TILES) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
