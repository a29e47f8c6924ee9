"""Sobol latents in training and in evaluation, on the digits' GAN (C20 §4.2, §4.7).

``python -m experiments.digits.sobol_latents --models 12`` trains that many GANs with each sampler
(normal, Sobol by the inverse distribution function, Sobol by Box–Muller, the last two from a
shuffled cache), scores each with its interval, and tests whether distances differ between
samplers in their centre (exact permutation of ranks) and in their spread (Brown–Forsythe). Then
the demo's GAN is scored from independent and from Sobol latents, `--runs` times each: the ratio of
variances with its F interval. Trained models are kept, so that the same command goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from experiments.digits.arm import encode
from experiments.digits.generators import Gan
from experiments.digits.progress import Progress, bars
from experiments.digits.train import DEFAULT_CACHE, Config, Digits, prepare, prepare_gan
from experiments.record import PAGE, picture, record, stamp, table
from genbounds.estimators import FrechetReference

SAMPLERS = ("normal", "inverse", "box-muller")


def trained(
    sampler: str, models: int, cache: Path, config: Config, progress: Progress
) -> list[Gan]:
    """Train `models` GANs that differ in their seed alone; the samplers share no seed."""
    first = 1_000 * (1 + SAMPLERS.index(sampler))
    gan = replace(config.gan, sampler=sampler)
    return [
        prepare_gan(cache, config=replace(config, gan=gan, seed=first + number), progress=progress)
        for number in range(models)
    ]


def score(gan: Gan, digits: Digits, reference: FrechetReference, n: int, seed: Any) -> gb.Score:
    """Score one GAN from `n` independent latents."""
    images = gan.sample(n, np.random.default_rng(seed))
    return reference.estimate(encode(digits.encoder, images, "features")).score(0.95)


def comparison(values: Mapping[str, Sequence[float]]) -> list[tuple[str, ...]]:
    """Test each Sobol sampler against the normal one: centre and spread, two-sided."""
    from scipy import stats

    rows = []
    normal = np.asarray(values["normal"])
    for sampler in SAMPLERS[1:]:
        sobol = np.asarray(values[sampler])
        if min(len(normal), len(sobol)) < 3:
            rows.append((sampler, "too few models", "too few models", "too few models"))
            continue
        centre = stats.mannwhitneyu(normal, sobol, method="exact").pvalue
        spread = stats.levene(normal, sobol, center="median").pvalue
        welch = stats.ttest_ind(normal, sobol, equal_var=False)
        ends = welch.confidence_interval(0.95)
        gap = f"{normal.mean() - sobol.mean():.2f} [{ends.low:.2f}, {ends.high:.2f}]"
        rows.append((sampler, gap, f"{centre:.2g}", f"{spread:.2g}"))
    return rows


def evaluation(digits: Digits, runs: int, points: int, seed: int) -> list[tuple[str, str, str]]:
    """Ratio of variances, independent over Sobol latents, of plug-in FD and IS (C20, Table 1)."""
    from scipy import stats

    gan = digits.generators["gan"]
    reference = FrechetReference(gb.Moments.from_features(digits.reference()))

    def scores(codes: NDArray[Any]) -> tuple[float, float]:
        pixels = np.clip(gan.decode(codes.astype(np.float32)), 0.0, 1.0)
        images = pixels.reshape(-1, 8, 8).astype(np.float32)
        features = digits.encoder.features(images)
        fake = gb.Moments.from_features(features)
        fd = reference.estimate(fake, estimator="plugin").value
        posteriors = digits.encoder.posteriors_of_features(features)
        return fd, gb.inception_score(posteriors, estimator="plugin").value

    variances = {}
    for number, sampler in enumerate(SAMPLERS):
        found = []
        for stream in np.random.SeedSequence((seed, number)).spawn(runs):
            if sampler == "normal":
                codes = np.random.default_rng(stream).standard_normal((points, gan.latent))
            else:
                drawn = gb.sobol_normal(gan.latent, method=sampler, rng=stream).draw(points)
                codes = np.asarray(drawn)
            found.append(scores(codes))
        variances[sampler] = np.var(found, axis=0, ddof=1)
    low, high = stats.f.ppf([0.025, 0.975], runs - 1, runs - 1)
    rows = []
    for sampler in SAMPLERS[1:]:
        ratios = variances["normal"] / variances[sampler]
        fd, inception = (f"{r:.2f} ({r / high:.2f} – {r / low:.2f})" for r in ratios)
        rows.append((sampler, fd, inception))
    return rows


def main(argv: list[str] | None = None, *, config: Config | None = None) -> int:
    """Train, score, test, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=12, help="GANs for each sampler")
    parser.add_argument("--n", type=int, default=20_000, help="images of each GAN")
    parser.add_argument("--runs", type=int, default=50, help="scores of each kind in evaluation")
    parser.add_argument("--points", type=int, default=1_024, help="images of each of them")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    config = config or Config()
    scores: dict[str, list[gb.Score]] = {}
    with bars() as progress:
        digits = prepare(options.cache, config=config, progress=progress)
        # The held-out digits are the fixed target: what differs is the GANs.
        reference = FrechetReference(gb.Moments(*_population(digits.reference())))
        for sampler in SAMPLERS:
            gans = trained(sampler, options.models, options.cache, config, progress)
            scores[sampler] = [
                score(gan, digits, reference, options.n, [SAMPLERS.index(sampler), number])
                for number, gan in enumerate(gans)
            ]
            shown = ", ".join(f"{s.value:.2f}" for s in scores[sampler])
            print(f"{sampler}: {shown}", file=sys.stderr, flush=True)
    values = {sampler: [s.value for s in found] for sampler, found in scores.items()}

    def paint(axes: Any) -> None:
        for place, (_, found) in enumerate(scores.items()):
            ordered = sorted(found, key=lambda s: s.value)
            xs = place + np.linspace(-0.3, 0.3, len(ordered)) if len(ordered) > 1 else [place]
            middle = np.array([s.value for s in ordered])
            ends = [[s.value - s.low for s in ordered], [s.high - s.value for s in ordered]]
            axes.errorbar(xs, middle, yerr=np.array(ends), fmt="o", markersize=3, capsize=2)
        axes.set_xticks(range(len(scores)), list(scores))
        axes.set(ylabel="Fréchet distance", ylim=(0, None))

    lines = [
        stamp(),
        f"{options.models} GANs a sampler, {options.n} images of each, debiased distance from the "
        "held-out digits, taken as the fixed target.",
        "",
        *table(
            ("training latents", "mean", "standard deviation", "half width of one interval"),
            [
                (
                    sampler, f"{np.mean(values[sampler]):.2f}",
                    f"{np.std(values[sampler], ddof=1):.2f}" if options.models > 1 else "–",
                    f"{np.mean([(s.high - s.low) / 2 for s in found]):.2f}",
                )
                for sampler, found in scores.items()
            ],
        ),
        "",
        *table(
            ("against normal", "gain in mean (95 %)", "p, centre (ranks)", "p, spread"),
            comparison(values),
        ),
        "",
        "Four tests: for 5 % in all each needs p below 0.0125 (Bonferroni).",
        "",
        f"Evaluation: {options.runs} scores of {options.points} images of the demo's GAN each "
        "way; variance with independent over variance with Sobol latents, 95 % F interval.",
        "",
        *table(
            ("evaluation latents", "FD", "IS"),
            evaluation(digits, options.runs, options.points, seed=0),
        ),
        "",
        picture("sobol-latents", paint, page=options.page),
    ]  # fmt: skip
    record("sobol-latents", lines, page=options.page)
    return 0


def _population(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return rows.mean(axis=0, dtype=float), np.cov(rows.astype(float), rowvar=False)


if __name__ == "__main__":
    raise SystemExit(main())
