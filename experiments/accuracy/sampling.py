"""Whether intervals cover however samples are drawn, and whether warnings tell where they do not.

    python -m experiments.accuracy.sampling [--replications 200] [--jobs 2]

Two tables of docs/evidence/accuracy.md. "Designs of sampling": scores told by `genbounds.Sample`
how their rows were drawn, beside the same rows as a plain array in the order of the design. "What
the warnings say": plain arrays of independent or repeated rows. Replications are run in rounds, and
both tables are written after each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.accuracy.coverage import PAGE
from experiments.accuracy.laws import Float, root
from experiments.record import rate, record, record_briefly, stamp, table

ROUND = 5
D = 64
LOW, HIGH = 0.80, 0.93
"""A cell that covers less than the first fails; one that covers the second or more holds."""

Rng = np.random.Generator
Scored = Callable[..., Any]


@dataclass(frozen=True)
class Cell:
    """One way of drawing samples.

    Attributes
    ----------
    label : str
    draw : callable
        From a random generator to the arguments of `score`: `Sample`, arrays or `Moments`.
    truth : float
    score : callable
        Gives a result with `low`, `high` and `reliable`.
    untold : callable
        From the same arguments to those of a user who says nothing.
    """

    label: str
    draw: Callable[[Rng], tuple[Any, ...]]
    truth: float
    score: Scored = gb.frechet_distance
    untold: Callable[[tuple[Any, ...]], tuple[Any, ...]] = field(
        default=lambda given: tuple(plain(one) for one in given)
    )


@dataclass
class Tally:
    """Replications so far, how many intervals covered, and how many results were flagged."""

    runs: int = 0
    covered: int = 0
    flagged: int = 0

    def add(self, result: tuple[bool, bool]) -> None:
        """Count a replication: whether its interval covered, and whether it was flagged."""
        self.runs += 1
        self.covered += result[0]
        self.flagged += result[1]

    @property
    def coverage(self) -> float:
        """Share of intervals that cover."""
        return self.covered / self.runs

    def cells(self) -> list[str]:
        """Coverage with exact 99 % limits, and the share of results flagged."""
        return [
            rate(self.covered, self.runs, limits=".0%", level=0.99),
            f"{self.flagged / self.runs:.0%}",
        ]


def plain(given: Any) -> Any:
    """Return the rows of a sample without a word on how they were drawn."""
    return given.features if isinstance(given, gb.Sample) else given


def distance(fake: tuple[Float, Float], real: tuple[Float, Float]) -> float:
    """Fréchet distance of two means and covariances."""
    (mean, cov), (other_mean, other_cov) = fake, real
    cross = np.linalg.svd(root(cov) @ root(other_cov), compute_uv=False).sum()
    gap = mean - other_mean
    return float(gap @ gap + np.trace(cov) + np.trace(other_cov) - 2.0 * cross)


# Mixtures of Gaussian classes -------------------------------------------------------------------


class Classes:
    """Equally likely Gaussian classes, and a reference: the same ones, a little wider and moved."""

    def __init__(self, count: int, d: int = D, within: float = 2.0) -> None:
        rng = np.random.default_rng(1)
        self.count, self.d = count, d
        self.centres = 2.0 * rng.normal(size=(count, d))
        self.noise = np.sqrt(within / d) * rng.normal(size=(d, d))
        spread = self.noise.T @ self.noise
        self.mean = self.centres.mean(axis=0)
        self.cov = np.cov(self.centres.T, bias=True) + spread
        self.scale, self.shift = 1.07, 0.05

    @property
    def reference(self) -> tuple[Float, Float]:
        """Mean and covariance of the reference."""
        return self.scale * self.mean + self.shift, self.scale**2 * self.cov

    @property
    def truth(self) -> float:
        """Fréchet distance of classes drawn at random to the reference."""
        return distance((self.mean, self.cov), self.reference)

    def rows(
        self, k: Any, rng: Rng, source: Any = None, share: float = 0.6, real: bool = False
    ) -> Float:
        """Draw rows of classes k; those of one `source` have this share of the noise in common."""
        noise = rng.normal(size=(k.size, self.d))
        if source is not None:
            common = rng.normal(size=(source.max() + 1, self.d))[source]
            noise = np.sqrt(share) * common + np.sqrt(1.0 - share) * noise
        x = self.centres[k] + noise @ self.noise
        return self.scale * x + self.shift if real else x

    def draw(self, n: int, rng: Rng, *, real: bool = False) -> Float:
        """Draw independent rows."""
        return self.rows(rng.integers(self.count, size=n), rng, real=real)

    def balanced(self, each: int, rng: Rng, *, real: bool = False) -> gb.Sample:
        """Draw as many rows of every class."""
        k = np.repeat(np.arange(self.count), each)
        return gb.Sample(self.rows(k, rng, real=real), strata=k)

    def sources(self, n: int, size: int, rng: Rng) -> gb.Sample:
        """Draw several rows of every source, one class each."""
        source = np.arange(n) // size
        k = rng.integers(self.count, size=source[-1] + 1)[source]
        return gb.Sample(self.rows(k, rng, source), groups=source)


def shuffled(sample: gb.Sample, rng: Rng) -> gb.Sample:
    return sample[rng.permutation(len(sample))]


def kernel_truth(classes: Classes) -> float:
    """KID of degree 3, from the first three moments of both mixtures."""

    def tensors(centres: Float, cov: Float) -> list[Float]:
        n = len(centres)
        mean = centres.mean(axis=0)
        second = centres.T @ centres / n + cov
        third = np.einsum("ai,aj,ak->ijk", centres, centres, centres, optimize=True) / n
        for axes in ("ij,k->ijk", "ik,j->ijk", "jk,i->ijk"):
            third += np.einsum(axes, cov, mean)
        return [mean, second, third]

    spread = classes.noise.T @ classes.noise
    fake = tensors(classes.centres, spread)
    real = tensors(classes.scale * classes.centres + classes.shift, classes.scale**2 * spread)
    gaps = [a - b for a, b in zip(fake, real, strict=True)]
    return sum(
        ways * float((gap**2).sum()) / classes.d**power
        for gap, ways, power in zip(gaps, (3, 3, 1), (1, 2, 3), strict=True)
    )


# The designs ------------------------------------------------------------------------------------


def class_cells() -> Iterator[Cell]:
    """Yield samples with a fixed number of rows of each of 100 classes."""
    classes = Classes(100)
    exact = gb.Moments(*classes.reference)
    for each in (10, 50):
        name = f"FD, {each} rows of each of 100 classes, n = {100 * each:,}"
        yield Cell(name, lambda rng, each=each: (classes.balanced(each, rng), exact), classes.truth)
        if each == 10:
            yield Cell(
                f"{name}, in random order",
                lambda rng: (shuffled(classes.balanced(10, rng), rng), exact),
                classes.truth,
            )
        yield Cell(
            f"{name}, both samples",
            lambda rng, each=each: (
                classes.balanced(each, rng),
                classes.balanced(each, rng, real=True),
            ),
            classes.truth,
        )
    for kind in ("balanced", "four rows a source"):

        def draw(rng: Rng, kind: str = kind) -> tuple[Any, ...]:
            fake = (
                classes.balanced(10, rng) if kind == "balanced" else classes.sources(1000, 4, rng)
            )
            return fake, classes.draw(1000, rng, real=True)

        label = "10 rows of each of 100 classes" if kind == "balanced" else kind
        yield Cell(
            f"KID, {label}, n = 1,000",
            draw,
            kernel_truth(classes),
            gb.kernel_inception_distance,
        )


SMOOTH = np.array([0.05, 0.5])
"""Probability that a posterior spreads over the other classes, one of two for every row."""


def posterior_cells() -> Iterator[Cell]:
    """Inception score; a quarter of the rows look like another class than was asked for."""
    for count in (200, 1000):

        def draw(rng: Rng, count: int = count) -> tuple[Any, ...]:
            k = np.repeat(np.arange(count), 2000 // count)
            label = np.where(rng.random(2000) < 0.25, rng.integers(count, size=2000), k)
            smooth = SMOOTH[rng.integers(2, size=2000)]
            p = np.repeat(smooth[:, None] / (count - 1), count, axis=1)
            p[np.arange(2000), label] = 1.0 - smooth
            return (gb.Sample(p, strata=k),)

        entropy = -SMOOTH * np.log(SMOOTH / (count - 1)) - (1.0 - SMOOTH) * np.log(1.0 - SMOOTH)
        yield Cell(
            f"Inception score, {2000 // count} rows of each of {count:,} classes, n = 2,000",
            draw,
            count * float(np.exp(-entropy.mean())),
            gb.inception_score,
        )


def vendi_cells() -> Iterator[Cell]:
    """50 classes in orthogonal directions, and 14 directions of noise alone."""
    count, noise = 50, 0.3
    axes = 4.0 * np.eye(D)

    def rows(k: Any, rng: Rng) -> Float:
        return axes[k] + noise * rng.normal(size=(k.size, D))

    # The covariance of rows of length one is diagonal; classes are alike, and so are the others.
    squares = np.zeros(D)
    for part in range(20):
        many = rows(np.repeat(np.arange(count), 400), np.random.default_rng(part))
        squares += (many**2 / (many**2).sum(axis=1, keepdims=True)).mean(axis=0) / 20.0
    p = np.where(np.arange(D) < count, squares[:count].mean(), squares[count:].mean())
    truths = {1.0: float(np.exp(-(p @ np.log(p)))), 2.0: 1.0 / float(p @ p)}
    k = np.repeat(np.arange(count), 10)
    for order, truth in truths.items():
        yield Cell(
            f"Vendi score of order {order:g}, 10 rows of each of 50 classes, n = 500",
            lambda rng: (gb.Sample(rows(k, rng), strata=k),),
            truth,
            lambda x, order=order: gb.vendi_score(x, kernel="cosine", order=order),
        )


def group_cells() -> Iterator[Cell]:
    """Several rows of one source; sources that both samples share."""
    classes = Classes(100)
    exact = gb.Moments(*classes.reference)
    for n in (512, 3200):
        yield Cell(
            f"FD, four rows a source, n = {n:,}",
            lambda rng, n=n: (classes.sources(n, 4, rng), exact),
            classes.truth,
        )
    yield Cell(
        "FD, four rows a source, n = 3,200, in random order",
        lambda rng: (shuffled(classes.sources(3200, 4, rng), rng), exact),
        classes.truth,
    )
    for share in (0.2, 0.5):

        def clusters(rng: Rng, share: float = share) -> tuple[Any, ...]:
            source = np.repeat(np.arange(50), 20)
            common = rng.normal(size=(50, 8))[source]
            x = np.sqrt(share) * common + np.sqrt(1.0 - share) * rng.normal(size=(1000, 8))
            return gb.Sample(x, groups=source), gb.Moments(np.full(8, 0.1), 1.3 * np.eye(8))

        yield Cell(
            f"FD, 50 clusters of 20 rows, d = 8, correlation {share:g}",
            clusters,
            distance((np.zeros(8), np.eye(8)), (np.full(8, 0.1), 1.3 * np.eye(8))),
        )
    for n in (512, 2000):

        def shared(rng: Rng, n: int = n) -> tuple[Any, ...]:
            prompt = np.arange(n)
            k = rng.integers(classes.count, size=n)
            common = rng.normal(size=(n, D))
            x, y = (
                classes.centres[k]
                + (np.sqrt(0.6) * common + np.sqrt(0.4) * rng.normal(size=(n, D))) @ classes.noise
                for _ in range(2)
            )
            y = classes.scale * y + classes.shift
            return gb.Sample(x, groups=prompt), gb.Sample(y, groups=prompt)

        yield Cell(f"FD, row i of both samples from one prompt, n = {n:,}", shared, classes.truth)


@dataclass(frozen=True)
class Gap:
    """Difference of two models, and whether either is flagged."""

    low: float
    high: float
    reliable: bool


def gap(first: Any, second: Any, real: Any) -> Gap:
    """Return the interval of the first model's distance less the second's."""
    ranking = gb.compare({"first": first, "second": second}, real)
    pair = ranking.differences[0]
    low, high = pair.low, pair.high
    if pair.better == "second":
        low, high = -high, -low
    return Gap(low, high, all(score.reliable for score in ranking.scores.values()))


def compare_cells() -> Iterator[Cell]:
    """Two models of which the second is a tenth wider."""
    classes = Classes(50, d=16)
    exact = gb.Moments(*classes.reference)
    wider = distance((1.1 * classes.mean, 1.21 * classes.cov), classes.reference)
    truth = classes.truth - wider

    def balanced(rng: Rng) -> tuple[Any, ...]:
        one, two = classes.balanced(8, rng), classes.balanced(8, rng)
        return one, gb.Sample(1.1 * two.features, strata=two.strata), exact

    def prompts(rng: Rng) -> tuple[Any, ...]:
        one = classes.sources(400, 1, rng)
        two = one.features + 0.3 * rng.normal(size=one.shape) @ classes.noise
        scale = 1.1 / np.sqrt(1.09)  # noise in addition: only nearly a tenth wider
        return one, gb.Sample(scale * two, groups=one.groups), exact

    spread = classes.noise.T @ classes.noise
    cov = 1.1**2 / 1.09 * (classes.cov + 0.09 * spread)
    noisy = distance((1.1 / np.sqrt(1.09) * classes.mean, cov), classes.reference)
    yield Cell("compare, 8 rows of each of 50 classes, d = 16", balanced, truth, gap)
    yield Cell(
        "compare, two models with the same 400 prompts, d = 16",
        prompts,
        classes.truth - noisy,
        gap,
    )


# References by statistics -----------------------------------------------------------------------


def without_size(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the reference as a file gives it that holds `mu` and `sigma` only."""
    fake, real = given
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "statistics.npz"
        np.savez(path, mu=real.mean, sigma=real.cov)
        return fake, gb.Moments.load(path)


