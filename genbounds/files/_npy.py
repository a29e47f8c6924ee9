"""NumPy's formats: one array in ``.npy``, several in ``.npz``."""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files._content import check_dtype
from genbounds.files._display import display
from genbounds.files._storage import CHUNK, check_bomb, fits_in_memory, gather, map_file
from genbounds.validation import InputError


def _header(
    stream: IO[bytes], available: int, shown: str
) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Read the header of a .npy stream and check it against the bytes that are there."""
    magic = stream.read(8)
    if not magic.startswith(b"\x93NUMPY"):
        if magic[:1] == b"\x80" and magic[1:2] in b"\x02\x03\x04\x05":
            raise InputError(
                f"{shown}: is a pickle, which is never loaded: "
                "save the array with numpy.save(path, array, allow_pickle=False)."
            )
        hint = ": it is a zip archive, call it .npz" if magic.startswith(b"PK") else ""
        raise InputError(
            f"{shown}: is not a NumPy file{hint or ': write it again with numpy.save'}."
        )
    readers = {
        b"\x01\x00": np.lib.format.read_array_header_1_0,
        b"\x02\x00": np.lib.format.read_array_header_2_0,
    }
    if magic[6:8] not in readers:  # later versions exist only for structured arrays
        raise InputError(
            f"{shown}: is of a NumPy format for structured arrays: save a plain float array."
        )
    try:
        shape, fortran, dtype = readers[magic[6:8]](stream)
    except Exception as error:  # whatever Python's tokeniser raises; the text quotes the header
        raise InputError(f"{shown}: has a damaged NumPy header: write it again.") from error
    check_dtype(shown, dtype)
    declared = math.prod(shape) * dtype.itemsize if min(shape, default=0) >= 0 else -1
    present = available - stream.tell()
    if declared != present:
        raise InputError(
            f"{shown}: is truncated or damaged, its header announces shape "
            f"{display(shape, limit=60)} ({display(declared, limit=40)} bytes) "
            f"and {present} bytes follow: write it again."
        )
    return dtype, shape, fortran


def read_npy(path: Path, shown: str) -> NDArray[Any]:
    """Map the array of a ``.npy`` file."""
    with path.open("rb") as file:
        dtype, shape, fortran = _header(file, os.fstat(file.fileno()).st_size, shown)
        return map_file(path, file.tell(), dtype=dtype, shape=shape, fortran=fortran)


def npz_members(
    path: Path, archive: zipfile.ZipFile, shown: str
) -> dict[str, Callable[[], NDArray[Any]]]:
    """Return what loads each array of an archive, by its name."""
    members: dict[str, Callable[[], NDArray[Any]]] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            raise InputError(
                f"{shown}: has two arrays called {display(key, limit=40)}: write it again."
            )

        def load(info: zipfile.ZipInfo = info, key: str = key) -> NDArray[Any]:
            return _member(path, archive, info, f"{shown} ({key})")

        members[key] = load
    return members


def _member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, shown: str
) -> NDArray[Any]:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{shown}: is packed in a way that NumPy does not use: "
            "write it again with numpy.savez or numpy.savez_compressed."
        )
    check_bomb(shown, info.file_size, info.compress_size)
    with archive.open(info) as stream:
        dtype, shape, fortran = _header(stream, info.file_size, shown)
        if info.compress_type != zipfile.ZIP_STORED or fits_in_memory(info.file_size):
            chunks = iter(lambda: stream.read(CHUNK), b"")
            return gather(chunks, dtype=dtype, shape=shape, fortran=fortran)
        start = stream.tell()
    # Large and stored as it is: map it where it lies. The member's own header precedes it.
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
        offset = info.header_offset + 30 + name + extra + start
    return map_file(path, offset, dtype=dtype, shape=shape, fortran=fortran)
