"""Published policies for mixtures: their estimates and choices against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.selection import published_mixtures
from experiments.selection.published_mixtures import (
    BONUS,
    PUBLISHED,
    Kernels,
    Policy,
    at_budget,
    least,
    rbf,
    to_certificate,
)

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(30, 4))
ROWS = [RNG.normal(mean, size=(n, 4)) for mean, n in ((0.0, 7), (1.0, 5), (-1.0, 9))]


def seen():
    """Take in all rows, in two parts and between one another."""
    found = Kernels(3, REAL, 21)
    for part in (slice(None, 3), slice(3, None)):
        for arm, rows in enumerate(ROWS):
            found.add(arm, rows[part])
    return found


def test_sums_are_those_of_the_kernel_matrix():
    found = seen()
    dense = np.array([[rbf(one, two).mean() for two in ROWS] for one in ROWS])
    assert found.quadratic() == pytest.approx(dense, rel=1e-12)
    without = [(rbf(x, x).sum() - len(x)) / (len(x) * (len(x) - 1)) for x in ROWS]
    assert np.diag(found.quadratic(unbiased=True)) == pytest.approx(without, rel=1e-12)
    assert found.quadratic(unbiased=True)[0, 1] == pytest.approx(dense[0, 1], rel=1e-12)
    assert found.linear == pytest.approx([-2.0 * rbf(x, REAL).mean() for x in ROWS], rel=1e-12)
    assert rbf(REAL, REAL).max() == pytest.approx(1.0)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_policy_minimises_its_optimistic_score(name):
    kernels = seen()
    policy = Policy(name, kernels, np.random.default_rng(1))
    counts = np.array([7.0, 5.0, 9.0])
    bonus = BONUS[0] * np.sqrt(np.log(21.0) / counts) + BONUS[1] / counts
    linear = kernels.linear - (0.0 if name == "Mixture-Greedy" else bonus)
    quadratic, shares = kernels.quadratic(), policy.shares()
    if name == "Mixture-UCB-OGD":
        assert shares == pytest.approx(counts / 21.0)
        slope = 2.0 * quadratic @ shares + linear
        order = np.argsort(slope)
        assert policy.arm(np.ones(3, dtype=bool)) == order[0]
        assert policy.arm(np.arange(3) != order[0]) == order[1]
        return
    score = shares @ quadratic @ shares + linear @ shares
    for other in np.random.default_rng(2).dirichlet([0.5] * 3, size=300):
        assert score <= other @ quadratic @ other + linear @ other + 1e-9
    assert shares == pytest.approx(least(quadratic, linear))
    drawn = [policy.arm(np.ones(3, dtype=bool)) for _ in range(2000)]
    # Hoeffding: by more than 0.065 with probability 2 exp(-2 · 2000 · 0.065²) < 1e-7 an arm.
    assert np.bincount(drawn, minlength=3) / 2000 == pytest.approx(shares, abs=0.065)
    assert policy.arm(np.arange(3) == shares.argmin()) == shares.argmin()


@pytest.mark.parametrize("how", ["ours", "Mixture-UCB-OGD"])
def test_who_draws_decides_sizes_and_our_certificate_the_end(how, monkeypatch):
    monkeypatch.setattr(published_mixtures, "LIMIT", 260)
    found = to_certificate("specialists", 1e-6, how, 0)
    assert not found["certified"]
    assert 4 * 200 < found["samples"] <= 4 * 260
    assert found["gap"] > 0.0
    assert to_certificate("specialists", 1e6, how, 0)["samples"] == 4 * 200


@pytest.mark.parametrize("how", ["ours", "equal shares", "Mixture-UCB-CAB"])
def test_gaps_at_a_budget(how):
    found = at_budget("specialists", 840, how, 0)
    assert 0.0 <= found["fitted"] < 1.0
    assert 0.0 <= found["gap"] < 5.0
    assert found == at_budget("specialists", 840, how, 0)
