"""Linear lower bounds of the Fréchet distance: adversarial moments, and where they are attained."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import genbounds as gb
from genbounds.estimators import Potentials


def moments(rng, d, spread):
    """Mean and covariance with standard deviations over so many decades."""
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = 10.0 ** (spread * rng.uniform(-1.0, 1.0, d))
    return gb.Moments(scales.max() * rng.normal(size=d), (turn * scales**2) @ turn.T)


def rows_with(these, rng, n=40):
    """Rows of exactly these moments, with divisor n."""
    x = rng.standard_t(3, size=(n, these.d))
    x -= x.mean(axis=0)
    white = np.linalg.solve(np.linalg.cholesky(x.T @ x / n), x.T).T
    return white @ np.linalg.cholesky(these.cov).T + these.mean


def total(bound, fake, real, rng):
    return bound.of_fake(rows_with(fake, rng)).mean() + bound.of_real(rows_with(real, rng)).mean()


@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), spread=st.floats(0.0, 1.0))
def test_the_distance_of_any_two_is_at_least_that(seed, d, spread):
    """Whatever moments the potentials were made for."""
    rng = np.random.default_rng(seed)
    bound = Potentials.between(moments(rng, d, spread), moments(rng, d, spread))
    fake, real = moments(rng, d, spread), moments(rng, d, spread)
    distance = gb.frechet_distance(fake, real).value
    scale = np.trace(fake.cov) + np.trace(real.cov) + ((fake.mean - real.mean) ** 2).sum()
    assert total(bound, fake, real, rng) <= distance + 1e-7 * scale


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0])
def test_it_is_attained_by_those_that_they_were_made_for(spread):
    rng = np.random.default_rng(3)
    fake, real = moments(rng, 4, spread), moments(rng, 4, spread)
    found = total(Potentials.between(fake, real), fake, real, rng)
    assert found == pytest.approx(gb.frechet_distance(fake, real).value, rel=1e-6)


def test_directions_without_variance_do_no_harm():
    flat = gb.Moments(np.zeros(3), np.diag([1.0, 2.0, 0.0]))
    bound = Potentials.between(flat, flat)
    x = np.random.default_rng(4).normal(size=(500, 3)) * [1.0, 1.4, 0.0]
    assert abs(bound.of_fake(x).mean() + bound.of_real(x).mean()) < 1e-6
