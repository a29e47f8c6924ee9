"""Coverage of the intervals of `compare_recipes` with few training seeds, and of `best_of`.

    python -m experiments.accuracy.recipes [--values 4000] [--runs 1000] [--only 'runs*']

The tables of docs/evidence/recipes.md. Rows "values" draw the scores of training runs as normal
values whose variances are known; rows "runs" draw the features of every run. Either way all runs
share one reference. "Seeds ignored" takes the variances of the samples only, as an interval between
two models does. ``--only`` takes a shell pattern of row names; rows that were not asked for stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from zlib import crc32

import numpy as np

import genbounds as gb
from experiments.record import rate, record, record_briefly, recorded_rows, stamp, table
from genbounds.decisions import rank_recipes
from genbounds.estimators import Estimate, SampleError, estimate_all
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "recipes.md"
Rng = np.random.Generator
Runs = dict[str, list[Estimate]]


@dataclass(frozen=True)
class Row:
    """One row: how to draw the runs of recipes "a" and "b", and their true scores."""

    name: str
    draw: Callable[[Rng], Runs]
    truths: dict[str, float]
    metric: str = "fd"


def values(k: int, tau: float) -> Callable[[Rng], Runs]:
    """Draw normal scores; the standard deviation of samples is about 1, that of seeds `tau`."""
    size = 400

    def influence(rng: Rng) -> Float:
        x = rng.normal(size=size)
        return x - x.mean()

    def draw(rng: Rng) -> Runs:
        common, noise = influence(rng), rng.normal(size=size)
        found: Runs = {}
        for name in ("a", "b"):
            # Of the reference's noise most is common to both recipes, and has variance 1.
            part = np.sqrt(size) * (0.9 * common + 0.4 * influence(rng))
            shared = float(part @ noise) / size
            found[name] = []
            for _ in range(k):
                within = rng.uniform(0.7, 1.3)
                value = np.sqrt(within + tau**2) * rng.normal() + shared
                found[name].append(
                    Estimate(
                        value=float(value),
                        sample=SampleError(n=1000, variance=within),
                        reference=SampleError(
                            n=size, variance=float(part @ part) / (size - 1) / size, influence=part
                        ),
                    )
                )
        return found

    return draw


def distances(metric: str, k: int, tau: float, *, d: int = 8, n: int = 300, m: int = 1200) -> Row:
    """Draw features: a seed widens the model (FD) or moves it (KID) by a normal amount."""
    excess = {"a": 0.30, "b": 0.35}

    def model(by: float, rng: Rng) -> gb.Sample:
        by += tau * rng.normal()
        x = rng.normal(size=(n, d))
        return gb.Sample((1.0 + by) * x if metric == "fd" else by + x)

    def draw(rng: Rng) -> Runs:
        real = gb.Sample(rng.normal(size=(m, d)))
        samples = {f"{name}{i}": model(by, rng) for name, by in excess.items() for i in range(k)}
        found = estimate_all(samples, real, metric=metric)
        return {name: [found[f"{name}{i}"] for i in range(k)] for name in excess}

    truth = frechet_truth if metric == "fd" else kernel_truth
    name = (
        f"runs: {metric.upper()}, {k} seeds, d = {d}, n = {n}, "
        f"sd of seeds {tau:g} in {'scale' if metric == 'fd' else 'mean'}"
    )
    truths = {recipe: truth(by, tau, d) for recipe, by in excess.items()}
    return Row(name, draw, truths, metric=metric)


def frechet_truth(by: float, tau: float, d: int) -> float:
    """Mean FD of N(0, s² I) and N(0, I) over s with mean 1 + `by` and deviation `tau`."""
    return d * (by**2 + tau**2)


def kernel_truth(by: float, tau: float, d: int) -> float:
    """Mean KID of N(s 1, I) and N(0, I) over s with mean `by` and deviation `tau`.

    From the first three moments, which the kernel compares; a polynomial of degree 6 in s.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(4)
    square = d * (by + tau * nodes) ** 2  # squared length of the mean
    third = square**3 + 6.0 * square**2 + (3.0 * d + 6.0) * square
    distance = 3.0 * square / d + 3.0 * (square / d) ** 2 + third / d**3
    return float(weights @ distance / weights.sum())


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for k in (3, 5, 10):
        for tau in (0.0, 1.0, 3.0):
            name = f"values: {k} seeds, sd of seeds {tau:g} of that of samples"
            yield Row(name, values(k, tau), {"a": 0.0, "b": 0.0})
    for metric in ("fd", "kid"):
        for k in (3, 5, 10):
            for tau in (0.0, 0.02, 0.06):
                yield distances(metric, k, tau)


