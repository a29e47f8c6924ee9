"""Whether the certificate of a mixture keeps its level, and what choosing who draws saves.

Arms and reference are mixtures of Gaussians in four dimensions, whose moments and kernel means are
known in closed form (`experiments/accuracy/mixtures.py`), so that so is the gap of any weights to
the best: by KAD, by the Fréchet distance (`--metric fd`), or by RKE (`--metric rke`).
*errors*: runs in which the bound lay below the true gap at any of their looks (nominal: at most
5 %), which is more than those with a wrong certificate at any tolerance. *samples*: samples to a
certificate, and how many the same arms take by equal shares.

    python -m experiments.selection.mixtures errors     about 3 minutes on one core
    python -m experiments.selection.mixtures samples
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest.mock import patch

import numpy as np

import genbounds as gb
from experiments.accuracy.mixtures import BANDWIDTH, Gaussians, World, gaussian
from experiments.record import exact_limits
from genbounds.estimators import MixtureDistance, least_distance
from genbounds.estimators.kernels._cross_fitted import simplex_minimum
from genbounds.mixtures._online import MixtureLoop

OPTIONS = {"kad": {"bandwidth": BANDWIDTH}, "fd": None, "rke": {"bandwidth": BANDWIDTH}}


TOLERANCES = {
    "kad": {"specialists": 0.9, "all the same": 0.5, "two specialists, six poor": 0.25},
    "fd": {"specialists": 0.25, "all the same": 0.25, "two specialists, six poor": 0.15},
    "rke": {"specialists": 1.0, "all the same": 1.0, "two specialists, six poor": 1.0},
}


def worlds(metric: str = "kad") -> dict[str, World]:
    """Return line-ups of four and eight arms."""
    kernel = "rke" if metric == "rke" else "kad"
    rng = np.random.default_rng(7)
    centres = 2.5 * rng.standard_normal((8, 4))
    near = centres + 0.4 * rng.standard_normal(centres.shape)
    real = Gaussians(centres)
    special = [Gaussians(near[half]) for half in np.split(np.arange(8), 4)]
    perfect = [Gaussians(centres[half]) for half in np.split(np.arange(8), 4)]
    halves = [Gaussians(centres[:4]), Gaussians(centres[4:])]
    poor = [Gaussians(centres + 2.0 * rng.standard_normal(4), 1.0) for _ in range(6)]
    return {
        "specialists": gaussian("specialists", special, real, 0, metric=kernel),
        "exact mix, distance 0": gaussian("exact", perfect, real, 0, metric=kernel),
        "all the same": gaussian("same", [Gaussians(near)] * 4, real, 0, metric=kernel),
        "two specialists, six poor": gaussian("poor", [*halves, *poor], real, 0, metric=kernel),
    }


def arms(world: World):
    """Return the arms of a world."""
    return {
        f"m{number}": lambda n, rng, model=model: model.draw(n, rng).features
        for number, model in enumerate(world.models)
    }


def shape(metric: str) -> dict[str, Any]:
    """Return what all runs by this metric have in common."""
    return {"metric": metric, "target": "mixture", "options": OPTIONS[metric], "batch": 20}


def gap(world: World, live, weights, metric: str = "kad") -> float:
    """Return how much the score of `weights` is above that of the best mixture of `live` arms."""
    if metric == "fd":
        models = [gb.Moments(*world.models[arm].mean_and_covariance()) for arm in live]
        distance = MixtureDistance(models, gb.Moments(*world.reference.mean_and_covariance()))
        return distance(weights)[0] - distance(least_distance(distance))[0]
    if metric == "rke":
        gram = world.gram[np.ix_(live, live)]
        best = simplex_minimum(gram)
        return float(1.0 / (best @ gram @ best) - 1.0 / (weights @ gram @ weights))
    gram = world.gram[np.ix_([*live, -1], [*live, -1])]
    to = gram[:-1, -1]
    square = gram[:-1, :-1] - to[:, None] - to + gram[-1, -1]
    best = simplex_minimum(square)
    return float(weights @ square @ weights - best @ square @ best)


def bounds(
    world: World, seed: int, *, limit: int, reference: int, metric: str = "kad"
) -> list[tuple[float, float]]:
    """Return bound and true gap at every look of a run that never certifies."""
    seen = []
    look = MixtureLoop._look

    def recorded(self):
        found = look(self)
        seen.append((found.gaps.high, gap(world, found.live, found.weights, metric)))
        return found

    real = world.reference.draw(reference, np.random.default_rng([1, seed])).features
    with patch.object(MixtureLoop, "_look", recorded):
        gb.select.run(
            arms(world),
            real,
            seed=seed,
            tolerance=1e-9,
            first_look=100,
            limit=limit,
            growth=1.5,
            **shape(metric),
        )
    return seen


def errors(runs: int, cells: list[str], metric: str) -> None:
    """Print how often the bound lies below the gap."""
    print("| world | below the true gap at any look | mean gap, first and last look | mean bound |")
    print("|---|---|---|---|")
    for name in cells:
        world = worlds(metric)[name]
        found = [
            bounds(world, seed, limit=300, reference=400, metric=metric) for seed in range(runs)
        ]
        wrong = sum(any(high < true - 1e-12 for high, true in run) for run in found)
        low, high = exact_limits(wrong, runs)
        first, last = (np.mean([run[at] for run in found], axis=0) for at in (0, -1))
        print(
            f"| {name} | {wrong} of {runs}: {wrong / runs:.3f} [{low:.3f}, {high:.3f}] | "
            f"{first[1]:.3g}, {last[1]:.3g} | {first[0]:.3g}, {last[0]:.3g} |",
            flush=True,
        )


def samples(runs: int, cells: dict[str, float], metric: str) -> None:
    """Print the samples to a certificate under both allocations, on the same streams."""
    print("| world | tolerance | certified | samples: median | by equal shares | share of it |")
    print("|---|---|---|---|---|---|")
    for name, tolerance in cells.items():
        world, drawn, certified = worlds(metric)[name], [], 0
        for seed in range(runs):
            real = world.reference.draw(2000, np.random.default_rng([1, seed])).features
            pair = [
                gb.select.run(
                    arms(world),
                    real,
                    policy,
                    seed=seed,
                    tolerance=tolerance,
                    limit=3000,
                    **shape(metric),
                )
                for policy in ("lucb", "uniform")
            ]
            certified += all(one.certified for one in pair)
            drawn.append([one.total_samples for one in pair])
        both = np.median(drawn, axis=0)
        share = np.quantile(np.divide(*np.array(drawn, dtype=float).T), [0.5, 0.05, 0.95])
        print(
            f"| {name} | {tolerance:g} | {certified} of {runs} | {both[0]:,.0f} | {both[1]:,.0f} | "
            f"{share[0]:.0%} ({share[1]:.0%} – {share[2]:.0%} in 90 % of runs) |",
            flush=True,
        )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["errors", "samples"])
    parser.add_argument("--runs", type=int)
    parser.add_argument("--worlds", nargs="*")
    parser.add_argument("--metric", choices=list(OPTIONS), default="kad")
    options = parser.parse_args(argv)
    start = time.process_time()
    if options.what == "errors":
        cells = ["specialists", "exact mix, distance 0", "all the same"]
        errors(options.runs or 300, options.worlds or cells, options.metric)
    else:
        tolerances = TOLERANCES[options.metric]
        chosen = options.worlds or list(tolerances)
        samples(options.runs or 10, {name: tolerances[name] for name in chosen}, options.metric)
    print(f"\n{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
