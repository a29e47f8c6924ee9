"""Samples of a run on disk: an interrupted run goes on without drawing them again."""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files import atomic_write, read_features
from genbounds.validation import InputError

_STATE = "run.json"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRecord:
    """What one arm has given so far.

    Attributes
    ----------
    n : int
        Rows kept.
    rng_state : dict
        State of the arm's generator after them.
    dry : bool
    failure : str or None
    retried : list of str
        As in `Feed`.
    """

    n: int
    rng_state: dict[str, Any]
    dry: bool = False
    failure: str | None = None
    retried: list[str]


class Record:
    """A folder with the rows of every arm (``<position>.npy``) and ``run.json``.

    A run is decided by its arms' streams and its settings. So only the samples are kept: a
    continued run is played again from them, which costs arithmetic but no sample, and ends
    bit by bit as if it had never stopped.

    Parameters
    ----------
    folder : path-like
        Made if missing.
    identity : dict
        What decides the streams (seed, names, batch, type). A folder of another run is refused,
        but arms may be added behind those recorded.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self._folder = Path(folder)
        self._identity = identity | {"version": _VERSION}

    def load(self, name: str, position: int) -> tuple[ArmRecord, NDArray[Any]] | None:
        """Record and rows of an arm; None if the folder has none."""
        arms = self._read()
        if name not in arms:
            return None
        record = ArmRecord(**arms[name])
        if record.n == 0:
            return record, np.empty((0, 0))
        rows = read_features(self._rows_path(position))
        if rows.shape[0] < record.n:
            raise InputError(
                f"{self._rows_path(position)} holds {rows.shape[0]} rows where {_STATE} says "
                f"{record.n}: the folder is damaged; delete it and start again."
            )
        return record, rows[: record.n]

    def save(self, arms: dict[str, tuple[ArmRecord, NDArray[Any] | None]]) -> None:
        """Write everything; a crash in between leaves the folder as it was or complete.

        Rows only ever grow at their end, so that rows newer than ``run.json`` do no harm.
        """
        for position, (_, rows) in enumerate(arms.values()):
            if rows is not None:
                buffer = io.BytesIO()
                np.save(buffer, rows, allow_pickle=False)
                atomic_write(self._rows_path(position), buffer.getvalue())
        state = {
            "identity": self._identity,
            "arms": {name: asdict(record) for name, (record, _) in arms.items()},
        }
        atomic_write(self._folder / _STATE, json.dumps(state, indent=1) + "\n")

    def _read(self) -> dict[str, Any]:
        path = self._folder / _STATE
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            identity, arms = state["identity"], state["arms"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} cannot be read ({error}): delete it to start again."
            ) from error
        changed = sorted(
            key
            for key in identity.keys() | self._identity.keys()
            if identity.get(key) != self._identity.get(key)
        )
        earlier = identity.get("arms", [])
        if changed == ["arms"] and self._identity["arms"][: len(earlier)] == earlier:
            changed = []  # arms were added behind the others: no stream changes
        if changed:
            raise InputError(
                f"{self._folder} holds a run with other settings ({', '.join(changed)} differ): "
                "use another folder, or repeat the settings of that run."
            )
        recorded: dict[str, Any] = arms
        return recorded

    def _rows_path(self, position: int) -> Path:
        return self._folder / f"{position}.npy"
