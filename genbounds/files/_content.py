"""What a file may hold: features or statistics, and labels, under names that the field uses."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from io import BytesIO
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genbounds import _process
from genbounds._text import display
from genbounds.origins import marked
from genbounds.validation import Float, InputError

_log = logging.getLogger("genbounds.files")

FEATURE_KEYS = ("features", "reps", "feats", "arr_0")  # dgm-eval: reps; clean-fid: feats
STATISTICS_KEYS = ("mu", "sigma")
LABEL_KEYS = ("groups", "seeds", "order", "strata", "labels")
USUAL_LABELS = {"groups": ("groups",), "strata": ("strata", "labels")}
"""Arrays that are taken for the groups, and for the strata, of rows."""
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
    stream : callable
        Opens what its bytes lie in as they are: row after row, or column after column if `fortran`.
    place, skip : int
        They begin at byte `place` of the stream, after `skip` bytes that are read as well: to go
        past those of a zip archive would leave out its checksum.
    blocks : callable or None
        Yields its bytes, row after row, where they do not lie in the file as they are.
    make : callable or None
        Returns the array, where something else has made it.
    digest : object
        Digest of its bytes, with `names` as `digest_of` takes them; None if the file has none.
    """

    shown: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _: KW_ONLY
    stream: Callable[[], AbstractContextManager[IO[bytes]]] = BytesIO
    place: int = 0
    skip: int = 0
    fortran: bool = False
    blocks: Callable[[], Iterator[bytes]] | None = None
    make: Callable[[], NDArray[Any]] | None = None
    digest: object = None
    names: str = ""

    def load(self) -> NDArray[Any]:
        """Return the array, read-only."""
        if self.make is not None:
            return self.make()
        pieces = self.pieces()
        return _process.gather(pieces, dtype=self.dtype, shape=self.shape, fortran=self.fortran)

    def chunks(self) -> Iterator[bytes]:
        """Return its bytes, row after row."""
        if self.make is None and not self.fortran:
            return self.pieces()
        array = self.load()
        return (array[part].tobytes() for part in _process.row_parts(array))

    def pieces(self, size: int = 0, start: int = 0) -> Iterator[bytes]:
        """Yield its bytes as they lie in the file, `size` at a time, from piece `start` on.

        Of the whole array the digest is compared: ValueError if it is another's.
        """
        if self.blocks is not None:
            yield from self.blocks()
            return
        digest = None
        if self.digest is not None:
            digest = digest_of(self.dtype, self.shape, self.names)
        left = self.dtype.itemsize * math.prod(self.shape) - start * size
        with self.stream() as stream:
            stream.seek(self.place)
            stream.read(self.skip)
            stream.seek(start * size, os.SEEK_CUR)
            while left > 0 and (piece := stream.read(min(size or _process.CHUNK, left))):
                left -= len(piece)
                if digest is not None:
                    digest.update(piece)
                yield piece
        if digest is not None and digest.hexdigest() != self.digest:
            raise ValueError("its numbers do not fit the checksum in it")


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
        return marked(array, self.origin) if self.origin else array

    @cached_property
    def features(self) -> Stored | None:
        """The features, their shape and type checked; None if the file holds statistics."""
        found = [key for key in FEATURE_KEYS if key in self.arrays]
        if len(found) != 1 or not self.arrays.keys().isdisjoint(("mu", *self.statistics_keys)):
            if self._holds_statistics(found):
                return None
        stored = self.arrays[found[0]]()
        if stored.dtype.kind not in _REAL:
            raise _not_real(stored)
        shape = stored.shape
        if self.values and len(shape) == 1:
            column, shape = stored, (*shape, 1)
            stored = replace(column, shape=shape, make=lambda: column.load()[:, np.newaxis])
        if len(shape) != 2 or 0 in shape:
            fault = f": {_advice(stored)}" if len(shape) != 2 else ", no data: write it again"
            raise InputError(f"{self.shown}: holds an array of shape {shape}{fault}.")
        return stored

    def _holds_statistics(self, found: Sequence[str]) -> bool:
        """Whether there are statistics beside the `found` features; refuse what is not clear."""
        keys = self.statistics_keys
        missing = [key for key in keys if key not in self.arrays]
        if missing and ("mu" in self.arrays or (not found and len(missing) < len(keys))):
            are = "is" if len(missing) == 1 else "are"
            why = f"has statistics and no {' and '.join(missing)}, which {are} needed here"
        elif not missing and (not found or (found == ["arr_0"] and self.pack)):
            return True
        elif missing and len(found) == 1:
            return False
        elif found:
            both = " and ".join([*found, *(() if missing else keys)])
            why = f"is ambiguous, it has {both}: keep one array of features, or only the statistics"
        else:
            why = (
                f"has no known array, only: {_names_of(self.arrays)}. Name the features "
                "`features`, `reps`, `feats` or `arr_0`, or the statistics `mu` and `sigma`"
            )
        raise InputError(f"{self.shown}: {why}.")

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
            size = "" if n is None else f"; n = {n:,}"
            _log.warning(
                f"{shown}: its statistics ({', '.join(keys)}{size}) are taken, not its pictures: "
                "`genbounds features` encodes these."
            )
        rows = _part(shown, others["rows"], mean.shape[0], n) if "rows" in others else None
        first, second = (stored.load().astype(np.float64) for stored in (mean, cov))
        return Statistics(first, second, n, rows, self.origin)

    def images(self) -> Stored:
        """Return the array of images, its shape and type checked."""
        found = [key for key in FEATURE_KEYS if key in self.arrays]
        stored = self.arrays[found[0]]() if len(found) == 1 else None
        shape = () if stored is None else stored.shape
        forms = ((3,), (4, 1), (4, 3))  # of how many dimensions, and channels
        if (
            stored is None
            or stored.dtype != np.uint8
            or 0 in shape
            or ((len(shape), *shape[3:]) not in forms)
        ):
            what = "no array"
            if stored is not None:
                what = f"{display(stored.dtype, limit=40)} of shape {shape}"
            raise InputError(
                f"{self.shown}: holds {what} where images are needed: uint8 of shape (n, h, w), "
                "(n, h, w, 1) or (n, h, w, 3), in .npy or .npz (arr_0)."
            )
        height, width = shape[1:3]
        if height * width > _LARGEST_IMAGE:
            raise InputError(
                f"{self.shown}: holds images of {width} × {height} pixels, more than Pillow takes: "
                "save them at the encoder's size."
            )
        return stored

    def label(self, name: str, n: int | None = None) -> NDArray[Any]:
        """Read the array `name`: one label for each of n rows, by default of its features."""
        called = display(name, limit=40)
        if name in self.arrays and n is None:
            n = None if self.features is None else self.features.shape[0]
        stored = self.arrays[name]() if name in self.arrays and name not in self.columns else None
        if name not in self.arrays:
            fault = (
                f"has no array {called}, only: {_names_of(self.arrays)}. Name one of these, or "
                "save it with them (.npz)"
            )
        elif n is None:
            fault = "holds statistics, which have no rows to label: use the features' own file"
        elif stored is None:
            fault = (
                f"{called} is one of the numeric columns that are the features: call it "
                "`groups`, `strata` or `labels`, or keep the features in one column of lists"
            )
        elif stored.shape != (n,):
            fault = f"{called} has shape {stored.shape} beside {n} rows: it needs one label a row"
        elif stored.dtype.kind not in "iubUS":
            kind = display(stored.dtype, limit=40)
            fault = f"{called} holds {kind}: labels are integers or texts"
        else:
            labels = self._texts(name, f"{self.shown}: {called}", stored.load())
            labels.flags.writeable = False
            return labels
        raise InputError(f"{self.shown}: {fault}.")

    def _texts(self, name: str, called: str, labels: NDArray[Any]) -> NDArray[Any]:
        """Return labels as integers or texts: as the names for which they stand, if they do."""
        if labels.dtype.kind == "b":
            return labels.astype(np.int64)
        if labels.dtype.kind == "S":
            try:
                return np.asarray(np.char.decode(labels, "utf-8"))
            except UnicodeDecodeError as error:
                raise InputError(f"{called} holds bytes that are not UTF-8.") from error
        if name not in self.names or labels.dtype.kind == "U":
            return labels
        names: object = None
        with suppress(ValueError, RecursionError):
            names = json.loads(self.names[name])
        if not isinstance(names, list) or not all(isinstance(text, str) for text in names):
            raise InputError(f"{called} has damaged names: write it again.")
        if labels.size and not (0 <= int(labels.min()) and int(labels.max()) < len(names)):
            raise InputError(
                f"{called} holds numbers beyond its {len(names)} names: write it again."
            )
        known = np.array(names, dtype=np.str_)
        check_bomb(self.shown, labels.size * known.itemsize, self.packed, "labels")
        return np.asarray(known[labels])


