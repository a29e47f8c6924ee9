"""Samples to a certificate with the 2,048 features of an Inception network.

python -m experiments.selection.large --runs 10

Two Gaussian arms with the norms that M25 prints for DiT-XL-2 and ADMG, distances F and (1 + gap) F
from a reference whose moments are known. Runs are kept in OUT/large.jsonl, and the same command
goes on where it was stopped. A whole study is recorded in docs/evidence/selection.md.
"""

from __future__ import annotations

import argparse
import time
from functools import lru_cache
from pathlib import Path

import numpy as np

from experiments.record import record, stamp, table
from experiments.selection.embeddings import Builder, distance
from experiments.selection.floor import fewest_samples
from experiments.selection.sample_size import OFFLINE
from experiments.selection.store import Run, add_workers, study, workers_of
from genbounds import select
from genbounds.estimators import Moments
from genbounds.simulate import GaussianArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection.md"
CELLS = ((0.05, 0.05), (0.02, 0.05))
"""Distance of the best arm in units of Tr Σ_r, and by which share the other one is worse."""

BATCH = 256
COLUMNS = (
    "FD of the best",
    "gap",
    "runs",
    "right, wrong, open",
    "samples an arm: median",
    "most",
    "50,000 an arm / median",
    "no method below",
)


@lru_cache(maxsize=1)
def builder(dimension: int) -> Builder:
    return Builder("inception", dimension or None)


def problem(
    share: float, gap: float, dimension: int, seed: int
) -> tuple[dict[str, GaussianArm], Moments, dict[str, float]]:
    """Arms, reference and true distances of one run; the means point anywhere."""
    built = builder(dimension)
    total = float(built.reference.sum())
    rng = np.random.default_rng([seed, 4])
    arms, truth = {}, {}
    for name, factor in (("DiT-XL-2", 1.0), ("ADMG", 1.0 + gap)):
        values = built.models[name]
        spread = distance(np.zeros(built.d), values, built.reference)
        direction = rng.standard_normal(built.d) * np.sqrt(built.reference)
        length = np.sqrt(share * total * factor - spread)
        arms[name] = GaussianArm(direction / np.linalg.norm(direction) * length, values)
        truth[name] = distance(arms[name].mean, values, built.reference)
    return arms, Moments(np.zeros(built.d), np.diag(built.reference), n=None), truth


def samples(share: float, gap: float, confidence: float, dimension: int, seed: int) -> Run:
    """Count the samples of one run and say what it certified."""
    arms, reference, truth = problem(share, gap, dimension, seed)
    start = time.process_time()
    selection = select.run(
        arms, reference, confidence=confidence, batch=BATCH, dtype="float32", seed=seed
    )
    right = selection.best == min(truth, key=truth.__getitem__)
    return {
        "outcome": ("right" if right else "wrong") if selection.certified else "open",
        "most": max(selection.samples.values()),
        "seconds": time.process_time() - start,
    }


def row(share: float, gap: float, runs: list[Run], confidence: float, dimension: int) -> list[str]:
    """One line of the table."""
    arms, _, truth = problem(share, gap, dimension, 0)
    best, second = sorted(truth, key=truth.__getitem__)
    most = np.array([run["most"] for run in runs])
    outcomes = [run["outcome"] for run in runs]
    fewest = fewest_samples(
        arms[best], arms[second], truth[second] - truth[best], confidence=confidence
    )
    return [
        f"{truth[best]:.3g}",
        f"{gap:.0%}",
        str(len(runs)),
        ", ".join(str(outcomes.count(kind)) for kind in ("right", "wrong", "open")),
        f"{np.median(most):,.0f}",
        f"{most.max():,}",
        f"{OFFLINE / np.median(most):.1f}×",
        f"{fewest:,.0f}",
    ]


def main() -> None:
    """Run the study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--dimension", type=int, default=0, help="leading directions; 0: all")
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/sample_size"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args()
    rows, spent = [], 0.0
    for share, gap in CELLS:
        jobs = [
            (share, gap, options.confidence, options.dimension, seed)
            for seed in range(options.runs)
        ]
        found = study(jobs, samples, out=options.out / "large.jsonl", workers=workers_of(options))
        runs = list(found.values())
        spent += sum(run["seconds"] for run in runs)
        rows.append(row(share, gap, runs, options.confidence, options.dimension))
    lines = [
        f"{stamp()} d = {builder(options.dimension).d:,}, batch {BATCH}, confidence "
        f"{options.confidence:.0%}; {spent / 60:.0f} processor minutes.",
        "",
        *table(COLUMNS, rows),
    ]
    print("\n".join(lines))
    record("samples-large", lines, page=options.page)


if __name__ == "__main__":
    main()
