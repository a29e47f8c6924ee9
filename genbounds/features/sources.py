"""What is to be encoded: folders and archives of images, texts, arrays; one item after another.

Items come in an order that does not depend on the file system, each with a name for errors, so that
the same input gives the same rows. Archives are read member by member and never unpacked.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import logging
import math
import os
import stat
import tarfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds import files
from genbounds._process import silenced
from genbounds._text import display
from genbounds.features._encoder import Kind
from genbounds.files import FORMATS, check_bomb, image_count, open_zip
from genbounds.origins import FACTS, STAMPS, check_same_encoder
from genbounds.validation import InputError


class Item(NamedTuple):
    """One item to encode: its name in errors, and its content."""

    label: str
    content: Any


class Source(ABC):
    """Items to encode, in a fixed order.

    Attributes
    ----------
    kind : {"images", "texts", "files", "rows"}
    count : int or None
        How many items; None where only reading all of it would tell.
    inputs : tuple of Path
        What `open_source` was given.
    """

    kind: Kind
    count: int | None = None
    inputs: tuple[Path, ...] = ()
    _path: Path
    _names: Sequence[str] = ()

    def fingerprint(self) -> str:
        """Return a text that changes when the content does (names, sizes, times)."""
        status = self._path.stat()
        return f"{self._path.name} {status.st_size} {status.st_mtime_ns}"

    @abstractmethod
    def items(self, start: int = 0) -> Iterator[Item]:
        """Yield the items from number `start` on."""

    def decode(self, content: Any) -> Any:
        """Turn an item's content into what encoders take; called from several threads."""
        picture = self.kind == "images" and isinstance(content, (Path, bytes))
        return _decode_image(content) if picture else content

    def origin(self) -> Mapping[str, str]:
        """Return what the input says of the encoder that made it, if it holds features."""
        return {}

    def labels(self) -> dict[str, NDArray[Any]]:
        """Return labels (n,) of the items, by name; complete once all items have been read.

        By default the sub-folders that they lie in, if there are at least two.
        """
        folders = [name.rpartition("/")[0] or "." for name in self._names]
        if len(set(folders)) < 2:
            return {}
        shown = {folder: display(folder, limit=None) for folder in set(folders)}
        return {"labels": np.array([shown[folder] for folder in folders])}

    def names(self) -> Sequence[str]:
        """Return what the items are called within the input; complete once all have been read.

        Empty where items are known by their number alone.
        """
        return self._names

    def pick(self, numbers: Iterable[int]) -> Iterator[tuple[int, Item]]:
        """Yield the items of these `numbers`; what cannot be read is left out."""
        for number in sorted(set(numbers)):
            with suppress(InputError):
                yield from ((number, item) for item in islice(self.items(number), 1))

    def survey(self, looked: int = 1000) -> dict[str, Counter[str]]:
        """Count what the headers of about `looked` pictures say, all through the input.

        Returns
        -------
        dict of str to Counter
            Of `genbounds.origins.FACTS`; empty if the items are no pictures.
        """
        if self.kind != "images":
            return {}
        found: dict[str, Counter[str]] = {fact: Counter() for fact in FACTS}
        if self.count is None:  # an archive that is read from its beginning
            items: Iterable[Item] = islice(self.items(), looked)
        else:
            step = -(-self.count // looked)
            items = (item for _, item in self.pick(range(0, self.count, step)))
        with suppress(InputError):  # who reads the items says what is wrong with them
            for item in items:
                with suppress(InputError):
                    for fact, value in _facts_of(item.content).items():
                        found[fact][value] += 1
        return found


def item_names(names: Sequence[str]) -> NDArray[np.str_]:
    """Return `names` as file formats take them: text, escaped where it is not printable."""
    return np.array([display(name, limit=None) for name in names], dtype=np.str_)


def _ending_of(path: Path) -> str:
    name = path.name.lower()
    return ".tar.gz" if name.endswith(".tar.gz") else path.suffix.lower()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what reading raises into one InputError."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of the disk, of a zip, of a tar: no list of them is complete
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(
            f"{display(path)}: cannot be read ({display(reason or error)}): "
            "check its permissions, or write it again."
        ) from error


# --- images ---------------------------------------------------------------------------------------

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
# What a file may be, whatever it is called. Others run programs: EPS starts Ghostscript.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
# Photographs shrink 10- to 50-fold. What claims more than `_BOMB_PIXELS` values from less than
# 1/`_BOMB_RATIO` of that is refused before it takes the memory.
_BOMB_RATIO = 200
_ORIENTATION = 0x0112
_BOMB_PIXELS = 1 << 26


def _is_image(name: str) -> bool:
    path = Path(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return path.suffix.lower() in IMAGES and not hidden


def _decode_image(content: Path | bytes) -> Any:
    """Open an image and read its pixels."""
    with _opened(content) as image:
        image.load()
        return image.copy()


def _facts_of(content: Any) -> dict[str, str]:
    """Say what the header of an image, or an array, tells of `genbounds.origins.FACTS`."""
    if isinstance(content, np.ndarray):
        height, width = content.shape[:2]
        return _facts("array", "RGB" if content.shape[2:] == (3,) else "L", height * width)
    with _opened(content) as image:
        facts = _facts(image.format, image.mode, math.prod(image.size))
        if image.getexif().get(_ORIENTATION, 1) != 1:
            facts["lost"] = "turned"
        elif image.mode.startswith(("I", "F")) and image.getextrema()[1] > 255:
            facts["lost"] = "deep"
        return facts


def _facts(form: str, mode: str, area: int) -> dict[str, str]:
    return {"format": form, "mode": mode, "side": f"{math.sqrt(area):.4g}"}


@contextmanager
def _opened(content: Path | bytes) -> Iterator[Any]:
    """Open an image, whose pixels are read by whoever asks for them."""
    from PIL import Image, UnidentifiedImageError

    with io.BytesIO(content) if isinstance(content, bytes) else _regular(content) as file:
        stored = file.seek(0, os.SEEK_END)
        file.seek(0)
        try:
            # Between once and twice Pillow's limit it warns; that may still be a photograph. It
            # does when it opens a file, not when it decodes it, which several threads do at once.
            with silenced(Image.DecompressionBombWarning):
                opened = Image.open(file, formats=_FORMATS)
            with opened as image:
                pixels = math.prod(image.size) * len(image.getbands())
                if pixels > _BOMB_PIXELS and pixels > _BOMB_RATIO * stored:
                    width, height = image.size
                    raise InputError(
                        f"is an image of {width} × {height} in {stored:,} bytes, which no "
                        "photograph is: if it is genuine, save it at the encoder's size"
                    )
                yield image
        except InputError:
            raise
        except UnidentifiedImageError as error:  # its text holds an address, or the path again
            known = ", ".join(_FORMATS)
            raise InputError(f"is not an image of a known format ({known})") from error
        except Image.DecompressionBombError as error:
            raise InputError(f"is too large an image ({display(error, limit=80)})") from error
        except Exception as error:  # every plug-in has its own
            raise InputError(f"is a damaged image ({display(error, limit=80)})") from error


def _regular(path: Path) -> IO[bytes]:
    """Open a file; refuse a pipe."""
    try:
        if stat.S_ISREG(path.stat().st_mode):
            return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read ({display(error.strerror)})") from error
    raise InputError("is not a regular file: take it out of the folder")


_log = logging.getLogger("genbounds.features")

# --- kinds of input -------------------------------------------------------------------------------

TEXTS = (".txt", ".jsonl")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
# An image of Pillow's largest legal size takes less; more is no image.
_LARGEST_MEMBER = 1 << 30
_LARGEST_READ = 1 << 24


class _Files(Source):
    """All files below a folder, or all images, in the order of their relative paths."""

    def __init__(self, folder: Path, kind: Kind) -> None:
        self._path, self.kind = folder, kind
        self._names = sorted(self._walk(folder, "", set()))
        if not self._names:
            what = "files" if kind == "files" else f"images ({', '.join(IMAGES)})"
            found = f"has no {what}" if os.listdir(folder) else "is empty"
            raise InputError(f"{display(folder)}: {found}: check the path.")
        self.count = len(self._names)

    def _walk(self, folder: Path, prefix: str, seen: set[str]) -> Iterator[str]:
        """Yield the relative paths of all files, links followed; each folder once."""
        where = os.path.realpath(folder)
        if where in seen:  # a link that leads back
            return
        seen.add(where)
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir():
                    yield from self._walk(folder / entry.name, f"{name}/", seen)
                elif _is_image(name) if self.kind == "images" else "/." not in f"/{name}":
                    if not entry.is_file():
                        dangling = entry.is_symlink() and not os.path.exists(entry)
                        what = "a link to a file that is gone" if dangling else "not a regular file"
                        raise InputError(f"{display(entry)}: is {what}: take it out of the folder.")
                    yield name

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name in self._names:
            try:
                status = (self._path / name).stat()
            except OSError as error:
                raise InputError(
                    f"{display(self._path / name)}: was removed meanwhile: run this again."
                ) from error
            digest.update(os.fsencode(name))
            digest.update(f" {status.st_size} {status.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def items(self, start: int = 0) -> Iterator[Item]:
        for name in self._names[start:]:
            yield Item(display(self._path / name), self._path / name)


class _Stacked(Source):
    """Images in one array, as samplers leave them."""

    kind: Kind = "images"
    count: int

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = files.image_count(path)

    def labels(self) -> dict[str, NDArray[Any]]:
        return files.label_arrays(self._path, self.count)

    def items(self, start: int = 0) -> Iterator[Item]:
        for number, image in enumerate(files.stream_images(self._path, start), start=start):
            yield Item(f"{display(self._path)}, image {number}", image)


class _Rows(_Stacked):
    """Features that somebody computed already."""

    kind: Kind = "rows"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = len(files.read_features(path))

    def origin(self) -> Mapping[str, str]:
        known = files.read_metadata(self._path)
        return {key: value for key, value in known.items() if key not in STAMPS}

    def items(self, start: int = 0) -> Iterator[Item]:
        # A plain view: memmap's own indexing is slow.
        rows = np.asarray(files.read_features(self._path))
        shown = display(self._path)
        for number in range(start, len(rows)):
            yield Item(f"{shown}, row {number}", rows[number])


class Given(Source):
    """Items that are at hand already: what a live arm drew. Each is looked at when it is needed."""

    def __init__(self, items: Sequence[Any], *, kind: Kind, label: str) -> None:
        self._items, self._label, self.kind = items, label, kind
        self.count = len(items)

    def fingerprint(self) -> str:
        """Return nothing: they are not read again."""
        return ""

    def items(self, start: int = 0) -> Iterator[Item]:
        """Yield them from number `start` on."""
        for number in range(start, len(self._items)):
            yield Item(f"{self._label}, item {number}", self._items[number])


class _Texts(Source):
    """The lines of a text file, or the texts in a JSON-lines file; blank lines separate."""

    kind: Kind = "texts"

    def __init__(self, path: Path, *, field: str) -> None:
        self._path, self._field = path, field
        self.count = sum(1 for _ in self._lines())
        if not self.count:
            raise InputError(f"{display(path)}: has no text: write one text per line.")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line

    def fingerprint(self) -> str:
        return f"{super().fingerprint()} {self._field}"

    def items(self, start: int = 0) -> Iterator[Item]:
        with _readable(self._path):
            for number, line in islice(self._lines(), start, None):
                label = f"{display(self._path)}, line {number}"
                try:
                    text = self._text(line, "utf-8-sig" if number == 1 else "utf-8")
                except (RecursionError, ValueError, KeyError) as error:
                    raise InputError(f"{label}: {self._what_is_wrong(error)}.") from error
                yield Item(label, text)

    def _text(self, line: bytes, encoding: str) -> str:
        text = line.decode(encoding).strip()
        if _ending_of(self._path) == ".jsonl":
            content = json.loads(text)
            text = content[self._field] if isinstance(content, dict) else content
            if not isinstance(text, str):
                raise KeyError(self._field)
            text.encode()
        return text

    def _what_is_wrong(self, error: Exception) -> str:
        if isinstance(error, UnicodeDecodeError):
            return "is not UTF-8: convert the file"
        if isinstance(error, UnicodeEncodeError):
            return "holds half of a surrogate pair, which is not a character: write the text again"
        if isinstance(error, json.JSONDecodeError):
            return f"is not JSON ({error.msg})"
        if isinstance(error, KeyError):
            return f"has no text called {self._field!r}: name the key with --field"
        # Thousands of brackets, or of digits.
        return "is not a text: write a string, or an object that has one"


# --- archives -------------------------------------------------------------------------------------


class _Member(NamedTuple):
    """An image in an archive: its size there, packed too, and what reads it."""

    name: str
    size: int
    packed: int
    read: Callable[[], bytes]


class _Archive(Source):
    """Images in an archive, which is opened once for all that is read of it together."""

    kind: Kind = "images"

    def __init__(self, path: Path) -> None:
        self._path = path

    @abstractmethod
    def _members(self) -> Iterator[_Member]:
        """Yield the images in their order; their names are known in the end."""

    def items(self, start: int = 0) -> Iterator[Item]:
        with _readable(self._path):
            yield from map(self._item, islice(self._members(), start, None))
        self._check_not_empty()

    def pick(self, numbers: Iterable[int]) -> Iterator[tuple[int, Item]]:
        wanted = set(numbers)
        with suppress(InputError), _readable(self._path):
            for number, member in enumerate(self._members()):
                if number in wanted:
                    with suppress(InputError):
                        yield number, self._item(member)

    def _label(self, name: str) -> str:
        return f"{display(self._path)} ({display(name, limit=80)})"

    def _check_not_empty(self) -> None:
        if not self._names:
            raise InputError(f"{display(self._path)}: has no images ({', '.join(IMAGES)}).")

    def _item(self, member: _Member) -> Item:
        label = self._label(member.name)
        if member.size > _LARGEST_MEMBER:
            raise InputError(f"{label}: is larger than any image: take it out.")
        check_bomb(label, member.size, member.packed, "images")
        try:
            return Item(label, member.read())
        except Exception as error:  # every way of packing has its own
            raise InputError(
                f"{label}: cannot be read ({display(error, limit=80)}): "
                "write the archive again, without a password."
            ) from error


class _Zip(_Archive):
    """The images in a zip archive, in the order of their names."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with open_zip(path) as archive:
            for info in archive.filelist:
                # Compare both names of what is no image: one flipped bit, and it was one. Those of
                # an image are compared when it is read.
                if not _is_image(info.filename):
                    with suppress(RuntimeError):  # it has a password, or is packed in no known way
                        archive.open(info).close()
        self.count = sum(1 for _ in self._members())
        self._check_not_empty()

    def _members(self) -> Iterator[_Member]:
        with open_zip(self._path) as archive:
            images = [info for info in archive.filelist if _is_image(info.filename)]
            images.sort(key=lambda info: info.filename)
            self._names = [info.filename for info in images]
            for info in images:
                read = partial(archive.read, info)
                yield _Member(info.filename, info.file_size, info.compress_size, read)


class _Tar(_Archive):
    """The images in a tar archive, a webdataset shard for one, in their order there.

    Read as a stream: no index is kept. A compressed archive is not counted beforehand, which would
    unpack it once more.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if _ending_of(path) == ".tar":
            self.count = sum(1 for _ in self._members())
            self._check_not_empty()

    def _members(self) -> Iterator[_Member]:
        packed, last = self._path.stat().st_size, -1
        plain = _ending_of(self._path) == ".tar"
        opened: Any = open(self._path, "rb") if plain else gzip.open(self._path)
        reader: Any = _InPieces(opened)
        names = []
        with opened, tarfile.open(fileobj=reader, mode="r:", tarinfo=_Header) as archive:
            for info in archive:
                if info.offset <= last:  # a negative size sends tarfile back, for ever
                    raise tarfile.ReadError("its members go round in a circle")
                last = info.offset
                if (info.issym() or info.islnk()) and _is_image(info.name):
                    raise InputError(
                        f"{self._label(info.name)}: is a link to {display(info.linkname)}: "
                        "pack the images themselves (tar --dereference --hard-dereference)."
                    )
                if info.isfile() and _is_image(info.name):
                    names.append(info.name)
                    yield _Member(info.name, info.size, packed, partial(_content, archive, info))
                archive.members = []  # type: ignore[attr-defined]  # else it remembers every member that it has seen
            if not plain:  # the checksum stands at the end
                for _ in iter(partial(opened.read, _LARGEST_READ), b""):
                    pass
        self._names = names


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(info)
    assert file is not None  # it is a regular file
    return b"".join(iter(partial(file.read, _LARGEST_READ), b""))


class _Header(tarfile.TarInfo):
    """The header of a member; tarfile takes a damaged one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Any:
        try:
            return super().fromtarfile(archive)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError(str(error)) from error


class _InPieces:
    """A file for tarfile, which reads a name or a comment of any size that a header claims."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file: Any = file
        self.tell, self.seek = file.tell, file.seek

    def read(self, size: int) -> Any:
        if size > _LARGEST_READ:
            raise tarfile.ReadError(f"a header announces {size} bytes")
        return self._file.read(size)


# --- several inputs -------------------------------------------------------------------------------


class _Chain(Source):
    """Several inputs of one kind, one after the other."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self._parts = parts
        self.kind = parts[0].kind
        counts = [part.count for part in parts]
        self.count = None if None in counts else sum(count or 0 for count in counts)

    def fingerprint(self) -> str:
        return "\n".join(part.fingerprint() for part in self._parts)

    def origin(self) -> Mapping[str, str]:
        origins = {f"input {number}": part.origin() for number, part in enumerate(self._parts, 1)}
        check_same_encoder(origins)
        return next((origin for origin in origins.values() if origin), {})

    def labels(self) -> dict[str, NDArray[Any]]:
        found = [part.labels() for part in self._parts]
        common = set.intersection(*(set(labels) for labels in found))
        for name in sorted(set().union(*found) - common):
            _log.warning("%s are not kept: some inputs have none.", name)
        return {name: np.concatenate([labels[name] for labels in found]) for name in sorted(common)}

    def survey(self, looked: int = 1000) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for part in self._parts:
            for fact, counts in part.survey(-(-looked // len(self._parts))).items():
                found[fact] = found.get(fact, Counter()) + counts
        return found

    def names(self) -> Sequence[str]:
        found = [part.names() for part in self._parts]
        return [name for names in found for name in names] if all(found) else ()

    def items(self, start: int = 0) -> Iterator[Item]:
        if self.count is None:  # of what is not counted, all is read
            every = chain.from_iterable(part.items() for part in self._parts)
            yield from islice(every, start, None)
            return
        for part in self._parts:
            count = part.count or 0
            if start < count:
                yield from part.items(start)
            start = max(start - count, 0)


def is_media(path: Path) -> bool:
    """Whether a path is something to encode, rather than a file of features."""
    return media_kind(path) is not None


def media_kind(path: Path) -> str | None:
    """Say what there is to encode at `path`, in words; None if it is a file of features."""
    if path.is_dir():
        return "a folder of images"
    if path.name.lower().endswith(ARCHIVES):
        return "an archive of images"
    if path.name.lower().endswith(TEXTS):
        return "a file of texts"
    return "an array of images" if _holds_images(path) else None


def _holds_images(path: Path) -> bool:
    """Whether a NumPy file is an array of images; not, if it is damaged: its reader says so."""
    with suppress(InputError):
        return _ending_of(path) in (".npy", ".npz") and image_count(path) > 0
    return False


def open_source(
    inputs: Sequence[str | os.PathLike[str]], *, items: Kind | None = None, field: str = "text"
) -> Source:
    """Open what is to be encoded.

    Parameters
    ----------
    inputs : sequence of path-like
        Folders of images (searched through, in the order of their paths), ``.zip`` or ``.tar``
        archives of them (webdataset shards), ``.npy`` or ``.npz`` with a uint8 array of images,
        ``.txt`` (a text per line), ``.jsonl``, or files of
        features (rows). Several are read one after the other as one.
    items : {"images", "texts", "files", "rows"}, optional
        What to take them for; decided by their names if not given. "files": the paths of all
        files in a folder, for encoders that read them themselves (audio, video).
    field : str
        The key of the text in a ``.jsonl`` file of objects.

    Raises
    ------
    InputError
        If one is missing, empty, unreadable or of another kind than the first.
    """
    if not inputs:
        raise InputError("no input: name a folder or a file.")
    parts = [_open(Path(path), items, field) for path in inputs]
    for path, part in zip(inputs, parts, strict=True):
        if part.kind != parts[0].kind:
            raise InputError(
                f"{display(path)} holds {part.kind} and {display(inputs[0])} {parts[0].kind}: "
                "encode them separately."
            )
    source = parts[0] if len(parts) == 1 else _Chain(parts)
    source.inputs = tuple(map(Path, inputs))
    return source


def _open(path: Path, items: Kind | None, field: str) -> Source:
    shown = display(path)
    ending = _ending_of(path)
    with _readable(path):
        if not path.exists():
            raise InputError(f"{shown}: no such file or folder: check the path.")
        if path.is_dir():
            return _Files(path, "files" if items == "files" else "images")
        if not path.is_file():  # a pipe, for whose writer this would wait
            raise InputError(f"{shown}: is not a regular file: save it to disk first.")
        if items == "files":
            raise InputError(f'{shown}: is a file: `items` "files" takes a folder.')
        if ending == ".zip":
            return _Zip(path)
        if ending in ARCHIVES:
            return _Tar(path)
        if ending in TEXTS:
            return _Texts(path, field=field)
        if items == "images" or (items is None and _holds_images(path)):
            return _Stacked(path)
        if ending in FORMATS or ending == ".pth":
            return _Rows(path)
    raise InputError(
        f"{shown}: has no known ending: give a folder of images, an archive "
        f"({', '.join(ARCHIVES)}), texts ({', '.join(TEXTS)}) or features ({', '.join(FORMATS)})."
    )
