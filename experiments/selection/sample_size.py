"""Samples to a certificate: ours against uniform allocation with the same intervals.

python -m experiments.selection.sample_size --runs 100
"""

from __future__ import annotations

import argparse

import numpy as np

from experiments.selection.scenarios import Scenario, savings
from genbounds import select

POLICIES = ("uniform", "elimination", "lucb")
OFFLINE = 50_000


def samples(scenario: Scenario, seed: int, *, confidence: float) -> dict[str, float]:
    """Total samples of each policy on the same streams; NaN without a right certificate."""
    totals = {}
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
        totals[policy] = selection.total_samples if right else np.nan
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()

    from joblib import Parallel, delayed

    print(
        "| scenario | uniform: median | elimination / uniform (95 % of runs) "
        "| lucb / uniform (95 % of runs) | 50,000 an arm / lucb | no right certificate |"
    )
    print("|---|---|---|---|---|---|")
    medians = {}
    for name, scenario in savings().items():
        if arguments.scenario not in name:
            continue
        runs = Parallel(n_jobs=arguments.jobs)(
            delayed(samples)(scenario, seed, confidence=arguments.confidence)
            for seed in range(arguments.runs)
        )
        totals = {policy: np.array([run[policy] for run in runs]) for policy in POLICIES}
        ratios = {policy: totals[policy] / totals["uniform"] for policy in POLICIES[1:]}
        medians[name] = {policy: np.nanmedian(ratio) for policy, ratio in ratios.items()}
        cells = [
            f"{np.nanmedian(ratio):.0%} ({np.nanquantile(ratio, 0.025):.0%} – "
            f"{np.nanquantile(ratio, 0.975):.0%})"
            for ratio in ratios.values()
        ]
        offline = OFFLINE * len(scenario.arms) / np.nanmedian(totals["lucb"])
        lost = sum(bool(np.isnan(list(run.values())).any()) for run in runs)
        print(
            f"| {name} | {np.nanmedian(totals['uniform']):,.0f} | {' | '.join(cells)} "
            f"| {offline:.0f}× | {lost} of {arguments.runs} |",
            flush=True,
        )
    for policy in POLICIES[1:]:
        every = [row[policy] for row in medians.values()]
        lineups = [row[policy] for name, row in medians.items() if "graded" in name]
        print(
            f"{policy}: median over scenarios {np.median(every):.0%} "
            f"(graded line-ups alone {np.median(lineups):.0%}), worst {max(every):.0%}"
        )


if __name__ == "__main__":
    main()
