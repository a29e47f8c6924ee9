"""Sums over rows, or over all pairs of them: here, or part by part on workers of a Dask cluster.

Only what takes much longer than to send the rows: all pairs, and products of wide features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from genbounds._cluster import active_client, run_on, sum_on, unlike_here
from genbounds._scratch import is_from_dask
from genbounds.validation import Float

Result = TypeVar("Result")
Columns = tuple[NDArray[Any], ...]
"""Arrays with one entry for every row, which are cut together; the first one holds the rows."""

SINGLE_ROWS = 4096
"""Above so many rows of a sample, kernels of float32 features are evaluated in float32."""

MOST_PARTS = 64
"""Parts of a sample for pairs: those of larger samples are larger, so that there are no more."""

PART_BYTES = 1 << 27
"""Parts for sums over rows are no larger, where that takes more parts."""

THEN = "call again."
"""What to do after a failure of the cluster."""


def over_pairs(
    function: Callable[..., Result],
    one: Columns,
    two: Columns | None,
    *constants: Any,
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
    from_dask = any(is_from_dask(columns[0]) for columns in samples)
    client = _client() if from_dask and len(places) > 1 else None
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
    """Rows of which a part can be taken.

    Attributes
    ----------
    n : int
    rows : ndarray
        What they are made of, row by row.
    """

    @property
    def n(self) -> int:
        """How many there are."""
        ...

    @property
    def rows(self) -> NDArray[Any]:
        """The array that they are rows of."""
        ...

    def part(self, where: slice) -> Any:
        """Return a copy of some of the rows, without the others."""


@dataclass(frozen=True, slots=True, eq=False)
class ChosenRows:
    """Some of the rows of an array.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
    index : ndarray of int or None
        Which of them; None: all.
    first : int
        How many rows of the sample come before them.
    """

    rows: NDArray[Any]
    index: NDArray[np.intp] | None = None
    first: int = 0

    @property
    def n(self) -> int:
        """How many."""
        return len(self.rows) if self.index is None else self.index.size

    def __getitem__(self, where: slice | NDArray[np.intp]) -> NDArray[Any]:
        return self.rows[where if self.index is None else self.index[where]]

    def part(self, where: slice) -> ChosenRows:
        """Return a copy of some of the rows, without the others."""
        return ChosenRows(np.array(self[where]), first=self.first + where.start)


def over_rows(
    function: Callable[..., Result],
    add: Callable[[Result, Result], Result],
    rows: Parts,
    *columns: NDArray[Any],
    constants: tuple[Any, ...] = (),
    step: int = 1,
) -> Result:
    """Return function(rows, *columns, *constants), or its sum over parts on workers.

    As `over_pairs`; the workers add up what they find, so that one result comes back.

    Parameters
    ----------
    function : callable
    add : callable
        Returns the sum of two results.
    rows : Parts
    columns : ndarray
        With one entry for every row.
    constants : tuple
        Further arguments of every call, sent once.
    step : int
        Rows that stay together: all parts but the last have a multiple of it.
    """
    client = client_for(rows, step)
    if client is None:
        return function(rows, *columns, *constants)

    def sent(*together: Any) -> Any:
        return client.scatter([together], hash=False)[0]

    everywhere = sent(*constants)
    tasks = (
        (function, sent(rows.part(where), *(column[where] for column in columns)), everywhere)
        for where in _parts(rows, step)
    )
    found: Result = sum_on(client, _on_part, add, tasks, threads=1, then=THEN)
    return found


def _on_part(
    function: Callable[..., Any], part: tuple[Any, ...], constants: tuple[Any, ...]
) -> Any:
    return function(*part, *constants)


def client_for(rows: Parts, step: int = 1) -> Any:
    """Return the client whose workers `over_rows` asks; None where it stays here."""
    return _client() if is_from_dask(rows.rows) and len(_parts(rows, step)) > 1 else None


def _parts(rows: Parts, step: int) -> list[slice]:
    return _cut(rows.n, step, max(MOST_PARTS, rows.n * rows.rows[:1].nbytes // PART_BYTES))


def _client() -> Any:
    """Return the client of a cluster whose workers can do what is done here; None without one."""
    client = active_client()
    if client is None:
        return None
    why = unlike_here(client)
    if why is not None:
        warnings.warn(f"{why}. Until then this process computes scores alone.", stacklevel=2)
        return None
    return client


def _in_order(
    client: Any, function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]
) -> Iterator[Result]:
    """Yield results in the order of the tasks, so that sums do not depend on who is faster."""
    waiting: dict[int, Result] = {}
    due = 0
    for index, result in run_on(client, function, tasks, threads=1, then=THEN):
        waiting[index] = result
        while due in waiting:
            yield waiting.pop(due)
            due += 1


def _cut(n: int, step: int = 1, most: int = MOST_PARTS) -> list[slice]:
    """Cut a sample into parts that are large enough to have the precision of the whole."""
    steps = -(-n // step)
    parts = min(max(1, n // (SINGLE_ROWS + 1)), steps, most)
    ends = np.linspace(0, steps, parts + 1).astype(int) * step
    return [slice(int(a), min(int(b), n)) for a, b in pairwise(ends)]
