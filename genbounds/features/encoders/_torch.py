"""What the PyTorch encoders share: the network behind `Encoder`, building it, reading weights."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from genbounds._process import silenced
from genbounds.features._encoder import Encoder, FunctionEncoder, evaluating
from genbounds.features._preprocessing import stack_images
from genbounds.features.encoders._request import SEED, Request
from genbounds.features.encoders._weights import versions
from genbounds.files import display
from genbounds.validation import InputError


def _encoded(
    network: Any, images: NDArray[np.float32], name: str, request: Request
) -> NDArray[Any]:
    """Run a network on images (n, c, h, w); features (n, d) are float32 at every precision."""
    import torch

    mixed = torch.autocast(
        torch.device(request.device).type,
        dtype=getattr(torch, request.precision),
        enabled=request.precision != "float32",
    )
    try:
        with torch.inference_mode(), mixed, evaluating(network):
            features = network(torch.from_numpy(images).to(request.device))
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"{request.device}: not enough memory for {len(images)} images at once: "
            "give a smaller --batch."
        ) from error
    if not isinstance(features, torch.Tensor):
        raise InputError(
            f"{name} returns a {type(features).__name__} instead of one tensor (n, d): "
            "wrap the network."
        )
    if features.ndim > 2 and math.prod(features.shape[2:]) == 1:
        features = features.flatten(1)
    if features.ndim != 2:
        raise InputError(
            f"{name} returns shape {tuple(features.shape)}: features need shape (n, d): "
            "take a layer after the pooling."
        )
    return np.asarray(features.float().cpu().numpy())


def torch_encoder(
    request: Request,
    network: Any,
    *,
    libraries: Sequence[str],
    name: str | None = None,
    weights: str | None = None,
    pixels: Any = None,
    **defaults: Any,
) -> Encoder:
    """Make an encoder of a network.

    Parameters
    ----------
    request : Request
    network : torch.nn.Module
        Returns the features. It is moved to the device that was asked for.
    libraries : sequence of str
        Distributions whose versions are stored with the features.
    name : str, optional
        Stored as the encoder's name; that of the request by default.
    weights : str, optional
        Digest of its weights; that of the request by default.
    pixels : callable, optional
        In place of a `Preprocessing`: from an image to an array (channels, height, width); its
        method ``describe`` returns one line, equal for equal pixels.
    **defaults
        Fields of `Preprocessing` that the model asks for.
    """
    preprocessing = pixels or request.preprocessing(**defaults)
    try:
        network = network.to(request.device).eval()
    except (RuntimeError, AssertionError) as error:  # no such device, or not enough memory there
        raise InputError(f"--device {request.device}: {display(error, limit=160)}") from error
    called = name or request.name
    return FunctionEncoder(
        encode=lambda batch: _encoded(network, stack_images(batch), called, request),
        takes="images",
        preprocessing=preprocessing,
        description={
            "encoder": called,
            "weights": weights or request.digest,
            "preprocessing": preprocessing.describe(),
            "precision": f"{request.precision} on {request.device.partition(':')[0]}",
            "libraries": versions(*libraries, "torch", "pillow"),
        },
    )


def read_weights(path: Path) -> Any:
    """Read the tensors of a file; a pickle that holds anything else is refused."""
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    state = torch.load(path, map_location="cpu", weights_only=True)
    return state.get("state_dict", state) if isinstance(state, dict) else state


def check_weights(path: Path) -> None:
    """Refuse a pickle that holds anything but tensors before a library reads the file.

    The libraries read with the same care from the versions on that are asked for; this does not
    rest on it.
    """
    import torch

    if path.suffix in (".safetensors", ".npz"):
        return
    torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path) or None)


def followed_by(network: Any, change: Callable[[Any], Any]) -> Any:
    """Return a network whose output is that of another, changed."""
    from torch import nn

    class Followed(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: Any) -> Any:
            return change(self.network(images))

    return Followed()


@contextmanager
def building(request: Request) -> Iterator[None]:
    """Build a network: from a fixed seed, quietly, with one `InputError` for whatever is raised.

    The global random generator is left as it was.
    """
    torch = request.library("torch", "torch")
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        # About what a user of the model cannot change.
        with silenced(Warning), torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(SEED)
            yield
    except InputError:
        raise
    except Exception as error:  # the libraries raise whatever comes
        subject = request.name
        if request.path is not None:
            subject = f"{display(request.path)}: does not fit {request.name}"
        reason = display(" ".join(str(error).split()), limit=160)
        raise InputError(f"{subject} ({reason}).") from error
    finally:
        logging.disable(disabled)
