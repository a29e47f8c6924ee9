"""What Fréchet distances depend on besides the images: batches, precision, resizing, threads.

``python -m experiments.embeddings --weights FOLDER`` runs Inception-v3, DINOv2, CLIP and ConvNeXt
pipelines on photographs (crops of the two that scikit-learn ships, or ``--images FOLDER``) and on
blurred copies of them. Weights are looked for in FOLDER and in the libraries' caches; an encoder
without any gets random ones, which measure plumbing and speed only, and every line says so. A
library that is missing is skipped with a message. ``--encoders torchscript:FILE`` takes a network
of your own, such as the trained one that ``make photographs`` writes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import PAGE, picture, record, stamp, table
from experiments.torchvision_builds import declare_operators
from genbounds.features import Encoder, encode, load_encoder, open_source

ENCODERS = (
    "pytorch-fid:2048",
    "torchvision:inception_v3",
    "timm:vit_small_patch14_dinov2",
    "open_clip:ViT-B-32/openai",
    "timm:convnext_tiny",
)
SMALL = ("timm:resnet10t",)
SIZES = {"timm:vit_small_patch14_dinov2": 224}  # as it is used to judge generative models
REDUCED = 64
"""Features are projected to so many directions where a sample is too small for all of them."""
BUSY = 1.3
"""Where less than one processor worked for us, by this factor, somebody else had it."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One encoder's figures."""

    name: str
    trained: bool
    d: int
    per_second: float
    busy: bool
    batch: float
    half: float
    fd: dict[str, float]


def photographs(n: int, folder: Path | None, rng: np.random.Generator) -> list[np.ndarray]:
    """Return `n` photographs: random crops of scikit-learn's two, or a folder's."""
    if folder is not None:
        source = open_source([folder])
        chosen = (source.decode(item.content).convert("RGB") for item in source.items())
        return [np.asarray(image) for image, _ in zip(chosen, range(n), strict=False)]
    from sklearn.datasets import load_sample_images

    whole = load_sample_images().images
    crops = []
    for _ in range(n):
        picture_ = whole[rng.integers(len(whole))]
        side = int(rng.integers(200, 400))
        top, left = (int(rng.integers(0, edge - side)) for edge in picture_.shape[:2])
        crops.append(np.ascontiguousarray(picture_[top : top + side, left : left + side]))
    return crops


def blurred(images: Sequence[np.ndarray], radius: float) -> list[np.ndarray]:
    """Return the images out of focus: the "model" of this experiment."""
    from PIL import Image, ImageFilter

    return [
        np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))
        for image in images
    ]


