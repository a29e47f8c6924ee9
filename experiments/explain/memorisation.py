"""How often `gb.memorisation` sees copies where there are none, and how many it finds.

    python -m experiments.explain.memorisation [--runs 160] [--cells 'modes, d = 64*'] [--write]

Prints a table; ``--write`` puts it into docs/evidence/memorisation.md; ``--near`` makes that of
rows which are no plain copies: with ever more noise, or half-way between neighbours. Generators
that copy nothing: fresh rows of the distribution ("ideal"), rows shrunk towards the centre of
their mode ("sharp"), and ten Gaussians fitted to the training rows ("ten Gaussians"; under heavy
tails some are fitted to single rows, and copy these). Copies: fresh rows, of which some are
training rows plus noise, a multiple of the typical distance between neighbouring training rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.record import crossed, exact_limits, first, record, stamp, write_data

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "memorisation.md"
ROWS = 1000
LEVEL = 0.95

Array = NDArray[Any]
Rng = np.random.Generator
Draw = Callable[..., Array]


def modes(d: int, rng: Rng) -> Draw:
    """Ten modes whose directions vary less and less."""
    spread = (1.0 + np.arange(d)) ** -0.25
    centres = 2.0 * rng.normal(size=(10, d)) * spread

    def draw(n: int, sharp: float = 1.0) -> Array:
        return centres[rng.integers(10, size=n)] + sharp * spread * rng.normal(size=(n, d))

    return draw


def tails(d: int, rng: Rng) -> Draw:
    """Student's t with 3 degrees of freedom, one factor a row; correlated features."""
    mix = rng.normal(size=(d, d)) / np.sqrt(np.arange(1, d + 1))

    def draw(n: int, sharp: float = 1.0) -> Array:
        scale = np.sqrt(3.0 / rng.chisquare(3, size=(n, 1)))
        return sharp * scale * (rng.normal(size=(n, d)) @ mix)

    return draw


@cache
def images() -> Array:
    from sklearn.datasets import load_digits

    return load_digits().data


def digits(rng: Rng) -> Draw:
    """Real handwritten digits, pixels; every row once."""
    rows = iter(np.split(rng.permutation(images()), [600, 1200]))

    def draw(n: int, sharp: float = 1.0) -> Array:
        x = next(rows)[:n]
        return x.mean(axis=0) + sharp * (x - x.mean(axis=0))

    return draw


WORLDS: dict[str, tuple[Callable[[Rng], Draw], int, int]] = {
    **{f"modes, d = {d}": (partial(modes, d), ROWS, ROWS) for d in (2, 4, 8, 16, 64, 512)},
    "modes, d = 64, 250 held out": (partial(modes, 64), ROWS, 250),
    "heavy tails, d = 32": (partial(tails, 32), ROWS, ROWS),
    "digits, 600 of each": (digits, 600, 600),
}
"""How real rows are drawn, and how many are trained on and held out."""

HONEST = ("ideal", "sharp", "ten Gaussians")
COPIES = {
    f"{share:.0%} copies, noise {noise}": (share, noise)
    for noise in (0.1, 0.5)
    for share in (0.01, 0.05, 0.3)
}


def fitted(train: Array, n: int, rng: Rng) -> Array:
    """Draw from ten Gaussians, each fitted to the training rows of one cell of k-means."""
    from sklearn.cluster import KMeans

    cell = KMeans(10, n_init=1, random_state=int(rng.integers(2**31))).fit_predict(train)
    parts = []
    for k in range(10):
        x = train[cell == k]
        weights = rng.normal(size=(round(n * len(x) / len(train)), len(x)))
        parts.append(x.mean(axis=0) + weights @ (x - x.mean(axis=0)) / max(len(x) - 1, 1) ** 0.5)
    return np.concatenate(parts)


def copied(train: Array, source: Array, noise: float, rng: Rng) -> Array:
    from sklearn.neighbors import NearestNeighbors

    typical = np.median(NearestNeighbors(n_neighbors=1).fit(train).kneighbors()[0])
    error = rng.normal(size=(len(source), train.shape[1]))
    error /= np.linalg.norm(error, axis=1, keepdims=True)
    return train[source] + noise * typical * error


def halfway(train: Array, source: Array, rng: Rng) -> Array:
    """Return rows half-way between training rows and one of the five nearest to each."""
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=5).fit(train).kneighbors()[1]
    return (train[source] + train[near[source, rng.integers(5, size=source.size)]]) / 2.0


NEAR_WORLDS = ("modes, d = 8", "modes, d = 64", "heavy tails, d = 32", "digits, 600 of each")
NEAR_KINDS = {**{f"noise {noise}": noise for noise in (0.6, 0.9)}, "half-way": None}
NEAR_SHARE = 0.3
NEAR_HEAD = ("real rows", "rows", "near copies", "copies, p ≤ 0.05", "bound / rows")


def near_row(world: str, kind: str, runs: int, seed: int) -> tuple[str, ...]:
    """How many rows of a kind count as near copies, and what the test says of 30 % of them."""
    streams = np.random.SeedSequence([seed, *map(ord, world + kind)]).spawn(runs)
    near, copies, bound = [], [], []
    for rng in map(np.random.default_rng, streams):
        law, n, held_n = WORLDS[world]
        draw = law(rng)
        train, heldout, fake = draw(n), draw(held_n), draw(n)
        source = rng.choice(n, round(NEAR_SHARE * n), replace=False)
        noise = NEAR_KINDS[kind]
        made = halfway(train, source, rng) if noise is None else copied(train, source, noise, rng)
        k = min(source.size, len(fake))
        fake[:k] = made[:k]
        result = gb.memorisation(fake, train, heldout, level=LEVEL)
        near.append(float((result.ratio[:k] <= result.closer).mean()))
        copies.append(result.copies)
        bound.append(result.copies_low / k)
    return world, kind, f"{np.mean(near):.2f}", rate(copies), f"{np.mean(bound):.2f}"


