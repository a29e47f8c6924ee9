"""Time and memory of the four scores with intervals, beside the way of whole distance matrices.

    python -m experiments.benchmarks.neighbours [--rows 8000]

The dense way is that of the reference code of Naeem et al. (2020): three matrices of distances,
without intervals. Each runs in a process of its own; memory is the growth of the peak of the
process from before the call.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.record import record, stamp, table

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "precision_recall.md"
K = 5


def ours(fake: np.ndarray, real: np.ndarray) -> list[float]:
    """Scores with intervals and ratios to real rows."""
    found = gb.precision_recall(fake, real, k=K)
    return [found.precision.value, found.recall.value, found.density.value, found.coverage.value]


def dense(fake: np.ndarray, real: np.ndarray) -> list[float]:
    """Scores as the reference code computes them."""
    from sklearn.metrics import pairwise_distances

    def radii(rows: np.ndarray) -> np.ndarray:
        distances = pairwise_distances(rows)
        return np.partition(distances, K, axis=1)[:, : K + 1].max(axis=1)

    around_real, around_fake = radii(real), radii(fake)
    between = pairwise_distances(real, fake)
    held = between < around_real[:, None]
    return [
        float(held.any(axis=0).mean()),
        float((between < around_fake).any(axis=1).mean()),
        float(held.sum(axis=0).mean() / K),
        float((between.min(axis=1) < around_real).mean()),
    ]


WAYS = {"four scores with intervals": ours, "whole matrices, no intervals": dense}


Way = Callable[[np.ndarray, np.ndarray], list[float]]


def measured(function: Way, rows: int, columns: int) -> tuple[float, float, list[float]]:
    """Seconds, MiB and scores of one way, in this process."""
    rng = np.random.default_rng(0)
    fake, real = (rng.standard_normal((rows, columns), dtype="f4") for _ in range(2))
    with threadpool_limits(1):
        function(fake[:200], real[:200])  # imports
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        scores = function(fake, real)
        seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, (peak - before) / 1024.0, scores


def measure_all(name: str, ways: dict[str, Way], page: Path, scored: str, rows: int) -> None:
    """Measure every way in a process of its own, and write the table."""
    columns = 512
    lines = []
    for way, function in ways.items():
        with get_context("spawn").Pool(1) as pool:
            found = pool.apply(measured, (function, rows, columns))
        seconds, mebibytes, scores = found
        values = " ".join(f"{score:.4f}" for score in scores)
        lines.append([way, f"{seconds:.1f}", f"{mebibytes:.0f}", values])
        print(lines[-1], file=sys.stderr, flush=True)
    head = (
        f"n = m = {rows:,}, d = {columns}, single precision, one core: seconds of "
        f"processor time, peak memory beside the features. {stamp()}"
    )
    record(name, [head, "", *table(["", "seconds", "MiB", scored], lines)], page=page)


def main(argv: list[str] | None = None) -> int:
    """Measure both ways."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.neighbours", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=8000)
    rows = parser.parse_args(argv).rows
    measure_all("neighbours-cost", WAYS, PAGE, "precision, recall, density, coverage", rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
