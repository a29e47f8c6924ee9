"""Vendi scores by repeated sampling: coverage, bias removed, variance unbiased, rates in n."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import genbounds as gb
from genbounds.estimators import vendi_estimate
from genbounds.simulate import RbfArm, SphereClustersArm, vendi_truth

UNEVEN = SphereClustersArm(tuple(1 / j / 2.9289682539682538 for j in range(1, 11)), (1,) * 10)
SPHERES = SphereClustersArm((0.5, 0.3, 0.2), (3, 6, 9))
GAUSS = RbfArm((2.0, 1.0, 1.0, 0.5), 2.0)
COVERAGE = {
    "clusters, order 1": (UNEVEN, {"kernel": "cosine"}, 800),
    "clusters, order 2": (UNEVEN, {"kernel": "cosine", "order": 2.0}, 800),
    "clusters, order inf": (UNEVEN, {"kernel": "cosine", "order": math.inf}, 800),
    "spheres, order 1": (SPHERES, {"kernel": "cosine"}, 800),
    "rbf, order 2": (GAUSS, {"bandwidth": 2.0, "order": 2.0}, 800),
    "rbf, order inf": (GAUSS, {"bandwidth": 2.0, "order": math.inf}, 100),
    "rbf, truncated": (GAUSS, {"bandwidth": 2.0, "method": "truncated", "components": 10}, 100),
}
FALSE_ALARM = 1e-7


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("name", COVERAGE)
def test_intervals_cover_between_92_and_98_percent(name):
    """Null: true coverage in [0.92, 0.98] at n = 500 (the full study: docs/evidence/vendi.md).

    Exact binomial gates, false alarm 1e-7 a row. Power: intervals of 0.4 times the width (true
    coverage 0.57) are caught with probability above 0.999 even at 100 replications; run as a
    control.
    """
    arm, given, replications = COVERAGE[name]
    target = vendi_truth(arm.spectrum, given.get("order", 1.0), given.get("components"))
    rng = np.random.default_rng(7)
    hits = control = 0
    for _ in range(replications):
        score = gb.vendi_score(arm.draw(500, rng), **given)
        hits += score.low <= target <= score.high
        control += abs(math.log(score.value / target)) <= 0.4 * 1.96 * score.stderr / score.value
    low = stats.binom.ppf(FALSE_ALARM, replications, 0.92)
    high = stats.binom.isf(FALSE_ALARM, replications, 0.98)
    assert low <= hits <= high
    assert control < low


@pytest.mark.statistical
@pytest.mark.parametrize("order", [1.0, 3.0])
def test_the_bias_is_removed(order):
    """Null: the debiased log score of 200 rows is centred on the truth (before it is clipped).

    200 samples; gate at six standard errors of their mean, false alarm below 1e-8. Power: the
    plug-in misses the truth by more than twelve of them, run as a control; so would half of the
    bias.
    """
    arm = SphereClustersArm((0.25, 0.75), (4, 16))  # nearly flat: little first-order noise
    given = {"kernel": "cosine", "order": order}
    rng = np.random.default_rng(9)
    target = math.log(vendi_truth(arm.spectrum, order))
    errors = []
    for _ in range(200):
        rows = arm.draw(200, rng)
        errors.append(
            [
                vendi_estimate(rows, estimator=estimator, **given).value - target
                for estimator in ("debiased", "plugin")
            ]
        )
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0) / math.sqrt(len(errors))
    assert abs(mean[0]) < 6 * spread[0]
    assert abs(mean[1]) > 12 * spread[1]


@pytest.mark.statistical
@pytest.mark.nightly
def test_rke_u_statistic_and_its_variance_are_unbiased():
    """Null: the mean of U is E k², and of its variance the variance of U.

    4,000 samples of 60 rows: the means have standard errors of 0.5 % and 2 % of the spread; gates
    at six of their own estimated errors, false alarm below 1e-8. Power: keeping the diagonal moves
    U by 16 of them, losing the second-order part of the variance moves that by a third.
    """
    arm = RbfArm((1.0, 1.0, 1.0, 1.0, 1.0, 1.0), 1.0)
    rng = np.random.default_rng(3)
    given = {"bandwidth": 1.0, "order": 2.0, "method": "ustat"}
    truth = 1.0 / vendi_truth(arm.spectrum, 2.0)
    error, variance, plugin = np.empty((3, 4000))
    for run in range(4000):
        x = arm.draw(60, rng)
        found = vendi_estimate(x, **given)
        # The score is -log U, less the half of a variance by which E log U falls short.
        square = math.exp(-found.value - found.variance / 2.0)
        error[run], variance[run] = square - truth, found.variance * square**2
        plugin[run] = math.exp(-vendi_estimate(x, estimator="plugin", **given).value) - truth
    assert abs(error.mean()) < 6 * error.std() / math.sqrt(error.size)
    gap = variance - error**2
    assert abs(gap.mean()) < 6 * gap.std() / math.sqrt(gap.size)
    assert abs(plugin.mean()) > 6 * plugin.std() / math.sqrt(plugin.size)


@pytest.mark.statistical
def test_the_stated_error_falls_with_the_root_of_n():
    """On Gaussian rows: truncated at 20, and order 2; n = 250 against 1,000 is a factor of two.

    A single ratio of standard errors has relative noise below 8 %; gate [1.5, 2.7].
    """
    x = GAUSS.draw(1000, np.random.default_rng(3))
    for options in ({"method": "truncated", "components": 20}, {"order": 2.0}):
        few, many = (gb.vendi_score(x[:n], bandwidth=2.0, **options) for n in (250, 1000))
        assert 1.5 < (few.stderr / few.value) / (many.stderr / many.value) < 2.7
        truth = vendi_truth(GAUSS.spectrum, options.get("order", 1.0), options.get("components"))
        assert abs(math.log(many.value / truth)) < 5.5 * many.stderr / many.value


COSINE = {"kernel": "cosine"}


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, 4.0, math.inf])
def test_intervals_are_nested_contain_the_value_and_respect_the_ceiling(order):
    rng = np.random.default_rng(1)
    for excess in (0.0, 0.02, 0.05):
        p = 0.125 + excess * np.linspace(-1.0, 1.0, 8)
        x = np.eye(8)[rng.choice(8, size=400, p=p)]
        wide, narrow = (gb.vendi_score(x, order=order, level=a, **COSINE) for a in (0.99, 0.9))
        assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high <= 8 * (1 + 1e-12)
        assert wide.high > wide.low


def shares(nu, n, k=10):
    """Shares of `k` clusters whose counts' χ² has noncentrality `nu`: one is larger."""
    direction = np.r_[1.0, np.full(k - 1, -1.0 / (k - 1))]
    return 1.0 / k + direction / np.linalg.norm(direction) * math.sqrt(nu / (n * k))


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("order", "nu"), [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (1.0, 12.0), (2.0, 12.0)]
)
def test_equal_and_nearly_equal_clusters_are_covered_at_the_level(order, nu):
    """Null: true coverage in [0.93, 0.97] at n = 500, ten clusters.

    2,000 samples, exact binomial gates, false alarm 1e-7 a row. Power: the normal interval covers
    99.9 % at equal clusters, which is caught with probability above 0.999; run as a control.
    """
    p = shares(nu, 500)
    target = vendi_truth(np.sort(p)[::-1], order)
    rng = np.random.default_rng(3)
    hits = control = 0
    for _ in range(2000):
        x = np.eye(10)[rng.choice(10, size=500, p=p)]
        found = vendi_estimate(x, order=order, **COSINE)
        score = found.score(0.95)
        hits += score.low * (1 - 1e-12) <= target <= score.high * (1 + 1e-12)
        reach = 1.96 * found.stderr
        control += abs(found.value - math.log(target)) <= reach or (
            nu == 0.0 and found.value >= math.log(target)
        )
    low = stats.binom.ppf(FALSE_ALARM, 2000, 0.93)
    high = stats.binom.isf(FALSE_ALARM, 2000, 0.97)
    assert low <= hits <= high
    if nu == 0.0:
        assert control > high
