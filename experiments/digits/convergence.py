"""How every score nears its true value with n, and whether its interval holds it on the way.

``python -m experiments.digits.convergence`` takes the digits' GAN as the model and their Gaussian
mixture as what is real, so that both can be drawn from at will. The true values are those of
very large samples (the KID's from sums over all their pairs, by the moments of third order that
its kernel consists of). Then samples of n of either, many times: mean error of each estimator,
how many intervals hold the true value, and how wide they are.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.digits.progress import Progress, bars
from experiments.digits.train import DEFAULT_CACHE, Config, Digits, prepare
from experiments.record import PAGE, picture, record, stamp, table, write_data
from genbounds.estimators import KernelReference

SIZES = (100, 200, 400, 800, 1_600, 3_200)
MODEL, REAL = "gan", "mixture"
CHUNK = 20_000
DEGREE = 3

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Features of the model and of what is real; posteriors of the model."""

    fake: Array
    real: Array
    posteriors: Array

    def first(self, n: int) -> Sample:
        """Return the first `n` rows of everything."""
        return Sample(fake=self.fake[:n], real=self.real[:n], posteriors=self.posteriors[:n])


Estimate = Callable[[Sample], gb.Score]


def _vendi(order: float, method: str | None, estimator: str) -> Estimate:
    def estimate(sample: Sample) -> gb.Score:
        given = {} if method is None else {"method": method}
        return gb.vendi_score(
            sample.fake, kernel="cosine", order=order, estimator=estimator, **given
        )

    return estimate


SCORES: dict[str, dict[str, Estimate]] = {
    "FD": {
        estimator: lambda s, e=estimator: gb.frechet_distance(s.fake, s.real, estimator=e)
        for estimator in ("debiased", "plugin", "infinity")
    },
    "KID": {
        estimator: lambda s, e=estimator: gb.kernel_inception_distance(
            s.fake, s.real, estimator=e, degree=DEGREE
        )
        for estimator in ("debiased", "plugin")
    },
    "IS": {
        estimator: lambda s, e=estimator: gb.inception_score(s.posteriors, estimator=e)
        for estimator in ("debiased", "plugin", "infinity")
    },
    "Vendi": {e: _vendi(1.0, None, e) for e in ("debiased", "plugin")},
    "RKE": {"debiased": _vendi(2.0, "ustat", "debiased"), "plugin": _vendi(2.0, None, "plugin")},
}
"""Every score by every estimator; Vendi and RKE with the cosine kernel."""


def draw(digits: Digits, n: int, rng: np.random.Generator) -> Sample:
    """Draw `n` new images of either distribution and encode them."""
    parts = []
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        fake, real = (
            digits.encoder.features(digits.generators[name].sample(size, rng))
            for name in (MODEL, REAL)
        )
        parts.append((fake, real, digits.encoder.posteriors_of_features(fake)))
    fake, real, posteriors = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Sample(fake=fake, real=real, posteriors=posteriors)


def kid_of_all_pairs(fake: Array, real: Array) -> float:
    """Return the KID from all pairs of very many rows, in time linear in their number.

    (γ x·y + 1)³ is a sum of products of moments: E k(x, y) = Σ binom(3, j) γʲ ⟨E x^⊗j, E y^⊗j⟩.
    """
    d = fake.shape[1]
    weights = [math.comb(DEGREE, j) / d**j for j in range(DEGREE + 1)]
    means, own = [], []
    for rows in (fake, real):
        sums, diagonal = [np.zeros(d**j) for j in range(DEGREE + 1)], 0.0
        for start in range(0, len(rows), CHUNK):
            x = rows[start : start + CHUNK].astype(float)
            square = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
            sums[0] += len(x)
            sums[1] += x.sum(axis=0)
            sums[2] += square.sum(axis=0)
            sums[3] += (square.T @ x).ravel()
            diagonal += float((((x**2).sum(axis=1) / d + 1.0) ** DEGREE).sum())
        n = len(rows)
        means.append([total / n for total in sums])
        every = sum(w * float(m @ m) for w, m in zip(weights, means[-1], strict=True))
        own.append((n * every - diagonal / n) / (n - 1))
    between = sum(w * float(a @ b) for w, a, b in zip(weights, *means, strict=True))
    return own[0] + own[1] - 2.0 * between