COLUMNS = (
    "recipes",
    "replications",
    "difference covered",
    "half-width",
    "each score covered",
    "seeds ignored",
)


def measure(row: Row, count: int, seed: int) -> list[str]:
    """Return the cells of a row."""
    covered = ignored = each = 0
    widths = []
    for number in range(count):
        rng = np.random.default_rng([seed, crc32(row.name.encode()), number])
        runs = row.draw(rng)
        ranking = rank_recipes(runs, metric=row.metric)
        pair = ranking.difference("a", "b")
        covered += pair.low <= row.truths[pair.better] - row.truths[pair.worse] <= pair.high
        widths.append((pair.high - pair.low) / 2.0)
        scores = ranking.scores
        each += sum(scores[name].low <= x <= scores[name].high for name, x in row.truths.items())
        errors = [
            np.mean([run.value for run in own]) - row.truths[name] for name, own in runs.items()
        ]
        within = [run.sample.variance / len(own) ** 2 for own in runs.values() for run in own]
        ignored += abs(errors[0] - errors[1]) <= 1.96 * np.sqrt(sum(within))
    return [
        f"{count:,}",
        rate(covered, count),
        f"{np.mean(widths):.3g}",
        rate(each, 2 * count),
        f"{ignored / count:.0%}",
    ]


BEST = ("evaluations", "replications", "bias", "corrected", "plain covers", "covers", "half-width")


def best(k: int, count: int, seed: int) -> list[str]:
    """Measure `best_of` on the least of k normal values with standard error 1."""
    rng = np.random.default_rng([seed, k])
    least = rng.normal(size=(count, k)).min(axis=1)
    score = gb.Score(
        value=0.0, low=-1.96, high=1.96, level=0.95, stderr=1.0, n=None, estimator="debiased",
        method="second-order",
    )  # fmt: skip
    found = gb.best_of(score, k)
    covered = int(((least + found.low <= 0.0) & (least + found.high >= 0.0)).sum())
    return [
        str(k),
        f"{count:,}",
        f"{least.mean():+.3f}",
        f"{(least + found.value).mean():+.3f}",
        rate(int((np.abs(least) <= 1.96).sum()), count),
        rate(covered, count),
        f"{(found.high - found.low) / 2.0:.2f}",
    ]


def main(argv: list[str] | None = None) -> int:
    """Measure every row and write the table after each."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.recipes", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--values", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*")
    options = parser.parse_args(argv)
    for row in rows():
        if fnmatch(row.name, options.only):
            count = options.values if row.name.startswith("values") else options.runs
            cells = measure(row, count, options.seed)
            write(row.name, cells, options.seed)
            print(row.name, *cells, sep=" | ", file=sys.stderr, flush=True)
    if fnmatch("best", options.only):
        lines = table(BEST, [best(k, 100 * options.values, options.seed) for k in (2, 3, 5, 10)])
        record("best", [f"Seed {options.seed}; {stamp()}", "", *lines], page=PAGE)
    return 0


def write(name: str, cells: list[str], seed: int) -> None:
    """Replace one row of the table."""
    known = recorded_rows("recipes", key=1, page=PAGE)
    (line,) = table(COLUMNS, [[name, *cells]])[2:]
    known[(name,)] = line
    lines = [known[(row.name,)] for row in rows() if (row.name,) in known]
    record_briefly("recipes", f"Seed {seed}; {stamp()}", [*table(COLUMNS, []), *lines], page=PAGE)


if __name__ == "__main__":
    raise SystemExit(main())
