"""Folders of images, or of any files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from genbounds.features._encoder import Kind
from genbounds.features.sources._images import IMAGES, decode_image, is_image
from genbounds.features.sources._source import Item, Source
from genbounds.files import display
from genbounds.validation import InputError


class Files(Source):
    """All files below a folder, in the order of their relative paths."""

    kind: Kind = "files"
    what = "files"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = sorted(self._walk(folder, "", set()))
        if not self._names:
            found = f"has no {self.what}" if os.listdir(folder) else "is empty"
            raise InputError(f"{display(folder)}: {found}: check the path.")
        self.count = len(self._names)

    def wanted(self, name: str) -> bool:
        """Whether a file belongs to the input."""
        return not any(part.startswith(".") for part in Path(name).parts)

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
                elif self.wanted(name):
                    if not entry.is_file():
                        dangling = entry.is_symlink() and not os.path.exists(entry)
                        what = "a link to a file that is gone" if dangling else "not a regular file"
                        raise InputError(f"{display(entry)}: is {what}: take it out of the folder.")
                    yield name

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name in self._names:
            try:
                status = (self._folder / name).stat()
            except OSError as error:
                raise InputError(
                    f"{display(self._folder / name)}: was removed meanwhile: run this again."
                ) from error
            digest.update(os.fsencode(name))
            digest.update(f" {status.st_size} {status.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def items(self, start: int = 0) -> Iterator[Item]:
        for name in self._names[start:]:
            path = self._folder / name
            yield Item(display(path), path)


class Folder(Files):
    """All images below a folder."""

    kind: Kind = "images"
    what = f"images ({', '.join(IMAGES)})"

    def wanted(self, name: str) -> bool:
        return is_image(name)

    def decode(self, content: Any) -> Any:
        return decode_image(content)
