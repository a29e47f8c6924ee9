"""Fréchet distance: numerical agreement with independent references, properties, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import genbounds as gb
from genbounds.estimators import FrechetReference
from tests.estimators.reference import frechet_features, frechet_mpmath
from tests.warnings_of import codes

RTOL = 1e-8


def plugin(fake, real):
    return gb.frechet_distance(fake, real, estimator="plugin").value


def random_cov(rng, d, rank=None, decay=1.0):
    a = rng.normal(size=(d, rank or d)) * np.arange(1, (rank or d) + 1.0) ** (-decay / 2)
    return a @ a.T


@pytest.mark.parametrize("d", [1, 2, 12])
@pytest.mark.parametrize("ranks", [(None, None), (None, 1), (1, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_moments_against_fifty_digits(d, ranks, scale):
    rng = np.random.default_rng(d)
    (a, b), (mean_a, mean_b) = (random_cov(rng, d, r) for r in ranks), rng.normal(size=(2, d))
    a, b, mean_a, mean_b = a * scale**2, b * scale**2, mean_a * scale, mean_b * scale
    got = plugin(gb.Moments(mean_a, a), gb.Moments(mean_b, b))
    assert_allclose(got, frechet_mpmath(mean_a, a, mean_b, b), rtol=RTOL)


def test_ill_conditioned_spectra_against_fifty_digits():
    rng = np.random.default_rng(7)
    basis, _ = np.linalg.qr(rng.normal(size=(16, 16)))
    a = (basis * np.logspace(0, -11, 16)) @ basis.T
    b = random_cov(rng, 16, decay=4.0)
    a, b = (a + a.T) / 2, (b + b.T) / 2
    zero = np.zeros(16)
    got = plugin(gb.Moments(zero, a), gb.Moments(zero, b))
    assert_allclose(got, frechet_mpmath(zero, a, zero, b), rtol=RTOL)


@pytest.mark.parametrize(
    ("d", "n", "m"),
    [
        (1, 40, 30),
        (2, 9, 5),
        (64, 500, 300),
        (64, 30, 300),
        (64, 300, 30),
        (64, 20, 30),
        (512, 100, 700),
    ],
)
def test_features_against_singular_values(d, n, m):
    rng = np.random.default_rng(d + n)
    x = rng.normal(0.3, 1.0, size=(n, d))
    y = rng.normal(size=(m, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    assert_allclose(plugin(x, y), frechet_features(x, y), rtol=RTOL)
    assert plugin(x, y) == plugin(y, x)


@pytest.mark.parametrize("d", [1, 2, 64, 512])
def test_diagonal_covariances_have_a_closed_form(d):
    rng = np.random.default_rng(d)
    a, b, gap = rng.uniform(0.1, 3.0, size=(3, d))
    got = plugin(gb.Moments(gap, np.diag(a**2)), gb.Moments(np.zeros(d), np.diag(b**2)))
    assert_allclose(got, ((a - b) ** 2).sum() + (gap**2).sum(), rtol=RTOL)


@pytest.mark.parametrize("d", [64, 512])
def test_half_of_the_directions_missing(d):
    """Disjoint halves overlap nowhere: the distance is the sum of both traces."""
    half = np.arange(d) < d // 2
    a, b = np.diag(np.where(half, 2.0, 0.0)), np.diag(np.where(half, 0.0, 3.0))
    zero = np.zeros(d)
    assert_allclose(plugin(gb.Moments(zero, a), gb.Moments(zero, b)), 2.5 * d, rtol=RTOL)
    basis, _ = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))
    turned = [(basis * np.diag(cov)) @ basis.T for cov in (a, (a + b) / 2)]
    expected = sum(
        (np.sqrt(x) - np.sqrt(y)) ** 2
        for x, y in zip(np.diag(a), np.diag((a + b) / 2), strict=True)
    )
    turned = [(cov + cov.T) / 2 for cov in turned]
    assert_allclose(plugin(*(gb.Moments(zero, cov) for cov in turned)), expected, rtol=RTOL)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 20),
    n=st.integers(2, 60),
    rank=st.integers(1, 20),
    scale=st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]),
)
@settings(deadline=None, max_examples=80)
def test_identical_inputs_are_at_distance_zero(seed, d, n, rank, scale):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, min(rank, d))) @ rng.normal(size=(min(rank, d), d)) * scale
    trace = x.var(axis=0, ddof=1).sum()
    for value in (plugin(x, x), plugin(x, gb.Moments.from_features(x))):
        assert 0.0 <= value <= 1e-8 * trace
    score = gb.frechet_distance(x, x)
    assert codes(score)
    if n >= 24:  # with fewer no test can tell copies from chance, whatever the features are
        assert "leak" in codes(score, "unreliable")
    assert score.high > 0.0 or score.stderr == 0.0


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 6),
    n=st.integers(2, 90),
    m=st.integers(2, 90),
    power=st.integers(-20, 20),
)
@settings(deadline=None, max_examples=60)
@pytest.mark.nightly
def test_laws(seed, d, n, m, power):
    """Scaling by s scales by s²; rotation, a common shift and the order of rows change nothing."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.5, 1.0, size=(n, d)), rng.normal(size=(m, d)) * rng.uniform(0.5, 2.0, d)
    scale = 2.0**power
    score, scaled = gb.frechet_distance(x, y), gb.frechet_distance(x * scale, y * scale)
    assert_allclose(
        [scaled.value, scaled.low, scaled.high, scaled.stderr],
        np.array([score.value, score.low, score.high, score.stderr]) * scale**2,
        rtol=1e-6,
        atol=1e-9 * scale**2,
    )
    basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
    size = float(np.trace(np.atleast_2d(np.cov(x.T))) + np.trace(np.atleast_2d(np.cov(y.T))))
    assert_allclose(plugin(x @ basis, y @ basis), plugin(x, y), rtol=1e-8, atol=1e-8 * size)
    assert_allclose(plugin(x + 7.0, y + 7.0), plugin(x, y), rtol=1e-8, atol=1e-8 * size)
    assert_allclose(plugin(x[::-1], y), plugin(x, y), rtol=1e-8, atol=1e-8 * size)
    assert score.low <= score.value <= score.high
    assert score.low >= 0.0
    wider = gb.frechet_distance(x, y, level=0.999)
    assert wider.low <= score.low
    assert score.high <= wider.high


