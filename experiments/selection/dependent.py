"""Arms whose rows are not independent draws: what they do to a certificate, and when they are seen.

python -m experiments.selection.dependent certificates   # two tied arms, one of them odd
python -m experiments.selection.dependent sampled        # the same against a sampled reference
python -m experiments.selection.dependent unchecked      # the same with both checks switched off
python -m experiments.selection.dependent seen           # how soon, and honest rows accused

Runs of the first three are kept in OUT/STUDY.jsonl, and the same command goes on where it was
stopped. All tables are recorded in docs/evidence/selection_dependent.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from experiments.record import exact_limits, record, record_briefly, stamp, table
from experiments.selection import store
from experiments.selection.store import Run
from genbounds import select
from genbounds.estimators import CustomMetric, Moments
from genbounds.select import FeatureArm

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "selection_dependent.md"

D, CLASSES = 16, 10
REFERENCE = 2_000
"""Rows of a sampled reference."""


def class_means(spread: float) -> np.ndarray:
    """Means of ten classes, standard deviations `spread` apart from their centre."""
    means = np.random.default_rng(0).standard_normal((CLASSES, D))
    return spread * (means - means.mean(axis=0))


@dataclass
class Classes:
    """Ten classes with unit noise: "independent", in "turns", or "balanced" within every ten."""

    order: str
    spread: float = 2.0
    shift: float = 0.3
    drawn: int = 0

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows."""
        if self.order == "independent":
            kinds = rng.integers(CLASSES, size=n)
        elif self.order == "turns":
            kinds = np.arange(self.drawn, self.drawn + n) % CLASSES
        else:  # batches are whole numbers of ten
            blocks = [rng.permutation(CLASSES) for _ in range(-(-n // CLASSES))]
            kinds = np.concatenate(blocks)[:n]
        self.drawn += n
        rows = class_means(self.spread)[kinds] + rng.standard_normal((n, D))
        rows[:, 0] += self.shift
        return rows


class Pool:
    """300 independent rows, made once, drawn with replacement."""

    def __init__(self, size: int = 300) -> None:
        self._size = size
        self._rows: np.ndarray | None = None

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows."""
        if self._rows is None:
            self._rows = Classes("independent", 1.0, 1.0).draw(self._size, rng)
        return self._rows[rng.integers(self._size, size=n)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An odd arm, its honest twin, and where the run ends."""

    odd: Callable[[], Any]
    honest: Callable[[], Any]
    spread: float
    limit: int


def cases() -> dict[str, Case]:
    """Both arms of a run have one distance: every certificate is wrong for one reading of it."""

    def classes(order: str) -> Case:
        return Case(
            odd=lambda: Classes(order),
            honest=lambda: Classes("independent"),
            spread=2.0,
            limit=1_000,
        )

    return {
        "ten classes in turns": classes("turns"),
        "ten classes, balanced within every ten": classes("balanced"),
        "a file of 300 rows, with replacement": Case(
            odd=Pool, honest=lambda: Classes("independent", 1.0, 1.0), spread=1.0, limit=300
        ),
        "control: both arms honest": classes("independent"),
    }


@contextmanager
def unchecked() -> Iterator[None]:
    """Switch the checks of a run off."""
    sampler: Any = import_module("genbounds.select._sampler")
    kept = sampler.copies, sampler.order_effect
    sampler.copies = lambda *arguments: None
    sampler.order_effect = lambda *arguments, **options: None
    try:
        yield
    finally:
        sampler.copies, sampler.order_effect = kept


def certificate(name: str, study: str, seed: int) -> Run:
    """Which arm one run certifies; None if none."""
    case = cases()[name]
    means = class_means(case.spread)
    reference: Any = Moments(np.zeros(D), np.eye(D) + means.T @ means / CLASSES)
    if study == "sampled":
        real = Classes("independent", case.spread, 0.0)
        reference = real.draw(REFERENCE, np.random.default_rng([1, seed]))
    arms = {"honest": case.honest(), "odd": case.odd()}
    start = time.process_time()

    def run() -> select.Selection:
        return select.run(
            arms, reference, policy="elimination", batch=100, limit=case.limit, seed=seed
        )

    if study == "unchecked":
        with unchecked():
            result = run()
    else:
        result = run()
    return {
        "certified": result.best if result.certified else None,
        "set aside": list(result.set_aside),
        "samples": result.samples["odd"],
        "seconds": time.process_time() - start,
    }


def certificates(options: argparse.Namespace) -> list[str]:
    """Tabulate how often either of two tied arms is certified to be the better one."""
    rows = []
    for name in cases():
        jobs = [(name, options.study, seed) for seed in range(options.runs)]
        path = options.out / f"{options.study}.jsonl"
        runs = list(
            store.study(jobs, certificate, out=path, workers=store.workers_of(options)).values()
        )
        cells = [name, f"{len(runs):,}"]
        for arm in ("odd", "honest"):
            wrong = sum(run["certified"] == arm for run in runs)
            low, high = exact_limits(wrong, len(runs))
            cells.append(f"{wrong} ({low:.1%} – {high:.1%})")
        cells.append(str(sum("odd" in run["set aside"] for run in runs)))
        cells.append(f"{np.median([run['samples'] for run in runs]):,.0f}")
        rows.append(cells)
    columns = (
        "odd arm", "runs", "odd certified (95 %)", "honest certified (95 %)",
        "odd set aside", "samples of it, median",
    )  # fmt: skip
    return [stamp(), "", *table(columns, rows)]


MEAN = CustomMetric(name="mean", value=lambda x: float(x[:, 0].mean()), influence=lambda x: x[:, 0])


def drift(sd: float, d: int) -> Callable[[int, np.random.Generator], np.ndarray]:
    """Rows whose mean moves by `sd` standard deviations along one axis, in all."""

    def draw(n: int, rng: np.random.Generator) -> np.ndarray:
        rows = rng.standard_normal((n, d))
        rows[:, 0] += sd * np.linspace(0.0, 1.0, n)
        return rows

    return draw


def groups(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows in groups of five, whose means vary as much as the rows of a group."""
    return rng.standard_normal((n, D)) + np.repeat(rng.standard_normal((n // 5, D)), 5, axis=0)


def kinds() -> dict[str, Callable[[int, np.random.Generator], np.ndarray]]:
    """Rows in their order, by kind: odd ones, then honest ones."""
    found: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
        f"ten classes {spread:g} sd apart, {order}": (
            lambda n, rng, order=order, spread=spread: Classes(order, spread).draw(n, rng)
        )
        for order in ("turns", "balanced")
        for spread in (2.0, 1.0, 0.5)
    }
    found |= {
        f"mean drifts by {sd:g} sd in all, d = {d}": drift(sd, d)
        for d in (16, 512)
        for sd in (0.5, 1.0, 2.0)
    }
    return found | {
        "groups of five, half of the variance": groups,
        "honest: Gaussian, d = 16": lambda n, rng: rng.standard_normal((n, D)),
        "honest: Student t, 2.5 degrees": lambda n, rng: rng.standard_t(2.5, size=(n, D)),
        "honest: one-hot, ten classes": lambda n, rng: np.eye(10)[rng.integers(10, size=n)],
        "honest: rare events, 5 %": lambda n, rng: (rng.random((n, 1)) < 0.05) * 1.0,
        "honest: a file, each row once": lambda n, rng: FeatureArm(
            np.random.default_rng(0).standard_normal((n, D))
        ).draw(n, rng),
    }


SIZES = (100, 200, 400, 1_000, 4_000)


def accused(kind: str, n: int, runs: int) -> int:
    """How many of so many runs set aside an arm whose only look is at n rows."""
    make, count = kinds()[kind], 0
    for seed in range(runs):
        result = select.run(
            {"arm": make}, metric=MEAN, batch=n, first_look=n, limit=2 * n, growth=1.1, seed=seed
        )
        count += bool(result.arms["arm"].state == "set aside")
    return count


def seen(options: argparse.Namespace) -> list[str]:
    """Tabulate the share of arms that are set aside at a look, by the rows they have."""
    rows = []
    for kind in kinds():
        runs = 10 * options.runs if kind.startswith("honest") else options.runs
        sizes = [n for n in SIZES if not kind.startswith("honest") or n <= 1_000]
        counts = [accused(kind, n, runs) for n in sizes]
        cells = [f"{count / runs:.0%}" if count else "0" for count in counts]
        rows.append([kind, f"{runs:,}", *cells, *[""] * (len(SIZES) - len(sizes))])
    columns = ("rows", "runs", *(f"n = {n:,}" for n in SIZES))
    return [stamp(), "", *table(columns, rows)]


def main() -> None:
    """Run a study, print its table and record it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=("certificates", "sampled", "unchecked", "seen"))
    parser.add_argument("--runs", type=int, default=500)
    store.add_workers(parser)
    parser.add_argument("--out", type=Path, default=Path("out/dependent"))
    parser.add_argument("--page", type=Path, default=PAGE, help="whose section is rewritten")
    options = parser.parse_args()
    lines = seen(options) if options.study == "seen" else certificates(options)
    print("\n".join(lines))
    name = f"dependent-{options.study}"
    if options.study == "seen":
        record(name, lines, page=options.page)
    else:
        head, _, *rows = lines
        record_briefly(name, head, rows, page=options.page)


if __name__ == "__main__":
    main()
