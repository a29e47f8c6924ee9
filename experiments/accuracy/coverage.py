"""Coverage of the debiased intervals on distributions whose truth is known.

``python -m experiments.accuracy.coverage --replications 2000 --jobs 2`` runs the whole study and
rewrites its table in docs/evidence/accuracy.md. Every row carries exact binomial limits.
``--studies`` takes shell patterns of row names; rows that were not asked for stay as they are on
the page. A finished row is kept in ``out/accuracy/coverage`` and not run again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.accuracy.laws import Law, make_law, make_scaled_law
from experiments.record import crossed, read_data, record, write_data
from genbounds.files import atomic_write
from genbounds.results import Difference, Score
from genbounds.simulate import DirichletArm, interval_coverage

LEVEL = 0.95
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "accuracy.md"
KEPT = Path("out/accuracy/coverage")
SHAPES = {
    "gauss": "Gaussian",
    "t8": "t, 8 degrees",
    "gamma": "gamma",
    "ten": "ten clusters",
    "rectified": "rectified Gaussian",
}

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Study:
    """One row: how to draw the data of a replication, how to score it, and what is true."""

    label: str
    draw: Draw
    estimate: Callable[[Any], Score | Difference]
    truth: float


def distance(data: tuple[Any, Any]) -> Score:
    """Score features against the reference."""
    return gb.frechet_distance(*data, level=LEVEL)


def kernel_distance(data: tuple[Any, Any]) -> Score:
    """KID of features against the reference."""
    return gb.kernel_inception_distance(*data, level=LEVEL)


def difference(data: tuple[Any, Any, Any]) -> Difference:
    """Difference of two models' distances, first less second."""
    first, second, real = data
    pair = gb.compare({"first": first, "second": second}, real, level=LEVEL).differences[0]
    if pair.better == "first":
        return pair
    return replace(
        pair, better="first", worse="second", value=-pair.value, low=-pair.high, high=-pair.low
    )


def inception(probs: Any) -> Score:
    """Score posteriors."""
    return gb.inception_score(probs, level=LEVEL)


def frechet_studies() -> Iterator[Study]:
    """FD from four samples per dimension on; far from the reference and at it; differences."""
    for d in (16, 64, 256):
        for arm, shape in SHAPES.items():
            law = make_law(arm, d)
            for share in (4, 8, 32) if d < 256 else (4, 8):
                n = share * d
                yield Study(
                    f"FD, {shape}, d={d}, n={n}",
                    lambda rng, law=law, n=n: (law.draw(n, rng), law.reference(None, rng)),
                    distance,
                    law.truth,
                )
            for n, m in ((4 * d, 8 * d), (8 * d, 16 * d)) if d < 256 else ((4 * d, 8 * d),):
                yield Study(
                    f"FD, {shape}, d={d}, n={n}, reference of {m}",
                    lambda rng, law=law, n=n, m=m: (law.draw(n, rng), law.draw_reference(m, rng)),
                    distance,
                    law.truth,
                )
        for arm, name in (("same", "equal distributions"), ("near", "a tenth wider")):
            law = make_law(arm, d)
            yield Study(
                f"FD, {name}, d={d}, n={8 * d}",
                lambda rng, law=law, n=8 * d: (law.draw(n, rng), law.reference(None, rng)),
                distance,
                law.truth if arm == "near" else 0.0,
            )
        yield from difference_studies(d)
    yield from scaled_studies()


def scaled_studies() -> Iterator[Study]:
    """Near the reference distribution, where error of the fitted transport map counts most."""
    for d in (16, 64):
        for arm, shape in SHAPES.items():
            law = make_scaled_law(arm, d, 1.4)
            for n, m in ((4 * d, None), (8 * d, None), (4 * d, 8 * d)):

                def draw(rng: np.random.Generator, law: Law = law, n: int = n, m: Any = m) -> Any:
                    return law.draw(n, rng), law.reference(m, rng)

                yield Study(
                    f"FD, {shape}, scaled by 1.4, d={d}, n={n}"
                    + (f", reference of {m}" if m else ""),
                    draw,
                    distance,
                    law.truth,
                )


def difference_studies(d: int) -> Iterator[Study]:
    """Two models against one reference, sampled or exact."""
    for arm in ("gauss", "t8", "gamma"):
        one, two = make_law(arm, d), make_law("near", d)
        for m in (None, 16 * d):

            def draw(rng: np.random.Generator, one: Law = one, two: Law = two, m: Any = m) -> Any:
                real = two.reference(m, rng)
                return one.draw(4 * d, rng), two.draw(8 * d, rng), real

            yield Study(
                f"FD of {SHAPES[arm]}, n={4 * d}, less FD of a tenth wider, n={8 * d}, d={d}"
                + (f", reference of {m}" if m else ""),
                draw,
                difference,
                one.truth - two.truth,
            )


