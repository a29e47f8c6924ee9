"""Coverage of scores that are differentiated in the weights of their rows.

    python -m experiments.accuracy.any_score [--replications 200]

Rewrites the table of docs/evidence/any_score.md, row by row. Features are a mixture of 20 classes
in 16 dimensions; the designs are rows, fixed numbers of each class, and groups of four rows (a
prompt). Where the library has the score by hand, its own interval stands beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import genbounds as gb
from experiments.record import exact_limits, record_briefly, stamp, table
from genbounds.estimators.smooth import sliced_score

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "any_score.md"
CLASSES, D, N, M = 20, 16, 400, 200
COLUMNS = (
    "score", "design", "covered", "95 % limits", "by hand", "bias before", "bias after",
    "stderr / sd",
)  # fmt: skip

_shape = np.random.default_rng(1)
CENTRES = 1.5 * _shape.normal(size=(CLASSES, D))
MIXING = _shape.normal(size=(D, D)) / np.sqrt(D)
READOUT = torch.tensor(_shape.normal(size=(D, 10)) / 3.0)
TRUTH_ROWS = 200_000


def rows(k: Any, noise: Any, *, real: bool) -> Any:
    """Features of class k; the reference is wider, and a little off."""
    if real:
        return 1.1 * CENTRES[k] + 0.1 + 1.2 * noise @ MIXING
    return CENTRES[k] + noise @ MIXING


def draw(design: str, n: int, rng: np.random.Generator, *, real: bool = False) -> gb.Sample:
    """Draw a sample as the design says, which it is told."""
    if design == "classes":
        k = np.repeat(np.arange(CLASSES), n // CLASSES)
        return gb.Sample(rows(k, rng.normal(size=(n, D)), real=real), strata=k)
    if design == "groups":
        prompt = np.arange(n) // 4
        k = rng.integers(CLASSES, size=prompt[-1] + 1)[prompt]
        common = rng.normal(size=(prompt[-1] + 1, D))[prompt]
        noise = np.sqrt(0.6) * common + np.sqrt(0.4) * rng.normal(size=(n, D))
        ids = prompt + 1_000_000 * real  # prompts of their own
        return gb.Sample(rows(k, noise, real=real), groups=ids)
    return gb.Sample(rows(rng.integers(CLASSES, size=n), rng.normal(size=(n, D)), real=real))


def kid(x: Any, w: Any, y: Any, v: Any) -> Any:
    """Squared MMD, polynomial kernel."""

    def kernel(a: Any, b: Any) -> Any:
        return (a @ b.T / D + 1) ** 3

    return w @ kernel(x, x) @ w + v @ kernel(y, y) @ v - 2 * w @ kernel(x, y) @ v


def log_inception(x: Any, w: Any) -> Any:
    """Logarithm of the Inception score of a linear classifier."""
    p = (x @ READOUT).softmax(1)
    q = w @ p
    return w @ (p * p.log()).sum(1) - (q * q.log()).sum()


def mean_of_tanh(x: Any, w: Any) -> Any:
    """Mean of one value per row."""
    return w @ x[:, 0].tanh()


def precision(x: Any, w: Any, y: Any, v: Any) -> Any:
    """Share of rows where the reference is dense, by a kernel of fixed width."""
    dense = (-(torch.cdist(x, y) ** 2) / (2.0 * D)).exp() @ v
    return w @ (dense / (dense + 0.002))


@dataclass(frozen=True)
class Row:
    """One score: how to compute it, its truth, and the library's own."""

    label: str
    score: gb.SmoothScore
    truth: Callable[[], float]
    by_hand: Callable[..., gb.Score] | None = None


def smooth(function: Any, *, reference: bool) -> gb.SmoothScore:
    """Make a score of a function."""
    return gb.SmoothScore(
        function, name=f"my {function.__name__}", higher_is_better=False, needs_reference=reference
    )


def plug_in(function: Any, *samples: gb.Sample) -> float:
    """Value of large samples."""
    pairs = [(torch.tensor(s.features), torch.full((len(s),), 1.0 / len(s))) for s in samples]
    return float(function(*(part.double() for pair in pairs for part in pair)))


def large(n: int, *, real: bool) -> gb.Sample:
    """Return a large sample with equal classes, as the truth has."""
    return draw("classes", n, np.random.default_rng(7 + real), real=real)


