"""Scores at twice a pool and at infinity, predicted from the pool (C20 §4.3 to §4.6).

``python -m experiments.digits.prediction`` follows the paper's protocol on the digits' GAN and
VAE: a pool from independent latents or from Sobol latents (by the inverse distribution function,
by Box–Muller), 15 subsets of a tenth of it to all of it, their sizes even in N or in 1/N, a line in
1/N. Read at twice the pool it is compared with scores computed there; read at 0 with the score of
very many images. The held-out digits are the fixed target of FID.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.digits.generators import Generator
from experiments.digits.progress import Progress, bars
from experiments.digits.sobol_latents import SAMPLERS
from experiments.digits.train import DEFAULT_CACHE, Config, Digits, prepare
from experiments.record import PAGE, record, shown, stamp
from genbounds.estimators import FrechetReference
from genbounds.estimators._extrapolation import SPACINGS, Subsets, extrapolate
from genbounds.estimators.inception import InceptionForm

MODELS = ("gan", "vae")
SCORES = ("FID", "IS")
CHUNK = 20_000

Array = NDArray[Any]


class Encoded:
    """What is scored: features of a generator's images and their posteriors."""

    def __init__(self, digits: Digits) -> None:
        self.digits = digits
        target = gb.Moments.from_features(digits.reference())
        # Without a number of rows: the held-out digits are the target, not a sample of one.
        self.reference = FrechetReference(gb.Moments(target.mean, target.cov))

    def pool(self, generator: Generator, sampler: str, n: int, seed: Any) -> dict[str, Array]:
        """Draw `n` images and encode them, by the score that takes them."""
        if sampler == "normal":
            codes = np.random.default_rng(seed).standard_normal((n, generator.latent))
        else:
            drawn = gb.sobol_normal(generator.latent, method=sampler, rng=seed).draw(n)
            codes = np.asarray(drawn)
        parts = []
        for start in range(0, n, CHUNK):
            pixels = generator.decode(codes[start : start + CHUNK].astype(np.float32))
            images = np.clip(pixels, 0.0, 1.0).reshape(-1, 8, 8).astype(np.float32)
            parts.append(self.digits.encoder.features(images))
        features = np.concatenate(parts)
        return {"FID": features, "IS": self.digits.encoder.posteriors_of_features(features)}

    def plugin(self, score: str, rows: Array) -> float:
        """Return the published, biased score."""
        if score == "FID":
            return self.reference.plugin(gb.Moments.from_features(rows))
        return math.exp(InceptionForm(rows).value())

    def truth(self, score: str, rows: Array) -> tuple[float, float]:
        """Return the score without its bias, and its standard error."""
        if score == "FID":
            found = self.reference.estimate(rows).score(0.95)
        else:
            found = gb.inception_score(rows)
        return float(found.value), float(found.stderr)


def study(
    scored: Encoded, generator: Generator, pool: int, runs: int, seeds: Any, progress: Progress
) -> tuple[dict[tuple[str, ...], Array], dict[tuple[str, str], Array]]:
    """Predict and compute: (score, sampler, spacing) → (runs, 2), (score, sampler) → (runs,)."""
    predicted = {
        (score, sampler, spacing): np.empty((runs, 2))
        for score in SCORES
        for sampler in SAMPLERS
        for spacing in SPACINGS
    }
    computed = {(score, sampler): np.empty(runs) for score in SCORES for sampler in SAMPLERS}
    for number, seed in enumerate(seeds.spawn(runs)):
        streams = iter(seed.spawn(2 * len(SAMPLERS)))
        for sampler in SAMPLERS:
            rows = scored.pool(generator, sampler, pool, next(streams))
            more = scored.pool(generator, sampler, 2 * pool, next(streams))
            for score in SCORES:
                computed[score, sampler][number] = scored.plugin(score, more[score])
                held = rows[score]
                for spacing in SPACINGS:
                    line = extrapolate(
                        lambda index, score=score, held=held: scored.plugin(score, held[index]),
                        pool,
                        Subsets(spacing=spacing, minimum=pool // 10, seed=number),
                    )
                    found = line.at(2 * pool), line.value
                    predicted[score, sampler, spacing][number] = found
        progress("runs", (number + 1) / runs)
    return predicted, computed


def spread(values: Array) -> str:
    """Mean ± standard deviation, as the paper has them."""
    return f"{values.mean():.4g} ± {values.std(ddof=1):.2g}"


def error(values: Array, truth: float, truth_error: float) -> str:
    """Mean error ± two standard errors of it, in % of the truth."""
    own = values.std(ddof=1) / math.sqrt(len(values))
    both = 2.0 * math.hypot(own, truth_error)
    return f"{100 * (values.mean() / truth - 1):+.2f} ± {100 * both / truth:.2f}"


def report(scored: Encoded, options: argparse.Namespace, progress: Progress) -> list[str]:
    """Return the section."""
    there = f"{2 * options.pool:,}"
    columns = (
        "score", "latents", "sizes even in", f"predicted at {there}", "computed there",
        f"error in % at {there}", "predicted at ∞", "error in % at ∞",
    )  # fmt: skip
    kept = (*columns[:3], columns[5], columns[7])
    lines = []
    for place, name in enumerate(MODELS):
        generator = scored.digits.generators[name]
        streams = np.random.SeedSequence((options.seed, place)).spawn(2)
        many = scored.pool(generator, "normal", options.truth, streams[1])
        truth = {score: scored.truth(score, many[score]) for score in SCORES}
        print(name, truth, file=sys.stderr)
        predicted, computed = study(
            scored, generator, options.pool, options.runs, streams[0], progress
        )
        rows = []
        for (score, sampler, spacing), values in predicted.items():
            direct = computed[score, "normal"]
            target = float(direct.mean()), float(direct.std(ddof=1)) / math.sqrt(len(direct))
            rows.append(
                (
                    score, sampler, spacing,
                    spread(values[:, 0]), spread(computed[score, sampler]),
                    error(values[:, 0], *target),
                    spread(values[:, 1]), error(values[:, 1], *truth[score]),
                )
            )  # fmt: skip
        known = ", ".join(f"{score} {value:.5g} ± {e:.1g}" for score, (value, e) in truth.items())
        lines += [
            "",
            f"{name.upper()}. Without bias, from {options.truth:,} images (± one standard error): "
            f"{known}.",
            "",
            *shown(f"prediction-{name}", columns, rows, kept, page=options.page),
        ]
    return [
        stamp(),
        f"{options.runs} pools of {options.pool:,} images each way, seed {options.seed}; mean ± "
        "standard deviation; errors ± two standard errors. The error at twice the pool is against "
        "scores computed from independent latents.",
        *lines,
    ]


def main(argv: list[str] | None = None, *, config: Config | None = None) -> int:
    """Draw, predict, compare, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--pool", type=int, default=8_192, help="images; a power of two")
    parser.add_argument("--truth", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    if options.runs < 2:
        parser.error("--runs must be at least 2")
    with bars() as progress:
        digits = prepare(options.cache, config=config, progress=progress)
        lines = report(Encoded(digits), options, progress)
    record("prediction", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
