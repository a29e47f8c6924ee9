"""Weighted rows: equal weights, absent rows, importance sampling, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import genbounds as gb
from genbounds.estimators import FrechetReference
from genbounds.estimators.frechet._pair import Pair
from genbounds.estimators.frechet._sample import sample_of


def second_order(x, y):
    """Second-order estimate and variance of equally weighted rows, by the unweighted code."""
    pair = Pair(sample_of("fake", x), sample_of("real", y))
    one, two = pair.terms(every_row=True)
    return pair.plugin - one.bias - two.bias, one.variance, two.variance


@given(st.integers(0, 2**32 - 1), st.sampled_from([(60, 5), (30, 1), (12, 20)]))
def test_equal_weights_change_nothing(seed, shape):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.5, 1.0, shape), rng.normal(size=(90, shape[1]))
    expansion = FrechetReference(y, weights=np.full(90, 1e300)).expand(
        x, weights=np.full(shape[0], 7.0)
    )
    value, own, other = second_order(x, y)
    assert expansion.value == pytest.approx(value, rel=1e-8, abs=1e-10)
    assert expansion.variance == pytest.approx(own, rel=1e-8)
    assert expansion.reference_variance == pytest.approx(other, rel=1e-8)
    assert expansion.degrees_of_freedom == pytest.approx(shape[0] - 1)


@given(st.integers(0, 2**32 - 1))
def test_rows_of_weight_zero_are_absent(seed):
    rng = np.random.default_rng(seed)
    x, real = rng.normal(0.5, 1.0, (80, 4)), gb.Moments(np.zeros(4), np.eye(4))
    w = rng.uniform(0.1, 1.0, 80)
    padded = np.vstack([x, 1e3 * rng.normal(size=(20, 4))])
    order = rng.permutation(100)
    score = gb.frechet_distance(
        padded[order], real, weights=np.concatenate([w, np.zeros(20)])[order]
    )
    assert score.value == pytest.approx(gb.frechet_distance(x, real, weights=w).value, rel=1e-9)


def exact_errors(n, estimator):
    """Mean error over all samples of n rows of a fair coin, weighted to 3 : 1, by enumeration."""
    mean, variance = 0.75, 0.75 * 0.25
    real = gb.Moments([0.4], [[1.7**2]])
    truth = (mean - 0.4) ** 2 + (np.sqrt(variance) - 1.7) ** 2
    total = 0.0
    for ones in range(1, n):
        rows = (np.arange(n) < ones).astype(float)[:, None]
        expansion = FrechetReference(real).expand(
            rows, estimator=estimator, weights=1.0 + 2.0 * rows[:, 0]
        )
        total += binom.pmf(ones, n, 0.5) * (expansion.value - truth)
    return total


def test_bias_is_removed_to_second_order_for_importance_weights():
    """No randomness: the error left falls like n⁻² (a term of order n⁻¹ would halve only)."""
    small, large = exact_errors(40, "debiased"), exact_errors(80, "debiased")
    assert abs(large) < 0.32 * abs(small)
    assert abs(large) < 0.05 * abs(exact_errors(80, "plugin"))


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
        expansion = FrechetReference(real).expand(rng.normal(0.5, 1.0, (n, d)), weights=w)
        values[run], variances[run] = expansion.value, expansion.variance
        score = expansion.score(0.95)
        hits += score.low <= truth <= score.high
    assert hits >= binom.ppf(1e-6, runs, 0.90)
    assert variances.mean() == pytest.approx(values.var(), rel=1 / 3)


def test_notes_say_what_the_weights_cost():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, 10)), rng.normal(size=(400, 10))
    w = np.ones(300)
    w[:5] = 100.0
    score = gb.frechet_distance(x, y, weights=w)
    assert any("count for 12.57 equal ones" in note for note in score.notes)
    assert any(note.startswith("unreliable") for note in score.notes)
    assert not any(
        note.startswith("unreliable")
        for note in gb.frechet_distance(x, y, reference_weights=np.ones(400)).notes
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gb.frechet_distance(x, x, weights=np.ones(3)), r"shape \(40,\)"),
        (lambda x: gb.frechet_distance(x, x, weights=-np.ones(40)), "non-negative"),
        (lambda x: gb.frechet_distance(x, x, weights=np.eye(40)[0]), "at least 2"),
        (lambda x: gb.frechet_distance(x, x, weights=np.full(40, np.nan)), "finite"),
        (
            lambda x: gb.frechet_distance(x, gb.Moments.from_features(x), reference_weights=[1.0]),
            "reference_weights",
        ),
        (
            lambda x: gb.frechet_distance(x, x, weights=np.ones(40), interval="jackknife"),
            "influence",
        ),
        (
            lambda x: gb.frechet_distance(x, x, weights=np.ones(40), estimator="infinity"),
            "FD∞",
        ),
    ],
)
def test_refusals(call, words):
    with pytest.raises(gb.InputError, match=words):
        call(np.random.default_rng(2).normal(size=(40, 3)))
