"""What a file may hold: features or statistics, and labels, under names that the field uses."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from io import BytesIO
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds import _scratch
from genbounds._text import display
from genbounds.origins import marked
from genbounds.validation import Float, InputError

_log = logging.getLogger("genbounds.files")

FEATURE_KEYS = ("features", "reps", "feats", "arr_0")  # dgm-eval: reps; clean-fid: feats
STATISTICS_KEYS = ("mu", "sigma")
LABEL_KEYS = ("groups", "seeds", "order", "strata", "labels")
ITEMS_KEY = "items"
"""What each row is of: the name of an image in its folder or archive."""
METADATA_KEY = "metadata"
NAMES_KEY = ".names"
"""``labels.names`` in the metadata of a .safetensors file, which holds no texts in arrays: a JSON
list of the names that stand for 0, 1, … in the array ``labels``."""
DIGEST_KEY = "genbounds.sha256."
"""``genbounds.sha256.features`` in the metadata of a file of ours: the digest of that array."""

_REAL = "fiub"
"""Kinds of NumPy's types that are real numbers."""

_LARGEST_IMAGE = 178_956_970
"""Pixels: Pillow refuses larger images in files; what a network takes is a thousand times less."""


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """First two moments of a set of features; unpacks as ``mean, cov, n``.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)
        Divisor n - 1.
    n : int or None
        Number of samples behind them; None if the file does not say.
    rows : ndarray of shape (k, d) or None
        A random part of these samples, where the file holds one.
    origin : mapping of str to str
        Where the features came from, as far as the file says.
    """

    mean: Float
    cov: Float
    n: int | None
    rows: NDArray[Any] | None = None
    origin: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.mean, self.cov, self.n))


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Which group and which stratum each row of a file belongs to.

    Attributes
    ----------
    groups : ndarray of shape (n,) or None
        Integers or texts. Rows of one group depend on one another.
    strata : ndarray of shape (n,) or None
        Integers or texts. The design fixed how many rows each stratum has: classes, usually.
    """

    groups: NDArray[Any] | None = None
    strata: NDArray[Any] | None = None


# What a file holds beyond 256 MiB from less than 1/200 of that is refused unread: real features
# shrink 1- to 20-fold.
_BOMB_RATIO = 200
_BOMB_BYTES = 1 << 28

_INSTEAD = {
    "features": "save it uncompressed as .npy",
    "labels": "number the labels, or give them shorter names",
    "images": "pack it without compression",
}


def check_bomb(shown: str, unpacked: int, packed: int, kind: str = "features") -> None:
    """Refuse what claims to unpack to far more bytes than `kind` ever do."""
    if unpacked > _BOMB_BYTES and unpacked > _BOMB_RATIO * packed:
        raise InputError(
            f"{shown}: claims to unpack {packed:,} bytes to {unpacked:,}, which no real {kind} "
            f"do: if it is genuine, {_INSTEAD[kind]}."
        )


def digest_of(dtype: np.dtype[Any], shape: Sequence[int], names: str = "") -> Any:
    """Begin the SHA-256 of an array with all that its bytes do not say.

    Parameters
    ----------
    dtype, shape
    names : str
        JSON list of the texts for which its integers stand, if they do.
    """
    return hashlib.sha256(json.dumps([dtype.str, [*map(int, shape)], names]).encode())


@dataclass(frozen=True, slots=True)
class Stored:
    """An array in a file: what its header says, and how to read it.

    Shape and type are checked before anything is read: the array may be larger than the memory.

    Attributes
    ----------
    shown : str
        What errors call it.
    shape, dtype
    data : callable
        Opens its bytes as a stream, where they lie in the file as they are: row after row, or
        column after column if `fortran`.
    blocks : callable or None
        Yields its bytes, row after row, where they do not.
    make : callable or None
        Returns the array, where something else has made it.
    digest : object
        Digest of its bytes, with `names` as `digest_of` takes them; None if the file has none.
    """

    shown: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _: KW_ONLY
    data: Callable[[], AbstractContextManager[IO[bytes]]] = BytesIO
    fortran: bool = False
    blocks: Callable[[], Iterator[bytes]] | None = None
    make: Callable[[], NDArray[Any]] | None = None
    digest: object = None
    names: str = ""

    @property
    def in_rows(self) -> bool:
        """Whether its rows lie in the file as they are, one after the other."""
        return self.make is None and self.blocks is None and not self.fortran

    def load(self) -> NDArray[Any]:
        """Return the array, read-only."""
        if self.make is not None:
            return self.make()
        data = self._bytes() if self.blocks is None else self.blocks()
        return _scratch.gather(data, dtype=self.dtype, shape=self.shape, fortran=self.fortran)

    def chunks(self) -> Iterator[bytes]:
        """Yield its bytes, row after row."""
        if self.make is None and not self.fortran:
            yield from self._bytes() if self.blocks is None else self.blocks()
            return
        array = self.load()
        for part in _scratch.row_parts(array):
            yield array[part].tobytes()

    def _bytes(self) -> Iterator[bytes]:
        """Yield its bytes as they lie in the file; raise ValueError if the digest is another's."""
        digest = None
        if self.digest is not None:
            digest = digest_of(self.dtype, self.shape, self.names)
        left = self.dtype.itemsize * math.prod(self.shape)
        with self.data() as stream:
            while left > 0 and (chunk := stream.read(min(_scratch.CHUNK, left))):
                left -= len(chunk)
                if digest is not None:
                    digest.update(chunk)
                yield chunk
        if digest is not None and digest.hexdigest() != self.digest:
            raise ValueError("its numbers do not fit the checksum in it")


