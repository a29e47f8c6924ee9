"""A study as independent pieces of work, kept in a store as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from genbounds.simulate._store import Store
from genbounds.simulate._workers import Workers

Progress = Callable[[int, int, str], None]

# What the digits of a result depend on, beside the kind of processor.
_NUMERICS = ("genbounds", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of everything that the digits of a result depend on."""
    # By name: the root of the package imports every layer above this one.
    return {name: str(import_module(name).__version__) for name in _NUMERICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of work: a chunk, the exact tails of a cell, or a search.

    Attributes
    ----------
    key : str
        Names the piece among all of a store; everything that its result depends on and that the
        configuration of the store does not hold.
    label : str
        For progress.
    function : callable
        Returns a dict that JSON keeps unchanged. Its random numbers come from a `SeedSequence`
        among `arguments`, so that they are the same wherever and whenever it runs.
    arguments : tuple
    """

    key: str
    label: str
    function: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]


def work(
    pieces: Sequence[Piece],
    *,
    workers: Workers,
    store: Store | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, Any]]:
    """Results by key; those in the store are not computed again, new ones kept at once."""
    results: dict[str, dict[str, Any]] = {}
    pending = []
    for piece in pieces:
        kept = None if store is None else store.get(piece.key)
        if kept is None:
            pending.append(piece)
        else:
            results[piece.key] = kept
    tasks = [(piece.function, piece.arguments) for piece in pending]
    # Closed on the way out of an error as well: that ends processes and clusters at once.
    with closing(workers.run(_call, tasks)) as finished:
        for index, result in finished:
            piece = pending[index]
            results[piece.key] = result
            if store is not None:
                store.put(piece.key, result)
            if progress is not None:
                progress(len(results), len(pieces), piece.label)
    return results


def _call(function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    return function(*arguments)
