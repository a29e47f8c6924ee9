"""Coverage of rows in a row: ``python -m experiments.accuracy.series``.

Chains told as independent rows and by their order. Takes some two minutes and records its table in
docs/evidence/sampling.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.signal

import genbounds as gb
from experiments.record import LIMITS, rate, record, stamp, write_data
from genbounds.results import Score
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
D, SHIFT, SCALE = 4, 0.3, 1.1
TRUTHS = {"fd": D * (SHIFT**2 + (SCALE - 1.0) ** 2), "mean": SHIFT}
BURN_IN = 500

Law = Callable[[np.random.Generator, int], Float]


def autoregressive(rho: float) -> Law:
    """AR(1), of variance 1."""

    def draw(rng: np.random.Generator, n: int) -> Float:
        noise = rng.standard_normal((n + BURN_IN, D)) * np.sqrt(1.0 - rho**2)
        return np.asarray(scipy.signal.lfilter([1.0], [1.0, -rho], noise, axis=0)[BURN_IN:])

    return draw


def moving_average(rng: np.random.Generator, n: int) -> Float:
    """Means of 12 neighbours: nothing beyond them."""
    noise = rng.standard_normal((n + 11, D))
    return np.asarray(np.lib.stride_tricks.sliding_window_view(noise, 12, axis=0).sum(-1)) / 12**0.5


def regimes(rng: np.random.Generator, n: int) -> Float:
    """Uncorrelated rows whose scale changes once in twenty rows."""
    loud = np.cumsum(rng.random(n) < 0.05) % 2 == 0
    scale = np.where(loud, 1.6, 0.6) / np.sqrt((1.6**2 + 0.6**2) / 2.0)
    return np.asarray(scale[:, None] * rng.standard_normal((n, D)))


def clips(rng: np.random.Generator, n: int) -> Float:
    """Clips of 50 rows, one after the other, each about a mean of its own."""
    means = np.repeat(rng.standard_normal((-(-n // 50), D)), 50, axis=0)[:n]
    return np.asarray(np.sqrt(0.4) * means + np.sqrt(0.6) * autoregressive(0.8)(rng, n))


LAWS: dict[str, tuple[Law, int]] = {
    "independent": (autoregressive(0.0), 1000),
    "AR 0.5": (autoregressive(0.5), 1000),
    "AR 0.9": (autoregressive(0.9), 1000),
    "AR 0.9, 4,000": (autoregressive(0.9), 4000),
    "moving average of 12": (moving_average, 2000),
    "regimes of scale": (regimes, 2000),
    "clips of 50": (clips, 4000),
}


def scores(x: gb.Sample) -> dict[str, Score]:
    """Score one sample by each score."""
    real = gb.Moments(np.zeros(D), np.eye(D))
    column = gb.Sample(x.features[:, :1], groups=x.groups)
    return {"fd": gb.frechet_distance(x, real), "mean": gb.mean_score(column)}


def lines(name: str, runs: int) -> list[list[str]]:
    """Return the line of a law and each score."""
    law, n = LAWS[name]
    found = []
    blocks = []
    for run in range(runs):
        x = SHIFT + SCALE * law(np.random.default_rng([run, n]), n)
        told = gb.Sample(x, order=np.arange(n))
        blocks.append(0 if told.series is None else told.series.block)
        found.append([scores(one) for one in (gb.Sample(x), told)])
    out = []
    for score, truth in TRUTHS.items():
        both = [[run[k][score] for run in found] for k in (0, 1)]
        covered = [rate(sum(s.low <= truth <= s.high for s in one), runs) for one in both]
        spread = float(np.std([s.value for s in both[1]]))
        width = float(np.median([s.high - s.low for s in both[1]])) / 3.92 / spread
        doubted = rate(sum(not s.reliable for s in both[1]), runs)
        size = f"{np.median(blocks):.0f}"
        out.append([score, name, str(n), size, *covered, f"{width:.2f}", doubted])
    return out


SHOWN = ("AR 0.9, 4,000", "regimes of scale")
COLUMNS = [
    "score", "series", "rows", "rows a block", "told independent", "told order",
    "width / 3.92 sd", "unreliable",
]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=250)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    rows = [line for name in LAWS for line in lines(name, options.runs)]
    write_data("series", COLUMNS, rows, page=options.page)
    said = "; ".join(
        f"{row[1]}: {LIMITS.sub('', row[4])}, {LIMITS.sub('', row[5])}"
        for row in rows
        if row[0] == "fd" and row[1] in SHOWN
    )
    head = f"{stamp()} 95 % intervals, {options.runs} runs a line. FD, {said}"
    record("series", [f"{head} ([all](data/series.csv))."], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
