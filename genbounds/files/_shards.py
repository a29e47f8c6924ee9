"""What a file holds, by the reader of its ending; several, one after the other, as one sample."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import gather
from genbounds._text import display
from genbounds.files._bomb import check_bomb
from genbounds.files._content import FEATURE_KEYS, LABEL_KEYS, Contents, Stored, label_array
from genbounds.files._npy import npy_contents, npz_contents
from genbounds.files._opened import changed, damaged, ending_of, opened, state_of
from genbounds.files._parquet import parquet_contents
from genbounds.files._part import Part, part_order
from genbounds.files._pt import torch_contents
from genbounds.files._safetensors import safetensors_contents
from genbounds.origins import NOTED, STAMPS, check_same_encoder
from genbounds.validation import InputError, check_finite

Path = str | os.PathLike[str]
Paths = Path | Sequence[Path]

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
def contents_of(path: Paths) -> Iterator[Contents]:
    """Open a file, or several as one; what is read from it must be read before this ends.

    Raises
    ------
    InputError
        As `read`, also for what goes wrong while it is open.
    """
    shards = shards_of(path)
    if shards is None:
        with _contents_of_file(path) as contents:  # type: ignore[arg-type]
            yield contents
        return
    shown = _shown_of(path, shards)
    try:
        yield _joined(shown, shards)
    except InputError:
        raise
    except Exception as error:
        raise damaged(shown, error) from error


@contextmanager
def _contents_of_file(path: str | os.PathLike[str]) -> Iterator[Contents]:
    """Open one file; what is read from it must be read before this ends."""
    shown = display(path)
    ending = ending_of(path)
    with opened(path) as file:
        if ending not in _READERS:
            kind = (
                f"`{display(ending, limit=20)}` files are" if ending else "a name without ending is"
            )
            raise InputError(
                f"{shown}: {kind} not read: "
                f"convert it to one of {', '.join(FORMATS)} (pickles are never loaded)."
            )
        yield _READERS[ending](file, shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A file of rows as it was at first sight: it is opened again for whatever is read of it.

    Thousands of files cannot be open at once.
    """

    path: Path
    state: tuple[int, ...]
    packed: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    labels: frozenset[str]
    origin: Mapping[str, str]

    @classmethod
    def of(cls, path: Path) -> Shard:
        """Look at the header of a file."""
        with _contents_of_file(path) as contents:
            stored = contents.features
            if stored is None:
                raise InputError(
                    f"{contents.shown}: holds statistics (mu, sigma), which are no rows of a "
                    "sample: pass the files of features, or merge them by Moments.merge."
                )
            names = contents.arrays.keys() - set(contents.columns) - set(FEATURE_KEYS)
            return cls(
                path=path,
                state=state_of(os.stat(path)),
                packed=contents.packed,
                shape=stored.shape,
                dtype=stored.dtype,
                labels=frozenset(names),
                origin=contents.origin,
            )

    @property
    def shown(self) -> str:
        """What errors call it."""
        return display(self.path)

    @contextmanager
    def opened(self) -> Iterator[Contents]:
        """Open it once more; refuse it if it is not the same file any more."""
        with _contents_of_file(self.path) as contents:
            if state_of(os.stat(self.path)) != self.state:
                raise changed(self.shown)
            yield contents

    def features(self) -> Iterator[bytes]:
        """Yield its rows as bytes; refuse NaN and infinity, named by the row of this file."""
        with self.opened() as contents:
            stored = contents.features
            assert stored is not None
            seen = 0
            for chunk in stored.chunks():
                values = np.frombuffer(chunk, dtype=self.dtype)
                bad = ~np.isfinite(values)
                if bad.any():
                    at = int(bad.argmax())
                    row = (seen + at) // self.shape[1]
                    check_finite(self.shown, values[at : at + 1, np.newaxis], first_row=row)
                seen += values.size
                yield chunk

    def label(self, name: str) -> NDArray[Any]:
        """Read an array of labels."""
        with self.opened() as contents:
            return label_array(contents, name, self.shape[0])


