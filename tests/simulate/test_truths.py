"""Truths stated by arms, against brute force: plain draws, or another route to the same number.

Averages of 200,000 draws are compared at 1e-8 each by their normal limit; no test makes more than
fifty comparisons, so that a true statement fails one with probability below 1e-6. Each test has a
control that a wrong truth fails.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import genbounds as gb
from genbounds import InputError
from genbounds.simulate import (
    TRUNCATIONS,
    BallArm,
    BernoulliArm,
    DirichletArm,
    FrechetArm,
    GaussianArm,
    LogisticArm,
    MixtureArm,
    NormalisedArm,
    RbfArm,
    RectifiedArm,
    ReplayArm,
    SphereArm,
    SphereClustersArm,
    class_mixture,
    embedding_spectrum,
    equal_scores,
    flipped_scores,
    graded_scores,
    isotropic_spectrum,
    low_rank_spectrum,
    plugin_bias,
    power_law_spectrum,
    spiked_spectrum,
    truncated_generators,
    vendi_truth,
)

REACH = stats.norm.isf(0.5e-8)
DRAWS = 200_000
FULL = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])


def agrees(values, truth):
    """Whether averages over the first axis are within their normal limits of `truth`."""
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return bool((np.abs(values.mean(axis=0) - truth) <= REACH * error + 1e-11).all())


def ten_gaussians():
    rng = np.random.default_rng(1)
    parts = [GaussianArm(3.0 * rng.standard_normal(3), 0.2 * FULL) for _ in range(10)]
    return MixtureArm(parts, weights=np.arange(1.0, 11.0) / 55.0)


MOMENTS = {
    "mixture": ten_gaussians(),
    "rectified": RectifiedArm([0.3, -0.5, 1.0], FULL),
    "rectified, centred": RectifiedArm(0.0, FULL),
    "rectified, diagonal": RectifiedArm([0.3, -0.5, 1.0], np.diag(FULL)),
    "rectified, singular": RectifiedArm([0.5, -1.0, -1.0], np.ones((3, 3))),
    "rectified, opposite": RectifiedArm([0.5, 0.2], [[1.0, -1.0], [-1.0, 1.0]]),
    "ball": BallArm(3, radius=2.0),
    "ball, d=1": BallArm(1),
    "normalised": NormalisedArm([1.0, 0.5, 0.0], FULL),
    "normalised, centred": NormalisedArm(0.0, np.diag(FULL)),
    "normalised, narrow": NormalisedArm(
        np.full(8, 2.0), power_law_spectrum(8, exponent=1, trace=1)
    ),
    "rbf": RbfArm([2.0, 0.5], 1.0),
    "spheres": SphereClustersArm([0.5, 0.3, 0.2], [1, 2, 2]),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", MOMENTS)
def test_mean_and_covariance(name):
    """Null: the stated moments. The control sees 3 % in every second moment."""
    arm = MOMENTS[name]
    facts = arm.facts
    rows = arm.draw(DRAWS, np.random.default_rng(2))
    assert rows.shape == (DRAWS, arm.d)
    assert agrees(rows, facts["mean"])
    cov = facts["cov"]
    cov = np.diag(cov) if cov.ndim == 1 else cov
    apart = rows - facts["mean"]
    second = (apart[:, :, None] * apart[:, None, :]).reshape(DRAWS, -1)
    assert agrees(second, cov.ravel())
    assert not agrees(second, 1.03 * cov.ravel())
    if "radius" in facts:
        assert np.linalg.norm(rows, axis=1).max() <= facts["radius"] * (1 + 1e-12)
    again = arm.draw(5, np.random.default_rng(3))
    assert np.array_equal(again, arm.draw(5, np.random.default_rng(3)))


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [(0.3, -0.5, 0.6), (0.0, 0.0, 0.4), (0.0, 1.0, -0.3), (-1.0, 0.0, 0.5), (-2.0, -1.0, 0.99)],
)
def test_rectified_product_by_quadrature(a, b, rho):
    """The closed form against a nested integral over two normal variables."""
    from genbounds.simulate._mixtures import rectified_product

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
    assert 0.0 < facts["moment_accuracy"] < 1e-11
    np.testing.assert_allclose(facts["mean"], first, atol=2e-12)
    assert facts["cov"][0, 1] == pytest.approx(second - first[0] * first[1], abs=2e-12)


@pytest.mark.parametrize("d", [1, 2, 64, 512])
def test_normalised_rows_have_norm_one_in_the_mean(d):
    """Tr E xxᵀ = 1 is an identity that the quadrature does not use."""
    facts = NormalisedArm(np.r_[2.0, np.zeros(d - 1)], 1.0 / np.arange(1.0, d + 1.0)).facts
    total = np.trace(facts["cov"]) + facts["mean"] @ facts["mean"]
    assert total == pytest.approx(1.0, abs=d * facts["moment_accuracy"])


def test_distance_accuracy_holds():
    """Moved by as much as the moments may be wrong, the distance stays within its limit."""
    # Far wider than the features: the error of the root rules, not that of the trace.
    wide_reference = 1e4 * FULL
    features = NormalisedArm([1.0, 0.5, 0.0], FULL)
    arm = FrechetArm(features, 0.1, wide_reference)
    limit = arm.facts["distance_accuracy"]
    assert 0.0 < limit < 1e-8
    assert FrechetArm(GaussianArm(0.0, FULL), 0.0, FULL).facts["distance_accuracy"] == 0.0
    rng = np.random.default_rng(0)
    worst = 0.0
    for scale in (1e-4, 1e-6):
        features.__dict__["facts"] = dict(features.facts) | {"moment_accuracy": scale}
        wide = FrechetArm(features, 0.1, wide_reference)
        for _ in range(50):
            change = rng.uniform(-scale, scale, (3, 3))
            moved = gb.simulate.GaussianArm(
                features.facts["mean"] + rng.uniform(-scale, scale, 3),
                features.facts["cov"] + (change + change.T) / 2,
            )
            other = FrechetArm(moved, 0.1, wide_reference).facts["distance"]
            error = abs(other - wide.facts["distance"])
            assert error <= wide.facts["distance_accuracy"]
            worst = max(worst, error / wide.facts["distance_accuracy"])
    assert worst > 0.02  # the limit is no idle one


@pytest.mark.statistical
@pytest.mark.parametrize(
    "arm",
    [
        class_mixture([0.6, 0.3, 0.1], certainty=0.9, concentration=5.0),
        class_mixture(np.full(10, 0.1), certainty=0.999, concentration=0.5),  # near-deterministic
        class_mixture([0.9, 0.1], certainty=0.5, concentration=200.0),  # near-uniform
        LogisticArm(0.5, 1.0),
        LogisticArm(-3.0, 20.0),
        LogisticArm(0.0, 0.01),
    ],
    ids=lambda arm: arm.name,
)
def test_inception_score(arm):
    """Null: class law and mean entropy as stated. The control sees half of the mean entropy."""
    rows = arm.draw(DRAWS, np.random.default_rng(4))
    assert rows.sum(axis=1) == pytest.approx(1.0)
    facts = arm.facts
    assert agrees(rows, facts["marginal"])
    entropy = stats.entropy(rows, axis=1)
    assert agrees(entropy, facts["conditional_entropy"])
    assert not agrees(entropy, 1.5 * facts["conditional_entropy"])
    truth = stats.entropy(facts["marginal"]) - facts["conditional_entropy"]
    assert facts["log_score"] == pytest.approx(truth, abs=1e-12)
    drawn = arm.statistics(["mean_posterior", "mean_entropy"], 50, 7, np.random.default_rng(5))
    assert drawn["mean_posterior"].shape == (7, arm.d)
    assert drawn["mean_entropy"].shape == (7,)


def test_class_law_is_the_marginal_where_doubt_is_shared():
    law = np.array([0.6, 0.3, 0.1])
    arm = class_mixture(law, certainty=0.9, concentration=5.0)
    np.testing.assert_allclose(arm.facts["marginal"], 0.9 * law + 0.05 * (1 - law), rtol=1e-12)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_logistic_truth_by_adaptive_quadrature(scale):
    """Another rule, adaptive; the stated accuracy holds."""
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
    assert 0.0 < facts["log_score_accuracy"] < 1e-11
    assert facts["log_score"] == pytest.approx(truth, abs=facts["log_score_accuracy"] + 2e-13)


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


def test_spectra():
    for spectrum in (
        isotropic_spectrum(7, trace=3.0),
        power_law_spectrum(7, exponent=1.5, trace=3.0),
        spiked_spectrum(7, share=0.6, trace=3.0),
        low_rank_spectrum(7, rank=2, trace=3.0),
    ):
        assert spectrum.shape == (7,)
        assert spectrum.sum() == pytest.approx(3.0)
        assert (np.diff(spectrum) <= 1e-15).all()
        assert GaussianArm(0.0, spectrum).facts["trace"] == pytest.approx(3.0)
    assert spectrum[1] == pytest.approx(1.5)
    assert not spectrum[2:].any()
    assert spiked_spectrum(7, share=0.6, trace=3.0)[0] == pytest.approx(1.8)
    ratio = power_law_spectrum(7, exponent=1.5, trace=3.0)
    assert ratio[0] / ratio[3] == pytest.approx(8.0)
    assert embedding_spectrum("clip high r").max() == pytest.approx(32.0)


def test_truncated_generators_get_better_with_the_dial():
    arms = truncated_generators(power_law_spectrum(16, exponent=1, trace=160), shift=2.0)
    assert len(arms) == len(TRUNCATIONS) == 20
    assert (TRUNCATIONS[0], TRUNCATIONS[-1]) == (0.01, 0.1)
    found = [arm.facts["distance"] for arm in arms.values()]
    expected = [4.0 + (1 - psi) ** 2 * 160 for psi in TRUNCATIONS]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert np.argmin(found) == 19


def test_equal_and_graded_scores():
    found = [arm.facts["distance"] for arm in equal_scores(5, 8, distance=0.3).values()]
    np.testing.assert_allclose(found, 0.3, rtol=1e-10)
    biases = [plugin_bias(arm) for arm in equal_scores(5, 8, distance=0.3).values()]
    assert max(biases) > 1.1 * min(biases)
    found = [arm.facts["distance"] for arm in graded_scores(4, 3, best=0.5, gap=1e-6).values()]
    np.testing.assert_allclose(found, 0.5 + 1e-6 * np.arange(4), rtol=0, atol=1e-12)


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


def test_replay_is_without_replacement():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    arm = ReplayArm(rows)
    drawn = arm.draw(40, np.random.default_rng(1))
    assert np.array_equal(np.sort(drawn[:, 0]), np.sort(rows[:, 0]))
    assert not np.array_equal(drawn, rows)
    part = arm.draw(10, np.random.default_rng(2))
    assert len(np.unique(part[:, 0])) == 10
    with pytest.raises(InputError, match="at most the 40 rows"):
        arm.draw(41, np.random.default_rng(1))
    np.testing.assert_allclose(arm.facts["cov"], np.cov(rows.T, ddof=0), rtol=1e-12)
    whole = gb.Moments(rows.mean(axis=0), np.cov(rows.T, ddof=0))
    reference = gb.Moments(np.zeros(3), np.eye(3))
    assert FrechetArm(arm, 0.0, np.ones(3)).facts["distance"] == pytest.approx(
        gb.frechet_distance(whole, reference, estimator="plugin").value, rel=1e-10
    )
    drawn = arm.statistics(["mean_vector"], 40, 3, np.random.default_rng(5))["mean_vector"]
    np.testing.assert_allclose(drawn, np.tile(rows.mean(axis=0), (3, 1)), rtol=1e-12)


@pytest.mark.statistical
def test_variance_without_replacement():
    """Null: Var of a mean of n of N rows is Σ/n (N−n)/(N−1). The control: without the factor."""
    arm = ReplayArm(np.random.default_rng(0).normal(size=(40, 1)))
    means = arm.statistics(["sample_mean"], 30, 20_000, np.random.default_rng(1))["sample_mean"]
    squares = (means - arm.facts["mean"][0]) ** 2
    variance = arm.facts["cov"][0, 0] / 30
    assert agrees(squares, variance * 10 / 39)
    assert not agrees(squares, variance)


def test_replayed_posteriors_know_their_score():
    rows = DirichletArm(np.full(4, 0.3)).draw(60, np.random.default_rng(0))
    arm = ReplayArm(rows, posteriors=True)
    plain = gb.inception_score(rows, estimator="plugin").value
    assert np.exp(arm.facts["log_score"]) == pytest.approx(plain, rel=1e-10)
    drawn = arm.statistics(["mean_posterior"], 60, 2, np.random.default_rng(0))
    np.testing.assert_allclose(drawn["mean_posterior"][1], rows.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: MixtureArm([]), "at least one"),
        (lambda: MixtureArm([GaussianArm(0.0, 1.0), SphereArm(2)]), "same number"),
        (lambda: MixtureArm([BernoulliArm(0.5)]), "does not know"),
        (lambda: MixtureArm([GaussianArm(0.0, 1.0)], weights=[0.5]), "weights"),
        (lambda: RectifiedArm(0.0, [1.0, 0.0]), "positive variances"),
        (lambda: NormalisedArm(0.0, [0.0, 0.0]), "both zero"),
        (lambda: BallArm(0), "`d`"),
        (lambda: BallArm(2, radius=-1.0), "radius"),
        (lambda: RbfArm([1.0, 0.0], 1.0), "scales"),
        (lambda: RbfArm([1.0], 0.0), "bandwidth"),
        (lambda: RbfArm([1.0], 1.0).vendi(0.0), "order"),
        (lambda: SphereClustersArm([0.5, 0.4], [1, 1]), "probabilities"),
        (lambda: SphereClustersArm([1.0], [0]), "dimensions"),
        (lambda: class_mixture([1.0], certainty=0.5, concentration=1.0), "class_law"),
        (lambda: class_mixture([0.5, 0.4], certainty=0.5, concentration=1.0), "weights"),
        (lambda: class_mixture([0.5, 0.5], certainty=1.0, concentration=1.0), "certainty"),
        (lambda: class_mixture([0.5, 0.5], certainty=0.5, concentration=0.0), "concentration"),
        (lambda: LogisticArm(math.nan, 1.0), "mean"),
        (lambda: LogisticArm(0.0, 0.0), "scale"),
        (lambda: ReplayArm(np.ones((1, 2))), "rows"),
        (lambda: ReplayArm([[0.5, 0.6], [0.5, 0.5]], posteriors=True), "sum to one"),
        (lambda: isotropic_spectrum(3, trace=0.0), "trace"),
        (lambda: power_law_spectrum(3, exponent=-1.0, trace=1.0), "exponent"),
        (lambda: spiked_spectrum(3, share=0.2, trace=1.0), "share"),
        (lambda: low_rank_spectrum(3, rank=4, trace=1.0), "rank"),
        (lambda: embedding_spectrum("vgg"), "name"),
        (lambda: truncated_generators([1.0], truncations=[0.0]), "truncations"),
        (lambda: equal_scores(2, 3, distance=-1.0), "distance"),
        (lambda: graded_scores(2, 3, best=0.0, gap=0.0), "gap"),
        (lambda: flipped_scores(3, wide=1.5, narrow=0.6), "wide"),
    ],
)
def test_bad_arms_are_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()
