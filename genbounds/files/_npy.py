"""NumPy's formats: one array in ``.npy``, several in ``.npz``."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any

import numpy as np

from genbounds._text import display
from genbounds.files._content import METADATA_KEY, Contents, Stored, at, said_in
from genbounds.files._digest import check_of
from genbounds.files._zip import check_bomb, open_zip
from genbounds.files.packs import known_n
from genbounds.validation import InputError

# A header of NumPy's own is some hundred bytes; its reader refuses more than 10,000 characters.
_LONGEST_HEADER = 1 << 16

_MOST_CHECKED = 1000
"""Arrays, beyond which a file is of another program."""


def npy_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read the header of a ``.npy`` file."""
    dtype, shape, fortran = _header(file, size, shown)
    data = partial(at, file, file.tell())
    stored = Stored(shown, shape, dtype, fortran=fortran, data=data)
    return Contents(shown, size, {"features": lambda: stored})


def npz_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read the list of arrays in a ``.npz`` file, and its metadata."""
    archive = open_zip(file)
    members: dict[str, Callable[[], Stored]] = {}
    metadata: dict[str, Any] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            raise InputError(
                f"{shown}: has two arrays called {display(key, limit=40)}: write it again."
            )
        if len(archive.filelist) <= _MOST_CHECKED:
            # Each name stands in the file twice; where they differ, an array would go unseen.
            archive.open(info).close()
        called = f"{shown} ({display(key, limit=40)})"
        members[key] = partial(_member, archive, info, called, key, metadata)
    if METADATA_KEY in members:
        # Another program's array of that name is none of ours.
        with suppress(InputError, ValueError, RecursionError):
            found = json.loads(members[METADATA_KEY]().load().tobytes().decode())
            metadata |= found if isinstance(found, dict) else {}
    origin, names = said_in(metadata, members)
    known = partial(known_n, file, size)
    return Contents(shown, size, members, origin=origin, names=names, known_n=known)


def _member(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    shown: str,
    key: str,
    metadata: Mapping[str, Any],
) -> Stored:
    """Read the header of one array."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{shown}: is packed in a way that NumPy does not use: "
            "write it again with numpy.savez or numpy.savez_compressed."
        )
    check_bomb(shown, info.file_size, info.compress_size)
    with archive.open(info) as stream:
        dtype, shape, fortran = _header(stream, info.file_size, shown)
        start = stream.tell()

    @contextmanager
    def data() -> Iterator[IO[bytes]]:
        with archive.open(info) as stream:
            stream.read(start)  # a seek would leave out the checksum
            yield stream

    check = check_of(key, dtype, shape, metadata)
    return Stored(shown, shape, dtype, fortran=fortran, data=data, check=check)


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
        b"\x01\x00": (2, np.lib.format.read_array_header_1_0),
        b"\x02\x00": (4, np.lib.format.read_array_header_2_0),
    }
    if magic[6:8] not in readers:  # later versions exist only for structured arrays
        raise InputError(
            f"{shown}: is of a NumPy format for structured arrays: save a plain float array."
        )
    try:
        width, reader = readers[magic[6:8]]
        length = stream.read(width)
        # A forged header announces 4 GiB, which NumPy would read before it refuses them.
        text = stream.read(min(int.from_bytes(length, "little"), _LONGEST_HEADER))
        shape, fortran, dtype = reader(io.BytesIO(length + text))
        if any(isinstance(side, bool) for side in shape):  # an integer, by Python's reckoning
            raise ValueError("truth values for a shape")
    except Exception as error:  # whatever Python's tokeniser raises; the text quotes the header
        raise InputError(f"{shown}: has a damaged NumPy header: write it again.") from error
    if dtype.hasobject:
        raise InputError(
            f"{shown}: holds pickled Python objects, which are never loaded: "
            "save features as a plain float array of shape (n, d), labels as integers or texts."
        )
    declared = math.prod(shape) * dtype.itemsize if min(shape, default=0) >= 0 else -1
    present = available - stream.tell()
    if declared != present:
        raise InputError(
            f"{shown}: is truncated or damaged, its header announces shape "
            f"{display(shape, limit=60)} ({display(declared, limit=40)} bytes) "
            f"and {present} bytes follow: write it again."
        )
    return dtype, shape, fortran
