"""`genbounds features`: images, texts or features in; features or statistics out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import genbounds as gb
from genbounds._text import display, number
from genbounds.cli._command import Answer, command, renamed
from genbounds.cli._options import Encoding, Output, argument, choice, numbers_of, option
from genbounds.cli._terminal import complain, progress, say, tidy

EXAMPLES = """
genbounds features photos/ --encoder dinov2 --weights w.pth --out real.npz
genbounds features shard-*.tar --encoder inception --moments stats.npz
genbounds features texts.jsonl --out texts.safetensors \\
  --encoder sentence-transformers:all-MiniLM-L6-v2
genbounds features clips/ --items files --encoder audio:embed --out clips.npz
genbounds features photos/ --encoder model:embed --part 2/8 --out a-2.npz
genbounds features real.safetensors --moments real.npz
genbounds features --download inception
"""


def _own(metavar: str, help: str) -> Any:
    """Declare an option in whose place the encoder has a value of its own."""
    offers = metavar if "|" in metavar else None
    return option(metavar, help, offers=offers, show_default="the encoder's")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pixels:
    """What is done to images before an encoder takes them."""

    size: int | None = _own("PIXELS", "Size to which images are resized.")
    resize: int | None = _own(
        "PIXELS", "Size of the shorter side before --fit crop cuts out the centre."
    )
    fit: str | None = _own(
        "stretch|crop",
        "stretch: resize both sides. crop: resize the shorter side, cut out the centre.",
    )
    interpolation: str | None = _own(
        "bicubic|bilinear|lanczos", "Interpolation when resizing, always antialiased."
    )
    channels: int | None = _own("3|1", "3 for colour, 1 for grey.")
    white: float | None = _own("1|255", "Value of a white pixel before --mean and --std.")
    mean: str | None = _own("R,G,B", "Mean to subtract from each channel.")
    std: str | None = _own("R,G,B", "Standard deviation to divide each channel by.")


@command(
    "INPUT... --encoder NAME --out FILE",
    EXAMPLES,
    advice="finished blocks are kept; run the same command again.",
)
def features(
    inputs: list[Path] = argument(
        "INPUT", "Images (folder, .zip or .tar), texts (.txt or .jsonl), or a file of features."
    ),
    *,
    encoding: Encoding,
    out: Path | None = option(
        "FILE",
        "File for the features: .safetensors (records how they were made), .npy, or .npz as "
        "dgm-eval reads it.",
    ),
    moments: Path | None = option(
        "FILE",
        "File for their statistics: .npz with mu, sigma and n, as pytorch-fid reads it. Without "
        "--out no features are kept.",
    ),
    items: str | None = choice(
        "images|texts|files|rows",
        "What the input holds. files: the paths in a folder, for an encoder that reads them "
        "itself.",
        show_default="by the input's name",
    ),
    field: str = option("KEY", "Key of the text in a .jsonl file.", default="text"),
    pixels: Pixels,
    batch: int = option("B", "Number of items encoded at once.", default=64),
    workers: int | None = option(
        "W",
        "Threads that decode and resize images; results do not depend on it.",
        show_default="one per processor",
    ),
    part: str | None = option(
        "I/K",
        "Only the I-th of K shares of the items, as on the I-th of K machines. The files of all "
        "parts together, 'real-*.safetensors', are one sample.",
        show_default="all items",
    ),
    output: Output,
) -> Answer:
    """Compute features (or only their statistics) of images or texts.

    Nothing is downloaded without --download: weights come from a file that you name or a cache
    that is filled. With --download and no --encoder the INPUTs are names of encoders, and only
    their weights are fetched. After an interruption the same command goes on.
    """
    if encoding.download and encoding.encoder is None:
        return _fetched(map(str, inputs))
    from genbounds.validation import check_choice

    if out is None and moments is None:
        raise gb.InputError("nothing to write: give --out FILE, --moments FILE or both.")
    if items is not None:
        check_choice("--items", items, gb.features.KINDS)
    wanted = asdict(pixels)
    for name in ("mean", "std"):
        wanted[name] = numbers_of(f"--{name}", wanted[name], "0.5,0.5,0.5")
    preprocessing = {name: value for name, value in wanted.items() if value is not None}
    source = gb.features.open_source(inputs, items=items, field=field)  # type: ignore[arg-type]
    encoder = _encoder(encoding, source, inputs[0], preprocessing)
    names = {"features": inputs[0]} if source.kind == "rows" and len(inputs) == 1 else {}
    with tidy(), progress("encoding") as advance, renamed(names):
        result = gb.features.extract(
            source,
            encoder,
            out=out,
            moments=moments,
            batch=batch,
            workers=workers,
            part=_part(part),
            replace=False,
            progress=advance,
        )
    return Answer(document=result.to_dict(), show=lambda: _show(result))


def _encoder(
    wanted: Encoding, source: gb.features.Source, given: Path, preprocessing: Mapping[str, object]
) -> gb.features.Encoder:
    """Load the encoder; rows need none. Options that the kind of input would ignore are refused."""
    from genbounds.cli._media import chosen_encoder, which_encoder

    kind = source.kind
    if wanted.encoder is None and kind != "rows":
        raise gb.InputError(
            f"{display(given)} holds {kind}: {which_encoder(kind)}, or another "
            "of `genbounds features --help`."
        )
    if kind in ("rows", "texts") and preprocessing:
        raise gb.InputError(
            f"`--{next(iter(preprocessing))}` is for images; {display(given)} holds {kind}."
        )
    if wanted.encoder is not None:
        return chosen_encoder(wanted, preprocessing)
    if wanted.weights is not None:
        raise gb.InputError("needs --encoder.", argument="--weights")
    return gb.features.load_encoder("none", precision=wanted.precision)


def _fetched(names: Iterable[str]) -> Answer:
    """Fetch the weights of some encoders; answer with their files."""
    with tidy():
        files = {name: str(gb.features.download(name)) for name in names}
    return Answer(document=dict(files), show=lambda: say("\n".join(map(display, files.values()))))


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and len(text) < 20):
        raise gb.InputError(f"must be I/K, as in 2/8; got {text!r}.", argument="--part")
    return int(number), int(of)


def _show(result: gb.features.Extraction) -> None:
    written = [path for path in (result.out, result.moments) if path is not None]
    say(f"{number(result.n)} × {number(result.d)} features: {', '.join(map(display, written))}")
    if result.resumed == result.n:
        complain("all of it was there already.")
    elif result.resumed:
        complain(f"went on after {number(result.resumed)} items that were there already.")
    for name, value in result.origin.items():
        say(f"* {name}: {value}")
    for note in result.notes:
        complain(note)
