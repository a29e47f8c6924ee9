"""Truths stated by arms, against brute force: plain draws, or another way to the same number.

And what they are for: estimators on features and posteriors as networks make them. Averages of
draws are compared at 1e-8 each by their normal limit; no test makes more than fifty comparisons, so
that a true statement fails one with probability below 1e-6. Each test has a control that a wrong
truth fails.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import genbounds as gb
from genbounds.simulate import (
    DirichletArm,
    FrechetArm,
    RbfArm,
    SphereClustersArm,
    interval_coverage,
    power_law_spectrum,
    vendi_truth,
)
from tests.simulate.arms import (
    LogisticArm,
    NormalisedArm,
    RectifiedArm,
    flipped_scores,
    plugin_bias,
    rectified_product,
)

REACH = stats.norm.isf(0.5e-8)
FULL = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])


def agrees(values, truth):
    """Whether averages over the first axis are within their normal limits of `truth`."""
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return bool((np.abs(values.mean(axis=0) - truth) <= REACH * error + 1e-11).all())


MOMENTS = {
    "rectified": RectifiedArm([0.3, -0.5, 1.0], FULL),
    "rectified, centred": RectifiedArm(0.0, FULL),
    "normalised": NormalisedArm([1.0, 0.5, 0.0], FULL),
    "normalised, centred": NormalisedArm(0.0, np.diag(FULL)),
    "normalised, narrow": NormalisedArm(
        np.full(8, 2.0), power_law_spectrum(8, exponent=1, trace=1)
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", MOMENTS)
def test_mean_and_covariance(name):
    """Null: the stated moments. The control sees 5 % in every second moment."""
    arm = MOMENTS[name]
    mean, cov = arm.facts["mean"], arm.facts["cov"]
    rows = arm.draw(100_000, np.random.default_rng(2))
    assert agrees(rows, mean)
    apart = rows - mean
    second = (apart[:, :, None] * apart[:, None, :]).reshape(len(rows), -1)
    assert agrees(second, cov.ravel())
    assert not agrees(second, 1.05 * cov.ravel())


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [(0.3, -0.5, 0.6), (0.0, 0.0, 0.4), (0.0, 1.0, -0.3), (-1.0, 0.0, 0.5), (-2.0, -1.0, 0.99)],
)
def test_rectified_product_by_quadrature(a, b, rho):
    """The closed form against a nested integral over two normal variables."""

    def inner(u):
        mean, spread = b + rho * u, math.sqrt(1 - rho**2)
        z = mean / spread
        return max(a + u, 0) * (mean * stats.norm.cdf(z) + spread * stats.norm.pdf(z))

    value, error = integrate.quad(
        lambda u: inner(u) * stats.norm.pdf(u), max(-a, -12), 12, epsabs=1e-13, epsrel=1e-12
    )
    found = rectified_product(*map(np.array, (a, b, rho)))
    assert float(found) == pytest.approx(value, abs=1e-12 + error)


def test_normalised_moments_by_quadrature():
    """In two dimensions the mean over directions is an integral over the angle."""
    arm = NormalisedArm([0.7, -0.2], [1.0, 0.3])
    facts = arm.facts

    def density(angle):
        """Of the direction: the Gaussian density along the ray, times the radius."""
        x = np.array([math.cos(angle), math.sin(angle)])
        a = x @ (x / [1.0, 0.3])
        b = x @ (np.array([0.7, -0.2]) / [1.0, 0.3])
        c = np.array([0.7, -0.2]) @ (np.array([0.7, -0.2]) / [1.0, 0.3])
        t = b / math.sqrt(a)
        return (
            math.exp(-0.5 * c) / (2 * math.pi * math.sqrt(0.3) * a)
            * (1 + t * stats.norm.cdf(t) / stats.norm.pdf(t))
        )  # fmt: skip

    def mean(f):
        angles = np.linspace(0, 2 * np.pi, 400, endpoint=False)  # periodic: exact to rounding
        return np.mean([f(x) * density(x) for x in angles]) * 2 * np.pi

    assert mean(lambda x: 1.0) == pytest.approx(1.0, abs=1e-12)
    first = np.array([mean(math.cos), mean(math.sin)])
    second = mean(lambda x: math.cos(x) * math.sin(x))
    np.testing.assert_allclose(facts["mean"], first, atol=2e-12)
    assert facts["cov"][0, 1] == pytest.approx(second - first[0] * first[1], abs=2e-12)


@pytest.mark.parametrize("d", [1, 2, 64, 512])
def test_normalised_rows_have_norm_one_in_the_mean(d):
    """Tr E xxᵀ = 1 is an identity that the quadrature does not use."""
    facts = NormalisedArm(np.r_[2.0, np.zeros(d - 1)], 1.0 / np.arange(1.0, d + 1.0)).facts
    total = np.trace(facts["cov"]) + facts["mean"] @ facts["mean"]
    assert total == pytest.approx(1.0, abs=d * 1e-12)


POSTERIORS = [
    DirichletArm([[4.5, 0.25, 0.25], [0.25, 4.5, 0.25]], weights=[0.7, 0.3]),
    DirichletArm(np.full((10, 10), 5e-5) + 0.5 * np.eye(10), name="near-deterministic"),
    DirichletArm(np.full(4, 50.0), name="near-uniform"),
    LogisticArm(0.5, 1.0),
    LogisticArm(-3.0, 20.0),
    LogisticArm(0.0, 0.01),
]


@pytest.mark.statistical
@pytest.mark.parametrize("arm", POSTERIORS, ids=lambda arm: arm.name)
def test_inception_score(arm):
    """Null: class shares and mean entropy as stated. The control sees half of the mean entropy."""
    rows = arm.draw(100_000, np.random.default_rng(4))
    assert rows.sum(axis=1) == pytest.approx(1.0)
    facts = arm.facts
    assert agrees(rows, facts["marginal"])
    entropy = stats.entropy(rows, axis=1)
    assert agrees(entropy, facts["conditional_entropy"])
    assert not agrees(entropy, 1.5 * facts["conditional_entropy"])
    truth = stats.entropy(facts["marginal"]) - facts["conditional_entropy"]
    assert facts["log_score"] == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_logistic_truth_by_adaptive_quadrature(scale):
    """Another rule, adaptive."""
    from scipy.special import expit, xlogy

    def entropy(p, q):
        return -xlogy(p, p) - xlogy(q, q)

    def mean(f):
        edge = -0.7 / scale  # where the logit changes sign
        points = [x for x in np.linspace(edge - 40 / scale, edge + 40 / scale, 41) if abs(x) < 12]
        ends = np.unique(np.r_[-12.0, points, 12.0])
        return sum(
            integrate.quad(
                lambda z: f(0.7 + scale * z) * stats.norm.pdf(z), a, b, epsabs=1e-15, epsrel=1e-12
            )[0]
            for a, b in pairwise(ends)
        )

    facts = LogisticArm(0.7, scale).facts
    share = mean(expit)
    truth = entropy(share, 1 - share) - mean(lambda x: entropy(expit(x), expit(-x)))
    assert facts["log_score"] == pytest.approx(truth, abs=1e-11)


FEATURES = {
    "rectified": RectifiedArm(np.linspace(-1.0, 1.0, 8), np.eye(8) + 0.5),
    "normalised": NormalisedArm(np.full(8, 1.0), power_law_spectrum(8, exponent=1, trace=8)),
}


def half(score):
    """The interval at half its width: a control that must miss too often."""
    reach = (score.high - score.low) / 4
    middle = (score.low + score.high) / 2
    return dataclasses.replace(score, low=middle - reach, high=middle + reach)


def misses(make, draw, truth):
    """Of 200 intervals, made as they are and at half their width."""
    return [
        interval_coverage(
            make_one, draw, truth, replications=200, seed=1, level=0.95, chunk=200
        ).misses
        for make_one in (make, lambda rows: half(make(rows)))
    ]


# At most 9 % of nominal 95 % intervals miss but once in 1e6; then 36 % is seen as surely.
GATE = stats.binom.isf(1e-6, 200, 0.09)


@pytest.mark.statistical
@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.nightly
def test_distances_cover_on_features_of_known_truth(name):
    """Null: at most 9 % of 95 % intervals miss; false alarm 1e-6. The control: half the width."""
    features = FEATURES[name]
    mean, cov = features.facts["mean"], features.facts["cov"]
    arm = FrechetArm(features, mean + 0.02, 1.3 * cov)
    reference = gb.Moments(arm.reference_mean, arm.facts["reference_cov"])
    found, control = misses(
        lambda rows: gb.frechet_distance(rows, reference),
        lambda rng: arm.draw(600, rng),
        arm.facts["distance"],
    )
    assert found <= GATE < control


@pytest.mark.statistical
@pytest.mark.parametrize("arm", [POSTERIORS[1], POSTERIORS[3]], ids=lambda arm: arm.name)
def test_inception_scores_cover_on_posteriors_of_known_truth(arm):
    """Null: at most 9 % of 95 % intervals miss; false alarm 1e-6. The control: half the width."""
    truth = math.exp(arm.facts["log_score"])
    found, control = misses(gb.inception_score, lambda rng: arm.draw(400, rng), truth)
    assert found <= GATE < control


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 2.0, np.inf])
def test_vendi_of_a_gaussian_under_a_gaussian_kernel(order):
    """Product formula against the listed spectrum; at order 2 against the double integral."""
    arm = RbfArm([2.0, 0.5, 1.0], 1.3)
    listed = vendi_truth(arm.spectrum, order)
    assert arm.vendi(order) == pytest.approx(listed, rel=1e-4 if order < 1 else 1e-8)
    assert arm.spectrum.sum() == pytest.approx(1.0, abs=1e-9)
    if order == 2.0:  # 1/E k(x, x')², x − x' ~ N(0, 2 s²): Π √(1 + 4 s²/σ²)
        assert arm.vendi(2.0) == pytest.approx(
            np.sqrt(np.prod(1 + 4 * arm.scales**2 / 1.3**2)), rel=1e-12
        )


@pytest.mark.statistical
def test_sample_spectra_approach_the_truth():
    """Null: λ̂ of 1,500 rows within the order-of-n^(-1/2) error of the stated spectrum."""
    arm = RbfArm([1.0], 1.0)
    rows = arm.draw(1500, np.random.default_rng(0))
    kernel = np.exp(-0.5 * (rows - rows.T) ** 2)
    found = np.linalg.eigvalsh(kernel / 1500)[::-1][:6]
    # McDiarmid: ‖λ̂ − λ‖₂ ≤ n^(-1/2) + √(2 log(1e6)/n) but for one run in a million.
    limit = (1 + math.sqrt(2 * math.log(1e6))) / math.sqrt(1500)
    assert np.linalg.norm(found - arm.spectrum[:6]) < limit
    assert np.linalg.norm(found - RbfArm([1.0], 0.5).spectrum[:6]) > limit
    spheres = SphereClustersArm([0.5, 0.3, 0.2], [1, 2, 2])
    rows = spheres.draw(1500, np.random.default_rng(1))
    found = np.linalg.eigvalsh(rows.T @ rows / 1500)[::-1]
    assert np.linalg.norm(found - spheres.spectrum) < limit
    assert spheres.vendi(1.0) == pytest.approx(
        np.exp(stats.entropy([0.5, 0.15, 0.15, 0.1, 0.1])), rel=1e-12
    )


def test_vendi_truncated():
    assert vendi_truth([0.5, 0.3, 0.2], np.inf, 2) == pytest.approx(1 / 0.6)
    assert vendi_truth([0.5, 0.3, 0.2], 2.0) == pytest.approx(1 / 0.38)


@pytest.mark.statistical
def test_a_bias_that_flips_ranks():
    """Null: E FD_n − FD = K/n + O(n⁻²), and ranks flip at the stated size. False alarm < 1e-6."""
    arms, size = flipped_scores(16)
    wide, narrow = (arms[name].facts["distance"] for name in ("wide", "narrow"))
    assert wide == pytest.approx(16 * 0.09)
    assert narrow == pytest.approx(16 * 0.33**2)
    assert plugin_bias(arms["wide"]) == pytest.approx(16 * 1.69 + 1.3 * 16 * 17 / 4)
    for factor, expected in ((0.6, True), (1.7, False)):
        n = round(factor * size)
        drawn = {
            name: gb.simulate.frechet_scores(arm, n, 3000, estimator="plugin")
            for name, arm in arms.items()
        }
        gap = drawn["wide"].values.mean() - drawn["narrow"].values.mean()
        error = math.hypot(drawn["wide"].bias_stderr, drawn["narrow"].bias_stderr)
        assert (gap > 0.0) == expected
        assert abs(gap) > 5.0 * error
        for name, scores in drawn.items():
            # The next order is below (d/n)² FD-ish units: a tenth of the first at n > 5 d.
            assert scores.bias == pytest.approx(plugin_bias(arms[name]) / n, rel=0.12)
