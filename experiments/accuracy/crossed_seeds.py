"""Coverage where all groups have the same seeds: ``python -m experiments.accuracy.crossed_seeds``.

Prompts by seeds, told as groups alone and as both. Takes some twenty minutes and records its table
in docs/evidence/sampling.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import LIMITS, rate, record, stamp, write_data
from genbounds.results import Score
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
D = 8
PROMPTS = 0.3
"""Share of the variance that rows of a prompt have in common."""

SHIFT, SCALE, WIDTH = 0.3, 1.1, 3.0


def normal(rng: np.random.Generator, *shape: int) -> Float:
    """Return independent rows of the distribution that every cell has."""
    return np.asarray(SHIFT + SCALE * rng.standard_normal((*shape, D)))


def posteriors(rows: Float) -> Float:
    """Return class probabilities."""
    p = np.exp(2.0 * rows)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def fd(x: gb.Sample, rng: np.random.Generator) -> Score:
    """Fréchet distance to the standard normal distribution."""
    return gb.frechet_distance(x, gb.Moments(np.zeros(D), np.eye(D)))


def kid(x: gb.Sample, rng: np.random.Generator) -> Score:
    """Kernel distance to a standard normal sample."""
    return gb.kernel_inception_distance(x, rng.standard_normal((1000, D)))


def inception(x: gb.Sample, rng: np.random.Generator) -> Score:
    """Inception score."""
    return gb.inception_score(gb.Sample(posteriors(x.features), groups=x.groups, seeds=x.seeds))


def vendi(x: gb.Sample, rng: np.random.Generator) -> Score:
    """Vendi score of order 1, of a kernel by which it has a limit."""
    return gb.vendi_score(x, kernel="cosine")


def rke(x: gb.Sample, rng: np.random.Generator) -> Score:
    """Vendi score of order 2."""
    return gb.vendi_score(x, bandwidth=WIDTH, order=2.0)


def mean(x: gb.Sample, rng: np.random.Generator) -> Score:
    """Mean of the first feature."""
    return gb.mean_score(gb.Sample(x.features[:, :1], groups=x.groups, seeds=x.seeds))


@cache
def truth(score: Callable[..., Score]) -> float:
    """Value of the distribution of a cell, from independent rows where there is no formula."""
    rng = np.random.default_rng(0)
    if score is fd:
        return D * (SHIFT**2 + (SCALE - 1.0) ** 2)
    if score is mean:
        return SHIFT
    if score is inception:
        rows = normal(rng, 2_000_000)
        return gb.inception_score(gb.Sample(posteriors(rows))).value
    if score is vendi:
        return vendi(gb.Sample(normal(rng, 200_000)), rng).value
    if score is kid:
        x, other = normal(rng, 2, 1_000_000), rng.standard_normal((2, 1_000_000, D))
        kernel = [((a * b).sum(axis=1) / D + 1.0) ** 3 for a, b in (x, other, (x[0], other[0]))]
        return float(kernel[0].mean() + kernel[1].mean() - 2.0 * kernel[2].mean())
    return float(np.mean([score(gb.Sample(normal(rng, 2000)), rng).value for _ in range(4)]))


@dataclass(frozen=True)
class Cross:
    """Prompts by seeds; the seeds' share of the variance; the share of cells that is missing."""

    score: Callable[[gb.Sample, np.random.Generator], Score]
    prompts: int
    seeds: int
    share: float
    missing: float = 0.0

    def sample(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draw rows, and the names of their prompts and seeds."""
        p, s = self.prompts, self.seeds
        parts = [
            np.sqrt(PROMPTS) * rng.standard_normal((p, 1, D)),
            np.sqrt(self.share) * rng.standard_normal((1, s, D)),
            np.sqrt(1.0 - PROMPTS - self.share) * rng.standard_normal((p, s, D)),
        ]
        rows = (SHIFT + SCALE * sum(parts)).reshape(-1, D)
        # Some prompts lack more seeds than others.
        lost = 2.0 * self.missing * np.repeat(rng.random(p), s)
        kept = rng.random(p * s) >= lost
        names = {
            "groups": np.repeat(np.arange(p), s)[kept],
            "seeds": np.tile(np.arange(s), p)[kept],
        }
        return {"features": rows[kept], **names}

    def line(self, runs: int) -> list[str]:
        """Score so many samples, told both ways."""
        target, found = truth(self.score), []
        for run in range(runs):
            rng = np.random.default_rng([run, self.prompts, self.seeds, round(1000 * self.share)])
            x = self.sample(rng)
            alone = gb.Sample(x["features"], groups=x["groups"])
            found.append([self.score(one, rng) for one in (alone, gb.Sample(**x))])
        told = [both[1] for both in found]
        covered = [rate(sum(b[k].low <= target <= b[k].high for b in found), runs) for k in (0, 1)]
        spread = float(np.std([one.value for one in told]))
        width = np.median([one.high - one.low for one in told]) / 3.92 / spread
        bias = (np.mean([one.value for one in told]) - target) / spread
        share = f"{self.share:.0%}" + (f", {self.missing:.0%} missing" if self.missing else "")
        kind = f"{self.prompts} × {self.seeds}"
        doubted = rate(sum(not one.reliable for one in told), runs)
        return [self.score.__name__, kind, share, *covered, f"{bias:+.2f}", f"{width:.2f}", doubted]


CROSSES = [
    *(Cross(fd, 250, 4, share) for share in (0.0, 0.02, 0.05, 0.1, 0.3)),
    Cross(fd, 100, 10, 0.1),
    Cross(fd, 200, 8, 0.05, 0.3),
    *(Cross(score, 150, 4, 0.1) for score in (kid, inception, vendi, rke, mean)),
    Cross(mean, 100, 6, 0.1, 0.3),
]
COLUMNS = [
    "score", "prompts × seeds", "share of seeds", "told groups", "told both", "bias / sd",
    "width / 3.92 sd", "unreliable",
]  # fmt: skip


def record_lines(head: str, rows: list[list[str]], page: Path) -> None:
    """Keep all lines beside the page, and on it what intervals of groups told both ways cover."""
    write_data("crossed-seeds", COLUMNS, rows, page=page)
    said = [
        f"{row[0]} {row[1]} ({row[2]}): {LIMITS.sub('', row[3])}, {LIMITS.sub('', row[4])}"
        for row in rows
        if row[0] == "fd" and row[2] in {"2%", "30%"}
    ]
    text = f"{head} {'; '.join(said)} ([all](data/crossed-seeds.csv))."
    record("crossed-seeds", [text], page=page)


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    rows = [cross.line(options.runs) for cross in CROSSES]
    head = f"{stamp()} 95 % intervals, {options.runs} runs a line."
    record_lines(head, rows, options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
