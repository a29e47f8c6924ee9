"""Options of every command that encodes, and folders turned into files of features."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from genbounds.cli._completion import offer
from genbounds.cli._terminal import progress
from genbounds.files import display, locked
from genbounds.validation import InputError

if TYPE_CHECKING:
    from genbounds.features import Encoder

EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="How images or texts become features: timm:MODEL, torchvision:MODEL, "
        "open_clip:MODEL, pytorch-fid:2048, sentence-transformers:MODEL, torchscript:FILE, "
        "onnx:FILE or module:function.",
        show_default=False,
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="PATH",
        help="The encoder's file of weights, or a folder to look into; nothing is downloaded. "
        "'random' takes untrained ones, for trying the plumbing.",
        show_default="the library's own cache",
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="D", help="Where the encoder runs: cpu, cuda, cuda:1 …")
]
Precision = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="float32|bfloat16|float16",
        autocompletion=offer("float32|bfloat16|float16"),
        help="Of the encoder; below float32 mixed precision.",
    ),
]


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoder and the folder in which features are kept."""

    encoder: Encoder
    folder: Path

    def features(self, path: Path, name: str) -> Path:
        """Encode a folder or archive, unless that is done already; return the file."""
        from genbounds.features import extract, open_source

        out = self.folder / f"{_file_name(name)}.safetensors"
        with progress(f"encoding {display(name, limit=40)}") as advance:
            extract(open_source([path]), self.encoder, out=out, progress=advance)
        return out


@contextmanager
def encoding(
    name: str | None, options: Mapping[str, Any], *, out: Path | None
) -> Iterator[Encoding | None]:
    """Load the encoder, if there is one, and find a place for its features.

    With `out` they stay in ``features`` in there, and the next run uses them.
    """
    from genbounds.features import load_encoder

    if name is None:
        if options.get("weights") is not None:
            raise InputError("`--weights` needs an --encoder.")
        yield None
        return
    encoder = load_encoder(name, **options)
    if out is not None:
        with locked(out / "features", use=display(out)):
            yield Encoding(encoder, out / "features")
        return
    with tempfile.TemporaryDirectory(prefix="genbounds-") as scratch:
        yield Encoding(encoder, Path(scratch))


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in name).lstrip(".") or "_"
