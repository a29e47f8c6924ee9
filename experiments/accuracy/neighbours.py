"""Whether intervals of precision, recall and their like hold their means.

    python -m experiments.accuracy.neighbours [--replications 100] [--jobs 2]

One table of docs/evidence/accuracy.md. A replication draws both samples anew; the truth is the mean
over all replications (for equal distributions that of density, 1, and of coverage, which is known
exactly).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.accuracy.coverage import PAGE
from experiments.accuracy.sampling import digits
from experiments.record import rate, record_briefly, recorded_rows, stamp, table
from genbounds.estimators import NeighbourReference, difference
from genbounds.estimators.neighbours import neighbour_estimates

N, K = 500, 5
NAMES = ("precision", "recall", "density", "coverage", "f_score")
HEADS = (*NAMES, "precision / real", "recall / real", "f_score / real")

Rng = np.random.Generator
Float = np.ndarray
Draw = Callable[[Rng], tuple[Any, ...]]


def normal(d: int, *, scale: float = 1.0, shift: float = 0.0, m: int = N) -> Draw:
    """Real rows N(0, I); generated ones shifted in every feature, and scaled."""

    def draw(rng: Rng) -> tuple[Any, ...]:
        return scale * rng.normal(size=(m, d)) + shift, rng.normal(size=(N, d))

    return draw


def heavy(rng: Rng) -> tuple[Any, ...]:
    """Student's t with 3 degrees of freedom in 16 features, equal distributions."""

    def rows() -> Float:
        return rng.normal(size=(N, 16)) / np.sqrt(rng.chisquare(3, (N, 1)) / 3.0)

    return rows(), rows()


def few_digits(rng: Rng) -> tuple[Any, ...]:
    """Handwritten digits; the generated ones less bright."""
    return 0.8 * digits(rng, N), digits(rng, N)


def grouped(rng: Rng, *, told: bool = True) -> tuple[Any, ...]:
    """Four generated rows of each of 125 prompts, in random order."""
    prompt = rng.permutation(np.repeat(np.arange(N // 4), 4))
    x = np.sqrt(0.7) * rng.normal(size=(N // 4, 16))[prompt]
    x += np.sqrt(0.3) * rng.normal(size=(N, 16))
    return gb.Sample(x, groups=prompt if told else None), rng.normal(size=(N, 16))


def untold(rng: Rng) -> tuple[Any, ...]:
    """Draw the same, as if rows were independent."""
    return grouped(rng, told=False)


def classes(rng: Rng) -> tuple[Any, ...]:
    """Ten classes of 50 rows in either sample, the generated ones a little narrower."""
    centres = 2.0 * np.random.default_rng(1).normal(size=(10, 16))
    label = np.repeat(np.arange(10), N // 10)

    def rows(scale: float) -> gb.Sample:
        return gb.Sample(centres[label] + scale * rng.normal(size=(N, 16)), strata=label)

    return rows(0.9), rows(1.0)


def paired(rng: Rng) -> tuple[Any, ...]:
    """Two models that are given the same prompts, one row of each."""
    prompt = np.arange(N)
    common = rng.normal(size=(N, 16))

    def rows(scale: float) -> gb.Sample:
        return gb.Sample(scale * (common + 0.5 * rng.normal(size=(N, 16))), groups=prompt)

    return rows(1.0), rows(0.9), 1.1 * rng.normal(size=(N, 16))


CELLS: dict[str, Draw] = {
    "equal, d = 2": normal(2),
    "equal, d = 64": normal(64),
    "equal, d = 64, m = 200": normal(64, m=200),
    "equal, d = 512": normal(512),
    "equal, t with 3 degrees, d = 16": heavy,
    "0.8 times as wide, shifted, d = 16": normal(16, scale=0.8, shift=0.2),
    "half as wide, d = 64": normal(64, scale=0.5),
    "digits, less bright": few_digits,
    "four rows a prompt, told, d = 16": grouped,
    "four rows a prompt, untold, d = 16": untold,
    "ten classes, fixed numbers, told, d = 16": classes,
    "difference of two models, same prompts, d = 16": paired,
}


def run(cell: str, replication: int, seed: int) -> list[tuple[float, float, float, float]]:
    """Value, both ends of the interval and standard error of all scores of one replication."""
    given = CELLS[cell](np.random.default_rng([seed, crc32(cell.encode()), replication]))
    with threadpool_limits(1):
        if len(given) == 3:
            reference = NeighbourReference(given[2], k=K)
            one, two = (neighbour_estimates(reference, fake) for fake in given[:2])
            gaps = [difference(one[name], two[name]) for name in NAMES]
            return [(gap.value, *gap.interval(0.95), gap.stderr) for gap in gaps]
        found = gb.precision_recall(*given, k=K)
        assert found.calibrated is not None
        ratios = [found.calibrated[name] for name in ("precision", "recall", "f_score")]
        scores = [*(getattr(found, name) for name in NAMES), *ratios]
        return [(score.value, score.low, score.high, score.stderr) for score in scores]


def summarised(cell: str, intervals: Float) -> list[str]:
    """Coverage with exact limits of every score, from (replications, scores, 4)."""
    cells = []
    for at in range(intervals.shape[1]):
        value, low, high, stderr = intervals[:, at].T
        truth = value.mean()
        if cell.startswith("equal") and HEADS[at] == "density":
            truth = 1.0
        given = np.isfinite(low)
        if given.mean() < 0.1:
            cells.append(f"refused in {1.0 - given.mean():.0%}")
            continue
        hits = int(((low <= truth) & (truth <= high))[given].sum())
        text = rate(hits, int(given.sum()), share=".0%", limits=".0%")
        ratio = np.sqrt(np.mean(stderr[given] ** 2)) / value.std(ddof=1)
        refused = f", refused in {1.0 - given.mean():.0%}" if not given.all() else ""
        cells.append(f"{text}, {ratio:.2f}{refused}")
    return [cell, str(len(intervals)), *cells, *["–"] * (len(HEADS) - len(cells))]


def main(argv: list[str] | None = None) -> int:
    """Run every cell and rewrite the table after each."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.neighbours", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="go on with this row of the table")
    options = parser.parse_args(argv)
    kept = recorded_rows("neighbours", key=1, page=PAGE)
    rows = {cell: kept[(cell,)] for cell in list(CELLS)[: options.first] if (cell,) in kept}
    with Parallel(n_jobs=options.jobs) as pool:
        for cell in list(CELLS)[options.first :]:
            jobs = (delayed(run)(cell, r, options.seed) for r in range(options.replications))
            cells = summarised(cell, np.array(pool(jobs)))
            rows[cell] = table(["samples", "runs", *HEADS], [cells])[-1]
            print(rows[cell], file=sys.stderr, flush=True)
            head = f"Seed {options.seed}; last in a cell: standard error over true spread."
            heads = table(["samples", "runs", *HEADS], [])
            record_briefly("neighbours", f"{head} {stamp()}", [*heads, *rows.values()], page=PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
