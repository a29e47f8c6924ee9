"""Whole files or nothing: written aside, synced, then renamed; by one run at a time in a folder."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.files._content import DIGEST_KEY, METADATA_KEY, NAMES_KEY, digest_of
from genbounds.files._formats import header_of
from genbounds.files._open import atomic_write, reason_of, written_aside
from genbounds.validation import Float, InputError

_WRITTEN = {
    "features": ".safetensors, .npy or .npz: end the name in one of them",
    "statistics": ".npz: end the name in .npz",
}


def check_name(path: str | os.PathLike[str], what: str) -> str:
    """Refuse a name under which features, or statistics, are not written; return its ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in re.findall(r"\.\w+", _WRITTEN[what]):
        raise InputError(f"{display(path)}: {what} are written as {_WRITTEN[what]}.")
    return suffix


def write_statistics(
    path: str | os.PathLike[str],
    mean: Float,
    cov: Float,
    n: int | None = None,
    *,
    rows: NDArray[Any] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write ``mu``, ``sigma`` and, where known, ``n`` as pytorch-fid reads them (``.npz``).

    Parameters
    ----------
    path : path-like
        A name that ends in ``.npz``. An existing file is replaced in one step.
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)
    n : int or None
    rows : ndarray of shape (k, d), optional
        A random part of the samples; other tools do not look at it.
    metadata : mapping of str to str, optional
        Where the features came from; other tools do not look at it.

    Raises
    ------
    InputError
        If the name ends otherwise, the shapes do not agree, or the file cannot be written.
    """
    check_name(path, "statistics")
    d = np.size(mean)
    if np.shape(mean) != (d,) or np.shape(cov) != (d, d):
        raise InputError(
            f"`mean` has shape {np.shape(mean)} and `cov` {np.shape(cov)}: "
            "they must have shapes (d,) and (d, d)."
        )
    if rows is not None and (np.ndim(rows) != 2 or np.shape(rows)[1] != d or not len(rows)):
        raise InputError(f"`rows` must have shape (k, {d}); got {np.shape(rows)}.")
    arrays = {"mu": mean, "sigma": cov, "n": n, "rows": rows}
    if metadata:
        arrays[METADATA_KEY] = _packed(metadata)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _add(archive, {key: np.asarray(x) for key, x in arrays.items() if x is not None})
    atomic_write(path, buffer.getvalue())


def _add(archive: zipfile.ZipFile, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Add arrays as np.savez does, but without the time: equal content shall be equal bytes."""
    for key, array in arrays.items():
        member = io.BytesIO()
        np.lib.format.write_array(member, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(f"{key}.npy"), member.getvalue())


def _packed(metadata: Mapping[str, str]) -> NDArray[np.uint8]:
    """Return metadata as bytes in an array: text that readers of numbers can skip."""
    text = json.dumps(dict(metadata), sort_keys=True)
    return np.frombuffer(text.encode(), dtype=np.uint8)