def rectified(rng: Rng, n: int, scale: float = 1.0) -> Float:
    """Rectified features of 12 hidden variables."""
    mix = np.random.default_rng(2).normal(size=(12, D)) / np.sqrt(12.0)
    return np.maximum(scale * rng.normal(size=(n, 12)) @ mix - 0.5, 0.0)


@cache
def rectified_moments(scale: float) -> tuple[Float, Float]:
    """Mean and covariance of a million rows."""
    rng = np.random.default_rng(3)
    moments = gb.Moments.empty(D)
    for _ in range(50):
        moments = moments.update(rectified(rng, 20_000, scale))
    return moments.mean, moments.cov


def statistics_cells() -> Iterator[Cell]:
    """Yield references of 8 d rows of which mean, covariance and size are known."""
    m = 8 * D
    for scale in (0.8, 1.0, 1.1, 1.2, 1.4):
        fake = gb.Moments(np.zeros(D), scale**2 * np.eye(D))
        yield Cell(
            f"FD, statistics of {m} Gaussian rows, generated × {scale:g}",
            lambda rng, fake=fake: (fake, gb.Moments.from_features(rng.normal(size=(m, D)))),
            D * (scale - 1.0) ** 2,
            untold=without_size,
        )
    truth = distance(rectified_moments(1.15), rectified_moments(1.0))
    for kept in (0, m):

        def draw(rng: Rng, kept: int = kept) -> tuple[Any, ...]:
            fake = rectified(rng, 2000, 1.15)
            return fake, gb.Moments.from_features(rectified(rng, m), keep=kept)

        how = "rows kept" if kept else "fourth moments borrowed"
        yield Cell(f"FD, statistics of {m} ReLU rows, {how}", draw, truth, untold=without_size)


