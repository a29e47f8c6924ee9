"""The Inception network of the Fréchet inception distance, with the pixels of each program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder, Preprocessing, as_picture
from genbounds.features.encoders._networks import load_script
from genbounds.features.encoders._request import Request, Weights, followed_by, read_weights
from genbounds.validation import InputError

# The name holds the first eight digits, as torch.hub checks them. torch-fidelity publishes the
# same file under another name.
INCEPTION = Weights(
    names=("pt_inception-2015-12-05-6726825d.pth", "weights-inception-2015-12-05-6726825d.pth"),
    url="https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/pt_inception-2015-12-05-6726825d.pth",
    sha256="6726825d",
    size=95_628_359,
)

# SHA-256: github.com/crowsonkb/k-diffusion, k_diffusion/evaluation.py at 0f9902fc.
INCEPTION_SCRIPT = Weights(
    names=("inception-2015-12-05.pt",),
    url="https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/inception-2015-12-05.pt",
    sha256="f58cb9b6ec323ed63459aa4fb441fe750cfe39fafad6da5cb504a16f19e958f4",
    size=95_607_719,
)

_SIDE = 299
_WIDTHS = ("64", "192", "768", "2048")


def pytorch_fid_weights(request: Request) -> Weights:
    """Say which file ``pytorch-fid:2048`` needs."""
    if request.model not in _WIDTHS:
        raise InputError(
            f"{request.name}: the network gives {', '.join(_WIDTHS)} features, as in "
            "pytorch-fid:2048."
        )
    return INCEPTION


def pytorch_fid_encoder(request: Request) -> Encoder:
    """Load ``pytorch-fid:2048``, the network of pytorch-fid with a resize of our own.

    The images are resized as clean-fid does (bicubic, without aliasing), not as pytorch-fid does
    (bilinear, with aliasing).
    """
    pytorch_fid_weights(request)  # is there such a width?
    network = _network(request, request.model, normalise=True)
    return request.torch_encoder(network, libraries=("pytorch-fid", "torchvision"), size=_SIDE)


def inception_weights(request: Request) -> Weights:
    """Say which file ``inception:TOOL`` needs."""
    _pixels_of(request)  # is there such a version?
    return INCEPTION_SCRIPT if request.model == "clean" else INCEPTION


def inception_encoder(request: Request) -> Encoder:
    """Load ``inception:pytorch``, ``:clean`` or ``:tf``: another program's network and pixels."""
    pixels = _pixels_of(request)
    if request.overrides:
        raise InputError(
            f"{request.name}: resizes as {pixels.tool} does: leave --size and the other image "
            "options out, or name pytorch-fid:2048."
        )
    if request.model == "clean" and request.path is not None:
        with request.building():
            network = _flat(load_script(request.path).layers)
        return request.torch_encoder(network, libraries=(), pixels=pixels)
    network = _network(request, "2048", normalise=False)
    return request.torch_encoder(network, libraries=("pytorch-fid", "torchvision"), pixels=pixels)


def inception_library(request: Request) -> Any:
    """Import what the network is built with."""
    if request.model == "clean" and not request.random:
        return request.library("torch", "torch")
    return request.library("pytorch_fid.inception")


def _pixels_of(request: Request) -> _ToolPixels:
    if request.model not in _PIXELS:
        raise InputError(
            f"{request.name}: there is no such version: inception, "
            f"{', '.join(f'inception:{name}' for name in _PIXELS)} are known."
        )
    return _PIXELS[request.model]


def _network(request: Request, width: str, *, normalise: bool) -> Any:
    """Build pytorch-fid's network up to the block of that width.

    With `normalise` it takes pixels from 0 to 1, else what its first layer takes.
    """
    inception = inception_library(request)
    blocks = inception.InceptionV3.BLOCK_INDEX_BY_DIM
    original, path = inception._inception_v3, request.path

    def untrained(*args: Any, **kwargs: Any) -> Any:
        network = original(*args, **kwargs)
        network.load_state_dict = lambda state: None
        return network

    def from_the_file(*_: object, **__: object) -> Any:
        return None if path is None else read_weights(path)

    # It asks for its weights by their address; the answer comes from the file, or is not used.
    with (
        request.building(),
        mock.patch.object(inception, "load_state_dict_from_url", from_the_file),
        mock.patch.object(inception, "_inception_v3", untrained if path is None else original),
    ):
        return _flat(
            inception.InceptionV3(
                [blocks[int(width)]], resize_input=False, normalize_input=normalise
            )
        )


def _flat(network: Any) -> Any:
    """Average what early layers return over the image, as pytorch-fid does."""
    from torch.nn.functional import adaptive_avg_pool2d

    def averaged(found: Any) -> Any:
        found = found[0] if isinstance(found, list) else found
        return found if found.ndim == 2 else adaptive_avg_pool2d(found, 1)

    return followed_by(network, averaged)


@dataclass(frozen=True, slots=True)
class _ToolPixels:
    """What another program makes of an image: RGB of 8 bits, resized, scaled.

    `text` is stored with the features; features of other pixels are not compared with them.
    """

    tool: str
    text: str
    function: Callable[[NDArray[np.uint8]], NDArray[np.float32]]

    def describe(self) -> str:
        return f"as {self.tool}: {self.text}"

    def __call__(self, image: Any) -> NDArray[np.float32]:
        return self.function(np.asarray(as_picture(image).convert("RGB")))


def _pytorch_fid(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    import torch

    images = torch.from_numpy(rgb.transpose(2, 0, 1)[np.newaxis].astype(np.float32)) / 255.0
    resized = torch.nn.functional.interpolate(
        images, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False
    )
    return np.asarray((2.0 * resized - 1.0)[0].numpy())


_BICUBIC = Preprocessing(size=_SIDE, white=255.0, mean=(128.0,), std=(128.0,))


def _torch_fidelity(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Interpolate as TensorFlow 1 does, whose corner pixels, not their centres, coincide."""
    planes = rgb.transpose(2, 0, 1).astype(np.float32)
    for axis in (2, 1):
        count = planes.shape[axis]
        place = np.arange(_SIDE, dtype=np.float32) * np.float32(count / _SIDE)
        before = place.astype(np.int64)
        share = (place - before.astype(np.float32)).reshape((-1, 1) if axis == 1 else (1, -1))
        low = planes.take(before, axis)
        planes = low + (planes.take(np.minimum(before + 1, count - 1), axis) - low) * share
    return np.asarray((planes - np.float32(128.0)) / np.float32(128.0))


_PIXELS = {
    "pytorch": _ToolPixels(
        "pytorch-fid", "RGB / 255, bilinear to 299 x 299 without antialiasing, 2x - 1", _pytorch_fid
    ),
    "clean": _ToolPixels(
        "clean-fid", "RGB, bicubic to 299 x 299 with antialiasing, (x - 128) / 128", _BICUBIC
    ),
    "tf": _ToolPixels(
        "torch-fidelity",
        "RGB, bilinear to 299 x 299 as in TensorFlow 1, (x - 128) / 128",
        _torch_fidelity,
    ),
}
