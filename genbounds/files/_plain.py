"""Formats whose arrays lie in the file as they are, after a header: NumPy's, and safetensors.

``.npy`` holds one array, ``.npz`` and ``.safetensors`` several. Files of ours in the last hold a
digest of every array in their metadata: the format has no checksums.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any

import numpy as np

from genbounds._text import display
from genbounds.files._content import METADATA_KEY, Contents, Stored, at, check_bomb, described
from genbounds.validation import InputError

# A header of NumPy's own is some hundred bytes; its reader refuses more than 10,000 characters.
_LONGEST_NPY_HEADER = 1 << 16

_MOST_CHECKED = 1000
"""Arrays, beyond which a file is of another program."""

_ENTRY = b"PK\x01\x02"

KNOWN_PACKS = {
    # ADM's ImageNet references: statistics "over the whole dataset" (evaluations/README.md of
    # openai/guided-diffusion), the training set of ILSVRC 2012. Digests: Git LFS pointers of
    # ruizegao/efficient-dit (VIRTUAL_imagenet256_labeled.npz, the same as huggingface.co's
    # xiangzai/reference and WindATree/diffusion-data) and of the last (…512_labeled.npz, the same
    # as Martinser/eval_model).
    "b32732719497e42660a9affb4a966068cba0855ac449b82015e34ec376d20758": (2_037_122_530, 1_281_167),
    "6bde3fff169a9d05d6ff53e9a661177d3765d7b3a83e8b54b71a99b65a166ef8": (857_466_338, 1_281_167),
}
"""Published references of statistics that do not say how many images are behind them: by the
SHA-256 of the file its size in bytes, and the n of its statistics."""


# --- NumPy ----------------------------------------------------------------------------------------


def npy_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read the header of a ``.npy`` file."""
    dtype, shape, fortran = _npy_header(file, size, shown)
    data = partial(at, file, file.tell())
    stored = Stored(shown, shape, dtype, fortran=fortran, data=data)
    return Contents(shown, size, {"features": lambda: stored})


def open_zip(file: str | os.PathLike[str] | IO[bytes]) -> zipfile.ZipFile:
    """Open an archive; refuse one in whose directory a member is the comment of another.

    One flipped bit in the length of a comment does that, and Python goes on without the member.

    Raises
    ------
    zipfile.BadZipFile
        Also for what Python refuses by itself.
    """
    archive = zipfile.ZipFile(file)
    for info in archive.filelist:
        if _ENTRY in info.comment:
            archive.close()
            raise zipfile.BadZipFile("its directory hides a member")
    return archive


def npz_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read the list of arrays in a ``.npz`` file, and its metadata."""
    archive = open_zip(file)
    members: dict[str, Callable[[], Stored]] = {}
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
        members[key] = partial(_npz_member, archive, info, called)
    metadata: Any = {}
    if METADATA_KEY in members:
        # Another program's array of that name is none of ours.
        with suppress(InputError, ValueError, RecursionError):
            metadata = json.loads(members[METADATA_KEY]().load().tobytes().decode())
    contents = Contents(shown, size, members, known_n=partial(_known_n, file, size))
    return described(contents, metadata if isinstance(metadata, dict) else {})


def _known_n(file: IO[bytes], size: int) -> int | None:
    """Return how many images are behind the statistics in a known file; None of any other.

    Only a file of a known size is read for it.
    """
    if size not in {known for known, _ in KNOWN_PACKS.values()}:
        return None
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    return KNOWN_PACKS[digest][1] if digest in KNOWN_PACKS else None


def _npz_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, shown: str) -> Stored:
    """Read the header of one array."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{shown}: is packed in a way that NumPy does not use: "
            "write it again with numpy.savez or numpy.savez_compressed."
        )
    check_bomb(shown, info.file_size, info.compress_size)
    with archive.open(info) as stream:
        dtype, shape, fortran = _npy_header(stream, info.file_size, shown)
        start = stream.tell()

    @contextmanager
    def data() -> Iterator[IO[bytes]]:
        with archive.open(info) as stream:
            stream.read(start)  # a seek would leave out the checksum
            yield stream

    return Stored(shown, shape, dtype, fortran=fortran, data=data)


