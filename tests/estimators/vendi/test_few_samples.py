"""Vendi scores from fewer samples than twice the feature dimension, by a fitted spectrum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import genbounds as gb
from genbounds.estimators import PolynomialKernel, vendi_estimate
from genbounds.simulate import SphereClustersArm, vendi_truth
from tests.warnings_of import codes

DECAY = np.arange(1, 49) ** -0.5
COSINE = {"kernel": "cosine"}


def rows(n, rng):
    """Directions with a spectrum that falls smoothly over 48 dimensions."""
    return rng.normal(size=(n, 48)) * DECAY


@pytest.fixture(scope="module")
def spectrum():
    """Eigenvalues of the directions' second moments, from 200,000 of them, by symmetry diagonal."""
    x = rows(200_000, np.random.default_rng(0))
    squares = (x**2 / (x**2).sum(axis=1, keepdims=True)).mean(axis=0)
    return np.sort(squares)[::-1]


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("n", [24, 48, 72])
@pytest.mark.parametrize("order", [0.5, 1.0])
def test_bias_falls_eightfold_and_intervals_cover(n, order, spectrum):
    """Null: the fit's bias is below an eighth of the plug-in's, coverage at least 88 %.

    150 samples of half, one and one and a half rows per dimension. Exact binomial gate, false alarm
    1e-7. Control: the plug-in interval does not pass it.
    """
    rng = np.random.default_rng(11)
    target = vendi_truth(spectrum, order)
    hits = plain = 0
    errors = []
    for _ in range(150):
        x = rows(n, rng)
        fit = gb.vendi_score(x, order=order, **COSINE)
        if fit.method != "spectrum-fit":
            continue
        plugin = gb.vendi_score(x, order=order, estimator="plugin", **COSINE)
        hits += fit.low <= target <= fit.high
        plain += plugin.low <= target <= plugin.high
        errors.append([math.log(fit.value / target), math.log(plugin.value / target)])
    fitted = len(errors)
    assert fitted > 120  # most are believed
    bias = np.mean(errors, axis=0)
    noise = 5.5 * np.std(errors, axis=0)[0] / math.sqrt(fitted)
    assert abs(bias[0]) < abs(bias[1]) / 8 + noise
    assert hits >= stats.binom.ppf(1e-7, fitted, 0.88)
    assert plain < stats.binom.ppf(1e-7, fitted, 0.88)


@pytest.mark.parametrize("n", [24, 70])
def test_the_influence_is_the_change_of_the_score_with_a_row(n):
    """Leaving out each row in turn, n below and above the dimension."""
    x = rows(n, np.random.default_rng(3))
    fit = vendi_estimate(x, **COSINE)
    change = []
    for i in range(n):
        left = vendi_estimate(np.delete(x, i, axis=0), **COSINE)
        assert left.method == fit.method == "spectrum-fit"
        change.append((n - 1.0) * (fit.value - left.value))
    influence = fit.sample.influence
    assert np.corrcoef(change, influence)[0, 1] > 0.97
    assert np.std(change) == pytest.approx(np.std(influence), rel=0.25)


def test_what_cannot_be_fitted_is_empirical():
    """Rows that repeat, few of them, fewer than show the dimensions, or of equal subspaces."""
    rng = np.random.default_rng(4)
    repeated = np.repeat(rows(20, rng), 3, axis=0)
    equal = SphereClustersArm((0.1,) * 10, (8,) * 10).draw(80, rng)
    for x in (repeated, rows(15, rng), rows(18, rng), equal):
        found = vendi_estimate(x, **COSINE)
        assert found.method == "empirical"
        assert str(len(x)) in found.statistic  # not to be ranked with other numbers of rows
        assert "depends-on-n" in codes(found, "caution")


@pytest.mark.statistical
@pytest.mark.parametrize("order", [0.5, 1.0])
def test_rows_in_subspaces_of_their_own_widen_the_interval(order):
    """Three spheres of 20, 40 and 60 dimensions, 180 rows: the fit is low by two of its own errors.

    20 samples, of which 12 must be covered: at a true coverage of 95 % that fails with probability
    4e-7. Control: intervals without the widening cover fewer than 12 (order ½).
    """
    arm = SphereClustersArm((0.5, 0.3, 0.2), (20, 40, 60))
    rng = np.random.default_rng(12)
    target = vendi_truth(arm.spectrum, order)
    hits = narrow = wide = 0
    for _ in range(20):
        x = arm.draw(180, rng)
        fit = vendi_estimate(x, order=order, **COSINE)
        score = fit.score(0.95)
        wide += "misfit" in codes(fit)
        hits += score.low <= target <= score.high
        removed = fit.value - vendi_estimate(x, order=order, estimator="plugin", **COSINE).value
        own = fit.variance - (removed**2 if "misfit" in codes(fit) else 0.0)
        narrow += abs(fit.value - math.log(target)) <= 1.96 * math.sqrt(own)
    assert wide >= 14
    assert hits >= 12
    if order == 0.5:
        assert narrow < 12


def test_both_sides_of_twice_the_dimension_agree(spectrum):
    """At 95 and 97 rows the fit and the third-order expansion estimate the same."""
    x = rows(97, np.random.default_rng(6))
    below, above = gb.vendi_score(x[:95], **COSINE), gb.vendi_score(x, **COSINE)
    assert (below.method, above.method) == ("spectrum-fit", "third-order")
    assert below.value == pytest.approx(above.value, abs=2 * above.stderr)


def test_polynomial_kernels_have_a_feature_dimension_too():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 4)) * [2.0, 1.0, 0.7, 0.5]
    kernel = PolynomialKernel(degree=2)  # 15 monomials
    below = vendi_estimate(x[:28], kernel=kernel)
    assert below.method == "spectrum-fit"
    assert vendi_estimate(x, kernel=kernel).method != "spectrum-fit"
    whole = vendi_estimate(rng.normal(size=(4000, 4)) * [2.0, 1.0, 0.7, 0.5], kernel=kernel)
    assert_allclose(below.value, whole.value, atol=4 * math.sqrt(below.variance))


def test_models_with_different_numbers_of_few_samples_compare():
    rng = np.random.default_rng(5)
    models = {"wide": rows(60, rng), "narrow": rows(90, rng) * DECAY**0.6}
    assert "misfit" in codes(vendi_estimate(models["narrow"], **COSINE))
    ranking = gb.compare(models, metric="vendi", options=COSINE)
    assert ranking.best == "wide"
    assert ranking.differences[0].distinguishable
    models["narrow"] = np.repeat(models["narrow"][:20], 3, axis=0)  # refused: then for both
    ranking = gb.compare(models, metric="vendi", options=COSINE)
    assert {score.method for score in ranking.scores.values()} == {"empirical"}