# Distributions for the warnings -----------------------------------------------------------------

MIX = np.random.default_rng(0).normal(size=(D, D)) / np.sqrt(D)


def student(degrees: int) -> Callable[[Rng, int], Float]:
    def draw(rng: Rng, n: int) -> Float:
        return rng.normal(size=(n, D)) @ MIX / np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees)

    return draw


def copied(noise: float) -> Callable[[Rng, int], Float]:
    """Gaussian rows of which three in ten have a copy or are one."""

    def draw(rng: Rng, n: int) -> Float:
        x = rng.normal(size=(n, D)) @ MIX
        half = int(0.15 * n)
        x[:half] = x[half : 2 * half] + noise * rng.normal(size=(half, D)) @ MIX
        return rng.permutation(x)

    return draw


def ten_clusters(rng: Rng, n: int) -> Float:
    centres = 3.0 * np.random.default_rng(4).normal(size=(10, D))
    return centres[rng.integers(10, size=n)] + rng.normal(size=(n, D)) @ MIX


@cache
def digit_images() -> Float:
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data / 16.0)


def digits(rng: Rng, n: int) -> Float:
    """Handwritten digits with a tenth of noise."""
    images = digit_images()
    return images[rng.integers(len(images), size=n)] + 0.1 * rng.normal(size=(n, D))


