"""Width of the 95 % interval against the number of samples, for embeddings as people use them.

``python -m experiments.sample_size`` runs everything (about three minutes on one core) and rewrites
the tables of docs/how_many.md. The features are Gaussian with the three covariance norms that
are printed for real embeddings; the reference is known exactly.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import record
from genbounds.simulate import EMBEDDING_NORMS, DirichletArm, matched_spectrum

PAGE = Path(__file__).parents[2] / "docs" / "how_many.md"
SIZES = (500, 2_000, 10_000, 50_000)
EMBEDDINGS = {
    "Inception, d = 2,048": "inception low r",
    "CLIP, d = 1,024": "clip low r",
    "DINOv2, d = 1,024": "dinov2 low r",
}
STRETCH = {"good": 0.1, "poor": 0.4}
"""Largest relative error of a standard deviation of the generated features."""

POSTERIORS = {"sharp": 20.0, "diffuse": 2.0}
"""Dirichlet parameter of the class that a posterior is about; all others together have 5."""


def cell(score: gb.Score, truth: float, plain: float | None = None) -> str:
    """Half the width, and the plain number, as shares of the truth."""
    half = f"±{(score.high - score.low) / 2 / truth:.2g}"
    return half if plain is None else f"{half} (plain {plain / truth:.3g})"


def frechet_rows(embedding: str, sizes: tuple[int, ...], seed: int) -> Iterator[str]:
    """One line a quality: true distance, bias of the plain number, width for every n."""
    d, trace, frobenius, operator = EMBEDDING_NORMS[EMBEDDINGS[embedding]]
    spectrum = matched_spectrum(d, trace=trace, frobenius=frobenius, operator=operator)
    reference = gb.Moments(np.zeros(d), np.diag(spectrum))
    for quality, stretch in STRETCH.items():
        # A deterministic, uneven error of every direction, as models have them.
        factors = 1.0 + stretch * np.sin(np.arange(1.0, d + 1.0))
        truth = float((spectrum * (factors - 1.0) ** 2).sum())
        rng = np.random.default_rng(seed)
        cells = []
        for n in sizes:
            rows = rng.standard_normal((n, d), dtype=np.float32)
            rows *= (np.sqrt(spectrum) * factors).astype(np.float32)
            score = gb.frechet_distance(rows, reference)
            plain = gb.frechet_distance(rows, reference, estimator="plugin").value
            cells.append(cell(score, truth, plain))
            print(embedding, quality, n, cells[-1], score, file=sys.stderr, flush=True)
        yield f"| {embedding}, {quality} model | {truth:.3g} | {' | '.join(cells)} |"


def inception_rows(sizes: tuple[int, ...], seed: int) -> Iterator[str]:
    """One line a distribution of posteriors over 1,000 classes."""
    for name, concentration in POSTERIORS.items():
        arm = DirichletArm(0.005 + concentration * np.eye(1000))
        truth = math.exp(arm.facts["log_score"])
        rng = np.random.default_rng(seed)
        cells = []
        for n in sizes:
            probs = arm.draw(n, rng)
            score = gb.inception_score(probs)
            plain = gb.inception_score(probs, estimator="plugin").value
            cells.append(cell(score, truth, plain))
            print(name, n, cells[-1], score, file=sys.stderr, flush=True)
        title = f"Inception score, 1,000 classes, {name} posteriors"
        yield f"| {title} | {truth:.3g} | {' | '.join(cells)} |"


def rke_row(sizes: tuple[int, ...], seed: int) -> Iterator[str]:
    """Vendi score of order 2 of a hundred uneven clusters; the U-statistic has no bias."""
    shares = 1.0 / np.arange(1.0, 101.0)
    shares /= shares.sum()
    truth = 1.0 / float(shares @ shares)
    rng = np.random.default_rng(seed)
    cells = []
    for n in sizes:
        rows = np.eye(100)[rng.choice(100, size=n, p=shares)]
        score = gb.vendi_score(rows, kernel="cosine", order=2.0, method="ustat")
        cells.append(cell(score, truth))
        print("rke", n, cells[-1], score, file=sys.stderr, flush=True)
    yield f"| Vendi score of order 2, 100 uneven clusters | {truth:.3g} | {' | '.join(cells)} |"


def table(sizes: tuple[int, ...], seed: int) -> list[str]:
    """All lines of the table."""
    heads = " | ".join(f"n = {n:,}" for n in sizes)
    lines = [f"| score | truth | {heads} |", "|---|---|" + "---|" * len(sizes)]
    for embedding in EMBEDDINGS:
        lines += frechet_rows(embedding, sizes, seed)
    lines += inception_rows(sizes, seed)
    lines += rke_row(sizes, seed)
    return lines


def main(argv: list[str] | None = None) -> int:
    """Compute the table and put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--print", action="store_true", help="leave the page as it is")
    options = parser.parse_args(argv)
    lines = table(tuple(options.sizes), options.seed)
    if options.print:
        print("\n".join(lines))
        return 0
    record("widths", lines, page=PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