@contextmanager
def at(file: IO[bytes], start: int) -> Iterator[IO[bytes]]:
    """Open a file that is open, from byte `start` on."""
    file.seek(start)
    yield file


@dataclass
class Contents:
    """The named arrays of an open file, none of them read yet, and its metadata.

    All that is read through one of these is of one moment of the file.

    Attributes
    ----------
    shown : str
        What errors call it.
    packed : int
        Size of the file in bytes.
    arrays : mapping of str to callable
        Returns the `Stored` array of that name. A file of one array calls it ``features``.
    origin : dict of str to str
        Where the features came from, as far as the file says.
    names : dict of str to str
        By the name of an array of labels, the texts for which its integers stand (a JSON list).
    columns : collection of str
        Arrays of which each is one feature.
    known_n : callable
        Returns how many samples are behind the statistics of a file that is known by its digest.
    values : bool
        Whether one number per sample, in one dimension, is read as one feature.
    statistics_keys : tuple of str
        What the mean and the covariance are called.
    """

    shown: str
    packed: int
    arrays: Mapping[str, Callable[[], Stored]]
    _: KW_ONLY
    origin: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    columns: Collection[str] = ()
    known_n: Callable[[], int | None] = lambda: None
    values: bool = False
    statistics_keys: tuple[str, str] = STATISTICS_KEYS

    def read(self) -> NDArray[Any] | Statistics:
        """Read the features, or the statistics: whichever the file holds."""
        stored = self.features
        if stored is None:
            return self.statistics()
        array = stored.load()
        array.flags.writeable = False
        return marked(array, self.origin)

    @cached_property
    def features(self) -> Stored | None:
        """The features, their shape and type checked; None if the file holds statistics."""
        shown = self.shown
        found = [key for key in FEATURE_KEYS if key in self.arrays]
        if len(found) != 1 or not self.arrays.keys().isdisjoint(("mu", *self.statistics_keys)):
            if self._holds_statistics(found):
                return None
        stored = self.arrays[found[0]]()
        if stored.dtype.kind not in _REAL:
            raise _not_real(stored)
        if self.values and len(stored.shape) == 1:
            column = stored
            stored = replace(
                column, shape=(*column.shape, 1), make=lambda: column.load()[:, np.newaxis]
            )
        if len(stored.shape) != 2:
            raise InputError(f"{shown}: holds an array of shape {stored.shape}: {_advice(stored)}.")
        if 0 in stored.shape:
            raise InputError(
                f"{shown}: holds an array of shape {stored.shape}, no data: write it again."
            )
        return stored

    def _holds_statistics(self, found: Sequence[str]) -> bool:
        """Whether there are statistics beside the `found` features; refuse what is not clear."""
        keys = self.statistics_keys
        missing = [key for key in keys if key not in self.arrays]
        if missing and ("mu" in self.arrays or (not found and len(missing) < len(keys))):
            are = "is" if len(missing) == 1 else "are"
            raise InputError(
                f"{self.shown}: has statistics and no {' and '.join(missing)}, which {are} needed "
                "here."
            )
        if not missing and found == ["arr_0"] and self.pack:
            return True
        if len(found) > 1 or (found and not missing):
            both = [*found, *(() if missing else keys)]
            raise InputError(
                f"{self.shown}: is ambiguous, it has {' and '.join(both)}: "
                "keep one array of features, or only the statistics."
            )
        if not found and missing:
            raise InputError(
                f"{self.shown}: has no known array, only: {_names_of(self.arrays)}. Name the "
                "features `features`, `reps`, `feats` or `arr_0`, or the statistics `mu` and "
                "`sigma`."
            )
        return not missing

    @cached_property
    def pack(self) -> bool:
        """Whether these are images with the statistics of their features beside them.

        guided-diffusion publishes its references so: ``arr_0``, ``mu``, ``sigma`` and others.
        """
        if not all(key in self.arrays for key in ("arr_0", *STATISTICS_KEYS)):
            return False
        images = self.arrays["arr_0"]()
        return images.dtype == np.uint8 and len(images.shape) == 4

    def statistics(self) -> Statistics:
        """Read mean, covariance and what else is there of n and rows, as float64."""
        shown, keys = self.shown, self.statistics_keys
        mean, cov = (self.arrays[key]() for key in keys)
        if len(mean.shape) != 1 or 0 in mean.shape or cov.shape != mean.shape * 2:
            raise InputError(
                f"{shown}: {keys[0]} has shape {mean.shape} and {keys[1]} {cov.shape}: "
                "statistics need shapes (d,) and (d, d)."
            )
        others = {key: self.arrays[key]() for key in ("n", "rows") if key in self.arrays}
        for stored in (mean, cov, *others.values()):
            if stored.dtype.kind not in _REAL:
                raise _not_real(stored)
        n = _count(shown, others["n"]) if "n" in others else self.known_n()
        if self.pack:
            _log.warning(
                "%s: its statistics (%s%s) are taken, not its pictures: `genbounds features` "
                "encodes these.",
                shown,
                ", ".join(keys),
                "" if n is None else f"; n = {n:,}",
            )
        rows = _part(shown, others["rows"], mean.shape[0], n) if "rows" in others else None
        return Statistics(
            mean.load().astype(np.float64), cov.load().astype(np.float64), n, rows, self.origin
        )

    def images(self) -> Stored:
        """Return the array of images, its shape and type checked."""
        found = [key for key in FEATURE_KEYS if key in self.arrays]
        stored = self.arrays[found[0]]() if len(found) == 1 else None
        if (
            stored is None
            or stored.dtype != np.uint8
            or 0 in stored.shape
            or not (
                len(stored.shape) == 3 or (len(stored.shape) == 4 and stored.shape[3] in (1, 3))
            )
        ):
            what = "no array"
            if stored is not None:
                what = f"{display(stored.dtype, limit=40)} of shape {stored.shape}"
            raise InputError(
                f"{self.shown}: holds {what} where images are needed: uint8 of shape (n, h, w), "
                "(n, h, w, 1) or (n, h, w, 3), in .npy or .npz (arr_0)."
            )
        height, width = stored.shape[1:3]
        if height * width > _LARGEST_IMAGE:
            raise InputError(
                f"{self.shown}: holds images of {width} × {height} pixels, more than Pillow takes: "
                "save them at the encoder's size."
            )
        return stored

    def labels(self, *, groups: str | None, strata: str | None) -> Labels:
        """Read the labels of these names; by default of the usual ones, where they are there."""
        if groups is None and "groups" in self.arrays:
            groups = "groups"
        if strata is None:
            strata = next((name for name in ("strata", "labels") if name in self.arrays), None)
        return Labels(
            None if groups is None else self.label(groups),
            None if strata is None else self.label(strata),
        )

    def label(self, name: str, n: int | None = None) -> NDArray[Any]:
        """Read the array `name`: one label for each of n rows, by default of its features."""
        shown, called = self.shown, display(name, limit=40)
        if name not in self.arrays:
            raise InputError(
                f"{shown}: has no array {called}, only: {_names_of(self.arrays)}. Name one of "
                "these, or save it with them (.npz)."
            )
        rows = n if n is not None or self.features is None else self.features.shape[0]
        if rows is None:
            raise InputError(
                f"{shown}: holds statistics, which have no rows to label: use the features' own "
                "file."
            )
        if name in self.columns:
            raise InputError(
                f"{shown}: {called} is one of the numeric columns that are the features: call it "
                "`groups`, `strata` or `labels`, or keep the features in one column of lists."
            )
        stored = self.arrays[name]()
        if stored.shape != (rows,):
            raise InputError(
                f"{shown}: {called} has shape {stored.shape} beside {rows} rows: it needs one "
                "label a row."
            )
        if stored.dtype.kind not in "iubUS":
            raise InputError(
                f"{shown}: {called} holds {display(stored.dtype, limit=40)}: "
                "labels are integers or texts."
            )
        labels = stored.load()
        if labels.dtype.kind == "b":
            labels = labels.astype(np.int64)
        elif labels.dtype.kind == "S":
            labels = _decoded(shown, called, labels)
        elif name in self.names and labels.dtype.kind in "iu":
            labels = _named(shown, called, labels, self.names[name], self.packed)
        labels.flags.writeable = False
        return labels


