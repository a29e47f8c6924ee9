"""How a study scales with its workers, and what one piece of work costs beside the work itself.

``python -m experiments.benchmarks.workers`` runs the same batches of scores on one and on two
workers of either backend, and empty pieces for what handing out and keeping one costs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import numpy as np

from genbounds.simulate import FrechetArm, GaussianArm, Workers, frechet_scores, power_law_spectrum
from genbounds.simulate._work import COVERAGE, open_store


def nothing(index: int) -> int:
    return index


def seconds_of(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.workers", description=__doc__
    )
    parser.add_argument("--features", type=int, default=512, metavar="D")
    parser.add_argument("--replications", type=int, default=960)
    parser.add_argument("--pieces", type=int, default=400, help="empty ones")
    parser.add_argument("--most", type=int, default=2, help="workers")
    options = parser.parse_args(argv)
    values = power_law_spectrum(options.features, exponent=1.0, trace=160.0)
    arm = FrechetArm(GaussianArm(0.05, values), 0.0, values[::-1])
    n, tasks = 10 * options.features, [(index,) for index in range(options.pieces)]
    print(
        f"{options.replications} debiased scores at d = {options.features}; "
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.\n\n"
        "| backend | workers | start, s | work, s | × one process | efficiency "
        "| an empty piece, ms |\n|---|---|---|---|---|---|---|"
    )
    alone, expected = 0.0, np.empty(0)
    counts = sorted({1, options.most})
    for backend in ("loky", "dask"):
        for jobs in counts:
            workers = {"backend": backend, "jobs": jobs}
            start = seconds_of(
                lambda workers=workers: list(Workers(**workers).run(nothing, tasks[:2]))
            )
            # A Dask cluster is made for every call, processes of loky are reused.
            again = start if backend == "dask" else 0.0
            empty = seconds_of(lambda workers=workers: list(Workers(**workers).run(nothing, tasks)))
            begin = time.perf_counter()
            found = frechet_scores(arm, n, options.replications, **workers)
            whole = time.perf_counter() - begin - again
            if not expected.size:
                alone, expected = whole, found.values
            assert np.array_equal(found.values, expected)
            handed = 1e3 * max(empty - again, 0.0) / len(tasks)
            print(
                f"| {backend} | {jobs} | {start:.2f} | {whole:.1f} | {alone / whole:.2f} "
                f"| {alone / whole / jobs:.0%} | {handed:.2f} |",
                flush=True,
            )
    with tempfile.TemporaryDirectory() as folder, open_store(folder, {}, name=COVERAGE) as store:

        def keep() -> None:
            for i in range(200):
                store.put(str(i), {"values": [0.5] * 100})

        kept = seconds_of(keep)
    print(f"\nTo keep a piece: {1e3 * kept / 200:.2f} ms.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
