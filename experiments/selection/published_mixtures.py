"""Published policies for mixtures of models, beside ours and equal shares, on the same rows.

*Mixture-UCB* (Rezaei, Farnia & Li, ICLR 2025, arXiv 2412.17622) draws one sample a step. Of all
samples so far it estimates the score of the shares α by plug-in, L(α) = α'Kα + f'α with K the mean
kernel between arms and f = -2 · mean kernel to the reference, less ε'α with the bonus
ε_a = Δ_L (β log t / n_a)^½ + Δ_κ / n_a. *CAB* draws an arm at random, with the shares that minimise
it; *OGD* the arm with the smallest partial derivative at the shares drawn so far. Constants are
those of the authors' code: Δ_L = 0.6, Δ_κ = 0.4, β = 1, five samples of each arm at first; the
kernel is at most 1. *Mixture-Greedy* (Dibaei Nia & Farnia 2026, arXiv 2603.21716) is CAB without
the bonus.

*certificate*: each policy decides who draws after the first look, and our certificate says when to
stop. The published ones see all rows, also those that certify, which the proof of the certificate
does not allow; wrong certificates are counted. *budget*: the true gap to the best mixture after so
many samples, of the shares a policy ends with (CAB and greedy: its last α; OGD: those drawn; ours:
`weights`), and of the shares that fit all rows it drew (unbiased estimate), which is what its rows
are worth.

    python -m experiments.selection.published_mixtures
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.spatial.distance import cdist

import genbounds as gb
from experiments.accuracy.mixtures import BANDWIDTH, World
from experiments.record import crossed, rate, record, stamp, table, write_data
from experiments.selection.mixtures import gap, shape, worlds
from experiments.selection.store import Run, add_workers, study, workers_of
from genbounds.estimators.kernels._cross_fitted import simplex_minimum
from genbounds.mixtures._online import MixtureLoop
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection_mixture.md"
BONUS = (0.6, 0.4)
"""Δ_L and Δ_κ."""
FIRST = 5
"""Samples of each arm before a policy begins."""
REFERENCE = 2000
LIMIT = 3000
"""Samples of an arm until a run for a certificate ends."""

CERTIFIED = (
    ("two specialists, six poor", 0.5),
    ("two specialists, six poor", 0.25),
    ("specialists", 0.9),
    ("all the same", 0.5),
)
BUDGETS = (2000,)

OURS = {"ours": "lucb", "equal shares": "uniform"}
PUBLISHED = ("Mixture-UCB-CAB", "Mixture-UCB-OGD", "Mixture-Greedy")


class Kernels:
    """Sums of the kernel between all rows drawn so far, by arm, and with the reference."""

    def __init__(self, arms: int, real: Float, room: int) -> None:
        self.counts = np.zeros(arms)
        self._sums, self._to_real = np.zeros((arms, arms)), np.zeros(arms)
        self._real = real
        self._rows, self._arm, self._held = np.empty((room, real.shape[1])), np.zeros(room, int), 0

    def add(self, arm: int, rows: Float) -> None:
        """Take in rows of an arm."""
        start, self._held = self._held, self._held + len(rows)
        self._rows[start : self._held], self._arm[start : self._held] = rows, arm
        to_each = rbf(self._rows[: self._held], rows).sum(axis=1)
        new = np.bincount(self._arm[: self._held], to_each, minlength=self.counts.size)
        self._sums[arm] += new
        self._sums[:, arm] += new
        self._sums[arm, arm] -= to_each[start:].sum()  # pairs of new rows came twice
        self._to_real[arm] += rbf(rows, self._real).sum() / len(self._real)
        self.counts[arm] += len(rows)

    @property
    def linear(self) -> Float:
        """Minus twice the mean kernel between each arm and the reference."""
        found: Float = -2.0 * self._to_real / self.counts
        return found

    def quadratic(self, *, unbiased: bool = False) -> Float:
        """Return the mean kernel between arms; `unbiased`: but for rows with themselves."""
        same = np.diag(self.counts) if unbiased else 0.0
        found: Float = (self._sums - same) / (np.outer(self.counts, self.counts) - same)
        return found


def rbf(one: Float, two: Float) -> Float:
    """Kernel of the worlds, at most 1."""
    found: Float = np.exp(cdist(one, two, "sqeuclidean") / (-2.0 * BANDWIDTH**2))
    return found


def least(quadratic: Float, linear: Float) -> Float:
    """Shares α that minimise α'Kα + f'α."""
    return simplex_minimum(quadratic + (linear[:, None] + linear) / 2.0)


class Policy:
    """One of the published policies.

    Parameters
    ----------
    name : str
    seen : Kernels
    rng : Generator
    """

    def __init__(self, name: str, seen: Kernels, rng: np.random.Generator) -> None:
        self.name, self.seen, self.rng = name, seen, rng

    def _optimistic(self) -> Float:
        """Return the linear part of the score, less the bonus."""
        counts = self.seen.counts
        if self.name == "Mixture-Greedy":
            return self.seen.linear
        root, whole = BONUS
        bonus: Float = root * np.sqrt(math.log(counts.sum()) / counts) + whole / counts
        return self.seen.linear - bonus

    def shares(self) -> Float:
        """Return the shares it holds to be best."""
        if self.name == "Mixture-UCB-OGD":
            return self.seen.counts / self.seen.counts.sum()
        return least(self.seen.quadratic(), self._optimistic())

    def arm(self, free: np.ndarray) -> int:
        """Return the arm, one of those `free`, that is drawn from next."""
        shares = self.shares()
        if self.name == "Mixture-UCB-OGD":
            slope = 2.0 * self.seen.quadratic() @ shares + self._optimistic()
            return int(np.where(free, slope, np.inf).argmin())
        allowed = np.where(free, shares, 0.0)
        if not allowed.any():  # all its shares are with arms at their limit
            allowed = free.astype(float)
        return int(self.rng.choice(allowed.size, p=allowed / allowed.sum()))


class Pool:
    """Rows of an arm, the same ones for every policy."""

    def __init__(self, world: World, arm: int, seed: int, size: int) -> None:
        rng = np.random.default_rng([2, seed, arm])
        self._rows, self._given = world.models[arm].draw(size, rng).features, 0

    def __call__(self, n: int, rng: np.random.Generator | None = None) -> Float:
        """Return the next rows."""
        self._given += n
        found: Float = self._rows[self._given - n : self._given]
        return found


def scene(name: str, seed: int, size: int) -> tuple[World, dict[str, Pool], Float]:
    """Return a world, its arms with so many rows each, and a reference."""
    world = worlds()[name]
    arms = {f"m{arm}": Pool(world, arm, seed, size) for arm in range(len(world.models))}
    real = world.reference.draw(REFERENCE, np.random.default_rng([1, seed])).features
    return world, arms, real


def to_certificate(name: str, tolerance: float, how: str, seed: int) -> Run:
    """Return what one run for a certificate took, and the true gap of its shares."""
    world, arms, real = scene(name, seed, LIMIT)
    seen = Kernels(len(arms), real, LIMIT * len(arms))
    policy = Policy(how, seen, np.random.default_rng([3, seed]))

    def one_by_one(self: MixtureLoop, look: Any, total: int) -> bool:
        """Draw by the published policy until the next look; False if nothing came."""
        for arm, sampler in enumerate(self.samplers):
            if sampler.n > seen.counts[arm]:
                seen.add(arm, sampler.rows[int(seen.counts[arm]) :])
        before = seen.counts.sum()
        while seen.counts.sum() < total and (free := self._free()).any():
            arm = policy.arm(free)
            sampler = self.samplers[arm]
            sampler.pull(1)
            seen.add(arm, sampler.rows[-1:])
        return bool(seen.counts.sum() > before)

    select: Callable[[], Any] = partial(
        gb.select.run,
        arms,
        real,
        OURS.get(how, "uniform"),
        seed=seed,
        tolerance=tolerance,
        limit=LIMIT,
        **shape("kad"),
    )
    if how in OURS:
        found = select()
    else:
        with patch.object(MixtureLoop, "_draw_more", one_by_one):
            found = select()
    true = max(gap(world, range(len(arms)), np.array([*found.weights.values()])), 0.0)
    return {"certified": found.certified, "samples": found.total_samples, "gap": true}


def at_budget(name: str, budget: int, how: str, seed: int) -> Run:
    """Return the true gaps of the shares that a policy ends with, and of what its rows say."""
    world, arms, real = scene(name, seed, budget)
    seen = Kernels(len(arms), real, budget)
    if how in OURS:
        drawn: dict[str, list[Float]] = {arm: [] for arm in arms}

        def kept(arm: str, n: int, rng: np.random.Generator) -> Float:
            drawn[arm].append(arms[arm](n))
            return drawn[arm][-1]

        found: Any = gb.select.run(
            {arm: partial(kept, arm) for arm in arms},
            real,
            OURS[how],
            seed=seed,
            tolerance=1e-9,
            limit=budget,
            budget=budget,
            **shape("kad"),
        )
        shares = np.array([*found.weights.values()])
        for number, rows in enumerate(drawn.values()):
            for block in rows:
                seen.add(number, block)
    else:
        policy = Policy(how, seen, np.random.default_rng([3, seed]))
        pools = [*arms.values()]
        for number, pool in enumerate(pools):
            seen.add(number, pool(FIRST))
        everyone = np.ones(len(pools), dtype=bool)
        while seen.counts.sum() < budget:
            number = policy.arm(everyone)
            seen.add(number, pools[number](1))
        shares = policy.shares()
    best = least(seen.quadratic(unbiased=True), seen.linear)
    live = range(len(arms))
    return {"gap": gap(world, live, shares), "fitted": gap(world, live, best)}


def spread(values: Sequence[float], form: str) -> str:
    """Median with the range of nine runs in ten."""
    middle, low, high = np.quantile(values, [0.5, 0.05, 0.95])
    return f"{middle:{form}} ({low:{form}} – {high:{form}})"


def certificates(runs: int, options: argparse.Namespace) -> list[str]:
    """Return the table of samples to a certificate."""
    jobs = [
        (name, tolerance, how, seed)
        for name, tolerance in CERTIFIED
        for how in (*OURS, *PUBLISHED)
        for seed in range(runs)
        if options.only in name
    ]
    known = study(
        jobs, to_certificate, out=options.out / "certificates.jsonl", workers=workers_of(options)
    )
    rows = []
    for name, tolerance in CERTIFIED:
        if options.only not in name:
            continue
        drawn = {
            how: np.array([known[name, tolerance, how, seed]["samples"] for seed in range(runs)])
            for how in (*OURS, *PUBLISHED)
        }
        for how, samples in drawn.items():
            every = [known[name, tolerance, how, seed] for seed in range(runs)]
            sure = sum(one["certified"] for one in every)
            wrong = sum(one["certified"] and one["gap"] > tolerance for one in every)
            rows.append(
                [
                    f"{name}, {tolerance:g}",
                    how,
                    f"{sure} of {runs}: {rate(sure, runs, share='.0%', limits='.0%')}",
                    str(wrong),
                    spread(samples, ",.0f"),
                    spread(samples / drawn["equal shares"], ".0%"),
                    spread([one["gap"] for one in every], ".2g"),
                ]
            )
    if not options.only:
        write_data("mixtures-certificate", CERTIFICATE, rows, page=options.page)
    return shown(rows)


CERTIFICATE = (
    "world, tolerance",
    "who draws",
    "certified",
    "wrongly",
    "samples: median (90 % of runs)",
    "share of equal shares",
    "true gap of the shares",
)


def shown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the page shows of these rows, by `CERTIFICATE`."""
    cells = {(how, world): samples for world, how, _, _, samples, _, _ in rows}
    sure = sorted({row[2].partition(":")[0] for row in rows})
    return [
        *crossed(cells, "who draws"),
        "",
        f"Certified in {', '.join(sure)} runs, wrongly in {sum(int(row[3]) for row in rows)}. "
        "[Shares of equal shares, and gaps](data/mixtures-certificate.csv).",
    ]


