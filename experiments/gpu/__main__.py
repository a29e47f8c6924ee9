"""Every path with its data on a CUDA card: right against CPU float64, and how fast.

``python -m experiments.gpu`` prints and records a table: for each path the time, the rate, the
share of the card's own ceiling (a large matrix product in the same precision, a large copy), and
the largest relative difference from the same work in float64 on the processor. Where a path does
its arithmetic on the host although its input is on the card, the table says so. Without CUDA it
says that it is skipped; ``--device cpu --small`` runs every path on the processor at a tiny size,
as the tests do.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path
from typing import Any

from experiments.gpu.bench import SMALL, Bench, Size
from experiments.gpu.scores import score_rows
from experiments.record import PAGE, picture, record, stamp, table
from experiments.torchvision_builds import declare_operators


def main(argv: list[str] | None = None) -> int:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a tiny size, to try every path")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    import torch

    declare_operators()  # torchmetrics asks for torchvision where it is installed
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print(
            "skipped: no CUDA device here (--device cpu --small tries the paths)", file=sys.stderr
        )
        return 0
    bench = Bench(options.device, SMALL if options.small else Size())
    rows = []
    for row in chain(bench.rows(), score_rows(bench)):
        print(*row.cells(), sep=" | ", flush=True)
        rows.append(row)

    def paint(axes: Any) -> None:
        shares = {row.path: row.rate / row.ceiling for row in rows if row.ceiling}
        axes.barh(list(shares), list(shares.values()))
        axes.set(xlabel="share of the matrix product's rate", xlim=(0, 1))

    is_card = bench.device.type == "cuda"
    device = torch.cuda.get_device_name(bench.device) if is_card else "CPU"
    columns = ("path", "arithmetic on", "time", "rate", "of ceiling", "against CPU float64")
    lines = [
        stamp(device), f"PyTorch {torch.__version__}.", "",
        *table(columns, [row.cells() for row in rows]), "",
        picture("gpu", paint, page=options.page),
    ]  # fmt: skip
    record("gpu", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
