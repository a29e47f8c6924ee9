"""FD∞ and IS∞: what both share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import genbounds as gb
from genbounds.estimators import FrechetReference, Moments, Subsets

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(20), 2)


@pytest.mark.parametrize(
    ("title", "score"),
    [
        ("FD∞", lambda x: gb.frechet_distance(x, RNG.normal(size=(40, 3)), estimator="infinity")),
        ("IS∞", lambda x: gb.inception_score(x, estimator="infinity")),
    ],
)
def test_subsets_are_drawn_of_independent_rows_only(title, score):
    rows = RNG.dirichlet(np.ones(3), size=40)
    assumptions = score(gb.Sample(rows)).assumptions
    assert "the plug-in score is linear in 1/N over the subsets" in assumptions
    with pytest.raises(gb.InputError, match=f"^{title} draws subsets of independent rows"):
        score(gb.Sample(rows, groups=GROUPS))


def test_weights_are_those_of_squared_residuals():
    """Against the normal equations: variances of 1/N² are weights of N²."""
    x, real = RNG.normal(size=(400, 3)), Moments(np.zeros(3), np.eye(3))
    subsets = Subsets(minimum=40, points=6, weights="1/n**2")
    found = gb.estimators.frechet_infinity(x, real, subsets=subsets)
    rng, sizes = np.random.default_rng(0), subsets.sizes(400)
    scores = [
        FrechetReference(real).plugin(x[np.sort(rng.choice(400, size, replace=False))])
        for size in sizes
    ]
    design = np.column_stack([np.ones(6), 1.0 / sizes])
    weighted = design.T * sizes.astype(float) ** 2
    value, _ = np.linalg.solve(weighted @ design, weighted @ scores)
    assert found.value == pytest.approx(value, rel=1e-10)
    equal = gb.estimators.frechet_infinity(x, real, subsets=Subsets(minimum=40, points=6))
    assert found.value != pytest.approx(equal.value, rel=1e-3)
    with pytest.raises(gb.InputError, match="weights"):
        gb.estimators.frechet_infinity(x, real, subsets=Subsets(weights="n"))


@pytest.mark.nightly
@pytest.mark.statistical
def test_weights_take_a_part_of_the_noise_off():
    """Null: errors of both lines have one variance; then sum and difference are uncorrelated.

    Pitman and Morgan's test, exact for normal errors, at 1e-6: r above 0.192 of 600 pairs. Root
    mean squares of 0.056 and 0.046 were measured, r = 0.32: missed with probability 2e-4.
    """
    real, pairs = Moments(np.zeros(8), np.eye(8)), 600
    rng = np.random.default_rng(1)
    errors = []
    for seed in range(pairs):
        x = 1.2 * rng.normal(size=(500, 8))
        chosen = (Subsets(seed=seed), Subsets(seed=seed, weights="1/n**2"))
        errors.append([gb.estimators.frechet_infinity(x, real, subsets=s).value for s in chosen])
    plain, weighted = np.transpose(errors)
    r, n = np.corrcoef(plain + weighted, plain - weighted)[0, 1], pairs - 2
    assert stats.t.sf(r * math.sqrt(n / (1.0 - r * r)), n) < 1e-6
