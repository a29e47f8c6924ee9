"""What all inputs have in common: items in a fixed order, each with a name for errors; images."""

from __future__ import annotations

import io
import math
import os
import stat
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds._process import silenced
from genbounds._text import display
from genbounds.features._encoder import Kind
from genbounds.files import open_at_once
from genbounds.origins import FACTS
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
        return decode_image(content) if picture else content

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
                    for fact, value in facts_of(item.content).items():
                        found[fact][value] += 1
        return found


def item_names(names: Sequence[str]) -> NDArray[np.str_]:
    """Return `names` as file formats take them: text, escaped where it is not printable."""
    return np.array([display(name, limit=None) for name in names], dtype=np.str_)


def ending_of(path: Path) -> str:
    name = path.name.lower()
    return ".tar.gz" if name.endswith(".tar.gz") else path.suffix.lower()


@contextmanager
def readable(path: Path) -> Iterator[None]:
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


def is_image(name: str) -> bool:
    path = Path(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return path.suffix.lower() in IMAGES and not hidden


def decode_image(content: Path | bytes) -> Any:
    """Open an image and read its pixels."""
    with _opened(content) as image:
        image.load()
        return image.copy()


def facts_of(content: Any) -> dict[str, str]:
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
        file = open_at_once(path)
    except OSError as error:
        raise InputError(f"cannot be read ({display(error.strerror)})") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError("is not a regular file: take it out of the folder")
    return file
