"""Clipped density and coverage, against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import betaln, comb

import genbounds as gb
from tests.refusal import refused

K = 5


def by_definition(real, fake):
    """Both scores from all distances; coverage by the sum over all counts, in whole rows."""
    among, across = cdist(real, real), cdist(real, fake)
    np.fill_diagonal(among, np.inf)
    radii = np.sort(among, axis=1)[:, K - 1]
    clipped = np.minimum(radii, np.median(radii))[:, None]
    held, usual = (np.minimum((d <= clipped).sum(axis=0), K).mean() for d in (across, among))
    covered = np.minimum((across < radii[:, None]).sum(axis=1), K).mean() / K
    n, rows, share = len(real), 0, 0.0
    while share < covered:
        rows += 1
        j = np.arange(rows + 1)
        chance = comb(rows, j) * np.exp(betaln(K + j, n - K + rows - j) - betaln(K, n - K))
        share = float(np.minimum(j, K) @ chance) / K
    return held / usual, rows / len(fake)


@pytest.mark.parametrize(
    ("scale", "shift", "m"), [(0.6, 0.0, 120), (1.0, 0.5, 100), (1.5, 0.0, 120)]
)
def test_both_are_as_defined(scale, shift, m):
    rng = np.random.default_rng(0)
    real, fake = rng.normal(size=(120, 4)), scale * rng.normal(size=(m, 4)) + shift
    density, coverage = (
        gb.compare({"a": fake}, real, metric=metric).scores["a"].value
        for metric in ("clipped-density", "clipped_coverage")
    )
    expected = by_definition(real, fake)
    assert density == pytest.approx(expected[0], rel=1e-12)
    assert expected[1] - 1.0 / m < coverage <= expected[1]


def test_one_row_and_one_outlier_count_for_one():
    """A hundred copies of a central row cover no more; one far real row makes nothing usual."""
    rng = np.random.default_rng(1)
    real, fake = rng.normal(size=(400, 3)), rng.normal(size=(400, 3)) + 3.0
    far = np.vstack([real[:-1], np.full((1, 3), 50.0)])
    for metric in ("clipped-density", "density"):
        near, moved = (
            gb.compare({"a": fake}, x, metric=metric).scores["a"].value for x in (real, far)
        )
        assert (moved > near + 0.1) == (metric == "density")
    lumped = np.vstack([np.zeros((300, 3)) + 1e-6 * rng.normal(size=(300, 3)), fake[:100]])
    assert gb.compare({"a": lumped}, real, metric="clipped-coverage").scores["a"].value < 0.2


def test_models_are_compared_in_the_same_halves():
    rng = np.random.default_rng(2)
    real, a, b = rng.normal(size=(3, 300, 4))
    found = gb.compare({"a": a, "b": b + 1.0}, real, metric="clipped-density")
    assert found.best == "a"
    assert found.differences[0].distinguishable
    with refused("b", "k = 5"):
        gb.compare({"a": a, "b": b[:50]}, real, metric="clipped-density")