def load(name: str, weights: Path | None, **options: Any) -> tuple[Encoder, bool] | None:
    """Load an encoder with real weights, else, loudly, with random ones; None without library."""
    size = 224 if name.startswith("torchscript:") else SIZES.get(name)
    options |= {"preprocessing": {"size": size}} if size else {}
    try:
        return load_encoder(name, weights=weights, **options), True
    except gb.InputError as error:
        reason = error
    try:
        encoder = load_encoder(name, weights="random", **options)
    except gb.InputError:  # not the weights are missing, but the library
        print(f"skipped {name}: {reason}", file=sys.stderr)
        return None
    print(f"{name}: RANDOM WEIGHTS ({reason})", file=sys.stderr)
    return encoder, False


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Plug-in Fréchet distance in the leading principal directions of `b`, over their variance.

    Plug-in: what is compared here are distances between the same images, whose bias is the same.
    """
    centre = b.mean(axis=0)
    _, _, directions = np.linalg.svd(b - centre, full_matrices=False)
    axes = directions[: min(REDUCED, len(b) // 8)].T
    x, y = ((rows - centre) @ axes for rows in (a.astype(float), b.astype(float)))
    return gb.frechet_distance(x, y, estimator="plugin").value / float(y.var(axis=0, ddof=1).sum())


class Rounded:
    """An encoder whose images are resized in whole grey levels, as usual pipelines do."""

    def __init__(self, encoder: Any, *, alias: bool) -> None:
        self.encoder, self.alias = encoder, alias
        self.takes, self.description = encoder.takes, encoder.description

    def prepare(self, item: Any) -> Any:
        """Resize first, to whole grey levels (or without a filter), then as before."""
        from PIL import Image

        wanted = self.encoder.preprocessing
        image = Image.fromarray(item)
        scale = (wanted.resize or wanted.size) / min(image.size)
        target = (
            (wanted.size, wanted.size)
            if wanted.fit == "stretch"
            else tuple(max(wanted.size, int(side * scale)) for side in image.size)
        )
        method = (
            Image.Resampling.NEAREST
            if self.alias
            else Image.Resampling[wanted.interpolation.upper()]
        )
        resized = image.resize(target, resample=method)
        return replace(wanted, resize=None if wanted.resize is None else min(target))(resized)

    def encode(self, batch: Sequence[Any]) -> Any:
        """As the encoder."""
        return self.encoder.encode(batch)


def measure(
    name: str, weights: Path | None, real: list[np.ndarray], fake: list[np.ndarray]
) -> Measured | None:
    """Measure one encoder."""
    loaded = load(name, weights)
    if loaded is None:
        return None
    encoder, trained = loaded
    encode(encoder, real[:2])  # whatever happens once
    start, worked = time.perf_counter(), time.process_time()
    x = encode(encoder, real)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    y = encode(encoder, fake)
    few = slice(0, min(len(real), 16))
    alone = encode(encoder, real[few], batch=1)
    scale = np.abs(x).max()
    lower = load(name, weights, precision="bfloat16")
    assert lower is not None
    half = lower[0]
    xh, yh = encode(half, real), encode(half, fake)
    fd = {
        "float32": distance(y, x),
        "bfloat16": distance(yh, xh),
        "one precision against the other": distance(xh, x),
        "resized in whole grey levels": distance(encode(Rounded(encoder, alias=False), fake), x),
        "resized with aliasing": distance(encode(Rounded(encoder, alias=True), fake), x),
    }
    return Measured(
        name=name,
        trained=trained,
        d=x.shape[1],
        per_second=len(real) / seconds,
        busy=seconds > BUSY * worked,
        batch=float(np.abs(alone - x[few]).max() / scale),
        half=float(np.abs(xh - x).max() / scale),
        fd=fd,
    )


def report(found: Sequence[Measured], options: argparse.Namespace) -> list[str]:
    """Return the section."""
    busy = any(m.busy for m in found)
    labels = [f"{m.name}{'' if m.trained else ' (RANDOM WEIGHTS)'}" for m in found]
    first = table(
        ("encoder", "d", "images/s", "batch of 1 against 64", "bfloat16 against float32"),
        [
            (
                label,
                str(m.d),
                f"({m.per_second:.1f})" if m.busy else f"{m.per_second:.1f}",
                f"{m.batch:.1e}",
                f"{m.half:.1e}",
            )
            for label, m in zip(labels, found, strict=True)
        ],
    )
    kinds = list(found[0].fd)
    second = table(
        ("encoder", *kinds),
        [
            (label, *(f"{m.fd[kind]:.4g}" for kind in kinds))
            for label, m in zip(labels, found, strict=True)
        ],
    )

    def paint(axes: Any) -> None:
        shift = [
            [abs(m.fd[k] / m.fd["float32"] - 1.0) for m in found] for k in (kinds[1], *kinds[3:])
        ]
        height = 0.8 / len(shift)
        for number, (kind, values) in enumerate(zip((kinds[1], *kinds[3:]), shift, strict=True)):
            places = np.arange(len(found)) + number * height
            axes.barh(places, np.maximum(values, 1e-6), height=height, label=kind)
        axes.set_yticks(np.arange(len(found)) + height, labels, fontsize=7)
        axes.set(xscale="log", xlabel="relative change of the Fréchet distance")
        axes.legend(frameon=False, fontsize=7)

    return [
        stamp(),
        f"{options.n} photographs and their blurred copies, seed {options.seed}.",
        "Differences of features relative to the largest feature.",
        *(["Rates in brackets: the machine was busy, and would do better."] if busy else []),
        "",
        *first,
        "",
        "Fréchet distance of the blurred from the sharp photographs, over their variance:",
        "",
        *second,
        "",
        picture("embeddings", paint, page=options.page),
    ]


def main(argv: list[str] | None = None) -> int:
    """Measure every encoder and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, help="folder of weights")
    parser.add_argument("--images", type=Path, help="folder of photographs")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoders", nargs="+", default=ENCODERS, metavar="NAME")
    parser.add_argument("--small", action="store_true", help="one small network, for a trial")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    declare_operators()
    real = photographs(options.n, options.images, np.random.default_rng(options.seed))
    options.n = len(real)
    fake = blurred(real, radius=2.0)
    found = []
    for name in SMALL if options.small else options.encoders:
        measured = measure(name, options.weights, real, fake)
        if measured is not None:
            print(measured, file=sys.stderr, flush=True)
            found.append(measured)
    if not found:
        print("nothing to measure: no library of encoders is installed", file=sys.stderr)
        return 0
    record("embeddings", report(found, options), page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
