"""``timm:MODEL``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from genbounds.features._encoder import Encoder
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._torch import (
    UNTRAINED,
    building,
    check_weights,
    file_names,
    no_such_model,
    pillow_name,
    torch_encoder,
)
from genbounds.features.encoders._weights import file_digest, find_weights, library


def timm_encoder(request: Request) -> Encoder:
    """Load ``timm:MODEL`` (``MODEL.TAG`` for particular weights)."""
    timm = library("timm", extra="encoders", needed_for=request.name)
    # Names with a colon would make timm ask the hub.
    if ":" in request.model or not timm.is_model(request.model.partition(".")[0]):
        raise no_such_model(request, "timm.list_models()")
    options = {}
    with building(request):
        model = timm.create_model(request.model, pretrained=False)
        published = model.pretrained_cfg
        if request.overrides.get("size") and published.get("fixed_input_size"):
            # A transformer's position embeddings are made for one size; timm resamples them.
            options["img_size"] = request.overrides["size"]
            model = timm.create_model(request.model, pretrained=False, **options)
    digest = UNTRAINED
    if not request.random:
        path = _find(request, published)
        digest = file_digest(path)
        with building(request, path):
            check_weights(path)
            # timm's own loader translates names and position embeddings. It is strict only with
            # the classifier in place: without, it would take any file for the model's.
            model = timm.create_model(
                request.model,
                pretrained=True,
                pretrained_cfg_overlay={"file": str(path), "custom_load": path.suffix == ".npz"},
                **options,
            )
    model.reset_classifier(0)
    return torch_encoder(
        request,
        model,
        weights=digest,
        libraries=("timm", "torchvision"),
        **_preprocessing(timm.data.resolve_data_config(model=model)),
    )


def _find(request: Request, published: Any) -> Path:
    url = published.get("url") or None
    repository = published.get("hf_hub_id") or None
    if repository and repository.endswith("/"):
        repository += f"{published['architecture']}.{published['tag']}"
    hub_names = (published.get("hf_hub_filename"), "model.safetensors", "pytorch_model.bin")
    return find_weights(
        request.name,
        request.weights,
        names=file_names(url, *(hub_names if repository else ())),
        repository=repository,
        url=url,
    )


def _preprocessing(data: Any) -> dict[str, Any]:
    """Return fields of `Preprocessing` that agree with timm's evaluation pipeline."""
    size, crop = data["input_size"][-1], data["crop_pct"]
    stretched = data.get("crop_mode") == "squash" and crop == 1.0
    return {
        "size": size,
        "resize": None if stretched else math.floor(size / crop),
        "fit": "stretch" if stretched else "crop",
        "interpolation": pillow_name(data["interpolation"]),
        "mean": tuple(data["mean"]),
        "std": tuple(data["std"]),
    }
