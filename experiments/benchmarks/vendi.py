"""Time and memory of the Vendi family: ``python -m experiments.benchmarks.vendi [CASE …]``.

Each call runs in a fresh process, so that its peak memory is its own; short ones several times, for
the median. Peers (vendi-score) run in the same invocation where they are installed; with
``--rounds`` all calls of a case take turns, and the median counts. ``--record`` rewrites the rows
of these cases in docs/evidence/benchmarks.md; six minutes a round on two cores. ``--cpu`` counts
processor seconds of one thread, which another process on the machine disturbs little; they are not
recorded.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from experiments.memory import peak_gib
from experiments.record import record, recorded_rows, stamp, table

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "benchmarks.md"

HEAD = ("case", "n", "d", "call", "seconds", "peak GiB", "times the first", "score", "measured")
ENOUGH, REPEATS = 3.0, 9
"""A call is repeated until it took so many seconds in all, or so often."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

QUOTED = {"fkea": ("published code (quoted)", 167.0, 2.4)}
"""Seconds and GiB on two cores of what is not run here."""


def features(n: int, d: int) -> np.ndarray:
    """Return float32 rows with a power-law spectrum and 20 clusters, as networks give them."""
    rng = np.random.default_rng(0)
    scales = (np.arange(1, d + 1) ** -0.5).astype(np.float32)
    centres = 2.0 * rng.standard_normal((20, d), dtype=np.float32) * scales
    rows = rng.standard_normal((n, d), dtype=np.float32) * scales
    return rows + centres[rng.integers(20, size=n)]


def ours(**given: Any) -> Callable[[np.ndarray], float]:
    """Return a call of `vendi_score`."""

    def call(x: np.ndarray) -> float:
        import genbounds as gb

        score = gb.vendi_score(x, **given)
        print(repr(score), file=sys.stderr)
        return score.value

    return call


def peer_rbf(dtype: type) -> Callable[[np.ndarray], float]:
    """Return vendi-score on the RBF matrix, bandwidth as ours."""

    def call(x: np.ndarray) -> float:
        from vendi_score import vendi

        squares = (x.astype(dtype) ** 2).sum(axis=1)
        distances = squares[:, None] + squares[None] - 2 * (x.astype(dtype) @ x.astype(dtype).T)
        return float(vendi.score_K(np.exp(-np.maximum(distances, 0) / dtype(2 * SIGMA**2))))

    return call


def peer(name: str) -> Callable[[np.ndarray], float]:
    """Return a function of vendi-score on the rows."""

    def call(x: np.ndarray) -> float:
        from vendi_score import vendi

        return float(getattr(vendi, name)(x))

    return call


SIGMA = 4.0
CASES: dict[str, tuple[int, int, dict[str, Callable[[np.ndarray], float]]]] = {
    "rbf": (
        10_000,
        768,
        {
            "genbounds exact": ours(bandwidth=SIGMA, method="exact"),
            "genbounds lanczos": ours(bandwidth=SIGMA, method="lanczos"),
            "genbounds truncated": ours(bandwidth=SIGMA, method="truncated"),
            "peer float64": peer_rbf(np.float64),
            "peer float32": peer_rbf(np.float32),
        },
    ),
    "cosine": (
        10_000,
        768,
        {"genbounds exact": ours(kernel="cosine"), "peer score_X": peer("score_X")},
    ),
    "dual": (
        20_000,
        768,
        {"genbounds exact": ours(kernel="cosine"), "peer score_dual": peer("score_dual")},
    ),
    "rke": (
        50_000,
        768,
        {"genbounds ustat": ours(bandwidth=SIGMA, order=2.0, method="ustat")},
    ),
    "lanczos": (
        20_000,
        768,
        {
            "genbounds lanczos": ours(bandwidth=SIGMA, method="lanczos"),
            "genbounds nystrom": ours(bandwidth=SIGMA, method="nystrom", components=200),
        },
    ),
    "fkea": (
        20_000,
        768,
        {"genbounds fkea": ours(bandwidth=SIGMA, method="fkea", components=1000)},
    ),
}


def one(case: str, name: str, *, cpu: bool = False) -> dict[str, float]:
    """Median seconds, peak GiB of this process, and the value of one call."""
    n, d, calls = CASES[case]
    x = features(n, d)
    clock = time.process_time if cpu else time.perf_counter
    taken: list[float] = []
    while not taken or (sum(taken) < ENOUGH and len(taken) < REPEATS):
        start = clock()
        value = calls[name](x)
        taken.append(clock() - start)
    return {"value": value, "seconds": statistics.median(taken), "peak": peak_gib()}


def measured(case: str, rounds: int, *, cpu: bool = False) -> list[list[str]]:
    """Run every call of a case in turn, each time in a process of its own; rows of the table."""
    n, d, calls = CASES[case]
    installed = find_spec("vendi_score") is not None
    results: dict[str, list[dict[str, float]]] = {
        name: [] for name in calls if installed or not name.startswith("peer")
    }
    failed = set[str]()
    # Libraries read them when they are loaded, which some are at their first use.
    threads = {name: "1" for name in THREADS} if cpu else {}
    for _ in range(rounds):
        for name in results:
            command = [sys.executable, "-m", "experiments.benchmarks.vendi"]
            command += [*["--cpu"] * cpu, "--one", case, name]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=os.environ | threads
            )
            print(done.stderr.strip(), file=sys.stderr, flush=True)
            if done.returncode:
                failed.add(name)
                continue
            results[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
    rows, ours = [], 0.0
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for name, taken in results.items():
        if name in failed:
            rows.append([case, f"{n:,}", str(d), name, "fails", "", "", "", today])
            continue
        seconds, peak = (
            statistics.median(one[key] for one in taken) for key in ("seconds", "peak")
        )
        ours = ours or seconds
        figures = [f"{seconds:.3g}", f"{peak:.2f}", f"{seconds / ours:.3g}"]
        rows.append([case, f"{n:,}", str(d), name, *figures, f"{taken[0]['value']:.6g}", today])
        print(" | ".join(rows[-1]), flush=True)
    if case in QUOTED:
        name, seconds, peak = QUOTED[case]
        ratio = f"{seconds / ours:.3g}" if ours else ""
        rows.append([case, f"{n:,}", str(d), name, f"{seconds:g}", f"{peak:g}", ratio, "", ""])
    return rows


def main(argv: list[str] | None = None) -> int:
    """Run cases, print a table, and record it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; or all")
    parser.add_argument("--rounds", type=int, default=1, help="turns of every call")
    clock = parser.add_mutually_exclusive_group()
    clock.add_argument("--record", action="store_true", help="into the page")
    clock.add_argument("--cpu", action="store_true", help="processor seconds of one thread")
    parser.add_argument("--page", type=Path, default=PAGE, help="document with the section")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(one(*options.one, cpu=options.cpu)))
        return 0
    chosen = options.cases or list(CASES)
    rows = [row for case in chosen for row in measured(case, options.rounds, cpu=options.cpu)]
    lines = table(HEAD, rows)
    print("\n".join([stamp(), "", *lines]))
    if options.record:
        head, rule, *new = lines
        before = recorded_rows("vendi", key=4, page=options.page)
        kept = [row for key, row in before.items() if key[0] in set(CASES) - set(chosen)]
        record("vendi", [head, rule, *kept, *new], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
