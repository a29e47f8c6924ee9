"""What is to be encoded: folders and archives of images, texts, arrays; one item after another.

Items come in an order that does not depend on the file system, so that the same input gives the
same rows. Archives are read member by member and never unpacked.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import struct
import tarfile
import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from genbounds.features._encoder import Kind
from genbounds.files import (
    FORMATS,
    check_bomb,
    display,
    read_features,
    read_images,
    read_metadata,
)
from genbounds.origins import check_same_encoder
from genbounds.validation import InputError

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
TEXTS = (".txt", ".jsonl")
# An image of Pillow's largest legal size takes less; more is no image.
_LARGEST_MEMBER = 1 << 30
_LARGEST_READ = 1 << 24
# Photographs shrink 10- to 50-fold. What claims more than `_BOMB_PIXELS` values from less than
# 1/`_BOMB_RATIO` of that is refused before it takes the memory.
_BOMB_RATIO = 200
_BOMB_PIXELS = 1 << 26


class Item(NamedTuple):
    """One thing to encode: how an error calls it, and its content."""

    label: str
    content: Any


class Source(ABC):
    """Items to encode, in a fixed order.

    Attributes
    ----------
    kind : {"images", "texts", "files", "rows"}
    count : int or None
        How many items; None where only reading all of it would tell.
    """

    kind: Kind
    count: int | None = None

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a text that changes when the content does (names, sizes, times)."""

    @abstractmethod
    def items(self, start: int = 0) -> Iterator[Item]:
        """Yield the items from number `start` on."""

    def origin(self) -> Mapping[str, str]:
        """Return what the input says of the encoder that made it, if it holds features."""
        return {}

    def decode(self, content: Any) -> Any:
        """Turn an item's content into what encoders take; called from several threads."""
        return content


def is_media(path: Path) -> bool:
    """Whether a path is something to encode, rather than a file of features."""
    return path.is_dir() or _ending(path) in (*ARCHIVES, *TEXTS) or _holds_images(path)


def _holds_images(path: Path) -> bool:
    """Whether a NumPy file is an array of images; a damaged one is left to whoever reads it."""
    if _ending(path) not in (".npy", ".npz"):
        return False
    try:
        return read_images(path) is not None
    except InputError:
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
        ``.txt`` (a text a line), ``.jsonl``, or files of
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
        raise InputError("nothing to encode: name a folder or a file.")
    parts = [_open(Path(path), items, field) for path in inputs]
    for path, part in zip(inputs, parts, strict=True):
        if part.kind != parts[0].kind:
            raise InputError(
                f"{display(path)} holds {part.kind} and {display(inputs[0])} {parts[0].kind}: "
                "encode them separately."
            )
    return parts[0] if len(parts) == 1 else _Chain(parts)


def _open(path: Path, items: Kind | None, field: str) -> Source:
    shown = display(path)
    ending = _ending(path)
    with _readable(shown):
        if not path.exists():
            raise InputError(f"{shown}: no such file or folder: check the path.")
        if path.is_dir():
            return _Files(path) if items == "files" else _Folder(path)
        if items == "files":
            raise InputError(f"{shown}: is a file where a folder of files is needed.")
        if ending == ".zip":
            return _Zip(path)
        if ending in ARCHIVES:
            return _Tar(path)
        if ending in TEXTS:
            return _Texts(path, field=field)
        if items == "images" or (items is None and _holds_images(path)):
            return _Stacked(path)
        if ending in FORMATS or ending == ".pth":
            return Rows(path)
    raise InputError(
        f"{shown}: is nothing that can be encoded: give a folder of images, an archive "
        f"({', '.join(ARCHIVES)}), texts ({', '.join(TEXTS)}) or features ({', '.join(FORMATS)})."
    )


def _ending(path: Path) -> str:
    name = path.name.lower()
    return ".tar.gz" if name.endswith(".tar.gz") else path.suffix.lower()