@contextmanager
def open_features_writer(
    path: str | os.PathLike[str],
    *,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    metadata: Mapping[str, str] | None = None,
    labels: Mapping[str, NDArray[Any]] | None = None,
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write a file of features block by block; whole or not at all.

    Parameters
    ----------
    path : path-like
        ``.safetensors`` (array ``features``; digests of all arrays stand in the metadata),
        ``.npy`` (without any checksum), or ``.npz`` (array ``reps``, as dgm-eval calls it). An
        existing file is replaced at the end.
    shape : tuple of int
        (n, d), of all blocks together.
    dtype : dtype
        Floating.
    metadata : mapping of str to str, optional
        Where the features came from; ``.npy`` cannot hold it.
    labels : mapping of str to ndarray of shape (n,), optional
        Integers or texts by name (``groups``, ``strata``, ``labels``), for `read_labels`; ``.npy``
        cannot hold them.

    Yields
    ------
    callable
        Takes the next block, an array (rows, d).

    Raises
    ------
    InputError
        If the name ends otherwise, the blocks do not add up to `shape`, the labels are not one a
        row, or the file cannot be written.
    """
    suffix = check_name(path, "features")
    little = np.dtype(dtype).newbyteorder("<")
    beside, names = _checked_labels(labels or {}, shape[0], numbered=suffix == ".safetensors")
    main = "reps" if suffix == ".npz" else "features"
    forms = {main: (shape, little)} | {key: (x.shape, x.dtype) for key, x in beside.items()}
    digests = {
        key: digest_of(form, size, names.get(key + NAMES_KEY, ""))
        for key, (size, form) in forms.items()
    }
    for key, array in beside.items():
        digests[key].update(array.tobytes())

    def known() -> dict[str, str]:
        """Return the metadata, with the digests so far."""
        found = {DIGEST_KEY + key: digest.hexdigest() for key, digest in digests.items()}
        return {**(metadata or {}), **names, **found}

    with written_aside(path) as file:
        if suffix == ".npz":
            with zipfile.ZipFile(file, "w") as archive:
                with archive.open(zipfile.ZipInfo("reps.npy"), "w", force_zip64=True) as member:
                    _npy_header(member, shape, little)
                    with _blocks_into(member, path, shape, little, digests[main]) as write:
                        yield write
                _add(archive, beside)
                if metadata:
                    _add(archive, {METADATA_KEY: _packed(known())})
            return
        if suffix == ".npy":
            _npy_header(file, shape, little)
        else:
            file.write(header_of(forms, known()))
        with _blocks_into(file, path, shape, little, digests[main]) as write:
            yield write
        if suffix == ".safetensors":
            for array in beside.values():
                file.write(array.tobytes())
            file.seek(0)
            file.write(header_of(forms, known()))  # as long as before, now with the digest


def _npy_header(stream: IO[bytes], shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    form = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, form)


@contextmanager
def _blocks_into(
    stream: IO[bytes],
    path: str | os.PathLike[str],
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    digest: Any,
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Take blocks of rows until there are as many as were announced; update their digest."""
    written = 0

    def write(block: NDArray[Any]) -> None:
        nonlocal written
        if block.shape[1:] != shape[1:]:
            raise InputError(
                f"{display(path)}: {shape[1]} features were announced and {block.shape[1:]} came."
            )
        written += len(block)
        content = np.ascontiguousarray(block, dtype=dtype).data
        stream.write(content)
        digest.update(content)

    yield write
    if written != shape[0]:
        raise InputError(f"{display(path)}: {shape[0]} rows were announced and {written} came.")


def _checked_labels(
    labels: Mapping[str, NDArray[Any]], n: int, *, numbered: bool
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Check labels that are to be written beside n rows.

    Where they must be `numbered`, texts become integers, and their names, in the order of these,
    come second, for the metadata.
    """
    arrays, names = {}, {}
    for key, values in labels.items():
        array = np.asarray(values)
        if array.shape != (n,) or array.dtype.kind not in "iuU":
            raise InputError(
                f"`{key}` must hold {n} integers or texts, one per row; "
                f"got {array.dtype} of shape {array.shape}."
            )
        if numbered and array.dtype.kind == "U":
            texts, codes = np.unique(array, return_inverse=True)
            array, names[key + NAMES_KEY] = codes.astype("<i4"), json.dumps(texts.tolist())
        elif numbered:
            array = array.astype("<i8")
        arrays[key] = array
    return arrays, names


# --- one run at a time in a folder ---------------------------------------------------------------

_LOCK = ".lock"


@contextmanager
def locked(folder: str | os.PathLike[str], *, use: str) -> Iterator[None]:
    """Keep other runs out of a folder; a run that is killed leaves no lock.

    Parameters
    ----------
    folder : path-like
        Made if it does not exist; removed in the end if it is empty.
    use : str
        What the folder is used for, as an error calls it.

    Raises
    ------
    InputError
        If another run uses the folder, or it cannot be written.
    """
    path = Path(folder) / _LOCK
    try:
        file = _take(path)
    except BlockingIOError as error:
        raise InputError(
            f"{use}: another run is at work there: wait for it, or write elsewhere."
        ) from error
    except OSError as error:
        raise InputError(
            f"{display(path.parent)}: cannot be written: {reason_of(error)}."
        ) from error
    try:
        yield
    finally:
        # The name first: whoever opened this file meanwhile sees that it is not the lock any more.
        with suppress(OSError):
            path.unlink()
        file.close()
        with suppress(OSError):
            path.parent.rmdir()


def clear(folder: Path) -> None:
    """Remove every file of a locked folder but the lock."""
    for path in folder.iterdir():
        if path.name != _LOCK:
            path.unlink(missing_ok=True)


def _take(path: Path) -> IO[bytes]:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # A pipe is refused without waiting.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
            file = os.fdopen(os.open(path, flags, 0o666), "ab")
        except FileNotFoundError:  # a run that ended removed the folder just now
            continue
        try:
            _lock(file)
            # A run that ended between `open` and the lock has removed this file.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(file: IO[bytes]) -> None:
    """Lock an open file for as long as it is open; raise BlockingIOError if it is locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError as error:
            raise BlockingIOError from error
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # A network file system without locks. What a run keeps is marked as its own all the same.
        return
