"""What a poor fit can cost at most: value and error within the limits of the distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genbounds as gb
from genbounds.estimators import FrechetReference, difference
from tests.warnings_of import codes


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


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.sampled_from([(40, 60, 32), (64, 64, 64), (30, 100, 64), (40, 60, 16)]),
    st.sampled_from(["sample", "exact", "moments"]),
)
@pytest.mark.nightly
def test_errors_of_hopeless_laws_stay_within_the_limits(seed, kind, other, sizes, reference):
    """Value and standard error against the plug-in's, whatever the distributions.

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
    if "misfit" in codes(score):
        assert score.value <= plugin.value * (1.0 + 1e-9)
        assert score.stderr <= 2.0 * (plugin.value + plugin.stderr)


def test_a_poor_fit_is_told_and_its_interval_is_no_wider_than_the_truth_can_be():
    """Both samples few, half of the directions a hundredth as wide: stderr was 4,000 and more."""
    rng = np.random.default_rng(0)
    x, y = (samples("cliff", rng, n, 64) for n in (64, 64))
    score = gb.frechet_distance(x, y)
    plugin = FrechetReference(y).plugin(x)
    assert "misfit" in codes(score, "unreliable")
    assert score.low == 0.0  # the truth
    assert plugin <= score.high <= 3.0 * plugin


def test_a_difference_of_poor_fits_is_no_wider_than_both():
    """It is made of the influences themselves."""
    rng = np.random.default_rng(1)
    reference = FrechetReference(samples("cliff", rng, 64, 64))
    a, b = (reference.estimate(samples("cliff", rng, 64, 64)) for _ in range(2))
    assert not a.reliable
    assert not b.reliable
    assert difference(a, b).stderr <= 1.01 * (a.stderr + b.stderr)
