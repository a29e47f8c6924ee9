"""Images: which files are some, and their pixels."""

from __future__ import annotations

import io
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from genbounds._process import silenced
from genbounds.files import display, open_at_once
from genbounds.validation import InputError

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
    """Say what the header of an image, or an array, tells of `genbounds._pictures.FACTS`."""
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
