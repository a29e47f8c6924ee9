"""Encoders that are PyTorch networks: timm, torchvision, open_clip, pytorch-fid, TorchScript."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._callable import stack_images
from genbounds.features._encoder import Encoder, Kind
from genbounds.features._offline import file_digest, find_weights, library, versions
from genbounds.features._preprocessing import Preprocessing
from genbounds.features._request import Request
from genbounds.files import display
from genbounds.origins import RANDOM
from genbounds.validation import InputError

_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchEncoder:
    """A network of images (n, c, h, w) that returns features (n, d)."""

    network: Callable[[Any], Any]
    preprocessing: Preprocessing
    device: str
    precision: str
    description: dict[str, str]
    takes: Kind | None = "images"

    def prepare(self, item: Any) -> Any:
        """Resize and normalise."""
        return self.preprocessing(item)

    def encode(self, batch: Sequence[Any]) -> NDArray[Any]:
        """Run the network; half precision leaves it as float32."""
        import torch

        images = torch.from_numpy(stack_images(batch)).to(self.device)
        kind = torch.device(self.device).type
        mixed = self.precision != "float32"
        try:
            with (
                torch.inference_mode(),
                torch.autocast(kind, dtype=getattr(torch, self.precision), enabled=mixed),
            ):
                features = self.network(images)
        except torch.OutOfMemoryError as error:
            raise InputError(
                f"{self.device}: no memory for {len(batch)} images at once: give a smaller --batch."
            ) from error
        if not isinstance(features, torch.Tensor):
            raise InputError(
                f"{self.description['encoder']} returns a {type(features).__name__}, not one "
                "tensor (n, d): wrap it."
            )
        if features.ndim > 2 and math.prod(features.shape[2:]) == 1:
            features = features.flatten(1)
        if features.ndim != 2:
            raise InputError(
                f"{self.description['encoder']} returns shape {tuple(features.shape)}: features "
                "need shape (n, d). Take a layer behind the pooling."
            )
        return np.asarray(features.float().cpu().numpy())


def _encoder(
    request: Request,
    network: Any,
    *,
    weights: str,
    libraries: Sequence[str],
    name: str | None = None,
    **defaults: Any,
) -> TorchEncoder:
    preprocessing = request.preprocessing(**defaults)
    try:
        network = network.to(request.device).eval()
    except (RuntimeError, AssertionError) as error:  # no such device, or no room on it
        raise InputError(f"--device {request.device}: {display(error, limit=160)}") from error
    return TorchEncoder(
        network=network,
        preprocessing=preprocessing,
        device=request.device,
        precision=request.precision,
        description={
            "encoder": name or request.name,
            "weights": weights,
            "preprocessing": preprocessing.describe(),
            "precision": f"{request.precision} on {request.device.partition(':')[0]}",
            "libraries": versions(*libraries, "torch", "pillow"),
        },
    )


# --- model libraries ----------------------------------------------------------------------------


def timm_encoder(request: Request) -> Encoder:
    """Load ``timm:MODEL`` (``MODEL.TAG`` for particular weights)."""
    timm = library("timm", extra="encoders", needed_for=request.name)
    # Names with a colon would make timm ask the hub.
    if ":" in request.rest or not timm.is_model(request.rest.partition(".")[0]):
        raise _unknown(request, "timm.list_models()")
    with _untrained(), _model_errors(request):
        model = timm.create_model(request.rest, pretrained=False)
        config = model.pretrained_cfg
        options = {}
        if request.overrides.get("size") and config.get("fixed_input_size"):
            # A transformer's position embeddings are made for one size; timm resamples them.
            options["img_size"] = request.overrides["size"]
            model = timm.create_model(request.rest, pretrained=False, **options)
    digest = f"{RANDOM}, seed {_SEED}"
    if not request.random:
        url = config.get("url") or None
        repository = config.get("hf_hub_id") or None
        if repository and repository.endswith("/"):
            repository += f"{config['architecture']}.{config['tag']}"
        hub = (config.get("hf_hub_filename"), "model.safetensors", "pytorch_model.bin")
        path = find_weights(
            request.name,
            request.weights,
            names=_names(url, *(hub if repository else ())),
            repository=repository,
            url=url,
        )
        digest = file_digest(path)
        with _model_errors(request, path):
            # By way of timm's own loader, which translates names and position embeddings. With the
            # classifier in place it is strict: without, it would take any file for the model's.
            model = timm.create_model(
                request.rest,
                pretrained=True,
                pretrained_cfg_overlay={"file": str(path), "custom_load": path.suffix == ".npz"},
                **options,
            )
    model.reset_classifier(0)
    data = timm.data.resolve_data_config(model=model)
    size, crop = data["input_size"][-1], data["crop_pct"]
    squash = data.get("crop_mode") == "squash" and crop == 1.0
    return _encoder(
        request,
        model,
        weights=digest,
        libraries=("timm", "torchvision"),
        size=size,
        resize=None if squash else math.floor(size / crop),
        fit="stretch" if squash else "crop",
        interpolation=_interpolation(data["interpolation"]),
        mean=tuple(data["mean"]),
        std=tuple(data["std"]),
    )


def torchvision_encoder(request: Request) -> Encoder:
    """Load ``torchvision:MODEL`` (``MODEL/WEIGHTS`` for particular weights)."""
    library("torchvision", extra="encoders", needed_for=request.name)
    from torchvision import models

    name, _, tag = request.rest.partition("/")
    if name not in models.list_models(models):
        raise _unknown(request, "torchvision.models.list_models()")
    entries = models.get_model_weights(name)
    if tag and tag not in entries.__members__:
        raise InputError(
            f"{request.name}: {name} has no weights {tag!r}, only {', '.join(entries.__members__)}."
        )
    entry = entries[tag] if tag else entries.DEFAULT
    # Two networks are built otherwise for their published weights.
    inception = {"aux_logits": True, "transform_input": True, "init_weights": False}
    options = inception if name in ("inception_v3", "googlenet") else {}
    with _untrained(), _model_errors(request):
        model = models.get_model(name, weights=None, **options)
    digest = f"{RANDOM}, seed {_SEED}"
    if not request.random:
        path = find_weights(request.name, request.weights, names=_names(entry.url), url=entry.url)
        digest = file_digest(path)
        with _model_errors(request, path):
            model.load_state_dict(_state(path))
    _drop_last_linear(model, request)
    wanted = entry.transforms()
    return _encoder(
        request,
        model,
        weights=digest,
        libraries=("torchvision",),
        name=f"torchvision:{name}",
        size=wanted.crop_size[0],
        resize=wanted.resize_size[0],
        fit="crop",
        interpolation=wanted.interpolation.value,
        mean=tuple(wanted.mean),
        std=tuple(wanted.std),
    )


def open_clip_encoder(request: Request) -> Encoder:
    """Load the image side of ``open_clip:MODEL`` (``MODEL/TAG`` for particular weights)."""
    open_clip = library("open_clip", extra="encoders", needed_for=request.name)
    from torch import nn

    name, _, tag = request.rest.partition("/")
    if name not in open_clip.list_models():
        raise _unknown(request, "open_clip.list_models()")
    published = open_clip.get_pretrained_cfg(name, tag) if tag else {}
    if tag and not published:
        raise InputError(f"{request.name}: {name} has no weights {tag!r}.")
    path, digest = None, f"{RANDOM}, seed {_SEED}"
    if not request.random:
        url = published.get("url") or None
        repository = (published.get("hf_hub") or "").rstrip("/") or None
        path = find_weights(
            request.name,
            request.weights,
            names=_names(
                url,
                "open_clip_model.safetensors",
                "open_clip_pytorch_model.bin",
                "model.safetensors",
            ),
            repository=repository,
            url=url,
        )
        digest = file_digest(path)
    with _untrained(), _model_errors(request, path):
        model = open_clip.create_model(
            name,
            pretrained=None if path is None else str(path),
            pretrained_image=False,
            pretrained_text=False,
            force_quick_gelu=bool(published.get("quick_gelu")),
        )

    class ImageSide(nn.Module):  # type: ignore[misc]
        """What is left once the texts' side is dropped."""

        def __init__(self) -> None:
            super().__init__()
            self.visual = model.visual

        def forward(self, images: Any) -> Any:
            embedded = self.visual(images)
            return embedded[0] if isinstance(embedded, tuple) else embedded

    wanted = model.visual.preprocess_cfg | {
        key: published[key] for key in ("mean", "std", "interpolation", "resize_mode")
        if published.get(key)
    }  # fmt: skip
    size = wanted["size"]
    return _encoder(
        request,
        ImageSide(),
        weights=digest,
        libraries=("open_clip_torch",),
        name=f"open_clip:{name}",
        size=size if isinstance(size, int) else size[0],
        fit="stretch" if wanted.get("resize_mode") == "squash" else "crop",
        interpolation=_interpolation(wanted.get("interpolation") or "bicubic"),
        mean=tuple(wanted["mean"]),
        std=tuple(wanted["std"]),
    )


