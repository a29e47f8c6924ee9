"""Which reader opens a file, by its ending."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from genbounds._text import display
from genbounds.files._content import Contents
from genbounds.files._errors import naming_damage
from genbounds.files._npy import npy_contents, npz_contents
from genbounds.files._opened import ending_of, opened
from genbounds.files._parquet import parquet_contents
from genbounds.files._pt import torch_contents
from genbounds.files._safetensors import safetensors_contents
from genbounds.validation import InputError

_READERS: dict[str, Callable[[IO[bytes], str], Contents]] = {
    ".npy": npy_contents,
    ".npz": npz_contents,
    ".safetensors": safetensors_contents,
    ".pt": torch_contents,
    ".pth": torch_contents,
    ".parquet": parquet_contents,
}
WITHOUT_HEADER = (".pt", ".pth", ".parquet")
"""What says nothing of its encoder, and its shape only when it is read."""
FORMATS = (".npy", ".npz", ".safetensors", ".pt", ".parquet")


@contextmanager
def contents_of_file(path: str | os.PathLike[str]) -> Iterator[Contents]:
    """Open one file; what is read from it must be read before this ends."""
    shown = display(path)
    ending = ending_of(path)
    with naming_damage(shown), opened(path) as file:
        if ending not in _READERS:
            kind = (
                f"`{display(ending, limit=20)}` files are" if ending else "a name without ending is"
            )
            raise InputError(
                f"{shown}: {kind} not read: "
                f"convert it to one of {', '.join(FORMATS)} (pickles are never loaded)."
            )
        yield _READERS[ending](file, shown)
