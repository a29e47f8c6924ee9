"""Independent pieces of work, each kept in one SQLite file as soon as it is finished.

So an interrupted study goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from operator import call
from pathlib import Path
from typing import Any

from numpy.random import SeedSequence

from genbounds._process import versions
from genbounds._text import display
from genbounds.simulate._workers import Workers
from genbounds.validation import InputError

AUDIT = "audit.sqlite"
COVERAGE = "coverage.sqlite"

_APPLICATION = int.from_bytes(b"genb", "big")  # in the header, for the program `file`

# The whole schema, word for word: a store with anything else in it, a view for one, is not ours.
_TABLES = {
    "work": "CREATE TABLE work (key TEXT PRIMARY KEY, value TEXT, checksum TEXT)",
    "configuration": "CREATE TABLE configuration (key TEXT PRIMARY KEY, value TEXT)",
}

_log = logging.getLogger("genbounds.simulate")

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: a chunk of replications, the exact tails of a scenario, or a search.

    Attributes
    ----------
    study : sequence
        Names the piece among all of a store, in types of JSON: everything that its result depends
        on and that the configuration of the store does not hold.
    label : str
        For progress.
    function : callable
        Returns a dict that JSON keeps unchanged. Its random numbers come from a `SeedSequence`
        among `arguments`, so that they are the same wherever and whenever it runs.
    arguments : tuple
    """

    study: Sequence[object]
    label: str
    function: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> str:
        """Name in the store."""
        return json.dumps(self.study, ensure_ascii=False)


def chunks(replications: int, most: int) -> tuple[int, ...]:
    """Cut `replications` into chunks of at most `most`."""
    return tuple(min(most, replications - start) for start in range(0, replications, most))


def stream(seed: int, *keys: object) -> SeedSequence:
    """Child of `seed` for the named piece of work: the same in whatever order or place it runs."""
    words = tuple(
        int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=4).digest(), "big")
        for key in keys
    )
    return SeedSequence(seed, spawn_key=words)


def work(
    pieces: Sequence[Piece],
    *,
    workers: Workers,
    out: Path | str | None,
    progress: Progress | None,
    name: str = COVERAGE,
    configuration: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Do the pieces and return their results, in their order.

    Parameters
    ----------
    pieces : sequence of Piece
    workers : Workers
    out : path or None
        Folder with the store: results that it holds are not computed again, new ones kept at once.
    progress : callable or None
        Called as ``progress(done, total, label)`` after every finished piece.
    name : str
        File name of the store.
    configuration : mapping, optional
        What all results of the store depend on, beside versions and threads.
    """
    everything = versions() | dict(configuration or {}) | {"threads": workers.threads}
    with nullcontext() if out is None else open_store(out, everything, name=name) as store:
        results = [None if store is None else store.get(piece.key) for piece in pieces]
        pending = [index for index, result in enumerate(results) if result is None]
        tasks = [(pieces[index].function, *pieces[index].arguments) for index in pending]
        # Closed on the way out of an error as well: that ends processes and clusters at once.
        with closing(workers.run(call, tasks)) as finished:
            for done, (task, result) in enumerate(finished, len(pieces) - len(pending) + 1):
                piece = pieces[pending[task]]
                results[pending[task]] = result
                if store is not None:
                    store.put(piece.key, result)
                if progress is not None:
                    progress(done, len(pieces), piece.label)
    return [result for result in results if result is not None]


# --- the store ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Store:
    """Key-value store of finished work; made by `open_store`.

    Each row has a checksum of its key, its value and the configuration. A row that was damaged,
    altered or copied from another store is dropped with a message, and computed again.
    """

    connection: sqlite3.Connection
    path: Path
    configuration: Mapping[str, str]

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was kept under `key`, or None."""
        try:
            query = "SELECT value, checksum FROM work WHERE key = ?"
            row = self.connection.execute(query, (key,)).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _damaged(self.path, error) from error
        if row is None:
            return None
        value, checksum = row
        if not isinstance(value, str) or checksum != self._checksum(key, value):
            _log.warning(
                "%s: a kept result is damaged or was altered: computed again (%s).",
                display(self.path),
                display(key, limit=80),
            )
            return None
        return dict(json.loads(value))

    def _checksum(self, key: str, value: str) -> str:
        text = json.dumps([sorted(self.configuration.items()), key, value])
        return hashlib.sha256(text.encode()).hexdigest()

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep `value` at once."""
        text = json.dumps(value)
        try:
            with self.connection:
                self.connection.execute(
                    "INSERT OR REPLACE INTO work VALUES (?, ?, ?)",
                    (key, text, self._checksum(key, text)),
                )
        except sqlite3.Error as error:
            raise InputError(
                f"{display(self.path)}: cannot keep a result ({error}): free some space or choose "
                "another folder; what was kept before is safe, the same command resumes."
            ) from error


@contextmanager
def open_store(folder: Path | str, settings: Mapping[str, Any], *, name: str) -> Iterator[Store]:
    """Open or make a store in a folder.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    settings : mapping
        What every result in the store depends on; must agree with that of an existing store.
    name : str
        File name, `AUDIT` or `COVERAGE`.

    Raises
    ------
    InputError
        If the folder cannot be written, another run uses the store, the file is not a store, or
        it belongs to another configuration (the difference is named).
    """
    path = Path(folder) / name
    wanted = {key: json.dumps(value) for key, value in settings.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0.0)
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{display(path)}: cannot be opened ({error}): choose a folder that can be written."
        ) from error
    with closing(connection):
        # A text that is none any more still has to fail its checksum, not the reader.
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        try:
            _prepare(connection, path)
            _agree(connection, path, wanted)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise InputError(f"{display(path)}: {_unusable(error)}.") from error
        yield Store(connection, path, wanted)


def _unusable(error: Exception) -> str:
    """Say why a file is no store, and what to do."""
    if not isinstance(error, sqlite3.OperationalError):
        return f"is not a store of results ({display(error)}): choose another folder"
    if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
        advice = "another run uses this folder: wait for it or choose another one"
    else:
        advice = "choose a folder that can be written and has space"
    return f"cannot be used ({display(error)}): {advice}"


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Exclusive: a second run on the same folder is refused for as long as this one lives.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL").fetchall()
    if tables:
        if dict(tables) != _TABLES:
            raise sqlite3.DatabaseError("it holds other tables")
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise _damaged(path, state)
    # A write in any case: a read-only folder is refused before any work, not after the first piece.
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    if not tables:
        for statement in _TABLES.values():
            connection.execute(statement)
    connection.commit()


def _agree(connection: sqlite3.Connection, path: Path, wanted: Mapping[str, str]) -> None:
    stored = dict(connection.execute("SELECT key, value FROM configuration").fetchall())
    if not stored:
        with connection:
            connection.executemany("INSERT INTO configuration VALUES (?, ?)", wanted.items())
        return
    differences = [
        f"{key} {stored.get(key, 'unknown')} there, {wanted.get(key, 'unknown')} asked"
        for key in sorted(stored.keys() | wanted.keys(), key=str)
        if stored.get(key) != wanted.get(key)
    ]
    if differences:
        raise InputError(
            f"{display(path)} holds results of another configuration "
            f"({display('; '.join(differences))}): ask for the same, or choose another folder."
        )


def _damaged(path: Path, reason: object) -> InputError:
    return InputError(
        f"{display(path)}: is damaged ({display(reason, limit=80)}): delete it, and the same "
        "command computes everything again."
    )
