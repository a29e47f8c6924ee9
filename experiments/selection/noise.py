"""Models that spoil some of their samples by noise, as M25 has for audio and video (Figs. 6, 12).

``python -m experiments.selection.noise`` draws images of the digits' GAN, each with Gaussian noise
of an arm-specific probability, and plays the policies for the distance to the held-out digits.
(Clips of a data set would be drawn again and again, which selection refuses as dependent.) A whole
study is recorded in docs/evidence/regret.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.digits.encoder import Encoder
from experiments.digits.generators import Generator
from experiments.digits.train import DEFAULT_CACHE, Config, prepare
from experiments.record import record, stamp, table
from experiments.selection.regret import BATCH, FD_POLICIES, PAGE, after_stopping, interval
from genbounds import select
from genbounds.estimators import FrechetReference, Moments

SHARES = (0.05, 0.1, 0.2, 0.4)
"""Probability of noise of each arm; the paper prints none."""

SIGMA = 0.5
"""Of the noise; pixels lie between 0 and 1."""

POLICIES = ("random", "greedy", "naive-ucb M25", "fd-ucb as tuned", "fd-ucb as printed",
            "debiased-ucb")  # fmt: skip
POOL = 20_000
"""Images of every arm that its true distance is taken from."""


@dataclass(frozen=True, slots=True)
class NoisyArm:
    """Draws images, adds noise to a share of them, and encodes them."""

    generator: Generator
    encoder: Encoder
    share: float

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return `n` rows of features."""
        images = self.generator.sample(n, rng)
        noise = SIGMA * rng.standard_normal(images.shape) * (rng.random((n, 1, 1)) < self.share)
        return self.encoder.features(np.clip(images + noise, 0.0, 1.0).astype(np.float32))


def report(cache: Path, config: Config | None, options: argparse.Namespace) -> list[str]:
    """Return the section."""
    digits = prepare(cache, config=config)
    target = Moments.from_features(digits.reference())
    reference = Moments(target.mean, target.cov)
    arms = {
        f"noise {share:.0%}": NoisyArm(digits.generators["gan"], digits.encoder, share)
        for share in SHARES
    }
    prepared = FrechetReference(reference)
    truth = {
        name: prepared.estimate(
            arm.draw(options.pool, np.random.default_rng([0, place])), influences=False
        ).value
        for place, (name, arm) in enumerate(arms.items())
    }
    rows = []
    for policy in POLICIES:
        found = []
        for seed in range(options.trials):
            run = select.run(
                arms, reference, policy=FD_POLICIES[policy](), batch=BATCH,
                budget=BATCH * options.steps, seed=seed,
            )  # fmt: skip
            assert not any(arm.state == "set aside" for arm in run.arms.values())
            history = after_stopping(run, options.steps)
            ratios = history.optimal_pick_ratio(truth)
            regret = history.average_regret(truth)
            middle = max(options.steps // 10, 1) - 1
            found.append((regret[-1], ratios[middle], ratios[-1]))
        columns = [interval(column) for column in np.array(found).T]
        cells = [f"{mean:.3g} ± {half:.2g}" for mean, half in columns[:1]]
        cells += [f"{mean:.0%} ± {half:.0%}" for mean, half in columns[1:]]
        rows.append((policy, *cells))
    distances = ", ".join(f"{name} {value:.3g}" for name, value in truth.items())
    return [
        f"{stamp()} T = {options.steps:,}, batch {BATCH}, {options.trials} trials; 95 % intervals.",
        f"Distances: {distances}.",
        "",
        *table(
            ("policy", "average regret", f"optimal picks after {max(options.steps // 10, 1):,}",
             f"after {options.steps:,} steps"),
            rows,
        ),
    ]  # fmt: skip


def main(argv: list[str] | None = None, *, config: Config | None = None) -> int:
    """Play, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--pool", type=int, default=POOL)
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    record("noise", report(options.cache, config, options), page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
