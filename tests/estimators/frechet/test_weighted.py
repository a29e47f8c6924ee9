"""Weighted rows: equal weights, absent rows, importance sampling, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import genbounds as gb
from genbounds.estimators import FrechetReference
from tests.refusal import refused
from tests.warnings_of import codes


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.sampled_from([(60, 5), (30, 1), (12, 20)]))
def test_equal_weights_change_nothing(seed, shape):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.5, 1.0, shape), rng.normal(size=(90, shape[1]))
    weighted = gb.Sample(x, weights=np.full(shape[0], 7.0))
    found = FrechetReference(gb.Sample(y, weights=np.full(90, 1e300))).estimate(weighted)
    equal = FrechetReference(gb.Sample(y)).estimate(gb.Sample(x))
    assert found.value == pytest.approx(equal.value, rel=1e-8, abs=1e-10)
    assert found.sample.variance == pytest.approx(equal.sample.variance, rel=1e-8)
    assert found.reference.variance == pytest.approx(equal.reference.variance, rel=1e-8)


def test_pairs_across_are_weighed():
    """Rows of weight nearly 0 may as well not be there: the same on average over their order."""
    rng = np.random.default_rng(4)
    fake, real = rng.standard_t(6, size=(9, 2)), 1.4 * rng.standard_t(6, size=(11, 2))
    weights = np.where(np.arange(11) < 6, 1.0, 1e-9)
    weighted, few = [], []
    for _ in range(60):
        order, fakes = rng.permutation(11), fake[rng.permutation(9)]
        reference = FrechetReference(gb.Sample(real[order], weights=weights[order]))
        weighted.append(reference.estimate(fakes).sample.mixed_variance)
        alone = FrechetReference(real[order[order < 6]]).estimate(fakes, estimator="plugin")
        few.append(alone.sample.mixed_variance)
    assert np.mean(weighted) == pytest.approx(np.mean(few), rel=0.1)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_rows_of_weight_zero_are_absent(seed):
    rng = np.random.default_rng(seed)
    x, real = rng.normal(0.5, 1.0, (80, 4)), gb.Moments(np.zeros(4), np.eye(4))
    w = rng.uniform(0.1, 1.0, 80)
    padded = np.vstack([x, 1e3 * rng.normal(size=(20, 4))])
    order = rng.permutation(100)
    weights = np.concatenate([w, np.zeros(20)])[order]
    # Not debiased: which rows halving puts together depends on their number.
    score = gb.frechet_distance(gb.Sample(padded[order], weights=weights), real, estimator="plugin")
    alone = gb.frechet_distance(gb.Sample(x, weights=w), real, estimator="plugin")
    assert score.value == pytest.approx(alone.value, rel=1e-9)


def exact_errors(n, estimator):
    """Mean error over all samples of n rows of a fair coin, weighted to 3 : 1, by enumeration."""
    mean, variance = 0.75, 0.75 * 0.25
    real = gb.Moments([0.4], [[1.7**2]])
    truth = (mean - 0.4) ** 2 + (np.sqrt(variance) - 1.7) ** 2
    total = 0.0
    for ones in range(1, n):
        rows = (np.arange(n) < ones).astype(float)[:, None]
        weighted = gb.Sample(rows, weights=1.0 + 2.0 * rows[:, 0])
        found = FrechetReference(real).estimate(weighted, estimator="plugin")
        bias = found.sample.bias if estimator == "debiased" else 0.0
        total += binom.pmf(ones, n, 0.5) * (found.value - bias - truth)
    return total


def test_bias_is_removed_to_second_order_for_importance_weights():
    """No randomness: the error left falls like n⁻² (a term of order n⁻¹ would halve only)."""
    small, large = exact_errors(40, "debiased"), exact_errors(80, "debiased")
    assert abs(large) < 0.32 * abs(small)
    assert abs(large) < 0.05 * abs(exact_errors(80, "plugin"))


@pytest.mark.nightly
@pytest.mark.slow
def test_variance_and_coverage_under_uneven_weights():
    """One row in ten counts twenty times: 300 rows are worth 62.

    H0: at least 90 % at nominal 95 %, a binomial gate at 1e-6; the mean estimated variance within a
    third of the variance of 400 estimates (relative sd of that: 8 %). With Σ w IF² / n in place of
    Σ w² IF² the variance is a fifth.
    """
    rng = np.random.default_rng(0)
    d, n, runs = 2, 300, 400
    real = gb.Moments(np.zeros(d), 2.0 * np.eye(d))
    truth = d * (0.5**2 + (np.sqrt(2.0) - 1.0) ** 2)
    w = np.where(np.arange(n) % 10 == 0, 20.0, 1.0)
    hits, values, variances = 0, np.empty(runs), np.empty(runs)
    for run in range(runs):
        found = FrechetReference(real).estimate(gb.Sample(rng.normal(0.5, 1.0, (n, d)), weights=w))
        values[run], variances[run] = found.value, found.variance
        score = found.score(0.95)
        hits += score.low <= truth <= score.high
    assert hits >= binom.ppf(1e-6, runs, 0.90)
    assert variances.mean() == pytest.approx(values.var(), rel=1 / 3)


def test_few_effective_rows_are_doubted():
    """300 rows, of which five count a hundredfold, are worth 12.6."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, 10)), rng.normal(size=(400, 10))
    w = np.ones(300)
    w[:5] = 100.0
    score = gb.frechet_distance(gb.Sample(x, weights=w), y)
    assert "few-samples" in codes(score, "unreliable")
    assert gb.frechet_distance(x, gb.Sample(y, weights=np.ones(400))).reliable


@pytest.mark.parametrize("weights", [np.ones(3), -np.ones(40), np.eye(40)[0], np.full(40, np.nan)])
def test_weights_that_are_none(weights):
    with refused("weights"):
        gb.Sample(np.zeros((40, 3)), weights=weights)


def test_what_subsets_of_rows_would_ignore():
    x = np.random.default_rng(2).normal(size=(40, 3))
    uneven = gb.Sample(x, weights=np.arange(1.0, 41.0))
    with refused():
        gb.frechet_distance(uneven, gb.Moments(np.zeros(3), np.eye(3)), estimator="infinity")
