"""How often `gb.modes` names a kind of rows where there is none, and how often it finds one.

    python -m experiments.explain.modes [--runs 200] [--power 20] [--only 'null*'] [--record]

The tables of docs/evidence/modes.md. "Null": both samples have one distribution; the share of runs
with any claim must be at most 5 %. "Power": twenty kinds of rows of 5 % each, whose centres lie as
far apart as the rows of one kind; two are missing, one is doubled, one halved, one invented. A kind
counts as found if a region of the right direction shows mostly rows of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.record import exact_limits, record, recorded_rows, stamp, table

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "modes.md"
Rng = np.random.Generator
Rows = NDArray[np.float32]
KINDS = 20
MISSING, DOUBLED, HALVED, INVENTED = (0, 1), 2, 3, KINDS


def kinds(d: int, rng: Rng) -> Callable[[int, Rows], tuple[Rows, NDArray[np.intp]]]:
    """Return a function of a number of rows and shares of kinds that draws rows and their kinds."""
    spread = (1.0 + np.arange(d)) ** -0.5
    centres = spread * rng.standard_normal((KINDS + 1, d))

    def draw(n: int, shares: Rows) -> tuple[Rows, NDArray[np.intp]]:
        kind = rng.choice(KINDS + 1, n, p=shares / shares.sum())
        return (centres[kind] + spread * rng.standard_normal((n, d))).astype(np.float32), kind

    return draw


def shares(*, changed: bool) -> Rows:
    """Return the shares of all kinds in the real data, or in a model that changes five of them."""
    found = np.append(np.ones(KINDS), 0.0)
    if changed:
        found[[*MISSING]], found[DOUBLED], found[HALVED], found[INVENTED] = 0.0, 2.0, 0.5, 1.0
    return found


def mixture(n: int, d: int = 64) -> Callable[[Rng], tuple[gb.Sample, gb.Sample]]:
    """Two independent samples of the same twenty kinds."""

    def draw(rng: Rng) -> tuple[gb.Sample, gb.Sample]:
        rows = kinds(d, rng)
        return gb.Sample(rows(n, shares(changed=False))[0]), gb.Sample(
            rows(n, shares(changed=False))[0]
        )

    return draw


def heavy(rng: Rng) -> tuple[gb.Sample, gb.Sample]:
    """Student's t with two degrees of freedom: no variance."""
    return gb.Sample(rng.standard_t(2.0, (500, 64))), gb.Sample(rng.standard_t(2.0, (1500, 64)))


def grouped(*, told: bool) -> Callable[[Rng], tuple[gb.Sample, gb.Sample]]:
    """Four near copies of each row; half of the groups stand in both samples."""

    def draw(rng: Rng) -> tuple[gb.Sample, gb.Sample]:
        rows = kinds(64, rng)
        centre = rows(450, shares(changed=False))[0]
        found = []
        for first in (0, 150):
            group = np.repeat(np.arange(first, first + 300), 4)
            x = centre[group] + 0.05 * rng.standard_normal((group.size, 64))
            found.append(gb.Sample(x, groups=group if told else None))
        return found[0], found[1]

    return draw


def stratified(rng: Rng) -> tuple[gb.Sample, gb.Sample]:
    """25 rows of every kind, in both samples."""
    rows = kinds(64, rng)
    kind = np.repeat(np.arange(KINDS), 25)
    found = [
        np.concatenate([rows(25, np.eye(KINDS + 1)[k])[0] for k in range(KINDS)]) for _ in range(2)
    ]
    return gb.Sample(found[0], strata=kind), gb.Sample(found[1], strata=kind)


def digits(rng: Rng) -> tuple[gb.Sample, gb.Sample]:
    """Two disjoint halves of scikit-learn's digits, as pixels."""
    from sklearn.datasets import load_digits

    x = rng.permutation(load_digits().data)
    return gb.Sample(x[:898]), gb.Sample(x[898:])


