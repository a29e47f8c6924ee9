"""A study as independent pieces of work, kept in a store as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genbounds._versions import versions
from genbounds.simulate._store import open_store
from genbounds.simulate._workers import Workers

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: a chunk of replications, the exact tails of a scenario, or a search.

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
    out: Path | str | None,
    name: str,
    configuration: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, Any]]:
    """Do the pieces and return their results by key.

    Parameters
    ----------
    pieces : sequence of Piece
    workers : Workers
    out : path or None
        Folder with the store: results that it holds are not computed again, new ones kept at once.
    name : str
        File name of the store.
    configuration : mapping, optional
        What all results of the store depend on, beside versions and threads.
    progress : callable, optional
        Called as ``progress(done, total, label)`` after every finished piece.
    """
    everything = versions() | dict(configuration or {}) | {"threads": workers.threads}
    with nullcontext() if out is None else open_store(out, everything, name=name) as store:
        stored = {} if store is None else {piece.key: store.get(piece.key) for piece in pieces}
        results = {key: result for key, result in stored.items() if result is not None}
        pending = [piece for piece in pieces if piece.key not in results]
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
