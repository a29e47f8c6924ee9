"""Encoders of other libraries: torchvision, timm, open_clip, TorchScript, ONNX, texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from genbounds._process import silenced
from genbounds._text import display
from genbounds.features._encoder import Encoder, FunctionEncoder, stack_images
from genbounds.features.encoders._request import (
    Request,
    Weights,
    check_weights,
    file_digest,
    find_weights,
    followed_by,
    read_weights,
    versions,
)
from genbounds.validation import InputError

# --- torchvision --------------------------------------------------------------------------------

# These two networks are built in another way for their published weights.
_INCEPTION = {"aux_logits": True, "transform_input": True, "init_weights": False}
_OPTIONS: dict[str, dict[str, bool]] = {"inception_v3": _INCEPTION, "googlenet": _INCEPTION}


def torchvision_weights(request: Request) -> Weights:
    """Say which file ``torchvision:MODEL`` needs (``MODEL/WEIGHTS`` for particular weights)."""
    return Weights.published(_torchvision_entry(request).url)


def _torchvision_entry(request: Request) -> Any:
    """Return what torchvision says of the weights."""
    request.library("torchvision")
    from torchvision import models

    name, _, tag = request.model.partition("/")
    if name not in models.list_models(models):
        raise request.unknown("torchvision.models.list_models()")
    known = models.get_model_weights(name)
    if tag and tag not in known.__members__:
        raise InputError(
            f"{request.name}: {name} has no weights {tag!r}, only {', '.join(known.__members__)}."
        )
    return known[tag] if tag else known.DEFAULT


def torchvision_encoder(request: Request) -> Encoder:
    """Load ``torchvision:MODEL``."""
    pipeline = _torchvision_entry(request).transforms()
    from torch import nn
    from torchvision import models

    name = request.model.partition("/")[0]
    with request.building():
        model = models.get_model(name, weights=None, **_OPTIONS.get(name, {}))
        if request.path is not None:
            model.load_state_dict(read_weights(request.path))
    linear = [part for part, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise InputError(
            f"{request.name}: has no linear layer at its end: export what you need as TorchScript."
        )
    # In place of the last one, so that the network returns what enters it.
    parent, _, child = linear[-1].rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())
    return request.torch_encoder(
        model,
        libraries=("torchvision",),
        name=f"torchvision:{name}",
        size=pipeline.crop_size[0],
        resize=pipeline.resize_size[0],
        fit="crop",
        interpolation=pipeline.interpolation.value,
        mean=tuple(pipeline.mean),
        std=tuple(pipeline.std),
    )


# --- timm ---------------------------------------------------------------------------------------


def timm_weights(request: Request) -> Weights:
    """Say which file ``timm:MODEL`` needs (``MODEL.TAG`` for particular weights)."""
    config = _timm(request).get_pretrained_cfg(request.model)
    if config is None:
        raise request.unknown("timm.list_models(pretrained=True)")
    repository = config.hf_hub_id
    if repository and repository.endswith("/"):
        repository += f"{config.architecture}.{config.tag}"
    hub_names = (config.hf_hub_filename, "model.safetensors", "pytorch_model.bin")
    return Weights.published(config.url, *(hub_names if repository else ()), repository=repository)


def _timm(request: Request) -> Any:
    timm = request.library("timm")
    # Names with a colon would make timm ask the hub.
    if ":" in request.model or not timm.is_model(request.model.partition(".")[0]):
        raise request.unknown("timm.list_models()")
    return timm


def timm_encoder(request: Request) -> Encoder:
    """Load ``timm:MODEL``."""
    timm, path = _timm(request), request.path
    options = {}
    with request.building():
        model = timm.create_model(request.model, pretrained=False)
        if request.overrides.get("size") and model.pretrained_cfg.get("fixed_input_size"):
            # A transformer's position embeddings are made for one size; timm resamples them.
            options["img_size"] = request.overrides["size"]
            model = timm.create_model(request.model, pretrained=False, **options)
        if path is not None:
            check_weights(path)
            # timm's own loader translates names and position embeddings. It is strict only with
            # the classifier in place: without, it would take any file for the model's.
            own = {"file": str(path), "custom_load": path.suffix == ".npz"}
            model = timm.create_model(
                request.model, pretrained=True, pretrained_cfg_overlay=own, **options
            )
    model.reset_classifier(0)
    # Fields of `Preprocessing` that agree with timm's evaluation pipeline.
    data = timm.data.resolve_data_config(model=model)
    size, crop = data["input_size"][-1], data["crop_pct"]
    stretched = data.get("crop_mode") == "squash" and crop == 1.0
    return request.torch_encoder(
        model,
        libraries=("timm", "torchvision"),
        size=size,
        resize=None if stretched else math.floor(size / crop),
        fit="stretch" if stretched else "crop",
        interpolation=_pillow_name(data["interpolation"]),
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
    )


def _pillow_name(interpolation: str | None) -> str:
    """Return an interpolation that Pillow knows; "random" is meant for training."""
    return interpolation if interpolation in ("bilinear", "lanczos") else "bicubic"


# --- open_clip ----------------------------------------------------------------------------------

_HUB_NAMES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors")
_NO_WEIGHTS = ("input_resolution", "context_length", "vocab_size")


def open_clip_weights(request: Request) -> Weights:
    """Say which file ``open_clip:MODEL`` needs (``MODEL/TAG`` for particular weights)."""
    entry = _open_clip_entry(request)[1]
    repository = (entry.get("hf_hub") or "").rstrip("/") or None
    return Weights.published(entry.get("url"), *_HUB_NAMES, repository=repository)


def _open_clip_entry(request: Request) -> tuple[Any, Any]:
    """Return the library, and what it says of the weights."""
    open_clip = request.library("open_clip")
    name, _, tag = request.model.partition("/")
    if name not in open_clip.list_models():
        raise request.unknown("open_clip.list_models()")
    entry = open_clip.get_pretrained_cfg(name, tag) if tag else {}
    if tag and not entry:
        raise InputError(f"{request.name}: {name} has no weights {tag!r}.")
    return open_clip, entry


def open_clip_encoder(request: Request) -> Encoder:
    """Load the image encoder of ``open_clip:MODEL``."""
    open_clip, entry = _open_clip_entry(request)
    name, path = request.model.partition("/")[0], request.path
    # OpenAI's own files are programs; open_clip reads their tensors only if it may unpickle.
    script = load_script(path) if path is not None and _is_script(path) else None
    with request.building():
        if path is not None and script is None:
            check_weights(path)
        model = open_clip.create_model(
            name,
            pretrained=None if path is None or script is not None else str(path),
            pretrained_image=False,
            pretrained_text=False,
            force_quick_gelu=bool(entry.get("quick_gelu")),
        )
        if script is not None:
            state = script.state_dict()
            model.load_state_dict({key: state[key] for key in state if key not in _NO_WEIGHTS})
    # What was published with the weights comes before what the model says.
    keys = ("mean", "std", "interpolation", "resize_mode")
    config = model.visual.preprocess_cfg | {key: entry[key] for key in keys if entry.get(key)}
    size = config["size"]
    return request.torch_encoder(
        # The network of the images alone; that of the texts can be freed.
        followed_by(model.visual, lambda found: found[0] if isinstance(found, tuple) else found),
        libraries=("open_clip_torch",),
        name=f"open_clip:{name}",
        size=size if isinstance(size, int) else size[0],
        fit="stretch" if config.get("resize_mode") == "squash" else "crop",
        interpolation=_pillow_name(config.get("interpolation")),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )


# --- TorchScript --------------------------------------------------------------------------------


def _is_script(path: Path) -> bool:
    """Whether a file is a TorchScript program rather than tensors."""
    if not is_zipfile(path):
        return False
    with ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def load_script(path: Path) -> Any:
    """Read a TorchScript file; PyTorch's reader of these unpickles tensors and names alone."""
    import torch

    try:
        with silenced(DeprecationWarning):  # PyTorch prefers other formats
            return torch.jit.load(str(path), map_location="cpu")
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{display(path)}: is not a TorchScript file ({display(error)})."
        ) from error


def torchscript_encoder(request: Request) -> Encoder:
    """Load ``torchscript:FILE``: a program, so name only files that you trust."""
    request.library("torch", "torch")
    path = request.file()
    name, weights = f"torchscript:{path.name}", file_digest(path)
    return request.torch_encoder(load_script(path), libraries=(), name=name, weights=weights)


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
