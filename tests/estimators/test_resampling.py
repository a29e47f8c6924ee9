"""Named alternatives to the influence interval: textbook formulas, coverage, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, t

import genbounds as gb
from genbounds.estimators import Bootstrap, Expansion, Jackknife, inception_splits
from genbounds.estimators._resampling import bootstrap_score, jackknife_score


def mean_of(samples):
    return float(samples[0].mean()) - (0.0 if samples[1] is None else float(samples[1].mean()))


def expansion_of(*samples):
    return Expansion(estimator="debiased", value=mean_of(samples), variance=1.0)


def test_jackknife_of_a_mean_with_groups_of_one_is_its_standard_error():
    x = np.random.default_rng(0).normal(size=60)
    x, y = x[:40], x[40:]
    score = jackknife_score(expansion_of(x, None), mean_of, (x, None), Jackknife(groups=20), 0.9)
    label = np.random.default_rng(0).permutation(np.arange(40) % 20)
    means = np.array([x[label == k].mean() for k in range(20)])
    assert score.stderr == pytest.approx(means.std(ddof=1) / math.sqrt(20))
    assert score.high - score.value == pytest.approx(t.isf(0.05, 19) * score.stderr)
    both = jackknife_score(expansion_of(x, y), mean_of, (x, y), Jackknife(groups=10), 0.9)
    one, two = (
        jackknife_score(expansion_of(x, y), lambda s, k=k: mean_of((s[0], y) if k else (x, s[1])),
                        (x if k else None, None if k else y), Jackknife(groups=10), 0.9).stderr
        for k in (1, 0)
    )  # fmt: skip
    assert both.stderr == pytest.approx(math.hypot(one, two))


def test_bootstrap_of_a_mean():
    """Errors of resampled means have standard deviation s/√n; the interval is reflected."""
    x = np.random.default_rng(1).exponential(size=200)
    plan = Bootstrap(resamples=4000)
    score = bootstrap_score(
        expansion_of(x, None), mean_of, (x, None), float(x.mean()), plan, level=0.95
    )
    assert score.stderr == pytest.approx(x.std() / math.sqrt(200), rel=0.08)  # 7 sd of it
    # The error is skewed to the right, so the interval reaches further down.
    assert score.value - score.low > score.high - score.value


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
    assert any("jackknife, 12 groups" in note for note in score.notes)


def test_bootstrap_of_a_biased_square_covers():
    """Squared means of 30 normals, truth 1; the plug-in is high by a third of an error.

    H0: at least 88 % at nominal 95 %. Gate at 1e-6. Sees errors about a centre that is 0.3 off;
    that they are reflected is seen on the skewed mean above.
    """

    def square(samples):
        return float((samples[0].mean(axis=0) ** 2).sum())

    rng = np.random.default_rng(7)
    hits, runs = 0, 400
    for _ in range(runs):
        x = rng.normal(0.5, 1.0, size=(30, 4))
        value = square((x, None))
        expansion = Expansion(estimator="plugin", value=value, variance=1.0)
        score = bootstrap_score(
            expansion, square, (x, None), value, Bootstrap(resamples=100), level=0.95
        )
        hits += score.low <= 1.0 <= score.high
    assert hits >= binom.ppf(1e-6, runs, 0.88)


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
