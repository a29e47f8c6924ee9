"""What a run takes of its machine: memory or disk for arrays; threads and other settings.

Small arrays are kept in memory, large ones in a scratch file that is mapped. Settings of the whole
process are changed for a while and put back. Several threads may change one. Both
`warnings.catch_warnings` and `threadpool_limits` put back what they found. Where two of them
overlap in time without one lying inside the other, the last to end puts back what the first one had
set, and it stays. So the first comer changes the setting, and the last to leave restores it.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_WARNINGS = threading.RLock()


@contextmanager
def silenced(category: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of a category, one thread at a time: keep what is inside short.

    Parameters
    ----------
    category : type
    message : str
        Regular expression of how they begin; all by default.
    """
    with _WARNINGS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=category)
        yield


SMALL_WORK = 2**30
"""Multiply-adds below which one BLAS thread is faster."""


class _Limit:
    """The number of BLAS threads while somebody wants it limited."""

    lock = threading.Lock()
    users = 0
    before: Any = None


@contextmanager
def threads_for(work: float, limit: Callable[[], Any] | None = None) -> Iterator[None]:
    """Keep BLAS to one thread where there is little to compute.

    NumPy and SciPy bring an OpenBLAS each, whose threads spin for a while when they are done and
    take the cores from the other's: on two cores a Fréchet distance of 320 × 64 takes 40 ms with
    two threads and 5 ms with one. From about 4,000 × 512 on more threads pay.

    Parameters
    ----------
    work : float
        Multiply-adds of the largest product, about.
    limit : callable, optional
        What limits them, by default to one, and returns how to put it back.
    """
    if work >= SMALL_WORK:
        yield
        return
    with _Limit.lock:
        if not _Limit.users:
            _Limit.before = limit() if limit else _blas().limit(limits=1, user_api="blas")
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if not _Limit.users:
                # Newer versions of threadpoolctl let no thread but the first set it.
                import threadpoolctl

                controller: Any = getattr(threadpoolctl, "OpenBLASController", None)
                free = getattr(controller, "clear_controlling_thread", lambda force: None)
                free(force=True)
                _Limit.before.restore_original_limits()
                free(force=True)


def blas_threads(threads: int) -> AbstractContextManager[None]:
    """Limit the BLAS threads of this process; of calls that overlap, the first one's number counts.

    Parameters
    ----------
    threads : int
    """
    from threadpoolctl import threadpool_limits

    return threads_for(0.0, lambda: threadpool_limits(limits=threads))


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return what sets BLAS threads: to look for the libraries takes longer than a small score."""
    import scipy.linalg  # noqa: F401  # loads SciPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def environment(values: Mapping[str, str], *also: str) -> Iterator[None]:
    """Set variables of the environment; in the end these, and those in `also`, are as before."""
    before = {name: os.environ.get(name) for name in (*values, *also)}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def searching_installed_packages_only(*also: str) -> Iterator[None]:
    """Have new processes ignore the working folder until they know this one's search path.

    Workers are started as ``python -m …``, for which Python puts the working folder first: a file
    joblib.py there would be run. In the end this variable of the environment, and those in `also`,
    are as before.
    """
    with environment({"PYTHONSAFEPATH": "1"}, *also):
        yield


def versions() -> dict[str, str]:
    """Return the version of each package that the digits of a result depend on.

    Beside the kind of processor, which no version tells.
    """
    # By name: the root of the package imports every layer above this one.
    packages = ("genbounds", "numpy", "scipy")
    return {name: str(import_module(name).__version__) for name in packages}


# --- arrays of any size ---------------------------------------------------------------------------

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
    """Return what `change` makes of all rows of x, one by one.

    Of an array that is mapped from a file, block by block, into a scratch file: it may be larger
    than the memory.
    """
    if not is_mapped(x):
        return change(slice(None))
    blocks = (_as_bytes(np.ascontiguousarray(change(part), dtype)) for part in row_parts(x))
    return np.asarray(gather(blocks, dtype=dtype, shape=(len(x), *change(slice(1)).shape[1:])))


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
