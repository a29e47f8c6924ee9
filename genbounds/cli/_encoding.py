"""Folders and archives turned into files of features."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from genbounds.cli._naming import options, renamed
from genbounds.cli._options import Reading
from genbounds.cli._terminal import progress, tidy
from genbounds.files import display, locked
from genbounds.validation import InputError

if TYPE_CHECKING:
    from genbounds.features import Encoder


@dataclass(frozen=True, slots=True)
class FolderEncoder:
    """An encoder and the folder in which its features are kept."""

    encoder: Encoder
    folder: Path

    def features(self, path: Path, name: str) -> Path:
        """Encode a folder or archive, unless that is done already; return the file of features."""
        from genbounds.features import extract, open_source

        out = self.folder / f"{_file_name(name)}.safetensors"
        with progress(f"encoding {display(name, limit=40)}") as advance:
            extract(open_source([path]), self.encoder, out=out, progress=advance)
        return out


def which_encoder(kind: str) -> str:
    """Say which encoder turns what is there, in words, into features."""
    if "text" in kind:
        return "add --encoder sentence-transformers:MODEL"
    return "add --encoder inception (the FID of most papers), or inception:clean, dinov2, clip"


@contextmanager
def open_encoder(reading: Reading, *, out: Path | None) -> Iterator[FolderEncoder | None]:
    """Load the encoder, if one is named, and find a place for its features.

    With `out` they stay in its folder ``features``, and the next run uses them; else they lie in a
    scratch folder until the run ends.
    """
    if reading.encoder is None:
        if reading.weights is not None:
            raise InputError("needs --encoder.", argument="--weights")
        yield None
        return
    from genbounds.features import load_encoder

    with renamed(options("encoder", "weights", "precision")):
        encoder = load_encoder(
            reading.encoder,
            weights=reading.weights,
            device=reading.device,
            precision=reading.precision,
        )
        if out is not None:
            with locked(out / "features", use=display(out)):
                yield FolderEncoder(encoder, out / "features")
            return
        with tidy(), tempfile.TemporaryDirectory(prefix="genbounds-") as scratch:
            yield FolderEncoder(encoder, Path(scratch))


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in name).lstrip(".") or "_"
