"""Trained arrays on disk: one safetensors file a model, named by everything that went into it."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.digits.networks import Array
from genbounds.files import atomic_write, display


class _DamagedError(Exception):
    """A cache file that does not hold what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model's place in the cache.

    Attributes
    ----------
    folder : Path
    name : str
        Of the model; begins the file's name.
    recipe : dict
        Everything that decides what training ends in, as plain JSON types.
    """

    folder: Path
    name: str
    recipe: dict[str, Any]

    @property
    def path(self) -> Path:
        """The model's file: its name ends in a digest of the recipe."""
        text = json.dumps(self.recipe, sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.folder / f"{self.name}-{digest}.safetensors"

    def load(self) -> dict[str, Array] | None:
        """Return the arrays, or None if they are not there or not what was written."""
        try:
            return _read(self.path)
        except FileNotFoundError:
            return None
        except (_DamagedError, OSError) as error:
            warnings.warn(
                f"{display(self.path)}: {error}; training {self.name} again.", stacklevel=2
            )
            return None

    def load_or(self, train: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """Return the arrays, trained and kept first if need be."""
        arrays = self.load()
        if arrays is None:
            arrays = train()
            self.save(arrays)
        return arrays

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Write the arrays whole or not at all.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        from safetensors.numpy import save

        contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        atomic_write(self.path, save(contiguous, metadata={"sha256": _checksum(contiguous)}))


def _read(path: Path) -> dict[str, Array]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(path)
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}
            written = (file.metadata() or {}).get("sha256")
    except SafetensorError as error:
        raise _DamagedError(f"is damaged ({error})") from error
    if written != _checksum(arrays):
        raise _DamagedError("is damaged (its checksum is wrong)")
    return arrays


def _checksum(arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
