"""How often equal rows are taken for copies: rows of discrete distributions, and copied ones.

``python -m experiments.accuracy.repeats`` takes a minute and prints its table: what `HALF_REPEATS`
(genbounds/core/checks.py) parts. The ratio is that of rows that repeat others in half of the
columns to those that do in all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from experiments.record import rate
from genbounds.core.checks import check_sample
from genbounds.validation import Float

SIZES = (400, 2000)


def correlated(rng: np.random.Generator, n: int, d: int, share: float) -> Float:
    """Draw normal rows with a common part."""
    common = np.sqrt(share) * rng.standard_normal((n, 1))
    return np.asarray(common + np.sqrt(1.0 - share) * rng.standard_normal((n, d)))


def scaffolds(rng: np.random.Generator, n: int) -> Float:
    """Draw fingerprints of 64 bits: those of one of 30 scaffolds, of which few bits change."""
    own = np.random.default_rng(1).random((30, 64)) < 0.1
    return np.asarray((own[rng.integers(30, size=n)] ^ (rng.random((n, 64)) < 0.01)) * 1.0)


DISCRETE: dict[str, Callable[[np.random.Generator, int], Float]] = {
    "counts of one rate": lambda rng, n: rng.poisson(rng.gamma(0.5, 1.0, (n, 1)), (n, 8)) * 1.0,
    "counts, rarer": lambda rng, n: rng.poisson(rng.gamma(0.3, 0.5, (n, 1)), (n, 16)) * 1.0,
    "answers of 1 to 5, share 0.5": lambda rng, n: np.clip(
        np.round(correlated(rng, n, 6, 0.5) + 3.0), 1.0, 5.0
    ),
    "answers, share 0.8": lambda rng, n: np.clip(
        np.round(correlated(rng, n, 10, 0.8) + 3.0), 1.0, 5.0
    ),
    "yes or no, share 0.7": lambda rng, n: (correlated(rng, n, 20, 0.7) > 1.0) * 1.0,
    "fingerprints of 30 scaffolds": scaffolds,
}
COPIED: dict[str, Callable[[np.random.Generator, int], Float]] = {
    "a tenth of Gaussian rows, d = 8": lambda rng, n: rng.standard_normal((n, 8)),
    "a tenth of rows rounded to 0.1, d = 8": lambda rng, n: np.round(
        rng.standard_normal((n, 8)), 1
    ),
}


def repeats(x: Float) -> int:
    """Count the rows that repeat others."""
    return len(x) - len(np.unique(x, axis=0))


def half_repeats(x: Float, rng: np.random.Generator) -> int:
    """Count those that do in half of the columns that vary: fewer of two random halves."""
    varied = rng.permutation(np.flatnonzero((x != x[0]).any(axis=0)))
    return min(repeats(x[:, half]) for half in np.array_split(varied, 2))


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args(argv).runs
    print("rows | n | taken for copies | ratio, 5 % to 95 %")
    for name, law in (DISCRETE | COPIED).items():
        for n in SIZES:
            taken, ratios = 0, []
            for run in range(runs):
                rng = np.random.default_rng([run, n])
                x = law(rng, n)
                if name in COPIED:
                    x[: n // 10] = x[n // 10 : 2 * (n // 10)]
                taken += check_sample("x", x).findings.repeated > 0
                if repeats(x):
                    ratios.append(half_repeats(x, rng) / repeats(x))
            low, high = np.quantile(ratios, (0.05, 0.95)) if ratios else (np.nan, np.nan)
            print(f"{name} | {n:,} | {rate(taken, runs)} | {low:.2f} to {high:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
