"""Exact tails against closed forms and against SciPy, in relative terms far into both tails."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from genbounds import InputError
from genbounds.bounds import (
    normal_product_tail,
    weighted_chi_square_quantile,
    weighted_chi_square_tail,
)


def close(tail):
    """Worst 1.5e-9 relative, at 1e6 degrees of freedom, where the threshold is conditioned so.

    Without abs=0 every tail below 1e-12 would pass.
    """
    return pytest.approx(float(tail), rel=1e-8, abs=0.0)


@pytest.mark.parametrize("degrees", [1, 2, 3, 100, 1e6])
@pytest.mark.parametrize("probability", [0.99, 0.05, 1e-20, 1e-300])
def test_equal_weights_are_chi_square(degrees, probability):
    upper = stats.chi2.isf(probability, degrees)
    found = weighted_chi_square_tail(7.0 * upper, [7.0], degrees=degrees)
    assert found == close(stats.chi2.sf(upper, degrees))
    lower = stats.chi2.ppf(probability, degrees)
    if lower > 0.0:  # else below the smallest float
        found = weighted_chi_square_tail(lower, [1.0], degrees=degrees, upper=False)
        assert found == close(stats.chi2.cdf(lower, degrees))


@pytest.mark.parametrize("x", [0.1, 1.0, 10.0, 60.0, 300.0, 3000.0])
def test_pairs_of_weights_are_a_sum_of_exponentials(x):
    weights = np.array([1.0, 2.0, 5.0])
    rates = 1.0 / (2.0 * weights)
    tail = mpmath.mpf(0)
    for i, rate in enumerate(rates):
        others = [mpmath.mpf(other) for j, other in enumerate(rates) if j != i]
        share = mpmath.fprod(other / (other - rate) for other in others)
        tail += share * mpmath.exp(-rate * x)
    doubled = np.repeat(weights, 2)
    assert weighted_chi_square_tail(x, doubled) == close(tail)
    assert weighted_chi_square_tail(x, doubled, upper=False) == close(1 - tail)


def test_edges_and_zero_weights():
    assert weighted_chi_square_tail(-1.0, [1.0]) == 1.0
    assert weighted_chi_square_tail(0.0, [1.0], upper=False) == 0.0
    assert weighted_chi_square_tail(math.inf, [1.0]) == 0.0
    assert weighted_chi_square_tail(math.inf, [1.0], upper=False) == 1.0
    assert weighted_chi_square_tail(2.0, [1.0, 0.0]) == weighted_chi_square_tail(2.0, [1.0])


@pytest.mark.parametrize("probability", [0.9, 0.05, 1e-20])
@pytest.mark.parametrize("weights", [[1.0], [3.0, 1.0, 0.1], 1.0 / np.arange(1.0, 200.0)])
def test_quantile_inverts_the_tail(probability, weights):
    x = weighted_chi_square_quantile(probability, weights)
    assert weighted_chi_square_tail(x, weights) == close(probability)


# 1 - x (K_0 L_-1 + K_1 L_0)(x) by mpmath with 400 digits; DLMF 10.43.2.
PRODUCT_TAILS = {
    0.0: 1.0,
    1e-6: 0.99999049434874597,
    0.3: 0.55311580127380286,
    1.0: 0.20899366300465233,
    5.0: 0.0021701961026903296,
    40.0: 5.2790130459582131e-19,
    700.0: 2.9707538171626798e-306,
}


@pytest.mark.parametrize("x", PRODUCT_TAILS)
def test_product_of_normals(x):
    assert float(normal_product_tail(x)) == close(PRODUCT_TAILS[x])


@pytest.mark.nightly
@pytest.mark.parametrize("x", PRODUCT_TAILS)
def test_product_of_normals_by_quadrature(x):
    points = [0.0, 1e-3, 0.1, 1, 5, 30, mpmath.inf]
    scaled = mpmath.quad(lambda y: mpmath.besselk(0, x + y) * mpmath.exp(x), points)
    exact = 2 / mpmath.pi * mpmath.exp(-x) * scaled  # the quadrature stops by its absolute error
    assert float(normal_product_tail(x)) == close(exact)


@pytest.mark.parametrize("weights", [[], [0.0], [-1.0, 2.0], [math.nan], [[1.0]]])
def test_refuses_bad_weights(weights):
    with pytest.raises(InputError, match="weights"):
        weighted_chi_square_tail(1.0, weights)


@pytest.mark.parametrize("probability", [0.0, 1.0, math.nan, "0.1"])
def test_refuses_bad_probability(probability):
    with pytest.raises(InputError, match="probability"):
        weighted_chi_square_quantile(probability, [1.0])
