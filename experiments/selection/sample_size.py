"""Samples to a certificate: ours against uniform allocation, the papers' bonus, and habit.

python -m experiments.selection.sample_size --runs 20

Uniform allocation has the same intervals and the same streams. The papers' bonus as an interval:
samples an arm until the bonuses of the best two, computed from their true norms, together fall
below the gap. Habit: 50,000 an arm. Runs are kept in OUT/sample_size.jsonl, and the same command
goes on where it was stopped. A whole study is recorded in docs/evidence/selection.md.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from experiments.record import record, stamp, table
from experiments.selection.floor import fewest_samples
from experiments.selection.scenarios import Scenario, savings
from experiments.selection.store import Run, add_workers, study, workers_of
from genbounds import select
from genbounds.select import Norms, fd_bonus
from genbounds.simulate import GaussianArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection.md"
POLICIES = ("uniform", "elimination", "lucb")
OFFLINE = 50_000


def samples(name: str, confidence: float, seed: int) -> Run:
    """Total samples of each policy on the same streams; None without a right certificate."""
    scenario = savings()[name]
    totals: Run = {}
    for policy in POLICIES:
        selection = select.run(
            scenario.arms,
            scenario.reference(np.random.default_rng(seed)),
            policy=policy,
            confidence=confidence,
            batch=50,
            limit=scenario.limit,
            seed=seed,
        )
        right = selection.certified and selection.best in scenario.right
        totals[policy] = selection.total_samples if right else None
    return totals


def front(scenario: Scenario) -> tuple[GaussianArm, GaussianArm, float]:
    """Return the best two arms by their true distance to N(0, I), and the gap between them."""

    def loss(arm: GaussianArm) -> float:
        values = np.diagonal(arm.cov) if arm.cov.ndim == 2 else arm.cov
        return float(arm.mean @ arm.mean + ((np.sqrt(values) - 1.0) ** 2).sum())

    best, second = sorted(scenario.arms.values(), key=loss)[:2]
    return best, second, loss(second) - loss(best)


def bonus_samples(scenario: Scenario, *, confidence: float, constants: str) -> float:
    """Return the samples an arm until M25's bonuses of the best two fall below their gap.

    The reference is N(0, I), known; norms and means are the true ones.
    """
    from scipy.optimize import brentq

    best, second, gap = front(scenario)

    def bonus(arm, n: float) -> float:
        cov = np.asarray(arm.cov)
        values = np.diagonal(cov) if cov.ndim == 2 else cov
        return fd_bonus(
            Norms(
                trace=float(values.sum()),
                trace_of_square=float((values**2).sum()),
                operator=float(values.max()),
            ),
            n=n,
            mean_gap=float(np.linalg.norm(arm.mean)),
            reference_trace_root=float(values.size),
            delta=1.0 - confidence,
            kappa=1.0 if constants == "practical" else math.sqrt(8.0 / 3.0),
            constants=constants,
        )

    return 10.0 ** brentq(
        lambda log_n: bonus(best, 10.0**log_n) + bonus(second, 10.0**log_n) - gap, 0.0, 30.0
    )


COLUMNS = (
    "scenario",
    "uniform: median",
    "elimination, share of uniform (95 % of runs)",
    "lucb, share of uniform (95 % of runs)",
    "50,000 an arm / lucb",
    "no method below, of the best two an arm",
    "bonus as interval, an arm: as tuned, as printed",
    "no right certificate",
)


def row(name: str, runs: list[Run], confidence: float) -> tuple[list[str], dict[str, np.ndarray]]:
    """One line of the table, and each policy's share of uniform allocation in every run."""
    scenario = savings()[name]
    best, second, gap = front(scenario)
    floor = fewest_samples(best, second, gap, confidence=confidence)
    totals = {
        policy: np.array([np.nan if run[policy] is None else run[policy] for run in runs])
        for policy in POLICIES
    }
    bonuses = ", ".join(
        f"{bonus_samples(scenario, confidence=confidence, constants=constants):.0e}"
        for constants in ("practical", "printed")
    )
    lost = sum(None in run.values() for run in runs)
    tail = [f"{floor:,.0f}" if floor > 0.0 else "–", bonuses, f"{lost} of {len(runs)}"]
    if lost == len(runs):
        return [name, "–", "–", "–", "–", *tail], {}
    shares = {policy: totals[policy] / totals["uniform"] for policy in POLICIES[1:]}
    cells = [
        f"{np.nanmedian(share):.0%} ({np.nanquantile(share, 0.025):.0%} – "
        f"{np.nanquantile(share, 0.975):.0%})"
        for share in shares.values()
    ]
    offline = OFFLINE * len(scenario.arms) / np.nanmedian(totals["lucb"])
    median = f"{np.nanmedian(totals['uniform']):,.0f}"
    return [name, median, *cells, f"{offline:.1f}×", *tail], shares


def verdict(shares: dict[str, dict[str, np.ndarray]]) -> list[str]:
    """Sentences about the medians of the scenarios and about the worst runs."""
    lines = []
    for policy in POLICIES[1:]:
        medians = {name: float(np.nanmedian(found[policy])) for name, found in shares.items()}
        above = {
            name: float(np.nanmax(found[policy]))
            for name, found in shares.items()
            if np.nanmax(found[policy]) > 1.1
        }
        text = ", ".join(f"{name} ({value:.0%})" for name, value in above.items())
        lines.append(
            f"{policy}: median over {len(medians)} scenarios "
            f"{np.median(list(medians.values())):.0%} of uniform, worst scenario "
            f"{max(medians.values()):.0%}; "
            + (f"runs above 110 % in {text}." if above else "no run above 110 %.")
        )
    return lines


def main() -> None:
    """Run the study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/sample_size"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args()
    rows, shares = [], {}
    for name in savings():
        if options.scenario not in name:
            continue
        jobs = [(name, options.confidence, seed) for seed in range(options.runs)]
        store = options.out / "sample_size.jsonl"
        runs = study(jobs, samples, out=store, workers=workers_of(options)).values()
        cells, found = row(name, list(runs), options.confidence)
        rows.append(cells)
        if found:
            shares[name] = found
        print(f"| {' | '.join(cells)} |", flush=True)
    lines = [f"{stamp()} {options.runs} runs a scenario.", "", *table(COLUMNS, rows)]
    if shares:
        lines += ["", *verdict(shares)]
    print("\n".join(lines))
    if not options.scenario:
        record("samples", lines, page=options.page)


if __name__ == "__main__":
    main()
