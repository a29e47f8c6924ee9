"""Arrays of any size: small ones in memory, large ones in a scratch file that is mapped."""

from __future__ import annotations

import io
import math
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# An array of more bytes goes to a scratch file instead of memory.
IN_MEMORY = 1 << 26
# Of 1, 4 and 16 MiB the smallest size at which copying a file runs at the speed of the disk.
CHUNK = 1 << 22
_AT_ONCE = 1 << 29
"""Bytes of a dask array that are computed together, so that many workers have something to do."""


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
    small = size <= IN_MEMORY
    with io.BytesIO() if small else tempfile.TemporaryFile(dir=scratch_folder()) as buffer:
        written = 0
        for chunk in chunks:
            written += len(chunk)
            if written > size:
                break
            buffer.write(chunk)
        if written != size:
            raise ValueError(f"{size} bytes were announced, another number is there")
        if size == 0:  # nothing to map
            return np.empty(shape, dtype=dtype)
        buffer.flush()
        if isinstance(buffer, io.BytesIO):
            return np.frombuffer(buffer.getvalue(), dtype=dtype).reshape(shape, order=order)
        return np.memmap(buffer, dtype=dtype, mode="r", shape=shape, order=order)


def by_rows(
    x: NDArray[Any], change: Callable[[slice], NDArray[Any]], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return what `change` makes of all rows of x, one by one and as many features as before.

    Of an array that is mapped from a file, block by block, into a scratch file: it may be larger
    than the memory.
    """
    if not is_mapped(x):
        return change(slice(None))
    blocks = (_as_bytes(np.ascontiguousarray(change(part), dtype)) for part in row_parts(x))
    return np.asarray(gather(blocks, dtype=dtype, shape=x.shape))


def row_parts(x: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of some rows each, of a few megabytes, one after the other."""
    step = max(1, CHUNK // max(1, x[:1].nbytes))
    for start in range(0, len(x), step):
        yield slice(start, start + step)


def is_mapped(x: Any) -> bool:
    """Whether an array lies in a file."""
    memory = x
    while isinstance(memory, np.ndarray):
        memory = memory.base
    return isinstance(memory, mmap.mmap) and len(memory) > IN_MEMORY


def _as_bytes(rows: NDArray[Any]) -> memoryview:
    return rows.reshape(-1).view(np.uint8).data


def is_dask_array(x: object) -> bool:
    """Whether this is an array of dask, which nobody has to have installed."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(x, module.Array)


def row_blocks_of_dask(x: Any) -> list[tuple[int, Any]] | None:
    """Return lengths and blocks of whole rows of a dask array, uncomputed; None if it has none."""
    if x.ndim != 2 or x.size == 0 or not all(math.isfinite(size) for size in x.shape):
        return None
    x = x.rechunk({1: -1})
    return list(zip(x.chunks[0], x.to_delayed().ravel(), strict=True))


def computed(x: Any) -> NDArray[Any]:
    """Compute a dask array where dask computes: a large one by blocks of rows, into a scratch file.

    Raises
    ------
    ValueError
        If the sizes of its blocks are not known, or not what they were said to be.
    Exception
        Whatever computing it raises.
    """
    if not all(math.isfinite(size) for size in x.shape):
        raise ValueError("the sizes of its blocks are unknown, call x.compute_chunk_sizes() first")
    if x.ndim != 2 or x.dtype.hasobject or x.nbytes <= IN_MEMORY:
        found = np.asarray(x)
        if found.shape != x.shape:
            raise ValueError(f"its blocks hold {found.shape}, where {x.shape} was said")
        if x.ndim != 2 or x.dtype.hasobject:
            return found
        rows = _as_bytes(np.ascontiguousarray(found))
        return gather([rows], dtype=found.dtype, shape=found.shape)

    def blocks() -> Iterator[memoryview]:
        dask = sys.modules["dask"]
        lengths, first = x.chunks[0], 0
        row = x.shape[1] * x.dtype.itemsize
        while first < len(lengths):
            last, held = first + 1, row * lengths[first]
            while last < len(lengths) and held + row * lengths[last] <= _AT_ONCE:
                held += row * lengths[last]
                last += 1
            for part in dask.compute(*(x.blocks[k] for k in range(first, last))):
                yield _as_bytes(np.ascontiguousarray(part, dtype=x.dtype))
            first = last

    return gather(blocks(), dtype=x.dtype, shape=x.shape)


def scratch_folder() -> str:
    """Return the folder of scratch files: TMPDIR if that is set, else /var/tmp."""
    # /tmp is kept in memory by some systems; /var/tmp is on disk by convention.
    if not os.environ.get("TMPDIR") and os.access("/var/tmp", os.W_OK | os.X_OK):
        return "/var/tmp"
    return tempfile.gettempdir()
