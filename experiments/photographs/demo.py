"""Photographs, damaged in steps, stand for generated images: which damage does an encoder see.

``make photographs`` (or ``python -m experiments.photographs.demo [PICTURE...] --out DIR``) cuts
random crops out of photographs, scikit-learn's two unless you name others, into one folder for each
damage, and ends with the line that anybody would type: ``genbounds score real jpeg75 … --encoder
torchscript:encoder.pt``. `untouched` are other crops of the same photographs, as a perfect model
would make them. The encoder is that of `experiments.photographs.pool`. A Fréchet distance of its
1,280 features would need thousands of crops; kernel distances do with some hundred.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from experiments.photographs.pool import PACKAGES, SIDE, damaged_crops, network

MODELS = ("untouched", "jpeg75", "jpeg30", "jpeg10", "webp20", "half", "quarter", "blur1", "blur2")


class Features(torch.nn.Module):
    """The 1,280 features of the encoder for images with values in [0, 1]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return features (k, 1280) of images (k, 3, h, w)."""
        found: torch.Tensor = self.model.extract_features((255.0 * x - 127.0) / 128.0)
        return found.mean(dim=(2, 3))


def opened(paths: list[Path]) -> list[Image.Image]:
    """Read photographs; scikit-learn's two if none are named."""
    if paths:
        return [Image.open(path).convert("RGB") for path in paths]
    from sklearn.datasets import load_sample_images

    return [Image.fromarray(image) for image in load_sample_images().images]


def write_crops(pictures: list[Image.Image], out: Path, n: int) -> None:
    """Write a folder of PNG files for the reference and for each damage."""
    for name in ("real", *MODELS):
        (out / name).mkdir(parents=True, exist_ok=True)
        for number, crop in enumerate(damaged_crops(pictures, name, n)):
            crop.save(out / name / f"{number:04}.png")


def write_encoder(path: Path) -> None:
    """Write the encoder as a TorchScript file."""
    with torch.no_grad():
        example = torch.zeros(1, 3, SIDE, SIDE)
        torch.jit.trace(Features(network()).eval(), example).save(str(path))  # type: ignore[no-untyped-call]


def main(argv: list[str] | None = None) -> int:
    """Write the folders and the encoder, and score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pictures", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out/photographs"))
    parser.add_argument("--crops", type=int, default=300)
    given = parser.parse_args(argv)
    if not all(map(importlib.util.find_spec, PACKAGES)):
        print(f"skipped: needs {' and '.join(PACKAGES)} (make photographs)", file=sys.stderr)
        return 0
    write_crops(opened(given.pictures), given.out, given.crops)
    write_encoder(given.out / "encoder.pt")
    asked = ["score", "real", *MODELS, "--encoder", "torchscript:encoder.pt", "--metric", "kid"]
    asked += ["--out", "results"]
    print(f"genbounds {shlex.join(asked)}", flush=True)
    return subprocess.run([sys.executable, "-m", "genbounds", *asked], cwd=given.out).returncode


if __name__ == "__main__":
    raise SystemExit(main())
