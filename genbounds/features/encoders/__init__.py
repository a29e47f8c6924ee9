"""Encoders by name, each through the library that owns it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from genbounds.features._encoder import Encoder
from genbounds.features.encoders import _inception, _networks, _python
from genbounds.features.encoders._request import (
    PRECISIONS,
    Request,
    Weights,
    fetch,
    find_weights,
    offline,
)
from genbounds.origins import RANDOM
from genbounds.validation import InputError, check_choice, meant

FAMILIES: dict[str, tuple[Callable[[Request], Encoder], Callable[[Request], Weights] | None]] = {
    "inception": (_inception.inception_encoder, _inception.inception_weights),
    "timm": (_networks.timm_encoder, _networks.timm_weights),
    "torchvision": (_networks.torchvision_encoder, _networks.torchvision_weights),
    "open_clip": (_networks.open_clip_encoder, _networks.open_clip_weights),
    "pytorch-fid": (_inception.pytorch_fid_encoder, _inception.pytorch_fid_weights),
    "sentence-transformers": (_networks.sentence_encoder, None),
    "torchscript": (_networks.torchscript_encoder, None),
    "onnx": (_networks.onnx_encoder, None),
    "python": (_python.python_encoder, None),
}
"""By what may stand before the colon of an encoder's name: what loads it, and what says which file
of weights it needs beside the model itself."""

_SAVED = {".pt": "torchscript", ".pth": "torchscript", ".onnx": "onnx"}
"""What a file alone probably stands for, by its ending."""

SHORT: dict[str, tuple[str, dict[str, Any]]] = {
    "inception": ("inception:pytorch", {}),
    # Stein et al. 2023: ViT-L/14; their program, dgm-eval, resizes both sides to 224, bicubic.
    "dinov2": ("timm:vit_large_patch14_dinov2", {"size": 224, "fit": "stretch"}),
    # Kynkäänniemi et al. 2023: OpenAI's ViT-B/32.
    "clip": ("open_clip:ViT-B-32/openai", {}),
}
"""Short names: the encoder, and its own preprocessing."""


def load_encoder(
    name: str,
    *,
    weights: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    precision: str = "float32",
    preprocessing: Mapping[str, Any] | None = None,
) -> Encoder:
    """Load an encoder.

    Parameters
    ----------
    name : str
        | ``inception``, ``inception:clean``, ``inception:tf``: network and pixels of the Fréchet
          inception distance as pytorch-fid, clean-fid and torch-fidelity compute it.
        | ``dinov2``: ViT-L/14 at 224 × 224; ``clip``: OpenAI's ViT-B/32.
        | ``timm:MODEL``, ``torchvision:MODEL``, ``open_clip:MODEL``: image models by the names of
          those libraries; features are what enters the last layer (CLIP: the image embedding).
        | ``pytorch-fid:2048``: pytorch-fid's network with antialiased pixels; 64, 192 and 768 too.
        | ``sentence-transformers:MODEL``: texts.
        | ``torchscript:FILE``, ``onnx:FILE``: a model that takes (n, c, h, w) and returns (n, d).
        | ``module:function`` or ``python:module:function``: a function of a list of items that
          returns (n, d). If it has an attribute ``preprocessing`` (a `Preprocessing`), it gets
          one array (n, c, h, w) instead.
        | ``none``: rows of features as they are.
    weights : path-like, optional
        A file of weights, or a folder to look into. By default the library's own cache is looked
        into. ``random`` takes untrained weights, to try a command. `download` fetches them.
    device : str
        As PyTorch names it.
    precision : {"float32", "bfloat16", "float16"}
        Other than float32: PyTorch's automatic mixed precision.
    preprocessing : mapping, optional
        Fields of `Preprocessing` that replace those the model asks for.

    Raises
    ------
    InputError
        If there is no such encoder, its library or its weights are missing, or a file is damaged.
    """
    check_choice("precision", precision, PRECISIONS)
    if name == "none":
        return _python.no_encoder()
    family, model, own = _parsed(name)
    request = Request(
        name=f"{family}:{model}",
        model=model,
        weights=None if weights is None or str(weights) == RANDOM else Path(weights),
        random=str(weights) == RANDOM,
        device=device,
        precision=precision,
        overrides={**own, **(preprocessing or {})},
    )
    load, weights_of = FAMILIES[family]
    with offline():
        if weights_of is not None and not request.random:
            wanted = weights_of(request)
            if family in ("inception", "pytorch-fid"):  # the others need theirs to name the file
                _inception.inception_library(request)
            request = replace(request, path=find_weights(name, wanted, request.weights))
        return load(request)


def _parsed(name: str) -> tuple[str, str, dict[str, Any]]:
    """Return family, model and preprocessing of a name."""
    full, own = SHORT.get(name, (name, {}))
    family, _, model = full.partition(":")
    if family not in FAMILIES and _python.is_entry_point(name):
        family, model = "python", name
    if family not in FAMILIES or not model:
        names = ", ".join((*SHORT, *(f"{known}:…" for known in FAMILIES)))
        kind = _SAVED.get(Path(name).suffix)
        hint = meant(name, SHORT) if kind is None else f" Did you mean {f'{kind}:{name}'!r}?"
        raise InputError(
            f"must be one of {names}, or none; got {name!r}.{hint}", argument="encoder"
        )
    return family, model, own


def download(name: str, *, folder: str | os.PathLike[str] | None = None) -> Path:
    """Fetch the weights of an encoder once, and check them.

    Parameters
    ----------
    name : str
        As for `load_encoder`.
    folder : path-like, optional
        PyTorch's own cache by default, where `load_encoder` looks.

    Returns
    -------
    Path
        The file. If it is there already, only its checksum is compared; what the Hugging Face
        hub's client has fetched is taken as it is.

    Raises
    ------
    InputError
        If no SHA-256 of the file is published, in its address, its name or by its publisher; if it
        cannot be fetched; or if what came has another one. Nothing is left half-written.
    """
    family, model, _ = _parsed(name)
    weights_of = FAMILIES[family][1]
    if weights_of is None:
        raise InputError(
            f"{name}: has no single file of weights to fetch: name its file or folder instead."
        )
    with offline():
        wanted = weights_of(Request(name=f"{family}:{model}", model=model))
    return fetch(name, wanted, None if folder is None else Path(folder))
