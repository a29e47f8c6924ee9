"""Folders of files, arrays in a file, texts, and items that are in memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import files
from genbounds.features._encoder import Kind
from genbounds.features.sources._images import IMAGES, is_image
from genbounds.features.sources._source import Item, Source, ending_of, readable
from genbounds.files import display
from genbounds.origins import STAMPS
from genbounds.validation import InputError

TEXTS = (".txt", ".jsonl")


class Files(Source):
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
                elif is_image(name) if self.kind == "images" else "/." not in f"/{name}":
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


class Stacked(Source):
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


class Rows(Source):
    """Features that somebody computed already."""

    kind: Kind = "rows"
    count: int

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = len(files.read_features(path))

    def origin(self) -> Mapping[str, str]:
        known = files.read_metadata(self._path)
        return {key: value for key, value in known.items() if key not in STAMPS}

    def labels(self) -> dict[str, NDArray[Any]]:
        return files.label_arrays(self._path, self.count)

    def items(self, start: int = 0) -> Iterator[Item]:
        # A plain view: memmap's own indexing is slow.
        rows = np.asarray(files.read_features(self._path))
        shown = display(self._path)
        for number in range(start, len(rows)):
            yield Item(f"{shown}, row {number}", rows[number])


class Given(Source):
    """Items that are in memory already: what a live arm drew."""

    def __init__(self, items: Iterable[Any], *, kind: Kind, label: str) -> None:
        self._items, self._label, self.kind = list(items), label, kind
        self.count = len(self._items)

    def fingerprint(self) -> str:
        return ""

    def items(self, start: int = 0) -> Iterator[Item]:
        for number in range(start, len(self._items)):
            yield Item(f"{self._label}, item {number}", self._items[number])


class Texts(Source):
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
        with readable(self._path):
            for number, line in islice(self._lines(), start, None):
                label = f"{display(self._path)}, line {number}"
                try:
                    text = self._text(line, "utf-8-sig" if number == 1 else "utf-8")
                except (RecursionError, ValueError, KeyError) as error:
                    raise InputError(f"{label}: {self._what_is_wrong(error)}.") from error
                yield Item(label, text)

    def _text(self, line: bytes, encoding: str) -> str:
        text = line.decode(encoding).strip()
        if ending_of(self._path) == ".jsonl":
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
