"""How low certified ceilings on precision and recall are, and whether they are ever too low.

    python -m experiments.accuracy.ceilings [--replications 60]

One table of docs/evidence/accuracy.md: ten Gaussian modes, of which the generated sample drops,
thins or invents some, with the true values in closed form.
"""

from __future__ import annotations

import argparse
import sys
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.accuracy.coverage import PAGE
from experiments.record import exact_limits, record, stamp, table

N, D = 2000, 16
LAM = (10.0, 1.0, 0.1)
NAMES = ("precision@10", "overlap", "recall@10")

TENTHS = np.full(11, 0.1) * (np.arange(11) < 10)
"""Real modes; the eleventh is one that only a model has."""

MODELS = {
    "equal": TENTHS,
    "two modes dropped": np.array([0.0, 0.0, *[0.125] * 8, 0.0]),
    "two modes halved": np.array([0.05, 0.05, *[0.1125] * 8, 0.0]),
    "5 % invented": np.append(TENTHS[:10] * 0.95, 0.05),
    "20 % dropped, 10 % invented": np.array([0.0, 0.0, *[0.1125] * 8, 0.1]),
}


def rows(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of modes that do not overlap."""
    centres = 12.0 * np.eye(11, D)
    return centres[rng.choice(11, N, p=weights)] + rng.normal(size=(N, D))


def truth(weights: np.ndarray, lam: float) -> float:
    """Share of the mass that both have in common, as the ceiling bounds it."""
    return float(np.minimum(weights, lam * TENTHS).sum() / min(lam, 1.0))


def main(argv: list[str] | None = None) -> int:
    """Run every model and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.ceilings", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--replications", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    lines = []
    for model, weights in MODELS.items():
        found = []
        for replication in range(options.replications):
            rng = np.random.default_rng([options.seed, crc32(model.encode()), replication])
            with threadpool_limits(1):
                ceiling = gb.precision_recall_ceiling(rows(weights, rng), rows(TENTHS, rng))
            found.append([ceiling[name] for name in NAMES])
        cells = []
        for values, lam in zip(np.transpose(found), LAM, strict=True):
            true = min(truth(weights, lam), 1.0)
            misses = int((values < true - 1e-12).sum())
            high = exact_limits(misses, len(values))[1]
            cells.append(f"{values.mean():.3f} ({true:.3f}), {misses} (up to {high:.0%})")
        lines.append([model, *cells])
        print(lines[-1], file=sys.stderr, flush=True)
    head = (
        f"Seed {options.seed}, {options.replications} replications a row, {N} rows of either "
        "sample; in a cell: mean ceiling (truth), how often it is below the truth."
    )
    record("ceilings", [f"{head} {stamp()}", "", *table(["model", *NAMES], lines)], page=PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