def kid_truth() -> float:
    """From the first three moments, which the kernel compares."""

    def moments(x: Any) -> list[Any]:
        squares = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return [x.mean(axis=0), squares.mean(axis=0), squares.T @ x / len(x)]

    fake, real = (moments(large(TRUTH_ROWS, real=side).features) for side in (False, True))
    return sum(
        coefficient * float(((a - b) ** 2).sum()) / D**power
        for power, coefficient, a, b in zip((1, 2, 3), (3, 3, 1), fake, real, strict=True)
    )


def inception_by_hand(x: gb.Sample) -> gb.Score:
    """Log of the library's Inception score, so that both are on one scale."""
    p = (torch.tensor(x.features) @ READOUT).softmax(1).numpy()
    found = gb.inception_score(gb.Sample(p, groups=x.groups, strata=x.strata))
    ends = np.log([found.value, found.low, found.high])
    return gb.Score(
        value=ends[0], low=ends[1], high=ends[2], level=0.95, stderr=found.stderr / found.value,
        n=found.n, estimator="debiased", method="second-order",
    )  # fmt: skip


def mean_by_hand(x: gb.Sample) -> gb.Score:
    """Return the mean as the library has it."""
    values = np.tanh(x.features[:, :1])
    return gb.mean_score(gb.Sample(values, groups=x.groups, strata=x.strata))


def scores() -> list[Row]:
    """All rows of the table."""
    lines = sliced_score(directions=16)
    return [
        Row("KID", smooth(kid, reference=True), kid_truth, gb.kernel_inception_distance),
        Row(
            "log Inception score",
            smooth(log_inception, reference=False),
            lambda: plug_in(log_inception, large(TRUTH_ROWS, real=False)),
            inception_by_hand,
        ),
        Row(
            "mean",
            smooth(mean_of_tanh, reference=False),
            lambda: plug_in(mean_of_tanh, large(TRUTH_ROWS, real=False)),
            mean_by_hand,
        ),
        Row(
            "smooth precision",
            smooth(precision, reference=True),
            lambda: plug_in(precision, large(8000, real=False), large(20_000, real=True)),
        ),
        Row(
            "sliced distance, 16 lines",
            lines,
            lambda: plug_in(
                lines.function, large(TRUTH_ROWS, real=False), large(TRUTH_ROWS, real=True)
            ),
        ),
    ]


def measured(row: Row, design: str, replications: int, truth: float) -> list[str]:
    """Score new samples again and again."""
    found, own = [], 0
    for replication in range(replications):
        rng = np.random.default_rng((N, replication))
        samples = [draw(design, N, rng)]
        if row.score.needs_reference:
            samples.append(draw(design, M, rng, real=True))
        estimate = gb.estimators.metric_spec(row.score).prepared(
            samples[1] if len(samples) == 2 else None
        ).estimate(samples[0])  # fmt: skip
        score = estimate.score(0.95)
        bias = estimate.sample.bias + estimate.reference.bias
        covers = score.low <= truth <= score.high
        found.append((estimate.value - truth, bias, estimate.stderr, covers))
        if row.by_hand is not None:
            other = row.by_hand(*samples)
            own += other.low <= truth <= other.high
    error, bias, stderr, covers = np.array(found).T
    hits = int(covers.sum())
    low, high = exact_limits(hits, replications)
    sd = error.std()
    return [
        row.label,
        design,
        f"{hits / replications:.3f}",
        f"{low:.3f} – {high:.3f}",
        "" if row.by_hand is None else f"{own / replications:.3f}",
        f"{(error + bias).mean() / sd:+.2f}",
        f"{error.mean() / sd:+.2f}",
        f"{stderr.mean() / sd:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replications", type=int, default=200)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    lines: list[list[str]] = []
    for row in scores():
        truth = row.truth()
        for design in ("rows", "classes", "groups"):
            lines.append(measured(row, design, asked.replications, truth))
            note = f"{asked.replications} replications, n = {N}, m = {M}; {stamp()}"
            record_briefly(
                "any-score", note, table(COLUMNS, lines), page=PAGE, without=("95 % limits",)
            )
            print(*lines[-1], sep=" | ", flush=True)


if __name__ == "__main__":
    main()
