"""The safetensors format: a JSON header, then the arrays as they are."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.files._display import display
from genbounds.files._errors import damaged
from genbounds.files._storage import CHUNK, gather, map_file
from genbounds.validation import InputError

TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip


def safetensors_arrays(path: Path, shown: str) -> dict[str, Callable[[], NDArray[Any]]]:
    """Return what loads each array of a file, by its name."""
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as checked:  # offsets, sizes, overlap
            keys = list(checked.keys())
    except safetensors.SafetensorError as error:
        raise damaged(shown, error) from error
    header, length = read_header(path)

    def load(key: str) -> NDArray[Any]:
        entry = header[key]
        offset = 8 + length + entry["data_offsets"][0]
        shape = tuple(entry["shape"])
        if entry["dtype"] == "BF16":  # the upper half of a float32; NumPy has no such type
            halves = map_file(path, offset, dtype=np.dtype("<u2"), shape=(math.prod(shape),))
            step = CHUNK // 2
            widened = (
                (halves[first : first + step].astype("<u4") << np.uint32(16)).tobytes()
                for first in range(0, halves.size, step)
            )
            return gather(widened, dtype=np.dtype("<f4"), shape=shape)
        if entry["dtype"] not in TYPES:
            raise InputError(
                f"{shown}: {display(key, limit=40)} has type {display(entry['dtype'], limit=40)}, "
                "which is not read: save it as F16, BF16, F32 or F64."
            )
        dtype = np.dtype(TYPES[entry["dtype"]])
        return map_file(path, offset, dtype=dtype, shape=shape)

    return {key: (lambda key=key: load(key)) for key in keys}  # type: ignore[misc]


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a checked file and its length in bytes."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), length


def first_bytes(shape: tuple[int, int], dtype: np.dtype[Any], metadata: Mapping[str, str]) -> bytes:
    """Return all that precedes the numbers of one array called ``features``."""
    names = {code: name for name, code in TYPES.items()}
    size = math.prod(shape) * dtype.itemsize
    header = {
        "__metadata__": dict(sorted(metadata.items())),
        "features": {"dtype": names[dtype.str], "shape": shape, "data_offsets": [0, size]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data then lies aligned
    return struct.pack("<Q", len(text)) + text
