"""``open_clip:MODEL``."""

from __future__ import annotations

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
from genbounds.features.encoders._torchscript import is_script, load_script
from genbounds.features.encoders._weights import Weights, published
from genbounds.files import library
from genbounds.validation import InputError

_HUB_NAMES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors")
_NO_WEIGHTS = ("input_resolution", "context_length", "vocab_size")


def open_clip_weights(request: Request) -> Weights:
    """Say which file ``open_clip:MODEL`` needs (``MODEL/TAG`` for particular weights)."""
    entry = _entry(request)[1]
    repository = (entry.get("hf_hub") or "").rstrip("/") or None
    return published(entry.get("url"), *_HUB_NAMES, repository=repository)


def _entry(request: Request) -> tuple[Any, Any]:
    """Return the library, and what it says of the weights."""
    open_clip = library("open_clip", extra="encoders", needed_for=request.name)
    name, _, tag = request.model.partition("/")
    if name not in open_clip.list_models():
        raise no_such_model(request, "open_clip.list_models()")
    entry = open_clip.get_pretrained_cfg(name, tag) if tag else {}
    if tag and not entry:
        raise InputError(f"{request.name}: {name} has no weights {tag!r}.")
    return open_clip, entry


def open_clip_encoder(request: Request) -> Encoder:
    """Load the image encoder of ``open_clip:MODEL``."""
    open_clip, entry = _entry(request)
    name, path = request.model.partition("/")[0], request.path
    # OpenAI's own files are programs; open_clip reads their tensors only if it may unpickle.
    script = load_script(path) if path is not None and is_script(path) else None
    with building(request):
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
    return torch_encoder(
        request,
        _image_encoder(model),
        libraries=("open_clip_torch",),
        name=f"open_clip:{name}",
        **_preprocessing(model.visual.preprocess_cfg, entry),
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


def _preprocessing(config: Any, entry: Any) -> dict[str, Any]:
    """Return fields of `Preprocessing`; what was published with the weights comes first."""
    keys = ("mean", "std", "interpolation", "resize_mode")
    config = config | {key: entry[key] for key in keys if entry.get(key)}
    size = config["size"]
    return {
        "size": size if isinstance(size, int) else size[0],
        "fit": "stretch" if config.get("resize_mode") == "squash" else "crop",
        "interpolation": pillow_name(config.get("interpolation") or "bicubic"),
        "mean": tuple(config["mean"]),
        "std": tuple(config["std"]),
    }
