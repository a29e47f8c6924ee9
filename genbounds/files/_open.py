"""From names to what the files hold: one file, opened once; several as one sample. Whole new ones.

A file is regular, and the same from first byte to last. Whatever a reader or a disk raises becomes
one `InputError` that says what to do.
"""

from __future__ import annotations

import errno
import glob
import os
import pathlib
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import PurePath
from typing import IO, Any

import numpy as np

from genbounds._process import scratch_folder
from genbounds._text import display, quoted
from genbounds.files import _content
from genbounds.files._content import Contents, Stored, npy_contents
from genbounds.files._formats import (
    npz_contents,
    parquet_contents,
    safetensors_contents,
    torch_contents,
)
from genbounds.origins import NOTED, STAMPS, Part, check_same_encoder, part_order
from genbounds.validation import InputError, check_finite

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]

_READERS: dict[str, Callable[[IO[bytes], int, str], Contents]] = {
    ".npy": npy_contents,
    ".npz": npz_contents,
    ".safetensors": safetensors_contents,
    ".pt": torch_contents,
    ".pth": torch_contents,
    ".parquet": parquet_contents,
}
"""By the ending of a name: what reads an open file, of a known size, under a name for errors."""

_WITHOUT_HEADER = {".pt", ".pth", ".parquet"}
"""What says nothing of its encoder, and its shape only when it is read."""

FORMATS = (".npy", ".npz", ".safetensors", ".pt", ".parquet")

_state = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns")
"""Which file this is, and what a change of it changes."""


# --- one file -----------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path, *, read: bool = True) -> Iterator[Contents]:
    """Open a regular file for reading; refuse what another program changes meanwhile.

    Everything is read through the one open file, and nothing is mapped from it: an array mapped
    from a file that is then truncated would end the process, and one that is edited in place
    would give a number of neither version. Whatever is raised meanwhile becomes an `InputError`:
    a damaged file can make a reader raise anything.

    Parameters
    ----------
    path : path-like
    read : bool
        Whether to look into it; if not, it has no arrays.

    Raises
    ------
    InputError
        If it is missing, unreadable, empty, not a regular file, of an unknown format, or has
        another size or time of change at the end than at the beginning.
    """
    shown, ending = display(path), PurePath(os.fsdecode(path)).suffix.lower()
    try:
        # Looked at first: a pipe with nobody at its other end would keep `open` waiting.
        kind = os.stat(path).st_mode
        file = open(path, "rb") if stat.S_ISREG(kind) else None
    except (OSError, ValueError) as error:
        what = f"cannot be read: {reason_of(error)}"
        if isinstance(error, FileNotFoundError):
            # The system says the same of a path that does not exist and of a link to such a path.
            link = os.path.islink(path)
            what = "is a link to a file that is gone" if link else "no such file"
            what += ": check the path"
        raise InputError(f"{shown}: {what}.") from error
    if file is None:
        what = "not a regular file: save it to disk first"
        if stat.S_ISDIR(kind):
            what = "a folder: give the file inside it"
        raise InputError(f"{shown}: is {what}.")
    with file:
        status = os.fstat(file.fileno())
        if status.st_size == 0:
            raise InputError(f"{shown}: {_why_empty(file)}.")
        fault = None
        try:
            if not read:
                yield Contents(shown, status.st_size, {})
            elif ending in _READERS:
                yield _READERS[ending](file, status.st_size, shown)
            else:
                named = f"`{display(ending, limit=20)}` files are"
                raise InputError(
                    f"{shown}: {named if ending else 'a name without ending is'} not read: convert "
                    f"it to one of {', '.join(FORMATS)} (pickles are never loaded)."
                )
        except Exception as error:
            fault = error
        if _state(os.fstat(file.fileno())) != _state(status):
            raise _changed(shown) from fault
        if fault is not None:
            raise fault if isinstance(fault, InputError) else _damaged(shown, fault) from fault


def _why_empty(file: IO[bytes]) -> str:
    """Say why a file has no size."""
    with suppress(OSError):  # what the system makes up, in /proc, has none either
        if not file.read(1):
            return "the file is empty: write it again"
    return "is not a file on a disk: save what it holds to one first"


def _changed(shown: str) -> InputError:
    """Return the error of a file that is not what it was."""
    return InputError(
        f"{shown}: was changed while it was read: wait until it is written, then run this again."
    )


