"""Error of every Fréchet estimator against an oracle's: docs/evidence/accuracy.md.

    python -m experiments.accuracy.error [--cells 'gauss 64*' …] [--effort 1] [--jobs 2]

One call of the public functions a sample, no hint from the caller. sd* is the standard deviation of
the plug-in over the repeats: the error of an oracle that knows its bias. A finished cell is kept in
``out/accuracy/error`` and not run again; rows of the page that were not asked for stay as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.accuracy.laws import Law, make_law
from experiments.record import crossed, exact_limits, read_data, record, table, write_data
from genbounds.estimators import frechet_infinity
from genbounds.files import atomic_write

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "accuracy.md"
KEPT = Path("out/accuracy/error")
SHARES = (0.25, 0.5, 1.0, 1.25, 2.0, 4.0, 8.0)
SMALL = ("gauss", "gamma", "t8", "scales", "rectified", "ten", "network", "digits")
LARGE = ("gauss", "gamma", "t8", "scales")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One row of the table; `m` reference rows, or its exact moments if None."""

    arm: str
    d: int
    n: int
    m: int | None = None

    @property
    def name(self) -> str:
        """What `--cells` matches."""
        return f"{self.arm} {self.d}x{self.n}" + (f" reference {self.m}" if self.m else "")

    @property
    def repeats(self) -> int:
        """Fewer where one costs more."""
        return int(np.clip(8.0e10 / (self.d**2 * (self.d + self.n + (self.m or 0))), 64, 400))


def cells() -> Iterator[Cell]:
    """Yield the rows of the whole table."""
    for d in (64, 128, 256):
        for arm in SMALL:
            for share in SHARES[2 if d == 64 else 1 :]:
                yield Cell(arm=arm, d=d, n=round(share * d))
        for arm in ("gauss", "gamma", "t8", "rectified"):
            for share in (1.25, 4.0):
                yield Cell(arm=arm, d=d, n=round(share * d), m=8 * d)
        for arm in ("same", "near"):
            for share in (1.25, 4.0, 8.0):
                yield Cell(arm=arm, d=d, n=round(share * d))
    for arm in (*SMALL, "same"):
        for share in (0.5, 1.0, 2.0, 5.0):
            yield Cell(arm=arm, d=128, n=round(share * 128), m=round(share * 128))
    for arm in ("gauss", "t8", "digits"):
        for share in (0.5, 1.0, 2.0):
            yield Cell(arm=arm, d=512, n=round(share * 512), m=round(share * 512))
    for n in (500, 1000):
        yield Cell(arm="gauss", d=2048, n=n, m=n)
    for arm in (*LARGE, "digits", "network"):
        for share in SHARES:
            yield Cell(arm=arm, d=512, n=round(share * 512))
    for arm in LARGE:
        for share in (0.25, 0.5, 1.25, 2.0):
            yield Cell(arm=arm, d=1024, n=round(share * 1024))
        for n in (500, 1000):
            yield Cell(arm=arm, d=2048, n=n)
        yield Cell(arm=arm, d=512, n=256, m=4096)


def one(law: Law, cell: Cell, stream: np.random.SeedSequence, *, infinity: bool) -> dict[str, Any]:
    """Score one sample in all ways."""
    rng = np.random.default_rng(stream)
    fake, real = law.draw(cell.n, rng), law.reference(cell.m, rng)
    with threadpool_limits(1):
        score = gb.frechet_distance(fake, real)
        plugin = gb.estimators.FrechetReference(real).plugin(fake)
        line = frechet_infinity(fake, real).value if infinity else None
    return {
        "plugin": plugin,
        "value": score.value,
        "stderr": score.stderr,
        "low": score.low,
        "high": score.high,
        "infinity": line,
        "method": score.method,
        "flagged": not score.reliable,
    }


def measure(cell: Cell, *, repeats: int, seed: int, jobs: int) -> dict[str, Any]:
    """Run one cell."""
    law = make_law(cell.arm, cell.d)
    streams = np.random.SeedSequence([seed, cell.d, cell.n, cell.m or 0]).spawn(repeats)
    runs = Parallel(n_jobs=jobs, mmap_mode="r")(
        delayed(one)(law, cell, stream, infinity=cell.d <= 256 and cell.n >= cell.d)
        for stream in streams
    )
    return {**asdict(cell), "truth": law.truth, "seed": seed, "runs": runs}


def size(n: int, m: int | None) -> str:
    """Name the numbers of rows of both sides."""
    return f"{n} / {m}" if m else f"{n}"


COLUMNS = (
    "distribution", "d", "n / m", "truth", "bias of plug-in", "sd*", "bias", "RMSE", "RMSE / sd*",
    "FD∞'s RMSE / RMSE", "mean stderr", "covered (95 % limits)", "flagged", "method", "repeats",
)  # fmt: skip


