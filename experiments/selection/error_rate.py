"""How often is a certified answer wrong? Exact upper limits, against the claim.

python -m experiments.selection.error_rate --runs 2000 [--scenario NAME-PART] [--policy lucb]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

from experiments.selection.scenarios import Scenario, errors
from genbounds import select


def one_run(scenario: Scenario, seed: int, *, policy: str, confidence: float) -> str:
    """Return "right", "wrong" or "open"."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1_000_000,)))
    selection = select.run(
        scenario.arms,
        scenario.reference(rng),
        policy=policy,
        metric=scenario.metric,
        confidence=confidence,
        batch=100,
        limit=scenario.limit,
        seed=seed,
    )
    if not selection.certified:
        return "open"
    return "right" if selection.best in scenario.right else "wrong"


def main() -> None:
    from statsmodels.stats.proportion import proportion_confint

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--policy", default="elimination")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="append JSON lines to this file")
    arguments = parser.parse_args()

    from joblib import Parallel, delayed

    print("| scenario | runs | certified | wrong | rate | 95 % upper limit |")
    print("|---|---|---|---|---|---|")
    for name, scenario in errors().items():
        if arguments.scenario not in name:
            continue
        start = time.perf_counter()
        outcomes = Counter(
            Parallel(n_jobs=arguments.jobs)(
                delayed(one_run)(
                    scenario, seed, policy=arguments.policy, confidence=arguments.confidence
                )
                for seed in range(arguments.runs)
            )
        )
        wrong = outcomes["wrong"]
        # One-sided 95 % Clopper-Pearson limit: the upper end of the two-sided 90 % interval.
        upper = proportion_confint(wrong, arguments.runs, alpha=0.1, method="beta")[1]
        certified = arguments.runs - outcomes["open"]
        print(
            f"| {name} | {arguments.runs} | {certified} | {wrong} | "
            f"{wrong / arguments.runs:.2%} | {upper:.2%} |",
            flush=True,
        )
        if arguments.out is not None:
            row = {
                "scenario": name,
                "policy": arguments.policy,
                "runs": arguments.runs,
                "certified": certified,
                "wrong": wrong,
                "upper": upper,
                "seconds": time.perf_counter() - start,
            }
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
