"""Coverage of few groups of unequal sizes: ``python -m experiments.accuracy.unequal_groups``.

Takes some ten minutes and records its table in docs/evidence/sampling.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.record import rate, record_briefly, stamp, table
from genbounds.results import Score
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
GROUPS = (8, 12, 20, 40)
MEAN_SIZE = 16
WITHIN = 0.4
"""Share of the variance that groups have in common."""

Sizes = Callable[[np.random.Generator, int], Float]
SIZES: dict[str, Sizes] = {
    "equal": lambda rng, g: np.ones(g),
    "log-normal, sd 1.2": lambda rng, g: np.exp(1.2 * rng.standard_normal(g)),
    "Zipf": lambda rng, g: 1.0 / np.arange(1.0, g + 1.0),
    "one of a fifth": lambda rng, g: np.append(np.ones(g - 1), (g - 1) / 4.0),
}
TRUTH = 2 * (0.6**2 + 0.3**2)
"""Fréchet distance of two features of means 0.6 and deviations 1.3 to the standard normal."""


def grouped(rng: np.random.Generator, ids: NDArray[np.intp], d: int) -> Float:
    """Return normal rows of unit variance, a share of it common to the rows of a group."""
    common = rng.standard_normal((ids.max() + 1, d))[ids]
    return np.sqrt(WITHIN) * common + np.sqrt(1.0 - WITHIN) * rng.standard_normal((ids.size, d))


def scores(rng: np.random.Generator, sizes: Sizes, groups: int) -> dict[str, tuple[Score, float]]:
    """Score one sample by each score; with the truth."""
    shares = sizes(rng, groups)
    counts = np.maximum(2, np.rint(shares / shares.sum() * groups * MEAN_SIZE)).astype(int)
    ids = np.repeat(np.arange(groups), counts)
    x = gb.Sample(0.6 + 1.3 * grouped(rng, ids, 2), groups=ids)
    real = gb.Moments(np.zeros(2), np.eye(2))
    mean = gb.mean_score(grouped(rng, ids, 1)[:, 0], groups=ids)
    return {"FD": (gb.frechet_distance(x, real), TRUTH), "mean": (mean, 0.0)}


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    rows = []
    for name, sizes in SIZES.items():
        for groups in GROUPS:
            seeds = [[run, groups] for run in range(options.runs)]
            runs = [scores(np.random.default_rng(seed), sizes, groups) for seed in seeds]
            cells = [name, str(groups)]
            for score in runs[0]:
                found = [run[score] for run in runs]
                hits = sum(one.low <= truth <= one.high for one, truth in found)
                doubted = sum(not one.reliable for one, _ in found)
                cells += [rate(hits, len(found)), rate(doubted, len(found))]
            rows.append(cells)
    columns = ["sizes", "groups", "FD covers", "called unreliable", "mean covers", "unreliable"]
    head = f"{stamp()} 95 % intervals, {options.runs} runs a line."
    record_briefly("unequal-groups", head, table(columns, rows), page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
