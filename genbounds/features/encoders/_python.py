"""Encoders that are the user's own Python: ``module:function``; and none at all."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder, FunctionEncoder, evaluating
from genbounds.features._entry_point import entry_point
from genbounds.features._preprocessing import Preprocessing, rgb, stack_images
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._weights import file_digest, versions
from genbounds.files import display
from genbounds.validation import InputError, as_numpy


def no_encoder() -> Encoder:
    """Make what passes rows on that are features already."""

    def stacked(batch: Sequence[Any]) -> NDArray[Any]:
        widths = list(dict.fromkeys(len(row) for row in batch))
        if len(widths) > 1:
            raise InputError(
                f"the input holds rows of {widths[0]} and rows of {widths[1]} features: give files "
                "of one encoder."
            )
        return np.stack(batch)

    return FunctionEncoder(encode=stacked, takes="rows", description={})


def python_encoder(request: Request) -> Encoder:
    """Make an encoder of ``module:function``, or of a `Preprocessing` and a function."""
    target = entry_point(request.model)
    if isinstance(target, Encoder) and not isinstance(target, type):
        request.without_options(of="an encoder of your own")
        return target
    if not callable(target):
        raise InputError(
            f"{display(request.model)}: is neither a function of a list of items nor an encoder."
        )
    own = getattr(target, "preprocessing", None)
    preprocessing = None
    if own is not None or request.overrides:
        defaults = {} if own is None else {name: getattr(own, name) for name in _FIELDS}
        preprocessing = request.preprocessing(**defaults)
        request = replace(request, overrides={})  # they are used
    request.without_options(of="a Python function")

    def encode(batch: Sequence[Any]) -> NDArray[Any]:
        given: Any = list(batch) if preprocessing is None else stack_images(batch)
        with evaluating(target):
            return as_numpy("features", target(given))

    return FunctionEncoder(
        encode=encode,
        preprocessing=preprocessing or _decoded,
        takes="images" if preprocessing is not None else None,
        description={
            "encoder": request.name,
            "weights": _source_digest(target),
            "preprocessing": "its own" if preprocessing is None else preprocessing.describe(),
            "libraries": versions("numpy", "pillow"),
        },
    )


_FIELDS = tuple(Preprocessing.__dataclass_fields__)


def _source_digest(target: Any) -> str:
    """Return a digest of the file that defines a function, in place of one of its weights."""
    digest = getattr(target, "weights", None)
    if isinstance(digest, str):
        return digest
    module = sys.modules.get(getattr(target, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    if file and Path(file).is_file():
        return f"source {file_digest(Path(file))}"
    text = inspect.getsource(target) if inspect.isfunction(target) else repr(type(target))
    return f"source sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _decoded(item: Any) -> Any:
    """Decode a Pillow image, or a grey one that is an array; leave everything else as it is."""
    from PIL import Image

    if isinstance(item, np.ndarray):
        picture = item.dtype == np.uint8 and (item.ndim == 2 or item.shape[2:] == (1,))
    else:
        picture = isinstance(item, Image.Image)
    return rgb(item) if picture else item
