"""Arrays of any size: small ones in memory, large ones in a scratch file that is mapped."""

from __future__ import annotations

import io
import math
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import InputError

# An array beyond this goes to a scratch file instead of memory.
_IN_MEMORY = 1 << 26
# Real features shrink 1- to 20-fold. Whatever claims to unpack to more than `_BOMB_BYTES` from
# less than 1/`_BOMB_RATIO` of that is refused unread.
_BOMB_RATIO = 200
_BOMB_BYTES = 1 << 28
# Of 1, 4 and 16 MiB the smallest size at which copying a file runs at the speed of the disk.
_CHUNK = 1 << 22


def fits_in_memory(size: int) -> bool:
    """Say whether so many bytes are kept in memory rather than in a scratch file."""
    return size <= _IN_MEMORY


def check_bomb(
    shown: str,
    unpacked: int,
    packed: int,
    *,
    kind: str = "features",
    advice: str = "save it uncompressed as .npy",
) -> None:
    """Refuse what claims to unpack to far more bytes than `kind` ever do."""
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
    """Gather exactly prod(shape) items from chunks of bytes.

    Returns
    -------
    ndarray of that shape
        Read-only; in memory, or mapped from an unnamed scratch file that nobody else can touch.

    Raises
    ------
    ValueError
        If the chunks hold another number of bytes.
    OSError
        If the disk has no space for them.
    """
    size = math.prod(shape) * dtype.itemsize
    order: Literal["F", "C"] = "F" if fortran else "C"
    with io.BytesIO() if fits_in_memory(size) else scratch_file() as buffer:
        written = 0
        for chunk in chunks:
            written += len(chunk)
            if written > size:
                break
            buffer.write(chunk)
        if written != size:
            raise ValueError(f"{size} bytes were announced, another number is there")
        if isinstance(buffer, io.BytesIO):
            return np.frombuffer(buffer.getvalue(), dtype=dtype).reshape(shape, order=order)
        if size == 0:  # nothing to map
            return np.empty(shape, dtype=dtype)
        buffer.flush()
        return np.memmap(buffer, dtype=dtype, mode="r", shape=shape, order=order)


def chunks_of(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the next `size` bytes of a stream, or as many as there are."""
    while size > 0 and (chunk := stream.read(min(_CHUNK, size))):
        size -= len(chunk)
        yield chunk


def scratch_file() -> Any:
    """Open an unnamed file for large arrays: in TMPDIR if that is set, else in /var/tmp."""
    return tempfile.TemporaryFile(dir=scratch_folder())


def scratch_folder() -> str:
    """Return the folder of scratch files."""
    # /tmp is kept in memory by some systems; /var/tmp is on disk by convention.
    if not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK | os.X_OK):
        return "/var/tmp"
    return tempfile.gettempdir()
