"""Arrays: images that a sampler wrote, features, items in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Kind
from genbounds.features.sources._source import Item, Source
from genbounds.files import (
    display,
    image_count,
    label_arrays,
    read_features,
    read_metadata,
    stream_images,
)
from genbounds.origins import STAMPS


class Stacked(Source):
    """Images in one array, as samplers leave them."""

    kind: Kind = "images"
    count: int

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = image_count(path)

    def labels(self) -> dict[str, NDArray[Any]]:
        return label_arrays(self._path, self.count)

    def items(self, start: int = 0) -> Iterator[Item]:
        shown = display(self._path)
        for number, image in enumerate(stream_images(self._path, start), start=start):
            yield Item(f"{shown}, image {number}", image)


class Rows(Source):
    """Features that somebody computed already."""

    kind: Kind = "rows"
    count: int

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = len(read_features(path))

    def origin(self) -> Mapping[str, str]:
        known = read_metadata(self._path)
        return {key: value for key, value in known.items() if key not in STAMPS}

    def labels(self) -> dict[str, NDArray[Any]]:
        return label_arrays(self._path, self.count)

    def items(self, start: int = 0) -> Iterator[Item]:
        rows = np.asarray(read_features(self._path))  # a plain view: memmap's own indexing is slow
        shown = display(self._path)
        for number in range(start, len(rows)):
            yield Item(f"{shown}, row {number}", rows[number])


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
