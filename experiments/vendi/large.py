"""Vendi scores at the size where V24 ends its curves, n = 20,000 (Figs. 1 and 2).

``python -m experiments.vendi.large`` scores growing parts of one sample by every method whose time
does not grow with the cube of n, and rewrites its section of docs/evidence/experiments.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.record import PAGE, record, stamp
from experiments.vendi.__main__ import FREQUENCIES, KEPT, Line, convergence, lines


def affordable(line: Line) -> bool:
    """Whether no matrix of n by n is decomposed."""
    return line.kernel == "cosine" or line.method in ("ustat", "fkea", "nystrom")


def main(argv: list[str] | None = None) -> int:
    """Score and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 5000, 10_000, 20_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE, help="document with the section")
    options = parser.parse_args(argv)
    found, _ = convergence(
        filter(affordable, lines()),
        options.sizes,
        options.seed,
        name="vendi-large",
        page=options.page,
    )
    head = (
        f"Growing parts of one sample, seed {options.seed}: score ± half of its 95 % interval. "
        f"{KEPT} eigenvalues kept, {FREQUENCIES} frequencies."
    )
    record("vendi-large", [stamp(), head, "", *found], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
