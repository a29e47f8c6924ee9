"""Samples of a run on disk: an interrupted run goes on without drawing them again."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files import atomic_write, display, read_features
from genbounds.validation import InputError

_STATE = "run.json"
_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRecord:
    """What one arm has given so far.

    Attributes
    ----------
    n : int
        Rows kept.
    rng_state : dict
        State of the arm's generator after them.
    digest : str
        Of the rows; empty of none.
    exhausted : bool
    failure : str or None
    retried : list of str
        As in `Sampler`.
    labels : dict of str to list
        Group and stratum of each row ("groups", "strata"), where the arm gives them.
    """

    n: int
    rng_state: dict[str, Any]
    digest: str = ""
    exhausted: bool = False
    failure: str | None = None
    retried: list[str] = field(default_factory=list)
    labels: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What decides the samples of a run, and what they were drawn from.

    Attributes
    ----------
    settings : dict
        Seed, batch and type.
    arms : dict of str to str
        For every arm, in order, a digest of what it draws from; empty if unknown.
    reference : str
        Digest of the reference; empty if there is none.
    """

    settings: dict[str, Any]
    arms: dict[str, str]
    reference: str = ""

    def refuse(self, earlier: Identity, folder: Path) -> None:
        """Raise `InputError` if the run in `folder` was another one.

        Arms may have been added behind the others: no stream changes.
        """
        where = display(folder)
        names, before = list(self.arms), list(earlier.arms)
        other = sorted(
            name
            for name in self.settings.keys() | earlier.settings.keys()
            if self.settings.get(name) != earlier.settings.get(name)
        )
        if names[: len(before)] != before:
            other.append(f"arms {', '.join(map(display, before))}")
        if other:
            raise InputError(
                f"{where} holds a run with other settings ({', '.join(other)}): "
                "use another folder, or repeat the settings of that run."
            )
        changed = [repr(name) for name in before if self.arms[name] != earlier.arms[name]]
        if self.reference != earlier.reference:
            changed.append("the reference")
        if changed:
            raise InputError(
                f"{where} holds a run with other data behind {', '.join(changed)}: use another "
                "folder, or delete this one to start again."
            )


class Record:
    """A folder with the rows of every arm (``<position>.npy``) and ``run.json``.

    A run is decided by its arms' streams and its settings. So only the samples are kept: a
    continued run is repeated from them, which costs arithmetic but no sample, and ends bit by bit
    as if it had never stopped.

    Parameters
    ----------
    folder : path-like
        Made if missing.
    identity : Identity
        A folder of another run is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: Identity) -> None:
        self._folder = Path(folder)
        self._identity = identity

    def load(self) -> dict[str, tuple[ArmRecord, NDArray[Any]]]:
        """Return record and rows of every arm that the folder has.

        Raises
        ------
        InputError
            If the folder holds another run, or is damaged.
        """
        records = {}
        for position, (name, record) in enumerate(self._read().items()):
            path, rows = self._folder / f"{position}.npy", np.empty((0, 0))
            if record.n:
                try:
                    rows = read_features(path)[: record.n]
                except InputError as error:
                    raise self._damaged(path, "it is missing or damaged") from error
            digest = hashlib.blake2b(digest_size=16)
            add_digest(digest, rows)
            if record.digest != (digest.hexdigest() if record.n else ""):
                raise self._damaged(path, "its rows are not those that were recorded")
            records[name] = record, rows
        return records

    def save(self, arms: dict[str, tuple[ArmRecord, NDArray[Any] | None]]) -> None:
        """Write everything; a crash in between leaves the folder as it was or complete.

        Rows only ever grow at their end, so that rows newer than ``run.json`` do no harm.
        """
        for position, (_, rows) in enumerate(arms.values()):
            if rows is not None:
                buffer = io.BytesIO()
                np.save(buffer, rows, allow_pickle=False)
                atomic_write(self._folder / f"{position}.npy", buffer.getvalue())
        state = {
            "version": _VERSION,
            "identity": asdict(self._identity),
            "arms": {name: asdict(record) for name, (record, _) in arms.items()},
        }
        document = {"checksum": _checksum(state), **state}
        atomic_write(self._folder / _STATE, json.dumps(document, indent=1) + "\n")

    def _read(self) -> dict[str, ArmRecord]:
        """Return the records of all arms, after a check that they are this run's."""
        path = self._folder / _STATE
        if path.exists() and not path.is_file():  # a pipe, for whose writer this would wait
            raise self._damaged(path, "it is not a regular file")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._claim()
            return {}
        except NotADirectoryError:
            raise InputError(
                f"{display(self._folder)}: is a file, not a folder: choose a folder."
            ) from None
        except (OSError, ValueError) as error:
            raise self._damaged(path, f"it cannot be read ({error})") from error
        try:
            state = json.loads(text)
            if state.get("version", 1) != _VERSION:
                raise self._damaged(path, "it was written by another version of genbounds")
            if state.pop("checksum") != _checksum(state):
                raise self._damaged(path, "it was changed or damaged")
            # What has this checksum was written by `save`: its parts are what they should be.
            identity = Identity(**state["identity"])
            arms = {name: ArmRecord(**record) for name, record in state["arms"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise self._damaged(path, "it is no record of a run") from error
        self._identity.refuse(identity, self._folder)
        return arms

    def _claim(self) -> None:
        """Mark a new folder as this run's, before a file of somebody else is written over."""
        others = sorted(file for file in self._folder.glob("*.npy") if file.stem.isdigit())
        if others:
            raise InputError(
                f"{display(self._folder)} holds {display(others[0].name)}, which is of no recorded "
                "run and would be written over: choose an empty folder."
            )
        self.save({})

    def _damaged(self, path: Path, what: str) -> InputError:
        return InputError(
            f"{display(path)}: {what}: choose an empty folder; or delete "
            f"{display(self._folder)}, if it holds nothing else, to start again."
        )


def _checksum(state: dict[str, Any]) -> str:
    text = json.dumps(state, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def add_digest(digest: hashlib.blake2b, rows: NDArray[Any]) -> None:
    """Digest more `rows`: their values, in whatever type they are kept."""
    for row in rows:
        key = hashlib.blake2b(np.ascontiguousarray(row, dtype=np.float64).data, digest_size=8)
        digest.update(key.digest())