def _npy_header(
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
        zipped = magic.startswith(b"PK")
        advice = "it is a zip archive, call it .npz" if zipped else "write it again with numpy.save"
        raise InputError(f"{shown}: is not a NumPy file: {advice}.")
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
        text = stream.read(min(int.from_bytes(length, "little"), _LONGEST_NPY_HEADER))
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


# --- safetensors ----------------------------------------------------------------------------------

TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
_METADATA = "__metadata__"
MOST_ARRAYS = 10_000
"""More are no file of features; each of them costs a look."""

_LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit."""


def safetensors_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read and check the header of a file.

    The format's own library maps the file, which is not safe while another program writes to it.
    """
    header, start = _header(file, size)
    metadata = header.pop(_METADATA, {})
    end = 0
    for entry in sorted(header.values(), key=lambda entry: entry["data_offsets"]):
        shape, (first, last) = entry["shape"], entry["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, first, last)):
            raise ValueError("a size that is not a whole number")
        if first != end or last < first:
            raise ValueError("arrays that overlap, or a hole between them")
        dtype = _dtype(entry["dtype"])
        if dtype is not None and last - first != math.prod(shape) * dtype.itemsize:
            raise ValueError("an array of another size than its shape")
        end = last
    if end != size - start:
        raise ValueError(f"{end} bytes were announced and {size - start} are there")
    members: dict[str, Callable[[], Stored]] = {
        key: partial(_member, file, start, key, entry, shown) for key, entry in header.items()
    }
    return described(Contents(shown, size, members), metadata)


def _header(file: IO[bytes], size: int) -> tuple[dict[str, Any], int]:
    """Return the header and where the data start."""
    objects = itertools.count()

    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        # Those of arrays are read before the whole header is: here nothing has been spent yet.
        if next(objects) > MOST_ARRAYS:
            raise ValueError(f"more than {MOST_ARRAYS:,} arrays, where features are one")
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name that occurs twice")
        return found

    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise ValueError("the header is longer than the file")
    header = json.loads(file.read(length), object_pairs_hook=once)
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    for name, entry in header.items():
        if not isinstance(entry, dict) or not (
            name == _METADATA
            or (
                isinstance(entry.get("dtype"), str)
                and isinstance(entry.get("shape"), list)
                and isinstance(entry.get("data_offsets"), list)
                and len(entry["data_offsets"]) == 2
            )
        ):
            raise ValueError("the header is not of this format")
    return header, 8 + length


def _dtype(name: str) -> np.dtype[Any] | None:
    """Return NumPy's type, that of the stored bits for BF16; None if the type is not read."""
    code = "<u2" if name == "BF16" else TYPES.get(name)
    return None if code is None else np.dtype(code)


def _member(file: IO[bytes], start: int, key: str, entry: dict[str, Any], shown: str) -> Stored:
    dtype = _dtype(entry["dtype"])
    if dtype is None:
        raise InputError(
            f"{shown}: {display(key, limit=40)} has type {display(entry['dtype'], limit=40)}, "
            "which is not read: save it as F16, BF16, F32 or F64."
        )
    shape = tuple(entry["shape"])
    data = partial(at, file, start + entry["data_offsets"][0])
    stored = Stored(shown, shape, dtype, data=data)
    if entry["dtype"] != "BF16":
        return stored

    def widened() -> Iterator[bytes]:
        # BF16 is the upper half of a float32.
        for chunk in stored.chunks():
            yield (np.frombuffer(chunk, dtype).astype("<u4") << np.uint32(16)).tobytes()

    return Stored(shown, shape, np.dtype("<f4"), blocks=widened)


def header_of(
    arrays: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]], metadata: Mapping[str, str]
) -> bytes:
    """Return all that precedes the numbers of these arrays, in this order.

    Parameters
    ----------
    arrays : mapping of str to (shape, dtype)
    metadata : mapping of str to str
    """
    names = {code: name for name, code in TYPES.items()}
    header: dict[str, Any] = {_METADATA: dict(sorted(metadata.items()))}
    end = 0
    for key, (shape, dtype) in arrays.items():
        first, end = end, end + math.prod(shape) * dtype.itemsize
        header[key] = {"dtype": names[dtype.str], "shape": shape, "data_offsets": [first, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data then lie aligned
    if len(text) > _LONGEST_HEADER:
        raise InputError("the labels are too many and too long for .safetensors: write .npz.")
    return struct.pack("<Q", len(text)) + text
