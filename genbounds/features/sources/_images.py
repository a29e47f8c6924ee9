"""Images: which files are some, and their pixels."""

from __future__ import annotations

import io
import math
import os
import stat
from pathlib import Path
from typing import IO, Any

from genbounds._process import silenced
from genbounds.files import display, open_at_once
from genbounds.validation import InputError

IMAGES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
# What a file may be, whatever it is called. Others run programs: EPS starts Ghostscript.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
# Photographs shrink 10- to 50-fold. What claims more than `_BOMB_PIXELS` values from less than
# 1/`_BOMB_RATIO` of that is refused before it takes the memory.
_BOMB_RATIO = 200
_BOMB_PIXELS = 1 << 26


def decode_image(content: Path | bytes) -> Any:
    """Open an image and read its pixels."""
    if isinstance(content, bytes):
        return _decode(io.BytesIO(content), len(content))
    try:
        file = open_at_once(content)
    except OSError as error:
        raise InputError(f"cannot be read ({display(error.strerror)})") from error
    with file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InputError("is not a regular file: take it out of the folder")
        return _decode(file, status.st_size)


def _decode(file: IO[bytes], stored: int) -> Any:
    from PIL import Image, UnidentifiedImageError

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
            image.load()
            return image.copy()
    except InputError:
        raise
    except UnidentifiedImageError as error:  # its text holds an address, or the path once more
        raise InputError(f"is not an image of a known format ({', '.join(_FORMATS)})") from error
    except Image.DecompressionBombError as error:
        raise InputError(f"is too large an image ({display(error, limit=80)})") from error
    except Exception as error:  # every plug-in has its own
        raise InputError(f"is a damaged image ({display(error, limit=80)})") from error


def is_image(name: str) -> bool:
    path = Path(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return path.suffix.lower() in IMAGES and not hidden
