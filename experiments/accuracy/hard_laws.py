"""Distributions made to break the Fréchet distance: whether results that cover too rarely say so.

    python -m experiments.accuracy.hard_laws [--replications 200] [--jobs 2]

Every distribution is a pool of rows drawn with replacement, so that its moments are known whatever
its tails. The table in docs/evidence/accuracy.md gives the coverage of the results that are
not called unreliable.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.accuracy.laws import Float, Law, pooled_law
from experiments.record import record, stamp

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "accuracy.md"
FEATURES = 48
POOL = 20_000
SIZES = ((24, None), (48, None), (96, None), (192, None), (384, None), (48, 48), (96, 96))
FLAGGED = 0.9
"""Share of flagged results from which the others are too few to be counted."""

SCALES = np.arange(1.0, FEATURES + 1.0) ** -0.5

Rows = Callable[[np.random.Generator, float], Float]
"""Pool of one side, from a random generator and what tells the two sides apart."""


def normal(rng: np.random.Generator, width: int = FEATURES) -> Float:
    return rng.standard_normal((POOL, width))


def rare(rng: np.random.Generator, share: float) -> Float:
    """Exponential features that are 0 in most rows."""
    return (rng.random((POOL, FEATURES)) < share) * rng.exponential(size=(POOL, FEATURES))


def student(rng: np.random.Generator, scale: float) -> Float:
    radii = np.sqrt(rng.chisquare(3, (POOL, 1)) / 3.0)
    return scale * normal(rng) * SCALES / radii


def far_rows(rng: np.random.Generator, share: float) -> Float:
    """Gaussian rows, a few of them moved far away."""
    return normal(rng) * SCALES + 24.0 * (rng.random((POOL, 1)) < share) / np.sqrt(FEATURES)


def repeats(rng: np.random.Generator, count: float) -> Float:
    """`count` different rows, each drawn many times; all different if it is infinite."""
    if np.isinf(count):
        return normal(rng) * SCALES
    return (normal(rng) * SCALES)[: int(count)][rng.integers(int(count), size=POOL)]


def three_clusters(rng: np.random.Generator, width: float) -> Float:
    centres = 3.0 * np.random.default_rng(1).standard_normal((3, FEATURES))
    return centres[rng.integers(3, size=POOL)] + width * normal(rng) * SCALES


def row_scales(rng: np.random.Generator, spread: float) -> Float:
    return normal(rng) * SCALES * np.exp(spread * rng.standard_normal((POOL, 1)))


def log_normal(rng: np.random.Generator, scale: float) -> Float:
    return np.exp(0.8 * scale * normal(rng))


def one_giant(rng: np.random.Generator, size: float) -> Float:
    return normal(rng) + size * rng.standard_normal((POOL, 1))


def cliff(rng: np.random.Generator, scale: float) -> Float:
    """Six directions a thousand times as wide as the others."""
    return scale * normal(rng) * np.where(np.arange(FEATURES) < 6, 1.0, 1e-3)


def low_rank(rng: np.random.Generator, scale: float) -> Float:
    directions = np.random.default_rng(2).standard_normal((5, FEATURES))
    return scale * normal(rng, 5) @ directions + 1e-3 * normal(rng)


def half_of_the_space(rng: np.random.Generator, first: float) -> Float:
    """28 features from `first` on vary, the others are constant."""
    at = np.arange(FEATURES) - first
    return normal(rng) * ((at >= 0) & (at < 28))


def one_hot(rng: np.random.Generator, steepness: float) -> Float:
    shares = SCALES**steepness
    return np.eye(FEATURES)[rng.choice(FEATURES, size=POOL, p=shares / shares.sum())]


def counts(rng: np.random.Generator, mean: float) -> Float:
    return rng.poisson(mean * SCALES, (POOL, FEATURES)).astype(float)


def thresholded(rng: np.random.Generator, scale: float) -> Float:
    """Rectified features of 16 hidden variables."""
    hidden = np.random.default_rng(3).standard_normal((16, FEATURES))
    return np.maximum(scale * normal(rng, 16) @ hidden - 1.0, 0.0)


def signs(rng: np.random.Generator, power: float) -> Float:
    """Gaussian rows, or with power 0 their signs."""
    rows = normal(rng)
    return np.sign(rows) * np.abs(rows) ** power


LAWS: dict[str, tuple[Rows, float, float]] = {
    "features not 0 in 1 row of 10, of 8": (rare, 0.1, 0.13),
    "features not 0 in 1 row of 100, of 67": (rare, 0.01, 0.015),
    "t, 3 degrees": (student, 1.0, 1.3),
    "lognormal": (log_normal, 1.0, 1.1),
    "log-normal row scales": (row_scales, 0.6, 0.3),
    "1 row of 100 far away": (far_rows, 0.01, 0.0),
    "20 rows, repeated": (repeats, 20.0, np.inf),
    "200 rows, repeated": (repeats, 200.0, np.inf),
    "three clusters": (three_clusters, 0.3, 0.5),
    "one giant direction": (one_giant, 3.0, 2.0),
    "six directions, the rest 1e-3": (cliff, 1.0, 1.3),
    "rank five and noise": (low_rank, 1.0, 1.2),
    "overlapping subspaces": (half_of_the_space, 0.0, 20.0),
    "one-hot": (one_hot, 1.0, 2.0),
    "counts": (counts, 3.0, 2.5),
    "rectified, 16 hidden": (thresholded, 1.0, 1.2),
    "signs": (signs, 0.0, 1.0),
}
"""How to draw a pool, and what tells the generated side from the reference."""


def make_hard_law(name: str) -> Law:
    """Distribution of that name; the pools are the same at every call."""
    rows, fake, real = LAWS[name]
    rng = np.random.default_rng([0, list(LAWS).index(name)])
    return pooled_law(rows(rng, fake), rows(rng, real))


def measure(name: str, n: int, m: int | None, *, replications: int, seed: int) -> str:
    """Return one cell: how often the intervals that are not doubted cover."""
    law = make_hard_law(name)
    covered = doubted = 0
    for stream in np.random.SeedSequence([seed, n, m or 0]).spawn(replications):
        rng = np.random.default_rng(stream)
        fake = law.draw(n, rng)
        real = law.reference(m, rng)
        with threadpool_limits(1):
            score = gb.frechet_distance(fake, real)
        if score.reliable:
            covered += score.low <= law.truth <= score.high
        else:
            doubted += 1
    if doubted > FLAGGED * replications:
        return f"{doubted / replications:.1%} flagged"
    cell = f"{covered / (replications - doubted):.0%}"
    return cell + (f", {doubted / replications:.1%} flagged" if doubted else "")


def main(argv: list[str] | None = None) -> int:
    """Run every distribution at every size and rewrite the table."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.hard_laws", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    cells = Parallel(n_jobs=options.jobs)(
        delayed(measure)(name, n, m, replications=options.replications, seed=options.seed)
        for name in LAWS
        for n, m in SIZES
    )
    heads = [f"{n} / {m}" if m else f"{n}" for n, m in SIZES]
    lines = [
        f"Seed {options.seed}, {options.replications} replications a cell. {stamp()}",
        "",
        "| distribution | distance | " + " | ".join(heads) + " |",
        "|---" * (2 + len(heads)) + "|",
    ]
    for k, name in enumerate(LAWS):
        row = cells[k * len(SIZES) : (k + 1) * len(SIZES)]
        lines.append(f"| {name} | {make_hard_law(name).truth:.3g} | " + " | ".join(row) + " |")
    record("hard-laws", lines, page=PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
