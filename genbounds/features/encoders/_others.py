"""``onnx:FILE``, ``sentence-transformers:MODEL``, ``module:function``, and no encoder at all."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder, FunctionEncoder, evaluating
from genbounds.features._entry_point import entry_point
from genbounds.features._preprocessing import rgb, stack_images
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._weights import Weights, file_digest, find_weights, versions
from genbounds.files import display
from genbounds.validation import InputError, as_numpy

# --- ONNX ---------------------------------------------------------------------------------------


def onnx_encoder(request: Request) -> Encoder:
    """Load ``onnx:FILE``: one input (n, c, h, w) of float32; the first output is taken."""
    runtime, path = request.library("onnxruntime", "onnx"), request.file()
    if request.precision != "float32":
        raise InputError(f"{display(path)}: has its own precision: leave --precision out.")
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
    sides = {"channels": first.shape[1], "size": first.shape[2]}
    preprocessing = request.preprocessing(
        **{name: side for name, side in sides.items() if isinstance(side, int)}
    )
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
            "weights": _onnx_digest(path),
            "preprocessing": preprocessing.describe(),
            "precision": "float32",
            "libraries": versions("onnxruntime", "pillow"),
        },
    )


_LOCATION = re.compile(rb"\n\x08location\x12([\x80-\xff]?)([\x00-\x7f])", re.DOTALL)
"""How a model names another file with weights: an entry of onnx.proto's ``external_data``, its key
"location", then the length of the name, in one or two parts of seven bits, and the name."""


def _onnx_digest(path: Path) -> str:
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


# --- sentence-transformers ----------------------------------------------------------------------


def sentence_encoder(request: Request) -> Encoder:
    """Load ``sentence-transformers:MODEL`` from its folder, or from the hub's cache."""
    repository = request.model if "/" in request.model else f"sentence-transformers/{request.model}"
    local = Path(request.model) if Path(request.model).is_dir() else request.weights
    if request.random:
        raise InputError(
            f"{request.name}: --weights random is for image models: name the model's folder."
        )
    if request.overrides:
        raise InputError(
            f"{request.name}: encodes texts: leave --size and the other image options out."
        )
    request.library("torch", "text")
    library = request.library("sentence_transformers", "text")
    wanted = Weights(names=("modules.json",), repository=repository, folder=True)
    folder = find_weights(request.name, wanted, local)
    half = {} if request.precision == "float32" else {"dtype": request.precision}
    try:
        with _quietly():
            model = library.SentenceTransformer(
                str(folder), device=request.device, local_files_only=True, model_kwargs=half
            )
    except Exception as error:  # a damaged folder shows itself in many ways
        raise InputError(
            f"{display(folder)}: is not a model of sentence-transformers ({display(error)})."
        ) from error

    def encode(batch: Sequence[Any]) -> NDArray[Any]:
        texts, n = list(batch), len(batch)
        vectors = model.encode(texts, batch_size=n, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors)

    return FunctionEncoder(
        encode=encode,
        takes="texts",
        description={
            "encoder": f"sentence-transformers:{Path(request.model).name}",
            "weights": file_digest(folder),
            "preprocessing": "the model's own tokenizer",
            "precision": request.precision,
            "libraries": versions("sentence-transformers", "transformers", "tokenizers", "torch"),
        },
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep transformers' progress bars off standard error."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


# --- Python of one's own, and none ---------------------------------------------------------------


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
        preprocessing = request.preprocessing(**({} if own is None else asdict(own)))
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
