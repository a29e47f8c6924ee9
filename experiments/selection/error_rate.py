"""How often is an answer wrong? Exact upper limits, against the claim.

python -m experiments.selection.error_rate certificates   # the guarantee, in every scenario
python -m experiments.selection.error_rate few-samples    # the same, for short files
python -m experiments.selection.error_rate heavy-tails    # where it does not hold
python -m experiments.selection.error_rate rank-flip      # what plug-in scores do there

Each run has its own seed, the reference included; runs are kept in OUT/STUDY.jsonl, and the same
command goes on where it was stopped. A whole study is recorded in docs/evidence/selection.md.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.record import exact_limits, record, stamp, table
from experiments.selection import store
from experiments.selection.scenarios import Scenario, errors, few, heavy, rank_flip
from experiments.selection.store import Key, Run
from genbounds import select
from genbounds.estimators import FrechetReference

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection.md"
CONFIDENCE = 0.95
SLACK = 0.01
"""The upper limit may exceed 1 - confidence by this much."""

SPENDING = ("greedy", "fd-ucb", "thompson", "debiased-ucb")
RULES = ("certificate, debiased", "certificate, plug-in", *SPENDING)
STUDIES = {"certificates": errors, "few-samples": few, "heavy-tails": heavy}
BUDGET = 1_500
"""Samples of a policy that does not stop by itself on the rank-flip arms."""


def reference_of(scenario: Scenario, seed: int) -> Any:
    """Return the reference of one run."""
    return scenario.reference(
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1_000_000,)))
    )


def certificate(name: str, policy: str, confidence: float, seed: int) -> Run:
    """Which arm one run certifies; None if none."""
    scenario = (errors() | few() | heavy())[name]
    start = time.process_time()
    selection = select.run(
        scenario.arms,
        reference_of(scenario, seed),
        policy=policy,
        metric=scenario.metric,
        confidence=confidence,
        batch=min(100, scenario.first_look or 100),
        first_look=scenario.first_look,
        limit=scenario.limit,
        seed=seed,
    )
    return {
        "certified": selection.best if selection.certified else None,
        "seconds": time.process_time() - start,
    }


def read(run: Run, right: tuple[str, ...]) -> Run:
    """Outcome of a run, "right", "wrong" or "open", if these are the right answers."""
    if run["certified"] is None:
        return run | {"outcome": "open"}
    return run | {"outcome": "right" if run["certified"] in right else "wrong"}


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
            metric=lambda rows: prepared.estimate(rows, estimator=estimator),
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
    found = list(runs)
    outcomes = Counter(run["outcome"] for run in found)
    # The upper end of a two-sided interval at 90 % is a one-sided limit at 95 %.
    upper = exact_limits(outcomes["wrong"], len(found), level=0.9)[1]
    return outcomes, upper, sum(run["seconds"] for run in found)


COLUMNS = ("", "runs", "certified or decided", "wrong", "rate", "95 % upper limit")


def report(rows: dict[str, list[Run]], allowed: float, planned: int) -> list[str]:
    """Return a table, which rows' upper limits exceed what is allowed, which runs are missing."""
    cells, above = [], []
    for name, runs in rows.items():
        if not runs:
            continue
        outcomes, upper, _ = summary(runs)
        wrong, n = outcomes["wrong"], len(runs)
        decided = n - outcomes["open"]
        cells.append(
            [name, f"{n:,}", f"{decided:,}", str(wrong), f"{wrong / n:.2%}", f"{upper:.2%}"]
        )
        if upper > allowed:
            above.append(name)
    if above:
        verdict = f"Upper limit above {allowed:.0%}: {'; '.join(above)}."
    else:
        verdict = f"No upper limit is above {allowed:.0%}."
    missing = [f"{name} ({len(runs):,})" for name, runs in rows.items() if len(runs) < planned]
    if missing:
        verdict += f" Fewer than {planned:,} runs so far: {'; '.join(missing)}."
    return [*table(COLUMNS, cells), "", verdict]


def main() -> None:
    """Run a study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=(*STUDIES, "rank-flip"))
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--policy", default="elimination", help="of the certificates")
    parser.add_argument("--confidence", type=float, default=CONFIDENCE)
    store.add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/error_rate"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    parser.add_argument("--known", action="store_true", help="report the runs on disk, add none")
    options = parser.parse_args()
    path = options.out / f"{options.study}.jsonl"
    known = store.read(path)
    seeds = range(options.runs)

    def runs_of(jobs: list[Key], work: Callable[..., Run]) -> list[Run]:
        if options.known:
            return [known[job] for job in jobs if job in known]
        return list(store.study(jobs, work, out=path, workers=store.workers_of(options)).values())

    rows: dict[str, list[Run]] = {}
    spent = 0.0
    jobs: list[Key]
    if options.study != "rank-flip":
        for name, scenario in STUDIES[options.study]().items():
            if options.scenario in name:
                jobs = [(name, options.policy, options.confidence, seed) for seed in seeds]
                runs = runs_of(jobs, certificate)
                spent += sum(run["seconds"] for run in runs)
                for row, right in scenario.readings(name).items():
                    rows[row] = [read(run, right) for run in runs]
    else:
        for rule in RULES:
            if options.scenario in rule:
                jobs = [(rule, options.confidence, seed) for seed in seeds]
                runs = runs_of(jobs, flip)
                spent += sum(run["seconds"] for run in runs)
                rows[rule] = runs
    head = f"{stamp()} Confidence {options.confidence:.0%}; {spent / 60:.0f} processor minutes."
    lines = [head, "", *report(rows, 1.0 - options.confidence + SLACK, options.runs)]
    print("\n".join(lines))
    if not options.scenario:
        record(f"error-{options.study}", lines, page=options.page)


if __name__ == "__main__":
    main()
