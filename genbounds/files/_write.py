"""Whole files or nothing: written aside, synced, then renamed."""

from __future__ import annotations

import io
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files._content import METADATA_KEY
from genbounds.files._display import display
from genbounds.files._errors import reason_of
from genbounds.files._safetensors import first_bytes
from genbounds.validation import Float, InputError


def atomic_write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file or nothing: aside in the same folder, synced, then renamed.

    Parameters
    ----------
    path : path-like
        Missing folders are made. An existing file is replaced.
    content : str or bytes
        Text is written as UTF-8.

    Raises
    ------
    InputError
        If the folder is read-only, the disk is full, or the name is not usable.
    """
    with _written_aside(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def _written_aside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file beside `path` that takes its place in the end, or vanishes on any error."""
    try:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".genbounds-{secrets.token_hex(8)}.part")
        try:
            with aside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(target)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{display(path)}: cannot be written: {reason_of(error)}.") from error


def check_statistics_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name under which statistics are not written."""
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"{display(path)}: statistics are written as .npz: end the name in .npz.")


def check_features_name(path: str | os.PathLike[str]) -> str:
    """Refuse a name under which features are not written; return its ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".safetensors", ".npy", ".npz"):
        raise InputError(
            f"{display(path)}: features are written as .safetensors, .npy or .npz: "
            "end the name in one of them."
        )
    return suffix


def write_statistics(
    path: str | os.PathLike[str],
    mean: Float,
    cov: Float,
    n: int | None = None,
    *,
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
    metadata : mapping of str to str, optional
        Where the features came from; other tools do not look at it.

    Raises
    ------
    InputError
        If the name ends otherwise or the file cannot be written.
    """
    check_statistics_name(path)
    arrays: dict[str, NDArray[Any]] = {"mu": np.asarray(mean), "sigma": np.asarray(cov)}
    if n is not None:
        arrays["n"] = np.asarray(n)
    if metadata:
        arrays[METADATA_KEY] = _packed(metadata)
    buffer = io.BytesIO()
    # Not np.savez: it stamps the members with the time, and equal content shall be equal bytes.
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), member.getvalue())
    atomic_write(path, buffer.getvalue())


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
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write a file of features block by block; whole or not at all.

    Parameters
    ----------
    path : path-like
        ``.safetensors`` (array ``features``), ``.npy``, or ``.npz`` (array ``reps``, as dgm-eval
        calls it). An existing file is replaced at the end.
    shape : tuple of int
        (n, d), of all blocks together.
    dtype : dtype
        Floating.
    metadata : mapping of str to str, optional
        Where the features came from; ``.npy`` cannot hold it.

    Yields
    ------
    callable
        Takes the next block, an array (rows, d).

    Raises
    ------
    InputError
        If the name ends otherwise, the blocks do not add up to `shape`, or the file cannot be
        written.
    """
    suffix = check_features_name(path)
    little = np.dtype(dtype).newbyteorder("<")
    written = 0
    with _written_aside(path) as file, ExitStack() as members:
        if suffix == ".npz":
            archive = members.enter_context(zipfile.ZipFile(file, "w"))
            if metadata:
                packed = io.BytesIO()
                np.lib.format.write_array(packed, _packed(metadata), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{METADATA_KEY}.npy"), packed.getvalue())
            member = archive.open(zipfile.ZipInfo("reps.npy"), "w", force_zip64=True)
            target: IO[bytes] = members.enter_context(member)
        else:
            target = file
        if suffix == ".safetensors":
            target.write(first_bytes(shape, little, metadata or {}))
        else:
            form = {"descr": little.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(target, form)

        def write(block: NDArray[Any]) -> None:
            nonlocal written
            written += len(block)
            target.write(np.ascontiguousarray(block, dtype=little).data)

        yield write
        if written != shape[0]:
            raise InputError(f"{display(path)}: {shape[0]} rows were announced and {written} came.")
