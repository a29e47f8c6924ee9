"""``torchvision:MODEL``."""

from __future__ import annotations

from typing import Any

from genbounds.features._encoder import Encoder
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._torch import (
    building,
    no_such_model,
    read_weights,
    torch_encoder,
)
from genbounds.features.encoders._weights import Weights, published
from genbounds.files import library
from genbounds.validation import InputError

# These two networks are built in another way for their published weights.
_INCEPTION = {"aux_logits": True, "transform_input": True, "init_weights": False}
_OPTIONS: dict[str, dict[str, bool]] = {"inception_v3": _INCEPTION, "googlenet": _INCEPTION}


def torchvision_weights(request: Request) -> Weights:
    """Say which file ``torchvision:MODEL`` needs (``MODEL/WEIGHTS`` for particular weights)."""
    return published(_entry(request).url)


def _entry(request: Request) -> Any:
    """Return what torchvision says of the weights."""
    library("torchvision", extra="encoders", needed_for=request.name)
    from torchvision import models

    name, _, tag = request.model.partition("/")
    if name not in models.list_models(models):
        raise no_such_model(request, "torchvision.models.list_models()")
    known = models.get_model_weights(name)
    if tag and tag not in known.__members__:
        raise InputError(
            f"{request.name}: {name} has no weights {tag!r}, only {', '.join(known.__members__)}."
        )
    return known[tag] if tag else known.DEFAULT


def torchvision_encoder(request: Request) -> Encoder:
    """Load ``torchvision:MODEL``."""
    pipeline = _entry(request).transforms()
    from torchvision import models

    name = request.model.partition("/")[0]
    with building(request):
        model = models.get_model(name, weights=None, **_OPTIONS.get(name, {}))
        if request.path is not None:
            model.load_state_dict(read_weights(request.path))
    _drop_last_linear(model, request)
    return torch_encoder(
        request,
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


def _drop_last_linear(model: Any, request: Request) -> None:
    """Replace the last linear layer, so that the network returns what enters it."""
    from torch import nn

    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise InputError(
            f"{request.name}: has no linear layer at its end: export what you need as TorchScript."
        )
    parent, _, child = linear[-1].rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())