NULLS: dict[str, Callable[[Rng], tuple[gb.Sample, gb.Sample]]] = {
    "null: 20 kinds, d = 64, n = 500": mixture(500),
    "null: 20 kinds, d = 64, n = 2,000": mixture(2000),
    "null: t with 2 degrees of freedom, n = 500 and 1,500": heavy,
    "null: digits, two halves of 898 and 899": digits,
    "null: 25 rows of every kind (strata)": stratified,
    "null: 300 groups of 4 near copies, half of them shared": grouped(told=True),
    "null: the same groups, not told": grouped(told=False),
}
POWERS = {f"power: d = {d}, n = {n:,}": (d, n) for d, n in ((64, 500), (64, 2000), (512, 10_000))}
NULL_COLUMNS = ("setting", "runs", "runs with any claim", "95 % interval of that")
POWER_COLUMNS = (
    "setting", "runs", "missing", "invented", "doubled", "halved", "other claims a run",
)  # fmt: skip


def null_row(name: str, runs: int) -> list[str]:
    """Count the runs in which anything is claimed."""
    wrong = 0
    for run in range(runs):
        fake, real = NULLS[name](np.random.default_rng([run, crc32(name.encode())]))
        wrong += bool(gb.modes(fake, real, seed=run).found)
    low, high = exact_limits(wrong, runs)
    return [name, str(runs), f"{wrong / runs:.3f}", f"{low:.3f} to {high:.3f}"]


def power_row(name: str, runs: int) -> list[str]:
    """Count which of the five changes are found."""
    d, n = POWERS[name]
    hits = {kind: 0 for kind in (*MISSING, INVENTED, DOUBLED, HALVED)}
    other = 0
    for run in range(runs):
        rng = np.random.default_rng([run, crc32(name.encode())])
        rows = kinds(d, rng)
        real, of_real = rows(n, shares(changed=False))
        fake, of_fake = rows(n, shares(changed=True))
        seen = set()
        for region in gb.modes(gb.Sample(fake), gb.Sample(real), seed=run).found:
            more = region.kind in ("over", "invented")
            labels = of_fake[[*region.rows["fake"]]] if more else of_real[[*region.rows["real"]]]
            counts = np.bincount(labels, minlength=KINDS + 1)
            kind = int(counts.argmax())
            right = kind in hits and more == (kind in (DOUBLED, INVENTED))
            if right and counts[kind] > counts.sum() / 2:
                seen.add(kind)
            else:
                other += 1
        for kind in seen:
            hits[kind] += 1
    missing = sum(hits[kind] for kind in MISSING) / (2 * runs)
    rates = [missing, *(hits[kind] / runs for kind in (INVENTED, DOUBLED, HALVED))]
    return [name, str(runs), *(f"{rate:.2f}" for rate in (*rates, other / runs))]


def main(argv: list[str] | None = None) -> int:
    """Print both tables, or record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="of every null setting")
    parser.add_argument("--power", type=int, default=20, help="runs of every power setting")
    parser.add_argument("--only", default="*", help="shell pattern of settings")
    parser.add_argument("--record", action="store_true", help="write docs/evidence/modes.md")
    options = parser.parse_args(argv)
    for title, names, columns, row, runs in (
        ("modes-null", NULLS, NULL_COLUMNS, null_row, options.runs),
        ("modes-power", POWERS, POWER_COLUMNS, power_row, options.power),
    ):
        known = recorded_rows(title, key=1, page=PAGE) if options.record else {}
        found = {}
        for name in names:
            if fnmatch(name, options.only):
                found[name] = row(name, runs)
                print(" | ".join(found[name]), flush=True)
            elif (name,) in known:
                found[name] = [cell.strip() for cell in known[name,].split("|")[1:-1]]
        if options.record and found:
            lines = ["", stamp(), "", *table(columns, list(found.values())), ""]
            record(title, lines, page=PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