def truths(sample: Sample) -> dict[str, tuple[float, float]]:
    """Return the value of every score from a very large sample, and its standard error."""
    found = {}
    for name, estimators in SCORES.items():
        if name != "KID":
            score = estimators["debiased"](sample)
            found[name] = score.value, score.stderr
    # The standard error falls as 1/√n: that of a part of the sample says that of the whole.
    part = min(len(sample.fake), CHUNK // 4)
    few = KernelReference(sample.real[:part], degree=DEGREE).estimate(sample.fake[:part])
    error = few.score(0.95).stderr * math.sqrt(part / len(sample.fake))
    found["KID"] = kid_of_all_pairs(sample.fake, sample.real), error
    return {name: found[name] for name in SCORES}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One estimator of one score: (replications, sizes)."""

    values: Array
    lows: Array
    highs: Array

    def misses(self, truth: float) -> Array:
        """Return, by size, how many intervals miss `truth`."""
        return ((self.lows > truth) | (self.highs < truth)).sum(axis=0)


def study(
    digits: Digits,
    sizes: tuple[int, ...],
    replications: int,
    seed: int,
    progress: Progress,
) -> dict[tuple[str, str], Curve]:
    """Score growing parts of many independent samples."""
    names = [(name, estimator) for name, known in SCORES.items() for estimator in known]
    found = {name: np.empty((3, replications, len(sizes))) for name in names}
    for number, stream in enumerate(np.random.SeedSequence((seed, 1)).spawn(replications)):
        whole = draw(digits, max(sizes), np.random.default_rng(stream))
        for place, n in enumerate(sizes):
            sample = whole.first(n)
            for name, estimator in names:
                score = SCORES[name][estimator](sample)
                found[name, estimator][:, number, place] = score.value, score.low, score.high
        progress("samples", (number + 1) / replications)
    return {name: Curve(values=v, lows=low, highs=high) for name, (v, low, high) in found.items()}


def report(
    curves: Mapping[tuple[str, str], Curve],
    true: Mapping[str, tuple[float, float]],
    options: argparse.Namespace,
) -> list[str]:
    """Return the section: true values, three tables and the figure."""
    sizes = [f"n = {n:,}" for n in options.sizes]
    labels = [f"{name}, {estimator}" for name, estimator in curves]

    def rows(cells: Callable[[Curve, float], list[str]]) -> list[tuple[str, ...]]:
        return [
            (label, *cells(curve, true[name][0]))
            for label, ((name, _), curve) in zip(labels, curves.items(), strict=True)
        ]

    def bias(curve: Curve, truth: float) -> list[str]:
        errors = curve.values / truth - 1.0
        spread = errors.std(axis=0, ddof=1) / math.sqrt(len(errors))
        middle = errors.mean(axis=0)
        return [f"{100 * m:+.1f} ± {200 * s:.1f}" for m, s in zip(middle, spread, strict=True)]

    def width(curve: Curve, truth: float) -> list[str]:
        return [f"{50 * w / truth:.1f}" for w in (curve.highs - curve.lows).mean(axis=0)]

    def paint(panels: Any) -> None:
        for axes, (name, known) in zip(panels, SCORES.items(), strict=True):
            for estimator in known:
                curve = curves[name, estimator]
                (line,) = axes.plot(options.sizes, curve.values.mean(axis=0), label=estimator)
                if estimator == "debiased":
                    ends = curve.lows.mean(axis=0), curve.highs.mean(axis=0)
                    axes.fill_between(options.sizes, *ends, alpha=0.2, color=line.get_color())
            axes.axhline(true[name][0], color="black", linewidth=0.8, linestyle="--")
            axes.set(xscale="log", title=name, xlabel="n")
            axes.legend(frameon=False, fontsize=7)

    columns = ("score, estimator", *sizes)
    write_data("convergence-widths", columns, rows(width), page=options.page)
    known = ", ".join(f"{name} {value:.5g} ± {error:.1g}" for name, (value, error) in true.items())
    return [
        stamp(),
        f"Model: {MODEL}; real: {REAL}, as many images of it. {options.replications} independent "
        f"samples a size, seed {options.seed}; 95 % intervals.",
        f"True values from {options.truth:,} images of either (± one standard error): {known}.",
        "",
        "Mean error in % of the true value, ± two standard errors:",
        "",
        *table(("score, estimator", *sizes), rows(bias)),
        "",
        f"Intervals, of {options.replications}, that miss the true value:",
        "",
        *table(
            ("score, estimator", *sizes),
            rows(lambda curve, truth: [str(count) for count in curve.misses(truth)]),
        ),
        "",
        "[Mean half widths of the intervals](data/convergence-widths.csv).",
        "",
        picture("convergence", paint, page=options.page, panels=len(SCORES)),
    ]


def main(argv: list[str] | None = None, *, config: Config | None = None) -> int:
    """Draw, score, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument("--truth", type=int, default=400_000, help="images of either distribution")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    if options.replications < 2:
        parser.error("--replications must be at least 2")
    with bars() as progress:
        digits = prepare(options.cache, config=config, progress=progress)
        rng = np.random.default_rng(np.random.SeedSequence((options.seed, 0)))
        true = truths(draw(digits, options.truth, rng))
        print({name: f"{value:.6g}" for name, (value, _) in true.items()}, file=sys.stderr)
        curves = study(digits, tuple(options.sizes), options.replications, options.seed, progress)
    record("convergence", report(curves, true, options), page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
