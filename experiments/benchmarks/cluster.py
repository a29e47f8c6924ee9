"""What the workers of a Dask cluster save: seconds of scores of pairs and of wide products.

``python -m experiments.benchmarks.cluster`` scores the same rows as arrays and as dask arrays, on
clusters of one worker and of two processes, each with one BLAS thread, and prints a table.
"""

from __future__ import annotations

import argparse
import logging
import os
import time

import numpy as np

import genbounds as gb
from genbounds._process import blas_threads

SCORES = {
    "to fetch the rows": lambda fake, real: (gb.Sample(fake), gb.Sample(real)),
    "Fréchet distance": lambda fake, real: gb.frechet_distance(fake, real),
    "Fréchet distance, compared": lambda fake, real: gb.compare({"a": fake}, real).scores["a"],
    "kernel distance": lambda fake, real: gb.kernel_inception_distance(fake, real),
    "Vendi, order 2": lambda fake, real: gb.vendi_score(fake, order=2.0),
    "Vendi, fkea": lambda fake, real: gb.vendi_score(fake, method="fkea"),
    "Inception score": lambda fake, real: gb.inception_score(fake),
}


def block_of(side: int, number: int, size: int, d: int, posteriors: bool) -> np.ndarray:
    """Make some rows, for the Inception score ones that sum to one."""
    rows = np.random.default_rng([side, number]).normal(size=(size, d), scale=1.0 + 0.2 * side)
    if posteriors:
        rows = np.exp(rows)
        rows /= rows.sum(axis=1, keepdims=True)
    return rows.astype(np.float32)


def measured(score, samples, client=None):
    """Return the score, seconds, and seconds of the processor, of the caller and of workers."""

    def used() -> float:
        return sum(client.run(time.process_time).values()) if client else 0.0

    before = time.process_time(), used()
    start = time.perf_counter()
    with blas_threads(1):
        found = score(*samples)
    wall = time.perf_counter() - start
    return found, wall, time.process_time() - before[0], used() - before[1]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    from dask import array
    from dask.delayed import delayed
    from distributed import Client, LocalCluster, wait

    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.cluster", description=__doc__
    )
    parser.add_argument("scores", nargs="*", default=["kernel distance"], metavar="SCORE")
    parser.add_argument("--rows", type=int, default=20_000, help="of each sample")
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--most", type=int, default=2, help="workers")
    options = parser.parse_args(argv)
    shape = (options.rows, options.features)
    sizes = np.diff(np.linspace(0, shape[0], 11).astype(int))
    print(
        f"{shape[0]:,} × {shape[1]} rows per sample; {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}.\n\n| score | workers | s | processor of the caller, s "
        "| of the workers, s | difference, standard errors |\n|---|---|---|---|---|---|"
    )
    for name in options.scores:
        blocks = [
            [(side, k, size, shape[1], name == "Inception score") for k, size in enumerate(sizes)]
            for side in (0, 1)
        ]
        rows = [np.concatenate([block_of(*block) for block in side]) for side in blocks]
        SCORES[name](*(x[:64] for x in rows))  # imports what it needs
        expected, alone, processor, _ = measured(SCORES[name], rows)
        print(f"| {name} | – | {alone:.1f} | {processor:.1f} | – | – |", flush=True)
        for workers in sorted({1, options.most}):
            with (
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                ) as cluster,
                Client(cluster) as client,
            ):
                given = []
                for side in blocks:
                    parts = [
                        array.from_delayed(delayed(block_of)(*block), block[2:4], np.float32)
                        for block in side
                    ]
                    given.append(client.persist(array.concatenate(parts)))
                wait(given)
                client.run(SCORES[name], *(x[:64] for x in rows))
                found, wall, own, theirs = measured(SCORES[name], given, client)
                gap = "–"
                if isinstance(found, gb.Score):
                    gap = f"{abs(found.value - expected.value) / expected.stderr:.0e}"
                print(
                    f"| {name} | {workers} | {wall:.1f} | {own:.1f} | {theirs:.1f} | {gap} |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
