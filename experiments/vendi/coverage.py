"""Coverage of Vendi intervals on distributions whose spectrum is known.

``python -m experiments.vendi.coverage --replications 6000 --jobs 1`` runs the study and rewrites
the table of docs/evidence/vendi.md; with ``--studies`` only rows of these names. Rows that take
long get a half or a third of the replications. The digits rows draw from the 1,797 scikit-learn
digits with replacement, so that the plug-in score of all of them is the exact truth; that of the
network's features is the score of 400,000 other rows.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import record_briefly, recorded_rows
from genbounds.simulate import RbfArm, SphereClustersArm, interval_coverage, vendi_truth

LEVEL = 0.95
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "vendi.md"


@cache
def digits() -> np.ndarray:
    """Return the 1,797 digits, pixels in [0, 1]."""
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data) / 16.0


@dataclass(frozen=True)
class Digits:
    """A random digit, each with probability 1/1797."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` of them."""
        return digits()[rng.integers(len(digits()), size=n)]


@dataclass(frozen=True)
class NetworkDigits:
    """128 rectified features of a random two-layer network, of digits with noise."""

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` of them."""
        images = Digits().draw(n, rng) + 0.2 * rng.standard_normal((n, 64))
        weights = np.random.default_rng(0)
        hidden = np.maximum(images @ weights.standard_normal((64, 256)), 0.0) / 8.0
        return np.maximum(hidden @ weights.standard_normal((256, 128)), 0.0) / 16.0


@cache
def moment_spectrum() -> np.ndarray:
    """Eigenvalues of the second moments of the directions of 400,000 network features."""
    rng = np.random.default_rng(1)
    second = np.zeros((128, 128))
    for _ in range(100):
        rows = NetworkDigits().draw(4000, rng)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        second += rows.T @ rows
    return np.linalg.eigvalsh(second / 400_000)[::-1]


@dataclass(frozen=True)
class Study:
    """One row."""

    label: str
    arm: RbfArm | SphereClustersArm | Digits | NetworkDigits
    n: int
    given: dict[str, Any] = field(default_factory=dict)
    share: int = 1
    single: bool = False

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw one sample."""
        rows = self.arm.draw(self.n, rng)
        return rows.astype(np.float32) if self.single else rows

    def score(self, rows: np.ndarray) -> gb.Score:
        """Score it."""
        return gb.vendi_score(rows, level=LEVEL, **self.given)

    @property
    def truth(self) -> float:
        """Score of the distribution."""
        if isinstance(self.arm, Digits):
            return gb.vendi_score(digits(), estimator="plugin", **self.given).value
        network = isinstance(self.arm, NetworkDigits)
        spectrum = moment_spectrum() if network else self.arm.spectrum
        return vendi_truth(spectrum, self.given.get("order", 1.0), self.given.get("components"))


def studies() -> Iterator[Study]:
    """Cosine and RBF, orders 1, 2 and ∞, whole and truncated."""
    weights = 1.0 / np.arange(1, 11)
    uneven = SphereClustersArm(tuple(weights / weights.sum()), (1,) * 10)
    equal = SphereClustersArm((0.1,) * 10, (1,) * 10)
    spheres = SphereClustersArm((0.5, 0.3, 0.2), (3, 6, 9))
    near = np.r_[1.3, np.full(9, 1.0 - 0.3 / 9)] / 10.0
    nearly = SphereClustersArm(tuple(near), (1,) * 10)
    laws = {
        "10 uneven clusters": uneven,
        "10 nearly equal clusters": nearly,
        "10 equal clusters": equal,
        "3 spheres, d=18": spheres,
    }
    for name, law in laws.items():
        for order in (1.0, 2.0, math.inf):
            for n in (500, 2000) if law is not spheres else (500,):
                given = {"kernel": "cosine", "order": order}
                yield Study(f"{name}, cosine, order {order:g}, n={n}", law, n, given)
    gauss = RbfArm((2.0, 1.0, 1.0, 0.5), 2.0)
    for n in (500, 2000):
        given = {"bandwidth": 2.0, "order": 2.0}
        yield Study(
            f"Gaussian d=4, RBF, order 2, n={n}", gauss, n, given, share=2 if n > 1000 else 1
        )
    given = {"bandwidth": 2.0, "order": math.inf}
    yield Study("Gaussian d=4, RBF, order inf, n=500", gauss, 500, given, share=2)
    for order, kept in ((1.0, 10), (1.0, 30), (2.0, 20)):
        given = {"bandwidth": 2.0, "order": order, "method": "truncated", "components": kept}
        label = f"Gaussian d=4, RBF, order {order:g}, truncated at {kept}, n=500"
        yield Study(label, gauss, 500, given, share=3)
    for order in (1.0, 2.0, math.inf):
        given = {"kernel": "cosine", "order": order}
        yield Study(f"digits, cosine, order {order:g}, n=500", Digits(), 500, given)
    given = {"bandwidth": 2.0, "order": 2.0}
    yield Study("digits, RBF, order 2, n=500", Digits(), 500, given)
    given = {"bandwidth": 2.0, "method": "truncated", "components": 20}
    yield Study("digits, RBF, order 1, truncated at 20, n=500", Digits(), 500, given, share=3)
    given = {"kernel": "cosine", "method": "truncated", "components": 20}
    yield Study("digits, cosine, order 1, truncated at 20, n=500", Digits(), 500, given)
    for order in (1.0, 2.0, math.inf):
        given = {"kernel": "cosine", "order": order}
        label = f"digits through a network, d=128, cosine, order {order:g}, n=1000"
        yield Study(label, NetworkDigits(), 1000, given, share=3)
    for n, order in ((64, 1.0), (128, 0.5), (128, 1.0), (192, 1.0)):
        given = {"kernel": "cosine", "order": order}
        label = f"digits through a network, d=128, cosine, order {order:g}, n={n} (few)"
        yield Study(label, NetworkDigits(), n, given, share=3)
    subspaces = SphereClustersArm((0.5, 0.3, 0.2), (20, 40, 60))
    label = "3 spheres, d=120, cosine, order 1, n=180 (few, not of the fitted kind)"
    yield Study(label, subspaces, 180, {"kernel": "cosine"}, share=3)
    weights = np.arange(1, 301) ** -0.5
    many = SphereClustersArm(tuple(weights / weights.sum()), (1,) * 300)
    label = "300 uneven clusters, cosine, order 1, float32, terms from some rows, n=6000"
    yield Study(label, many, 6000, {"kernel": "cosine"}, share=3, single=True)


def row(study: Study, options: argparse.Namespace) -> str:
    """Measure one row of the table."""
    replications = max(1, options.replications // study.share)
    result = interval_coverage(
        study.score,
        study.draw,
        study.truth,
        replications=replications,
        seed=options.seed,
        level=LEVEL,
        jobs=options.jobs,
        subject=study.label,
        out=options.out,
    )
    return (
        f"| {study.label} | {replications} | {result.coverage:.2%} "
        f"| {1 - result.miss_high:.2%} – {1 - result.miss_low:.2%} "
        f"| {study.truth:.4g} | {result.width:.3g} |"
    )


def main(argv: list[str] | None = None) -> int:
    """Run the study and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", nargs="*", default=["*"], help="shell patterns of row names")
    parser.add_argument("--replications", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder to go on from after an interruption")
    parser.add_argument("--page", type=Path, default=PAGE, help="document with the section")
    options = parser.parse_args(argv)
    lines = [
        "| study | replications | coverage of the 95 % interval | limits | truth | median width |",
        "|---|---|---|---|---|---|",
    ]
    before = recorded_rows("vendi-coverage", key=1, page=options.page)
    for study in studies():
        if not any(fnmatch(study.label, pattern) for pattern in options.studies):
            if (study.label,) in before:
                lines.append(before[(study.label,)])
            continue
        lines.append(row(study, options))
        print(lines[-1], file=sys.stderr, flush=True)
    head = f"Seed {options.seed}. With 6,000 replications the 99 % limits of 95 % are ± 0.7 %."
    record_briefly("vendi-coverage", head, lines, page=options.page, without=("limits",))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
