"""How often a gate is wrong, at a candidate that is worse by just the margin.

    python -m experiments.accuracy.gates [--replications 500] [--seed 0]

Rewrites the table "gates" of docs/evidence/decisions.md. Passing and failing are then equally
wrong; either should happen in 5 % of cases.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.record import rate, record, stamp, table
from genbounds.simulate import DirichletArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "decisions.md"
D = 4

Float = NDArray[np.float64]
Rng = np.random.Generator


def told(x: Float, **how: Any) -> gb.Sample:
    """Return rows that need no inspection, which would take half the time."""
    return gb.Sample(x, **how)


def gaussian(n: int, scale: float, rng: Rng) -> Float:
    return scale * rng.normal(size=(n, D))


MIX = np.random.default_rng(0).normal(size=(6, D))


def rectified(n: int, scale: float, rng: Rng) -> Float:
    return scale * (np.maximum(rng.normal(size=(n, 6)), 0.0) @ MIX + 0.2 * rng.normal(size=(n, D)))


@cache
def squares(draw: Callable[..., Float]) -> float:
    """E ‖x‖² at scale 1: the distance of the distribution scaled by s is (s - 1)² of that."""
    return float((draw(1_000_000, 1.0, np.random.default_rng(1)) ** 2).sum(axis=1).mean())


def edge_of_fd(draw: Callable[..., Float], margin: str, rng: Rng) -> gb.Verdict:
    """Gate models whose distances differ by just the margin, or by that share."""
    base = 0.25**2 * squares(draw)
    given: dict[str, Any] = {"margin": 0.5 * base} if margin == "absolute" else {"margin": "50%"}
    scale = 1.0 + 0.25 * math.sqrt(1.5)
    new, old, real = draw(300, scale, rng), draw(300, 1.25, rng), draw(1000, 1.0, rng)
    return gb.gate(told(new), told(old), told(real), **given)


def edge_of_few(rng: Rng) -> gb.Verdict:
    """Gate 60 rows whose distance is six times the baseline's, with 100 of the reference."""
    new, old, real = gaussian(60, 1.5, rng), gaussian(60, 1.2, rng), gaussian(100, 1.0, rng)
    return gb.gate(told(new), told(old), told(real), margin=D * (0.5**2 - 0.2**2))


def edge_of_pairs(rng: Rng) -> gb.Verdict:
    common = rng.normal(size=(300, D))
    new, old = (
        told(s * (0.8 * common + 0.6 * rng.normal(size=(300, D))), groups=np.arange(300))
        for s in (1.0 + 0.25 * math.sqrt(1.5), 1.25)
    )
    margin = D * 0.25**2 * 0.5
    return gb.gate(new, old, told(gaussian(1000, 1.0, rng)), margin=margin, equivalence=True)


def edge_of_is(rng: Rng) -> gb.Verdict:
    new, old = DirichletArm(np.full(5, 0.2)), DirichletArm(np.full(5, 0.1))
    share = 1.0 - math.exp(new.facts["log_score"] - old.facts["log_score"])
    new, old = (told(arm.draw(300, rng)) for arm in (new, old))
    return gb.gate(new, old, metric="is", margin=f"{100 * share}%")


EDGES = {
    "Gaussian, absolute": partial(edge_of_fd, gaussian, "absolute"),
    "Gaussian, relative": partial(edge_of_fd, gaussian, "relative"),
    "Gaussian, 60 rows, margin 5.25 times the baseline": edge_of_few,
    "rectified, absolute": partial(edge_of_fd, rectified, "absolute"),
    "rectified, relative": partial(edge_of_fd, rectified, "relative"),
    "shared latents, equivalence": edge_of_pairs,
    "inception score, relative": edge_of_is,
}


def decisions(name: str, runs: int, seed: int) -> list[str]:
    """Return what is decided in so many independent runs."""
    streams = np.random.SeedSequence([seed, crc32(name.encode())]).spawn(runs)
    return [EDGES[name](np.random.default_rng(stream)).decision for stream in streams]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    rows = []
    with threadpool_limits(1):
        for name in EDGES:
            found = decisions(name, given.replications, given.seed)
            wrong = (rate(found.count(word), len(found)) for word in ("pass", "fail"))
            rows.append([name, *wrong, f"{len(found)}"])
            heads = ["margin", "passes", "fails", "replications"]
            head = f"Seed {given.seed}; limits are exact (Clopper–Pearson, 95 %). {stamp()}"
            record("gates", [head, "", *table(heads, rows)], page=PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