def _damaged(shown: str, error: Exception) -> InputError:
    """Return the error of a file whose content is not what its format says."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(
            f"{shown}: not enough space to unpack it in {scratch_folder()}: "
            "free some space or point TMPDIR to a larger disk."
        )
    reason = reason_of(error).rstrip(".")
    return InputError(f"{shown}: is damaged or truncated ({reason}): write it again.")


def reason_of(error: Exception) -> str:
    """Say why an operation failed and, where it is known, what to do."""
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
        errno.ELOOP: "its symbolic links run in a circle: fix the link",
    }
    if isinstance(error, OSError) and error.errno in advice:
        return advice[error.errno]
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return display(text or type(error).__name__)


# --- one file, whole or not at all ---------------------------------------------------------------


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
    with written_aside(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file beside `path` that takes its place in the end, or vanishes on any error."""
    try:
        target = pathlib.Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".genbounds-{secrets.token_hex(8)}.part")
        try:
            with aside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            aside.replace(target)
            with suppress(OSError):  # Windows, or a folder that may be written but not listed
                folder = os.open(target.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)  # the new name survives a power failure
                finally:
                    os.close(folder)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{display(path)}: cannot be written: {reason_of(error)}.") from error


# --- several files ------------------------------------------------------------------------------


@contextmanager
def contents_of(path: Paths) -> Iterator[Contents]:
    """Open a file, or several as one; what is read from it must be read before this ends.

    Raises
    ------
    InputError
        As `read`, also for what goes wrong while it is open.
    """
    paths = shards_of(path)
    if paths is None:
        with _opened(path) as contents:  # type: ignore[arg-type]
            yield contents
        return
    shown = display(path if isinstance(path, (str, os.PathLike)) else paths[0])
    if len(paths) > 1 and not isinstance(path, (str, os.PathLike)):
        shown += f" and {len(paths) - 1} more"
    try:
        yield _joined(shown, paths)
    except InputError:
        raise
    except Exception as error:
        raise _damaged(shown, error) from error


