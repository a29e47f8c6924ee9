"""``pytorch-fid:2048``."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

from genbounds.features._encoder import Encoder
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._torch import (
    UNTRAINED,
    building,
    file_names,
    read_weights,
    torch_encoder,
)
from genbounds.features.encoders._weights import file_digest, find_weights, library
from genbounds.validation import InputError


def pytorch_fid_encoder(request: Request) -> Encoder:
    """Load ``pytorch-fid:2048``, the Inception network of the Fréchet inception distance.

    The images are resized as clean-fid does (bicubic, without aliasing), not as pytorch-fid does
    (bilinear, with aliasing).
    """
    inception = library("pytorch_fid.inception", extra="encoders", needed_for=request.name)
    blocks = inception.InceptionV3.BLOCK_INDEX_BY_DIM
    if request.model not in {str(width) for width in blocks}:
        raise InputError(
            f"{request.name}: the network gives {', '.join(str(width) for width in blocks)} "
            f"features, as in pytorch-fid:2048."
        )
    path, digest = None, UNTRAINED
    if not request.random:
        url = inception.FID_WEIGHTS_URL
        path = find_weights(request.name, request.weights, names=file_names(url), url=url)
        digest = file_digest(path)
    network = _pooled(_build(request, inception, blocks[int(request.model)], path))
    return torch_encoder(
        request, network, weights=digest, libraries=("pytorch-fid", "torchvision"), size=299
    )


def _build(request: Request, inception: Any, block: int, path: Path | None) -> Any:
    """Build the network up to a block, with the weights of a file or random ones."""
    original = inception._inception_v3

    def untrained(*args: Any, **kwargs: Any) -> Any:
        network = original(*args, **kwargs)
        network.load_state_dict = lambda state: None
        return network

    def from_the_file(*_: object, **__: object) -> Any:
        return None if path is None else read_weights(path)

    # It asks for its weights by their address; the answer comes from the file, or is not used.
    with (
        building(request, path),
        mock.patch.object(inception, "load_state_dict_from_url", from_the_file),
        mock.patch.object(inception, "_inception_v3", untrained if path is None else original),
    ):
        return inception.InceptionV3([block], resize_input=False, normalize_input=True)


def _pooled(network: Any) -> Any:
    """Average the features of early layers over the image, as pytorch-fid does."""
    from torch import nn

    class Pooled(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: Any) -> Any:
            return nn.functional.adaptive_avg_pool2d(self.network(images)[0], 1)

    return Pooled()
