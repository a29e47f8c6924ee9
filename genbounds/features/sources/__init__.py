"""What is to be encoded: folders and archives of images, texts, arrays; one item after another.

Items come in an order that does not depend on the file system, so that the same input gives the
same rows. Archives are read member by member and never unpacked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from genbounds._text import display
from genbounds.features._encoder import Kind
from genbounds.features.sources import _source
from genbounds.features.sources._source import ARCHIVES as ARCHIVES
from genbounds.features.sources._source import IMAGES as IMAGES
from genbounds.features.sources._source import TEXTS as TEXTS
from genbounds.features.sources._source import Given as Given
from genbounds.features.sources._source import Item as Item
from genbounds.features.sources._source import Source as Source
from genbounds.features.sources._source import ending_of, readable
from genbounds.features.sources._source import item_names as item_names
from genbounds.files import FORMATS, image_count
from genbounds.validation import InputError


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
    source = parts[0] if len(parts) == 1 else _source.Chain(parts)
    source.inputs = tuple(map(Path, inputs))
    return source


def _open(path: Path, items: Kind | None, field: str) -> Source:
    shown = display(path)
    ending = ending_of(path)
    with readable(path):
        if not path.exists():
            raise InputError(f"{shown}: no such file or folder: check the path.")
        if path.is_dir():
            return _source.Files(path, "files" if items == "files" else "images")
        if not path.is_file():  # a pipe, for whose writer this would wait
            raise InputError(f"{shown}: is not a regular file: save it to disk first.")
        if items == "files":
            raise InputError(f'{shown}: is a file: `items` "files" takes a folder.')
        if ending == ".zip":
            return _source.Zip(path)
        if ending in ARCHIVES:
            return _source.Tar(path)
        if ending in TEXTS:
            return _source.Texts(path, field=field)
        if items == "images" or (items is None and _holds_images(path)):
            return _source.Stacked(path)
        if ending in FORMATS or ending == ".pth":
            return _source.Rows(path)
    raise InputError(
        f"{shown}: has no known ending: give a folder of images, an archive "
        f"({', '.join(ARCHIVES)}), texts ({', '.join(TEXTS)}) or features ({', '.join(FORMATS)})."
    )
