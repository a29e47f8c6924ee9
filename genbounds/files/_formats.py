"""Formats of several arrays: ``.npz``, ``.safetensors``, PyTorch's and Parquet. None may run code.

Files of ours in ``.safetensors`` hold a digest of every array in their metadata: it has no
checksums.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import itertools
import json
import math
import os
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds import _process
from genbounds._text import display
from genbounds.files._content import (
    FEATURE_KEYS,
    LABEL_KEYS,
    METADATA_KEY,
    Contents,
    Stored,
    check_bomb,
    described,
    npy_contents,
)
from genbounds.validation import TORCH_FLOATS, InputError, how_to_install

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


# From these versions on, reading weights cannot run code: torch by CVE-2025-32434 and
# CVE-2026-24747, sentence-transformers by running files of the model's folder, timm by asking
# torch for everything in a pickle. The lower bounds in pyproject.toml are the same.
SAFE: dict[str, tuple[int, ...]] = {
    "torch": (2, 10),
    "sentence_transformers": (6, 0),
    "timm": (1, 0, 26),
    "open_clip": (3, 0),
}

_AS_NPY = ", or save the features as .npy"


def library(module: str, *, extra: str, needed_for: str, instead: str = "") -> Any:
    """Import an optional library, or say how to get it, or what to do `instead`.

    A version whose reading of weights can run code is refused.
    """
    name = module.partition(".")[0]
    try:
        found = importlib.import_module(module)
    except (OSError, RuntimeError) as error:  # compiled parts that another PyTorch was built for
        raise InputError(
            f"{needed_for} needs {name}, whose import fails ({display(error, limit=120)}): "
            "torchvision and torch must come from one build: install them together, from one index."
        ) from error
    except ImportError as error:
        raise InputError(
            f"{needed_for} needs {name}, which cannot be imported ({display(error, limit=120)}): "
            f"{how_to_install(extra)}{instead}."
        ) from error
    version = str(getattr(found, "__version__", ""))
    if name in SAFE and tuple(map(int, re.findall(r"\d+", version.partition("+")[0]))) < SAFE[name]:
        raise InputError(
            f"{needed_for} needs {name} {'.'.join(map(str, SAFE[name]))} or newer, and "
            f"{display(version, limit=40)} is installed, with which a file of weights can run "
            "code: upgrade it."
        )
    return found


# --- PyTorch --------------------------------------------------------------------------------------

_ROWS = 1 << 12
"""Rows that are widened at a time."""

_FOLDER = 0x10
"""Attribute of a folder in an archive: PyTorch would leave the numbers of such a one undefined."""


def torch_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read a tensor, or named tensors; a large file's stay on disk until they are loaded."""
    torch = library("torch", extra="torch", needed_for=f"{shown}: reading it", instead=_AS_NPY)
    _check_archive(file, shown)
    try:
        with _numpy_stand_ins(torch):
            content = _load(torch, file, size)
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of PyTorch's reader
        if "weights" not in str(error).lower():  # PyTorch's own message fills a screen
            raise _damaged(shown) from error
        raise InputError(
            f"{shown}: holds pickled Python objects, which are never loaded: "
            "save one tensor, or a dict of tensors, with torch.save."
        ) from error
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
    small = size <= _process.IN_MEMORY
    if small or not zipfile.is_zipfile(file):
        file.seek(0)
        content = io.BytesIO(file.read()) if small else file
        return torch.load(content, map_location="cpu", weights_only=True)
    # PyTorch maps a file by its name: a copy that nobody else knows, gone once it is closed.
    with tempfile.NamedTemporaryFile(dir=_process.scratch_folder(), suffix=".pt") as copy:
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
        fault = "holds a sparse, complex or quantised tensor: save it dense and real"
        raise InputError(f"{shown}: {fault}.")
    # A view can claim any shape on a few bytes.
    stored = value.untyped_storage().nbytes()
    if value.numel() * value.element_size() > stored:
        raise InputError(
            f"{shown}: its tensor of shape {tuple(value.shape)} repeats {stored} stored "
            "bytes: save tensor.contiguous()."
        )
    tensor, shape = value.detach(), tuple(value.shape)
    if not tensor.is_floating_point() or str(tensor.dtype) in TORCH_FLOATS:
        return _held(shown, np.asarray(tensor.numpy(force=True)))

    def widened() -> Iterator[bytes]:
        # NumPy has neither bfloat16 nor anything narrower.
        for block in tensor.split(_ROWS) if shape else [tensor]:
            yield block.float().numpy(force=True).tobytes()

    return Stored(shown, shape, np.dtype(np.float32), blocks=widened)


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
        kind, code = self.type, str(self.type.code)
        if not (isinstance(kind, _StoredType) and isinstance(self.content, bytes)):
            raise ValueError("an array without its numbers")
        if not (code[:1] in "fiub" and code[1:].isdigit()):
            raise ValueError(f"an array of {display(code, limit=40)}")
        dtype = np.dtype(f">{code}" if kind.order == ">" else code)
        order: Literal["F", "C"] = "F" if self.fortran else "C"
        return np.frombuffer(self.content, dtype=dtype).reshape(self.shape, order=order)


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


