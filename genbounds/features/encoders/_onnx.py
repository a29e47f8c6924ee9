"""``onnx:FILE``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder, FunctionEncoder
from genbounds.features._preprocessing import stack_images
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._weights import file_digest, versions
from genbounds.files import display, library
from genbounds.validation import InputError


def onnx_encoder(request: Request) -> Encoder:
    """Load ``onnx:FILE``: one input (n, c, h, w) of float32; the first output is taken."""
    runtime = library("onnxruntime", extra="onnx", needed_for=request.name)
    path = Path(request.model)
    if not path.is_file():
        raise InputError(f"{display(path)}: no such file: export the model there.")
    if request.weights is not None or request.random or request.precision != "float32":
        raise InputError(
            f"{display(path)}: an ONNX file has its own weights and precision: "
            "leave --weights and --precision out."
        )
    if request.device != "cpu" and not request.device.startswith("cuda"):
        raise InputError(f"--device {request.device}: an ONNX model runs on cpu or cuda.")
    providers = ["CPUExecutionProvider"]
    if request.device.startswith("cuda"):
        providers.insert(0, "CUDAExecutionProvider")
        if providers[0] not in runtime.get_available_providers():
            raise InputError(
                f"--device {request.device}: needs onnxruntime-gpu instead of onnxruntime."
            )
    try:
        session = runtime.InferenceSession(str(path), providers=providers)
    except Exception as error:  # its own exceptions have no common public base
        raise InputError(f"{display(path)}: is not an ONNX model ({display(error)}).") from error
    first = session.get_inputs()[0]
    if len(session.get_inputs()) != 1 or len(first.shape) != 4 or first.type != "tensor(float)":
        raise InputError(
            f"{display(path)}: must have one input (n, c, h, w) of float32; "
            f"it has {display([(i.name, i.shape, i.type) for i in session.get_inputs()])}."
        )
    _, channels, height, _ = first.shape
    known = {
        name: side
        for name, side in {"channels": channels, "size": height}.items()
        if isinstance(side, int)
    }
    preprocessing = request.preprocessing(**known)
    output = session.get_outputs()[0].name

    def encode(batch: Sequence[Any]) -> NDArray[Any]:
        features = session.run([output], {first.name: stack_images(batch)})[0]
        return np.asarray(features).reshape(len(batch), -1)

    return FunctionEncoder(
        encode=encode,
        takes="images",
        preprocessing=preprocessing,
        description={
            "encoder": f"onnx:{path.name}",
            "weights": _digest(path),
            "preprocessing": preprocessing.describe(),
            "precision": "float32",
            "libraries": versions("onnxruntime", "pillow"),
        },
    )


_LOCATION = re.compile(rb"\n\x08location\x12([\x80-\xff]?)([\x00-\x7f])", re.DOTALL)
"""How a model names another file with weights: an entry of onnx.proto's ``external_data``, its key
"location", then the length of the name, in one or two parts of seven bits, and the name."""


def _digest(path: Path) -> str:
    """Return the SHA-256 of a model, and of its files of weights if it has some.

    Parameters
    ----------
    path : Path
        A model that onnxruntime has loaded.

    Raises
    ------
    InputError
        If it names a file outside of its folder, or one that is not there.
    """
    content, names = path.read_bytes(), set()
    for found in _LOCATION.finditer(content):
        low, high = found.groups()
        size = high[0] if not low else (low[0] & 127) + 128 * high[0]
        names.add(content[found.end() : found.end() + size].decode("utf-8", "surrogateescape"))
    folder = path.parent.resolve()
    files = {name: (folder / name).resolve() for name in sorted(names)}
    for name, file in files.items():
        if not file.is_relative_to(folder) or not file.is_file():
            raise InputError(
                f"{display(path)}: its weights should lie in {display(name, limit=80)}, beside it: "
                "export the model again."
            )
    return file_digest(path, *files.values())
