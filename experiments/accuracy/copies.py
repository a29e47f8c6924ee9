"""Whether intervals of AuthPct and MIFID hold the truth, given the training rows.

    python -m experiments.accuracy.copies [--replications 400] [--jobs 2]

One table of docs/evidence/accuracy.md. A replication draws training rows and generated ones anew.
The truth depends on the training rows: it is taken from 20,000 more generated rows, and for MIFID
from the exact moments of both distributions.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.accuracy.coverage import PAGE
from experiments.record import rate, record_briefly, recorded_rows, stamp, table
from genbounds.estimators import TrainingRows
from genbounds.estimators.copies import cosine_distances

MORE = 20_000
TRAIN = 500
CLASSES = 10
DIRECTION = 8.0

Rng = np.random.Generator
Float = np.ndarray


@dataclass(frozen=True)
class Model:
    """A generator: independent rows, four rows a prompt, or as many rows of every class.

    A `share` of the rows lies aside of all others: near copies of training rows for AuthPct, rows
    of another direction for MIFID.
    """

    d: int = 16
    shift: float = 0.1
    share: float = 0.0
    design: str = "rows"
    told: bool = True

    def centres(self) -> Float:
        """Mean of every class; there is one class where the design has none."""
        count = CLASSES if self.design == "classes" else 1
        return np.random.default_rng(1).normal(size=(count, self.d)) * (count > 1)

    def draw(self, n: int, rng: Rng, *, independent: bool = False) -> tuple[Float, Any]:
        """Rows about the origin, and the labels of their prompts or classes."""
        if self.design == "classes":
            label = rng.integers(CLASSES, size=n) if independent else np.arange(n) % CLASSES
            return self.shift + self.centres()[label] + rng.normal(size=(n, self.d)), label
        if self.design == "prompts" and not independent:
            prompt = rng.permutation(np.arange(n) // 4)
            common = np.sqrt(0.7) * rng.normal(size=(n // 4 + 1, self.d))
            return self.shift + common[prompt] + np.sqrt(0.3) * rng.normal(size=(n, self.d)), prompt
        return self.shift + rng.normal(size=(n, self.d)), None

    def sample(self, rows: Float, label: Any) -> gb.Sample:
        """Say how the rows were drawn."""
        if label is None or not self.told:
            return gb.Sample(rows)
        return gb.Sample(rows, **{"strata" if self.design == "classes" else "groups": label})

    def copying(self, n: int, train: Float, rng: Rng, *, independent: bool = False) -> Any:
        """Rows of which a share is copied with a little noise; prompts copy or do not."""
        rows, label = self.draw(n, rng, independent=independent)
        unit = label if self.design == "prompts" and label is not None else np.arange(n)
        copied = (rng.random(n + 1) < self.share)[unit]
        rows[copied] = train[rng.integers(len(train), size=n)][copied] + 0.05 * rows[copied]
        return rows, label

    def turned(self, n: int, rng: Rng, *, independent: bool = False) -> Any:
        """Rows about one direction, a share of them aside of it."""
        rows, label = self.draw(n, rng, independent=independent)
        rows[:, 0] += DIRECTION
        rows[:, 1] += 3.0 * (rng.random(n) < self.share)
        return rows, label

    def moments(self) -> gb.Moments:
        """Exact moments of `turned`."""
        centres = self.centres()
        mean = self.shift + centres.mean(axis=0)
        mean[0] += DIRECTION
        mean[1] += 3.0 * self.share
        cov = np.eye(self.d) + np.cov(centres.T, ddof=0) * (len(centres) > 1)
        cov[1, 1] += 9.0 * self.share * (1.0 - self.share)
        return gb.Moments(mean, cov)


Result = tuple[float, float, float, float, float]
"""Truth, value, both ends, standard error."""


def authpct(models: tuple[Model, ...], n: int, rng: Rng) -> Result:
    """Score one model, or two and their difference."""
    train = models[0].draw(TRAIN, rng, independent=True)[0]
    reference = TrainingRows(train)
    truths, samples = [], []
    for model in models:
        truths.append(
            100.0 * reference.authentic(model.copying(MORE, train, rng, independent=True)[0]).mean()
        )
        samples.append(model.sample(*model.copying(n, train, rng)))
    return result(truths, samples, train, "authpct")


def mifid(models: tuple[Model, ...], n: int, rng: Rng) -> Result:
    """Score one model, or two and their difference."""
    real = Model(models[0].d, 0.0, design=models[0].design)
    rows = real.turned(TRAIN, rng, independent=True)[0]
    truths, samples = [], []
    for model in models:
        penalty = cosine_distances(model.turned(MORE, rng, independent=True)[0], rows).mean()
        truths.append(gb.frechet_distance(model.moments(), real.moments()).value / penalty)
        samples.append(model.sample(*model.turned(n, rng)))
    return result(truths, samples, rows, "mifid", {"threshold": 0.9})


def result(
    truths: list[float], samples: list[gb.Sample], real: Float, metric: str, options: Any = None
) -> Result:
    """Interval of one score, or of a difference."""
    named = dict(zip("ab", samples, strict=False))
    found = gb.compare(named, real, metric=metric, options=options)
    if len(samples) == 1:
        score = found.scores["a"]
        return truths[0], score.value, score.low, score.high, score.stderr
    gap = found.difference("a", "b")
    sign = 1.0 if gap.better == "a" else -1.0
    ends = sorted((sign * gap.low, sign * gap.high))
    return truths[0] - truths[1], sign * gap.value, *ends, gap.stderr


Score = Callable[[tuple[Model, ...], int, Rng], Result]
COPIER = Model(share=0.1)
CELLS: dict[str, tuple[Score, tuple[Model, ...], int]] = {
    "AuthPct, independent rows": (authpct, (COPIER,), 300),
    "AuthPct, 98 % copies, 50 rows": (authpct, (Model(share=0.98),), 50),
    "AuthPct, four rows a prompt, told": (authpct, (Model(share=0.1, design="prompts"),), 300),
    "AuthPct, four rows a prompt, untold": (
        authpct, (Model(share=0.1, design="prompts", told=False),), 300,
    ),
    "AuthPct, four rows a prompt, 97 % copies, 200 rows": (
        authpct, (Model(share=0.97, design="prompts"),), 200,
    ),
    "AuthPct, ten classes, fixed numbers, told": (
        authpct, (Model(share=0.1, design="classes"),), 300,
    ),
    "AuthPct, difference of two models": (authpct, (COPIER, Model(share=0.2)), 300),
    "AuthPct, difference, 98 and 99 % copies, 50 rows": (
        authpct, (Model(share=0.98), Model(share=0.99)), 50,
    ),
    "MIFID, independent rows": (mifid, (Model(8),), 400),
    "MIFID, a tenth of the rows aside": (mifid, (Model(8, share=0.1),), 400),
    "MIFID, d = 64, three rows a feature": (mifid, (Model(64),), 192),
    "MIFID, four rows a prompt, told": (mifid, (Model(8, share=0.1, design="prompts"),), 400),
    "MIFID, four rows a prompt, untold": (
        mifid, (Model(8, share=0.1, design="prompts", told=False),), 400,
    ),
    "MIFID, ten classes, fixed numbers, told": (mifid, (Model(8, design="classes"),), 400),
    "MIFID, difference of two models": (mifid, (Model(8), Model(8, shift=0.3)), 400),
}  # fmt: skip


def run(cell: str, replication: int, seed: int) -> Result:
    """One replication."""
    score, models, n = CELLS[cell]
    with threadpool_limits(1):
        return score(models, n, np.random.default_rng([seed, crc32(cell.encode()), replication]))


def summarised(cell: str, found: Float) -> list[str]:
    """Coverage with exact limits, what is left of bias, and standard error over true spread."""
    truth, value, low, high, stderr = found.T
    hits = int(((low <= truth) & (truth <= high)).sum())
    error = value - truth
    spread = error.std(ddof=1)
    return [
        cell,
        str(len(found)),
        f"{truth.mean():.4g}",
        rate(hits, len(found), limits=".0%"),
        f"{error.mean() / spread:+.2f}",
        f"{np.sqrt(np.mean(stderr**2)) / spread:.2f}",
    ]


def main(argv: list[str] | None = None) -> int:
    """Run every cell and rewrite the table after each."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.copies", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", default="*", help="shell pattern of the rows to run")
    options = parser.parse_args(argv)
    columns = ["samples", "runs", "mean truth", "coverage", "bias / spread", "stderr / spread"]
    kept = recorded_rows("copies", key=1, page=PAGE)
    rows = {cell: kept[(cell,)] for cell in CELLS if (cell,) in kept}
    with Parallel(n_jobs=options.jobs) as pool:
        for cell in fnmatch.filter(CELLS, options.cells):
            jobs = (delayed(run)(cell, r, options.seed) for r in range(options.replications))
            rows[cell] = table(columns, [summarised(cell, np.array(pool(jobs)))])[-1]
            print(rows[cell], file=sys.stderr, flush=True)
            head = f"Seed {options.seed}. {stamp()}"
            lines = [rows[one] for one in CELLS if one in rows]
            record_briefly("copies", head, [*table(columns, []), *lines], page=PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
