"""``open_clip:MODEL``."""

from __future__ import annotations

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
from genbounds.validation import InputError

_HUB_NAMES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors")


def open_clip_encoder(request: Request) -> Encoder:
    """Load the image encoder of ``open_clip:MODEL`` (``MODEL/TAG`` for particular weights)."""
    open_clip = library("open_clip", extra="encoders", needed_for=request.name)
    name, _, tag = request.model.partition("/")
    if name not in open_clip.list_models():
        raise no_such_model(request, "open_clip.list_models()")
    published = open_clip.get_pretrained_cfg(name, tag) if tag else {}
    if tag and not published:
        raise InputError(f"{request.name}: {name} has no weights {tag!r}.")
    path, digest = None, UNTRAINED
    if not request.random:
        path = _find(request, published)
        digest = file_digest(path)
    with building(request, path):
        if path is not None:
            check_weights(path)
        model = open_clip.create_model(
            name,
            pretrained=None if path is None else str(path),
            pretrained_image=False,
            pretrained_text=False,
            force_quick_gelu=bool(published.get("quick_gelu")),
        )
    return torch_encoder(
        request,
        _image_encoder(model),
        weights=digest,
        libraries=("open_clip_torch",),
        name=f"open_clip:{name}",
        **_preprocessing(model.visual.preprocess_cfg, published),
    )


def _find(request: Request, published: Any) -> Path:
    url = published.get("url") or None
    return find_weights(
        request.name,
        request.weights,
        names=file_names(url, *_HUB_NAMES),
        repository=(published.get("hf_hub") or "").rstrip("/") or None,
        url=url,
    )


def _image_encoder(model: Any) -> Any:
    """Return the network of the images; that of the texts can then be freed."""
    from torch import nn

    class ImageEncoder(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.visual = model.visual

        def forward(self, images: Any) -> Any:
            embedded = self.visual(images)
            return embedded[0] if isinstance(embedded, tuple) else embedded

    return ImageEncoder()


def _preprocessing(config: Any, published: Any) -> dict[str, Any]:
    """Return fields of `Preprocessing`; what was published with the weights comes first."""
    keys = ("mean", "std", "interpolation", "resize_mode")
    config = config | {key: published[key] for key in keys if published.get(key)}
    size = config["size"]
    return {
        "size": size if isinstance(size, int) else size[0],
        "fit": "stretch" if config.get("resize_mode") == "squash" else "crop",
        "interpolation": pillow_name(config.get("interpolation") or "bicubic"),
        "mean": tuple(config["mean"]),
        "std": tuple(config["std"]),
    }
