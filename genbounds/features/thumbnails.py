"""Small pictures of the items behind rows of features, for pages."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from genbounds._text import count, display
from genbounds.features._extract import SOURCE
from genbounds.features.sources import Given, Source, is_media, item_names, open_source
from genbounds.files import ITEMS_KEY, label_arrays, read_metadata
from genbounds.validation import InputError

SIDE = 96
"""Pixels of the longer side, at most."""

SMALL = 48
"""Pixels of the longer side up to which a picture is kept without loss."""

LARGEST = 1 << 15
"""Bytes of one picture; noise takes a third of that."""


def thumbnails(contents: Any, rows: Iterable[int]) -> dict[int, str]:
    """Return small pictures of some items as data URIs, by number.

    Parameters
    ----------
    contents : Source, array_like of shape (n, h, w) or (n, h, w, 3), or sequence of Pillow images
        Arrays hold integers from 0 to 255, or floats from 0 to 1.
    rows : iterable of int
        Which items; each is read by itself, the rest is not.

    Returns
    -------
    dict of int to str
        ``data:image/jpeg;base64,…``, or PNG where pictures are small. What is no picture, is
        damaged, or would unpack to more than pictures do, is left out.

    Examples
    --------
    >>> import numpy as np
    >>> found = thumbnails(np.zeros((3, 8, 8)), [2])
    >>> found[2][:22]
    'data:image/png;base64,'
    """
    source = contents
    if not isinstance(contents, Source):
        source = Given(contents, kind="images", label="pictures")
    found = {}
    for row, item in source.pick(map(int, rows)):
        with suppress(InputError):
            if (uri := _uri(source.decode(item.content))) is not None:
                found[row] = uri
    return found


def _uri(picture: Any) -> str | None:
    """Return a picture as a data URI; None if it is none."""
    from PIL import Image

    try:
        image = picture if isinstance(picture, Image.Image) else Image.fromarray(_bytes(picture))
        if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            image = image.convert("RGBA")
            behind = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(behind, image)
        elif image.mode.startswith("I;16"):
            image = Image.fromarray((np.asarray(image).astype(np.float32) / 257.0).astype(np.uint8))
        image = image.convert("RGB")
        image.thumbnail((SIDE, SIDE))
        bare = Image.new("RGB", image.size)  # without profiles, comments and dates
        bare.paste(image)
        form = "PNG" if max(bare.size) <= SMALL else "JPEG"
        file = BytesIO()
        bare.save(file, form, **({} if form == "PNG" else {"quality": 80}))
    except Exception:  # every mode and every array that is no picture has its own
        return None
    data = file.getvalue()
    if len(data) > LARGEST:
        return None
    return f"data:image/{form.lower()};base64,{b64encode(data).decode('ascii')}"


def _bytes(array: Any) -> Any:
    """Return an image array as uint8."""
    pixels = np.asarray(array)
    if pixels.dtype.kind == "f":
        pixels = (pixels.clip(0.0, 1.0) * 255.0).round()
    pixels = pixels.astype(np.uint8)
    return pixels[:, :, 0] if pixels.shape[2:] == (1,) else pixels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pictures:
    """What the rows of one sample are called, and where their pictures are.

    Attributes
    ----------
    contents : Source, array_like, sequence of Pillow images or None
        As `thumbnails` takes them; None if they are not at hand.
    names : sequence of str
        Of the rows; may be empty.
    numbers : mapping of int to int or None
        From a row to its item in `contents`; None: they have the same number.
    problem : str
        Why there are no pictures, in one line; else empty.
    """

    contents: Any = None
    names: Sequence[str] = ()
    numbers: Mapping[int, int] | None = None
    problem: str = ""

    def name(self, row: int) -> str:
        """Return what a `row` is called."""
        return self.names[row] if self.names else f"row {row}"

    def of(self, rows: Iterable[int]) -> dict[int, str]:
        """Return data URIs of the pictures of some `rows`; those without one are left out."""
        if self.contents is None:
            return {}
        number = {row: row if self.numbers is None else self.numbers.get(row) for row in rows}
        found = thumbnails(self.contents, [k for k in number.values() if k is not None])
        return {row: found[k] for row, k in number.items() if k is not None and k in found}


def pictures_of(path: Path, n: int, images: Path | None = None) -> Pictures:
    """Find the pictures of the n rows of a file, or of a folder or archive.

    Parameters
    ----------
    path : Path
        Features as `genbounds features` wrote them, which say what they were made from; or what is
        encoded, itself.
    n : int
    images : Path, optional
        The folder, archive or array that the features were made from, if the file does not say.

    Returns
    -------
    Pictures
        With a `problem` where there are none.
    """
    encoded = is_media(path)
    items = () if encoded else label_arrays(path, n).get(ITEMS_KEY, ())
    names = [str(name) for name in items]
    try:
        sources = [path] if encoded else _recorded(path)
        far = [] if encoded else [source for source in sources if not _is_near(source, path)]
        if images is not None:
            sources = [images]
        elif far:
            raise InputError(
                f"{display(path)} was made from {display(far[0])}, which is in neither its "
                "folder nor this one: pass --images if its pictures may be shown"
            )
        if not sources:
            raise InputError(f"{display(path)} does not say what it was made from: pass --images")
        return _matched(sources, names, path, n)
    except InputError as error:
        return Pictures(names=names, problem=str(error))


def _matched(sources: Sequence[Path], names: Sequence[str], path: Path, n: int) -> Pictures:
    """Find the pictures of n rows with these names, if they have some, among those in `sources`."""
    source = open_source(sources)
    if source.kind != "images":
        raise InputError(f"{display(sources[0])} holds {source.kind}")
    if source.count is None:  # only reading all of it tells
        for _ in source.pick(()):
            pass
    own = [str(name) for name in item_names(source.names())]
    held = len(own) or source.count or 0
    if names and own and names != own:
        place = {name: number for number, name in enumerate(own)}
        numbers = {row: place[name] for row, name in enumerate(names) if name in place}
        if numbers:
            return Pictures(contents=source, names=names, numbers=numbers)
        why = f"none of its {count(len(own), 'image')} has the name of one of {count(n, 'row')}"
    elif held == n:
        return Pictures(contents=source, names=names or own)
    else:
        why = f"{count(held, 'image')} for {count(n, 'row')}"
    raise InputError(f"{display(sources[0])} does not hold the images of {display(path)}: {why}")


def _is_near(source: Path, path: Path) -> bool:
    """Whether a recorded source lies below the folder of its file, or the current one.

    Somebody else's file must not choose which pictures of this computer get into a page.
    """
    try:
        real = source.resolve()
    except (OSError, ValueError):  # no path at all
        return False
    return any(real.is_relative_to(folder.resolve()) for folder in (path.parent, Path.cwd()))


def _recorded(path: Path) -> list[Path]:
    """Return where the items of a file of features lay, seen from its folder."""
    paths: object = None
    with suppress(ValueError, RecursionError):
        paths = json.loads(read_metadata(path).get(SOURCE, "null"))
    if not isinstance(paths, list) or not all(isinstance(one, str) for one in paths):
        return []
    return [Path(os.path.normpath(path.parent / one)) for one in paths]