def near_page(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the table of these rows."""
    cells = {
        (w, k): f"{float(near):.2g} / {float(first(copies)):.2g}" for w, k, near, copies, _ in rows
    }
    return [
        "Near copies among such rows, three tenths of all / share of runs with p ≤ 0.05.",
        "",
        *crossed(cells, "real rows"),
        "",
        "[Limits, and the bounds](data/memorisation_near.csv).",
    ]


@dataclass(frozen=True)
class Outcome:
    """What one run says: alarms, the bound against the truth, the list against the truth."""

    dependence: bool
    copies: bool
    bound: float
    too_high: bool
    wrong: float
    found: float


def run(world: str, kind: str, rng: Rng) -> Outcome:
    """Make real and generated rows, and test."""
    law, n, held_n = WORLDS[world]
    draw = law(rng)
    train, heldout = draw(n), draw(held_n)
    share, noise = COPIES.get(kind, (0.0, 0.0))
    fake = fitted(train, n, rng) if kind == "ten Gaussians" else draw(n, *[0.7][: kind == "sharp"])
    source = rng.choice(n, round(share * n), replace=False)
    if share:
        fake[: source.size] = copied(train, source, noise, rng)[: len(fake)]
    result = gb.memorisation(fake, train, heldout, level=LEVEL)
    rows = np.array([suspect.train_row for suspect in result.suspects], dtype=int)
    return Outcome(
        dependence=result.pvalue <= 1.0 - LEVEL,
        copies=result.copies,
        bound=result.copies_low / max(source.size, 1),
        too_high=result.copies_low > source.size,
        wrong=np.isin(rows, source, invert=True).sum() / max(rows.size, 1),
        found=np.isin(source, rows).mean() if share else 0.0,
    )


def rate(values: list[bool]) -> str:
    """Return a rate with its exact 95 % interval."""
    low, high = exact_limits(sum(values), len(values))
    return f"{np.mean(values):.3f} [{low:.3f}, {high:.3f}]"


def row(world: str, kind: str, runs: int, seed: int) -> tuple[str, ...]:
    """Measure one cell of the table."""
    streams = np.random.SeedSequence([seed, *map(ord, world + kind)]).spawn(runs)
    found = [run(world, kind, np.random.default_rng(stream)) for stream in streams]
    few = kind in COPIES
    return (
        world,
        kind,
        rate([one.dependence for one in found]),
        rate([one.copies for one in found]),
        f"{np.mean([one.bound for one in found]):.2f}" if few else "–",
        rate([one.too_high for one in found]),
        f"{np.mean([one.wrong for one in found]):.3f}",
        f"{np.mean([one.found for one in found]):.2f}" if few else "–",
    )


HEAD = (
    "real rows",
    "generator",
    "p ≤ 0.05",
    "copies, p ≤ 0.05",
    "bound / copied",
    "bound too high",
    "list: wrong",
    "list: found",
)


def page(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the page shows: rates of error of honest generators, and what is found."""
    honest, copied = {}, {}
    for world, kind, dependence, copies, bound, high, wrong, found in rows:
        rates = [first(rate) for rate in (dependence, copies, high)]
        if kind in HONEST:
            honest[world, kind] = " / ".join(rates)
        else:
            copied[world, kind] = " / ".join((rates[1], bound, rates[2], wrong, found))
    return [
        "Generators that copy nothing: share of runs with p ≤ 0.05 / with a p-value of copies "
        "≤ 0.05 / with a lower bound of the copies above 0.",
        "",
        *crossed(honest, "real rows"),
        "",
        "Generators that copy: copies are significant / lower bound over the number copied / it is "
        "too high / share of the list that is wrong / share of the copies that is listed.",
        "",
        *crossed(copied, "real rows"),
        "",
        "[Exact 95 % limits of each](data/memorisation.csv).",
    ]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=160, help="of honest generators; an eighth with copies"
    )
    parser.add_argument("--cells", default="*", help="of real rows, such as 'modes*'")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="into docs/evidence/memorisation.md")
    parser.add_argument("--near", action="store_true", help="rows that are no plain copies")
    options = parser.parse_args(argv)
    rows = []
    if options.near:
        for world in NEAR_WORLDS:
            for kind in NEAR_KINDS:
                rows.append(near_row(world, kind, max(1, options.runs // 8), options.seed))
                print(*rows[-1], sep=" | ", flush=True)
        if options.write:
            command = (
                f"python -m experiments.explain.memorisation --near --runs {options.runs} --write"
            )
            write_data("memorisation_near", NEAR_HEAD, rows, page=PAGE)
            text = [f"`{command}`, {stamp()}", "", *near_page(rows)]
            record("memorisation-near", text, page=PAGE)
        return 0
    for world in WORLDS:
        if not fnmatchcase(world, options.cells):
            continue
        for kind in (*HONEST, *COPIES):
            runs = options.runs if kind in HONEST else max(1, options.runs // 8)
            rows.append(row(world, kind, runs, options.seed))
            print(*rows[-1], sep=" | ", flush=True)
    if options.write:
        command = f"python -m experiments.explain.memorisation --runs {options.runs} --write"
        write_data("memorisation", HEAD, rows, page=PAGE)
        record("memorisation", [f"`{command}`, {stamp()}", "", *page(rows)], page=PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
