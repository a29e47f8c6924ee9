"""Replications a second: sufficient statistics against plain samples and against the floor.

``python -m experiments.benchmarks.simulation`` times, in one run and in turns, one replication of
the plug-in distance of Gaussian rows to a reference at (d, n) = (64, 1,000), (256, 10,000) and
(2048, 50,000):

* ours: Bartlett's triangle, the products and the eigenvalues, in batches;
* plain: draw n × d rows, `np.cov`, the formula with `scipy.linalg.sqrtm`, as the usual tools do;
* plain, symmetric: the same with our formula, so that only the sampling differs;
* floor: only the matrix products and the eigenvalues that ours needs, on ready matrices.

``--device cuda`` adds the same on a torch device.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import sqrtm
from threadpoolctl import threadpool_limits

from genbounds.simulate import FrechetArm, GaussianArm, frechet_scores, power_law_spectrum
from genbounds.simulate.arms._frechet import times_triangle

SIZES = ((64, 1_000), (256, 10_000), (2048, 50_000))
AIMS = {64: 3.0, 256: 20.0, 2048: 20.0}
FLOOR = 2.0


def law(d: int, *, turned: bool) -> FrechetArm:
    """Power-law spectra in opposite order; with `turned` the eigenvectors differ as well."""
    values = power_law_spectrum(d, exponent=0.7, trace=160.0)
    if not turned:
        return FrechetArm(GaussianArm(0.05, values), 0.0, values[::-1])
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
    cov = (basis * values) @ basis.T
    return FrechetArm(GaussianArm(np.full(d, 0.05), (cov + cov.T) / 2.0), 0.0, values)


@dataclass(frozen=True)
class Plain:
    """The way everybody writes it first; or with the symmetric form of the formula."""

    arm: FrechetArm
    n: int
    symmetric: bool

    def __call__(self, count: int) -> None:
        """Do `count` replications."""
        rng = np.random.default_rng(1)
        root, mean = self.arm.reference_root, self.arm.reference_mean
        total, reference = self.arm.reference_values.sum(), self.arm.facts["reference_cov"]
        for _ in range(count):
            rows = self.arm.draw(self.n, rng)
            gap = rows.mean(axis=0) - mean
            cov = np.cov(rows, rowvar=False)
            if self.symmetric:
                inner = np.linalg.eigvalsh(root @ cov @ root)
                trace = np.sqrt(np.maximum(inner, 0.0)).sum()
            else:
                trace = np.trace(sqrtm(cov @ reference).real)
            _ = gap @ gap + np.trace(cov) + total - 2.0 * trace


@dataclass(frozen=True)
class Floor:
    """Products and eigenvalues on matrices that lie ready."""

    d: int
    turned: bool
    clock: Callable[[], float]
    seconds: list[float]

    def __call__(self, count: int) -> None:
        """Do `count` replications, in batches; what only prepares them is not timed."""
        rng = np.random.default_rng(2)
        size = max(1, min(count, 2**18 // self.d**2))
        a = np.tril(rng.standard_normal((size, self.d, self.d)))
        reference = rng.standard_normal((self.d, self.d))
        start = self.clock()
        for _ in range(0, count, size):
            b = times_triangle(reference, a) if self.turned else a
            np.linalg.eigvalsh(b.mT @ b)
        self.seconds.append((self.clock() - start) * count / (-(-count // size) * size))


def timed(call: Callable[[int], object], count: int, clock: Callable[[], float]) -> float:
    """Seconds a replication."""
    start = clock()
    call(count)
    return (clock() - start) / count


def main(argv: list[str] | None = None) -> int:
    """Print one row a size."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.simulation", description=__doc__
    )
    parser.add_argument("--sizes", type=int, nargs="*", metavar="D", help="of 64, 256, 2048; all")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timing, about")
    parser.add_argument("--repeats", type=int, default=3, help="median of so many, in turns")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS")
    parser.add_argument("--device", help="a torch device to time as well")
    parser.add_argument(
        "--diagonal",
        action="store_true",
        help="both covariances diagonal: rows cost nothing to colour",
    )
    parser.add_argument(
        "--cpu", action="store_true", help="processor seconds in place of wall time"
    )
    options = parser.parse_args(argv)
    clock = time.process_time if options.cpu else time.perf_counter
    print(
        "| d, n | ours, a second | plain | × faster | aim | plain, symmetric | × faster "
        "| floor | ours / floor | aim |" + (" torch, a second | device |" if options.device else "")
    )
    print("|---" * (12 if options.device else 10) + "|")
    met = True
    for d, n in SIZES:
        if options.sizes and d not in options.sizes:
            continue
        arm = law(d, turned=not options.diagonal)
        floor = Floor(d, not options.diagonal, clock, [])
        calls: dict[str, Callable[[int], object]] = {
            "ours": lambda count, arm=arm, n=n: frechet_scores(
                arm, n, count, estimator="plugin", threads=options.threads
            ),
            "plain": Plain(arm, n, symmetric=False),
            "symmetric": Plain(arm, n, symmetric=True),
            "floor": floor,
        }
        if options.device:
            calls["torch"] = lambda count, arm=arm, n=n: frechet_scores(
                arm, n, count, estimator="plugin", device=options.device
            )
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        with threadpool_limits(options.threads):
            batch = max(1, min(1024, 2**22 // d**2))
            arm.facts  # the truth is computed once, not once a replication  # noqa: B018
            counts = {}
            for name, call in calls.items():  # warm, and long enough to be timed
                # Whole batches, so that none is paid for and not filled.
                least = 1 if isinstance(call, Plain) else batch
                once = timed(call, least, clock)
                counts[name] = least * max(1, round(options.seconds / (once * least)))
            floor.seconds.clear()
            for _ in range(options.repeats):
                for name, call in calls.items():
                    seconds[name].append(timed(call, counts[name], clock))
        seconds["floor"] = [one / counts["floor"] for one in floor.seconds]
        median = {name: statistics.median(values) for name, values in seconds.items()}
        faster, above = median["plain"] / median["ours"], median["ours"] / median["floor"]
        met &= faster >= AIMS[d] and above <= FLOOR
        line = (
            f"| {d}, {n:,} | {1 / median['ours']:.4g} | {1 / median['plain']:.4g} | {faster:.1f} "
            f"| {AIMS[d]:g} | {1 / median['symmetric']:.4g} "
            f"| {median['symmetric'] / median['ours']:.1f} | {1 / median['floor']:.4g} "
            f"| {above:.2f} | {FLOOR:g} |"
        )
        if options.device:
            found = frechet_scores(arm, n, 1, estimator="plugin", device=options.device)
            line += f" {1 / median['torch']:.4g} | {found.device} |"
        print(line, flush=True)
    print(f"\nBLAS threads: {options.threads}; medians of {options.repeats}.", file=sys.stderr)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
