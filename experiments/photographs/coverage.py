"""Distances of trained features: whether intervals are right, and what is flagged wrong.

``python -m experiments.photographs.coverage DIR`` reads the pool of `experiments.photographs.pool`
and prints a line for each damage and number of crops: bias in standard deviations of the plug-in
value, coverage of 95 % intervals with exact limits, how many are called unreliable and why. Crops
are drawn from the pool without replacement. The truth is the debiased distance of all damaged crops
to the moments of all real ones; the first principal components of the real ones are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import LIMITS, rate, record, stamp, write_data
from genbounds.validation import Float

RATIOS = (0.5, 1.0, 2.0, 4.0)


def projected(folder: Path, damage: str, d: int) -> tuple[Float, Float]:
    """Return damaged and real crops in the first `d` principal components of the real ones."""
    real, fake = (np.load(folder / f"{name}.npy").astype(float) for name in ("real", damage))
    if d == real.shape[1]:
        return fake, real
    axes = np.linalg.eigh(np.cov(real.T))[1][:, -d:]
    return fake @ axes, real @ axes


def measured(fake: Float, real: Float, n: int, m: int | None, runs: int) -> list[str]:
    """Score samples of n rows against m real ones; None: against the moments of all."""
    exact = gb.Moments(real.mean(axis=0), np.cov(real.T))
    truth = gb.frechet_distance(fake, exact).value
    scores, plain, codes = [], [], Counter[str]()
    for run in range(runs):
        rng = np.random.default_rng([run, n])
        x = fake[rng.choice(len(fake), n, replace=False)]
        y = exact if m is None else real[rng.choice(len(real), m, replace=False)]
        scores.append(gb.frechet_distance(x, y))
        plain.append(gb.frechet_distance(x, y, estimator="plugin").value)
        codes.update({w.code for w in scores[-1].warnings if w.severity == "unreliable"})
    values = [score.value for score in scores]
    return [
        f"{truth:.3g}",
        f"{np.mean(values):.3g}",
        f"{(np.mean(values) - truth) / np.std(plain):+.2f}",
        rate(sum(score.low <= truth <= score.high for score in scores), runs),
        ", ".join(f"{code} {count / runs:.0%}" for code, count in codes.most_common()),
    ]


COLUMNS = (
    "damage", "crops per dimension", "true", "debiased", "error / sd of plug-in", "covered",
    "unreliable",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Print the table, or record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--damage", action="append")
    parser.add_argument("--ratio", type=float, action="append", help="crops per dimension")
    parser.add_argument("--reference", type=int, help="real crops; by default the moments of all")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--record", action="store_true", help="write the table to the page")
    given = parser.parse_args(argv)
    if not (given.folder / "real.npy").exists():
        print("skipped: experiments.photographs.pool makes this folder", file=sys.stderr)
        return 0
    rows = []
    for damage in given.damage or ("jpeg30", "half"):
        fake, real = projected(given.folder, damage, given.dimensions)
        for ratio in given.ratio or RATIOS:
            n = round(ratio * given.dimensions)
            found = measured(fake, real, n, given.reference, given.runs)
            rows.append([damage, f"{ratio:g}", *found])
            print(*rows[-1], sep=" | ", flush=True)
    if given.record:
        write_data("photographs", COLUMNS, rows)
        said = "; ".join(
            f"{row[0]} {row[3]} for {row[2]}, covered {LIMITS.sub('', row[5])}"
            for row in rows
            if row[1] == "1"
        )
        head = f"{stamp()} {given.dimensions} components, {given.runs} runs a line. At one crop per"
        record("photographs", [f"{head} dimension {said} ([all](data/photographs.csv))."])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