@cache
def photographs() -> list[Any]:
    from sklearn.datasets import load_sample_images

    grey = [image.mean(axis=2) / 255.0 for image in load_sample_images().images]
    return [np.lib.stride_tricks.sliding_window_view(image, (8, 8)) for image in grey]


def patches(rng: Rng, n: int) -> Float:
    """Grey patches of 8 × 8 pixels of two photographs."""
    found = np.empty((n, D))
    which = rng.integers(2, size=n)
    for k, windows in enumerate(photographs()):
        at = np.flatnonzero(which == k)
        i, j = (rng.integers(size, size=at.size) for size in windows.shape[:2])
        found[at] = windows[i, j].reshape(-1, D)
    return found


DISTRIBUTIONS: dict[str, Callable[[Rng, int], Float]] = {
    "Gaussian": lambda rng, n: rng.normal(size=(n, D)) @ MIX,
    **{f"t, {degrees} degrees": student(degrees) for degrees in (3, 4, 5, 6, 8)},
    "ten clusters": ten_clusters,
    "ReLU features": rectified,
    "digits": digits,
    "patches of photographs": patches,
    "Gaussian, 30 % exact duplicates": copied(0.0),
    "Gaussian, 30 % near-duplicates": copied(0.01),
}


@cache
def moments_of(name: str) -> tuple[Float, Float]:
    """Mean and covariance of a distribution: exact, or of a million rows."""
    if name.startswith("Gaussian"):
        return np.zeros(D), MIX.T @ MIX
    if name.startswith("t,"):
        degrees = int(name.split()[1])
        return np.zeros(D), MIX.T @ MIX * degrees / (degrees - 2.0)
    rng = np.random.default_rng(5)
    moments = gb.Moments.empty(D)
    for _ in range(50):
        moments = moments.update(DISTRIBUTIONS[name](rng, 20_000))
    return moments.mean, moments.cov


