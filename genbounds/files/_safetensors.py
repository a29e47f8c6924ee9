"""The safetensors format: a JSON header, then the arrays as they are.

The format has no checksums. Files of ours hold a digest of every array in their metadata.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, Any

import numpy as np

from genbounds._scratch import chunks_of, gather
from genbounds._text import display
from genbounds.files._content import Contents, Stored, at, said_in
from genbounds.files._digest import check_of
from genbounds.validation import InputError

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
    origin, names = said_in(metadata, header)
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
        key: partial(_member, file, start, key, entry, shown, metadata)
        for key, entry in header.items()
    }
    return Contents(shown, size, members, origin=origin, names=names)


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


def _member(
    file: IO[bytes],
    start: int,
    key: str,
    entry: dict[str, Any],
    shown: str,
    metadata: Mapping[str, Any],
) -> Stored:
    dtype = _dtype(entry["dtype"])
    if dtype is None:
        raise InputError(
            f"{shown}: {display(key, limit=40)} has type {display(entry['dtype'], limit=40)}, "
            "which is not read: save it as F16, BF16, F32 or F64."
        )
    shape = tuple(entry["shape"])
    data = partial(at, file, start + entry["data_offsets"][0])
    if entry["dtype"] != "BF16":
        check = check_of(key, dtype, shape, metadata)
        return Stored(shown, shape, dtype, data=data, check=check)
    single = np.dtype("<f4")

    def widened() -> Any:
        # BF16 is the upper half of a float32.
        with data() as stream:
            halves = chunks_of(stream, math.prod(shape) * 2)
            wide = (np.frombuffer(chunk, "<u2").astype("<u4") << np.uint32(16) for chunk in halves)
            return gather((x.tobytes() for x in wide), dtype=single, shape=shape)

    return Stored(shown, shape, single, make=widened)


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
