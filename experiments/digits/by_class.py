"""Which generator for which digit: a certified winner for every class.

An image is of the class that the encoder gives it; each generator gives the images that it made of
a class, each once. Twice: by KID against the real held-out images of the class, and by a score of
each image alone, how much its features point to the mean of the real ones (the cosine, as CLIPScore
has it for a prompt).

    python -m experiments.digits.by_class
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.digits.data import CLASSES
from experiments.digits.train import DEFAULT_CACHE, Digits, prepare
from experiments.record import record, stamp
from genbounds.select import ContextSelection, FeatureArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "contexts.md"
POOL = 10_000
"""Images of each generator."""
LEAST = 200
"""Images of every class that a generator must have made to take part."""

ByClass = dict[int, NDArray[Any]]


def real_by_class(digits: Digits) -> ByClass:
    """Return the features of the held-out real images of each class."""
    rows = digits.reference()
    return {k: rows[digits.split.reference_labels == k] for k in range(CLASSES)}


def made_by_class(digits: Digits, *, pool: int = POOL) -> dict[str, ByClass]:
    """Return the features that each generator made of each class; controls are left out."""
    found = {}
    for number, (name, arm) in enumerate(digits.arms().items()):
        if arm.control:
            continue
        images = arm.images(pool, np.random.default_rng([4, number]))
        found[name] = (digits.encoder.features(images), digits.encoder.posteriors(images))
    return sorted_by_class(found)


def sorted_by_class(
    images: Mapping[str, tuple[NDArray[Any], NDArray[Any]]],
) -> dict[str, ByClass]:
    """Sort features by their posteriors; a generator that hardly makes some class is left out."""
    found = {}
    for name, (rows, posteriors) in images.items():
        classes = posteriors.argmax(axis=1)
        if np.bincount(classes, minlength=CLASSES).min() * POOL >= LEAST * len(rows):
            found[name] = {k: rows[classes == k] for k in range(CLASSES)}
    return found


def cosines(made: Mapping[str, ByClass], real: ByClass) -> dict[str, ByClass]:
    """Return for each image the cosine of its features and the mean of the real ones, (n, 1)."""
    means = {k: rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0)) for k, rows in real.items()}
    return {
        name: {
            k: (x @ means[k] / np.linalg.norm(x, axis=1))[:, None].astype(np.float64)
            for k, x in rows.items()
        }
        for name, rows in made.items()
    }


def select_by_class(made: Mapping[str, ByClass], **options: Any) -> ContextSelection:
    """Find the best generator of each class."""
    arms = {name: {k: FeatureArm(x) for k, x in rows.items()} for name, rows in made.items()}
    return gb.select.run(arms, batch=50, **options)


def main(argv: list[str] | None = None) -> None:
    """Run the selection, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="of the digits")
    parser.add_argument("--pool", type=int, default=POOL, help="images of each generator")
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args(argv)
    digits = prepare(options.cache)
    made, real = made_by_class(digits, pool=options.pool), real_by_class(digits)
    lines = [f"{stamp()} {options.pool:,} images of each of: {', '.join(made)}."]
    for found in (
        select_by_class(made, contexts=real, metric="kid"),
        select_by_class(cosines(made, real), contexts=list(real), metric="mean"),
    ):
        ended = Counter(run.stopped for run in found.contexts.values())
        why = ", ".join(f"{reason} ({n})" for reason, n in ended.items())
        lines += ["", f"{found.metric}; runs ended by: {why}", ""]
        lines += found.to_markdown().splitlines()
    print("\n".join(lines))
    record("contexts-digits", lines, page=options.page)


if __name__ == "__main__":
    main()
