"""Time and memory of AuthPct and MIFID with intervals, beside the way of other tools.

    python -m experiments.benchmarks.copies [--rows 8000]

AuthPct of others takes whole matrices of distances, as dgm-eval does. MIFID is that of
torchmetrics, with the samples in the order in which it averages over generated rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.benchmarks.neighbours import measure_all

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "memorisation.md"


def authpct(fake: np.ndarray, real: np.ndarray) -> list[float]:
    """Score with its interval."""
    return [gb.authpct(fake, real).value]


def authpct_dense(fake: np.ndarray, real: np.ndarray) -> list[float]:
    """Score from whole matrices of distances."""
    import torch

    train, generated = torch.from_numpy(real), torch.from_numpy(fake)
    own = torch.cdist(train, train).fill_diagonal_(float("inf")).min(dim=0).values
    nearest = torch.cdist(train, generated).min(dim=0)
    return [100.0 * float((own[nearest.indices] < nearest.values).float().mean())]


def mifid(fake: np.ndarray, real: np.ndarray) -> list[float]:
    """Score as published, with its interval."""
    return [gb.mifid(fake, real, threshold=0.99, estimator="plugin").value]


def mifid_torchmetrics(fake: np.ndarray, real: np.ndarray) -> list[float]:
    """Score as torchmetrics computes it from features."""
    import torch
    from torchmetrics.image.mifid import _mifid_compute

    given = []
    for rows in (fake, real):
        features = torch.from_numpy(rows).double()
        given += [features.mean(dim=0), torch.cov(features.T), features]
    return [float(_mifid_compute(*given, cosine_distance_eps=0.99))]


WAYS = {
    "AuthPct with interval": authpct,
    "AuthPct, whole matrices": authpct_dense,
    "MIFID with interval": mifid,
    "MIFID, torchmetrics": mifid_torchmetrics,
}


def main(argv: list[str] | None = None) -> int:
    """Measure all ways."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.benchmarks.copies", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=8000)
    measure_all("copies-cost", WAYS, PAGE, "value", parser.parse_args(argv).rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
