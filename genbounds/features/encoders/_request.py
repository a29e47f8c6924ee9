"""An encoder as it was asked for, its weights, and one made of a network: what families share.

Weights are found on this machine; fetched only when asked, whole, with the published checksum.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import math
import os
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any
from unittest import mock
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from genbounds._process import environment, silenced
from genbounds._text import display
from genbounds.features import _encoder
from genbounds.files import library, written_aside
from genbounds.origins import RANDOM
from genbounds.validation import InputError

_PIECE = 1 << 20
_SECONDS = 60.0

_SWITCHES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


@contextmanager
def offline() -> Iterator[None]:
    """Tell the encoders' libraries not to use the network."""
    # The hub's client reads its switch once, when it is imported.
    constants = sys.modules.get("huggingface_hub.constants")
    known = mock.patch.object(constants, "HF_HUB_OFFLINE", True) if constants else nullcontext()
    with known, environment(_SWITCHES):
        yield


def torch_cache() -> Path:
    """Return the folder in which PyTorch keeps downloaded weights."""
    return _cache("TORCH_HOME", "torch") / "hub" / "checkpoints"


def hub_cache() -> Path:
    """Return the folder in which the Hugging Face hub's client keeps what it downloaded."""
    return Path(os.environ.get("HF_HUB_CACHE") or _cache("HF_HOME", "huggingface") / "hub")


def _cache(variable: str, name: str) -> Path:
    """Return the folder that an environment variable names, or one in the user's cache."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(variable) or Path(user, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A file of weights: what it may be called, and what its publisher says of it.

    Attributes
    ----------
    names : tuple of str
        The names under which it may lie: its published one first.
    url : str or None
        Where its authors publish it.
    repository : str or None
        Under which name the Hugging Face hub keeps it.
    folder : bool
        Whether a whole folder is wanted, the one that has one of `names` in it.
    sha256 : str or None
        Its SHA-256, or the first digits.
    size : int or None
        In bytes.
    """

    names: tuple[str, ...]
    url: str | None = None
    repository: str | None = None
    folder: bool = False
    sha256: str | None = None
    size: int | None = None

    @classmethod
    def published(
        cls, url: str | None, *others: str | None, repository: str | None = None
    ) -> Weights:
        """Describe a file by its address, and by the names that the Hugging Face hub gives it.

        Publishers put its SHA-256, or the first digits, into the address: OpenAI's stands before
        the name; torch.hub's, torchvision's and OpenCLIP's ends the name.
        """
        own = [url.rpartition("/")[2]] if url else []
        names = tuple(name for name in (*own, *others) if name)
        found = re.search(r"/([0-9a-f]{64})/[^/]+$|-([0-9a-f]{8,64})\.[a-z]+$", url or "")
        sha256 = None if found is None else found[1] or found[2]
        return cls(names=names, url=url or None, repository=repository or None, sha256=sha256)

    @property
    def whence(self) -> str:
        """Where to get it, with size and checksum as far as they are known."""
        published = self.url.rpartition("/")[2] if self.url else None
        hub = " or ".join(name for name in dict.fromkeys(self.names) if name != published)
        facts = [
            *([f"{self.size:,} bytes"] if self.size else []),
            *([f"SHA-256 {self.sha256}{'…' * (len(self.sha256) < 64)}"] if self.sha256 else []),
        ]
        ways = [
            *([f"{published} from {self.url}"] if self.url else []),
            *([f"{hub} of {self.repository} on the Hugging Face hub"] if self.repository else []),
        ]
        return (", or ".join(ways) or "them") + (f" ({', '.join(facts)})" if facts else "")


def find_weights(encoder: str, wanted: Weights, given: Path | None) -> Path:
    """Find the file (or folder) of weights that an encoder needs.

    Parameters
    ----------
    encoder : str
        For the message.
    wanted : Weights
    given : Path or None
        A file, or a folder to look into: a plain one, or a cache. None: the libraries' own caches.

    Raises
    ------
    InputError
        If it is not there; says which file to put where.
    """
    if given is not None and given.is_file() and not wanted.folder:
        return given
    if given is not None and not given.exists():
        raise InputError(f"{display(given)}: no such file or folder of weights: check the path.")
    places = [torch_cache(), hub_cache()] if given is None else [given]
    for place in places:
        if (found := existing(place, wanted)) is not None:
            return found
    where = " nor ".join(display(place) for place in places)
    fetched = wanted.sha256 is not None and given is None
    first = f"`genbounds features --download {encoder}` fetches them; or " if fetched else ""
    target = f"save it as {display(places[0] / wanted.names[0])}, or "
    raise InputError(
        f"{encoder} needs its weights, which are not in {where}: {first}get {wanted.whence} and "
        + (
            "name the folder that holds it with --weights."
            if wanted.folder
            else f"{target}name the file with --weights. --weights {RANDOM} takes untrained ones, "
            "to try a command."
        )
    )


