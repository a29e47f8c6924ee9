"""Coverage of the debiased FD interval at the size of Inception features, d = 2048, n = 20,000.

``python -m experiments.accuracy.large --out out/large --jobs 2`` draws 1,000 samples through their
sufficient statistics; the same command goes on where it was interrupted. ``--replications 3``
estimates how long that takes.

One replication costs, in units of d³ flops: B = R A 1 (d² where both covariances have the same
eigenvectors, as here unless ``--turned``), Bᵀ B and Aᵀ A 1 each, eigenvectors 9, A V 1. At
d = 2048 a unit is 8.6 · 10⁹.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time

import numpy as np
from joblib.externals.loky import get_reusable_executor

from experiments.memory import peak_gib
from genbounds.simulate import (
    EMBEDDING_NORMS,
    FrechetArm,
    GaussianArm,
    frechet_scores,
    matched_spectrum,
)

LEVEL = 0.95


def law(d: int, *, turned: bool) -> FrechetArm:
    """Both spectra have norms printed for Inception features (M25, Tables 1-3), scaled to d."""
    spectra = []
    for name in ("inception high r", "inception low r"):
        whole, trace, frobenius, operator = EMBEDDING_NORMS[name]
        spectrum = matched_spectrum(whole, trace=trace, frobenius=frobenius, operator=operator)
        spectra.append(np.sort(spectrum)[::-1][:d])
    features, reference = spectra
    mean = np.full(d, 0.05)
    if not turned:
        return FrechetArm(
            GaussianArm(mean, features), 0.0, reference, name=f"Inception-like, d={d}"
        )
    rng = np.random.default_rng(0)
    axis = rng.standard_normal(d)
    axis /= np.linalg.norm(axis)
    mirror = np.eye(d) - 2.0 * np.outer(axis, axis)
    cov = (mirror * features) @ mirror
    return FrechetArm(
        GaussianArm(mean, (cov + cov.T) / 2.0),
        0.0,
        reference,
        name=f"Inception-like, turned, d={d}",
    )


def main(argv: list[str] | None = None) -> int:
    """Run the study and print one row."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.large", description=__doc__
    )
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--features", type=int, default=2048, metavar="D")
    parser.add_argument("--samples", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--backend", default="loky")
    parser.add_argument("--scheduler")
    parser.add_argument("--device", help="a torch device; NumPy without it")
    parser.add_argument("--turned", action="store_true", help="eigenvectors differ")
    parser.add_argument("--out", help="folder that keeps finished replications")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    arm = law(options.features, turned=options.turned)
    truth = arm.facts["distance"]
    ready = time.perf_counter()
    counted = 0

    def progress(done: int, total: int, label: str) -> None:
        nonlocal counted
        counted += 1
        if done == total or done % 50 == 0:
            seconds = time.perf_counter() - ready
            print(f"{label}: {done} of {total}, {seconds:.0f} s", file=sys.stderr, flush=True)

    found = frechet_scores(
        arm,
        options.samples,
        options.replications,
        seed=options.seed,
        level=LEVEL,
        device=options.device,
        jobs=options.jobs,
        backend=options.backend,
        scheduler=options.scheduler,
        out=options.out,
        progress=progress,
    )
    seconds = time.perf_counter() - ready
    coverage = found.coverage()
    print(
        "| distribution | n | replications | FD | bias | spread | coverage of the 95 % interval "
        "| limits | median width |\n|---|---|---|---|---|---|---|---|---|\n"
        f"| {arm.name} | {found.n:,} | {found.replications:,} | {truth:.5g} "
        f"| {found.bias:+.2g} ± {found.bias_stderr:.1g} "
        f"| {found.spread:.3g} ± {found.spread_stderr:.1g} "
        f"| {coverage.coverage:.2%} ± {coverage.stderr:.2%} "
        f"| {1 - coverage.miss_high:.2%} – {1 - coverage.miss_low:.2%} | {coverage.width:.3g} |"
    )
    if options.backend == "loky" and options.jobs > 1:
        get_reusable_executor().shutdown(wait=True)  # children count once they have ended
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(
        f"\n{found.device}; {options.jobs} processes on {os.cpu_count()} cores, "
        f"backend {options.backend}: {seconds:.0f} s "
        f"for {counted} batches ({seconds / max(counted, 1):.2f} s each), {ready - start:.0f} s "
        f"before; largest process {max(peak_gib(), children):.2f} GiB."
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
