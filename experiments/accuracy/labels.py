"""How often groups and strata are called unrelated to their rows: true ids, and shuffled ones.

``python -m experiments.accuracy.labels`` takes some minutes and records its table in
docs/evidence/sampling.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.accuracy.sampling import digit_images, photographs
from experiments.record import crossed, exact_limits, first, record, stamp, write_data
from genbounds.core.checks import check_sample
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
Labelled = tuple[Float, str, Any]
"""Rows, whether their ids are "groups" or "strata", and the ids."""


def made(n: int, d: int, size: int, share: float, *, tails: float = np.inf) -> Callable[..., Any]:
    """Rows with a common part in each group; with `tails` degrees of freedom, of all features."""

    def draw(rng: np.random.Generator) -> Labelled:
        ids = np.arange(n) // size
        x = np.sqrt(share) * rng.normal(size=(ids[-1] + 1, d))[ids]
        x += np.sqrt(1.0 - share) * rng.normal(size=(n, d))
        if np.isfinite(tails):
            x /= np.sqrt(rng.chisquare(tails, size=(n, 1)) / tails)
        return x, "groups", ids

    return draw


def digits(rng: np.random.Generator) -> Labelled:
    """Handwritten digits by class, 30 of each."""
    from sklearn.datasets import load_digits

    classes = load_digits().target
    rows = np.concatenate([rng.choice(np.flatnonzero(classes == k), 30) for k in range(10)])
    return digit_images()[rows] + 0.1 * rng.normal(size=(rows.size, 64)), "strata", classes[rows]


def neighbours(rng: np.random.Generator) -> Labelled:
    """Patches of photographs, four of each place: they overlap in part."""
    found, ids = [], np.repeat(np.arange(125), 4)
    for _ in range(125):
        windows = photographs()[rng.integers(2)]
        i, j = (rng.integers(8, size - 8) for size in windows.shape[:2])
        found += [windows[i + a, j + b].ravel() for a, b in rng.integers(-6, 7, size=(4, 2))]
    return np.array(found), "groups", ids


CELLS: dict[str, Callable[[np.random.Generator], Labelled]] = {
    **{
        f"{n} rows, d = {d}, groups of {size}, common share {share:g}": made(n, d, size, share)
        for n, d in ((500, 64), (500, 16), (200, 64), (200, 8))
        for size in (2, 4, 25)
        for share in (0.05, 0.2)
    },
    "500 rows, d = 64, groups of 4, common share 0.2, t with 2 degrees": made(
        500, 64, 4, 0.2, tails=2.0
    ),
    "300 digits by class": digits,
    "500 patches of photographs, four of each place": neighbours,
}


def unrelated(x: Float, kind: str, ids: Any) -> bool:
    """Whether such labels are named."""
    found = check_sample("x", gb.Sample(x, **{kind: ids})).warnings
    return any(warning.code == "unrelated-labels" for warning in found)


def rows(runs: int) -> Iterator[list[str]]:
    """One row a cell: true ids that are named, shuffled ones that are not."""
    for number, (label, draw) in enumerate(CELLS.items()):
        named, missed = 0, 0
        for run in range(runs):
            rng = np.random.default_rng([run, number])
            x, kind, ids = draw(rng)
            named += unrelated(x, kind, ids)
            missed += not unrelated(x, kind, rng.permutation(ids))
        cells = []
        for count in (named, missed):
            low, high = exact_limits(count, runs)
            cells.append(f"{count} ({low:.1%} – {high:.1%})")
        yield [label, *cells]


def shown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the page shows: a column for each share of the variance in common."""
    cells = {}
    for label, named, missed in rows:
        name, _, share = label.partition(", common share ")
        column = f"share {share}" if share else "of their own"
        cells[name, column] = f"{first(named)} / {first(missed)}"
    return crossed(cells, "rows and their ids")


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    heads = ("rows and their ids", "true ids, named", "shuffled ids, not named")
    every = list(rows(options.runs))
    write_data("labels", heads, every, page=options.page)
    head = (
        f"{stamp()} Of {options.runs} runs: true ids that are named / shuffled ones that are not. "
        "[Exact limits](data/labels.csv)."
    )
    record("labels", [head, "", *shown(every)], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
