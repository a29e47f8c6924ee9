"""Whether another laboratory's plug-in distance falls where `gb.reproduction` says.

``python -m experiments.accuracy.reproductions`` takes some twenty minutes and records its table in
docs/evidence/reproduction.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import rate, record, stamp, write_data
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "reproduction.md"
D = 16
SCALES = np.linspace(0.5, 2.0, D)
_FIXED = np.random.default_rng(11)
INNER, OUTER = _FIXED.standard_normal((8, 24)) / 2.8, _FIXED.standard_normal((24, D)) / 3.0
OURS = 2000
THEIRS = ((250, None), (1000, None), (1000, 1000), (5000, None), (5000, 5000), (50_000, 50_000))
"""Rows of the other laboratory, and of its own reference; None: our file."""

SHIFT = 0.1
"""Standard deviation of what another training moves the mean by."""

Law = Callable[[np.random.Generator, int, bool, float], Float]


def gaussian(rng: np.random.Generator, n: int, fake: bool, shift: float = 0.0) -> Float:
    """Return normal rows; those of the model have other scales and another mean."""
    scales = 1.1 * SCALES + 0.2 if fake else SCALES
    return rng.standard_normal((n, D)) * scales + (0.25 + shift) * fake


def network(rng: np.random.Generator, n: int, fake: bool, shift: float = 0.0) -> Float:
    """Return features of a small random network with rectified units."""
    latent = rng.standard_normal((n, 8)) * (1.15 if fake else 1.0) + (0.15 + shift) * fake
    noise = 0.05 * rng.standard_normal((n, D))
    return np.asarray(np.maximum(latent @ INNER, 0.0) @ OUTER + noise)


LAWS: dict[str, Law] = {"Gaussian": gaussian, "network": network}
distance = partial(gb.frechet_distance, estimator="plugin")


def plug_in(fake: Float, real: Float) -> float:
    """Return the distance that the other laboratory prints."""
    moments = (gb.Moments.from_features(rows) for rows in (fake, real))
    return distance(*(gb.Moments(each.mean, each.cov) for each in moments)).value


def replication(law: Law, seed: list[int]) -> list[list[bool]]:
    """Say for each of `THEIRS` whether plug-in, our interval and the prediction hold it."""
    rng = np.random.default_rng(seed)
    fake, real = law(rng, OURS, True, 0.0), law(rng, OURS, False, 0.0)
    whole = gb.frechet_distance(fake, real)
    value = plug_in(fake, real)
    found = []
    for n, m in THEIRS:
        other = real if m is None else law(rng, m, False, 0.0)
        theirs = plug_in(law(rng, n, True, 0.0), other)
        said = gb.reproduction(fake, real, n=n, published=theirs, published_reference_n=m)
        found.append(
            [
                abs(theirs - value) <= 1.96 * whole.stderr,
                whole.low <= theirs <= whole.high,
                said.decision == "consistent",
            ]
        )
    return found


def trained_anew(law: Law, sd: float, seed: list[int]) -> list[bool]:
    """Say whether the prediction without and with the noise of training holds a new training's."""
    rng = np.random.default_rng(seed)
    real = law(rng, OURS, False, 0.0)
    fake, again = (law(rng, n, True, SHIFT * rng.standard_normal()) for n in (OURS, 5000))
    theirs = plug_in(again, real)
    said = (gb.reproduction(fake, real, n=5000, published=theirs, training_sd=t) for t in (0.0, sd))
    return [one.decision == "consistent" for one in said]


def training_noise(law: Law) -> float:
    """Return the standard deviation of the distance between trainings."""
    rng = np.random.default_rng(6)
    real = law(rng, 200_000, False, 0.0)
    shifts = SHIFT * rng.standard_normal(60)
    return float(np.std([plug_in(law(rng, 20_000, True, s), real) for s in shifts], ddof=1))


def rows_of(rows: list[list[str]], *, anew: bool) -> list[list[str]]:
    """Return the lines of models that were trained anew, or were not."""
    return [row for row in rows if ("trained anew" in row[1]) == anew]


def shares(rows: list[list[str]], column: int) -> str:
    """Return the smallest and the largest rate of a column."""
    found = sorted(float(row[column].partition("%")[0]) for row in rows)
    return f"{found[0]:.0f}–{found[-1]:.0f} %"


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    count, rows = options.replications, []
    for name, law in LAWS.items():
        held = np.array([replication(law, [seed, 0]) for seed in range(count)])
        for (n, m), hits in zip(THEIRS, held.sum(axis=0), strict=True):
            reference = "ours" if m is None else f"{m:,} of their own"
            rates = [rate(int(k), count) for k in hits]
            rows.append([name, f"{n:,}", reference, *rates])
        sd = training_noise(law)
        hits = np.sum([trained_anew(law, sd, [seed, 1]) for seed in range(count)], axis=0)
        for told, k in zip(("0", "known"), hits, strict=True):
            what = f"5,000, trained anew, training_sd {told}"
            rows.append([name, what, "ours", "–", "–", rate(int(k), count)])
    columns = [
        "features", "their rows", "reference", "plug-in ± 1.96 stderr", "our interval",
        "prediction",
    ]  # fmt: skip
    write_data("reproductions", columns, rows, page=options.page)
    same, anew = rows_of(rows, anew=False), rows_of(rows, anew=True)
    lines = [
        f"{stamp()} {count} replications a line ([all lines](data/reproductions.csv)).",
        "",
        f"Of the same weights, your plug-in ± 1.96 stderr holds theirs in {shares(same, 3)}, your "
        f"interval in {shares(same, 4)}, the prediction of 95 % in {shares(same, 5)}. Trained "
        f"anew: {shares(anew[::2], 5)} without `training_sd`, {shares(anew[1::2], 5)} with it.",
    ]
    record("reproductions", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
