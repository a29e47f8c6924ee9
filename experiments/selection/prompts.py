"""Regret of certified winners for each context, beside kernel UCB on features of the prompt.

Plays arrive one after the other, each with a context drawn at random; a policy names an arm, which
gives a value (large is good). Regret is what the best arm of that context would have given more,
on average. *certified*: `gb.select.run(contexts=)` decides who plays until a context has its
winner, first after 20 values of each arm, and then only the winner plays. *kernel UCB*: PAK-UCB
(Hu, Leung & Farnia, ICML 2025, arXiv 2410.13287): for each arm a kernel ridge regression of its
values on features of the context, and the arm with the largest prediction plus η times its
uncertainty; ridge 1, RBF kernel, and η = √(2 log(2TG/δ)), δ = 0.05, as published, or η = 1.
*uniform*: at random.

    python -m experiments.selection.prompts             about 5 minutes on one core
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.digits.by_class import POOL, cosines, made_by_class, real_by_class
from experiments.digits.train import DEFAULT_CACHE, prepare
from experiments.record import crossed, record, stamp
from experiments.selection.contexts import PAGE, mean
from genbounds.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Arms in contexts.

    Attributes
    ----------
    truth : ndarray of shape (C, K)
        Mean value of each arm in each context.
    features : ndarray of shape (C, p)
        Of each context, which kernel UCB knows.
    value : callable
        Of context, arm, number and Generator: so many values.
    """

    truth: Float
    features: Float
    value: Callable[[int, int, int, np.random.Generator], Float]

    @property
    def shortfall(self) -> Float:
        """Return what each arm gives less than the best one of its context."""
        return self.truth.max(axis=1, keepdims=True) - self.truth


def synthetic(seed: int, *, smooth: bool) -> World:
    """Eight contexts on a circle, five arms, values with standard deviation 1.

    The means are a Gaussian process in the features, or independent: then features tell nothing.
    """
    rng = np.random.default_rng([3, seed])
    angle = 2.0 * np.pi * np.arange(8) / 8
    features = np.column_stack([np.cos(angle), np.sin(angle)])
    root = np.linalg.cholesky(kernel(features) + 1e-9 * np.eye(8)) if smooth else np.eye(8)
    truth = 0.3 * root @ rng.standard_normal((8, 5))
    return World(
        truth=truth,
        features=features,
        value=lambda c, a, n, rng: truth[c, a] + rng.standard_normal(n),
    )


def digits(cache: Path, pool: int) -> World:
    """Return generators of digits; the contexts are the ten classes.

    An image is of the class that the encoder gives it. Its value is how much its features point to
    the mean of the real ones of the class (cosine, as CLIPScore has it for a prompt), centred and
    in standard deviations. Generators that hardly make a class are left out.
    """
    found = prepare(cache)
    real, made = real_by_class(found), made_by_class(found, pool=pool)
    means = np.array([rows.mean(axis=0) for rows in real.values()])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    values = [[x[:, 0] for x in rows.values()] for rows in cosines(made, real).values()]
    every = np.concatenate([x for arm_ in values for x in arm_])
    pools = [[(x - every.mean()) / every.std() for x in arm_] for arm_ in values]
    apart = np.linalg.norm(means[:, None] - means[None], axis=2)
    return World(
        truth=np.array([[x.mean() for x in classes] for classes in pools]).T,
        features=means / np.median(apart[apart > 0.0]),
        value=lambda c, a, n, rng: rng.choice(pools[a][c], n),
    )


def kernel(features: Float) -> Float:
    """RBF kernel of bandwidth 1 between contexts."""
    squares = np.square(features[:, None] - features[None]).sum(axis=2)
    found: Float = np.exp(-0.5 * squares)
    return found


def certified(world: World, arrivals: Float, seed: int) -> tuple[float, int, int]:
    """Return the regret of all plays, how many contexts are certified, and how many wrongly."""
    names = [str(arm) for arm in range(world.truth.shape[1])]
    contexts = range(len(world.truth))
    counts = np.bincount(arrivals, minlength=len(contexts))
    arms = {
        name: lambda n, rng, context, arm=arm: -world.value(context, arm, n, rng)[:, None]
        for arm, name in enumerate(names)
    }
    found = gb.select.run(
        arms,
        contexts=contexts,
        metric=mean,
        batch=10,
        first_look=20,
        limit=int(counts.max()),
        seed=seed,
    )
    total, decided, wrong = 0.0, 0, 0
    for context, run in found.contexts.items():
        plays = np.repeat(run.history.picks, run.history.drawn)[: counts[context]]
        total += world.shortfall[context][plays].sum()
        if run.certified and run.total_samples <= counts[context]:
            loss = world.shortfall[context][int(run.best)]
            decided, wrong = decided + 1, wrong + int(loss > 0.0)
            total += (int(counts[context]) - plays.size) * loss  # the winner plays the rest
    return total, decided, wrong


