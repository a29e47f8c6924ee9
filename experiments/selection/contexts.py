"""Whether certified winners are right in all contexts together, and what pooling is worth.

*errors*: runs in which any certified winner is wrong in any context (nominal: at most 5 %), with
exact 95 % intervals; beside it the negative control, every context certified at 95 % on its own.
Runs are kept in OUT, and the same command goes on where it was stopped.
Tied arms are the limit of a vanishing gap: any certificate but one of them counts as wrong.
*pooled*: what is lost by the recommended arm where no context can be certified yet, against the
best estimate of each context alone and against one arm for all.

    python -m experiments.selection.contexts errors     about 10 minutes on one core
    python -m experiments.selection.contexts pooled     about 2 minutes
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import exact_limits, record, stamp, table
from experiments.selection.store import Run, add_workers, study, workers_of
from genbounds.estimators import Estimate, SampleError

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "contexts.md"
CONFIDENCE = 0.95


def mean(rows: np.ndarray) -> Estimate:
    """Score rows by the mean of their first column, small is good: a score that costs nothing."""
    x = rows[:, 0]
    error = SampleError(n=x.size, variance=x.var(ddof=1) / x.size, degrees_of_freedom=x.size - 1.0)
    return Estimate(value=float(x.mean()), sample=error, method="mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Contexts that all look alike, so that the number of chances to err is their number.

    Attributes
    ----------
    arms : dict of str to (mean, standard deviation)
        Normal rows, in every context.
    right : tuple of str
        Arms each of which is read as the right answer; any other winner is then wrong.
    reference : callable or None
        From a Generator to the reference of a context.
    """

    metric: Any
    contexts: int
    d: int
    arms: dict[str, tuple[float, float]]
    right: tuple[str, ...]
    reference: Callable[[np.random.Generator], Any] | None = None
    limit: int = 800

    def draws(self) -> dict[str, Any]:
        """Return the arms as functions of (n, rng, context)."""
        return {
            name: lambda n, rng, context, mean=mean, sd=sd: rng.normal(mean, sd, (n, self.d))
            for name, (mean, sd) in self.arms.items()
        }

    def places(self, seed: int) -> Any:
        """Return contexts with their references, or their names."""
        names = range(self.contexts)
        if self.reference is None:
            return names
        return {name: self.reference(np.random.default_rng([1, seed, name])) for name in names}


def known(d: int) -> Callable[[np.random.Generator], gb.Moments]:
    """N(0, I), exactly known."""
    return lambda rng: gb.Moments(np.zeros(d), np.eye(d))


def sampled(d: int, m: int) -> Callable[[np.random.Generator], Any]:
    """M rows of N(0, I), drawn anew in every context and run."""
    return lambda rng: rng.standard_normal((m, d))


