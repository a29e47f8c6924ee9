"""How often common rows are called a leak: rows that coincide by chance, and copied ones.

``python -m experiments.accuracy.coincidences`` takes some minutes and records its tables in
docs/evidence/sampling.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from experiments.record import crossed, percent, rate, record, stamp, write_data
from genbounds.core.close_rows import judge_common_rows
from genbounds.estimators import row_ids
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
SIZES = (200, 1000, 5000)
COPIED = (0.002, 0.01, 0.05)
Law = Callable[[np.random.Generator, int], Float]


def zipf(rng: np.random.Generator, n: int) -> Float:
    """Texts: a few are frequent; each has features of its own."""
    weights = np.cumsum(np.arange(1.0, 10**5 + 1) ** -1.1)
    texts = np.searchsorted(weights, rng.random(n) * weights[-1])
    return np.asarray(np.sin(np.outer(texts + 1.0, np.sqrt([2.0, 3.0, 5.0, 7.0]))))


LAWS: dict[str, Law] = {
    "Gaussian, d = 8": lambda rng, n: rng.standard_normal((n, 8)),
    "rounded to 0.01, d = 2": lambda rng, n: np.round(rng.standard_normal((n, 2)), 2),
    "Poisson(1) counts, d = 8": lambda rng, n: rng.poisson(1.0, (n, 8)) * 1.0,
    "one-hot of 10": lambda rng, n: np.eye(10)[rng.integers(10, size=n)],
    "one of 1,000 numbers": lambda rng, n: rng.integers(1000, size=(n, 1)) * 1.0,
    "one of n²/12 numbers": lambda rng, n: rng.integers(n * n // 12, size=(n, 1)) * 1.0,
    "fingerprints, 64 bits of 5 %": lambda rng, n: (rng.random((n, 64)) < 0.05) * 1.0,
    "sparse ReLU, d = 64": lambda rng, n: np.maximum(
        rng.standard_normal((n, 1)) + rng.standard_normal((n, 64)) - 3.5, 0.0
    ),
    "half zero rows, half Gaussian": lambda rng, n: (
        rng.standard_normal((n, 4)) * (rng.random((n, 1)) < 0.5)
    ),
    "texts: Zipf 1.1 of 100,000": zipf,
}


def judged(law: Law, n: int, copied: int, rng: np.random.Generator) -> str | None:
    """Judge the rows that two samples of one law have in common, so many of them copied."""
    x, y = law(rng, n), law(rng, n)
    x[:copied] = y[rng.choice(n, copied, replace=False)]
    return judge_common_rows(row_ids(x), row_ids(y), (x, y))[1]


def cell(name: str, n: int, copied: int, runs: int) -> list[str]:
    """Return the rates of both verdicts."""
    law = LAWS[name]
    seeds = [[run, n, copied, sorted(LAWS).index(name)] for run in range(runs)]
    found = [judged(law, n, copied, np.random.default_rng(seed)) for seed in seeds]
    return [rate(found.count(kind), runs) for kind in ("unreliable", "caution")]


def chance(runs: int) -> Iterator[list[str]]:
    """Judge samples of which no row is copied."""
    for name in LAWS:
        for n in SIZES:
            count = runs if n < SIZES[-1] else max(runs // 3, 1)
            yield [name, f"{n:,}", str(count), *cell(name, n, 0, count)]


def copies(runs: int) -> Iterator[list[str]]:
    """Judge samples of which some rows are copied."""
    for name in LAWS:
        for n in SIZES[1:]:
            for share in COPIED:
                yield [name, f"{n:,}", f"{share:.1%}", *cell(name, n, round(share * n), runs)]


COLUMNS = ("rows", "n = m", "copied", "runs", "called unreliable", "caution")


def shown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the page shows of these rows, by `COLUMNS`."""
    cells = {
        (name, f"{share} of {n}"): f"{percent(unreliable)} / {percent(caution)}"
        for name, n, share, _, unreliable, caution in rows
    }
    return [
        f"Percent of {rows[0][3]} pairs (100 and more) whose score is called unreliable / "
        "has a caution, by the share of rows copied from the other sample, of so many rows. "
        "[Numbers of runs and exact limits](data/coincidences.csv).",
        "",
        *crossed(cells, "rows"),
    ]


def main(argv: list[str] | None = None) -> int:
    """Record both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    few = max(options.runs // 3, 1)
    none, some = list(chance(options.runs)), list(copies(few))
    rows = [[name, n, "0.0%", count, *rates] for name, n, count, *rates in none]
    rows += [[name, n, share, str(few), *rates] for name, n, share, *rates in some]
    write_data("coincidences", COLUMNS, rows, page=options.page)
    record("coincidences", [stamp(), "", *shown(rows)], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
