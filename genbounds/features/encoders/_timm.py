"""``timm:MODEL``."""

from __future__ import annotations

import math
from typing import Any

from genbounds.features._encoder import Encoder
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._torch import (
    building,
    check_weights,
    no_such_model,
    pillow_name,
    torch_encoder,
)
from genbounds.features.encoders._weights import Weights, published
from genbounds.files import library


def timm_weights(request: Request) -> Weights:
    """Say which file ``timm:MODEL`` needs (``MODEL.TAG`` for particular weights)."""
    config = _timm(request).get_pretrained_cfg(request.model)
    if config is None:
        raise no_such_model(request, "timm.list_models(pretrained=True)")
    repository = config.hf_hub_id
    if repository and repository.endswith("/"):
        repository += f"{config.architecture}.{config.tag}"
    hub_names = (config.hf_hub_filename, "model.safetensors", "pytorch_model.bin")
    return published(config.url, *(hub_names if repository else ()), repository=repository)


def _timm(request: Request) -> Any:
    timm = library("timm", extra="encoders", needed_for=request.name)
    # Names with a colon would make timm ask the hub.
    if ":" in request.model or not timm.is_model(request.model.partition(".")[0]):
        raise no_such_model(request, "timm.list_models()")
    return timm


def timm_encoder(request: Request) -> Encoder:
    """Load ``timm:MODEL``."""
    timm, path = _timm(request), request.path
    options = {}
    with building(request):
        model = timm.create_model(request.model, pretrained=False)
        if request.overrides.get("size") and model.pretrained_cfg.get("fixed_input_size"):
            # A transformer's position embeddings are made for one size; timm resamples them.
            options["img_size"] = request.overrides["size"]
            model = timm.create_model(request.model, pretrained=False, **options)
    if path is not None:
        with building(request):
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
        libraries=("timm", "torchvision"),
        **_preprocessing(timm.data.resolve_data_config(model=model)),
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
