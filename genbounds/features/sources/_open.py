"""Which kind of input a path names; several inputs as one."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Kind
from genbounds.features.sources._archives import ARCHIVES, Tar, Zip
from genbounds.features.sources._items import TEXTS, Files, Rows, Stacked, Texts
from genbounds.features.sources._source import Item, Source, ending_of, readable
from genbounds.files import FORMATS, display, image_count
from genbounds.origins import check_same_encoder
from genbounds.validation import InputError

_log = logging.getLogger("genbounds.features")


def is_media(path: Path) -> bool:
    """Whether a path is something to encode, rather than a file of features."""
    return media_kind(path) is not None


def media_kind(path: Path) -> str | None:
    """Say what there is to encode at `path`, in words; None if it is a file of features."""
    return kind_by_name(path) or ("an array of images" if _holds_images(path) else None)


def kind_by_name(path: Path) -> str | None:
    """Say what there is to encode, as far as the name alone tells."""
    if path.is_dir():
        return "a folder of images"
    if path.name.lower().endswith(ARCHIVES):
        return "an archive of images"
    return "a file of texts" if path.name.lower().endswith(TEXTS) else None


def _holds_images(path: Path) -> bool:
    """Whether a NumPy file is an array of images; not, if it is damaged: its reader says so."""
    if ending_of(path) not in (".npy", ".npz"):
        return False
    try:
        return image_count(path) > 0
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
    source = parts[0] if len(parts) == 1 else Chain(parts)
    source.inputs = tuple(map(Path, inputs))
    return source


def _open(path: Path, items: Kind | None, field: str) -> Source:
    shown = display(path)
    ending = ending_of(path)
    with readable(path):
        if not path.exists():
            raise InputError(f"{shown}: no such file or folder: check the path.")
        if path.is_dir():
            return Files(path, "files" if items == "files" else "images")
        if not path.is_file():  # a pipe, for whose writer this would wait
            raise InputError(f"{shown}: is not a regular file: save it to disk first.")
        if items == "files":
            raise InputError(f'{shown}: is a file: `items` "files" takes a folder.')
        if ending == ".zip":
            return Zip(path)
        if ending in ARCHIVES:
            return Tar(path)
        if ending in TEXTS:
            return Texts(path, field=field)
        if items == "images" or (items is None and _holds_images(path)):
            return Stacked(path)
        if ending in FORMATS or ending == ".pth":
            return Rows(path)
    raise InputError(
        f"{shown}: has no known ending: give a folder of images, an archive "
        f"({', '.join(ARCHIVES)}), texts ({', '.join(TEXTS)}) or features ({', '.join(FORMATS)})."
    )


class Chain(Source):
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