def pytorch_fid_encoder(request: Request) -> Encoder:
    """Load ``pytorch-fid:2048``, the Inception network of the Fréchet inception distance.

    The images are resized as clean-fid does (bicubic, without aliasing), not as pytorch-fid does
    (bilinear, with aliasing).
    """
    from unittest import mock

    inception = library("pytorch_fid.inception", extra="encoders", needed_for=request.name)
    blocks = inception.InceptionV3.BLOCK_INDEX_BY_DIM
    if request.rest not in {str(width) for width in blocks}:
        raise InputError(
            f"{request.name}: the network gives {', '.join(str(width) for width in blocks)} "
            f"features, as in pytorch-fid:2048."
        )
    path, digest = None, f"{RANDOM}, seed {_SEED}"
    if not request.random:
        url = inception.FID_WEIGHTS_URL
        path = find_weights(request.name, request.weights, names=_names(url), url=url)
        digest = file_digest(path)

    original = inception._inception_v3

    def untrained(*args: Any, **kwargs: Any) -> Any:
        network = original(*args, **kwargs)
        network.load_state_dict = lambda state: None
        return network

    def local(*_: object, **__: object) -> Any:
        return None if path is None else _state(path)

    # It asks for its weights by their address; the answer comes from the file, or is not used.
    with (
        _untrained(),
        _model_errors(request, path),
        mock.patch.object(inception, "load_state_dict_from_url", local),
        mock.patch.object(inception, "_inception_v3", untrained if path is None else original),
    ):
        model = inception.InceptionV3(
            [blocks[int(request.rest)]], resize_input=False, normalize_input=True
        )
    from torch import nn

    class Pooled(nn.Module):  # type: ignore[misc]
        """The features of early layers are averaged over the image, as pytorch-fid does."""

        def __init__(self) -> None:
            super().__init__()
            self.network = model

        def forward(self, images: Any) -> Any:
            return nn.functional.adaptive_avg_pool2d(self.network(images)[0], 1)

    return _encoder(
        request, Pooled(), weights=digest, libraries=("pytorch-fid", "torchvision"), size=299
    )


