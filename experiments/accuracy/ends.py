"""Coverage near 0 where few directions count: ``python -m experiments.accuracy.ends``.

Small shifts of one feature, in standard errors of the difference of both means. Takes some three
minutes and records its table in docs/evidence/sampling.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import rate, record, stamp, write_data
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sampling.md"
N, M = 200, 240
SHIFTS = (0.0, 1.7, 3.0, 5.0)

LAWS: dict[str, tuple[str, tuple[float, ...], str]] = {
    "one feature": ("fd", (1.0,), "normal"),
    "two": ("fd", (1.0, 1.0), "normal"),
    "two, one of a tenth": ("fd", (1.0, 0.1), "normal"),
    "four": ("fd", (1.0,) * 4, "normal"),
    "one, exponential": ("fd", (1.0,), "exponential"),
    "one, 40 groups of 5": ("fd", (1.0,), "groups"),
    "kid, one": ("kid", (1.0,), "normal"),
    "kid, two": ("kid", (1.0, 1.0), "normal"),
    "kid, four": ("kid", (1.0,) * 4, "normal"),
}
COLUMNS = ["score", "features", "shift", "covered", "truth above", "truth below", "unreliable"]


def drawn(rng: np.random.Generator, n: int, scales: tuple[float, ...], law: str) -> Float:
    """Draw rows of mean 0 and these standard deviations."""
    d = len(scales)
    if law == "exponential":
        return (rng.exponential(size=(n, d)) - 1.0) * scales
    rows = rng.normal(size=(n, d))
    if law == "groups":
        rows = np.sqrt(0.3) * rng.normal(size=(n // 5, d)).repeat(5, axis=0) + np.sqrt(0.7) * rows
    return rows * scales


def cubic_mean(one: Float, two: Float) -> float:
    """E (x·y / d + 1)³ of independent standard normal rows about these means."""
    d = one.size
    eye = np.eye(d)
    second = float(((np.outer(one, one) + eye) * (np.outer(two, two) + eye)).sum())

    def third(mean: Float) -> Float:
        mixed = np.multiply.outer(eye, mean)
        out: Float = np.einsum("i,j,k->ijk", mean, mean, mean)
        return out + mixed + mixed.transpose(0, 2, 1) + mixed.transpose(2, 0, 1)

    cube = float((third(one) * third(two)).sum())
    return 1.0 + 3.0 * float(one @ two) / d + 3.0 * second / d**2 + cube / d**3


def lines(name: str, runs: int) -> list[list[str]]:
    """Return the lines of a law, one for each shift."""
    score, scales, law = LAWS[name]
    groups = np.repeat(np.arange(N // 5), 5) if law == "groups" else None
    error = np.sqrt((1.0 if groups is None else 0.3 * 4.0 + 1.0) / N + 1.0 / M)
    out = []
    for shift in SHIFTS:
        mean = np.zeros(len(scales))
        mean[0] = shift * error
        rng = np.random.default_rng([len(name), int(10.0 * shift)])
        truth = float(mean @ mean)
        if score == "kid":
            zero = np.zeros(len(scales))
            truth = cubic_mean(mean, mean) + cubic_mean(zero, zero) - 2.0 * cubic_mean(mean, zero)
        above = below = doubted = 0
        for _ in range(runs):
            fake = gb.Sample(drawn(rng, N, scales, law) + mean, groups=groups)
            real = gb.Sample(drawn(rng, M, scales, "normal" if law == "groups" else law))
            measure = gb.frechet_distance if score == "fd" else gb.kernel_inception_distance
            found = measure(fake, real)
            above += found.high < truth
            below += found.low > truth
            doubted += not found.reliable
        covered = rate(runs - above - below, runs)
        features = name.removeprefix("kid, ")
        counts = [str(above), str(below), rate(doubted, runs)]
        out.append([score, features, f"{shift:g}", covered, *counts])
    return out


def main(argv: list[str] | None = None) -> int:
    """Record the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    rows = [line for name in LAWS for line in lines(name, options.runs)]
    write_data("ends", COLUMNS, rows, page=options.page)
    low = min((float(row[3].split("%")[0]), *row[:3]) for row in rows)
    least = f"{low[0]} % ({', '.join(low[1:])})"
    head = f"{stamp()} {options.runs} runs a line, least covered {least}"
    record("ends", [f"{head}: [all](data/ends.csv)."], page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
