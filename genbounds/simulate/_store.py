"""Finished pieces of work in one SQLite file, so that an interrupted study goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from genbounds.validation import InputError

AUDIT = "audit.sqlite"
COVERAGE = "coverage.sqlite"

_APPLICATION = int.from_bytes(b"genb", "big")  # in the header, for the program `file`


class Store:
    """Key-value store of finished work; made by `open_store`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was kept under `key`, or None."""
        row = self._connection.execute("SELECT value FROM work WHERE key = ?", (key,)).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep `value` at once."""
        try:
            with self._connection:
                self._connection.execute(
                    "INSERT OR REPLACE INTO work VALUES (?, ?)", (key, json.dumps(value))
                )
        except sqlite3.Error as error:
            raise InputError(
                f"{self._path}: cannot keep a result ({error}): free some space or choose "
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0.0)
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{path}: cannot be opened ({error}): choose a folder that can be written."
        ) from error
    try:
        try:
            _prepare(connection)
            _agree(connection, path, configuration)
        except sqlite3.OperationalError as error:
            advice = (
                "another run uses this folder: wait for it or choose another one"
                if "locked" in str(error)
                else "choose a folder that can be written and has space"
            )
            raise InputError(f"{path}: cannot be used ({error}): {advice}.") from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"{path}: is not a store of results ({error}): choose another folder."
            ) from error
        yield Store(connection, path)
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection) -> None:
    # Exclusive: a second run on the same folder is refused for as long as this one lives.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if tables and not tables >= {"work", "configuration"}:
        raise sqlite3.DatabaseError("it holds other tables")
    # A write in any case: a read-only folder is refused before any work, not after the first piece.
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute("CREATE TABLE IF NOT EXISTS work (key TEXT PRIMARY KEY, value TEXT)")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS configuration (key TEXT PRIMARY KEY, value TEXT)"
    )
    connection.commit()


def _agree(connection: sqlite3.Connection, path: Path, configuration: Mapping[str, Any]) -> None:
    wanted = {key: json.dumps(value) for key, value in configuration.items()}
    kept = dict(connection.execute("SELECT key, value FROM configuration").fetchall())
    if not kept:
        with connection:
            connection.executemany("INSERT INTO configuration VALUES (?, ?)", wanted.items())
        return
    differences = [
        f"{key} {kept.get(key, 'unknown')} there, {wanted.get(key, 'unknown')} asked"
        for key in sorted(kept.keys() | wanted.keys())
        if kept.get(key) != wanted.get(key)
    ]
    if differences:
        raise InputError(
            f"{path} holds results of another configuration ({'; '.join(differences)}): "
            "ask for the same, or choose another folder."
        )
