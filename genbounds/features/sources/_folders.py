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


class Folder(Files):
    """All images below a folder."""

    kind: Kind = "images"
    what = f"images ({', '.join(IMAGES)})"

    def wanted(self, name: str) -> bool:
        return is_image(name)

    def decode(self, content: Any) -> Any:
        return decode_image(content)
