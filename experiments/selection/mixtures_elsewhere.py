"""Whether the bound of a mixture's gap holds on data that it was not built on.

    python -m experiments.selection.mixtures_elsewhere [--runs 300] [--only "line*"]

Every model and the reference is a large pool of rows, drawn from at random with a little noise, so
that the mean kernels between them, and with these the gap of any shares, are those of the pools.
Counted are runs in which the bound lay below the true gap at any of their looks (nominal: 5 %).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import genbounds as gb
from experiments.record import exact_limits, record, stamp
from genbounds.estimators.kernels._cross_fitted import simplex_minimum
from genbounds.mixtures._online import MixtureLoop
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection_mixture.md"
ROWS = 10_000
NOISE = 1e-3
"""Of the standard deviation, so that rows that are drawn twice are no copies."""

BLOCK = 2_000


@dataclass(frozen=True)
class World:
    """Pools of models and, last, of the reference; how they are scored, and at which looks."""

    name: str
    pools: list[Float]
    metric: str
    reference: int
    options: dict[str, Any] = field(default_factory=dict)
    looks: dict[str, Any] = field(default_factory=dict)

    def draw(self, pool: int, n: int, rng: np.random.Generator) -> Float:
        """Return n rows of a pool, near enough to those that it has."""
        rows = self.pools[pool]
        chosen = rows[rng.integers(len(rows), size=n)]
        return chosen + NOISE * rows.std() * rng.standard_normal(chosen.shape)

    def gram(self) -> Float:
        """Mean kernels between all pools."""
        count = len(self.pools)
        found = np.zeros((count, count))
        for i, one in enumerate(self.pools):
            for j, two in enumerate(self.pools[: i + 1]):
                found[i, j] = found[j, i] = mean_kernel(self.kernel, one, two)
        return found

    @property
    def kernel(self) -> Callable[[Float, Float], Float]:
        """The kernel of the metric, as its page defines it."""
        if self.metric == "kid":
            degree, d = self.options.get("degree", 3), self.pools[0].shape[1]
            return lambda x, y: (x @ y.T / d + 1.0) ** degree
        if self.metric == "energy":
            return lambda x, y: -np.sqrt(squares(x, y))
        width, unit = self.options["bandwidth"], 100.0 if self.metric == "kad" else 1.0
        return lambda x, y: unit * np.exp(-squares(x, y) / (2.0 * width**2))

    def gap(self) -> Callable[[Float], float]:
        """Return how far the score of shares is from the best."""
        gram = self.gram()
        to = gram[:-1, -1]
        square = gram[:-1, :-1]
        if self.metric != "rke":
            square = square - to[:, None] - to + gram[-1, -1]
        best = simplex_minimum(square)
        least = best @ square @ best

        def gap(shares: Float) -> float:
            found = shares @ square @ shares
            return float(1.0 / least - 1.0 / found if self.metric == "rke" else found - least)

        return gap


def squares(x: Float, y: Float) -> Float:
    """Return the squared distances of all pairs."""
    found: Float = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2.0 * x @ y.T
    return np.maximum(found, 0.0)


def mean_kernel(kernel: Callable[[Float, Float], Float], x: Float, y: Float) -> float:
    """Return the mean over all pairs."""
    steps = range(0, len(x), BLOCK), range(0, len(y), BLOCK)
    total = sum(
        kernel(x[i : i + BLOCK], y[j : j + BLOCK]).sum() for i in steps[0] for j in steps[1]
    )
    return float(total) / (len(x) * len(y))


def halves(rng: np.random.Generator, d: int, sd: float | tuple[float, float]) -> list[Float]:
    """Two models on either side of the reference, of which each is a half."""
    spread = np.broadcast_to(sd, 2)
    pools = [side * np.eye(d)[0] + s * rng.standard_normal((ROWS, d)) for side, s in
             zip((-1.0, 1.0), spread, strict=True)]  # fmt: skip
    return [*pools, np.concatenate(pools)]


def simplex(rng: np.random.Generator, count: int, sd: float) -> list[Float]:
    """As many models as a simplex has corners, and their mean."""
    corners = np.eye(count) - 1.0 / count
    axes = np.linalg.svd(np.ones((1, count)))[2][1:]
    pools = [corner @ axes.T * np.sqrt(count) + sd * rng.standard_normal((ROWS // 4, count - 1))
             for corner in corners]  # fmt: skip
    return [*pools, np.concatenate(pools)]


def student(rng: np.random.Generator, d: int) -> list[Float]:
    """Three models to one side each, with five degrees of freedom."""
    return [2.0 * centre + rng.standard_t(5, (ROWS, d)) for centre in (*np.eye(d)[:3], np.zeros(d))]


def digits(rng: np.random.Generator, d: int) -> list[Float]:
    """Five models that know two digits each: moved, noisy images through a random network."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    first = rng.standard_normal((64, 1024)) / 8.0
    second = rng.standard_normal((1024, d)) * np.sqrt(2.0 / 1024)
    pools = []
    for digit in range(0, 10, 2):
        known = images[(labels == digit) | (labels == digit + 1)].reshape(-1, 8, 8) / 16.0
        x = known[rng.integers(len(known), size=ROWS // 4)]
        moves = rng.integers(-1, 2, size=len(x))
        x = np.stack([np.roll(one, move, axis=1) for one, move in zip(x, moves, strict=True)])
        x = x.reshape(-1, 64) + 0.1 * rng.standard_normal((len(x), 64))
        pools.append(np.maximum(np.maximum(x @ first, 0.0) @ second, 0.0))
    return [*pools, np.concatenate(pools)]


def rare(rng: np.random.Generator, share: float, far: float) -> list[Float]:
    """Return a model that is a little off, and one that is right but for a few rows far away."""
    one, two, real = rng.standard_normal((3, ROWS, 4))
    two[rng.random(ROWS) < share, 0] += far
    return [one + 0.25 * np.eye(4)[1], two, real]


def worlds() -> Iterator[World]:
    """Yield all of them."""
    rng = np.random.default_rng(11)
    line, linear = halves(rng, 1, 3.0), {"degree": 1}
    three, eight = {"limit": 300, "growth": 1.5}, {"limit": 477, "growth": 1.25}
    yield World("line, two halves, 4 looks", line, "kid", 800, linear, three)
    yield World("line, two halves, 8 looks", line, "kid", 800, linear, eight)
    unequal = halves(rng, 1, (1.0, 5.0))
    yield World("line, unequal noise", unequal, "kid", 400, linear, {"limit": 300, "growth": 1.25})
    near = halves(rng, 1, 2.5)
    yield World("line, two halves, KAD", near, "kad", 400, {"bandwidth": 6.0}, three)
    yield World("line, two halves, energy", near, "energy", 400, {}, three)
    four = halves(rng, 4, 2.5)
    yield World("four features, two halves, KAD", four, "kad", 400, {"bandwidth": 5.0}, three)
    yield World(
        "simplex of ten", simplex(rng, 10, 1.0), "kid", 400, linear, {"limit": 175, "growth": 1.75}
    )
    made, short = digits(rng, 32), {"limit": 200, "growth": 1.5}
    yield World("digits, five specialists, KID", made, "kid", 150, {}, short)
    yield World("digits, five specialists, energy", made, "energy", 150, {}, short)
    yield World("t with 5 degrees, energy", student(rng, 4), "energy", 200, {}, short)
    yield World("2 % rare rows, energy", rare(rng, 0.02, 12.0), "energy", 200, {}, short)
    yield World("2 % rare rows, KID", rare(rng, 0.02, 6.0), "kid", 200, {}, short)
    yield World("digits, five specialists, RKE", made, "rke", 0, {"bandwidth": 1.5}, short)
    yield World("t with 5 degrees, RKE", student(rng, 4), "rke", 0, {"bandwidth": 2.0}, short)


def bounds(world: World, seed: int, gap: Callable[[Float], float]) -> list[tuple[float, float]]:
    """Return bound and true gap at every look of a run that never certifies."""
    seen, look, models = [], MixtureLoop._look, len(world.pools) - 1

    def recorded(self):
        found = look(self)
        if len(found.live) == models:
            seen.append((found.gaps.high, gap(found.weights)))
        return found

    def arm(k: int) -> Callable[[int, np.random.Generator], Float]:
        return lambda n, rng: world.draw(k, n, rng)

    real = world.draw(models, world.reference, np.random.default_rng([1, seed]))
    with patch.object(MixtureLoop, "_look", recorded):
        gb.select.run(
            {f"m{k}": arm(k) for k in range(models)},
            gb.Sample(real) if world.reference else None,
            metric=world.metric,
            options=world.options or None,
            target="mixture",
            tolerance=1e-9,
            batch=20,
            first_look=100,
            seed=seed,
            **world.looks,
        )
    return seen


def main(argv: list[str] | None = None) -> None:
    """Run the worlds and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", default="*", help="shell pattern of worlds")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    lines = [
        f"{stamp()} {options.runs} runs a row.",
        "",
        "| data | below the true gap at any look | mean gap, first and last look | mean bound |",
        "|---|---|---|---|",
    ]
    for world in worlds():
        if not fnmatch(world.name, options.only):
            continue
        gap = world.gap()
        found = [seen for seed in range(options.runs) if (seen := bounds(world, seed, gap))]
        wrong = sum(any(high < true - 1e-12 for high, true in run) for run in found)
        low, high = exact_limits(wrong, len(found))
        first, last = (np.mean([run[at] for run in found], axis=0) for at in (0, -1))
        lines.append(
            f"| {world.name} | {wrong} of {len(found)}: {wrong / len(found):.3f} "
            f"[{low:.3f}, {high:.3f}] | {first[1]:.3g}, {last[1]:.3g} | {first[0]:.3g}, "
            f"{last[0]:.3g} |"
        )
        print(lines[-1], flush=True)
    record("mixtures-elsewhere", lines, page=options.page)


if __name__ == "__main__":
    main()
