"""Sums over rows, or over all pairs of them: here, or part by part on workers of a Dask cluster.

Only what takes much longer than to send the rows: all pairs, and products of wide feature maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from genbounds._cluster import active_client, run_on
from genbounds._scratch import is_from_dask
from genbounds.validation import Float

Result = TypeVar("Result")
Columns = tuple[NDArray[Any], ...]
"""Arrays with one entry for every row, which are cut together; the first one holds the rows."""

SINGLE_ROWS = 4096
"""Above so many rows of a sample, kernels of float32 features are evaluated in float32."""

MOST_PARTS = 64
"""Parts of a sample: those of larger samples are larger, so that their number stays bounded."""


def over_pairs(
    function: Callable[..., Result], one: Columns, two: Columns | None, *constants: Any
) -> Iterator[tuple[slice, slice, Result]]:
    """Yield (i, j, function(rows i of one, rows j of two, *constants)) for tiles of all pairs.

    Here all pairs are one tile. Where rows were computed by dask and a client of a cluster is
    active, its workers take many: results come in the same order whoever is faster.

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
    cuts = [_cut(len(columns[0])) for columns in samples]
    places = [(i, j) for i in cuts[0] for j in cuts[-1] if two is not None or i.start <= j.start]
    client = _client_of(*(columns[0] for columns in samples)) if len(places) > 1 else None
    if client is None:
        i, j = (slice(0, len(columns[0])) for columns in (samples[0], samples[-1]))
        yield i, j, function(one, two, *constants)
        return
    sent: dict[tuple[int, int], Any] = {}

    def part(columns: Columns, where: slice) -> tuple[Any, ...]:
        for column in columns:
            key = id(column), where.start
            if key not in sent:
                sent[key] = client.scatter(np.array(column[where]), hash=False)
        return tuple(sent[id(column), where.start] for column in columns)

    others = one if two is None else two
    tasks = (
        (part(one, i), None if two is None and i == j else part(others, j), *constants)
        for i, j in places
    )
    for (i, j), found in zip(places, _in_order(client, function, tasks), strict=True):
        yield i, j, found


def weighted_sums(
    blocks: Iterable[tuple[slice, slice, NDArray[Any]]],
    weights: NDArray[Any],
    others: NDArray[Any] | None,
) -> tuple[Float, Float]:
    """Sum blocks of a kernel with the weights of the others, and with those of the rows.

    Parameters
    ----------
    blocks : iterable of (slice of the rows, slice of the others, ndarray)
        Without `others`, those on and above the diagonal of the kernel of rows with themselves.
    weights : ndarray of shape (n, ...)
        Of the rows.
    others : ndarray of shape (m, ...) or None
        Weights of the others.

    Returns
    -------
    over_others : ndarray of shape (n, ...)
    over_rows : ndarray of shape (m, ...)
        Of rows with themselves, the same array.
    """
    over_others = np.zeros(weights.shape)
    over_rows = over_others if others is None else np.zeros(others.shape)
    theirs = weights if others is None else others
    for i, j, values in blocks:
        over_others[i] += values @ theirs[j]
        if others is not None or i != j:
            over_rows[j] += values.T @ weights[i]
    return over_others, over_rows


class Parts(Protocol):
    """Rows that are computed when they are asked for.

    Attributes
    ----------
    n : int
    source : ndarray
        What they are computed from.
    """

    n: int
    source: NDArray[Any]

    def part(self, where: slice) -> Any:
        """Return some of the rows, with what they are computed from."""


def over_rows(
    function: Callable[..., Result], rows: Parts, *columns: NDArray[Any]
) -> Iterator[Result]:
    """Yield function(some of the rows, *their part of the columns), as `over_pairs` does."""
    places = _cut(rows.n)
    client = _client_of(rows.source) if len(places) > 1 else None
    if client is None:
        yield function(rows, *columns)
        return
    tasks = (
        (client.scatter(rows.part(where), hash=False), *(column[where] for column in columns))
        for where in places
    )
    yield from _in_order(client, function, tasks)


def _client_of(*rows: NDArray[Any]) -> Any:
    return active_client() if any(is_from_dask(x) for x in rows) else None


def _in_order(
    client: Any, function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]
) -> Iterator[Result]:
    """Yield results in the order of the tasks, so that sums do not depend on who is faster."""
    waiting: dict[int, Result] = {}
    due = 0
    for index, result in run_on(client, function, tasks, threads=1, then="call again."):
        waiting[index] = result
        while due in waiting:
            yield waiting.pop(due)
            due += 1


def _cut(n: int) -> list[slice]:
    """Cut a sample into parts that are large enough to have the precision of the whole."""
    ends = np.linspace(0, n, min(max(1, n // (SINGLE_ROWS + 1)), MOST_PARTS) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
