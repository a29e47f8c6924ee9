"""What decisions are made of: model of the variance, pooling, limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

import genbounds as gb
from genbounds.decisions._follow import Limits
from genbounds.decisions._recipes import half_width, pooled
from genbounds.decisions._variance import VarianceModel, smallest
from genbounds.estimators import (
    difference,
    estimate_all,
    student_quantile,
    welch_degrees_of_freedom,
)
from tests.decisions.test_plan import OTHER, PILOT, REAL


@pytest.mark.parametrize("metric", ["fd", "kid", "rke", "vendi"])
def test_the_model_gives_the_pilot_s_own_variance(metric):
    ids = np.arange(300)
    named = {"a": gb.Sample(PILOT, groups=ids), "b": gb.Sample(PILOT + 0.2 * OTHER, groups=ids)}
    for models in ({"a": PILOT, "b": OTHER}, {"a": PILOT, "b": OTHER[:150]}, named):
        found = estimate_all(models, REAL, metric=metric)
        a, b = found["a"], found["b"]
        assert VarianceModel.of_score(a).stderr(300) == pytest.approx(a.stderr, rel=1e-9)
        model = VarianceModel.of_difference(a, b)
        if a.n == b.n:
            assert model.stderr(300) == pytest.approx(difference(a, b).stderr, rel=1e-9)
        assert model.scatter(300) <= model.stderr(300) * (1.0 + 1e-12)


def test_smallest():
    assert smallest(lambda n: n >= 1234.5) == 1235
    assert smallest(lambda n: True, low=7) == 7
    assert smallest(lambda n: False) is None
    assert smallest(lambda n: n >= 123_456_789) == pytest.approx(123_456_789, rel=1e-6)


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("k", [3, 10])
def test_pooling_is_that_of_statsmodels(spread, k):
    rng = np.random.default_rng(k)
    within = rng.uniform(0.5, 2.0, size=k)
    values = 3.0 + spread * rng.normal(size=k)
    found = pooled(values, within)
    # Their iteration stops at 0 where rounding hides the tolerance: on some processors 1e-12 does.
    theirs = combine_effects(values, within, method_re="iterated", use_t=True, atol=1e-10)
    assert found.between == pytest.approx(theirs.tau2, rel=1e-6, abs=1e-9)
    assert found.mean == pytest.approx(theirs.mean_effect_re, rel=1e-6)
    assert np.sqrt(found.variance) == pytest.approx(theirs.sd_eff_w_re_hksj, rel=1e-6)


def test_two_values_have_a_closed_form():
    """The iteration of statsmodels gives 0 here."""
    found = pooled(np.array([1.0, 11.0]), np.array([1.0, 3.0]))
    assert found.between == pytest.approx((10.0**2 - 1.0 - 3.0) / 2.0)


def test_values_that_are_known_exactly_are_averaged():
    found = pooled(np.array([1.0, 2.0, 6.0]), np.zeros(3))
    assert found.mean == pytest.approx(3.0)
    assert found.between == pytest.approx(7.0)
    assert found.variance == pytest.approx(7.0 / 3.0)


def test_equal_values_have_no_spread():
    found = pooled(np.full(3, 2.0), np.ones(3))
    assert (found.mean, found.variance, found.between) == (2.0, 0.0, 0.0)


@pytest.mark.statistical
def test_an_estimated_and_a_known_variance_cover_together():
    """Null: at least 95 %, of 20,000; fewer than the limit has probability below 1e-6.

    Power: Welch's degrees of freedom of the sum, which do not know that an estimated variance is
    small by chance, cover 93 % and are far below it.
    """
    rng = np.random.default_rng(0)
    runs, known = 20_000, 0.1
    low = stats.binom.ppf(1e-6, runs, 0.95)
    errors = np.sqrt(1.0 + known) * rng.normal(size=runs)
    variances = rng.chisquare(2.0, size=runs) / 2.0
    halves = [half_width(0.95, v, 2.0, known) for v in variances]
    assert (np.abs(errors) <= halves).sum() >= low
    welch = [
        student_quantile(0.95, welch_degrees_of_freedom((v, 2.0), (known, np.inf)))
        for v in variances
    ]
    assert (np.abs(errors) <= welch * np.sqrt(variances + known)).sum() < low


def covariances():
    rng = np.random.default_rng(3)
    yield np.eye(8)
    yield np.eye(8) + 3.0  # a small reference
    steps = rng.normal(size=(8, 8)).cumsum(axis=0)
    yield steps @ steps.T + 0.1 * np.eye(8)
    yield np.diag(np.linspace(0.1, 4.0, 8))


@pytest.mark.statistical
@pytest.mark.parametrize("covariance", list(covariances()))
def test_limits_are_crossed_as_often_as_they_say(covariance):
    """Null: 2.5 % of curves of noise cross, of 20,000; both tails of the binomial have 1e-7.

    The simulated limits move the rate by 2 % of itself (one standard deviation); five of them are
    added. Power: limits that are 10 % lower are crossed by 4 % of the curves or more, far outside.
    """
    rng = np.random.default_rng(0)
    t, runs, error = len(covariance), 20_000, 0.025
    limits = Limits(t, error, rng)
    curves = rng.normal(size=(runs, t)) @ np.linalg.cholesky(covariance).T
    crossed, lower = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for k in range(t):
        own = np.diag(covariance)
        variances = own[k] + own[:k] - 2.0 * covariance[k, :k]
        limit = limits.next(variances)
        if k:
            largest = ((curves[:, [k]] - curves[:, :k]) / np.sqrt(variances)).max(axis=1)
            crossed |= largest > limit
            lower |= largest > 0.9 * limit
    low = stats.binom.ppf(1e-7, runs, error * (1.0 - 5 * 0.0224))
    high = stats.binom.isf(1e-7, runs, error * (1.0 + 5 * 0.0224))
    assert low <= crossed.sum() <= high
    assert lower.sum() > high
