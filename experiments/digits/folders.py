"""From folders of PNG files to a certified ranking, and the same from arrays.

``python -m experiments.digits.folders --out out/folders`` draws images of every generator, writes
them (and the real ones) as PNG files, has `genbounds score` and `genbounds select` judge the
folders, and compares with arrays that never were files. Ends with status 1 if the two disagree.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.digits.arm import encode
from experiments.digits.data import Images
from experiments.digits.encoder import Encoder
from experiments.digits.train import DEFAULT_CACHE, Config, Digits, prepare
from experiments.record import PAGE, record, stamp
from genbounds.cli import main as genbounds
from genbounds.features import Preprocessing

ENCODER = "experiments.digits.folders:features"
SEED = 5
RTOL = 1e-5
"""Batches of 64 and of 2,048 images differ in the order of single-precision sums."""

settings: dict[str, Any] = {"cache": DEFAULT_CACHE, "config": Config()}
"""Where the trained encoder is; `main` and the tests set it."""


@cache
def _digits(cache_dir: Path, config: Config) -> Digits:
    return prepare(cache_dir, config=config)


def digits() -> Digits:
    """Return the trained models that `settings` name."""
    return _digits(settings["cache"], settings["config"])


class DigitsFeatures:
    """The digits' encoder in the form that `--encoder module:function` takes."""

    preprocessing = Preprocessing(channels=1)

    @property
    def weights(self) -> str:
        """Return a digest of the network's weights."""
        return digest(digits().encoder)

    def __call__(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return features (n, 64) of images (n, 1, 8, 8)."""
        return digits().encoder.features(batch[:, 0])


def digest(encoder: Encoder) -> str:
    """Return the SHA-256 of an encoder's arrays."""
    import hashlib

    sha = hashlib.sha256()
    for name, array in sorted(encoder.arrays().items()):
        sha.update(name.encode() + array.tobytes())
    return f"sha256:{sha.hexdigest()}"


features = DigitsFeatures()


def quantised(images: Images) -> NDArray[np.uint8]:
    """Round to the 256 grey levels of a PNG file."""
    return np.round(images * 255.0).astype(np.uint8)


def write_folder(folder: Path, pixels: NDArray[np.uint8]) -> None:
    """Write images as PNG files, a file each."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for number, picture in enumerate(pixels):
        Image.fromarray(picture).save(folder / f"{number:06d}.png")


def draw(n: int) -> dict[str, NDArray[np.uint8]]:
    """Return real images and `n` of every honest generator."""
    models = digits()
    content = {"real": quantised(models.split.reference_images)}
    for number, (name, arm) in enumerate(models.arms().items()):
        if not arm.control:
            content[name] = quantised(arm.images(n, np.random.default_rng([SEED, number])))
    return content


def array_path(content: Mapping[str, NDArray[np.uint8]]) -> gb.Ranking:
    """Rank the models from arrays."""
    encoder = digits().encoder
    rows = {
        name: encode(encoder, pixels.astype(np.float32) / np.float32(255.0), "features")
        for name, pixels in content.items()
    }
    real = rows.pop("real")
    return gb.compare(rows, real)


def largest_difference(found: Mapping[str, Any], ranking: gb.Ranking) -> float:
    """Return the largest relative difference between two sets of scores."""
    gaps = [
        abs(row[key] - getattr(ranking.scores[row["model"]], key)) / abs(row["value"])
        for row in found["rows"]
        for key in ("value", "low", "high")
    ]
    return max(gaps)


def main(argv: list[str] | None = None) -> int:
    """Write folders, judge them both ways, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out") / "folders")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--n", type=int, default=6_000, help="images of each model")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    settings["cache"] = options.cache
    content = draw(options.n)
    folders = {name: options.out / "images" / name for name in content}
    for name, pixels in content.items():
        write_folder(folders[name], pixels)
    models = [folders[name] for name in content if name != "real"]
    call = [str(folders["real"]), *map(str, models), "--encoder", ENCODER]
    status = genbounds(["score", *call, "--out", str(options.out / "score")])
    if status != 0:
        return status
    found = json.loads((options.out / "score" / "results.json").read_text())
    difference = largest_difference(found, array_path(content))
    print(f"folders against arrays: scores differ by {difference:.1e} at most", file=sys.stderr)
    kept = [str(options.out / "score" / "features" / f"{name}.safetensors") for name in content]
    call = ["select", "--reference", *kept, "--batch", "50", "--out", str(options.out / "best")]
    status = genbounds(call)
    if status not in (0, 1):
        return status
    chosen = json.loads((options.out / "best" / "results.json").read_text())
    lines = [
        stamp(),
        f"{options.n:,} images of each of {len(models)} generators, {len(content['real'])} real.",
        f"Largest relative difference of a score or of an end of its interval: {difference:.1e}.",
        f"Groups that the samples do not tell apart: {_groups(found['ranking']['groups'])}.",
        f"Selection from the same files: {chosen['best']}, "
        f"{'certified' if chosen['certified'] else 'not certified'} at 95 % after "
        f"{sum(chosen['samples'].values()):,} images.",
        *(note.capitalize() + "." for note in chosen["notes"] if note.startswith("no certificate")),
    ]
    record("folders", lines, page=options.page)
    return int(difference > RTOL)


def _groups(groups: list[list[str]]) -> str:
    return "; ".join(", ".join(group) for group in groups)


if __name__ == "__main__":
    raise SystemExit(main())
