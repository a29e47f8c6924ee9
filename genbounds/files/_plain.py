"""Formats whose arrays lie in the file as they are: ``.npz``, and ``.safetensors``.

Files of ours in the latter hold a digest of every array in their metadata: it has no checksums.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import IO, Any

import numpy as np

from genbounds._text import display
from genbounds.files._content import (
    METADATA_KEY,
    Contents,
    Stored,
    check_bomb,
    described,
    npy_contents,
)
from genbounds.validation import InputError

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
    again = partial(archive.open, info)
    with archive.open(info) as file:
        return npy_contents(file, info.file_size, shown, again).arrays["features"]()


# --- safetensors ----------------------------------------------------------------------------------

TYPES = {
    "BF16": "<u2", "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip
"""NumPy's types; of BF16, which it lacks, that of the stored bits."""
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
        code = TYPES.get(entry["dtype"])
        if code is not None and last - first != math.prod(shape) * np.dtype(code).itemsize:
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

    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise ValueError("the header is longer than the file")
    header = json.loads(file.read(length), object_pairs_hook=once)
    if not isinstance(header, dict):
        raise ValueError("the header is not a JSON object")
    for name, entry in header.items():
        match entry:
            case {"dtype": str(), "shape": list(), "data_offsets": [_, _]}:
                continue
            case {} if name == _METADATA:
                continue
        raise ValueError("the header is not of this format")
    return header, 8 + length


def _member(file: IO[bytes], start: int, key: str, entry: dict[str, Any], shown: str) -> Stored:
    if entry["dtype"] not in TYPES:
        raise InputError(
            f"{shown}: {display(key, limit=40)} has type {display(entry['dtype'], limit=40)}, "
            "which is not read: save it as F16, BF16, F32 or F64."
        )
    shape, dtype = tuple(entry["shape"]), np.dtype(TYPES[entry["dtype"]])
    place = start + entry["data_offsets"][0]
    stored = Stored(shown, shape, dtype, stream=lambda: nullcontext(file), place=place)
    if entry["dtype"] != "BF16":
        return stored

    def widened() -> Iterator[bytes]:
        # BF16 is the upper half of a float32.
        for chunk in stored.pieces():
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
