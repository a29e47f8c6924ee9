"""Kernel Inception distance: the textbook double sum, unbiased variances, coverage, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.metrics.pairwise import polynomial_kernel

import genbounds as gb
from genbounds.estimators import KernelReference, difference


def double_sum(x, y, *, degree=3, gamma=None, offset=1.0, unbiased=True):
    """Average the kernel as in Gretton et al., Lemma 6."""
    xx, yy, xy = (
        polynomial_kernel(a, b, degree=degree, gamma=gamma, coef0=offset)
        for a, b in ((x, x), (y, y), (x, y))
    )
    if unbiased:
        within = [(k.sum() - np.trace(k)) / (len(k) * (len(k) - 1)) for k in (xx, yy)]
    else:
        within = [xx.mean(), yy.mean()]
    return sum(within) - 2.0 * xy.mean()


@pytest.mark.parametrize("options", [{}, {"degree": 1}, {"degree": 2, "gamma": 0.3, "offset": 0.0}])
@pytest.mark.parametrize("sizes", [(40, 25), (1500, 1100)])
def test_value_is_the_double_sum(sizes, options):
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (sizes[0], 7)), rng.normal(size=(sizes[1], 7))
    for estimator, unbiased in (("debiased", True), ("plugin", False)):
        score = gb.kernel_inception_distance(x, y, estimator=estimator, **options)
        truth = double_sum(x, y, unbiased=unbiased, **options)
        assert score.value == pytest.approx(truth, rel=1e-10, abs=1e-12)


def within_square(k):
    """Mean square of a kernel matrix of one sample, U-centred."""
    n = len(k)
    np.fill_diagonal(k, 0.0)
    rows = k.sum(axis=1)
    centred = k - np.add.outer(rows, rows) / (n - 2) + k.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(centred, 0.0)
    return (centred**2).sum() / (n * (n - 3))


def between_square(k):
    """Mean square of a kernel matrix of two samples, doubly centred."""
    centred = k - k.mean(axis=0) - k.mean(axis=1, keepdims=True) + k.mean()
    return (centred**2).sum() / (k.shape[0] - 1) / (k.shape[1] - 1)


@pytest.mark.parametrize("sizes", [(23, 31), (1300, 1100)])
def test_variance_is_made_of_centred_matrices(sizes):
    """Linear part less the noise of its averages, own pairs, and half of the pairs across."""
    rng = np.random.default_rng(1)
    x, y = (rng.normal(shift, 1.0, (n, 5)) for shift, n in zip((0.5, 0.0), sizes, strict=True))
    found = KernelReference(y, gamma=0.2).estimate(x)
    k = polynomial_kernel(x, y, degree=3, gamma=0.2, coef0=1.0)
    for rows, crossed, error in ((x, k, found.sample), (y, k.T, found.reference)):
        n, m = crossed.shape
        own = polynomial_kernel(rows, degree=3, gamma=0.2, coef0=1.0)
        square, shared = within_square(own.copy()), between_square(crossed)
        witness = (own.sum(axis=1) - np.diagonal(own)) / (n - 2) - crossed.mean(axis=1)
        linear = witness.var(ddof=1) - square / (n - 2) - shared / m
        expected = 4 * linear / n + 2 * square / (n * (n - 1)) + 2 * shared / (n * m)
        assert linear > 0.0
        assert error.variance == pytest.approx(expected, rel=1e-9)
        assert_allclose(error.influence, 2 * (witness - witness.mean()), rtol=1e-8, atol=1e-10)


def linear_truth(shift, d):
    """KID of degree 1 between N(shift, I) and N(0, I): ‖shift‖² / d."""
    return float(shift**2)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.15, 1.0])
def test_variance_and_coverage_for_a_known_law(shift):
    """Degree 1: truth and variance in closed form, from the degenerate case to the linear one.

    H0: the 95 % interval covers at least 93 %. A binomial gate at 2e-7; the variance within six
    standard errors of the mean of 2,000 estimates. Dropping the degenerate part of the variance
    makes it zero at shift 0, where it is all there is.
    """
    d, n, m, runs = 8, 60, 90, 2000
    rng = np.random.default_rng(2)
    truth = linear_truth(shift, d)
    variances, hits = np.empty(runs), 0
    for run in range(runs):
        x, y = rng.normal(shift, 1.0, (n, d)), rng.normal(size=(m, d))
        found = KernelReference(y, degree=1).estimate(x)
        variances[run] = found.variance
        score = found.score(0.95)
        hits += score.low <= truth <= score.high
    linear = 4.0 * shift**2 / d * (1.0 / n + 1.0 / m)
    degenerate = (2.0 / (n * (n - 1)) + 2.0 / (m * (m - 1)) + 4.0 / (n * m)) / d
    error = variances.std() / np.sqrt(runs)
    # Where the linear part vanishes its estimate is noise, cut at 0: an excess, never a lack.
    assert variances.mean() > linear + degenerate - 6.0 * error
    assert variances.mean() < (linear + degenerate) * (4.0 if shift == 0.0 else 1.3) + 6.0 * error
    assert hits >= binom.ppf(2e-7, runs, 0.93)


@pytest.mark.nightly
@pytest.mark.slow
def test_interval_follows_the_skewness():
    """Both ends move up where value and variance rise together; else high misses pile up.

    1,000 runs: 3.5 % of misses above with the shift, 9.2 % without. The gate has a false alarm
    below 1e-6 at 4 %.
    """
    rng = np.random.default_rng(3)
    d, n, runs, above = 4, 100, 1000, 0
    # E (x·y/d + 1)³ for independent symmetric rows: 1 + 3 Tr(M M')/d², M the second moments.
    truth = 3.0 * (1.5**2 - 1.0) ** 2 / d
    for _ in range(runs):
        x, y = rng.normal(0.0, 1.5, (n, d)), rng.normal(size=(n, d))
        above += gb.kernel_inception_distance(x, y).high < truth
    assert above <= binom.isf(1e-6, runs, 0.04)


def test_reference_noise_cancels_between_models():
    rng = np.random.default_rng(4)
    reference = KernelReference(rng.normal(size=(60, 5)))
    one, two = (reference.estimate(rng.normal(0.5, 1.0, (2000, 5))) for _ in range(2))
    assert difference(one, two).stderr < 0.5 * np.hypot(one.stderr, two.stderr)


def test_equal_laws_are_ranked_together():
    """False alarm: three simultaneous intervals at level 1 - 1e-7."""
    rng = np.random.default_rng(5)
    fakes = {name: rng.normal(size=(300, 6)) for name in "abc"}
    ranking = gb.compare(fakes, rng.normal(size=(400, 6)), metric="kid", level=1 - 1e-7)
    assert len(ranking.groups) == 1
    assert all(score.low == 0.0 for score in ranking.scores.values())
    far = fakes | {"far": rng.normal(1.0, 1.0, size=(300, 6))}
    assert len(gb.compare(far, rng.normal(size=(400, 6)), metric="kid").groups) == 2


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3]))
def test_scale_and_permutation(seed, scale):
    """With γ / s² features times s give the same number; the order of rows only rounds."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.2, 1.0, (30, 3)), rng.normal(size=(20, 3))
    score = gb.kernel_inception_distance(x, y, gamma=0.5)
    moved = gb.kernel_inception_distance(
        scale * x[rng.permutation(30)], scale * y, gamma=0.5 / scale**2
    )
    assert moved.value == pytest.approx(score.value, rel=1e-8, abs=1e-10)
    assert moved.stderr == pytest.approx(score.stderr, rel=1e-6, abs=1e-10)


