"""Coverage of the debiased intervals on arms whose truth is known.

``python -m experiments.accuracy.coverage --replications 2000 --jobs 2`` runs the whole study and
rewrites the table of docs/accuracy.md. Every row carries exact binomial limits.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from genbounds.files import atomic_write
from genbounds.simulate import (
    Coverage,
    DirichletArm,
    GaussianArm,
    SkewedArm,
    StudentArm,
    SyntheticArm,
    interval_coverage,
)

LEVEL = 0.95
PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


@dataclass(frozen=True)
class Study:
    """One row: a score of `n` samples of an arm, against an exact or a sampled reference."""

    label: str
    arm: SyntheticArm
    n: int
    truth: float
    reference: gb.Moments | None = None
    reference_arm: SyntheticArm | None = None
    m: int = 0

    def draw(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw the data of one replication."""
        fake = self.arm.draw(self.n, rng)
        if self.reference_arm is None:
            return fake, self.reference
        return fake, self.reference_arm.draw(self.m, rng)

    def run(self, *, replications: int, seed: int, jobs: int) -> Coverage:
        """Measure the coverage."""
        estimate = debiased_is if self.reference is None else debiased_fd
        return interval_coverage(
            estimate,
            self.draw,
            self.truth,
            replications=replications,
            seed=seed,
            level=LEVEL,
            jobs=jobs,
            subject=self.label,
        )


def debiased_fd(data: tuple[Any, Any]) -> gb.Score:
    """Score features against the reference."""
    return gb.frechet_distance(*data, level=LEVEL)


def debiased_is(data: tuple[Any, Any]) -> gb.Score:
    """Score posteriors."""
    return gb.inception_score(data[0], level=LEVEL)


def power_law(d: int, exponent: float, trace: float, seed: int) -> np.ndarray:
    """Return a randomly turned covariance with eigenvalues ∝ j^-exponent."""
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    values = np.arange(1, d + 1.0) ** -exponent
    cov = (basis * (values * trace / values.sum())) @ basis.T
    return (cov + cov.T) / 2


def frechet_studies() -> Iterator[Study]:
    """FD at eight samples per dimension and above; far from and at the reference law."""
    laws = {
        "Gaussian": GaussianArm,
        "t, 8 degrees": partial(StudentArm, df=8),
        "gamma": partial(SkewedArm, shape=4.0),
    }
    for d in (16, 64):
        real_cov = power_law(d, 1.0, 160.0, seed=11)
        cov = 0.65 * real_cov + 0.35 * power_law(d, 0.8, 150.0, seed=12)
        real_mean, mean = np.zeros(d), np.full(d, 0.12)
        reference = gb.Moments(real_mean, real_cov)
        truth = gb.frechet_distance(gb.Moments(mean, cov), reference, estimator="plugin").value
        for name, law in laws.items():
            arm, same = law(mean, cov), law(real_mean, real_cov)
            yield Study(f"FD, {name}, d={d}, n={8 * d}", arm, 8 * d, truth, reference)
            yield Study(f"FD, {name}, d={d}, n={32 * d}", arm, 32 * d, truth, reference)
            yield Study(
                f"FD, {name}, d={d}, n={8 * d}, reference of {16 * d}",
                arm,
                8 * d,
                truth,
                reference,
                same,
                16 * d,
            )
            yield Study(f"FD = 0, {name}, d={d}, n={8 * d}", same, 8 * d, 0.0, reference)


def inception_studies() -> Iterator[Study]:
    """IS at 1,000 samples and more, for near-certain, diffuse and unevenly frequent classes."""
    for classes in (10, 100):
        arms = {
            "sharp": DirichletArm(0.02 + 5.0 * np.eye(classes)),
            "diffuse": DirichletArm(np.full(classes, 0.5)),
            "uneven": DirichletArm(
                0.02 + np.eye(classes), weights=(w := 1.0 / np.arange(1, classes + 1.0)) / w.sum()
            ),
        }
        for name, arm in arms.items():
            truth = float(np.exp(arm.facts["log_score"]))
            for n in (1000, 5000):
                yield Study(f"IS, {name}, {classes} classes, n={n}", arm, n, truth)


def main(argv: list[str] | None = None) -> int:
    """Run the study and rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    lines = [
        f"{options.replications} replications a row, seed {options.seed}; limits are exact "
        "(Clopper–Pearson, 99 %).",
        "",
        "| study | coverage of the 95 % interval | limits | median width |",
        "|---|---|---|---|",
    ]
    for study in (*frechet_studies(), *inception_studies()):
        result = study.run(replications=options.replications, seed=options.seed, jobs=options.jobs)
        lines.append(
            f"| {study.label} | {result.coverage:.2%} "
            f"| {1 - result.miss_high:.2%} – {1 - result.miss_low:.2%} | {result.width:.3g} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    atomic_write(PAGE, f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
