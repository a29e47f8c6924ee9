"""Accuracy of the few-samples routes: bias, error, standard error and coverage by arm, d and n.

    python -m experiments.accuracy.few_samples --repeats 40

prints one row a cell. Every arm has exact moments but "network", whose truth is the law of a
fixed pool of 20,000 rows, drawn with replacement.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import linalg

from experiments.accuracy.laws import make_law
from genbounds.estimators._few_samples import few_samples

CELLS = (
    *((16, n) for n in (20, 40)),
    *((64, n) for n in (32, 80, 200)),
    *((128, n) for n in (32, 64, 160)),
    *((256, n) for n in (128, 320)),
    *((512, n) for n in (128, 256)),
)
ARMS = ("gauss", "gamma", "t8", "scales", "rectified", "ten", "same", "network")


def measure(arm: str, d: int, n: int, *, repeats: int, seed: int) -> str:
    """One row of the table."""
    law = make_law(arm, d)
    values, vectors = linalg.eigh(law.reference_cov)
    lower = vectors * np.sqrt(np.clip(values, 0.0, None))
    trace = float(np.trace(law.reference_cov))
    truth = law.truth
    plugin, result = [], []
    seconds = 0.0
    for stream in np.random.SeedSequence([seed, d, n]).spawn(repeats):
        x = law.draw(n, np.random.default_rng(stream))
        mean = x.mean(axis=0)
        x = x - mean
        projected = x @ lower
        gap = mean - law.reference_mean
        gram = projected @ projected.T if n <= d else projected.T @ projected
        roots = np.sqrt(np.clip(linalg.eigvalsh(gram / (n - 1)), 0.0, None))
        plugin.append(gap @ gap + (x * x).sum() / (n - 1) + trace - 2.0 * roots.sum() - truth)
        start = time.perf_counter()
        estimate = few_samples(x, projected, gap=gap, reference_trace=trace)
        seconds += time.perf_counter() - start
        result.append((estimate.value - truth, estimate.variance, estimate.reliable))
    error, variance, reliable = np.array(result, dtype=np.float64).T
    spread = float(np.std(plugin, ddof=1))
    rmse = float(np.sqrt(np.mean(error**2)))
    covered = float(np.mean(np.abs(error) <= 1.96 * np.sqrt(variance)))
    return (
        f"| {arm} | {d} | {n} | {truth:.2f} | {np.mean(plugin):+.2f} | {spread:.3f} | "
        f"{error.mean():+.3f} | {rmse:.3f} | {rmse / spread:.2f} | "
        f"{np.sqrt(variance.mean()):.3f} | {covered:.3f} | {reliable.mean():.2f} | "
        f"{1e3 * seconds / repeats:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--cells", nargs="+", default=[f"{d}x{n}" for d, n in CELLS])
    options = parser.parse_args()
    print(
        "| arm | d | n | true FD | plug-in bias | sd* | bias | RMSE | RMSE/sd* | mean se | "
        "covered | reliable | ms |\n" + "|---" * 13 + "|"
    )
    for cell in options.cells:
        d, n = map(int, cell.split("x"))
        for arm in options.arms:
            row = measure(arm, d, n, repeats=options.repeats, seed=options.seed)
            print(row, flush=True)


if __name__ == "__main__":
    main()