def test_same_input_gives_the_same_bits_in_every_precision_and_library():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    x, y = (rng.normal(size=(400, 8)).astype(np.float32) for _ in range(2))
    expected = gb.frechet_distance(x, y)
    assert gb.frechet_distance(x, y) == expected
    assert gb.frechet_distance(torch.from_numpy(x), torch.from_numpy(y)) == expected
    assert gb.frechet_distance(x.astype(np.float64), y.astype(np.float64)) == expected
    assert gb.frechet_distance(np.asfortranarray(x), y).value == pytest.approx(
        expected.value, rel=1e-10
    )


def test_moments_alone_use_the_gaussian_formula_and_say_so():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(6000, 10)), rng.normal(0.2, 1.1, size=(8000, 10))
    rows = gb.frechet_distance(x, y)
    alone = gb.frechet_distance(gb.Moments.from_features(x), gb.Moments.from_features(y))
    assert [warning.code for warning in alone.warnings] == 2 * ["moments-only"]
    kept = gb.Moments.from_features(y, keep=1000)
    assert rows.warnings == gb.frechet_distance(x, kept).warnings == ()
    # Same data: the two bias formulas differ by sampling noise in the fourth moments only.
    assert abs(alone.value - rows.value) < 0.3 * rows.stderr
    assert alone.stderr == pytest.approx(rows.stderr, rel=0.15)


def test_exact_moments_have_no_error():
    score = gb.frechet_distance(gb.Moments([1.0], [[4.0]]), gb.Moments([0.0], [[1.0]]))
    assert (score.value, score.low, score.high, score.stderr, score.n) == (2.0, 2.0, 2.0, 0.0, None)


def test_the_plugin_says_that_its_interval_is_not_centred():
    rng = np.random.default_rng(8)
    score = gb.frechet_distance(
        rng.normal(size=(200, 8)), rng.normal(size=(200, 8)), estimator="plugin"
    )
    assert codes(score) == {"bias-left"}


def test_a_reference_is_prepared_once():
    rng = np.random.default_rng(9)
    real = rng.normal(size=(500, 6))
    reference = FrechetReference(real)
    for shift in (0.0, 1.0):
        fake = rng.normal(shift, 1.0, size=(300, 6))
        assert reference.estimate(fake).score(0.95) == gb.frechet_distance(fake, real)
        assert reference.plugin(fake) == plugin(fake, real)


GOOD = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize(
    ("fake", "real", "message"),
    [
        (GOOD[:1], GOOD, "`fake` needs at least 2 samples"),
        (GOOD, GOOD[:0], "`real` needs at least 2 samples"),
        (GOOD[0], GOOD, r"`fake` must have shape \(n, d\)"),
        (GOOD[None], GOOD, r"`fake` must have shape \(n, d\)"),
        (GOOD[:, :0], GOOD, "has no features"),
        (GOOD[:, :2], GOOD, "`fake` has 2 features and `real` has 3"),
        (np.where(np.arange(60).reshape(20, 3) == 31, np.nan, GOOD), GOOD, "NaN in row 10"),
        (
            GOOD,
            np.where(np.arange(60).reshape(20, 3) == 5, -np.inf, GOOD),
            "infinite value in row 1",
        ),
        (GOOD.astype(complex), GOOD, "must hold real numbers"),
        (GOOD.astype(str), GOOD, "must hold real numbers"),
        ([[1.0, 2.0], [3.0]], GOOD, "not a rectangular array"),
        (
            gb.Moments(np.zeros(2), [[1.0, 2.0], [2.0, 1.0]]),
            gb.Moments(np.zeros(2), np.eye(2)),
            "^`fake` has a covariance with eigenvalue -1 .*not positive semidefinite",
        ),
        (
            gb.Moments(np.zeros(2), np.eye(2)),
            gb.Moments(np.zeros(2), [[1e200, 2e200], [2e200, 1e200]]),
            "^`real` has a covariance with eigenvalue .*not positive semidefinite",
        ),
    ],
)
def test_bad_input_is_one_clear_error(fake, real, message):
    with pytest.raises(gb.InputError, match=message):
        gb.frechet_distance(fake, real)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan"), True, "0.95", None])
def test_refuses_levels(level):
    with pytest.raises(gb.InputError, match="`level` must be"):
        gb.frechet_distance(GOOD, GOOD, level=level)


def test_refuses_unknown_estimators():
    with pytest.raises(gb.InputError, match="`estimator` must be one of"):
        gb.frechet_distance(GOOD, GOOD, estimator="best")