@pytest.mark.slow
def test_torch_and_single_precision():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    x, y = (rng.normal(m, 1.0, (5000, 8)).astype(np.float32) for m in (0.2, 0.0))
    score = gb.kernel_inception_distance(torch.from_numpy(x), torch.from_numpy(y))
    assert score == gb.kernel_inception_distance(x, y)
    assert score.value == pytest.approx(double_sum(x.astype(float), y.astype(float)), rel=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gb.kernel_inception_distance(gb.Moments.from_features(x), x), "moments"),
        (lambda x: gb.kernel_inception_distance(x[:3], x), "at least 4"),
        (lambda x: gb.kernel_inception_distance(x, x[:, :2]), "same encoder"),
        (lambda x: gb.kernel_inception_distance(x, x, degree=0), "degree"),
        (lambda x: gb.kernel_inception_distance(x, x, gamma=-1.0), "gamma"),
        (lambda x: gb.kernel_inception_distance(x, x, offset=-1.0), "offset"),
        (lambda x: gb.kernel_inception_distance(x, x, estimator="infinity"), "estimator"),
        (lambda x: gb.kernel_inception_distance(x * np.nan, x), "NaN"),
        (lambda x: gb.compare({"a": x}, metric="kid"), "real"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(gb.InputError, match=words):
        call(np.random.default_rng(7).normal(size=(10, 3)))
