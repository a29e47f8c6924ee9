"""What is timed: our calls, the peers' and the floor, on synthetic features of known distance."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

import genbounds as gb
from experiments.benchmarks import peers
from genbounds.estimators import FrechetReference, Subsets, frechet_infinity

DGM_EVAL_SECONDS = 168.0
"""FD∞ by dgm-eval, n = 20,000 in both samples, d = 2048, on 2 cores: quoted, not run here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One table: calls that return their value, ours first."""

    title: str
    ours: dict[str, Callable[[], float | str]]
    peers: dict[str, Callable[[], float | str]] = field(default_factory=dict)
    floor: Callable[[], object] | None = None
    floor_text: str = ""
    quoted: dict[str, float] = field(default_factory=dict)
    truth: float | None = None
    repeats: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Gaussian rows with a power-law spectrum, the generated ones moved and stretched."""

    d: int
    seed: int = 0

    @property
    def scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations of the generated and of the reference features."""
        index = np.arange(1, self.d + 1)
        real = 0.5 * index**-0.35
        return real * (1.0 + 0.35 * np.sin(index)), real

    @property
    def truth(self) -> float:
        """Distance between the two distributions."""
        fake, real = self.scales
        return float(((fake - real) ** 2).sum() + self.d * 0.01**2)

    def draw(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Two samples of n rows in float32, as networks give them."""
        rng = np.random.default_rng(self.seed)
        pair = []
        for scale, mean in zip(self.scales, (0.31, 0.3), strict=True):
            rows = rng.standard_normal((n, self.d), dtype=np.float32)
            rows *= scale.astype(np.float32)
            rows += np.float32(mean)
            pair.append(rows)
        return pair[0], pair[1]


def _statistics(features: Features, n: int) -> tuple[peers.Statistics, peers.Statistics]:
    one, two = (
        (np.mean(x, axis=0, dtype=np.float64), np.cov(x, rowvar=False)) for x in features.draw(n)
    )
    return one, two


def from_moments(d: int) -> Iterator[Case]:
    """From (mean, covariance); then a further model against the same reference."""
    one, two = _statistics(Features(d=d), 2 * d)
    gram = one[1] @ two[1]
    gram = gram @ gram.T
    yield Case(
        title=f"FD from mean and covariance, d = {d}",
        ours={
            "plug-in": lambda: (
                gb.frechet_distance(gb.Moments(*one), gb.Moments(*two), estimator="plugin").value
            )
        },
        peers={name: lambda call=call: call(one, two) for name, call in peers.distances().items()},
        floor=lambda: (one[1] @ two[1], one[1] @ two[1], linalg.eigvalsh(gram)),
        floor_text="two products and one eigvalsh",
    )
    reference = FrechetReference(gb.Moments(*two))
    fake = gb.Moments(*one)
    reference.plugin(fake)
    yield Case(
        title=f"each further model against the same reference, d = {d}",
        ours={"plug-in": lambda: reference.plugin(fake)},
        floor=lambda: (one[1] @ two[1], linalg.eigvalsh(gram)),
        floor_text="one product and one eigvalsh",
    )


def from_features(d: int, n: int, *, repeats: int | None = None) -> Iterator[Case]:
    """Both sides sampled: bare value, and value with its bias removed and an interval."""
    features = Features(d=d)
    x, y = features.draw(n)

    def floor() -> None:
        for rows in (x, y):
            for start in range(0, n, 4096):
                block = rows[start : start + 4096].astype(np.float64)
                _ = block.T @ block

    yield Case(
        title=f"FD from features, n = {n:,} in both samples, d = {d}",
        ours={
            "plug-in value": lambda: FrechetReference(y).plugin(x),
            "debiased, with interval": lambda: gb.frechet_distance(x, y).value,
        },
        peers={
            name: lambda call=call: call(x, y) for name, call in peers.feature_distances().items()
        },
        floor=floor,
        floor_text="XᵀX of both samples in float64",
        truth=features.truth,
        repeats=repeats,
    )


def designs(d: int, n: int, *, repeats: int | None = None) -> Iterator[Case]:
    """Show what it costs to say how rows were drawn: 50 of each class, 20 of each group."""
    x, y = Features(d=d).draw(n)
    classes, groups = np.arange(n) // 50, np.arange(n) // 20
    centres = np.random.default_rng(1).standard_normal((2, n // 20, d), dtype=np.float32)
    for rows, found in zip((x, y), centres, strict=True):
        rows += 0.4 * rows.std(axis=0) * found[groups]
    ways: dict[str, tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = {
        "independent rows": ({}, {}),
        "strata": ({"strata": classes}, {}),
        "strata, both": ({"strata": classes}, {"strata": classes}),
        "groups": ({"groups": groups}, {}),
        "groups, both": ({"groups": groups}, {"groups": groups + n}),
        "prompts shared by both": ({"groups": np.arange(n)}, {"groups": np.arange(n)}),
    }
    yield Case(
        title=f"FD with its interval, n = {n:,} in both samples, d = {d}, by how rows were drawn",
        ours={
            name: lambda one=one, two=two: (
                gb.frechet_distance(gb.Sample(x, **one), gb.Sample(y, **two)).value
            )
            for name, (one, two) in ways.items()
        },
        repeats=repeats,
    )


def bias_removal(d: int, n: int) -> Iterator[Case]:
    """Against the only published way to remove the bias."""
    features = Features(d=d)
    x, y = features.draw(n)
    yield Case(
        title=f"bias removal, n = {n:,} in both samples, d = {d}",
        ours={
            "debiased, with interval": lambda: gb.frechet_distance(x, y).value,
            "infinity": lambda: frechet_infinity(x, y, subsets=Subsets()).value,
        },
        quoted={"dgm-eval FD∞ (quoted)": DGM_EVAL_SECONDS},
        truth=features.truth,
    )


def inception(n: int, classes: int) -> Iterator[Case]:
    """Inception score; the peers start from logits, we from posteriors."""
    import torch

    rng = np.random.default_rng(0)
    logits = rng.standard_normal((n, classes), dtype=np.float32)
    logits *= 2.0
    logits[np.arange(n), rng.integers(classes, size=n)] += 9.0
    tensor = torch.from_numpy(logits)
    probs = tensor.softmax(dim=1).numpy()
    yield Case(
        title=f"Inception score, n = {n:,}, {classes:,} classes",
        ours={
            "debiased, with interval": lambda: gb.inception_score(probs).value,
            "the same and softmax": lambda: gb.inception_score(tensor.softmax(dim=1)).value,
        },
        peers={
            name: lambda call=call: call(logits) for name, call in peers.inception_scores().items()
        },
    )


def streamed_memory(d: int, blocks: int) -> float:
    """Peak memory of streamed moments in d × d float64 matrices; the batch itself not counted."""
    rng = np.random.default_rng(0)
    tracemalloc.start()
    moments = gb.Moments.empty(d)
    for _ in range(blocks):
        batch = rng.standard_normal((1024, d), dtype=np.float32)
        moments.update(batch)
    _ = moments.cov
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - batch.nbytes) / (8 * d * d)
