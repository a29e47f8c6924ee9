"""Large arrays stay on disk: mapped where they lie, or unpacked into a scratch file."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import InputError

# Beyond this an unpacked array goes to a scratch file instead of memory.
_IN_MEMORY = 1 << 26
# Real features shrink 1- to 20-fold. Whatever claims to unpack to more than `_BOMB_BYTES` from
# less than 1/`_BOMB_RATIO` of that is refused unread.
_BOMB_RATIO = 200
_BOMB_BYTES = 1 << 28
CHUNK = 1 << 20


def fits_in_memory(size: int) -> bool:
    """Say whether so many bytes are unpacked into memory rather than kept on disk."""
    return size <= _IN_MEMORY


def check_bomb(
    shown: str,
    unpacked: int,
    packed: int,
    *,
    kind: str = "features",
    advice: str = "save it uncompressed as .npy",
) -> None:
    """Refuse what claims to unpack to far more than `kind`, in bytes, ever do."""
    if unpacked > _BOMB_BYTES and unpacked > _BOMB_RATIO * packed:
        raise InputError(
            f"{shown}: claims to unpack {packed:,} bytes to {unpacked:,}, which no real {kind} "
            f"do: if it is genuine, {advice}."
        )


def gather(
    chunks: Iterable[bytes | memoryview],
    *,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    fortran: bool = False,
) -> NDArray[Any]:
    """Gather exactly prod(shape) items from chunks, in memory or in an unnamed scratch file.

    Raises
    ------
    ValueError
        If the chunks hold another number of bytes.
    OSError
        If the disk has no room for them.
    """
    size = math.prod(shape) * dtype.itemsize
    with io.BytesIO() if fits_in_memory(size) else tempfile.TemporaryFile() as buffer:
        written = 0
        for chunk in chunks:
            written += len(chunk)
            if written > size:
                break
            buffer.write(chunk)
        if written != size:
            raise ValueError(f"{size} bytes were announced, another number is there")
        if isinstance(buffer, io.BytesIO):
            flat = np.frombuffer(buffer.getvalue(), dtype=dtype)
            return flat.reshape(shape, order="F" if fortran else "C")
        buffer.flush()
        return map_file(buffer, 0, dtype=dtype, shape=shape, fortran=fortran)


def map_file(
    file: Path | IO[bytes],
    offset: int,
    *,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    fortran: bool = False,
) -> NDArray[Any]:
    """Map an array from disk, read-only."""
    if math.prod(shape) == 0:  # nothing to map
        return np.empty(shape, dtype=dtype)
    order: Literal["F", "C"] = "F" if fortran else "C"
    return np.memmap(file, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)
