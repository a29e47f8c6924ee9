"""Named alternatives to the influence interval: textbook formulas, coverage, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, t

import genbounds as gb
from genbounds.estimators import Bootstrap, Jackknife, inception_splits

POINT = gb.Moments([0.0], [[0.0]])
"""The distance to it is the mean square of the rows, a plain mean."""


def rows_of(squares):
    """Rows whose mean square is the mean of `squares`, with alternating signs."""
    return (np.sqrt(squares) * np.where(np.arange(len(squares)) % 2, 1.0, -1.0))[:, None]


def test_jackknife_of_a_mean_is_that_of_its_groups():
    squares = np.random.default_rng(0).exponential(size=40)
    plan = Jackknife(groups=20)
    score = gb.frechet_distance(rows_of(squares), POINT, interval=plan, level=0.9)
    assert score.value == pytest.approx(squares.mean(), rel=1e-3)  # but for O(1/n²)
    label = np.random.default_rng(plan.seed).permutation(np.arange(40) % 20)
    means = np.array([squares[label == k].mean() for k in range(20)])
    assert score.stderr == pytest.approx(means.std(ddof=1) / math.sqrt(20), rel=1e-3)
    assert score.high - score.value == pytest.approx(t.isf(0.05, 19) * score.stderr)


def test_jackknife_adds_the_variances_of_both_samples():
    """By the formula, from the public estimate itself without one group of either sample."""
    rng = np.random.default_rng(0)
    plan, n = Jackknife(groups=10), 60
    samples = [rng.normal(0.5, 1.0, size=(n, 2)), rng.normal(size=(n, 2))]
    label = np.random.default_rng(plan.seed).permutation(np.arange(n) % plan.groups)
    variance = 0.0
    for side in (0, 1):
        without = []
        for group in range(plan.groups):
            kept = list(samples)
            kept[side] = samples[side][label != group]
            without.append(gb.frechet_distance(*kept, estimator="plugin").value)
        variance += (plan.groups - 1) ** 2 / plan.groups * np.var(without, ddof=1)
    score = gb.frechet_distance(*samples, estimator="plugin", interval=plan)
    assert score.stderr == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_bootstrap_of_a_mean():
    """Errors of resampled means have standard deviation s/√n; the interval is reflected."""
    squares = np.random.default_rng(1).exponential(size=200)
    score = gb.frechet_distance(rows_of(squares), POINT, interval=Bootstrap(resamples=1000))
    assert score.stderr == pytest.approx(squares.std() / math.sqrt(200), rel=0.15)  # 6 sd of it
    # The error is skewed to the right, so the interval reaches further down.
    assert score.value - score.low > score.high - score.value


@pytest.mark.nightly
@pytest.mark.slow
def test_jackknife_of_the_distance_covers():
    """H0: at least 90 %. Gate at 1e-6.

    The interval around the plug-in covers 69 % (400 runs).
    """
    rng = np.random.default_rng(2)
    d, n, runs, hits = 4, 40, 100, 0
    real = gb.Moments(np.zeros(d), np.eye(d))
    truth = d * 0.5**2
    for _ in range(runs):
        fake = 1.5 * rng.normal(size=(n, d))
        score = gb.frechet_distance(fake, real, interval=Jackknife(groups=12))
        hits += score.low <= truth <= score.high
    assert hits >= binom.ppf(1e-6, runs, 0.90)


@pytest.mark.slow
@pytest.mark.nightly
def test_bootstrap_of_a_biased_square_covers():
    """Squared gap of 30 means in four dimensions, of a distribution that is the reference's.

    The plug-in is high by a third of an error. H0: at least 88 % at nominal 95 %. Gate at 1e-6.
    Sees errors about a centre that is 0.3 off; that they are reflected is seen on the skewed mean
    above.
    """
    rng = np.random.default_rng(7)
    real = gb.Moments(np.zeros(4), np.eye(4))
    hits, runs = 0, 150
    for _ in range(runs):
        x = rng.normal(0.5, 1.0, size=(30, 4))
        score = gb.frechet_distance(x, real, estimator="plugin", interval=Bootstrap(resamples=60))
        hits += score.low <= 1.0 <= score.high
    assert hits >= binom.ppf(1e-6, runs, 0.88)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("interval", ["jackknife", "bootstrap"])
def test_alternatives_agree_with_the_influence_interval_for_large_samples(interval):
    rng = np.random.default_rng(3)
    x, y = rng.normal(1.0, 1.0, (600, 4)), rng.normal(size=(800, 4))
    usual = gb.frechet_distance(x, y)
    other = gb.frechet_distance(x, y, interval=interval)
    assert other.value == usual.value
    # Relative error of the standard error: 1/√(2·19) for the jackknife; 6 of them.
    assert other.stderr == pytest.approx(usual.stderr, rel=0.7)
    assert other == gb.frechet_distance(x, y, interval=interval)
    probs = rng.dirichlet(np.full(5, 0.3), size=600)
    usual, other = gb.inception_score(probs), gb.inception_score(probs, interval=interval)
    assert other.value == usual.value
    assert other.stderr == pytest.approx(usual.stderr, rel=0.7)
    assert other.low < usual.value < other.high


def test_bootstrap_around_the_plugin_removes_its_bias():
    """The basic bootstrap sees the plug-in's bias, once: its interval lies below the plug-in."""
    rng = np.random.default_rng(4)
    real = gb.Moments(np.zeros(10), np.eye(10))
    score = gb.frechet_distance(
        rng.normal(size=(100, 10)), real, estimator="plugin", interval="bootstrap"
    )
    assert score.high < score.value


def test_splits_are_the_scores_of_the_parts():
    probs = np.random.default_rng(5).dirichlet(np.full(4, 0.5), size=103)
    scores = inception_splits(probs, splits=10)
    assert [score.n for score in scores] == [11] * 3 + [10] * 7
    assert scores[1] == gb.inception_score(probs[11:22], estimator="plugin")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, m: gb.frechet_distance(x, x, interval="percentile"), "interval"),
        (lambda x, m: gb.frechet_distance(x, m, interval="jackknife"), "moments"),
        (lambda x, m: gb.frechet_distance(x[:8], x, interval="bootstrap"), "4 a feature"),
        (lambda x, m: gb.frechet_distance(x[:8], x, interval="jackknife"), "40 rows"),
        (lambda x, m: Jackknife(groups=1), "groups"),
        (lambda x, m: Bootstrap(resamples=3), "resamples"),
        (lambda x, m: inception_splits(np.full((5, 2), 0.5), splits=3), "splits"),
    ],
)
def test_refusals(call, words):
    x = np.random.default_rng(6).normal(size=(50, 3))
    with pytest.raises(gb.InputError, match=words):
        call(x, gb.Moments.from_features(x))