def described(contents: Contents, metadata: Mapping[str, Any]) -> Contents:
    """Add what metadata say: where features came from, names of labels, digests of arrays.

    Raises
    ------
    ValueError
        If they hold the digest of an array that is not there.
    """
    origin, names = {}, {}
    for key, text in metadata.items():
        if key.startswith(DIGEST_KEY):
            if key.removeprefix(DIGEST_KEY) not in contents.arrays:
                raise ValueError("it lacks an array of which it has the checksum")
        elif isinstance(text, str) and key.endswith(NAMES_KEY):
            names[key.removesuffix(NAMES_KEY)] = text
        elif isinstance(text, str):
            origin[key] = text

    def array(name: str) -> Stored:
        digest = metadata.get(DIGEST_KEY + name)
        return replace(contents.arrays[name](), digest=digest, names=names.get(name, ""))

    arrays = {name: partial(array, name) for name in contents.arrays}
    return replace(contents, arrays=arrays, origin=origin, names=names)


def _advice(stored: Stored) -> str:
    """Say what to do with an array that holds no features, by what it looks like."""
    if len(stored.shape) == 5:
        return "videos are not read from arrays: compute features of the clips (n, d)"
    if len(stored.shape) == 4 and stored.shape[3] not in (1, 3) and stored.shape[1] in (1, 3):
        return "images are read as uint8 of shape (n, h, w, c): save x.transpose(0, 2, 3, 1)"
    if len(stored.shape) == 4 and stored.dtype.kind == "f":
        return "images are read as integers from 0 to 255: save them as uint8"
    return "features need shape (n, d), one row per sample"


