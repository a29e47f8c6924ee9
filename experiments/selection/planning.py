"""Planned numbers of samples against those that runs then draw.

python -m experiments.selection.planning [--runs 200] [--cells '*d=64*']

In every replication a reference and pilots are drawn, `select.plan` says how many samples it takes,
and `select.run` draws others until it stops. Runs are kept in OUT/planning.jsonl, and the same
command goes on where it was stopped. Rewrites the rows that were asked for of the table in
docs/evidence/selection_plan.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.record import rate, record, recorded_rows, stamp, table
from experiments.selection.scenarios import graded, sampled, shifted, standard
from experiments.selection.store import Run, add_workers, study, workers_of
from genbounds import select
from genbounds.simulate import GaussianArm, StudentArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection_plan.md"
SECTION = "planned"
POWER = 0.8
COLUMNS = (
    "models",
    "pilots",
    "runs",
    "median planned, median drawn",
    "drawn / median planned: median",
    "drawn up to the median",
    "certified within the budget",
    "certified",
    "planned",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Models, their reference, and how many samples there are of each in a pilot."""

    arms: dict[str, Any]
    reference: Callable[[np.random.Generator], Any]
    pilot: int
    limit: int = 20_000
    metric: str = "fd"


def scaled(d: int, scales: list[float]) -> dict[str, GaussianArm]:
    """Gaussian arms with a spectrum 1/j times the square of a scale."""
    spectrum = 1.0 / np.arange(1, d + 1)
    return {f"a{i}": GaussianArm(np.zeros(d), s**2 * spectrum) for i, s in enumerate(scales)}


def sampled_like(d: int, m: int) -> Callable[[np.random.Generator], np.ndarray]:
    """M rows with the spectrum 1/j, drawn anew in every run."""
    return lambda rng: rng.standard_normal((m, d)) * np.arange(1, d + 1) ** -0.5


def cells() -> dict[str, Cell]:
    """Return all studies by what stands in the table."""
    heavy = shifted(StudentArm, 8, [0.5, 0.65, 0.8], df=8.0)
    return {
        "3, graded by 50 %, d=8": Cell(arms=graded(3, 0.5), reference=standard(8), pilot=300),
        "5, graded by 50 %, d=8": Cell(arms=graded(5, 0.5), reference=standard(8), pilot=300),
        "3, graded by 20 %, d=8": Cell(arms=graded(3, 0.2), reference=standard(8), pilot=300),
        "3, graded by 100 %, sampled reference m=4,000, d=8": Cell(
            arms=graded(3, 1.0), reference=sampled(8, 4_000), pilot=300
        ),
        "3, Student t8, d=8": Cell(arms=heavy, reference=standard(8), pilot=300),
        "3, graded by 200 %, KID, m=2,000, d=8": Cell(
            arms=graded(3, 2.0), reference=sampled(8, 2_000), pilot=300, limit=2_000, metric="kid"
        ),
        "3, 1.2 to 1.3 times as wide, m=2,000, d=64": Cell(
            arms=scaled(64, [1.2, 1.25, 1.3]), reference=sampled_like(64, 2_000), pilot=512
        ),
        "the same, short pilots": Cell(
            arms=scaled(64, [1.2, 1.25, 1.3]), reference=sampled_like(64, 2_000), pilot=100
        ),
    }


def replicate(name: str, seed: int) -> Run:
    """Plan from pilots, then run with other samples."""
    cell = cells()[name]
    rng = np.random.default_rng([seed, 77])
    start = time.process_time()
    reference = cell.reference(rng)
    pilots = {arm: source.draw(cell.pilot, rng) for arm, source in cell.arms.items()}
    plan = select.plan(pilots, reference, cell.metric, power=POWER, limit=cell.limit, seed=seed)
    found = select.run(
        cell.arms, reference, metric=cell.metric, batch=25, limit=cell.limit, seed=seed
    )
    return {
        "median": plan.median,
        "budget": plan.budget,
        "planned": plan.certified,
        "certified": found.certified,
        "drawn": found.total_samples,
        "seconds": time.process_time() - start,
    }


def share(hits: list[bool]) -> str:
    """Return a share with its exact interval."""
    return rate(sum(hits), len(hits), share=".0%", limits=".0%")


def middle(values: list[float]) -> str:
    """Return a median with its exact interval, from the order of the values."""
    ordered, n = np.sort(values), len(values)
    k = int(stats.binom.ppf(0.025, n, 0.5))
    low, high = ordered[max(k - 1, 0)], ordered[min(n - k, n - 1)]
    return f"{np.median(ordered):.2f} ({low:.2f} – {high:.2f})"


def row(name: str, runs: list[Run]) -> list[str]:
    """One line of the table. An open run counts as one that never ends."""
    drawn = [run["drawn"] if run["certified"] else np.inf for run in runs]
    median, budget = (
        [np.inf if run[key] is None else run[key] for run in runs] for key in ("median", "budget")
    )
    ratios = [
        1.0 if np.isinf(d) and np.isinf(m) else d / m for d, m in zip(drawn, median, strict=True)
    ]
    # Where a plan has no budget there is nothing to keep within.
    kept = [bool(d <= b) for d, b in zip(drawn, budget, strict=True) if np.isfinite(b)]
    below = [bool(d <= m) for d, m in zip(drawn, median, strict=True) if np.isfinite(m)]
    return [
        name,
        f"{cells()[name].pilot:,}",
        str(len(runs)),
        f"{np.median(median):,.0f}, {np.median(drawn):,.0f}",
        middle(ratios),
        share(below),
        share(kept) if kept else "–",
        share([run["certified"] for run in runs]),
        f"{np.mean([run['planned'] for run in runs]):.0%}",
    ]


def main() -> None:
    """Run the study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--cells", default="*", help="pattern of the names of those to run")
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/planning"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args()
    rows = recorded_rows(SECTION, key=1, page=options.page)
    for name in cells():
        if fnmatch(name, options.cells):
            jobs = [(name, seed) for seed in range(options.runs)]
            out = options.out / "planning.jsonl"
            runs = list(study(jobs, replicate, out=out, workers=workers_of(options)).values())
            cost = sum(run["seconds"] for run in runs)
            rows[(name,)] = f"| {' | '.join(row(name, runs))} |"
            print(rows[(name,)], f"{cost:.0f} s", flush=True)
    kept = [rows[(name,)] for name in cells() if (name,) in rows]
    record(SECTION, [stamp(), "", *table(COLUMNS, []), *kept], page=options.page)


if __name__ == "__main__":
    main()