def existing(place: Path, wanted: Weights) -> Path | None:
    """Return the file (or folder) of weights below a folder or in a cache, if it is there."""
    found = next(filter(Path.is_file, _candidates(place, wanted)), None)
    return found.parent if found is not None and wanted.folder else found


def _candidates(place: Path, wanted: Weights) -> Iterator[Path]:
    for name in wanted.names:
        yield place / name
        yield place / "checkpoints" / name
        yield place / "hub" / "checkpoints" / name
    if wanted.repository:
        cached = f"models--{wanted.repository.replace('/', '--')}"
        for base in (place, place / "hub"):
            main = base / cached / "refs" / "main"
            revisions = [main.read_text().strip()] if main.is_file() else []
            snapshots = base / cached / "snapshots"
            revisions += sorted(entry.name for entry in snapshots.glob("*"))
            for revision in revisions:
                for name in wanted.names:
                    yield snapshots / revision / name


def fetch(encoder: str, wanted: Weights, folder: Path | None) -> Path:
    """Return the file of weights in `folder`, or in PyTorch's or the hub's cache; else fetch it.

    Raises
    ------
    InputError
        If no checksum is published; if the server, the proxy or the disk fails; or if the file
        has another checksum. Nothing is left half-written.
    """
    if folder is None:
        if (found := existing(hub_cache(), wanted)) is not None:
            return found
        folder = torch_cache()
    target = folder / wanted.names[0]
    by_hand = f"get {wanted.whence} yourself and save it as {display(target)}"
    if wanted.sha256 is None and target.exists():
        return target
    if wanted.url is None or wanted.sha256 is None:
        raise InputError(
            f"{encoder}: no SHA-256 of its weights is published, so they are not fetched: {by_hand}"
            ", or name the file with --weights."
        )
    if target.exists():
        digest = file_digest(target).removeprefix("sha256:")
        if digest.startswith(wanted.sha256):
            return target
        raise InputError(
            f"{display(target)}: has SHA-256 {digest} instead of {wanted.sha256}: it is another "
            "file or a part of it: delete it, then run this again."
        )
    with written_aside(target) as file:
        try:
            digest = _copy(wanted.url, file, folder)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            raise InputError(
                f"{encoder}: {wanted.url} cannot be fetched ({display(error, limit=120)}): try "
                f"again, set https_proxy if there is a proxy, or {by_hand}."
            ) from error
        if not digest.startswith(wanted.sha256):
            raise InputError(
                f"{encoder}: what {wanted.url} sends has SHA-256 {digest} instead of "
                f"{wanted.sha256}: it is not kept; {by_hand}."
            )
    return target


def _copy(url: str, file: IO[bytes], folder: Path) -> str:
    """Copy what an address sends; return its SHA-256."""
    if not url.startswith(("https://", "http://")):
        raise ValueError("only http and https are read")
    digest, count = hashlib.sha256(), 0
    asked = urllib.request.Request(url, headers={"User-Agent": "genbounds"})
    opener = urllib.request.build_opener()  # the common one would keep the first call's proxies
    with opener.open(asked, timeout=_SECONDS) as answer:
        announced = int(answer.headers.get("Content-Length") or 0)
        if announced > (free := shutil.disk_usage(folder).free):
            raise OSError(f"{announced:,} bytes are needed, {free:,} are free")
        while piece := answer.read(_PIECE):
            digest.update(piece)
            file.write(piece)
            count += len(piece)
    if announced and count != announced:
        raise OSError(f"it ended after {count:,} of {announced:,} bytes")
    return digest.hexdigest()


def file_digest(path: Path, *others: Path) -> str:
    """Return the SHA-256 of a file, of several, or of all files of a folder with their names."""
    if others:
        parts = "\n".join(f"{file.name} {file_digest(file)}" for file in (path, *others))
        return f"sha256:{hashlib.sha256(parts.encode(errors='surrogateescape')).hexdigest()}"
    if path.is_file():
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    digest = hashlib.sha256()
    for entry in sorted(path.rglob("*")):
        if entry.is_file() and not entry.name.startswith("."):
            digest.update(os.fsencode(entry.relative_to(path).as_posix()))
            digest.update(f" {file_digest(entry)}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def versions(*distributions: str) -> str:
    """Return the versions of what made the features, as one line."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in distributions:
        with suppress(PackageNotFoundError):  # a program without its packaging: nothing to say
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


# --- an encoder as it was asked for ---------------------------------------------------------------

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