# --- Apache Parquet -------------------------------------------------------------------------------

_BATCH = 4096
"""Rows that are decoded at a time."""


def parquet_contents(file: IO[bytes], size: int, shown: str) -> Contents:
    """Read the schema of a table: a column of lists, or a numeric column a feature; labels."""
    needed_for = f"{shown}: reading it"
    parquet = library("pyarrow.parquet", extra="parquet", needed_for=needed_for, instead=_AS_NPY)
    table = parquet.ParquetFile(file, page_checksum_verification=True)
    names = list(table.schema_arrow.names)
    if len(set(names)) < len(names):
        raise InputError(f"{shown}: has two columns of one name: rename one of them.")
    rows = table.metadata.num_rows
    members: dict[str, Callable[[], Stored]] = {
        field.name: partial(_label_column, parquet, field, rows, file, size, shown)
        for field in table.schema_arrow
    }
    lists = [name for name in FEATURE_KEYS[:2] if name in names]
    for name in lists:
        members[name] = partial(_feature_columns, table, [name], size, shown)
    wide = [] if lists else [name for name in names if name not in LABEL_KEYS]
    if not lists:
        members["features"] = partial(_feature_columns, table, wide, size, shown)
    return Contents(shown, size, members, columns=wide)


def _feature_columns(table: Any, columns: list[str], size: int, shown: str) -> Stored:
    """Check that these columns hold numbers, or lists of them; read the first rows."""
    from pyarrow import types

    schema = table.schema_arrow
    as_lists = len(columns) == 1 and types.is_nested(schema.field(columns[0]).type)
    for name in columns:
        kind = schema.field(name).type
        if as_lists and hasattr(kind, "value_type"):
            kind = kind.value_type
        if not (types.is_floating(kind) or types.is_integer(kind)):
            raise InputError(
                f"{shown}: column {display(name, limit=40)} holds {display(kind, limit=40)}, "
                "not numbers: keep a column of lists `features`, or numeric columns only."
            )
    rows = table.metadata.num_rows
    batches = table.iter_batches(batch_size=_BATCH, columns=columns)
    blocks = (_block(batch, as_lists, shown) for batch in batches if batch.num_rows)
    first = next(blocks, None) if columns else None
    if first is None:
        raise InputError(f"{shown}: has {rows} rows and {len(columns)} columns: write it again.")
    shape = (rows, first.shape[1])
    check_bomb(shown, math.prod(shape) * first.itemsize, size)

    def chunks() -> Iterator[bytes]:
        yield first.tobytes()
        for block in blocks:
            if block.shape[1] != shape[1]:
                raise _ragged(shown)
            yield block.astype(first.dtype, copy=False).tobytes()

    return Stored(shown, shape, first.dtype, blocks=chunks)


def _block(batch: Any, as_lists: bool, shown: str) -> NDArray[Any]:
    """Return one batch of rows as an array (rows, d)."""
    if any(column.null_count for column in batch.columns):
        raise _missing(shown)
    if not as_lists:
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
    lists = batch.column(0)
    values = lists.flatten()
    if values.null_count:
        raise _missing(shown)
    # Row lengths are equal exactly if every list starts where equal lists would.
    d, rest = divmod(len(values), len(lists))
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if rest or (lengths != d).any():
        raise _ragged(shown)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(lists), d)


def _label_column(
    parquet: Any, field: Any, rows: int, file: IO[bytes], size: int, shown: str
) -> Stored:
    """Check that a column holds integers or texts."""
    from pyarrow import types

    name, kind = field.name, field.type
    texts = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_integer(kind) or types.is_string(texts) or types.is_large_string(texts)):
        raise InputError(
            f"{shown}: column {display(name, limit=40)} holds {display(kind, limit=40)}: "
            "labels are integers or texts, one per row."
        )

    def load() -> NDArray[Any]:
        # The same number or text may fill millions of rows of a small file.
        check_bomb(shown, rows * 8, size, "labels")
        # Kept as codes and a dictionary, however long the texts are.
        table = parquet.ParquetFile(
            file,
            read_dictionary=[] if types.is_integer(kind) else [name],
            page_checksum_verification=True,
        )
        column = table.read(columns=[name]).column(0)
        if column.null_count:
            raise _missing(shown)
        if types.is_integer(kind):
            return np.asarray(column.to_numpy())
        encoded = column.unify_dictionaries().combine_chunks()
        known = np.array(encoded.dictionary.to_pylist())
        check_bomb(shown, rows * known.itemsize, size, "labels")
        return np.asarray(known[encoded.indices.to_numpy()])

    dtype = np.dtype("i8" if types.is_integer(kind) else "U1")
    return Stored(shown, (rows,), dtype, make=load)


def _missing(shown: str) -> InputError:
    return InputError(f"{shown}: has missing values: drop those rows.")


def _ragged(shown: str) -> InputError:
    return InputError(
        f"{shown}: has lists of different lengths: every row needs the same number of features."
    )
