"""Reading feature, posterior and statistics files; writing results.

Large arrays are mapped from disk, or unpacked block by block into an unnamed scratch file, so
that memory does not grow with the number of rows. Nothing is ever unpickled. Every failure is one
`InputError` that names the file, says what is wrong and what to do.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.origins import marked
from genbounds.validation import Float, InputError, as_numpy

FORMATS = (".npy", ".npz", ".safetensors", ".pt", ".parquet")
FEATURE_KEYS = ("features", "reps", "feats", "arr_0")  # dgm-eval: reps; clean-fid: feats
STATISTICS_KEYS = ("mu", "sigma")
METADATA_KEY = "metadata"

# Beyond this an unpacked array goes to a scratch file instead of memory.
_IN_MEMORY = 1 << 26
# Real features shrink 1- to 20-fold. Whatever claims to unpack to more than `_BOMB_BYTES` from
# less than 1/`_BOMB_RATIO` of that is refused unread.
_BOMB_RATIO = 200
_BOMB_BYTES = 1 << 28
_CHUNK = 1 << 20

# Not printable by Unicode's category, yet fit to show: no-break spaces, and what joins emoji.
_HARMLESS = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{ZERO WIDTH JOINER}"

_SAFETENSORS_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip

# What the readers below are known to raise on a damaged file.
_DAMAGE: tuple[type[Exception], ...] = (
    ValueError,  # includes JSON and Unicode errors, and pyarrow's ArrowInvalid
    OSError,
    EOFError,
    KeyError,
    NotImplementedError,  # an unknown zip compression
    OverflowError,
    RuntimeError,  # an encrypted zip member; PyTorch's reader
    MemoryError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class Statistics(NamedTuple):
    """First two moments of a set of features.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)
        Divisor n - 1.
    n : int or None
        Number of samples behind them; None if the file does not say.
    """

    mean: Float
    cov: Float
    n: int | None


def read(path: str | os.PathLike[str]) -> NDArray[Any] | Statistics:
    """Read a file of features (or posteriors), or of statistics: whichever it holds.

    Parameters
    ----------
    path : path-like
        ``.npy``; ``.npz``, ``.safetensors`` or ``.pt`` with an array called ``features``, ``reps``,
        ``feats`` or ``arr_0``, or with the statistics ``mu``, ``sigma`` and, where known, ``n``; a
        ``.pt`` that is one tensor; ``.parquet`` with a column of lists ``features`` or ``reps``, or
        with numeric columns only, one a feature.

    Returns
    -------
    ndarray of shape (n, d) or Statistics
        An array is read-only and may be mapped from disk; its dtype is the file's. Its values
        (NaN, infinity, sums of posteriors) are checked by whoever computes with them. Where the
        file says which encoder made it, so does the array (`FeatureArray`): estimators refuse two
        that disagree.

    Raises
    ------
    InputError
        If the file is missing, unreadable, damaged, pickled, of another format, or holds
        something else.
    """
    content = _read(path)
    return content if isinstance(content, Statistics) else marked(content, read_metadata(path))


def _read(path: str | os.PathLike[str]) -> NDArray[Any] | Statistics:
    shown = display(path)
    suffix = _check_file(path, shown)
    with _damage(shown):
        if suffix == ".npy":
            return _features(shown, _read_npy(Path(path), shown))
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return _from_named(shown, _npz_members(Path(path), archive, shown))
        if suffix == ".safetensors":
            return _from_named(shown, _safetensors(Path(path), shown))
        if suffix == ".pt":
            content = _torch(Path(path), shown)
            if isinstance(content, dict):
                return _from_named(shown, content)
            return _features(shown, content())
        return _features(shown, _parquet(Path(path), shown))


def read_features(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an (n, d) array of features or posteriors. See `read` for the formats.

    Raises
    ------
    InputError
        As `read`; and if the file holds statistics.
    """
    content = read(path)
    if isinstance(content, Statistics):
        raise InputError(
            f"{display(path)}: holds statistics (mu, sigma) where features are needed: "
            "pass the file of the features themselves."
        )
    return content


def read_statistics(path: str | os.PathLike[str]) -> Statistics:
    """Read mean, covariance and, where known, n. See `read` for the formats.

    Raises
    ------
    InputError
        As `read`; and if the file holds features.
    """
    content = read(path)
    if not isinstance(content, Statistics):
        raise InputError(
            f"{display(path)}: holds features of shape {content.shape}, not statistics: "
            "it needs the arrays mu (d,) and sigma (d, d), and n where known."
        )
    return content


