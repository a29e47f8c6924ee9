"""Samples to a certificate: ours against uniform allocation, the papers' bonus, and habit.

python -m experiments.selection.sample_size --runs 20

Uniform allocation has the same intervals and the same streams. The papers' bonus as an interval:
samples an arm until the bonuses of the best two, computed from their true norms, together fall
below the gap. Habit: 50,000 an arm. Runs are kept in OUT/sample_size.jsonl, and the same command
goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from experiments.selection.scenarios import Scenario, savings
from experiments.selection.store import Run, study
from genbounds import select
from genbounds.select import Norms, fd_bonus

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


def bonus_samples(scenario: Scenario, *, confidence: float, constants: str) -> float:
    """Return the samples an arm until M25's bonuses of the best two fall below their gap.

    The reference is N(0, I), known; norms and means are the true ones.
    """
    from scipy.optimize import brentq

    def loss(arm) -> float:
        mean, cov = np.asarray(arm.mean), np.asarray(arm.cov)
        values = np.diagonal(cov) if cov.ndim == 2 else cov
        return float(mean @ mean + ((np.sqrt(values) - 1.0) ** 2).sum())

    best, second = sorted(scenario.arms.values(), key=loss)[:2]
    gap = loss(second) - loss(best)

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


def main() -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/sample_size"))
    options = parser.parse_args()
    print(
        "| scenario | uniform: median | elimination / uniform (95 % of runs) "
        "| lucb / uniform (95 % of runs) | 50,000 an arm / lucb | bonus as interval, an arm: as "
        "tuned, as printed | no right certificate |"
    )
    print("|---|---|---|---|---|---|---|")
    medians = {}
    for name, scenario in savings().items():
        if options.scenario not in name:
            continue
        jobs = [(name, options.confidence, seed) for seed in range(options.runs)]
        store = options.out / "sample_size.jsonl"
        runs = study(jobs, samples, out=store, workers=options.jobs).values()
        totals = {
            policy: np.array([np.nan if run[policy] is None else run[policy] for run in runs])
            for policy in POLICIES
        }
        lost = sum(None in run.values() for run in runs)
        bonuses = ", ".join(
            f"{bonus_samples(scenario, confidence=options.confidence, constants=constants):.0e}"
            for constants in ("practical", "printed")
        )
        if lost == options.runs:
            print(f"| {name} | – | – | – | – | {bonuses} | {lost} of {options.runs} |", flush=True)
            continue
        ratios = {policy: totals[policy] / totals["uniform"] for policy in POLICIES[1:]}
        medians[name] = {policy: np.nanmedian(ratio) for policy, ratio in ratios.items()}
        cells = [
            f"{np.nanmedian(ratio):.0%} ({np.nanquantile(ratio, 0.025):.0%} – "
            f"{np.nanquantile(ratio, 0.975):.0%})"
            for ratio in ratios.values()
        ]
        offline = OFFLINE * len(scenario.arms) / np.nanmedian(totals["lucb"])
        print(
            f"| {name} | {np.nanmedian(totals['uniform']):,.0f} | {' | '.join(cells)} "
            f"| {offline:.1f}× | {bonuses} | {lost} of {options.runs} |",
            flush=True,
        )
    for policy in POLICIES[1:]:
        every = [row[policy] for row in medians.values()]
        lineups = [row[policy] for name, row in medians.items() if "graded" in name]
        if every:
            print(
                f"{policy}: median over scenarios {np.median(every):.0%}, worst {max(every):.0%}"
                + (f"; graded line-ups alone {np.median(lineups):.0%}" if lineups else "")
            )


if __name__ == "__main__":
    main()