def warning_cells() -> Iterator[Cell]:
    """Plain arrays against exact moments a little away from their own."""
    for name, draw in DISTRIBUTIONS.items():
        mean, cov = moments_of(name)
        real = mean + 0.05 * np.sqrt(np.trace(cov) / D), 1.3 * cov + 1e-6 * np.eye(D)
        for n in (8 * D, 50 * D):
            yield Cell(
                f"{name}, n = {n:,}",
                lambda rng, n=n, draw=draw, real=real: (draw(rng, n), gb.Moments(*real)),
                distance((mean, cov), real),
            )


# Measuring --------------------------------------------------------------------------------------


@cache
def all_cells() -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    """Cells of either table."""
    kinds = (
        class_cells,
        posterior_cells,
        vendi_cells,
        group_cells,
        compare_cells,
        statistics_cells,
    )
    return tuple(cell for kind in kinds for cell in kind()), tuple(warning_cells())


def covers(score: Any, truth: float) -> bool:
    """Whether an interval covers; one so far below its range that it is unreliable does not."""
    moved = any(
        warning.code == "out-of-range" and warning.severity == "unreliable"
        for warning in getattr(score, "warnings", ())
    )
    return bool(score.low <= truth <= score.high) and not moved


def measure(
    part: int, number: int, first: int, count: int, seed: int
) -> list[list[tuple[bool, bool]]]:
    """Return for some replications of a cell whether the interval covers and is flagged.

    For the first table of told and of untold samples, for the second of plain arrays.
    """
    cell = all_cells()[part][number]
    found = []
    for run in range(first, first + count):
        rng = np.random.default_rng([seed, crc32(cell.label.encode()), run])
        given = cell.draw(rng)
        results = []
        with threadpool_limits(1):
            for arguments in (given, cell.untold(given))[part:]:
                score = cell.score(*arguments)
                results.append((covers(score, cell.truth), not score.reliable))
        found.append(results)
    return found


