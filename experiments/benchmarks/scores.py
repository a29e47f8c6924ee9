"""Every other score beside what people use for it today; ours have bias removed and an interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import genbounds as gb
from experiments.benchmarks import peers
from experiments.benchmarks.cases import Case, Features
from genbounds.estimators import median_bandwidth
from genbounds.estimators.smooth import sliced_score

DIRECTIONS = 1000
NEIGHBOURS = 3
"""As precision and recall were first published, and as torch-fidelity computes them."""


def _told(score: gb.Score) -> str:
    return f"{score.value:.7g} [{score.low:.4g}, {score.high:.4g}]"


def kernel(name: str, n: int, d: int) -> Case:
    """Time a kernel distance: KID, CMMD, KAD or energy."""
    x, y = Features(d=d).draw(n)
    label = {"kid": "polynomial"}.get(name, name)
    bandwidth = median_bandwidth(y) if name == "kad" else None

    def ours(**options: object) -> str:
        return _told(gb.kernel_distance(x, y, kernel=label, bandwidth=bandwidth, **options))

    calls: dict[str, Callable[[], float | str]] = {"unbiased, with interval": ours}
    if name == "kid":
        calls["100 subsets, with interval"] = lambda: ours(subsets=100, subset_size=min(1000, n))
    elif name != "kad":
        calls["as published"] = lambda: ours(estimator="plugin")
    rivals = {
        "kid": peers.kernel_inception_distances,
        "cmmd": peers.cmmds,
        "kad": lambda: peers.kernel_audio_distances(bandwidth),
        "energy": peers.energy_distances,
    }[name]()
    titles = {
        "kid": "KID",
        "cmmd": "CMMD",
        "kad": "KAD, one bandwidth",
        "energy": "energy distance",
    }
    return Case(
        title=f"{titles[name]}, n = {n:,} in both samples, d = {d}",
        ours=calls,
        peers={rival: lambda call=call: call(x, y) for rival, call in rivals.items()},
    )


def sliced(n: int, d: int) -> Case:
    """Time the sliced distance (MIND), all in the same directions."""
    x, y = Features(d=d).draw(n)
    theta = np.random.default_rng(0).standard_normal((d, DIRECTIONS))
    theta /= np.linalg.norm(theta, axis=0)
    score = sliced_score(directions=DIRECTIONS, seed=0)
    return Case(
        title=f"MIND, {DIRECTIONS:,} directions, n = {n:,} in both samples, d = {d}",
        ours={
            "bias removed, with interval": lambda: _told(score(x, y)),
            "as published": lambda: float(score.function(*_weighted(x, y))),
        },
        peers={
            name: lambda call=call: 3.0 * d * call(x, y, theta)
            for name, call in peers.sliced_distances().items()
        },
    )


def _weighted(*samples: np.ndarray) -> list[object]:
    """Rows and equal weights of every sample, as a smooth score takes them."""
    import torch

    found: list[object] = []
    for rows in samples:
        found += [
            torch.from_numpy(rows).double(),
            torch.full((len(rows),), 1.0 / len(rows), dtype=torch.float64),
        ]
    return found


def mean(n: int) -> Case:
    """Time the mean of a column of scores, such as CLIPScore."""
    values = np.random.default_rng(0).beta(8.0, 16.0, n)
    return Case(
        title=f"mean of {n:,} values",
        ours={
            "interval": lambda: _told(gb.mean_score(values)),
            "interval by betting": lambda: _told(gb.mean_score(values, bounds=(0.0, 1.0))),
        },
        peers={name: lambda call=call: call(values) for name, call in peers.means().items()},
    )


def neighbours(n: int, d: int) -> Case:
    """Time precision and recall; ours come with density and coverage."""
    x, y = Features(d=d).draw(n)

    def ours() -> str:
        found = gb.precision_recall(x, y, k=NEIGHBOURS)
        return f"{_told(found.precision)}, {_told(found.recall)}"

    return Case(
        title=f"precision and recall, k = {NEIGHBOURS}, n = {n:,} in both samples, d = {d}",
        ours={"four scores, intervals, ratios": ours},
        peers={
            name: lambda call=call: call(x, y)
            for name, call in peers.precisions_and_recalls(NEIGHBOURS).items()
        },
    )


CASES: dict[str, Callable[[int, int], Case]] = {
    **{
        name: lambda n, d, name=name: kernel(name, n, d)
        for name in ("kid", "cmmd", "kad", "energy")
    },
    "mind": sliced,
    "mean": lambda n, _: mean(n),
    "neighbours": neighbours,
}
