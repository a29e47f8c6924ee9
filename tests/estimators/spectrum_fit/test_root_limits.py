"""What a poor fit can cost at most: limits of the trace of the root, and errors within them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import linalg

import genbounds as gb
from genbounds.estimators import FrechetReference, difference
from genbounds.estimators.spectrum_fit._marchenko_pastur import RowLaw
from genbounds.estimators.spectrum_fit._one_sample import Side, population_root, root_influences
from genbounds.estimators.spectrum_fit._root_limits import RootLimits

LIMITS = RootLimits(low=2.0, high=5.0)


def roots(cov, other):
    lower = np.linalg.cholesky(other)
    return np.sqrt(np.linalg.eigvalsh(lower.T @ cov @ lower))


def covariance(rng, d):
    x = rng.normal(size=(d + 1, d)) * 10.0 ** rng.uniform(-2.0, 2.0, size=d)
    return x.T @ x


def samples(kind, rng, n, d):
    x = rng.normal(size=(n, d))
    if kind == "cliff":
        return x * np.where(np.arange(d) < d // 2, 1.0, 1e-2)
    if kind == "few directions":
        return x * np.where(np.arange(d) < 3, 1.0, 1e-6)
    if kind == "outlier":
        x[0] *= 1e4
    elif kind == "cauchy":
        x /= np.abs(rng.normal(size=(n, 1)))
    elif kind == "one feature a row":
        return np.eye(d)[rng.integers(d, size=n)]
    elif kind == "rare features":
        x *= rng.random((n, d)) < 0.05
    return x


KINDS = ("cliff", "few directions", "outlier", "cauchy", "one feature a row", "rare features")


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.floats(0.0, 1.0))
def test_the_root_is_jointly_concave_and_below_that_of_the_traces(seed, d, share):
    """What the limits rest on: the mean over samples is below that of the mean covariances."""
    rng = np.random.default_rng(seed)
    (a, b), (c, e) = ((covariance(rng, d), covariance(rng, d)) for _ in range(2))
    between = roots(share * a + (1.0 - share) * c, share * b + (1.0 - share) * e).sum()
    mean = share * roots(a, b).sum() + (1.0 - share) * roots(c, e).sum()
    assert between >= mean * (1.0 - 1e-6)
    limits = RootLimits.of(roots(a, b) ** 2, traces=(np.trace(a), np.trace(b)))
    assert limits.low <= limits.high
    assert_allclose(limits.high, math.sqrt(np.trace(a) * np.trace(b)), rtol=1e-6)


class TestErrors:
    def test_a_good_fit_is_left_alone(self):
        got = LIMITS.errors(3.0, fitted=[4.0, 1e9], plugin=[1.0, 1.0], inflation=1.0, doubts=[1, 2])
        assert got == ([5.0, 1e9 + 2.0], False)

    def test_doubt_reaches_to_the_farther_limit_at_most(self):
        for trace, room in ((3.0, 4.0), (4.5, 5.0), (2.0, 6.0), (7.0, 10.0)):
            variances, _ = LIMITS.errors(
                trace, fitted=[1.0, 3.0], plugin=[1.0, 3.0], inflation=1e6, doubts=[1e6, 0.0]
            )
            assert_allclose(sum(variances), 4.0 + room**2)
            assert variances[1] > variances[0] > 1.0

    def test_small_doubt_is_what_it_is(self):
        variances, by_plugin = LIMITS.errors(
            3.0, fitted=[1.0, 2.0], plugin=[1.0, 1.0], inflation=1.5, doubts=[0.25, 0.5]
        )
        assert_allclose(variances, [1.75, 3.5])
        assert not by_plugin

    def test_noise_beyond_the_limits_is_that_of_the_plugin(self):
        variances, by_plugin = LIMITS.errors(
            3.0, fitted=[1e9], plugin=[2.0], inflation=2.0, doubts=[0.0]
        )
        assert_allclose(variances, [4.0])
        assert by_plugin


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.sampled_from([(40, 60, 32), (64, 64, 64), (30, 100, 64), (40, 60, 16)]),
    st.sampled_from(["sample", "exact", "moments"]),
)
def test_errors_of_hopeless_laws_stay_within_the_limits(seed, kind, other, sizes, reference):
    """Value and standard error against the plug-in's, whatever the laws.

    Neither end of what the distance can be is farther off than the plug-in is from 0, and twice the
    square of that and the noise of the plug-in is the most that a variance can be.
    """
    n, m, d = sizes
    rng = np.random.default_rng(seed)
    x, y = samples(kind, rng, n, d), samples(other, rng, m, d)
    exact = gb.Moments(y.mean(axis=0), np.cov(y.T))
    fake = gb.Moments(x.mean(axis=0), np.cov(x.T), n) if reference == "moments" else x
    real = y if reference == "sample" else exact
    score = gb.frechet_distance(fake, real)
    plugin = gb.frechet_distance(fake, real, estimator="plugin")
    assert 0.0 <= score.low <= score.value <= score.high
    if any("no smooth spectrum" in note for note in score.notes):
        assert score.value <= plugin.value * (1.0 + 1e-9)
        assert score.stderr <= 2.0 * (plugin.value + plugin.stderr)


def test_a_poor_fit_is_told_and_its_interval_is_no_wider_than_the_truth_can_be():
    """Both samples few, half of the directions a hundredth as wide: stderr was 4,000 and more."""
    rng = np.random.default_rng(0)
    x, y = (samples("cliff", rng, n, 64) for n in (64, 64))
    score = gb.frechet_distance(x, y)
    plugin = FrechetReference(y).plugin(x)
    assert any("no smooth spectrum" in note for note in score.notes)
    assert score.low == 0.0  # the truth
    assert plugin <= score.high <= 3.0 * plugin


def test_a_difference_of_poor_fits_is_no_wider_than_both():
    """It is made of the influences themselves."""
    rng = np.random.default_rng(1)
    reference = FrechetReference(samples("cliff", rng, 64, 64))
    a, b = (reference.expand(samples("cliff", rng, 64, 64)) for _ in range(2))
    assert a.doubts
    assert b.doubts
    assert difference(a, b).stderr <= 1.01 * (a.stderr + b.stderr)


@pytest.mark.parametrize("n", [60, 30])
def test_influence_of_the_plugin_is_its_derivative_in_the_weight_of_a_row(n):
    rng = np.random.default_rng(n)
    x = samples("cliff", rng, n, 40)
    x -= x.mean(axis=0)
    side, rows, rest = Side.of(x, distinct=n), [RowLaw(n - 1)], rng.normal(size=n)
    root = replace(population_root(side.values, rows=rows, rank=side.rank), inflation=2.0)
    _, plugin = root_influences(rest, side, root, rows)

    def trace(weights):
        return linalg.svdvals(np.sqrt(weights)[:, None] * x).sum() / math.sqrt(n - 1)

    step = 1e-5
    gain = [
        (trace(1.0 + step * unit) - trace(1.0 - step * unit)) / (2 * step) for unit in np.eye(n)
    ]
    expected = rest - 2.0 * (n - 1) * np.array(gain)
    assert_allclose(plugin, expected - expected.mean(), rtol=1e-5, atol=1e-5)
