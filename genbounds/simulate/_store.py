"""Finished pieces of work in one SQLite file, so that an interrupted study goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from genbounds.files import display
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


class Store:
    """Key-value store of finished work; made by `open_store`.

    Each row has a checksum of its key, its value and the configuration. A row that was damaged,
    altered or copied from another store is dropped with a message, and computed again.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, configuration: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self._path = path
        self._configuration = sorted(configuration.items())

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was kept under `key`, or None."""
        try:
            row = self._connection.execute(
                "SELECT value, checksum FROM work WHERE key = ?", (key,)
            ).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _damaged(self._path, error) from error
        if row is None:
            return None
        value, checksum = row
        if not isinstance(value, str) or checksum != self._checksum(key, value):
            _log.warning(
                "%s: a kept result is damaged or was altered: computed again (%s).",
                display(self._path),
                display(key, limit=80),
            )
            return None
        return dict(json.loads(value))

    def _checksum(self, key: str, value: str) -> str:
        text = json.dumps([self._configuration, key, value])
        return hashlib.sha256(text.encode()).hexdigest()

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep `value` at once."""
        text = json.dumps(value)
        try:
            with self._connection:
                self._connection.execute(
                    "INSERT OR REPLACE INTO work VALUES (?, ?, ?)",
                    (key, text, self._checksum(key, text)),
                )
        except sqlite3.Error as error:
            raise InputError(
                f"{display(self._path)}: cannot keep a result ({error}): free some space or choose "
                "another folder; what was kept before is safe, the same command resumes."
            ) from error


@contextmanager
def open_store(
    folder: Path | str, configuration: Mapping[str, Any], *, name: str
) -> Iterator[Store]:
    """Open or make a store in a folder.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    configuration : mapping
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
    wanted = {key: json.dumps(value) for key, value in configuration.items()}
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
