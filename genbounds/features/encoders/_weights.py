"""Finding weights on this machine; importing optional libraries. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from genbounds.files import check_safe, display
from genbounds.origins import RANDOM
from genbounds.validation import InputError, how_to_install

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
    before = {name: os.environ.get(name) for name in _SWITCHES}
    os.environ.update(_SWITCHES)
    # The hub's client reads its switch once, when it is imported.
    constants = sys.modules.get("huggingface_hub.constants")
    was = getattr(constants, "HF_HUB_OFFLINE", None)
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if constants is not None:
            constants.HF_HUB_OFFLINE = was  # type: ignore[attr-defined]


def torch_cache() -> Path:
    """Return the folder in which PyTorch keeps downloaded weights."""
    home = os.environ.get("TORCH_HOME")
    base = Path(home) if home else _user_cache() / "torch"
    return base / "hub" / "checkpoints"


def hub_cache() -> Path:
    """Return the folder in which the Hugging Face hub's client keeps what it downloaded."""
    if folder := os.environ.get("HF_HUB_CACHE"):
        return Path(folder)
    home = os.environ.get("HF_HOME")
    return (Path(home) if home else _user_cache() / "huggingface") / "hub"


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


# A branch for each place in which libraries keep weights.
def find_weights(
    encoder: str,
    given: Path | None,
    *,
    names: Sequence[str] = (),
    repository: str | None = None,
    url: str | None = None,
    folder: bool = False,
) -> Path:
    """Find the file (or folder) of weights that an encoder needs.

    Parameters
    ----------
    encoder : str
        For the message.
    given : Path or None
        A file, or a folder to look into: a plain one, or a cache. None: the libraries' own caches.
    names : sequence of str
        What the file may be called.
    repository : str, optional
        Under which name the Hugging Face hub keeps it.
    url : str, optional
        Where its authors publish it, for the message.
    folder : bool
        Whether a whole folder is wanted (one that has one of `names` in it).

    Raises
    ------
    InputError
        If it is not there; says which file to put where.
    """
    if given is not None and given.is_file() and not folder:
        return given
    if given is not None and not given.exists():
        raise InputError(f"{display(given)}: no such file or folder of weights: check the path.")
    places = [torch_cache(), hub_cache()] if given is None else [given]
    for place in places:
        for candidate in _candidates(place, names, repository):
            if candidate.is_file():
                return candidate.parent if folder else candidate
    published = url.rpartition("/")[2] if url else None
    hub = " or ".join(name for name in dict.fromkeys(names) if name != published)
    ways = [
        *([f"{published} from {url}"] if url else []),
        *([f"{hub} of {repository} on the Hugging Face hub"] if repository else []),
    ]
    where = " nor ".join(display(place) for place in places)
    thing = "the folder that holds" if folder else "the file"
    wanted = ", or ".join(ways) or "them"
    raise InputError(
        f"{encoder} needs its weights, which are not in {where}: get {wanted} "
        f"(genbounds never downloads) and name {thing} {'it ' if folder else ''}with --weights."
        + ("" if folder else f" --weights {RANDOM} takes untrained ones, to try a command.")
    )


def _candidates(place: Path, names: Sequence[str], repository: str | None) -> Iterator[Path]:
    for name in names:
        yield place / name
        yield place / "checkpoints" / name
        yield place / "hub" / "checkpoints" / name
    if repository:
        cached = f"models--{repository.replace('/', '--')}"
        for base in (place, place / "hub"):
            main = base / cached / "refs" / "main"
            revisions = [main.read_text().strip()] if main.is_file() else []
            snapshots = base / cached / "snapshots"
            if snapshots.is_dir():
                revisions += sorted(entry.name for entry in snapshots.iterdir())
            for revision in revisions:
                for name in names:
                    yield snapshots / revision / name


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


def library(module: str, *, extra: str, needed_for: str) -> Any:
    """Import an optional library, or say how to get it; one that may run a pickle is refused."""
    import importlib

    try:
        found = importlib.import_module(module)
        return check_safe(found, needed_for)
    except (OSError, RuntimeError) as error:  # compiled parts that another PyTorch was built for
        raise InputError(
            f"{needed_for} needs {module.partition('.')[0]}, whose import fails "
            f"({display(error, limit=120)}): torchvision and torch must come from one build: "
            "install them together, from one index."
        ) from error
    except ImportError as error:
        raise InputError(
            f"{needed_for} needs {module.partition('.')[0]}, which cannot be imported "
            f"({display(error, limit=120)}): {how_to_install(extra)}."
        ) from error


def versions(*distributions: str) -> str:
    """Return the versions of what made the features, as one line."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in distributions:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # a program without its packaging: nothing to say
            continue
    return ", ".join(found)
