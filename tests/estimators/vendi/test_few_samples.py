"""Vendi scores from fewer samples than twice the feature dimension, by a fitted spectrum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import genbounds as gb
from genbounds.estimators import PolynomialKernel, vendi_expansion
from genbounds.estimators.kernels._kernels import KernelRows
from genbounds.estimators.vendi._expansion import log_vendi
from genbounds.estimators.vendi._few_samples import entropy, fitted_score
from genbounds.simulate import SphereClustersArm, vendi_truth

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


@pytest.mark.parametrize("order", [0.5, 1.0, 1.7])
def test_entropy_of_grouped_eigenvalues_and_its_derivative(order):
    spectrum, counts = np.array([2.0, 0.7, 0.1]), np.array([1.0, 3.0, 20.0])
    value, slopes = entropy(order)(spectrum, counts)
    every = np.repeat(spectrum, counts.astype(int))
    assert value == pytest.approx(log_vendi(every / every.sum(), order), rel=1e-12)
    for j in range(3):
        step = np.where(np.arange(3) == j, 1e-6, 0.0)
        up, down = (entropy(order)(spectrum * np.exp(s), counts)[0] for s in (step, -step))
        assert slopes[j] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)


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
        if "route: spectrum fit" not in fit.notes:
            continue
        assert fit.estimator == "vendi, exact"
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
    fit = fitted_score(KernelRows(x, "cosine", None), 1.0)
    change = []
    for i in range(n):
        left = fitted_score(KernelRows(np.delete(x, i, axis=0), "cosine", None), 1.0)
        change.append((n - 1.0) * (fit.value - left.value))
    assert np.corrcoef(change, fit.influence)[0, 1] > 0.97
    assert np.std(change) == pytest.approx(np.std(fit.influence), rel=0.25)


def test_what_cannot_be_fitted_is_named_empirical_with_the_reason():
    rng = np.random.default_rng(4)
    repeated = np.repeat(rows(20, rng), 3, axis=0)
    equal = SphereClustersArm((0.1,) * 10, (8,) * 10).draw(80, rng)
    for x, reason in (
        (repeated, "40 of 60 rows repeat others"),
        (rows(15, rng), "15 rows are too few"),
        (rows(18, rng), "18 rows show little of 48 directions"),
        (equal, "no smooth spectrum fits"),
    ):
        score = gb.vendi_score(x, **COSINE)
        assert score.estimator == f"vendi, empirical at n={len(x)}"
        assert any(reason in note for note in score.notes)


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
        score = gb.vendi_score(x, order=order, **COSINE)
        wide += any("widened by all of the bias removed" in note for note in score.notes)
        hits += score.low <= target <= score.high
        fit = fitted_score(KernelRows(x, "cosine", None), order)
        plugin = gb.vendi_score(x, order=order, estimator="plugin", **COSINE)
        removed = fit.value - math.log(plugin.value)
        own = fit.variance - (removed**2 if fit.unequal else 0.0)
        narrow += abs(fit.value - math.log(target)) <= 1.96 * math.sqrt(own)
    assert wide >= 14
    assert hits >= 12
    if order == 0.5:
        assert narrow < 12


def test_both_sides_of_twice_the_dimension_agree(spectrum):
    """At 95 and 97 rows the fit and the third-order expansion estimate the same."""
    x = rows(97, np.random.default_rng(6))
    below, above = gb.vendi_score(x[:95], **COSINE), gb.vendi_score(x, **COSINE)
    assert "route: spectrum fit" in below.notes
    assert "route: third order, by halving" in above.notes
    assert below.value == pytest.approx(above.value, abs=2 * above.stderr)


def test_polynomial_kernels_have_a_feature_dimension_too():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 4)) * [2.0, 1.0, 0.7, 0.5]
    kernel = PolynomialKernel(degree=2)  # 15 monomials
    below = vendi_expansion(x[:28], kernel=kernel)
    assert "route: spectrum fit" in below.notes
    assert "route: spectrum fit" not in vendi_expansion(x, kernel=kernel).notes
    whole = vendi_expansion(rng.normal(size=(4000, 4)) * [2.0, 1.0, 0.7, 0.5], kernel=kernel)
    assert_allclose(below.value, whole.value, atol=4 * math.sqrt(below.variance))


def test_models_with_different_numbers_of_few_samples_compare():
    rng = np.random.default_rng(5)
    models = {"wide": rows(60, rng), "narrow": rows(90, rng) * DECAY**0.6}
    assert fitted_score(KernelRows(models["narrow"], "cosine", None), 1.0).unequal
    ranking = gb.compare(models, metric="vendi", options=COSINE)
    assert ranking.best == "wide"
    assert ranking.differences[0].distinguishable
    models["narrow"] = np.repeat(models["narrow"][:20], 3, axis=0)  # refused: then for both
    ranking = gb.compare(models, metric="vendi", options=COSINE)
    assert all("empirical at n=60" in score.estimator for score in ranking.scores.values())
