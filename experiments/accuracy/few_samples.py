"""Accuracy of the few-samples routes: bias, error, standard error and coverage by arm, d and n.

    python -m experiments.accuracy.few_samples --repeats 40

prints one row a cell. Every arm has exact moments but "network", whose truth is the law of a
fixed pool of 20,000 rows, drawn with replacement.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from genbounds.estimators._few_samples import few_samples

Float = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Float]

CELLS = (
    *((16, n) for n in (20, 40)),
    *((64, n) for n in (32, 80, 200)),
    *((128, n) for n in (32, 64, 160)),
    *((256, n) for n in (128, 320)),
    *((512, n) for n in (128, 256)),
)
ARMS = ("gauss", "gamma", "t8", "scales", "rectified", "ten", "same", "network")


@dataclass(frozen=True, slots=True)
class Law:
    """A generated law against a reference: how to draw it, and what is true."""

    draw: Draw
    mean: Float
    cov: Float
    reference_mean: Float
    reference_cov: Float


def power_law(d: int, seed: int, exponent: float, trace: float) -> Float:
    """Randomly rotated covariance with spectrum ∝ j^-exponent."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    spectrum = np.arange(1.0, d + 1.0) ** -exponent
    return (q * (spectrum * trace / spectrum.sum())) @ q.T


def root(cov: Float) -> Float:
    values, vectors = linalg.eigh(cov)
    return (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T


def rectified_moments(cov: Float) -> tuple[Float, Float]:
    """Mean and covariance of max(0, x), x ~ N(0, cov) (Cho & Saul 2009, arc-cosine kernel)."""
    sd = np.sqrt(np.diagonal(cov))
    angle = np.arccos(np.clip(cov / np.outer(sd, sd), -1.0, 1.0))
    mean = sd / np.sqrt(2.0 * np.pi)
    second = np.outer(sd, sd) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2.0 * np.pi)
    return mean, second - np.outer(mean, mean)


def make_law(arm: str, d: int) -> Law:
    reference = power_law(d, 11, 1.0, 160.0)
    cov = 0.65 * reference + 0.35 * power_law(d, 12, 0.8, 150.0)
    mean, zero = np.full(d, 0.12), np.zeros(d)
    if arm == "same":
        mean, cov = zero, reference
    if arm == "network":
        return network(d)
    half = root(cov)
    if arm == "rectified":
        return Law(
            lambda n, rng: np.maximum(rng.standard_normal((n, d)) @ half, 0.0),
            *rectified_moments(cov),
            *rectified_moments(reference),
        )
    if arm == "ten":
        centres = np.random.default_rng(5).standard_normal((10, d)) @ half * np.sqrt(0.5)
        centres -= centres.mean(axis=0)
        inner = half * np.sqrt(0.5)
        return Law(
            lambda n, rng: (
                mean + centres[rng.integers(10, size=n)] + rng.standard_normal((n, d)) @ inner
            ),
            mean,
            0.5 * cov + centres.T @ centres / 10.0,
            zero,
            reference,
        )

    def factors(n: int, rng: np.random.Generator) -> Float:
        if arm == "gamma":
            return rng.gamma(4.0, size=(n, d)) / 2.0 - 2.0
        z = rng.standard_normal((n, d))
        if arm == "t8":
            z /= np.sqrt(rng.chisquare(8, n) / 6.0)[:, None]
        elif arm == "scales":
            z *= np.sqrt(np.where(rng.random(n) < 0.5, 0.4, 1.6))[:, None]
        return z

    return Law(lambda n, rng: mean + factors(n, rng) @ half, mean, cov, zero, reference)


def network(d: int) -> Law:
    """Rectified two-layer random features of ten noisy prototypes, as an encoder makes them."""
    rng = np.random.default_rng(7)
    inputs, hidden, pool = 64, 1024, 20_000
    prototypes = rng.standard_normal((10, inputs))
    one = rng.standard_normal((inputs, hidden)) / np.sqrt(inputs)
    two = rng.standard_normal((hidden, d)) * np.sqrt(2.0 / hidden)
    decay = np.arange(1.0, inputs + 1.0) ** -0.5

    def features(classes: int, noise: float) -> Float:
        x = prototypes[rng.integers(classes, size=pool)]
        x = x + noise * decay * rng.standard_normal((pool, inputs))
        return np.maximum(np.maximum(x @ one, 0.0) @ two, 0.0)

    real, fake = features(10, 1.0), features(8, 1.3)
    return Law(
        lambda n, rng: fake[rng.integers(pool, size=n)],
        fake.mean(axis=0),
        np.cov(fake.T, bias=True),
        real.mean(axis=0),
        np.cov(real.T, bias=True),
    )


def measure(arm: str, d: int, n: int, *, repeats: int, seed: int) -> str:
    """One row of the table."""
    law = make_law(arm, d)
    values, vectors = linalg.eigh(law.reference_cov)
    lower = vectors * np.sqrt(np.clip(values, 0.0, None))
    trace = float(np.trace(law.reference_cov))
    cross = np.sqrt(np.clip(linalg.eigvalsh(lower.T @ law.cov @ lower), 0.0, None)).sum()
    away = law.mean - law.reference_mean
    truth = float(away @ away + np.trace(law.cov) + trace - 2.0 * cross)
    plugin, result = [], []
    seconds = 0.0
    for stream in np.random.SeedSequence([seed, d, n]).spawn(repeats):
        x = law.draw(n, np.random.default_rng(stream))
        mean = x.mean(axis=0)
        x = x - mean
        projected = x @ lower
        gap = mean - law.reference_mean
        gram = projected @ projected.T if n <= d else projected.T @ projected
        roots = np.sqrt(np.clip(linalg.eigvalsh(gram / (n - 1)), 0.0, None))
        plugin.append(gap @ gap + (x * x).sum() / (n - 1) + trace - 2.0 * roots.sum() - truth)
        start = time.perf_counter()
        estimate = few_samples(x, projected, gap=gap, reference_trace=trace)
        seconds += time.perf_counter() - start
        result.append((estimate.value - truth, estimate.variance, estimate.reliable))
    error, variance, reliable = np.array(result, dtype=np.float64).T
    spread = float(np.std(plugin, ddof=1))
    rmse = float(np.sqrt(np.mean(error**2)))
    covered = float(np.mean(np.abs(error) <= 1.96 * np.sqrt(variance)))
    return (
        f"| {arm} | {d} | {n} | {truth:.2f} | {np.mean(plugin):+.2f} | {spread:.3f} | "
        f"{error.mean():+.3f} | {rmse:.3f} | {rmse / spread:.2f} | "
        f"{np.sqrt(variance.mean()):.3f} | {covered:.3f} | {reliable.mean():.2f} | "
        f"{1e3 * seconds / repeats:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--cells", nargs="+", default=[f"{d}x{n}" for d, n in CELLS])
    options = parser.parse_args()
    print(
        "| arm | d | n | true FD | plug-in bias | sd* | bias | RMSE | RMSE/sd* | mean se | "
        "covered | reliable | ms |\n" + "|---" * 13 + "|"
    )
    for cell in options.cells:
        d, n = map(int, cell.split("x"))
        for arm in options.arms:
            row = measure(arm, d, n, repeats=options.repeats, seed=options.seed)
            print(row, flush=True)


if __name__ == "__main__":
    main()