def described(contents: Contents, metadata: Mapping[str, Any]) -> Contents:
    """Add what metadata say: where features came from, names of labels, digests of arrays.

    Raises
    ------
    ValueError
        If they hold the digest of an array that is not there.
    """
    digests = {key.removeprefix(DIGEST_KEY) for key in metadata if key.startswith(DIGEST_KEY)}
    if not digests <= contents.arrays.keys():
        raise ValueError("it lacks an array of which it has the checksum")
    texts = {
        key: text
        for key, text in metadata.items()
        if isinstance(text, str) and not key.startswith(DIGEST_KEY)
    }
    origin = {key: text for key, text in texts.items() if not key.endswith(NAMES_KEY)}
    names = {key.removesuffix(NAMES_KEY): texts[key] for key in texts.keys() - origin.keys()}

    def array(name: str) -> Stored:
        digest = metadata.get(DIGEST_KEY + name)
        return replace(contents.arrays[name](), digest=digest, names=names.get(name, ""))

    arrays = {name: partial(array, name) for name in contents.arrays}
    return replace(contents, arrays=arrays, origin=origin, names=names)


# --- one array, as NumPy writes it ----------------------------------------------------------------

# A header of NumPy's own is some hundred bytes; its reader refuses more than 10,000 characters.
_LONGEST_NPY_HEADER = 1 << 16

