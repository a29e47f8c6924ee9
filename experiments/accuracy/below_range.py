"""How often an interval lies wholly below the smallest possible score.

    python -m experiments.accuracy.below_range [--runs 2000] [--planted 400]

Rewrites the table "below-range" of docs/evidence/sampling.md: by chance, of equal distributions,
and for samples that depend on one another, of which nothing was said.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import crossed, percent, rate, record, stamp, write_data
from genbounds.estimators import metric_spec
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
CLASSES, D = 20, 16
LEVELS = (0.95, 0.99)
SIZES = (100, 400)
METRICS: dict[str, dict[str, Any]] = {"fd": {}, "kid": {}, "energy": {}, "mind": {"directions": 16}}

_shape = np.random.default_rng(3)
MIXING = _shape.normal(size=(D, D)) / np.sqrt(D)
CENTRES = 1.5 * _shape.normal(size=(CLASSES, D))

Pair = tuple[Float, Float]


def noise(n: int, rng: np.random.Generator) -> Float:
    return np.asarray(rng.normal(size=(n, D)) @ MIXING)


def gaussian(n: int, rng: np.random.Generator) -> Pair:
    return noise(n, rng), noise(n, rng)


def mixture(n: int, rng: np.random.Generator) -> Pair:
    one, two = (CENTRES[rng.integers(CLASSES, size=n)] + noise(n, rng) for _ in range(2))
    return one, two


def balanced(n: int, rng: np.random.Generator) -> Pair:
    k = np.arange(n) % CLASSES
    return CENTRES[k] + noise(n, rng), CENTRES[k] + noise(n, rng)


def prompts(n: int, rng: np.random.Generator) -> Pair:
    """Half of the variance is that of prompts that sample and reference share."""
    shared = noise(n, rng)
    one, two = (np.sqrt(0.5) * (shared + noise(n, rng)) for _ in range(2))
    return one, two


def copies(n: int, rng: np.random.Generator) -> Pair:
    """Take the reference rows with a tenth of noise, in another order."""
    real = noise(n, rng)
    return rng.permutation(np.sqrt(0.9) * real + np.sqrt(0.1) * noise(n, rng)), real


BY_CHANCE = {"Gaussian": gaussian, "20 classes": mixture}
PLANTED = {
    "20 classes, as many rows of each": balanced,
    "prompts shared with the reference": prompts,
    "near copies of the reference": copies,
}


def measured(metric: str, draw: Any, n: int, runs: int) -> list[int]:
    """Count the pairs whose interval lies below 0, at every level."""
    hits = np.zeros(len(LEVELS), dtype=int)
    for run in range(runs):
        x, y = draw(n, np.random.default_rng([n, run]))
        prepared = metric_spec(metric).prepared(gb.Sample(y), METRICS[metric])
        estimate = prepared.estimate(gb.Sample(x))
        hits += [estimate.interval(level)[1] < estimate.lower_limit for level in LEVELS]
    return [int(hit) for hit in hits]


COLUMNS = ("score", "rows of either", "samples", "95 % interval below 0", "99 % (unreliable)")


def shown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the page shows of these rows, by `COLUMNS`."""
    cells = {
        (name, f"{metric}, {n} rows"): f"{percent(low)} / {percent(lower)}"
        for metric, n, name, low, lower in rows
    }
    return [
        "Percent of pairs whose 95 % / 99 % interval lies below 0 (the latter: unreliable). "
        "[Exact limits](data/below-range.csv).",
        "",
        *crossed(cells, "samples"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--planted", type=int, default=400)
    asked = parser.parse_args()
    lines = []
    for metric in METRICS:
        for n in SIZES:
            for name, draw in (BY_CHANCE | PLANTED).items():
                runs = asked.runs if name in BY_CHANCE else asked.planted
                hits = measured(metric, draw, n, runs)
                lines.append([metric, str(n), name, *(rate(hit, runs) for hit in hits)])
                print(*lines[-1], sep=" | ", flush=True)
    write_data("below-range", COLUMNS, lines, page=PAGE)
    note = f"{stamp()} {asked.runs:,} pairs by chance, {asked.planted:,} planted ones."
    record("below-range", [note, "", *shown(lines)], page=PAGE)


if __name__ == "__main__":
    main()
