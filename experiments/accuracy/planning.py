"""Planned widths and powers against those that come true.

    python -m experiments.accuracy.planning [--replications 400] [--cells 'd = 64*'] [--sizes 512]

Rewrites the table "planning" of docs/evidence/decisions.md. In every replication a reference and a
pilot are drawn, `gb.plan` predicts from them, and samples of every planned size are drawn and
compared as planned. Models are the reference's distribution, scaled. Rows that were not asked for
stay as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.record import rate, record_briefly, recorded_rows, stamp, table
from genbounds.estimators import FrechetReference, difference

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "decisions.md"
LEVEL = 0.95
ROUND = 5

Float = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Cell:
    """One study: a kind of samples, their sizes, and the two models."""

    kind: str
    d: int
    m: int
    pilot: int
    sizes: tuple[int, ...]
    scales: tuple[float, float]
    common: float = 0.0
    degrees: float = np.inf
    single: bool = False

    @property
    def label(self) -> str:
        """What stands in the table."""
        return f"d = {self.d}, {self.kind}"

    @property
    def gap(self) -> float:
        """Difference of both distances."""
        spread = 1.0 if np.isinf(self.degrees) else self.degrees / (self.degrees - 2.0)
        squares = [(scale - 1.0) ** 2 for scale in self.scales]
        return spread * (squares[1] - squares[0]) * float((1.0 / np.arange(1, self.d + 1)).sum())

    def draw(self, n: int, scale: float, rng: Rng, common: Float | None = None) -> Float:
        """Draw rows with the spectrum 1/j."""
        z = rng.standard_normal((n, self.d))
        if common is not None:
            z = np.sqrt(self.common) * common + np.sqrt(1.0 - self.common) * z
        if np.isfinite(self.degrees):
            z /= np.sqrt(rng.chisquare(self.degrees, (n, 1)) / self.degrees)
        return scale * z * np.arange(1, self.d + 1) ** -0.5

    def models(self, n: int, rng: Rng) -> tuple[Any, ...]:
        """Draw samples of one model or of both, with common latents if they have such."""
        if self.single:
            return (gb.Sample(self.draw(n, self.scales[0], rng)),)
        common = rng.standard_normal((n, self.d)) if self.common else None
        rows = (self.draw(n, scale, rng, common) for scale in self.scales)
        ids = None if common is None else np.arange(n)
        return tuple(gb.Sample(x, groups=ids) for x in rows)  # told, so that nothing is looked for


def cells() -> tuple[Cell, ...]:
    """Return all studies."""
    small: dict[str, Any] = {
        "d": 64, "m": 4000, "pilot": 512, "sizes": (512, 1000, 2000, 4000), "scales": (1.2, 1.23)
    }  # fmt: skip
    large: dict[str, Any] = {
        "d": 256, "m": 4096, "pilot": 2048, "sizes": (2048, 4096), "scales": (1.2, 1.215)
    }  # fmt: skip
    return (
        Cell(kind="one score", single=True, **small),
        Cell(kind="difference", **small),
        Cell(kind="difference, same latents", common=0.7, **small),
        Cell(
            kind="difference, t, 8 degrees",
            degrees=8.0,
            **{**small, "sizes": (1000, 4000), "pilot": 1000, "scales": (1.2, 1.26)},
        ),
        Cell(kind="one score, small pilot", single=True, **small | {"pilot": 96}),
        Cell(kind="difference, small pilots", **small | {"pilot": 96}),
        Cell(kind="one score", single=True, **large),
        Cell(kind="difference", **large),
        Cell(kind="difference, same latents", common=0.7, **large),
    )


@dataclass
class Row:
    """What came out at one size."""

    widths: list[float] = field(default_factory=list)
    planned: list[float] = field(default_factory=list)
    found: list[bool] = field(default_factory=list)
    power: list[float] = field(default_factory=list)

    def cells(self, single: bool) -> list[str]:
        """Format it."""
        width, planned = float(np.median(self.widths)), float(np.median(self.planned))
        low, high = np.quantile(self.planned, (0.1, 0.9))
        out = [f"{width:.4f}", f"{planned:.4f} [{low:.4f}, {high:.4f}]", f"{planned / width:.2f}"]
        if single:
            return [*out, "", ""]
        hits, runs = sum(self.found), len(self.found)
        power = rate(hits, runs, share=".0%", limits=".0%")
        return [*out, power, f"{np.median(self.power):.0%}"]


def replicate(cell: Cell, run: int, seed: int, rows: dict[int, Row]) -> None:
    """Draw a reference, a pilot, and what was planned."""
    rng = np.random.default_rng([seed, crc32(cell.label.encode()), run])
    real = gb.Sample(cell.draw(cell.m, 1.0, rng))
    reference = FrechetReference(real)
    pilot = cell.models(cell.pilot, rng)
    target = {"half_width": 1.0} if cell.single else {"gap": cell.gap}
    plan = gb.plan(pilot[0] if cell.single else pilot, real, level=LEVEL, **target)
    for n, row in rows.items():
        estimates = [reference.estimate(x) for x in cell.models(n, rng)]
        row.planned.append(plan.predict(n))
        if cell.single:
            score = estimates[0].score(LEVEL)
            row.widths.append((score.high - score.low) / 2.0)
            continue
        low, high = difference(estimates[1], estimates[0]).interval(LEVEL)
        row.widths.append((high - low) / 2.0)
        row.found.append(low > 0.0)
        row.power.append(plan.model.power(cell.gap, LEVEL, n))


def write(found: dict[Cell, dict[int, Row]], seed: int) -> None:
    """Rewrite the rows that were run."""
    kept = recorded_rows("planning", key=2, page=PAGE)
    heads = [
        "samples", "n", "median half-width", "planned, median [10 – 90 % of pilots]", "ratio",
        "power", "planned", "replications",
    ]  # fmt: skip
    fresh = {
        (cell.label, f"{n:,}"): [
            cell.label,
            f"{n:,}",
            *row.cells(cell.single),
            f"{len(row.widths)}",
        ]
        for cell, rows in found.items()
        for n, row in rows.items()
        if row.widths
    }
    lines = []
    for cell in cells():
        for n in cell.sizes:
            key = (cell.label, f"{n:,}")
            if key in fresh:
                lines.append(table(heads, [fresh[key]])[-1])
            elif key in kept:
                lines.append(kept[key])
    head = f"Seed {seed}; limits of power are exact (Clopper–Pearson, 95 %). {stamp()}"
    record_briefly("planning", head, [*table(heads, []), *lines], page=PAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--cells", default="*", help="shell pattern of names in the table")
    parser.add_argument("--sizes", type=int, nargs="*", help="some of the numbers of samples")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    chosen = [cell for cell in cells() if fnmatch(cell.label, given.cells)]
    found = {
        cell: {n: Row() for n in cell.sizes if not given.sizes or n in given.sizes}
        for cell in chosen
    }
    with threadpool_limits(1):
        for start in range(0, given.replications, ROUND):
            for cell, rows in found.items():
                for run in range(start, min(start + ROUND, given.replications)):
                    replicate(cell, run, given.seed, rows)
            write(found, given.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