_NPY_HEADERS = {
    b"\x01\x00": (2, np.lib.format.read_array_header_1_0),
    b"\x02\x00": (4, np.lib.format.read_array_header_2_0),
}
"""By version: bytes of the header's length, and its reader. Later ones are of structured arrays."""


def npy_contents(
    file: IO[bytes],
    size: int,
    shown: str,
    stream: Callable[[], AbstractContextManager[IO[bytes]]] | None = None,
) -> Contents:
    """Read the header of a ``.npy`` file and check it against the bytes that are there.

    `stream` opens it anew, where `file` is none that can go back.
    """
    magic = file.read(8)
    if not magic.startswith(b"\x93NUMPY"):
        fault = "is not a NumPy file: write it again with numpy.save"
        if magic.startswith(b"PK"):
            fault = "is not a NumPy file: it is a zip archive, call it .npz"
        elif magic[:1] == b"\x80" and magic[1:2] in b"\x02\x03\x04\x05":
            fault = (
                "is a pickle, which is never loaded: "
                "save the array with numpy.save(path, array, allow_pickle=False)"
            )
        raise InputError(f"{shown}: {fault}.")
    if magic[6:8] not in _NPY_HEADERS:
        raise InputError(
            f"{shown}: is of a NumPy format for structured arrays: save a plain float array."
        )
    try:
        width, reader = _NPY_HEADERS[magic[6:8]]
        length = file.read(width)
        # A forged header announces 4 GiB, which NumPy would read before it refuses them.
        text = file.read(min(int.from_bytes(length, "little"), _LONGEST_NPY_HEADER))
        shape, fortran, dtype = reader(BytesIO(length + text))
        if any(isinstance(side, bool) for side in shape):  # an integer, by Python's reckoning
            raise ValueError("truth values for a shape")
    except Exception as error:  # whatever Python's tokeniser raises; the text quotes the header
        raise InputError(f"{shown}: has a damaged NumPy header: write it again.") from error
    if dtype.hasobject:
        raise InputError(
            f"{shown}: holds pickled Python objects, which are never loaded: "
            "save features as a plain float array of shape (n, d), labels as integers or texts."
        )
    header = file.tell()
    declared = math.prod(shape) * dtype.itemsize if min(shape, default=0) >= 0 else -1
    if declared != size - header:
        raise InputError(
            f"{shown}: is truncated or damaged, its header announces shape "
            f"{display(shape, limit=60)} ({display(declared, limit=40)} bytes) "
            f"and {size - header} bytes follow: write it again."
        )
    again = stream or (lambda: nullcontext(file))
    stored = Stored(shown, shape, dtype, fortran=fortran, stream=again, skip=header)
    return Contents(shown, size, {"features": lambda: stored})


# --- what is wrong with it ------------------------------------------------------------------------


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
