"""Samples of any size: seconds a row, and memory, of a Fréchet distance of shards.

``python -m experiments.benchmarks.shards`` writes shards of half-precision rows into a scratch
folder, scores them against a reference in a process that may not have more than 4 GiB of its own
(``RLIMIT_DATA``; what is mapped from a file does not count, for the system can drop it), and prints
a table. It needs disk for twice the rows: 30 GiB for 10 million of 768 features.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

SHARD = 100_000
"""Rows of a shard."""
REFERENCE = 50_000
"""Rows of the reference."""
GIB = 2**30


def write(folder: Path, name: str, n: int, d: int, seed: int, scale: float = 1.0) -> None:
    """Write n rows of independent uniform features as shards."""
    rng = np.random.default_rng(seed)
    for number, start in enumerate(range(0, n, SHARD)):
        size = min(SHARD, n - start)
        bits = rng.integers(0, 1 << 16, size=(size, d), dtype=np.uint16)
        bits &= np.uint16(0x03FF)
        bits |= np.uint16(0x3C00)  # between 1 and 2
        rows = bits.view(np.float16)
        np.save(folder / f"{name}-{number:05d}.npy", rows if scale == 1.0 else rows * scale)


class Peak(threading.Thread):
    """The largest number of bytes of its own that this process was seen to hold."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self.start()

    def run(self) -> None:
        """Look twenty times a second."""
        while True:
            status = Path("/proc/self/status").read_text()
            kib = next(line.split()[1] for line in status.splitlines() if "RssAnon" in line)
            self.bytes = max(self.bytes, int(kib) * 1024)
            time.sleep(0.05)


def score(folder: str, limit: float) -> None:
    """Score what lies in a folder within so many GiB; print what it took."""
    size = int(limit * GIB)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    peak = Peak()
    import genbounds as gb
    from genbounds import files

    real = files.read_features(f"{folder}/real-*.npy")
    started = time.perf_counter(), time.process_time()
    fake = files.read_features(f"{folder}/fake-*.npy")
    read = time.perf_counter() - started[0]
    found = gb.frechet_distance(fake, real)
    took = time.perf_counter() - started[0], time.process_time() - started[1]
    print(
        json.dumps(
            {
                "read": read,
                "seconds": took[0],
                "processor": took[1],
                "peak": peak.bytes / GIB,
                "score": [found.value, found.low, found.high],
            }
        )
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gib", type=float, default=4.0, help="what the process may have")
    parser.add_argument("--score", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.score is not None:
        score(options.score, options.gib)
        return
    print(
        "| rows | features | GiB | shards | to gather, s | in all, s | processor, s "
        "| µs of processor a row | memory, GiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
    for n in options.rows:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
            write(Path(folder), "real", REFERENCE, options.features, 0)
            write(Path(folder), "fake", n, options.features, 1, 1.125)
            command = [sys.executable, "-m", __spec__.name, "--score", folder]
            command += ["--gib", str(options.gib)]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                sys.exit(done.stderr)
            found = json.loads(done.stdout)
            total = n * options.features * 2 / GIB
            print(
                f"| {n:,} | {options.features} | {total:.1f} | {-(-n // SHARD)} "
                f"| {found['read']:.1f} | {found['seconds']:.0f} | {found['processor']:.0f} "
                f"| {1e6 * found['processor'] / n:.0f} | {found['peak']:.2f} |",
                flush=True,
            )
            print(f"  {found}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
