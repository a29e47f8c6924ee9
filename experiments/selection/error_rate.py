"""How often is an answer wrong? Exact upper limits, against the claim.

python -m experiments.selection.error_rate certificates   # the guarantee, in every scenario
python -m experiments.selection.error_rate rank-flip      # what plug-in scores do there

Each run has its own seed, the reference included; runs are kept in OUT/error_rate.jsonl, and the
same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.selection.scenarios import Scenario, errors, rank_flip
from experiments.selection.store import Key, Run, study
from genbounds import select
from genbounds.estimators import FrechetReference

CONFIDENCE = 0.95
SLACK = 0.01
"""The upper limit may exceed 1 - confidence by this much."""

SPENDING = ("greedy", "fd-ucb", "thompson", "debiased-ucb")
RULES = ("certificate, debiased", "certificate, plug-in", *SPENDING)
BUDGET = 1_500
"""Samples of a policy that does not stop by itself on the rank-flip arms."""


def reference_of(scenario: Scenario, seed: int) -> Any:
    """Return the reference of one run."""
    return scenario.reference(
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1_000_000,)))
    )


def certificate(name: str, policy: str, confidence: float, seed: int) -> Run:
    """Outcome of one run: "right", "wrong" or "open"."""
    scenario = errors()[name]
    start = time.process_time()
    selection = select.run(
        scenario.arms,
        reference_of(scenario, seed),
        policy=policy,
        metric=scenario.metric,
        confidence=confidence,
        batch=100,
        limit=scenario.limit,
        first_look=scenario.first_look,
        seed=seed,
    )
    right = "right" if selection.best in scenario.right else "wrong"
    return {
        "outcome": right if selection.certified else "open",
        "seconds": time.process_time() - start,
    }


def flip(rule: str, confidence: float, seed: int) -> Run:
    """Outcome of one rule on the rank-flip arms.

    A policy that spends a budget is wrong if it spent most of it on wrong arms.
    """
    scenario = rank_flip()
    reference = reference_of(scenario, seed)
    start = time.process_time()
    if rule in SPENDING:
        selection = select.run(scenario.arms, reference, policy=rule, budget=BUDGET, seed=seed)
        spent = sum(selection.samples[arm] for arm in scenario.right)
        outcome = "right" if 2 * spent >= selection.total_samples else "wrong"
    else:
        prepared = FrechetReference(reference)
        estimator = "plugin" if "plug-in" in rule else "debiased"
        selection = select.run(
            scenario.arms,
            metric=lambda rows: prepared.expand(rows, estimator=estimator),
            confidence=confidence,
            first_look=128,
            batch=32,
            limit=scenario.limit,
            seed=seed,
        )
        right = "right" if selection.best in scenario.right else "wrong"
        outcome = right if selection.certified else "open"
    return {"outcome": outcome, "seconds": time.process_time() - start}


def summary(runs: Iterable[Run]) -> tuple[Counter[str], float, float]:
    """Return the outcomes, the exact 95 % upper limit of the rate of wrong ones, and the time."""
    from statsmodels.stats.proportion import proportion_confint

    found = list(runs)
    outcomes = Counter(run["outcome"] for run in found)
    # One-sided 95 % Clopper-Pearson limit: the upper end of the two-sided 90 % interval.
    upper = proportion_confint(outcomes["wrong"], len(found), alpha=0.1, method="beta")[1]
    return outcomes, float(upper), sum(run["seconds"] for run in found)


def report(rows: dict[str, list[Run]], allowed: float) -> None:
    """Print a table; a rate beyond doubt above what is allowed is marked."""
    print("| | runs | certified or decided | wrong | rate | 95 % upper limit | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, runs in rows.items():
        outcomes, upper, seconds = summary(runs)
        wrong, n = outcomes["wrong"], len(runs)
        verdict = "" if upper <= allowed else " **above**"
        print(
            f"| {name} | {n} | {n - outcomes['open']} | {wrong} | {wrong / n:.2%} "
            f"| {upper:.2%}{verdict} | {seconds:.0f} |",
            flush=True,
        )


def main() -> None:
    """Run a study and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=("certificates", "rank-flip"))
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--policy", default="elimination", help="of the certificates")
    parser.add_argument("--confidence", type=float, default=CONFIDENCE)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/error_rate"))
    options = parser.parse_args()
    store = options.out / f"{options.study}.jsonl"
    seeds = range(options.runs)
    allowed = 1.0 - options.confidence + SLACK
    print(f"{options.study}; allowed {allowed:.1%} (1 - confidence + {SLACK:.0%})\n")
    rows: dict[str, list[Run]] = {}
    jobs: list[Key]
    if options.study == "certificates":
        for name in errors():
            if options.scenario in name:
                jobs = [(name, options.policy, options.confidence, seed) for seed in seeds]
                runs = study(jobs, certificate, out=store, workers=options.jobs)
                rows[name] = list(runs.values())
    else:
        for rule in RULES:
            if options.scenario in rule:
                jobs = [(rule, options.confidence, seed) for seed in seeds]
                runs = study(jobs, flip, out=store, workers=options.jobs)
                rows[rule] = list(runs.values())
    report(rows, allowed)


if __name__ == "__main__":
    main()