def write(tallies: list[list[list[Tally]]], seed: int) -> None:
    """Rewrite both tables and the summary."""
    designs, warnings = all_cells()
    runs = tallies[0][0][0].runs
    head = f"Seed {seed}, {runs} replications a row."
    rows = [
        [cell.label, *told.cells(), *untold.cells()]
        for cell, (told, untold) in zip(designs, tallies[0], strict=True)
    ]
    heads = [
        "how the samples were drawn",
        "as `gb.Sample`: covers",
        "flagged",
        "as plain arrays: covers",
        "flagged",
    ]
    record_briefly("sampling", f"{head} {stamp()}", table(heads, rows), page=PAGE)
    rows = [
        [cell.label, *tally.cells()] for cell, (tally,) in zip(warnings, tallies[1], strict=True)
    ]
    untold = [pair[1] for pair in tallies[0]] + [one for (one,) in tallies[1]]
    told = [pair[0] for pair in tallies[0]]
    summary = [
        "",
        f"As plain arrays (this table, and the last columns of the one above): {flags(untold)}.",
        "",
        f"As `gb.Sample` (first columns of the table above): {flags(told)}.",
    ]
    heads = ["rows", "covers", "flagged"]
    record("warnings", [f"{head} {stamp()}", "", *table(heads, rows), *summary], page=PAGE)


def flags(tallies: list[Tally]) -> str:
    """Say how many results are flagged where intervals fail, and where they hold."""

    def share(chosen: list[Tally]) -> str:
        total = sum(tally.runs for tally in chosen)
        return f"{sum(t.flagged for t in chosen) / total:.1%}" if total else "none"

    failing = [tally for tally in tallies if tally.coverage < LOW]
    holding = [tally for tally in tallies if tally.coverage >= HIGH]
    return (
        f"of the results in the {len(failing)} rows that cover less than {LOW:.0%}, "
        f"{share(failing)} are flagged; in the {len(holding)} rows that cover "
        f"{HIGH:.0%} or more, {share(holding)}"
    )


def main(argv: list[str] | None = None) -> int:
    """Run every cell in rounds and rewrite both tables after each."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.sampling", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    cells = all_cells()
    tallies = [[[Tally() for _ in range(2 - part)] for _ in cells[part]] for part in (0, 1)]
    numbers = [(part, k) for part in (0, 1) for k in range(len(cells[part]))]
    with Parallel(n_jobs=options.jobs) as pool:
        for first in range(0, options.replications, ROUND):
            count = min(ROUND, options.replications - first)
            found = pool(
                delayed(measure)(part, k, first, count, options.seed) for part, k in numbers
            )
            for (part, k), results in zip(numbers, found, strict=True):
                for result in results:
                    for tally, one in zip(tallies[part][k], result, strict=True):
                        tally.add(one)
            write(tallies, options.seed)
            print(f"{first + count} replications", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    # Workers look for the cached functions in the module of this name, not in `__main__`.
    from experiments.accuracy import sampling

    raise SystemExit(sampling.main())