def torchscript_encoder(request: Request) -> Encoder:
    """Load ``torchscript:FILE``: a program, so take only files that you trust."""
    torch = library("torch", extra="torch", needed_for=request.name)
    path = Path(request.rest)
    if not path.is_file():
        raise InputError(f"{display(path)}: no such file: save the model there.")
    if request.weights is not None or request.random:
        raise InputError(f"{display(path)}: has its own weights: leave --weights out.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch prefers other formats
            model = torch.jit.load(str(path), map_location="cpu")
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{display(path)}: is no TorchScript ({display(error)}).") from error
    return _encoder(
        request,
        model,
        weights=file_digest(path),
        libraries=(),
        name=f"torchscript:{path.name}",
    )


# --- what they share ----------------------------------------------------------------------------


def _names(url: str | None, *others: str | None) -> list[str]:
    names = [url.rpartition("/")[2]] if url else []
    return names + [name for name in others if name]


def _state(path: Path) -> Any:
    """Read a file of weights; pickles that do more than hold tensors are refused."""
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    state = torch.load(path, map_location="cpu", weights_only=True)
    return state.get("state_dict", state) if isinstance(state, dict) else state


def _interpolation(name: str) -> str:
    """Return a name that Pillow knows; "random" is meant for training."""
    return name if name in ("bicubic", "bilinear", "lanczos") else "bicubic"


def _drop_last_linear(model: Any, request: Request) -> None:
    """Replace the last linear layer, so that the network returns what enters it."""
    from torch import nn

    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise InputError(f"{request.name}: has no linear layer at its end: export it yourself.")
    parent, _, child = linear[-1].rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())


def _unknown(request: Request, listing: str) -> InputError:
    return InputError(f"{request.name}: there is no such model; {listing} in Python lists them.")


@contextmanager
def _untrained() -> Iterator[None]:
    """Build a network from a fixed seed, on the processor; the global generator stays as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_SEED)
        yield


@contextmanager
def _model_errors(request: Request, path: Path | None = None) -> Iterator[None]:
    """Turn what a library raises over a model or a file of weights into one InputError."""
    silenced = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about things that a user of the model cannot change
            yield
    except InputError:
        raise
    except Exception as error:
        what = request.name if path is None else f"{display(path)}: is not for {request.name}"
        reason = display(" ".join(str(error).split()), limit=160)
        raise InputError(f"{what} ({reason}).") from error
    finally:
        logging.disable(silenced)