def shards_of(path: object) -> Sequence[Path] | None:
    """Return the files that a list or a pattern stands for; None for the name of one file."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        if not isinstance(path, Sequence):
            return None
        if not path:
            raise InputError("no files: name at least one shard.")
        return path
    text = os.fspath(path)
    if isinstance(text, bytes) or not set(text) & set("*?[") or os.path.lexists(text):
        return None
    found = sorted(glob.glob(text), key=_by_number)
    if not found:
        raise InputError(f"{display(path)}: no file has such a name: check the pattern.")
    return found


def _by_number(name: str) -> tuple[list[str | int], str]:
    """Sort names as people count: part-2 before part-10."""
    pieces = re.split("([0-9]+)", name)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], name


def _shown_of(path: object, shards: Sequence[Path]) -> str:
    """Return what errors call these files together."""
    if isinstance(path, (str, os.PathLike)):
        return display(path)
    more = len(shards) - 1
    return display(shards[0]) + (f" and {more} more" if more else "")


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
    shards = [Shard.of(path) for path in paths]
    names = [shard.shown for shard in shards]
    parts = [
        Part.of_origin(one.origin, name, one.shape[0])
        for one, name in zip(shards, names, strict=True)
    ]
    _check_alike(shards)
    shards = [shards[k] for k in part_order(names, parts)]
    shape = (sum(shard.shape[0] for shard in shards), shards[0].shape[1])
    dtype = shards[0].dtype

    def rows() -> NDArray[Any]:
        chunks = (chunk for shard in shards for chunk in shard.features())
        return gather(chunks, dtype=dtype, shape=shape)

    features = Stored(shown, shape, dtype, rows)
    common = frozenset.intersection(*(shard.labels for shard in shards))
    labels = {name: partial(_labels, name, shown, shards) for name in sorted(common)}
    packed = sum(shard.packed for shard in shards)
    return Contents(packed, shown, {"features": lambda: features} | labels, _metadata(shards))


def _check_alike(shards: Sequence[Shard]) -> None:
    """Refuse files that are no parts of one sample."""
    first, seen = shards[0], dict[tuple[int, ...], Shard]()
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
        for name in (shard.labels ^ first.labels) & set(LABEL_KEYS):
            there, lacks = (one, other) if name in first.labels else (other, one)
            raise InputError(
                f"{lacks}: has no {name}, and {there} has: write them to every shard, or to none."
            )
    check_same_encoder({shard.shown: shard.origin for shard in shards})


def _metadata(shards: Sequence[Shard]) -> dict[str, str]:
    """Return what all files say; versions of libraries, which machines may differ in, all."""
    found = {}
    for key, value in shards[0].origin.items():
        values = {shard.origin.get(key) for shard in shards}
        if key in NOTED and None not in values:
            found[key] = "; ".join(sorted(filter(None, values)))
        elif values == {value} and key not in STAMPS:
            found[key] = value
    return found


def _labels(name: str, shown: str, shards: Sequence[Shard]) -> Stored:
    """Read the labels of all rows."""
    found = [shard.label(name) for shard in shards]
    texts = [labels.dtype.kind == "U" for labels in found]
    if any(texts) and not all(texts):
        one, other = shards[texts.index(True)], shards[texts.index(False)]
        raise InputError(
            f"{other.shown}: has numbers in {display(name, limit=40)}, and {one.shown} has texts: "
            "write the same in every shard."
        )
    check_bomb(
        shown,
        sum(map(len, found)) * max(labels.itemsize for labels in found),
        sum(shard.packed for shard in shards),
        kind="labels",
        advice="number the labels, or give them shorter names",
    )
    labels = np.concatenate(found)
    return Stored(shown, labels.shape, labels.dtype, lambda: labels)
