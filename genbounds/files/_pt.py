"""PyTorch's files, by its own reader of weights only: nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds.files._content import check_dtype
from genbounds.files._display import display
from genbounds.files._errors import optional_library
from genbounds.validation import InputError, as_numpy


def torch_tensors(
    path: Path, shown: str
) -> Callable[[], NDArray[Any]] | dict[str, Callable[[], NDArray[Any]]]:
    """Return what loads the tensor, or each named tensor, of a file."""
    torch = optional_library("torch", "torch", "PyTorch", shown)
    try:
        with _numpy_stand_ins(torch):
            content = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path) or None
            )
    except Exception as error:
        if "weights" in str(error).lower():  # PyTorch's own message fills a screen
            raise InputError(
                f"{shown}: holds pickled Python objects, which are never loaded: "
                "save one tensor, or a dict of tensors, with torch.save."
            ) from error
        raise InputError(
            f"{shown}: is damaged or truncated, or not PyTorch's: write it again with torch.save."
        ) from error

    def convert(tensor: Any) -> NDArray[Any]:
        if isinstance(tensor, StoredArray):
            array = tensor.array()
            check_dtype(shown, array.dtype)
            return array
        if not isinstance(tensor, torch.Tensor):
            raise InputError(
                f"{shown}: holds a {type(tensor).__name__} where a tensor is needed: "
                "save one tensor, or a dict of tensors, with torch.save."
            )
        if tensor.layout != torch.strided or tensor.is_complex() or tensor.is_quantized:
            raise InputError(
                f"{shown}: holds a sparse, complex or quantised tensor: save it dense and real."
            )
        # A view can claim any shape on a few bytes.
        stored = tensor.untyped_storage().nbytes()
        if tensor.numel() * tensor.element_size() > stored:
            raise InputError(
                f"{shown}: its tensor of shape {tuple(tensor.shape)} repeats {stored} stored "
                "bytes: save tensor.contiguous()."
            )
        array = as_numpy("tensor", tensor)
        check_dtype(shown, array.dtype)
        return array

    if isinstance(content, dict):
        return {str(key): (lambda value=value: convert(value)) for key, value in content.items()}  # type: ignore[misc]
    return lambda: convert(content)


class _StoredType:
    """What a pickled NumPy dtype is read into: its name and byte order, nothing that NumPy made."""

    def __init__(self, code: str, *_: object) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]


class StoredArray:
    """What a pickled NumPy array is read into: torch-fidelity caches its statistics as such."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.type, self.fortran, self.content = state

    def array(self) -> NDArray[Any]:
        """Build the array, of plain numbers or not at all."""
        try:
            if not (isinstance(self.type, _StoredType) and isinstance(self.content, bytes)):
                raise ValueError("an array without its numbers")
            code = str(self.type.code)
            if not (code[:1] in "fiub" and code[1:].isdigit()):
                raise ValueError(f"an array of {display(code, limit=40)}")
            dtype = np.dtype(code)
            if self.type.order == ">":
                dtype = dtype.newbyteorder(">")
            order: Literal["F", "C"] = "F" if self.fortran else "C"
            return np.frombuffer(self.content, dtype=dtype).reshape(self.shape, order=order)
        except (AttributeError, TypeError) as error:  # made of nothing; a type that is none
            raise ValueError(display(error, limit=80)) from error


def _numpy_stand_ins(torch: Any) -> AbstractContextManager[object]:
    """Let PyTorch's own safe reader take NumPy arrays for what they are: bytes and a shape.

    It would read them with NumPy's own constructors if told so; those trust what they are given.
    """

    def reconstruct(*_: object) -> StoredArray:
        return StoredArray()

    def as_bytes(text: str, encoding: str) -> bytes:
        return text.encode(encoding)

    names: list[tuple[Any, str]] = [
        (reconstruct, "numpy._core.multiarray._reconstruct"),
        (reconstruct, "numpy.core.multiarray._reconstruct"),
        (StoredArray, "numpy.ndarray"),
        (_StoredType, "numpy.dtype"),
        (as_bytes, "_codecs.encode"),
    ]
    if not hasattr(torch.serialization, "safe_globals"):  # PyTorch 2.4: such files are refused
        return nullcontext()
    manager: AbstractContextManager[object] = torch.serialization.safe_globals(names)
    return manager
