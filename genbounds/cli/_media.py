"""Images and texts: turned into files of features, and shown on pages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import genbounds as gb
from genbounds._errors import InputError
from genbounds._text import display
from genbounds.cli._options import Encoding
from genbounds.cli._terminal import progress, tidy

if TYPE_CHECKING:
    from genbounds.features.thumbnails import Pictures


@dataclass(frozen=True, slots=True)
class FolderEncoder:
    """An encoder and the folder in which its features are kept."""

    encoder: gb.features.Encoder
    folder: Path

    def features(self, path: Path, name: str) -> Path:
        """Encode a folder or archive, unless that is done already; return the file of features."""
        plain = "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in name).lstrip(".")
        out = self.folder / f"{plain or '_'}.safetensors"
        with progress(f"encoding {display(name, limit=40)}") as advance:
            gb.features.extract(
                gb.features.open_source([path]), self.encoder, out=out, progress=advance
            )
        return out


def ask_for_encoder(path: Path) -> InputError:
    """Return the error about a path that can only be encoded, and no encoder is named."""
    if path.is_dir() and path.suffix.lower() in gb.files.FORMATS:
        return InputError(f"{display(path)}: is a folder: give the file inside it.")
    _check_there(path)
    kind = gb.features.media_kind(path) or "something to encode"
    return InputError(f"{display(path)} is {kind}: {which_encoder(kind)}.")


def which_encoder(kind: str) -> str:
    """Say which encoder turns what is there, in words, into features."""
    if "text" in kind:
        return "add --encoder sentence-transformers:MODEL"
    return "add --encoder inception (the FID of most papers), or inception:clean, dinov2, clip"


def chosen_encoder(
    wanted: Encoding, preprocessing: Mapping[str, Any] | None = None
) -> gb.features.Encoder:
    """Load the encoder that is named; fetch its weights first, where that is asked."""
    assert wanted.encoder is not None
    with tidy():
        if wanted.download:
            if wanted.weights is not None:
                raise InputError("names weights: leave it or --download out.", argument="--weights")
            gb.features.download(wanted.encoder)
        return gb.features.load_encoder(
            wanted.encoder,
            weights=wanted.weights,
            device=wanted.device,
            precision=wanted.precision,
            preprocessing=preprocessing,
        )


@contextmanager
def open_encoder(
    wanted: Encoding, paths: Iterable[Path | None], *, out: Path | None
) -> Iterator[FolderEncoder | None]:
    """Load the encoder, if one is named, and find a place for its features.

    With `out` they stay in its folder ``features``, and the next run uses them; else they lie in a
    scratch folder until the run ends. What lies at `paths`, or does not, is seen before.
    """
    if wanted.encoder is None:
        yield None
        return
    for path in filter(None, paths):
        _check_there(path)
    encoder = chosen_encoder(wanted)
    if out is not None:
        with gb.files.locked(out / "features", use=display(out)):
            yield FolderEncoder(encoder, out / "features")
    else:
        with tidy(), tempfile.TemporaryDirectory(prefix="genbounds-") as scratch:
            yield FolderEncoder(encoder, Path(scratch))


def _check_there(path: Path) -> None:
    """Refuse what is gone or holds nothing: weights take long to fetch and to load."""
    if not path.exists() and not gb.features.is_entry_point(str(path)):
        gb.files.read_header(path)  # of a pattern as well
    elif path.is_dir() and path.suffix.lower() not in gb.files.FORMATS:
        gb.features.open_source([path])


# --- pictures -------------------------------------------------------------------------------------


def check_images(
    images: Sequence[Path] | None, out: Path | None, *, files: int, each: str = "every file"
) -> None:
    """Refuse pictures that no page would show, or not one source for each file.

    Raises
    ------
    InputError
    """
    if not images:
        return
    if len(images) != files:
        raise InputError(f"is given once for {each}, {files} times; got {len(images)}.", "--images")
    if out is None:
        raise InputError("is for the page: add --out.", "--images")


def pictures_for_page(
    inputs: Sequence[Any], images: Sequence[Path] | None, out: Path | None
) -> list[Pictures]:
    """Find the pictures of every file; none without a page.

    Call it before anything is computed: images that do not fit are a mistake in the command.

    Parameters
    ----------
    inputs : sequence of Input
    images : sequence of Path or None
        As `check_images` takes them.
    out : Path or None

    Raises
    ------
    InputError
        If images that were named do not fit.
    """
    if out is None:
        return []
    from genbounds.features.thumbnails import pictures_of

    found = []
    where: list[Path | None] = [*images] if images else [None] * len(inputs)
    for file, path in zip(inputs, where, strict=True):
        pictures = pictures_of(file.path, file.shape[0], path)
        if path is not None and pictures.problem:
            raise InputError(f"{pictures.problem.removesuffix('.')}.", "--images")
        found.append(pictures)
    return found
