"""An encoder as it was asked for, and one made of a PyTorch network: what all families share."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from genbounds._process import silenced
from genbounds._text import display
from genbounds.features import _encoder
from genbounds.features.encoders._weights import file_digest, versions
from genbounds.files import library
from genbounds.origins import RANDOM
from genbounds.validation import InputError

PRECISIONS = ("float32", "bfloat16", "float16")
SEED = 0
"""Of untrained weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One encoder as it was asked for.

    Attributes
    ----------
    name : str
        In full, as in ``timm:resnet50``.
    model : str
        What stands after the family: a model, a file or ``module:function``.
    weights : Path or None
        A file, or a folder to look into; None: the libraries' own caches.
    random : bool
        Whether untrained weights were asked for.
    path : Path or None
        The file of weights that was found; None where they are random, or part of the model.
    device, precision : str
    overrides : dict
        Fields of `Preprocessing` that replace those of the model.
    """

    name: str
    model: str
    weights: Path | None = None
    random: bool = False
    device: str = "cpu"
    precision: str = "float32"
    overrides: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @property
    def digest(self) -> str:
        """What stands for the weights in a file of features."""
        return f"{RANDOM}, seed {SEED}" if self.path is None else file_digest(self.path)

    def library(self, module: str, extra: str = "encoders") -> Any:
        """Import what the encoder needs, or say how to get it."""
        return library(module, extra=extra, needed_for=self.name)

    def unknown(self, listing: str) -> InputError:
        """Return the error of a name that a library does not know."""
        return InputError(f"{self.name}: there is no such model; {listing} in Python lists them.")

    def file(self) -> Path:
        """Return the file that the name holds, which has the weights in it."""
        path = Path(self.model)
        if not path.is_file():
            raise InputError(f"{display(path)}: no such file: save the model there.")
        if self.weights is not None or self.random:
            raise InputError(f"{display(path)}: has its own weights: leave --weights out.")
        return path

    def preprocessing(self, **defaults: Any) -> _encoder.Preprocessing:
        """Return the model's own preprocessing, with what the user asked for in its place."""
        known = {field.name for field in fields(_encoder.Preprocessing)}
        if unknown := set(self.overrides) - known:
            raise InputError(
                f"`preprocessing` has no {', '.join(sorted(unknown))}: it has {', '.join(known)}."
            )
        if "size" in self.overrides and "resize" not in self.overrides:
            # The model's margin for the crop belongs to its own size.
            defaults = {key: value for key, value in defaults.items() if key != "resize"}
        return _encoder.Preprocessing(**(defaults | self.overrides))

    def without_options(self, *, of: str) -> None:
        """Refuse what this kind of encoder would ignore."""
        ignored = {
            "--weights": self.weights is not None or self.random,
            "--precision": self.precision != "float32",
            "preprocessing (--size, --fit, …)": bool(self.overrides),
        }
        for option, given in ignored.items():
            if given:
                raise InputError(f"{self.name}: {option} is not used by {of}: leave it out.")

    @contextmanager
    def building(self) -> Iterator[None]:
        """Build a network: from a fixed seed, quietly; whatever is raised becomes an `InputError`.

        The global random generator is left as it was.
        """
        torch = self.library("torch", "torch")
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
            subject = self.name
            if self.path is not None:
                subject = f"{display(self.path)}: does not fit {self.name}"
            reason = display(" ".join(str(error).split()), limit=160)
            raise InputError(f"{subject} ({reason}).") from error
        finally:
            logging.disable(disabled)

    def torch_encoder(
        self,
        network: Any,
        *,
        libraries: Sequence[str],
        name: str | None = None,
        weights: str | None = None,
        pixels: Any = None,
        **defaults: Any,
    ) -> _encoder.Encoder:
        """Make an encoder of a network.

        Parameters
        ----------
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
        preprocessing = pixels or self.preprocessing(**defaults)
        try:
            network = network.to(self.device).eval()
        except (RuntimeError, AssertionError) as error:
            # There is no such device, or not enough memory on it.
            raise InputError(f"--device {self.device}: {display(error, limit=160)}") from error
        called = name or self.name
        return _encoder.FunctionEncoder(
            encode=lambda batch: self._run(network, _encoder.stack_images(batch), called),
            takes="images",
            preprocessing=preprocessing,
            description={
                "encoder": called,
                "weights": weights or self.digest,
                "preprocessing": preprocessing.describe(),
                "precision": f"{self.precision} on {self.device.partition(':')[0]}",
                "libraries": versions(*libraries, "torch", "pillow"),
            },
        )

    def _run(self, network: Any, images: NDArray[np.float32], name: str) -> NDArray[Any]:
        """Run a network on images (n, c, h, w); features (n, d) are float32 at every precision."""
        import torch

        mixed = torch.autocast(
            torch.device(self.device).type,
            dtype=getattr(torch, self.precision),
            enabled=self.precision != "float32",
        )
        try:
            with torch.inference_mode(), mixed, _encoder.evaluating(network):
                features = network(torch.from_numpy(images).to(self.device))
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"{self.device}: not enough memory for {len(images)} images at once: "
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
