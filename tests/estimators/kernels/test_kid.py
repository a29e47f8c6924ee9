"""Kernel Inception distance: coverage, units, refusals; its value and variance: test_distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import genbounds as gb
from genbounds.estimators import KernelReference


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.15, 1.0])
def test_variance_and_coverage_for_a_known_law(shift):
    """Degree 1: truth and variance in closed form, from the degenerate case to the linear one.

    H0: the 95 % interval covers at least 93 %. A binomial gate at 2e-7; the variance within six
    standard errors of the mean of 2,000 estimates. Dropping the degenerate part of the variance
    makes it zero at shift 0, where it is all there is.
    """
    d, n, m, runs = 8, 60, 90, 2000
    rng = np.random.default_rng(2)
    truth = shift**2  # ‖shift‖² / d
    variances, hits = np.empty(runs), 0
    for run in range(runs):
        x, y = rng.normal(shift, 1.0, (n, d)), rng.normal(size=(m, d))
        found = KernelReference(y, degree=1).estimate(x)
        variances[run] = found.variance
        score = found.score(0.95)
        hits += score.low <= truth <= score.high
    linear = 4.0 * shift**2 / d * (1.0 / n + 1.0 / m)
    degenerate = (2.0 / (n * (n - 1)) + 2.0 / (m * (m - 1)) + 4.0 / (n * m)) / d
    error = variances.std() / np.sqrt(runs)
    # Where the linear part vanishes its estimate is noise, cut at 0: an excess, never a lack.
    assert variances.mean() > linear + degenerate - 6.0 * error
    assert variances.mean() < (linear + degenerate) * (4.0 if shift == 0.0 else 1.3) + 6.0 * error
    assert hits >= binom.ppf(2e-7, runs, 0.93)


@pytest.mark.nightly
@pytest.mark.slow
def test_interval_follows_the_skewness():
    """Both ends move up where value and variance rise together; else high misses pile up.

    1,000 runs: 3.5 % of misses above with the shift, 9.2 % without. The gate has a false alarm
    below 1e-6 at 4 %.
    """
    rng = np.random.default_rng(3)
    d, n, runs, above = 4, 100, 1000, 0
    # E (x·y/d + 1)³ for independent symmetric rows: 1 + 3 Tr(M M')/d², M the second moments.
    truth = 3.0 * (1.5**2 - 1.0) ** 2 / d
    for _ in range(runs):
        x, y = rng.normal(0.0, 1.5, (n, d)), rng.normal(size=(n, d))
        above += gb.kernel_inception_distance(x, y).high < truth
    assert above <= binom.isf(1e-6, runs, 0.04)


def test_equal_laws_are_ranked_together():
    """False alarm: three simultaneous intervals at level 1 - 1e-7."""
    rng = np.random.default_rng(5)
    fakes = {name: rng.normal(size=(300, 6)) for name in "abc"}
    ranking = gb.compare(fakes, rng.normal(size=(400, 6)), metric="kid", level=1 - 1e-7)
    assert len(ranking.groups) == 1
    assert all(score.low == 0.0 for score in ranking.scores.values())
    far = fakes | {"far": rng.normal(1.0, 1.0, size=(300, 6))}
    assert len(gb.compare(far, rng.normal(size=(400, 6)), metric="kid").groups) == 2


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3]))
def test_scale_and_permutation(seed, scale):
    """With γ / s² features times s give the same number; the order of rows only rounds."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.2, 1.0, (30, 3)), rng.normal(size=(20, 3))
    score = gb.kernel_inception_distance(x, y, gamma=0.5)
    moved = gb.kernel_inception_distance(
        scale * x[rng.permutation(30)], scale * y, gamma=0.5 / scale**2
    )
    assert moved.value == pytest.approx(score.value, rel=1e-8, abs=1e-10)
    assert moved.stderr == pytest.approx(score.stderr, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gb.kernel_inception_distance(gb.Moments.from_features(x), x), "moments"),
        (lambda x: gb.kernel_inception_distance(x[:3], x), "at least 4"),
        (lambda x: gb.kernel_inception_distance(x, x[:, :2]), "same encoder"),
        (lambda x: gb.kernel_inception_distance(x, x, degree=0), "degree"),
        (lambda x: gb.kernel_inception_distance(x, x, gamma=-1.0), "gamma"),
        (lambda x: gb.kernel_inception_distance(x, x, offset=-1.0), "offset"),
        (lambda x: gb.kernel_inception_distance(x, x, estimator="infinity"), "estimator"),
        (lambda x: gb.kernel_inception_distance(x * np.nan, x), "NaN"),
        (lambda x: gb.compare({"a": x}, metric="kid"), "real"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(gb.InputError, match=words):
        call(np.random.default_rng(7).normal(size=(10, 3)))
