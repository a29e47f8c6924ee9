"""What a cheap partner saves, and whether its intervals hold.

``python -m experiments.accuracy.two_levels`` (some 40 minutes) records two tables in
docs/evidence/two_levels.md:

* eight clusters of which every moment is known, scored against exact and sampled references;
* the diffusion model of `experiments.digits` with 64 sampling steps, and itself with fewer as the
  partner. Noises are drawn with replacement from a pool whose distance is computed: the truth.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.record import picture, rate, record, stamp, table
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "two_levels.md"
CACHE = Path(__file__).parents[2] / ".cache" / "digits"
COLUMNS = [
    "noise alike",
    "d",
    "n",
    "N/n",
    "reference",
    "r",
    "variance left (formula)",
    "bias/sd",
    "covered",
    "warned",
]
CLUSTERS = 8
N, TIMES = 500, 10
POOL, STEPS, PARTNERS = 40_000, 64, (16, 8, 4, 2)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table.

    `alike` is the correlation of both models' noise; the partner's further draws are `wider` by
    that factor, as those of another partner.
    """

    alike: float
    d: int = 16
    n: int = N
    times: int = TIMES
    reference: int | None = None
    wider: float = 1.0


CELLS = (
    *(Cell(alike=alike) for alike in (0.0, 0.3, 0.7, 0.9, 0.99)),
    Cell(alike=0.9, times=5),
    Cell(alike=0.99, times=50),
    Cell(alike=0.9, n=1000),
    Cell(alike=0.99, n=200),
    Cell(alike=0.9, d=64, n=1000),
    Cell(alike=0.99, d=64),
    Cell(alike=0.99, reference=1000),
    Cell(alike=0.7, n=200, times=5, reference=500),
    Cell(alike=0.9, wider=1.04),
    Cell(alike=0.9, wider=1.1),
)


class Clusters:
    """Equal clusters with centres on the axes: draws, and exact moments."""

    def __init__(self, d: int, spread: float, noise: float, shift: float) -> None:
        self.d, self.noise = d, noise
        self.centres = spread * np.eye(CLUSTERS, d) + shift
        around = self.centres - self.centres.mean(axis=0)
        covariance = around.T @ around / CLUSTERS + noise**2 * np.eye(d)
        self.moments = gb.Moments(self.centres.mean(axis=0), covariance)

    def draw(self, which: NDArray[Any], noise: Float) -> Float:
        """Return the rows of these clusters with this noise."""
        rows: Float = self.centres[which] + self.noise * noise
        return rows


def noises(rng: np.random.Generator, n: int, d: int) -> tuple[NDArray[Any], Float]:
    """Return clusters and noise of n rows."""
    return rng.integers(CLUSTERS, size=n), rng.normal(size=(n, d))


class Seen:
    """What became of all runs of a cell."""

    def __init__(self, truth: float) -> None:
        self.truth, self.hits = truth, 0
        self.codes: Counter[str] = Counter()
        self.found: list[tuple[float, float, float]] = []

    def add(self, found: gb.TwoLevel) -> None:
        """Take up one run."""
        self.found.append((found.value, found.plain.value, found.correlation))
        self.hits += found.low <= self.truth <= found.high
        self.codes.update({warning.code for warning in found.warnings})

    def columns(self, times: float) -> list[str]:
        """Variance left, bias and coverage."""
        values, plain, r = np.array(self.found).T
        left = np.var(values) / np.var(plain)
        formula = 1.0 - float(np.mean(r)) ** 2 * times / (times + 1.0)
        bias = (values.mean() - self.truth) / values.std()
        shown = [f"{np.mean(r):.2f}", f"{left:.2f} ({formula:.2f})", f"{bias:+.2f}"]
        codes = [f"{code} {n / len(values):.1%}" for code, n in sorted(self.codes.items())]
        return [*shown, rate(self.hits, len(values)), ", ".join(codes)]


