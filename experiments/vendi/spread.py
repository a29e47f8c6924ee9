"""How much Vendi scores scatter at each n, in percent of their mean (V24 B.1).

``python -m experiments.vendi.spread`` scores independent samples of each size by every method, on
the distributions of ``python -m experiments.vendi``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import PAGE, record, shown, stamp
from experiments.vendi.__main__ import lines


def percent(values: np.ndarray) -> str:
    """Return the standard deviation in % of the mean, with its own standard error (normal)."""
    share = 100.0 * values.std(ddof=1) / values.mean()
    return f"{share:.2g} ± {share / math.sqrt(2.0 * (values.size - 1)):.1g}"


def spreads(sizes: Sequence[int], samples: int, seed: int) -> list[list[str]]:
    """Return the rows: one for each distribution and method."""
    rows = []
    for line in lines():
        cells = []
        for n in sizes:
            streams = np.random.SeedSequence((seed, n)).spawn(samples)
            drawn = (line.arm.draw(n, np.random.default_rng(stream)) for stream in streams)
            values = [gb.vendi_score(sample, **line.given).value for sample in drawn]
            cells.append(percent(np.array(values)))
        rows.append([line.law, line.kernel, f"{line.method}, order {line.order:g}", *cells])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    return rows


def main(argv: list[str] | None = None) -> int:
    """Score, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=(100, 200, 400, 800), metavar="N")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    if options.samples < 2:
        parser.error("--samples must be at least 2")
    rows = spreads(options.sizes, options.samples, options.seed)
    head = ("distribution", "kernel", "method", *(f"n = {n:,}" for n in options.sizes))
    kept = list(dict.fromkeys((*head[:4], head[-1])))
    record(
        "vendi-spread",
        [
            stamp(),
            f"{options.samples} independent samples of each size, seed {options.seed}: standard "
            "deviation of the score in % of its mean, ± its standard error.",
            "",
            *shown("vendi-spread", head, rows, kept, page=options.page),
        ],
        page=options.page,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
