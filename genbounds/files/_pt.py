"""PyTorch's files, by its own reader of weights only: nothing is unpickled."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds import _scratch
from genbounds._text import display
from genbounds.files._content import Contents, Stored
from genbounds.files._libraries import AS_NPY, library
from genbounds.files._zip import check_bomb, open_zip
from genbounds.validation import TORCH_FLOATS, InputError

_ROWS = 1 << 12
"""Rows that are widened at a time."""

_FOLDER = 0x10
"""Attribute of a folder in an archive: PyTorch would leave the numbers of such a one undefined."""


def torch_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read a tensor, or named tensors; a large file's stay on disk until they are loaded."""
    torch = library("torch", extra="torch", needed_for=f"{shown}: reading it", instead=AS_NPY)
    _check_archive(file, shown)
    try:
        with _numpy_stand_ins(torch):
            content = _load(torch, file, size)
    except OSError as error:
        if error.errno is not None:  # of the disk, not of PyTorch's reader
            raise
        raise _damaged(shown) from error
    except Exception as error:
        if "weights" in str(error).lower():  # PyTorch's own message fills a screen
            raise InputError(
                f"{shown}: holds pickled Python objects, which are never loaded: "
                "save one tensor, or a dict of tensors, with torch.save."
            ) from error
        raise _damaged(shown) from error
    named = content if isinstance(content, dict) else {"features": content}
    members: dict[str, Callable[[], Stored]] = {
        str(key): partial(_stored, torch, value, shown) for key, value in named.items()
    }
    return Contents(shown, size, members)


def _check_archive(file: IO[bytes], shown: str) -> None:
    """Compare the checksums, which PyTorch does not; older files of its are no archives."""
    if not zipfile.is_zipfile(file):
        return
    archive = open_zip(file)
    for member in archive.filelist:
        check_bomb(shown, member.file_size, member.compress_size)
    if archive.testzip() is not None:
        raise InputError(
            f"{shown}: its checksums do not agree: it is damaged, or was saved without them "
            "(set_crc32_options): write it again with torch.save."
        )
    if any(member.external_attr & _FOLDER for member in archive.filelist):
        raise _damaged(shown)


def _load(torch: Any, file: IO[bytes], size: int) -> Any:
    small = size <= _scratch.IN_MEMORY
    if small or not zipfile.is_zipfile(file):
        file.seek(0)
        content = io.BytesIO(file.read()) if small else file
        return torch.load(content, map_location="cpu", weights_only=True)
    # PyTorch maps a file by its name: a copy that nobody else knows, gone once it is closed.
    with tempfile.NamedTemporaryFile(dir=_scratch.scratch_folder(), suffix=".pt") as copy:
        file.seek(0)
        shutil.copyfileobj(file, copy)
        copy.flush()
        return torch.load(copy.name, map_location="cpu", weights_only=True, mmap=True)


def _damaged(shown: str) -> InputError:
    return InputError(
        f"{shown}: is damaged or truncated, or not PyTorch's: write it again with torch.save."
    )


def _stored(torch: Any, value: Any, shown: str) -> Stored:
    """Check that a value is a plain tensor or array, before anything of it is copied."""
    if isinstance(value, StoredArray):
        return _held(shown, value.array())
    if not isinstance(value, torch.Tensor):
        raise InputError(
            f"{shown}: holds a {type(value).__name__} where a tensor is needed: "
            "save one tensor, or a dict of tensors, with torch.save."
        )
    if value.layout != torch.strided or value.is_complex() or value.is_quantized:
        raise InputError(
            f"{shown}: holds a sparse, complex or quantised tensor: save it dense and real."
        )
    # A view can claim any shape on a few bytes.
    stored = value.untyped_storage().nbytes()
    if value.numel() * value.element_size() > stored:
        raise InputError(
            f"{shown}: its tensor of shape {tuple(value.shape)} repeats {stored} stored "
            "bytes: save tensor.contiguous()."
        )
    tensor, shape, single = value.detach(), tuple(value.shape), np.dtype(np.float32)
    if not tensor.is_floating_point() or str(tensor.dtype) in TORCH_FLOATS:
        return _held(shown, np.asarray(tensor.numpy(force=True)))

    def widened() -> Iterator[bytes]:
        # NumPy has neither bfloat16 nor anything narrower.
        for block in tensor.split(_ROWS) if shape else [tensor]:
            yield block.float().numpy(force=True).tobytes()

    return Stored(
        shown, shape, single, make=lambda: _scratch.gather(widened(), dtype=single, shape=shape)
    )


def _held(shown: str, array: NDArray[Any]) -> Stored:
    return Stored(shown, array.shape, array.dtype, make=lambda: array)


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


@contextmanager
def _numpy_stand_ins(torch: Any) -> Iterator[None]:
    """Let PyTorch's own safe reader take NumPy arrays for what they are: bytes and a shape.

    It would read them with NumPy's own constructors if told so; those trust what they are given.
    """

    def reconstruct(*_: object) -> StoredArray:
        return StoredArray()

    names: list[tuple[Any, str]] = [
        (reconstruct, "numpy._core.multiarray._reconstruct"),
        (reconstruct, "numpy.core.multiarray._reconstruct"),
        (StoredArray, "numpy.ndarray"),
        (_StoredType, "numpy.dtype"),
    ]
    # Bytes are pickled as text with an encoding. PyTorch lets the file choose any of Python's; one
    # of them, punycode, takes quadratic time. What is allowed there cannot be taken away in public.
    allowed = torch._weights_only_unpickler._get_allowed_globals()
    any_encoding = allowed["_codecs.encode"]
    allowed["_codecs.encode"] = _latin1
    try:
        with torch.serialization.safe_globals(names):
            yield
    finally:
        allowed["_codecs.encode"] = any_encoding


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":  # the one that pickle uses
        raise ValueError("bytes in an encoding that is not pickle's")
    return text.encode("latin1")