def _names_of(arrays: Mapping[str, Any]) -> str:
    """Return the names of a file's arrays as one printable text."""
    shown = [display(key, limit=40) for key in arrays]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return (", ".join(shown[:8]) + more) or "nothing"


def _not_real(stored: Stored) -> InputError:
    return InputError(
        f"{stored.shown}: holds {display(stored.dtype, limit=60)}, not real numbers: "
        "save a float array of shape (n, d)."
    )


def _count(shown: str, stored: Stored) -> int:
    """Return the number of samples behind statistics."""
    count = stored.load().item() if math.prod(stored.shape) == 1 else "an array"
    if isinstance(count, str) or not (count >= 1.0 and count % 1.0 == 0.0):
        raise InputError(
            f"{shown}: n is {display(count, limit=40)}: it must be the number of samples, a whole "
            "number; leave it out if it is not known."
        )
    return int(count)


def _part(shown: str, stored: Stored, d: int, n: int | None) -> NDArray[Any]:
    """Return the rows that go with statistics."""
    if len(stored.shape) != 2 or stored.shape[1] != d or stored.shape[0] < 1:
        raise InputError(
            f"{shown}: rows has shape {stored.shape} beside a mu of {d} features: "
            f"it needs shape (k, {d}), some of the samples."
        )
    if n is not None and stored.shape[0] > n:
        raise InputError(
            f"{shown}: rows holds {stored.shape[0]} samples of {n}: write the statistics again."
        )
    return stored.load()


def _decoded(shown: str, called: str, labels: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.asarray(np.char.decode(labels, "utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{shown}: {called} holds bytes that are not UTF-8.") from error


def _named(shown: str, called: str, codes: NDArray[Any], text: str, packed: int) -> NDArray[Any]:
    """Return the names for which codes stand."""
    names: object = None
    with suppress(ValueError, RecursionError):
        names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{shown}: the names of {called} are damaged: write it again.")
    if codes.size and not (0 <= int(codes.min()) and int(codes.max()) < len(names)):
        raise InputError(
            f"{shown}: {called} holds numbers beyond its {len(names)} names: write it again."
        )
    known = np.array(names, dtype=np.str_)
    check_bomb(shown, codes.size * known.itemsize, packed, "labels")
    return np.asarray(known[codes])