def row(result: dict[str, Any]) -> list[str]:
    """One line of the whole table, by `COLUMNS`."""
    truth, runs = result["truth"], result["runs"]
    plugin, value, stderr = (
        np.array([run[key] for run in runs]) for key in ("plugin", "value", "stderr")
    )
    spread = float(plugin.std(ddof=1))
    rmse = float(np.sqrt(((value - truth) ** 2).mean()))
    covered = sum(run["low"] <= truth <= run["high"] for run in runs)
    low, high = exact_limits(covered, len(runs))
    lines = [run["infinity"] for run in runs if run["infinity"] is not None]
    published = f"{np.sqrt(((np.array(lines) - truth) ** 2).mean()) / rmse:.1f}" if lines else ""
    flagged = np.mean([run["flagged"] for run in runs])
    return [
        result["arm"],
        str(result["d"]),
        size(result["n"], result["m"]),
        f"{truth:.3g}",
        f"{plugin.mean() - truth:+.3g}",
        f"{spread:.3g}",
        f"{value.mean() - truth:+.2g}",
        f"{rmse:.3g}",
        f"{rmse / spread:.2f}",
        published,
        f"{np.sqrt((stderr**2).mean()):.3g}",
        f"{covered / len(runs):.1%} ({low:.0%}–{high:.0%})",
        f"{flagged:.0%}",
        ", ".join(sorted({run["method"] for run in runs})),
        str(len(runs)),
    ]


def page(rows: list[list[str]]) -> list[str]:
    """Return what the page shows: error and coverage by size, and the largest cells in full."""
    cells = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    shown = {
        (f"{cell['d']}; {cell['n / m']}", cell["distribution"]): (
            f"{cell['RMSE / sd*']}, {covered(cell):.0f} %" + ("*" if flagged(cell) >= 50.0 else "")
        )
        for cell in sorted(cells, key=by_size)
    }
    largest = [cell for cell in cells if cell["d"] == "2048"]
    picked = (*COLUMNS[:8], "covered (95 % limits)", "repeats")
    ratios = [
        float(cell["FD∞'s RMSE / RMSE"] or "nan")
        for cell in cells
        if cell["distribution"] != "same"
    ]
    ratios = [ratio for ratio in ratios if np.isfinite(ratio)]
    return [
        "RMSE / sd*, and the share of the 95 % intervals that hold the truth; an asterisk: at "
        "least half of the results are called unreliable. [Every column](data/error.csv).",
        "",
        *crossed(shown, "d; n / m"),
        "",
        "The largest cells:",
        "",
        *table(picked, [[cell[name] for name in picked] for cell in largest]),
        "",
        f"The RMSE of FD∞ over that of the default, where the truth is not 0: median "
        f"{np.median(ratios):.1f}, from {min(ratios):.1f} to {max(ratios):.1f} in {len(ratios)} "
        "cells.",
    ]


def covered(cell: dict[str, str]) -> float:
    """Return the coverage of a cell, in percent."""
    return float(cell["covered (95 % limits)"].partition("%")[0])


def flagged(cell: dict[str, str]) -> float:
    """Return the share of results that are called unreliable, in percent."""
    return float(cell["flagged"].removesuffix("%"))


def by_size(cell: dict[str, str]) -> tuple[bool, int, int, int]:
    """Sort by dimension and rows, known references first."""
    n, _, m = cell["n / m"].partition(" / ")
    return bool(m), int(cell["d"]), int(n), int(m or 0)


def main(argv: list[str] | None = None) -> int:
    """Run the cells that are not there yet and rewrite the table."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.error", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--cells", nargs="*", default=["*"], help="shell patterns of cell names")
    parser.add_argument("--effort", type=float, default=1.0, help="multiplies the repeats")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    KEPT.mkdir(parents=True, exist_ok=True)
    for cell in cells():
        path = KEPT / f"{cell.name.replace(' ', '-')}.json"
        if path.exists() or not any(fnmatch(cell.name, pattern) for pattern in options.cells):
            continue
        repeats = max(4, round(cell.repeats * options.effort))
        result = measure(cell, repeats=repeats, seed=options.seed, jobs=options.jobs)
        atomic_write(path, json.dumps(result))
        print(" | ".join(row(result)), flush=True)
    before = {tuple(known[:3]): known for known in read_data("error", page=PAGE)}
    rows = []
    for cell in cells():
        path = KEPT / f"{cell.name.replace(' ', '-')}.json"
        key = (cell.arm, str(cell.d), size(cell.n, cell.m))
        if path.exists():
            rows.append(row(json.loads(path.read_text())))
        elif key in before:
            rows.append(before[key])
    write_data("error", COLUMNS, rows, page=PAGE)
    record("error", [f"Seed {options.seed}.", "", *page(rows)], page=PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