def shards_of(path: object) -> Sequence[Path] | None:
    """Return the files that a list or a pattern stands for; None for the name of one file."""
    if isinstance(path, (str, bytes, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, bytes) or not set(text) & set("*?[") or os.path.lexists(text):
            return None
        if found := sorted(glob.glob(text), key=_by_number):
            return found
        raise InputError(f"{display(path)}: no file has such a name: check the pattern.")
    names: Any = path if isinstance(path, Sequence) else [path]
    for name in names:
        if not isinstance(name, (str, bytes, os.PathLike)):
            raise InputError(f"{quoted(name)} is not the name of a file: pass a path.")
    if not names:
        raise InputError("no files: name at least one shard.")
    return names  # type: ignore[no-any-return]


def _by_number(name: str) -> tuple[list[str | int], str]:
    """Sort names as people count: part-2 before part-10."""
    pieces = re.split("([0-9]+)", name)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    """A file of rows as it was at first sight: it is opened again for whatever is read of it.

    Thousands of files cannot be open at once.
    """

    path: Path
    shown: str
    state: tuple[int, ...]
    packed: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    labels: frozenset[str]
    origin: Mapping[str, str]

    @classmethod
    def of(cls, path: Path) -> _Shard:
        """Look at the header of a file."""
        with _opened(path) as contents:
            stored = contents.features
            if stored is None:
                raise InputError(
                    f"{contents.shown}: holds statistics (mu, sigma), which are no rows of a "
                    "sample: pass the files of features, or merge them by Moments.merge."
                )
            names = contents.arrays.keys() - set(contents.columns) - set(_content.FEATURE_KEYS)
            return cls(
                path=path,
                shown=contents.shown,
                state=_state(os.stat(path)),
                packed=contents.packed,
                shape=stored.shape,
                dtype=stored.dtype,
                labels=frozenset(names),
                origin=contents.origin,
            )

    @contextmanager
    def opened(self) -> Iterator[Contents]:
        """Open it once more; refuse it if it is not the same file any more."""
        with _opened(self.path) as contents:
            if _state(os.stat(self.path)) != self.state:
                raise _changed(self.shown)
            yield contents

    def features(self) -> Iterator[bytes]:
        """Yield its rows as bytes; refuse NaN and infinity, named by the row of this file."""
        with self.opened() as contents:
            stored = contents.features
            assert stored is not None
            seen = 0
            for chunk in stored.chunks():
                values = np.frombuffer(chunk, dtype=self.dtype)
                if not (finite := np.isfinite(values)).all():
                    at = int(finite.argmin())
                    row = (seen + at) // self.shape[1]
                    check_finite(self.shown, values[at : at + 1, np.newaxis], first_row=row)
                seen += values.size
                yield chunk


def _joined(shown: str, paths: Sequence[Path]) -> Contents:
    """Return what files hold together: their rows and labels, one file after the other.

    The parts of one extraction come in the order of their items.

    Parameters
    ----------
    shown : str
        What errors call them together.
    paths : sequence of path-like
        At least one.

    Raises
    ------
    InputError
        If two are the same file, differ in width, type, encoder or in which labels they have, or
        are not all parts of an extraction.
    """
    shards = [_Shard.of(path) for path in paths]
    names = [shard.shown for shard in shards]
    parts = [Part.of_origin(shard.origin, shard.shown, shard.shape[0]) for shard in shards]
    _check_alike(shards)
    shards = [shards[k] for k in part_order(names, parts)]
    shape = (sum(shard.shape[0] for shard in shards), shards[0].shape[1])

    def rows() -> Iterator[bytes]:
        for shard in shards:
            yield from shard.features()

    features = Stored(shown, shape, shards[0].dtype, blocks=rows)
    common = frozenset.intersection(*(shard.labels for shard in shards))
    labels = {name: partial(_labels, name, shown, shards) for name in sorted(common)}
    return Contents(
        shown,
        sum(shard.packed for shard in shards),
        {"features": lambda: features} | labels,
        origin=_common_origin(shards),
    )


def _check_alike(shards: Sequence[_Shard]) -> None:
    """Refuse files that are no parts of one sample."""
    first, seen = shards[0], dict[tuple[int, ...], _Shard]()
    for shard in shards:
        one, other = first.shown, shard.shown
        before = seen.setdefault(shard.state[:2], shard)
        if before is not shard:
            again = "" if before.shown == other else f", as {before.shown}"
            raise InputError(f"{other}: is named twice{again}: name every shard once.")
        if shard.shape[1] != first.shape[1]:
            raise InputError(
                f"{other}: has {shard.shape[1]} features and {one} has {first.shape[1]}: the "
                "shards of a sample come from one encoder."
            )
        if shard.dtype != first.dtype:
            raise InputError(
                f"{other}: holds {display(shard.dtype)} and {one} {display(first.dtype)}: write "
                "all shards in one type."
            )
        for name in (shard.labels ^ first.labels) & set(_content.LABEL_KEYS):
            there, lacks = (one, other) if name in first.labels else (other, one)
            raise InputError(
                f"{lacks}: has no {name}, and {there} has: write them to every shard, or to none."
            )
    check_same_encoder({shard.shown: shard.origin for shard in shards})


def _common_origin(shards: Sequence[_Shard]) -> dict[str, str]:
    """Return what all files say; versions of libraries, which machines may differ in, all."""
    found = {}
    for key, value in shards[0].origin.items():
        values = {shard.origin.get(key) for shard in shards}
        if key in NOTED and None not in values:
            found[key] = "; ".join(sorted(filter(None, values)))
        elif values == {value} and key not in STAMPS:
            found[key] = value
    return found


def _labels(name: str, shown: str, shards: Sequence[_Shard]) -> Stored:
    """Read the labels of all rows."""
    found = []
    for shard in shards:
        with shard.opened() as contents:
            found.append(contents.label(name))
    texts = [labels.dtype.kind == "U" for labels in found]
    if any(texts) and not all(texts):
        one, other = shards[texts.index(True)], shards[texts.index(False)]
        raise InputError(
            f"{other.shown}: has numbers in {display(name, limit=40)}, and {one.shown} has texts: "
            "write the same in every shard."
        )
    _content.check_bomb(
        shown,
        sum(map(len, found)) * max(labels.itemsize for labels in found),
        sum(shard.packed for shard in shards),
        "labels",
    )
    labels = np.concatenate(found)
    return Stored(shown, labels.shape, labels.dtype, make=lambda: labels)


# --- headers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself before its numbers are read.

    Attributes
    ----------
    origin : dict of str to str
        As `read_metadata` returns it.
    shape : tuple of int or None
        Rows and features, statistics having no rows; None in formats that do not say, and where it
        holds neither.
    images : bool
        Whether it is an array of images rather than of features.
    """

    origin: dict[str, str]
    shape: tuple[int, int] | None
    images: bool


def read_header(path: Paths, statistics: tuple[str, str] = _content.STATISTICS_KEYS) -> Header:
    """Read what `read_metadata` and `image_count` do, and the shape, opening the file once.

    Parameters
    ----------
    path : path-like or list of path-like
    statistics : tuple of str, default ("mu", "sigma")
        Names of the mean and the covariance, where it holds statistics.

    Returns
    -------
    Header

    Raises
    ------
    InputError
        As `read_metadata`.
    """
    paths: Any = shards_of(path) or [path]
    endings = {PurePath(os.fsdecode(name)).suffix.lower() for name in paths}
    if endings & _WITHOUT_HEADER:
        for name in paths:
            with _opened(name, read=False):
                pass
        return Header({}, None, False)
    shape, images = None, False
    with contents_of(path) as contents:
        contents.statistics_keys = statistics
        # Where a file holds something else, whoever reads it says so.
        with suppress(InputError):
            features = contents.features
            if features is None:
                shape = 0, (contents.arrays[statistics[0]]().shape or (0,))[-1]
            else:
                shape = features.shape[0], features.shape[1]
        if shape is None and endings <= {".npy", ".npz"}:
            with suppress(InputError):
                images = bool(contents.images().shape)
        return Header(contents.origin, shape, images)
