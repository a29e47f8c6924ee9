"""Variance of scores under independent latents over that under scrambled Sobol latents.

``python -m experiments.sobol.variance_ratio`` runs the study and rewrites the table of
docs/evidence/sobol.md. A generator is a random tanh network from d latents to 16 features (and to
10 class posteriors for the Inception score). Each cell: `--runs` scores of `--points` points either
way; the interval of the ratio is that of Fisher's F, exact for normal scores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import genbounds as gb
from experiments.record import record

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "sobol.md"
LATENTS = (2, 8, 32, 128, 512)
HIDDEN, FEATURES, CLASSES, REFERENCE = 64, 16, 10, 1 << 16


@dataclass(frozen=True)
class Generator:
    """A fixed random network."""

    first: np.ndarray
    second: np.ndarray
    head: np.ndarray

    @classmethod
    def random(cls, d: int, seed: int) -> Generator:
        """Draw one for `d` latents."""
        rng = np.random.default_rng(seed)
        return cls(
            rng.standard_normal((d, HIDDEN)) * 1.5 / np.sqrt(d),
            rng.standard_normal((HIDDEN, FEATURES)) / np.sqrt(HIDDEN),
            rng.standard_normal((FEATURES, CLASSES)) * 2.0,
        )

    def features(self, latents: np.ndarray) -> np.ndarray:
        """Return features (n, 16)."""
        return np.tanh(latents @ self.first) @ self.second

    def posteriors(self, latents: np.ndarray) -> np.ndarray:
        """Return class posteriors (n, 10)."""
        logits = self.features(latents) @ self.head
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)


def scores(generator: Generator, d: int) -> dict[str, Callable[[np.ndarray], float]]:
    """Make the three scores of a sample of latents; plug-in FD and IS as in C20, unbiased RKE."""
    sample = generator.features(np.random.default_rng(99).standard_normal((REFERENCE, d)))
    real = gb.Moments(sample.mean(axis=0) + 0.1, np.cov(sample.T))
    bandwidth = gb.estimators.median_bandwidth(sample)
    return {
        "FD": lambda z: (
            gb.frechet_distance(
                gb.Moments.from_features(generator.features(z)), real, estimator="plugin"
            ).value
        ),
        "IS": lambda z: gb.inception_score(generator.posteriors(z), estimator="plugin").value,
        "RKE": lambda z: (
            gb.vendi_score(
                generator.features(z), order=2.0, method="ustat", bandwidth=bandwidth
            ).value
        ),
    }


def main(argv: list[str] | None = None) -> int:
    """Run the study and rewrite the table."""
    from scipy import stats

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--latents", type=int, nargs="+", default=LATENTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE, help="document with the section")
    options = parser.parse_args(argv)
    degrees = options.runs - 1
    low, high = stats.f.ppf([0.025, 0.975], degrees, degrees)
    lines = [
        f"{options.runs} runs of {options.points} points each way, seed {options.seed}; "
        "variance ratio with its 95 % F interval.",
        "",
        "| latent dimension | sampler | FD | IS | RKE |",
        "|---|---|---|---|---|",
    ]
    for d in options.latents:
        generator = Generator.random(d, seed=d)
        functions = scores(generator, d)
        streams = np.random.SeedSequence((options.seed, d)).spawn(3 * options.runs)
        variance = {}
        for kind in ("independent", "inverse", "box-muller"):
            part = [streams.pop() for _ in range(options.runs)]
            values = []
            for stream in part:
                if kind == "independent":
                    z = np.random.default_rng(stream).standard_normal((options.points, d))
                else:
                    z = np.asarray(gb.sobol_normal(d, method=kind, rng=stream).draw(options.points))
                values.append([score(z) for score in functions.values()])
            variance[kind] = np.var(values, axis=0, ddof=1)
        for kind in ("inverse", "box-muller"):
            ratios = variance["independent"] / variance[kind]
            cells = [f"{r:.3g} ({r / high:.2g} – {r / low:.2g})" for r in ratios]
            lines.append(f"| {d} | {kind} | " + " | ".join(cells) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    record("ratios", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