def kernel_ucb(world: World, arrivals: Float, seed: int, eta: float) -> float:
    """Return the regret of kernel ridge UCB.

    With few contexts the ridge regression on all plays is a normal posterior over their means,
    updated play by play.
    """
    rng = np.random.default_rng([5, seed])
    k = world.truth.shape[1]
    means, covariances = np.zeros((k, len(world.truth))), np.array([kernel(world.features)] * k)
    total = 0.0
    for step, context in enumerate(arrivals):
        spread = np.sqrt(np.maximum(covariances[:, context, context], 0.0))
        # Every arm is played once at first.
        arm = step if step < k else int(np.argmax(means[:, context] + eta * spread))
        total += world.shortfall[context, arm]
        value = world.value(context, arm, 1, rng)[0]
        gain = covariances[arm][:, context] / (covariances[arm, context, context] + 1.0)
        means[arm] += gain * (value - means[arm, context])
        covariances[arm] -= np.outer(gain, covariances[arm][context])
    return total


def study(make: Callable[[int], World], plays: int, runs: int) -> list[list[str]]:
    """Return the rows of one world: mean regret of a play, with its 95 % interval."""
    losses: dict[str, list[float]] = {}
    decided, wrong, contexts = 0, 0, 0
    for seed in range(runs):
        world = make(seed)
        c, k = world.truth.shape
        arrivals = np.random.default_rng([6, seed]).integers(c, size=plays)
        total, here, bad = certified(world, arrivals, seed)
        decided, wrong, contexts = decided + here, wrong + bad, contexts + c
        published = math.sqrt(2.0 * math.log(2.0 * plays * k / 0.05))
        found = {
            "certified": total,
            "kernel UCB, η = 1": kernel_ucb(world, arrivals, seed, 1.0),
            "kernel UCB, η as published": kernel_ucb(world, arrivals, seed, published),
            "uniform": float(world.shortfall[arrivals].mean(axis=1).sum()),
        }
        for how, loss in found.items():
            losses.setdefault(how, []).append(loss / plays)
    rows = []
    for how, values in losses.items():
        half = gb.estimators.student_quantile(0.95, runs - 1) * np.std(values, ddof=1) / runs**0.5
        says = f"{decided} of {contexts}, {wrong} wrongly" if how == "certified" else "none"
        rows.append([how, f"{np.mean(values):.4f} ± {half:.4f}", says])
    return rows


def shown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the table: mean regret of a play by world and policy, contexts that are certified."""
    cells = {}
    for world, policy, regret, decided in rows:
        cells[world, policy] = regret
        if decided != "none":
            cells[world, "contexts certified"] = decided
    return crossed(cells, "mean regret of a play")


def main(argv: list[str] | None = None) -> None:
    """Run the study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--plays", type=int, nargs="*", default=[4_000, 20_000])
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="of the digits")
    parser.add_argument("--pool", type=int, default=POOL, help="images of each generator")
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args(argv)
    real = digits(options.cache, options.pool)
    worlds: dict[str, Callable[[int], World]] = {
        "synthetic, neighbours alike": lambda seed: synthetic(seed, smooth=True),
        "synthetic, contexts unrelated": lambda seed: synthetic(seed, smooth=False),
        "digits by class": lambda seed: real,
    }
    rows = []
    for name, make in worlds.items():
        for plays in options.plays if options.only in name else ():
            for row in study(make, plays, options.runs):
                rows.append([f"{name}, {plays:,} plays", *row])
                print(" | ".join(rows[-1]), flush=True)
    lines = [
        f"{stamp()} {options.runs} runs.",
        "",
        *shown(rows),
    ]
    print("\n".join(lines))
    if not options.only:
        record("contexts-regret", lines, page=options.page)


if __name__ == "__main__":
    main()
