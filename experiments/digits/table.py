"""Score every arm and look at it.

python -m experiments.digits.table [--cache DIR] [--n 20000] [--seed 0] [--sheet FILE.png]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from experiments.digits.data import PIXELS, SIDE, Images
from experiments.digits.progress import bars
from experiments.digits.train import DEFAULT_CACHE, prepare
from genbounds import (
    InputError,
    Memorisation,
    Score,
    frechet_distance,
    inception_score,
    memorisation,
)

# Samples of each model whose nearest training image is looked for.
_LOOKED_AT = 1_000


def nearest(images: Images, training: Images) -> NDArray[np.float64]:
    """Return the Euclidean distance (n,) of each image to its nearest training image."""
    x = images.reshape(-1, PIXELS).astype(np.float64)
    y = training.reshape(-1, PIXELS).astype(np.float64)
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2.0 * x @ y.T
    distances: NDArray[np.float64] = np.sqrt(np.clip(squares.min(axis=1), 0.0, None))
    return distances


def write_sheet(
    file: str | Path | BinaryIO, rows: Mapping[str, Images], *, columns: int = 20
) -> None:
    """Write a PNG with one labelled row of images a model, as they come."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.4 * columns + 1.5, 0.45 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axis, (name, images) in zip(axes, rows.items(), strict=True):
        strip = np.zeros((SIDE, columns * (SIDE + 1)), dtype=np.float32)
        for index, image in enumerate(images[:columns]):
            strip[:, index * (SIDE + 1) : index * (SIDE + 1) + SIDE] = image
        axis.imshow(strip, cmap="gray", vmin=0.0, vmax=1.0)
        axis.set_ylabel(name, rotation=0, ha="right", va="center")
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    figure.savefig(file, dpi=150, format="png", metadata={"Software": None})


def _interval(score: Score, digits: int) -> str:
    return f"{score.value:.{digits}f} [{score.low:.{digits}f}, {score.high:.{digits}f}]"


def _copied(found: Memorisation) -> str:
    return f"≥ {found.copies_low} of {found.train_n}" if found.copies else "not significant"


def main() -> None:
    """Print a Markdown table; training first what is not in the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--n", type=int, default=20_000, help="samples of each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sheet", type=Path, default=None, help="write sample images here")
    arguments = parser.parse_args()

    with bars() as progress:
        digits = prepare(arguments.cache, progress=progress)
    reference = digits.reference()
    real = digits.split.reference_images
    training = digits.split.generator_images
    sheet = {"real": real}
    print(
        f"{len(reference)} real reference images; the encoder is right on "
        f"{digits.encoder.accuracy(real, digits.split.reference_labels):.1%} of them; their own IS "
        f"is {_interval(inception_score(digits.reference('posteriors')), 3)};\nthe median distance "
        f"to the nearest training image is {np.median(nearest(real, training)):.2f}.\n"
    )
    head = "FD, plug-in | FD, debiased | IS | nearest training image | training images copied"
    print(f"| model | {head} | images/s |")
    print("|---|---|---|---|---|---|---|")
    known = digits.encoder.features(training)
    for name, arm in digits.arms().items():
        start = time.perf_counter()
        images = arm.images(arguments.n, arguments.seed)
        features = digits.encoder.features(images)
        speed = arguments.n / (time.perf_counter() - start)
        posteriors = digits.encoder.posteriors_of_features(features)
        sheet[name] = images
        print(
            f"| {name} "
            f"| {float(frechet_distance(features, reference, estimator='plugin')):.1f} "
            f"| {_interval(frechet_distance(features, reference), 1)} "
            f"| {_interval(inception_score(posteriors), 3)} "
            f"| {np.median(nearest(images[:_LOOKED_AT], training)):.2f} "
            f"| {_copied(memorisation(features[:_LOOKED_AT], known, reference))} | {speed:,.0f} |",
            flush=True,
        )
    if arguments.sheet is not None:
        write_sheet(arguments.sheet, sheet)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"digits: {error}")