def kernel_truth(law: Law) -> float:
    """KID of degree 3 between two Gaussians, from their first three moments."""

    def tensors(mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, ...]:
        third = np.einsum("i,j,k->ijk", mean, mean, mean)
        for axes in ("ij,k->ijk", "ik,j->ijk", "jk,i->ijk"):
            third += np.einsum(axes, cov, mean)
        return mean, cov + np.outer(mean, mean), third

    d = law.mean.size
    sides = [tensors(law.mean, law.cov), tensors(law.reference_mean, law.reference_cov)]
    gaps = [a - b for a, b in zip(*sides, strict=True)]
    return sum(
        ways * float((gap**2).sum()) / d**power
        for gap, ways, power in zip(gaps, (3, 3, 1), (1, 2, 3), strict=True)
    )


def kernel_studies() -> Iterator[Study]:
    """KID, far from, near and at the reference distribution."""
    for d in (16, 64):
        for arm, name in (
            ("gauss", "Gaussian"),
            ("near", "a tenth wider"),
            ("same", "equal distributions"),
        ):
            law = make_law(arm, d)
            for n, m in ((100, 100), (500, 1000)):
                yield Study(
                    f"KID, {name}, d={d}, n={n}, reference of {m}",
                    lambda rng, law=law, n=n, m=m: (law.draw(n, rng), law.draw_reference(m, rng)),
                    kernel_distance,
                    kernel_truth(law) if arm != "same" else 0.0,
                )


def inception_studies() -> Iterator[Study]:
    """IS for near-certain, diffuse and unevenly frequent classes."""
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
            for n in (200, 1000, 5000) if classes == 10 else (1000, 5000):
                yield Study(
                    f"IS, {name}, {classes} classes, n={n}",
                    lambda rng, arm=arm, n=n: arm.draw(n, rng),
                    inception,
                    truth,
                )
    flagged = DirichletArm(0.02 + 5.0 * np.eye(1000))
    yield Study(
        "IS, sharp, 1000 classes, n=200 (warned of)",
        lambda rng: flagged.draw(200, rng),
        inception,
        float(np.exp(flagged.facts["log_score"])),
    )


def studies() -> Iterator[Study]:
    """Every row, in the order of the table."""
    yield from frechet_studies()
    yield from kernel_studies()
    yield from inception_studies()


def measure(study: Study, *, replications: int, seed: int, jobs: int) -> list[str]:
    """Return one line of the table."""
    result = interval_coverage(
        study.estimate,
        study.draw,
        study.truth,
        replications=replications,
        seed=seed,
        level=LEVEL,
        jobs=jobs,
        subject=study.label,
    )
    return [
        study.label,
        f"{result.coverage:.2%}",
        f"{1 - result.miss_high:.2%} – {1 - result.miss_low:.2%}",
        f"{result.width:.3g}",
        str(replications),
    ]


COLUMNS = ("study", "coverage of the 95 % interval", "limits", "median width", "replications")
SIZE = r"(?:^|, )(d=\d+|n=\d+|reference of \d+|\d+ classes)"


def place(label: str) -> tuple[str, str, str]:
    """Return table, row and column of a study on the page: score, sizes and distribution."""
    score, _, shape = re.sub(SIZE, "", label).partition(", ")
    if shape.startswith("less "):
        score, shape = f"FD of the column {shape}", score.removeprefix("FD of ")
    elif score.startswith("FD of t"):  # whose name has a comma
        score, shape = f"FD of the column less {shape.partition('less ')[2]}", "t, 8 degrees"
    elif shape.endswith(", scaled by 1.4"):
        score, shape = f"{score}, scaled by 1.4", shape.removesuffix(", scaled by 1.4")
    return score, ", ".join(re.findall(SIZE, label)), shape


def page(rows: list[list[str]]) -> list[str]:
    """Return what the page shows: a table of coverages for each score."""
    tables: dict[str, dict[tuple[str, str], str]] = {}
    for label, coverage, _, _, replications in rows:
        score, size, shape = place(label)
        cell = f"{float(coverage.removesuffix('%')):.1f}" + "*" * (int(replications) < 2000)
        tables.setdefault(score, {})[size, shape] = cell
    lines = []
    for score, cells in tables.items():
        lines += [*crossed(cells, score), ""]
    return lines


def main(argv: list[str] | None = None) -> int:
    """Run the rows that are not there yet and rewrite the table."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.coverage", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--studies", nargs="*", default=["*"], help="shell patterns of row names")
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    KEPT.mkdir(parents=True, exist_ok=True)
    before = {row[0]: row for row in read_data("coverage", page=PAGE)}
    rows = []
    for study in studies():
        path = KEPT / f"{study.label.replace(' ', '-').replace(',', '')}.json"
        if not path.exists():
            if not any(fnmatch(study.label, pattern) for pattern in options.studies):
                if study.label in before:
                    rows.append(before[study.label])
                continue
            row = measure(
                study, replications=options.replications, seed=options.seed, jobs=options.jobs
            )
            atomic_write(path, json.dumps(row))
            print(" | ".join(row), file=sys.stderr, flush=True)
        rows.append(json.loads(path.read_text()))
    write_data("coverage", COLUMNS, rows, page=PAGE)
    head = (
        f"Seed {options.seed}. Percent of the 95 % intervals that hold the truth; 2,000 "
        "replications, an asterisk: fewer, from 500 on. The 99 % limits of 95.0 are ± 1.3 with "
        "2,000 and ± 2.5 with 500. [Limits, widths and replications of each](data/coverage.csv)."
    )
    record("coverage", [head, "", *page(rows)], page=PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
