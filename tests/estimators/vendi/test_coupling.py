"""Divided differences of an entropy's gradient, and their factor, against plain formulas."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from genbounds.estimators.vendi._coupling import (
    Coupling,
    divided_differences,
    factored_coupling,
    pivoted_cholesky,
)

SPECTRA = {
    "power law": np.arange(1.0, 301.0) ** -1.0,
    "steep": 10.0 ** -np.linspace(0.0, 12.0, 200),
    "flat": 1.0 + 1e-3 * np.linspace(1.0, 0.0, 100),
    "nearly tied": np.r_[1.0, 1.0 - 1e-13, 0.5, 0.5 - 1e-9, np.full(20, 0.1)],
}


def spectrum(name):
    return SPECTRA[name] / SPECTRA[name].sum()


def dense(values, order):
    power = float((values**order).sum())
    matrix = divided_differences(values[:, None], values, order=order, power=power)
    np.fill_diagonal(matrix, 0.0)
    return Coupling(matrix)


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 2.0, 3.0, 100.0])
def test_divided_differences_in_forty_digits(order):
    """Also where the plain quotient of rounded numbers would have no digit left."""
    a = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 1e-9])
    b = np.array([0.3, 0.3 * (1.0 + 2.0**-52), 0.3 * (1.0 - 1e-9), 0.2, 1e-12, 1e-12])
    power = 0.37 if order != 1.0 else 1.0

    def slope(x):
        if order == 1.0:
            return -mpmath.log(x)
        return order / (1 - mpmath.mpf(order)) * x ** (mpmath.mpf(order) - 1) / mpmath.mpf(power)

    with mpmath.workdps(40):
        expected = [
            float(
                (slope(one) - slope(two)) / (one - two) if one != two else mpmath.diff(slope, one)
            )
            for one, two in (
                (mpmath.mpf(float(p)), mpmath.mpf(float(q))) for p, q in zip(a, b, strict=True)
            )
        ]
    for one, two in ((a, b), (b, a)):
        assert_allclose(
            divided_differences(one, two, order=order, power=power), expected, rtol=1e-13
        )


@pytest.mark.parametrize("order", [0.25, 0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", SPECTRA)
def test_a_factor_of_few_columns_is_the_whole_matrix(name, order):
    values = spectrum(name)
    factored, whole = factored_coupling(values, order), dense(values, order)
    assert factored.matrix.shape[1] <= 64
    squares = values * np.random.default_rng(0).chisquare(1, size=(50, values.size))
    assert_allclose(factored.form(squares), whole.form(squares), rtol=1e-10)
    assert_allclose(
        values * factored.times(values), values * whole.times(values), rtol=1e-9, atol=1e-13
    )
    single = factored.astype(np.float32).form(squares.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, whole.form(squares), rtol=2e-5)


@pytest.mark.parametrize("name", SPECTRA)
def test_one_eigenvalue_is_not_coupled_to_itself(name):
    values = spectrum(name)
    coupling = factored_coupling(values, 1.0)
    alone = coupling.form(np.diag(values))
    assert np.abs(alone).max() < 1e-14 * values.max()


@given(
    st.lists(st.floats(1e-10, 1.0), min_size=1, max_size=12),
    st.floats(0.25, 2.0),
    st.integers(0, 2**32 - 1),
)
def test_what_a_factor_leaves_out_is_bounded_by_its_trace(weights, order, seed):
    """For u = squares over eigenvalues the error is at most the trace left out times |u|²."""
    values = np.sort(np.array(weights) / sum(weights))[::-1]
    u = np.random.default_rng(seed).chisquare(1, size=(5, values.size))
    error = factored_coupling(values, order).form(values * u) - dense(values, order).form(
        values * u
    )
    assert (np.abs(error) <= 1e-12 * order * (1.0 + (u**2).sum(axis=1))).all()


def test_a_factor_asks_for_no_more_columns_than_the_rank():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(60, 5))
    matrix = root @ root.T
    asked = []

    def column(j):
        asked.append(j)
        return matrix[:, j]

    factor = pivoted_cholesky(np.diagonal(matrix), column)
    assert len(asked) == len(set(asked)) <= 6
    assert_allclose(factor @ factor.T, matrix, atol=1e-11)
