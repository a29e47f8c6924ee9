"""Whether the interval of a mixture's score and the certificate of its gain keep their level.

Models and reference are mixtures of Gaussians in four dimensions, whose kernel means are known in
closed form (RBF kernel: `kad`, `rke`), or shifted Student variables, whose third moments are
(`kid`). Each cell: how often the interval holds the true score of the weights that were chosen,
with an exact 95 % interval of that share; how often the true score lies below its upper end; how
often the certified gain is more than the true one; mean certified and true gain.

    python -m experiments.accuracy.mixtures                 about 5 minutes on one core
    python -m experiments.accuracy.mixtures --runs 20 --cells 'heavy*'
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import product
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import exact_limits

D = 4
BANDWIDTH = 2.5
FACTOR = 100.0
"""Of the kernel audio distance."""


@dataclass(frozen=True)
class Gaussians:
    """Equal shares of Gaussians with one standard deviation."""

    centres: np.ndarray
    sd: float = 0.5
    balanced: bool = False

    def draw(self, n, rng):
        """Return n rows."""
        which = np.arange(n) % len(self.centres)
        if not self.balanced:
            which = rng.integers(len(self.centres), size=n)
        rows = self.centres[which] + self.sd * rng.standard_normal((n, D))
        return gb.Sample(rows, strata=which if self.balanced else None)

    def mean_and_covariance(self):
        """Exact."""
        return self.centres.mean(axis=0), np.cov(self.centres.T, bias=True) + self.sd**2 * np.eye(D)

    def inner(self, other, bandwidth):
        """Mean of the RBF kernel between rows of both."""
        width = bandwidth**2 + self.sd**2 + other.sd**2
        gaps = ((self.centres[:, None] - other.centres) ** 2).sum(axis=-1)
        return float((bandwidth**2 / width) ** (D / 2) * np.exp(-gaps / (2.0 * width)).mean())


@dataclass(frozen=True)
class Student:
    """Independent Student variables with 5 degrees of freedom: no sixth moments."""

    centre: np.ndarray
    scale: float = 0.6

    def draw(self, n, rng):
        """Return n rows."""
        return gb.Sample(self.centre + self.scale * rng.standard_t(5.0, size=(n, D)))

    def moments(self):
        """Means of the features of (x·y/d + 1)³."""
        c, v = self.centre, self.scale**2 * 5.0 / 3.0
        raw = np.stack([np.ones(D), c, c**2 + v, c**3 + 3.0 * c * v])
        found = []
        for degree in range(4):
            weight = math.sqrt(math.comb(3, degree) / D**degree)
            for which in product(range(D), repeat=degree):
                powers = np.bincount(np.array(which, dtype=int), minlength=D)
                found.append(weight * raw[powers, np.arange(D)].prod())
        return np.array(found)


@dataclass(frozen=True)
class World:
    """Models and a reference with the true inner products of their mean embeddings, if any."""

    name: str
    models: list[Any]
    reference: Any
    metric: str
    gram: np.ndarray
    n: int

    def draw(self, rng):
        """Return samples of the models, and of the reference where one is used."""
        models = {f"m{k}": model.draw(self.n, rng) for k, model in enumerate(self.models)}
        rke = self.metric == "rke"
        return models, None if rke else self.reference.draw(2 * self.n, rng)

    @property
    def options(self):
        """Options of the metric."""
        return {} if self.metric in ("fd", "kid") else {"bandwidth": BANDWIDTH}

    def truth(self, weights):
        """Return the score of a mixture."""
        if self.metric == "fd":
            return frechet(self.models, weights, self.reference)
        c = np.append(weights, -1.0) if len(self.gram) > len(self.models) else np.asarray(weights)
        square = float(c @ self.gram @ c)
        return 1.0 / square if self.metric == "rke" else square


def frechet(models, weights, reference):
    """Return the Fréchet distance of a mixture from exact moments."""
    means, covs = zip(*(model.mean_and_covariance() for model in models), strict=True)
    mean = np.asarray(weights) @ means
    cov = sum(
        share * (cov + np.outer(one - mean, one - mean))
        for share, one, cov in zip(weights, means, covs, strict=True)
    )
    return gb.frechet_distance(
        gb.Moments(mean, cov), gb.Moments(*reference.mean_and_covariance())
    ).value


def gaussian(name, models, reference, n, *, metric="kad"):
    rke = metric == "rke"
    every = models if rke else [*models, reference]
    width = BANDWIDTH / math.sqrt(2.0) if rke else BANDWIDTH
    gram = np.array([[one.inner(two, width) for two in every] for one in every])
    return World(name, models, reference, metric, gram * (1.0 if rke else FACTOR), n)


def worlds(k, n) -> Iterator[World]:
    """Yield every world with `k` models of `n` rows; the reference has twice as many."""
    rng = np.random.default_rng(k)
    centres = 2.5 * rng.standard_normal((2 * k, D))
    near = centres + 0.4 * rng.standard_normal(centres.shape)
    real, halves = Gaussians(centres), np.split(np.arange(2 * k), k)
    at = f"K={k} n={n}"
    special = [Gaussians(near[half]) for half in halves]
    yield gaussian(f"{at} specialists", special, real, n)
    exact = [Gaussians(centres[half]) for half in halves]
    yield gaussian(f"{at} exact mix, distance 0", exact, real, n)
    poor = [Gaussians(near + 2.0 * rng.standard_normal(D), 1.0) for _ in range(k - 1)]
    yield gaussian(f"{at} one good, rest poor", [Gaussians(near), *poor], real, n)
    yield gaussian(f"{at} all the same", [Gaussians(near)] * k, real, n)
    yield gaussian(f"{at} all perfect", [real] * k, real, n)
    yield gaussian(f"{at} RKE of specialists", special, real, n, metric="rke")
    yield gaussian(f"{at} RKE, all the same", [Gaussians(near)] * k, real, n, metric="rke")
    if k == 4:
        fixed = [Gaussians(near[np.r_[half, half - 2]], balanced=True) for half in halves]
        yield gaussian(f"{at} balanced strata", fixed, Gaussians(centres, balanced=True), n)
        for kind, chosen in {
            "specialists": special, "exact mix, distance 0": exact, "balanced strata": fixed,
            "one good, rest poor": [special[0], *poor], "all the same": [Gaussians(near)] * k,
            "all perfect": [real] * k,
        }.items():  # fmt: skip
            yield World(f"{at} FD, {kind}", chosen, real, "fd", np.empty((0, 0)), n)
        heavy = [Student(row) for row in rng.standard_normal((k, D))]
        target = Student(np.mean([one.centre for one in heavy[:2]], axis=0), 0.7)
        moments = np.array([one.moments() for one in [*heavy, target]])
        yield World(f"{at} heavy tails, KID", heavy, target, "kid", moments @ moments.T, n)


def measure(world: World, runs: int, find: Callable[..., gb.Mixture] = gb.mixture):
    """Return (holds, below the upper end, width, false certificate, certified, true) a run."""
    singles = [world.truth(row) for row in np.eye(len(world.models))]
    best = max(singles) if world.metric == "rke" else min(singles)
    rows, unreliable = [], 0
    for run in range(runs):
        models, real = world.draw(np.random.default_rng([len(singles), world.n, run]))
        found = find(models, real, metric=world.metric, seed=run, options=world.options)
        truth, score = world.truth(list(found.weights.values())), found.score
        gain = truth - best if world.metric == "rke" else best - truth
        rows.append(
            [
                score.low <= truth <= score.high,
                truth <= score.high,
                score.high - score.low,
                found.gain_low > gain + 1e-12,
                max(found.gain_low, 0.0),
                gain,
            ]
        )
        unreliable += not found.reliable
    return np.array(rows, dtype=float), unreliable


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--cells", default="*")
    parser.add_argument("--sizes", default="4x100 4x500 8x250")
    options = parser.parse_args(argv)
    columns = "world | coverage | upper end | width | false certificates | certified | true gain"
    print(f"| {columns} |\n|{'---|' * 7}", flush=True)
    start = time.process_time()
    for size in options.sizes.split():
        for world in worlds(*map(int, size.split("x"))):
            if not fnmatch(world.name, f"*{options.cells}*"):
                continue
            rows, unreliable = measure(world, options.runs)
            holds, upper, width, false, certified, gain = rows.mean(axis=0)
            low, high = exact_limits(int(rows[:, 0].sum()), len(rows))
            bad_low, bad_high = exact_limits(int(rows[:, 3].sum()), len(rows))
            mark = f" ({unreliable} unreliable)" if unreliable else ""
            print(
                f"| {world.name}{mark} | {holds:.3f} [{low:.3f}, {high:.3f}] | {upper:.3f} | "
                f"{width:.3g} | {false:.3f} [{bad_low:.3f}, {bad_high:.3f}] | {certified:.3g} | "
                f"{gain:.3g} |",
                flush=True,
            )
    print(f"\n{options.runs} runs a row, {time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