def read_images(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Read an array of images from ``.npy``, or from ``.npz`` under a name that features have.

    Samplers leave such files: guided diffusion, for one, an ``arr_0`` of 50,000 images.

    Returns
    -------
    ndarray of shape (n, h, w), (n, h, w, 1) or (n, h, w, 3)
        uint8, read-only; it may be mapped from disk.

    Raises
    ------
    InputError
        As `read`; and if the array has another shape or type.
    """
    shown = display(path)
    suffix = _check_file(path, shown)
    array: NDArray[Any] | None = None
    with _damage(shown):
        if suffix == ".npy":
            array = _read_npy(Path(path), shown)
        elif suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = _npz_members(Path(path), archive, shown)
                found = [key for key in FEATURE_KEYS if key in members]
                array = members[found[0]]() if len(found) == 1 else None
    if (
        array is None
        or array.dtype != np.uint8
        or not (array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3)))
        or array.size == 0
    ):
        what = "no array" if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(
            f"{shown}: holds {what} where images are needed: uint8 of shape (n, h, w), "
            "(n, h, w, 1) or (n, h, w, 3), in .npy or .npz (arr_0)."
        )
    array.flags.writeable = False
    return array


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read what a file says about where its features came from.

    Returns
    -------
    dict of str to str
        As `open_features_writer` and `write_statistics` stored it; empty where there is none.

    Raises
    ------
    InputError
        If the file is missing, unreadable, damaged or of another format.
    """
    shown = display(path)
    suffix = _check_file(path, shown)
    content: object = {}
    with _damage(shown):
        if suffix == ".safetensors":
            _safetensors(Path(path), shown)
            content = _safetensors_header(Path(path))[0].get("__metadata__", {})
        elif suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                members = _npz_members(Path(path), archive, shown)
                if METADATA_KEY in members:
                    # Somebody else's member of that name is none of ours.
                    with suppress(InputError, ValueError):
                        content = json.loads(members[METADATA_KEY]().tobytes().decode())
    mapping = content.items() if isinstance(content, dict) else ()
    return {key: value for key, value in mapping if isinstance(value, str)}


def check_statistics_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name under which statistics are not written."""
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"{display(path)}: statistics are written as .npz: end the name in .npz.")


def check_features_name(path: str | os.PathLike[str]) -> str:
    """Refuse a name under which features are not written; return its ending."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".safetensors", ".npy", ".npz"):
        raise InputError(
            f"{display(path)}: features are written as .safetensors, .npy or .npz: "
            "end the name in one of them."
        )
    return suffix


def write_statistics(
    path: str | os.PathLike[str],
    mean: Float,
    cov: Float,
    n: int | None = None,
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write ``mu``, ``sigma`` and, where known, ``n`` as pytorch-fid reads them (``.npz``).

    Parameters
    ----------
    path : path-like
        A name that ends in ``.npz``. An existing file is replaced in one step.
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)
    n : int or None
    metadata : mapping of str to str, optional
        Where the features came from; other tools do not look at it.

    Raises
    ------
    InputError
        If the name ends otherwise or the file cannot be written.
    """
    check_statistics_name(path)
    arrays: dict[str, NDArray[Any]] = {"mu": np.asarray(mean), "sigma": np.asarray(cov)}
    if n is not None:
        arrays["n"] = np.asarray(n)
    if metadata:
        arrays[METADATA_KEY] = _packed(metadata)
    buffer = io.BytesIO()
    # Not np.savez: it stamps the members with the time, and equal content shall be equal bytes.
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), member.getvalue())
    atomic_write(path, buffer.getvalue())


def _packed(metadata: Mapping[str, str]) -> NDArray[np.uint8]:
    """Return metadata as bytes in an array: text that readers of numbers can skip."""
    text = json.dumps(dict(metadata), sort_keys=True)
    return np.frombuffer(text.encode(), dtype=np.uint8)


@contextmanager
def open_features_writer(
    path: str | os.PathLike[str],
    *,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    metadata: Mapping[str, str] | None = None,
) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Write a file of features block by block; whole or not at all.

    Parameters
    ----------
    path : path-like
        ``.safetensors`` (array ``features``), ``.npy``, or ``.npz`` (array ``reps``, as dgm-eval
        calls it). An existing file is replaced at the end.
    shape : tuple of int
        (n, d), of all blocks together.
    dtype : dtype
        Floating.
    metadata : mapping of str to str, optional
        Where the features came from; ``.npy`` cannot hold it.

    Yields
    ------
    callable
        Takes the next block, an array (rows, d).

    Raises
    ------
    InputError
        If the name ends otherwise, the blocks do not add up to `shape`, or the file cannot be
        written.
    """
    suffix = check_features_name(path)
    little = np.dtype(dtype).newbyteorder("<")
    written = 0
    with _written_aside(path) as file, ExitStack() as members:
        if suffix == ".npz":
            archive = members.enter_context(zipfile.ZipFile(file, "w"))
            if metadata:
                packed = io.BytesIO()
                np.lib.format.write_array(packed, _packed(metadata), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{METADATA_KEY}.npy"), packed.getvalue())
            member = archive.open(zipfile.ZipInfo("reps.npy"), "w", force_zip64=True)
            target: IO[bytes] = members.enter_context(member)
        else:
            target = file
        if suffix == ".safetensors":
            target.write(_safetensors_start(shape, little, metadata or {}))
        else:
            form = {"descr": little.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(target, form)

        def write(block: NDArray[Any]) -> None:
            nonlocal written
            written += len(block)
            target.write(np.ascontiguousarray(block, dtype=little).data)

        yield write
        if written != shape[0]:
            raise InputError(f"{display(path)}: {shape[0]} rows were announced and {written} came.")


def _safetensors_start(
    shape: tuple[int, int], dtype: np.dtype[Any], metadata: Mapping[str, str]
) -> bytes:
    names = {code: name for name, code in _SAFETENSORS_TYPES.items()}
    size = math.prod(shape) * dtype.itemsize
    header = {
        "__metadata__": dict(sorted(metadata.items())),
        "features": {"dtype": names[dtype.str], "shape": shape, "data_offsets": [0, size]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data then lies aligned
    return struct.pack("<Q", len(text)) + text


def atomic_write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file or nothing: aside in the same folder, synced, then renamed.

    Parameters
    ----------
    path : path-like
        Missing folders are made. An existing file is replaced.
    content : str or bytes
        Text is written as UTF-8.

    Raises
    ------
    InputError
        If the folder is read-only, the disk is full, or the name is not usable.
    """
    with _written_aside(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def _written_aside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file beside `path` that takes its place in the end, or vanishes on any error."""
    try:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".genbounds-{secrets.token_hex(8)}.part")
        try:
            with aside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(target)
        except BaseException:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{display(path)}: cannot be written: {_reason(error)}.") from error


def display(path: object, *, limit: int | None = 200) -> str:
    """Return a path or name as one printable line, with its middle cut beyond `limit` characters.

    Control characters, unpaired surrogates and marks that reorder text are shown as escapes.
    """
    text = os.fsdecode(path) if isinstance(path, (os.PathLike, bytes)) else str(path)
    if limit is not None and len(text) > limit:
        text = f"{text[: limit // 2]}…{text[-limit // 2 :]}"
    return "".join(
        character
        if character.isprintable() or character in _HARMLESS
        else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


# --- what every format shares -------------------------------------------------------------------


def _check_file(path: str | os.PathLike[str], shown: str) -> str:
    """Refuse what cannot be a file of ours before it is opened; return its suffix."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{shown}: is a folder: give the file inside it.")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{shown}: is not a regular file: save it to disk first.")
        suffix = Path(path).suffix.lower()
        suffix = ".pt" if suffix == ".pth" else suffix
        if suffix not in FORMATS:
            kind = f"`{display(suffix, limit=20)}` files are" if suffix else "a name without ending"
            raise InputError(
                f"{shown}: {kind if suffix else kind + ' is'} not read: "
                f"convert it to one of {', '.join(FORMATS)} (pickles are never loaded)."
            )
        if status.st_size == 0:
            raise InputError(f"{shown}: the file is empty: write it again.")
        with open(path, "rb"):
            pass
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file: check the path.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{shown}: cannot be read: {_reason(error)}.") from error
    return suffix


def _reason(error: Exception) -> str:
    advice = {
        errno.EACCES: "no permission: change the file's or folder's permissions, or choose another",
        errno.EPERM: "no permission: change the file's or folder's permissions, or choose another",
        errno.EROFS: "the file system is read-only: choose another folder",
        errno.ENOSPC: "the disk is full: free some space or choose another folder",
        errno.EDQUOT: "the disk quota is used up: free some space or choose another folder",
        errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
        errno.ENOTDIR: "a part of the path is a file, not a folder: check the path",
        errno.EEXIST: "a part of the path is a file, not a folder: check the path",
        errno.EISDIR: "it is a folder: give a file name",
        errno.ELOOP: "its symbolic links run in a circle: mend the link",
    }
    if isinstance(error, OSError) and error.errno in advice:
        return advice[error.errno]
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return display(text or type(error).__name__)


@contextmanager
def _damage(shown: str) -> Iterator[None]:
    """Turn whatever a reader raises on a damaged file into one InputError."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InputError(
                f"{shown}: no room to unpack it in {tempfile.gettempdir()}: "
                "free some space or point TMPDIR to a larger disk."
            ) from error
        raise _damaged(shown, error) from error
    except _DAMAGE as error:
        raise _damaged(shown, error) from error


def _damaged(shown: str, error: Exception) -> InputError:
    reason = _reason(error).rstrip(".")
    return InputError(f"{shown}: is damaged or truncated ({reason}): write it again.")


def _from_named(
    shown: str, members: Mapping[str, Callable[[], NDArray[Any]]]
) -> NDArray[Any] | Statistics:
    """Pick features or statistics among named arrays; loads only what is asked for."""
    features = [key for key in FEATURE_KEYS if key in members]
    statistics = all(key in members for key in STATISTICS_KEYS)
    if len(features) + statistics > 1:
        both = [*features, *(STATISTICS_KEYS if statistics else ())]
        raise InputError(
            f"{shown}: is ambiguous, it has {' and '.join(both)}: "
            "keep one array of features, or only the statistics."
        )
    if features:
        return _features(shown, members[features[0]]())
    if statistics:
        count = members["n"]() if "n" in members else None
        return _statistics(shown, members["mu"](), members["sigma"](), count)
    keys = [display(key, limit=40) for key in members]
    present = ", ".join(keys[:8]) + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
    raise InputError(
        f"{shown}: has no known array, only: {present or 'nothing'}. Name the features "
        f"`features`, `reps`, `feats` or `arr_0`, or the statistics `mu` and `sigma`."
    )


def _features(shown: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 2:
        raise InputError(
            f"{shown}: holds an array of shape {array.shape}: "
            "features need shape (n, d), one row a sample."
        )
    if array.size == 0:
        raise InputError(
            f"{shown}: holds an array of shape {array.shape}, no data: write it again."
        )
    array.flags.writeable = False
    return array


def _statistics(
    shown: str, mean: NDArray[Any], cov: NDArray[Any], count: NDArray[Any] | None
) -> Statistics:
    if mean.ndim != 1 or mean.size == 0 or cov.shape != (mean.size, mean.size):
        raise InputError(
            f"{shown}: mu has shape {mean.shape} and sigma {cov.shape}: "
            "statistics need shapes (d,) and (d, d)."
        )
    n = None
    if count is not None:
        if count.size != 1 or not (float(count.item()) >= 1.0 and float(count.item()) % 1.0 == 0.0):
            raise InputError(
                f"{shown}: n is {display(count, limit=40)}: it must be the number of samples, "
                "a whole number; leave it out if it is not known."
            )
        n = int(count.item())
    return Statistics(mean.astype(np.float64), cov.astype(np.float64), n)


def _check_dtype(shown: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise InputError(
            f"{shown}: holds pickled Python objects, which are never loaded: "
            "save a plain float array of shape (n, d)."
        )
    if dtype.kind not in "fiub":
        raise InputError(
            f"{shown}: holds {display(dtype, limit=60)}, not real numbers: "
            "save a float array of shape (n, d)."
        )


def check_bomb(
    shown: str,
    unpacked: int,
    packed: int,
    *,
    kind: str = "features",
    advice: str = "save it uncompressed as .npy",
) -> None:
    """Refuse what claims to unpack to far more than `kind`, in bytes, ever do."""
    if unpacked > _BOMB_BYTES and unpacked > _BOMB_RATIO * packed:
        raise InputError(
            f"{shown}: claims to unpack {packed:,} bytes to {unpacked:,}, which no real {kind} "
            f"do: if it is genuine, {advice}."
        )


def gather(
    chunks: Iterable[bytes | memoryview],
    *,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    fortran: bool = False,
) -> NDArray[Any]:
    """Gather exactly prod(shape) items from chunks, in memory or in an unnamed scratch file.

    Raises
    ------
    ValueError
        If the chunks hold another number of bytes.
    OSError
        If the disk has no room for them.
    """
    size = math.prod(shape) * dtype.itemsize
    with io.BytesIO() if size <= _IN_MEMORY else tempfile.TemporaryFile() as buffer:
        written = 0
        for chunk in chunks:
            written += len(chunk)
            if written > size:
                break
            buffer.write(chunk)
        if written != size:
            raise ValueError(f"{size} bytes were announced, another number is there")
        if isinstance(buffer, io.BytesIO):
            flat = np.frombuffer(buffer.getvalue(), dtype=dtype)
            return flat.reshape(shape, order="F" if fortran else "C")
        buffer.flush()
        return _map(buffer, 0, dtype=dtype, shape=shape, fortran=fortran)


def _map(
    file: Path | IO[bytes],
    offset: int,
    *,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    fortran: bool = False,
) -> NDArray[Any]:
    if math.prod(shape) == 0:  # nothing to map
        return np.empty(shape, dtype=dtype)
    order: Literal["F", "C"] = "F" if fortran else "C"
    return np.memmap(file, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)


# --- NumPy --------------------------------------------------------------------------------------


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
    _check_dtype(shown, dtype)
    declared = math.prod(shape) * dtype.itemsize if min(shape, default=0) >= 0 else -1
    present = available - stream.tell()
    if declared != present:
        raise InputError(
            f"{shown}: is truncated or damaged, its header announces shape "
            f"{display(shape, limit=60)} ({display(declared, limit=40)} bytes) "
            f"and {present} bytes follow: write it again."
        )
    return dtype, shape, fortran


def _read_npy(path: Path, shown: str) -> NDArray[Any]:
    with path.open("rb") as file:
        dtype, shape, fortran = _npy_header(file, os.fstat(file.fileno()).st_size, shown)
        return _map(path, file.tell(), dtype=dtype, shape=shape, fortran=fortran)


def _npz_members(
    path: Path, archive: zipfile.ZipFile, shown: str
) -> dict[str, Callable[[], NDArray[Any]]]:
    members: dict[str, Callable[[], NDArray[Any]]] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            raise InputError(
                f"{shown}: has two arrays called {display(key, limit=40)}: write it again."
            )

        def load(info: zipfile.ZipInfo = info, key: str = key) -> NDArray[Any]:
            return _npz_member(path, archive, info, f"{shown} ({key})")

        members[key] = load
    return members


def _npz_member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, shown: str
) -> NDArray[Any]:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{shown}: is packed in a way that NumPy does not use: "
            "write it again with numpy.savez or numpy.savez_compressed."
        )
    check_bomb(shown, info.file_size, info.compress_size)
    with archive.open(info) as stream:
        dtype, shape, fortran = _npy_header(stream, info.file_size, shown)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size <= _IN_MEMORY:
            chunks = iter(lambda: stream.read(_CHUNK), b"")
            return gather(chunks, dtype=dtype, shape=shape, fortran=fortran)
        start = stream.tell()
    # Large and stored as it is: map it where it lies. The member's own header precedes it.
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
        offset = info.header_offset + 30 + name + extra + start
    return _map(path, offset, dtype=dtype, shape=shape, fortran=fortran)


# --- other formats ------------------------------------------------------------------------------


def _safetensors(path: Path, shown: str) -> dict[str, Callable[[], NDArray[Any]]]:
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as checked:  # offsets, sizes, overlap
            keys = list(checked.keys())
    except safetensors.SafetensorError as error:
        raise _damaged(shown, error) from error
    header, length = _safetensors_header(path)

    def load(key: str) -> NDArray[Any]:
        entry = header[key]
        offset = 8 + length + entry["data_offsets"][0]
        shape = tuple(entry["shape"])
        if entry["dtype"] == "BF16":  # the upper half of a float32; NumPy has no such type
            halves = _map(path, offset, dtype=np.dtype("<u2"), shape=(math.prod(shape),))
            step = _CHUNK // 2
            widened = (
                (halves[first : first + step].astype("<u4") << np.uint32(16)).tobytes()
                for first in range(0, halves.size, step)
            )
            return gather(widened, dtype=np.dtype("<f4"), shape=shape)
        if entry["dtype"] not in _SAFETENSORS_TYPES:
            raise InputError(
                f"{shown}: {display(key, limit=40)} has type {display(entry['dtype'], limit=40)}, "
                "which is not read: save it as F16, BF16, F32 or F64."
            )
        dtype = np.dtype(_SAFETENSORS_TYPES[entry["dtype"]])
        return _map(path, offset, dtype=dtype, shape=shape)

    return {key: (lambda key=key: load(key)) for key in keys}  # type: ignore[misc]


def _safetensors_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a checked file and its length in bytes."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), length


def _torch(
    path: Path, shown: str
) -> Callable[[], NDArray[Any]] | dict[str, Callable[[], NDArray[Any]]]:
    torch = _optional("torch", "torch", "PyTorch", shown)
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
        if isinstance(tensor, _StoredArray):
            array = tensor.array()
            _check_dtype(shown, array.dtype)
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
        _check_dtype(shown, array.dtype)
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


class _StoredArray:
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

    def reconstruct(*_: object) -> _StoredArray:
        return _StoredArray()

    def as_bytes(text: str, encoding: str) -> bytes:
        return text.encode(encoding)

    names: list[tuple[Any, str]] = [
        (reconstruct, "numpy._core.multiarray._reconstruct"),
        (reconstruct, "numpy.core.multiarray._reconstruct"),
        (_StoredArray, "numpy.ndarray"),
        (_StoredType, "numpy.dtype"),
        (as_bytes, "_codecs.encode"),
    ]
    if not hasattr(torch.serialization, "safe_globals"):  # PyTorch 2.4: such files are refused
        return nullcontext()
    manager: AbstractContextManager[object] = torch.serialization.safe_globals(names)
    return manager


def _parquet(path: Path, shown: str) -> NDArray[Any]:
    parquet = _optional("pyarrow.parquet", "parquet", "PyArrow", shown)
    from pyarrow import types

    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        lists = [name for name in FEATURE_KEYS[:2] if name in schema.names]
        if len(lists) > 1:
            raise InputError(
                f"{shown}: is ambiguous, it has {' and '.join(lists)}: keep one of them."
            )
        columns = lists or list(schema.names)
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"{shown}: has two columns of one name: rename one of them.")
        as_lists = bool(lists) and types.is_nested(schema.field(lists[0]).type)
        for name in columns:
            kind = schema.field(name).type
            if as_lists and hasattr(kind, "value_type"):
                kind = kind.value_type
            if not (types.is_floating(kind) or types.is_integer(kind)):
                raise InputError(
                    f"{shown}: column {display(name, limit=40)} holds {display(kind, limit=40)}, "
                    "not numbers: keep a column of lists `features`, or numeric columns only."
                )
        rows = file.metadata.num_rows
        if rows < 1 or not columns:
            raise InputError(
                f"{shown}: has {rows} rows and {len(columns)} columns: write it again."
            )
        batches = file.iter_batches(batch_size=4096, columns=columns)
        blocks = (_parquet_block(batch, as_lists, shown) for batch in batches if batch.num_rows)
        first = next(blocks, None)
        if first is None:
            raise InputError(f"{shown}: has {rows} rows announced and none there: write it again.")
        shape = (rows, first.shape[1])
        check_bomb(shown, math.prod(shape) * first.itemsize, path.stat().st_size)

        def chunks() -> Iterator[bytes]:
            yield first.tobytes()
            for block in blocks:
                if block.shape[1] != shape[1]:
                    raise _ragged(shown)
                yield block.astype(first.dtype, copy=False).tobytes()

        return gather(chunks(), dtype=first.dtype, shape=shape)


def _parquet_block(batch: Any, as_lists: bool, shown: str) -> NDArray[Any]:
    """One batch of rows as an array (rows, d)."""
    if any(column.null_count for column in batch.columns):
        raise InputError(f"{shown}: has missing values: drop those rows.")
    if not as_lists:
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
    lists = batch.column(0)
    values = lists.flatten()
    if values.null_count:
        raise InputError(f"{shown}: has missing values: drop those rows.")
    # Row lengths are equal exactly if every list starts where equal lists would.
    d, rest = divmod(len(values), len(lists))
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if rest or (lengths != d).any():
        raise _ragged(shown)
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(lists), d)


def _ragged(shown: str) -> InputError:
    return InputError(
        f"{shown}: has lists of different lengths: every row needs the same number of features."
    )


def _optional(module: str, extra: str, title: str, shown: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{shown}: reading it needs {title}: pip install 'genbounds[{extra}]', "
            "or save the features as .npy."
        ) from error