def line(cell: Cell, runs: int) -> list[str]:
    """Return the line of one cell."""
    real, model, partner = (
        Clusters(cell.d, *law) for law in ((3.0, 1.0, 0.0), (2.8, 1.1, 0.05), (2.6, 1.2, 0.12))
    )
    exact = gb.frechet_distance(model.moments, real.moments).value
    rng, seen = np.random.default_rng([cell.d, cell.n, cell.times]), Seen(exact)
    for _ in range(runs):
        which, noise = noises(rng, cell.n, cell.d)
        other = rng.normal(size=noise.shape)
        mixed = cell.alike * noise + math.sqrt(1.0 - cell.alike**2) * other
        reference = real.moments
        if cell.reference is not None:
            reference = real.draw(*noises(rng, cell.reference, cell.d))
        own = which if cell.alike > 0.0 else rng.integers(CLUSTERS, size=cell.n)
        more = cell.wider * partner.draw(*noises(rng, cell.n * cell.times, cell.d))
        seen.add(gb.two_level(model.draw(which, noise), partner.draw(own, mixed), more, reference))
    known = "exact" if cell.reference is None else f"{cell.reference:,} rows"
    alike = f"{cell.alike:g}" + f"; further ones × {cell.wider:g}" * (cell.wider != 1.0)
    first = [alike, str(cell.d), str(cell.n), str(cell.times), known]
    return [*first, *seen.columns(cell.times)]


def digits(runs: int, pool: int) -> list[list[str]]:
    """Return a line for every number of steps of the partner."""
    from experiments.digits.train import prepare

    prepared = prepare(CACHE)
    arm = prepared.arms()["diffusion"]
    generator: Any = arm.generator
    codes = np.random.default_rng(0).normal(size=(pool, generator.latent)).astype(np.float32)

    def rows(steps: int) -> Float:
        config = replace(generator.config, sampling_steps=steps)
        pixels = replace(generator, config=config).decode(codes)
        images = np.clip(pixels, 0.0, 1.0).reshape(-1, 8, 8).astype(np.float32)
        features: Float = arm.encoder.features(images)
        return features.astype(np.float64)

    real = gb.Moments.from_features(prepared.reference())
    real = gb.Moments(real.mean, real.cov)
    expensive = rows(STEPS)
    every = gb.Moments(expensive.mean(axis=0), np.cov(expensive.T, bias=True))
    truth = gb.frechet_distance(every, real).value
    out = []
    for steps in PARTNERS:
        cheap, rng, seen = rows(steps), np.random.default_rng(steps), Seen(truth)
        for _ in range(runs):
            common, more = rng.integers(pool, size=N), rng.integers(pool, size=N * TIMES)
            seen.add(gb.two_level(expensive[common], cheap[common], cheap[more], real))
        left = float(seen.columns(TIMES)[1].split()[0])
        calls = STEPS + steps + TIMES * steps  # of one image, with its share of further draws
        gain = STEPS / left / calls
        out.append([f"{STEPS} and {steps}", *seen.columns(TIMES), f"{gain:.1f}"])
    return out


def main(argv: list[str] | None = None) -> int:
    """Record the tables and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--digits", type=int, default=400, help="runs of the diffusion model")
    parser.add_argument("--pool", type=int, default=POOL, help="noises of the diffusion model")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    if options.runs:
        lines = [line(cell, options.runs) for cell in CELLS]
        head = f"{stamp()} {options.runs} runs a line."
        record("two-levels", [head, "", *table(COLUMNS, lines)], page=options.page)
    if options.digits:
        lines = digits(options.digits, options.pool)
        head = f"{stamp()} {options.digits} runs a line, n = {N}, N/n = {TIMES}"
        columns = ["steps", *COLUMNS[5:], "plain network calls for the same error, over these"]
        shown = [f"{head}, {options.pool:,} noises.", "", *table(columns, lines)]
        image = picture("two-levels", lambda axes: paint(axes, lines), page=options.page)
        record("two-levels-digits", [*shown, "", image], page=options.page)
    return 0


def paint(axes: Any, lines: list[list[str]]) -> None:
    """Draw the error against the network calls, both over those of the plain score."""
    calls = np.geomspace(0.5, 8.0, 50)
    axes.plot(calls, calls**-0.5, color="0.5", label="more images of the model alone")
    for name, _, left, *_ in lines:
        steps = int(name.split()[-1])
        cost = (STEPS + steps + TIMES * steps) / STEPS
        axes.plot(cost, math.sqrt(float(left.split()[0])), "o", label=f"partner of {steps} steps")
    axes.set_xlabel("network calls, over those of 500 images of the model")
    axes.set_ylabel("standard error, over theirs")
    axes.set_ylim(0.0, 1.5)
    axes.legend(frameon=False)


if __name__ == "__main__":
    raise SystemExit(main())