def worlds() -> dict[str, World]:
    """Return arms that are equal, nearly equal, or tied though of different kinds."""
    equal = {"a": (0.3, 1.0), "b": (0.3, 1.0)}
    near = {"best": (-0.1, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
    flip = {"wide": (0.0, 1.3), "narrow": (0.0, 0.7)}
    return {
        "mean, 20 contexts, 2 equal arms": World(
            metric=mean, contexts=20, d=1, arms=equal, right=("a",)
        ),
        "mean, 10 contexts, best of 3 ahead by 0.1 sd": World(
            metric=mean, contexts=10, d=1, arms=near, right=("best",)
        ),
        "fd, 5 contexts, wide and narrow tied, d = 8": World(
            metric="fd",
            contexts=5,
            d=8,
            arms=flip,
            right=("wide", "narrow"),
            reference=known(8),
            limit=400,
        ),
        "fd, 5 contexts, 2 equal arms, d = 4, 1,000 reference rows": World(
            metric="fd",
            contexts=5,
            d=4,
            arms=equal,
            right=("a",),
            reference=sampled(4, 1000),
            limit=400,
        ),
        "kid, 5 contexts, 2 equal arms, d = 4, 400 reference rows": World(
            metric="kid",
            contexts=5,
            d=4,
            arms=equal,
            right=("a",),
            reference=sampled(4, 400),
            limit=400,
        ),
    }


def winners(name: str, seed: int, together: bool) -> Run:
    """Return the certified winners of one run, None where a context is undecided."""
    world = worlds()[name]
    shape = {
        "metric": world.metric,
        "policy": "elimination",
        "confidence": CONFIDENCE,
        "batch": 100,
        "first_look": 100,
        "limit": world.limit,
        "growth": 2.0,
    }
    start, places, arms = time.process_time(), world.places(seed), world.draws()
    if together:
        found = [*gb.select.run(arms, contexts=places, seed=seed, **shape).winners.values()]
    else:  # each context by a run of its own, at the same confidence
        found = []
        for context in places:
            alone = {context: places[context]} if isinstance(places, dict) else [context]
            run = gb.select.run(arms, contexts=alone, seed=seed * 1000 + context, **shape)
            found += run.winners.values()
    return {"winners": found, "seconds": time.process_time() - start}


def rate(runs: list[Run], right: str) -> str:
    """Return the share of runs with a wrong winner in any context, with its exact interval."""
    wrong = sum(any(found not in (None, right) for found in run["winners"]) for run in runs)
    low, high = exact_limits(wrong, len(runs))
    return f"{wrong} of {len(runs)}: {wrong / len(runs):.3f} [{low:.3f}, {high:.3f}]"


def errors(runs: int, control: int, options: argparse.Namespace) -> list[str]:
    """Return the table of error rates."""
    rows = []
    for name, world in worlds().items():
        if options.only not in name:
            continue
        jobs = [(name, seed, True) for seed in range(runs)]
        jobs += [(name, seed, False) for seed in range(control)]
        known_ = study(jobs, winners, out=options.out / "errors.jsonl", workers=workers_of(options))
        together = [run for job, run in known_.items() if job[2]]
        alone = [run for job, run in known_.items() if not job[2]]
        decided = np.mean([found is not None for run in together for found in run["winners"]])
        for right in world.right:
            title = name if len(world.right) == 1 else f"{name}, {right} is right"
            rows.append([title, rate(together, right), f"{decided:.1%}", rate(alone, right)])
            print(" | ".join(rows[-1]), flush=True)
    heads = (
        "contexts and arms",
        "any winner wrong, together at 95 %",
        "contexts with a winner",
        "each at 95 % on its own (control)",
    )
    return table(heads, rows)


SPREADS = (0.0, 0.05, 0.1, 0.2, 0.5)
"""Standard deviations of an arm's differences between contexts, in those of one value."""


def losses_of(spread: float, seed: int) -> dict[str, float]:
    """Return what choosing costs, mean over ten contexts, in standard deviations of one value.

    Five arms whose overall means have a standard deviation of 0.1, 100 values of each in each
    context: a standard error of 0.1.
    """
    rng = np.random.default_rng([2, seed])
    names, contexts = [f"m{number}" for number in range(5)], range(10)
    truth = 0.1 * rng.standard_normal(5) + spread * rng.standard_normal((10, 5))
    arms = {
        name: lambda n, rng, context, arm=arm: rng.normal(truth[context, arm], 1.0, (n, 1))
        for arm, name in enumerate(names)
    }
    found = gb.select.run(
        arms, contexts=contexts, metric=mean, policy="uniform", batch=100, limit=100, seed=seed
    )
    values = np.array([[found.contexts[c].scores[name].value for name in names] for c in contexts])
    chosen = {
        "recommended": [names.index(found.recommended[c]) for c in contexts],
        "each context alone": [names.index(found.contexts[c].best) for c in contexts],
        "one arm for all": [int(values.mean(axis=0).argmin())] * 10,
    }
    best = truth.min(axis=1)
    return {
        how: float(np.mean(truth[np.arange(10), arms_] - best)) for how, arms_ in chosen.items()
    }


def pooled(runs: int) -> list[str]:
    """Return the table of what choosing costs."""
    rows = []
    for spread in SPREADS:
        found = [losses_of(spread, seed) for seed in range(runs)]
        cells = [f"{spread:g}"]
        for how in found[0]:
            values = np.array([one[how] for one in found])
            cells.append(f"{values.mean():.4f} ± {1.96 * values.std(ddof=1) / runs**0.5:.4f}")
        rows.append(cells)
        print(" | ".join(cells), flush=True)
    heads = ("arms vary between contexts by", "recommended", "each context alone")
    return table((*heads, "one arm for all"), rows)


def main(argv: list[str] | None = None) -> None:
    """Run a study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=("errors", "pooled"))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--control", type=int, help="runs of the negative control")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/contexts"))
    options = parser.parse_args(argv)
    if options.study == "errors":
        lines = errors(options.runs or 400, options.control or 100, options)
    else:
        lines = pooled(options.runs or 300)
    lines = [stamp(), "", *lines]
    print("\n".join(lines))
    if not options.only:
        record(f"contexts-{options.study}", lines, page=options.page)


if __name__ == "__main__":
    main()