def budgets(runs: int, options: argparse.Namespace) -> list[str]:
    """Return the table of gaps at equal budgets."""
    names = [name for name in dict.fromkeys(name for name, _ in CERTIFIED) if options.only in name]
    names = [name for name in names if name != "all the same"]  # no shares are worse than others
    jobs = [
        (name, budget, how, seed)
        for name in names
        for budget in options.budgets
        for how in (*OURS, *PUBLISHED)
        for seed in range(runs)
    ]
    known = study(jobs, at_budget, out=options.out / "budgets.jsonl", workers=workers_of(options))
    rows = []
    for name in names:
        for budget in options.budgets:
            for how in (*OURS, *PUBLISHED):
                every = [known[name, budget, how, seed] for seed in range(runs)]
                ends, fits = ([one[key] for one in every] for key in ("gap", "fitted"))
                rows.append([f"{name}, {budget:,}", how, spread(ends, ".2g"), spread(fits, ".2g")])
    heads = ("world, samples", "who draws", "true gap of the shares it ends with")
    return table((*heads, "of those that fit all its rows"), rows)


STUDIES: dict[str, Callable[[int, argparse.Namespace], list[str]]] = {
    "certificate": certificates,
    "budget": budgets,
}


def main(argv: list[str] | None = None) -> None:
    """Run the studies, print their tables and record them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=8, help="for a certificate")
    parser.add_argument("--budget-runs", type=int, default=20, help="of a given budget")
    parser.add_argument("--budgets", type=int, nargs="*", default=BUDGETS)
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    parser.add_argument("--page", type=Path, default=PAGE, help="whose sections are rewritten")
    add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/published-mixtures"))
    options = parser.parse_args(argv)
    for name, runs in (("certificate", options.runs), ("budget", options.budget_runs)):
        lines = [f"{stamp()} {runs} runs a row.", "", *STUDIES[name](runs, options)]
        print("\n".join(lines), flush=True)
        if not options.only:
            record(f"mixtures-{name}", lines, page=options.page)


if __name__ == "__main__":
    main()
