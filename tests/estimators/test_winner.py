"""The best of several models: its interval against 40 digits, and how often it covers."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import erfc, findroot, mp, mpf, sqrt
from scipy.stats import binom

import genbounds as gb
from genbounds.core.difference import winner_interval
from genbounds.estimators import Estimate, SampleError, rank


def below(x):
    """P(Z <= x) of a standard normal Z, to 40 digits."""
    return erfc(-x / sqrt(mpf(2))) / 2


def written_out(gaps, covariances, variance, level):
    """By the definition: a normal estimate, cut off where another one would be the least.

    A shift t of the least moves the estimate j by c_j t, so that it stays the least while
    gap_j - (1 - c_j) t > 0; and cut at the ends of the simultaneous interval around its mean.
    """
    with mp.workdps(40):
        se, a = sqrt(mpf(variance)), 1 - mpf(level)
        low, high = -mp.inf, mp.inf
        for gap, covariance in zip(gaps, covariances, strict=True):
            c = mpf(float(covariance)) / mpf(variance)
            edge = mpf(float(gap)) / (1 - c)
            low, high = (low, min(high, edge)) if c < 1 else (max(low, edge), high)
        b = a / 10
        inside = (1 - b) ** (mpf(1) / (len(gaps) + 1))
        cut = findroot(lambda c: 2 * below(c) - 1 - inside, 3) * se

        def mean_of(p):
            def excess(mean):
                ends = max(low, mean - cut), min(high, mean + cut)
                lower, upper, here = (below((x - mean) / se) for x in (*ends, mpf(0)))
                return (here - lower) / (upper - lower) - p

            return findroot(excess, (-cut * mpf("0.9999"), cut * mpf("0.9999")), solver="anderson")

        tail = (a - b) / (2 * (1 - b))
        return [float(mean_of(p)) for p in (mpf("0.5"), 1 - tail, tail)]


def test_a_copy_that_differs_by_rounding_is_no_rival():
    copy = winner_interval(np.array([2.0, 1e-16]), np.array([0.0, 1.0 - 1e-9]), 1.0, 0.95)
    same = winner_interval(np.array([2.0, 0.0]), np.array([0.0, 1.0]), 1.0, 0.95)
    assert copy == same
    assert copy[1] < 0.0 < copy[2]


@pytest.mark.parametrize(
    ("gaps", "covariances", "variance", "level"),
    [
        ([0.1, 0.7, 3.0], [0.0, 0.0, 0.0], 1.0, 0.95),
        ([0.4, 0.5], [2.5, 3.5], 4.0, 0.9),
        ([1.0, 0.3], [1.5, 0.2], 1.0, 0.95),  # one whose noise grows faster cuts from below
        ([9.0], [0.5], 1.0, 0.99),
        ([1e-3, 2e-3], [0.0, 0.0], 1e-6, 0.95),
    ],
)
def test_the_interval_is_that_of_the_definition(gaps, covariances, variance, level):
    found = winner_interval(np.array(gaps), np.array(covariances), variance, level)
    expected = written_out(gaps, covariances, variance, level)
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-9 * variance**0.5)


def test_a_clear_winner_keeps_its_interval_and_ties_to_the_last_digit_move_nothing():
    value, low, high = winner_interval(np.array([30.0]), np.zeros(1), 1.0, 0.95)
    assert abs(value) < 1e-9
    assert (low, high) == pytest.approx((-1.98, 1.98), abs=0.01)
    tied = winner_interval(np.zeros(2), np.zeros(2), 1.0, 0.95)
    assert tied == pytest.approx((value, low, high), abs=0.03)
    assert winner_interval(np.ones(2), np.zeros(2), 0.0, 0.95) == (0.0, 0.0, 0.0)


def estimates(values, stderr, **kw):
    error = SampleError(n=1000, variance=stderr**2)
    return {str(k): Estimate(value=v, sample=error, **kw) for k, v in enumerate(values)}


def test_where_large_is_good_it_is_turned():
    values = np.array([3.0, 3.1, 3.4])
    small = rank(estimates(-values, 0.2), metric="m").winner()
    large = rank(estimates(values, 0.2, higher_is_better=True), metric="m").winner()
    turned = [-small.value, -small.high, -small.low]
    assert [large.value, large.low, large.high] == pytest.approx(turned)
    logs = rank(estimates(values, 0.2, higher_is_better=True, log_scale=True), metric="m").winner()
    assert np.log([logs.value, logs.low, logs.high]) == pytest.approx(
        [large.value, large.low, large.high]
    )


@pytest.mark.parametrize("unit", [0.01, 30.0])
def test_the_unit_of_the_score_does_not_matter(unit):
    values = np.array([3.0, 3.1, 3.4])
    one = rank(estimates(values, 0.2), metric="m").winner()
    other = rank(estimates(unit * values, unit * 0.2), metric="m").winner()
    expected = [unit * end for end in (one.value, one.low, one.high)]
    assert [other.value, other.low, other.high] == pytest.approx(expected)


def test_the_ranking_of_one_model_has_its_own_score():
    ranking = rank(estimates([1.0], 0.1), metric="m")
    assert ranking.winner() == ranking.scores["0"]


COVARIANCES = {"own": np.eye(20), "shared": 0.3 * np.eye(20) + 0.7}
LEADS = {"equal": 0.0, "two ahead": 2.0, "clear": 10.0}


@pytest.mark.statistical
@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("noise", COVARIANCES)
def test_it_covers_at_any_lead(noise, lead):
    """H0: at least 95 % of 2,000 winners of twenty, one of which leads; α = 1e-6.

    The own interval covers 62 to 86 % where all are equal and 84 where one leads by two standard
    errors of a difference: power 1. The mean width is 1.35 times the own one's at most.
    """
    rng, covariance, runs = np.random.default_rng(0), COVARIANCES[noise], 2000
    truth = np.zeros(20)
    truth[0] = -LEADS[lead] * np.sqrt(2.0 - 2.0 * covariance[0, 1])
    hits, widths = 0, []
    for values in rng.multivariate_normal(truth, covariance, size=runs):
        best = int(values.argmin())
        others = np.delete(np.arange(20), best)
        ends = winner_interval(
            values[others] - values[best], covariance[others, best], covariance[best, best], 0.95
        )[1:]
        hits += ends[0] <= truth[best] - values[best] <= ends[1]
        widths.append(ends[1] - ends[0])
    assert hits >= binom.ppf(1e-6, runs, 0.95)
    assert np.mean(widths) / 3.92 < 1.4 if lead != "clear" else np.mean(widths) / 3.92 < 1.03


def test_winner_of_compare_and_of_a_training_run():
    """Five equal models: the lead is luck, and the interval reaches further the other way."""
    rng = np.random.default_rng(1)
    real = gb.Moments(np.zeros(4), np.eye(4))
    fakes = {str(k): 0.5 + rng.normal(size=(400, 4)) for k in range(5)}
    ranking = gb.compare(fakes, real)
    plain, found = ranking.scores[ranking.best], ranking.winner()
    assert plain.value < found.value
    assert plain.high < found.high
    assert ranking.to_dict()["winner"]["high"] == found.high
    kept = gb.track({float(k): fakes[str(k)] for k in range(5)}, real).kept.score
    assert (kept.value, kept.low, kept.high) == pytest.approx((found.value, found.low, found.high))
