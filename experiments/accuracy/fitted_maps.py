"""Whitening and PCA that were fitted on rows that are scored: coverage of the distance behind them.

``python -m experiments.accuracy.fitted_maps`` takes some minutes and records its table in
docs/evidence/sampling.md. The truth is the distance between both populations under the map that
was fitted, whatever rows it was fitted on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import rate, record_briefly, stamp, table
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
REAL, FAKE = 200, 500
"""Rows."""

MAPS = {"whitening of 16": (16, 16), "8 components of 32": (32, 8)}
"""Features, and how many the map leaves."""

SCALE, SHIFT = 1.1, 0.2
"""Of the generated rows, in deviations of the real ones."""


def fitted(rows: Float, kept: int) -> tuple[Float, Float]:
    """Return the mean of rows and their leading directions, scaled to variance 1 if all stay."""
    values, vectors = np.linalg.eigh(np.cov(rows, rowvar=False))
    leading = vectors[:, -kept:]
    return rows.mean(axis=0), leading / np.sqrt(values) if kept == rows.shape[1] else leading


def covers(rng: np.random.Generator, d: int, kept: int) -> dict[str, bool]:
    """Whether the interval of one sample covers the distance, by what the map was fitted on."""
    spread = np.arange(1.0, d + 1.0) ** -0.5
    real, other = (spread * rng.standard_normal((REAL, d)) for _ in range(2))
    fake = spread * (SHIFT + SCALE * rng.standard_normal((FAKE, d)))
    found = {}
    for name, rows in {
        "the reference": real,
        "all rows of both": np.concatenate([real, fake]),
        "other real rows": other,
    }.items():
        centre, turn = fitted(rows, kept)
        score = gb.frechet_distance((fake - centre) @ turn, (real - centre) @ turn)
        both = [
            gb.Moments((mean - centre) @ turn, (turn.T * (factor * spread) ** 2) @ turn)
            for mean, factor in ((SHIFT * spread, SCALE), (0.0 * spread, 1.0))
        ]
        truth = gb.frechet_distance(*both).value
        found[name] = score.low <= truth <= score.high
    return found


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    rows = []
    for name, (d, kept) in MAPS.items():
        runs = [covers(np.random.default_rng([run, d]), d, kept) for run in range(options.runs)]
        rows.append([name, *(rate(sum(run[on] for run in runs), len(runs)) for on in runs[0])])
    head = f"{stamp()} 95 % intervals, {options.runs} runs, {REAL} real and {FAKE} generated rows."
    lines = table(["fitted on", *runs[0]], rows)
    record_briefly("fitted-maps", head, lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