@contextmanager
def _readable(shown: str) -> Iterator[None]:
    """Turn what reading raises into one InputError."""
    try:
        yield
    except InputError:
        raise
    except (
        OSError,
        ValueError,
        EOFError,
        OverflowError,
        RuntimeError,  # an encrypted zip member
        struct.error,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(
            f"{shown}: cannot be read ({display(reason or error)}): "
            "check its permissions, or write it again."
        ) from error


def _stamp(path: Path) -> str:
    status = path.stat()
    return f"{path.name} {status.st_size} {status.st_mtime_ns}"


# --- images -------------------------------------------------------------------------------------


def _decode_image(content: Path | bytes) -> Any:
    """Open an image and read its pixels."""
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        # Between once and twice Pillow's limit it warns; that may still be a photograph.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            with Image.open(content if isinstance(content, Path) else io.BytesIO(content)) as image:
                pixels = math.prod(image.size) * len(image.getbands())
                stored = content.stat().st_size if isinstance(content, Path) else len(content)
                if pixels > _BOMB_PIXELS and pixels > _BOMB_RATIO * stored:
                    width, height = image.size
                    raise InputError(
                        f"is an image of {width} × {height} in {stored:,} bytes, which no "
                        "photograph is: if it is genuine, save it at the encoder's size"
                    )
                image.load()
                return image.copy()
        except InputError:
            raise
        except UnidentifiedImageError as error:  # its text holds an address, or the path once more
            raise InputError("is no image that Pillow reads") from error
        except Image.DecompressionBombError as error:
            raise InputError(
                f"is no image that Pillow reads ({display(error, limit=80)})"
            ) from error
        except Exception as error:  # every plug-in has its own
            raise InputError(f"is a damaged image ({display(error, limit=80)})") from error


def _is_image(name: str) -> bool:
    path = Path(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return path.suffix.lower() in IMAGES and not hidden


class _Files(Source):
    """All files below a folder, in the order of their relative paths."""

    kind: Kind = "files"
    what = "files"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = sorted(self._walk())
        if not self._names:
            raise InputError(f"{display(folder)}: has no {self.what}: check the path.")
        self.count = len(self._names)

    def wanted(self, name: str) -> bool:
        """Whether a file belongs to the input."""
        return not any(part.startswith(".") for part in Path(name).parts)

    def _walk(self) -> Iterator[str]:
        seen = set()
        for folder, folders, names in os.walk(self._folder, followlinks=True):
            where = os.path.realpath(folder)
            if where in seen:  # a link that leads back
                folders.clear()
                continue
            seen.add(where)
            for name in names:
                relative = (Path(folder) / name).relative_to(self._folder).as_posix()
                if self.wanted(relative):
                    yield relative

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name in self._names:
            status = (self._folder / name).stat()
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def items(self, start: int = 0) -> Iterator[Item]:
        for name in self._names[start:]:
            path = self._folder / name
            yield Item(display(path), path)


class _Folder(_Files):
    """All images below a folder."""

    kind: Kind = "images"
    what = f"images ({', '.join(IMAGES)})"

    def wanted(self, name: str) -> bool:
        return _is_image(name)

    def decode(self, content: Any) -> Any:
        return _decode_image(content)


class _Archive(Source):
    kind: Kind = "images"

    def __init__(self, path: Path) -> None:
        self._path = path

    def fingerprint(self) -> str:
        return _stamp(self._path)

    def decode(self, content: Any) -> Any:
        return _decode_image(content)

    def _label(self, name: str) -> str:
        return f"{display(self._path)} ({display(name, limit=80)})"

    def _empty(self) -> InputError:
        return InputError(f"{display(self._path)}: has no images ({', '.join(IMAGES)}).")

    def _too_large(self, name: str) -> InputError:
        return InputError(f"{self._label(name)}: is larger than any image: take it out.")


class _Zip(_Archive):
    """The images in a zip archive, in the order of their names."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with zipfile.ZipFile(path) as archive:
            self._names = sorted(name for name in archive.namelist() if _is_image(name))
        if not self._names:
            raise self._empty()
        self.count = len(self._names)

    def items(self, start: int = 0) -> Iterator[Item]:
        with _readable(display(self._path)), zipfile.ZipFile(self._path) as archive:
            for name in self._names[start:]:
                member = archive.getinfo(name)
                if member.file_size > _LARGEST_MEMBER:
                    raise self._too_large(name)
                check_bomb(
                    self._label(name),
                    member.file_size,
                    member.compress_size,
                    kind="images",
                    advice="pack it without compression",
                )
                try:
                    content = archive.read(name)
                except Exception as error:  # every way of packing has its own
                    raise InputError(
                        f"{self._label(name)}: cannot be read ({display(error, limit=80)}): "
                        "write the archive again, without a password."
                    ) from error
                yield Item(self._label(name), content)


class _Tar(_Archive):
    """The images in a tar archive, a webdataset shard for one, in the order in which they lie.

    Read as a stream: no index is kept. A compressed archive is not counted beforehand, which would
    unpack it once more.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if _ending(path) == ".tar":
            self.count = sum(1 for _ in self._members())
            if not self.count:
                raise self._empty()

    def _members(self) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
        plain, last = _ending(self._path) == ".tar", -1
        opened: IO[bytes] | gzip.GzipFile = (
            open(self._path, "rb") if plain else gzip.open(self._path)
        )
        reader: Any = _InPieces(opened)
        with opened, tarfile.open(fileobj=reader, mode="r:") as archive:
            for member in archive:
                if member.offset <= last:  # a negative size sends tarfile back, for ever
                    raise tarfile.ReadError("its members go round in a circle")
                last = member.offset
                if member.isfile() and _is_image(member.name):
                    yield archive, member
                archive.members = []  # type: ignore[attr-defined]  # else it remembers every member that it has seen

    def items(self, start: int = 0) -> Iterator[Item]:
        found = False
        with _readable(display(self._path)):
            for archive, member in islice(self._members(), start, None):
                if member.size > _LARGEST_MEMBER:
                    raise self._too_large(member.name)
                check_bomb(
                    self._label(member.name),
                    member.size,
                    self._path.stat().st_size,
                    kind="images",
                    advice="pack it without compression",
                )
                file = archive.extractfile(member)
                if file is not None:
                    found = True
                    content = b"".join(iter(partial(file.read, _LARGEST_READ), b""))
                    yield Item(self._label(member.name), content)
        if not found and start == 0:
            raise self._empty()


class _InPieces:
    """A file for tarfile, which reads a name or a comment of any size that a header claims."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file: Any = file
        self.tell, self.seek = file.tell, file.seek

    def read(self, size: int) -> Any:
        if size > _LARGEST_READ:
            raise tarfile.ReadError(f"a header announces {size} bytes")
        return self._file.read(size)


class _Stacked(Source):
    """Images in one array, as samplers leave them."""

    kind: Kind = "images"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = len(read_images(path))

    def fingerprint(self) -> str:
        return _stamp(self._path)

    def items(self, start: int = 0) -> Iterator[Item]:
        images = np.asarray(read_images(self._path))
        shown = display(self._path)
        for number in range(start, len(images)):
            yield Item(f"{shown}, image {number}", images[number])


# --- texts --------------------------------------------------------------------------------------


class _Texts(Source):
    """The lines of a text file, or the texts in a JSON-lines file; blank lines separate."""

    kind: Kind = "texts"

    def __init__(self, path: Path, *, field: str) -> None:
        self._path = path
        self._parse: Callable[[str], str] = (
            self._from_json if _ending(path) == ".jsonl" else lambda line: line
        )
        self._field = field
        self.count = sum(1 for _ in self._lines())
        if not self.count:
            raise InputError(f"{display(path)}: has no text: write one a line.")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line

    def fingerprint(self) -> str:
        return f"{_stamp(self._path)} {self._field}"

    def items(self, start: int = 0) -> Iterator[Item]:
        shown = display(self._path)
        with _readable(shown):
            for number, line in islice(self._lines(), start, None):
                label = f"{shown}, line {number}"
                try:
                    text = self._parse(line.decode("utf-8-sig" if number == 1 else "utf-8").strip())
                except UnicodeDecodeError as error:
                    raise InputError(f"{label}: is not UTF-8: convert the file.") from error
                except json.JSONDecodeError as error:
                    raise InputError(f"{label}: is not JSON ({error.msg}).") from error
                except UnicodeEncodeError as error:
                    raise InputError(
                        f"{label}: holds half of a surrogate pair, which is no character: write "
                        "the text again."
                    ) from error
                except (RecursionError, ValueError) as error:  # thousands of brackets, or of digits
                    raise InputError(f"{label}: holds something else than a text.") from error
                except KeyError as error:
                    raise InputError(
                        f"{label}: has no text called {self._field!r}: name the key with --field."
                    ) from error
                yield Item(label, text)

    def _from_json(self, line: str) -> str:
        content = json.loads(line)
        text = content[self._field] if isinstance(content, dict) else content
        if not isinstance(text, str):
            raise KeyError(self._field)
        text.encode()
        return text


# --- rows, and several inputs as one ------------------------------------------------------------


class Rows(Source):
    """Features that somebody computed already."""

    kind: Kind = "rows"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = len(read_features(path))

    def fingerprint(self) -> str:
        return _stamp(self._path)

    def origin(self) -> Mapping[str, str]:
        known = read_metadata(self._path)
        return {key: value for key, value in known.items() if key != "run"}

    def items(self, start: int = 0) -> Iterator[Item]:
        rows = np.asarray(read_features(self._path))  # a plain view: memmap's own indexing is slow
        shown = display(self._path)
        for number in range(start, len(rows)):
            yield Item(f"{shown}, row {number}", rows[number])


@dataclass(frozen=True, slots=True)
class _Routed:
    """An item's content with the part that knows how to decode it."""

    part: Source
    content: Any


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

    def items(self, start: int = 0) -> Iterator[Item]:
        for part in self._parts:
            if part.count is not None and part.count <= start:
                start -= part.count
                continue
            for item in part.items(0 if part.count is None else start):
                if part.count is None and start:
                    start -= 1
                    continue
                yield Item(item.label, _Routed(part, item.content))
            start = 0 if part.count is not None else start

    def decode(self, content: Any) -> Any:
        return content.part.decode(content.content)


class Given(Source):
    """Items that are in memory already: what a live arm drew."""

    def __init__(self, items: Iterable[Any], *, kind: Kind, label: str) -> None:
        self._items = list(items)
        self._label = label
        self.kind = kind
        self.count = len(self._items)

    def fingerprint(self) -> str:
        return ""

    def items(self, start: int = 0) -> Iterator[Item]:
        for number in range(start, len(self._items)):
            yield Item(f"{self._label}, item {number}", self._items[number])
