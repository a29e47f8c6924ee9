"""Arms: sufficient statistics against plain samples, and every stated truth against brute force.

Two-sample tests compare with Kolmogorov–Smirnov p-values at 1e-7 each; there are fewer than ten
in a test, so that a test raises a false alarm with probability below 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from genbounds import InputError
from genbounds.simulate import (
    EMBEDDING_NORMS,
    BernoulliArm,
    BetaArm,
    CategoricalArm,
    CircleArm,
    DirichletArm,
    FrechetArm,
    GammaArm,
    GaussianArm,
    MixtureArm,
    RbfArm,
    SkewedArm,
    SphereArm,
    SphereClustersArm,
    StudentArm,
    SyntheticArm,
    UniformArm,
    VendiArm,
    embedding_spectrum,
    matched_spectrum,
    power_law_spectrum,
)

ALARM = 1e-7
FULL = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])


def ten_gaussians():
    rng = np.random.default_rng(1)
    parts = [GaussianArm(3.0 * rng.standard_normal(3), 0.2 * FULL) for _ in range(10)]
    return MixtureArm(parts, weights=np.arange(1.0, 11.0) / 55.0)


ARMS = [
    GaussianArm([1.0, -2.0, 0.5], FULL),
    GaussianArm(0.0, np.array([3.0, 1.0, 0.1])),
    GaussianArm(2.0, 4.0),
    StudentArm([1.0, 0.0], [[2.0, 0.5], [0.5, 1.0]], df=9.0),
    SkewedArm([0.0, 3.0], [1.0, 0.25], shape=2.0),
    BernoulliArm(0.2),
    BetaArm(0.5, 2.0),
    UniformArm(-1.0, 3.0),
    GammaArm(0.5, 2.0),
    SphereArm(3, radius=2.0),
    CategoricalArm([0.6, 0.3, 0.1]),
    ten_gaussians(),
    RbfArm([2.0, 0.5], 1.0),
    SphereClustersArm([0.5, 0.3, 0.2], [1, 2, 2]),
    DirichletArm([[0.1, 2.0, 0.5], [3.0, 1.0, 1.0]], weights=[0.25, 0.75]),
]


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_draw_is_repeatable_and_has_its_shape(arm):
    first = arm.draw(5, np.random.default_rng(1))
    assert first.shape == (5, arm.d)
    assert np.array_equal(first, arm.draw(5, np.random.default_rng(1)))
    assert not np.array_equal(first, arm.draw(5, np.random.default_rng(2)))


@pytest.mark.parametrize("arm", [*ARMS, CircleArm(2.0)], ids=lambda arm: arm.name)
def test_rows_lie_within_the_radius_that_facts_give(arm):
    norms = np.linalg.norm(arm.draw(2000, np.random.default_rng(1)), axis=1)
    reach = arm.facts.get("radius", math.inf)
    assert (norms <= reach * (1.0 + 1e-9)).all()
    if arm.facts.get("centred"):
        assert np.allclose(arm.facts["mean"], 0.0)
    if isinstance(arm, SphereArm | CircleArm | CategoricalArm | SphereClustersArm):
        assert norms == pytest.approx(reach, rel=1e-6)


def within(sample, truth, *, alarm=ALARM):
    """Whether a mean of iid values lies where it must with probability 1 − alarm (normal limit).

    n = 200,000 and bounded or exponential tails: the normal tail at 5.3 standard errors is off by
    a small factor at most, which the hundred-fold reserve of `ALARM` absorbs.
    """
    error = sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
    return bool(
        (np.abs(sample.mean(axis=0) - truth) <= stats.norm.isf(alarm / 2) * error + 1e-12).all()
    )


@pytest.mark.statistical
@pytest.mark.parametrize("arm", ARMS[:-1], ids=lambda arm: arm.name)
def test_mean_and_covariance_are_true(arm):
    """Null: the stated moments. False alarm < 1e-6. Sees a 2 % error of a variance."""
    rows = arm.draw(200_000, np.random.default_rng(5))
    assert within(rows, arm.facts["mean"])
    second = np.einsum("ni,nj->nij", rows - arm.facts["mean"], rows - arm.facts["mean"])
    if "cov" in arm.facts:
        cov = arm.facts["cov"]
        assert within(second, np.diag(cov) if cov.ndim == 1 else cov)
        assert not within(second, 1.05 * (np.diag(cov) if cov.ndim == 1 else cov))
    elif "variance" in arm.facts:
        assert within(second[:, 0, 0], arm.facts["variance"])
    else:
        assert within(np.trace(second, axis1=1, axis2=2), arm.facts["trace"])


@pytest.mark.statistical
def test_inception_score_is_true():
    """Null: log IS = H(p̄) − E H(p) in closed form. False alarm < 1e-6. Sees 1 % of E H."""
    arm = ARMS[-1]
    rows = arm.draw(200_000, np.random.default_rng(6))
    assert rows.sum(axis=1) == pytest.approx(1.0)
    assert within(rows, arm.facts["marginal"])
    entropy = stats.entropy(rows, axis=1)
    truth = arm.facts["conditional_entropy"]
    assert within(entropy, truth)
    assert not within(entropy, 1.01 * truth)
    assert arm.facts["log_score"] == pytest.approx(stats.entropy(arm.facts["marginal"]) - truth)


def test_near_deterministic_posteriors_do_not_underflow():
    rows = DirichletArm(np.full(10, 1e-3)).draw(2000, np.random.default_rng(0))
    assert np.isfinite(rows).all()
    assert (rows.max(axis=1) > 0.99).mean() > 0.9


NAMES = {
    "sample_mean": lambda s: s["sample_mean"],
    "mean_error_norm": lambda s: s["mean_error_norm"],
    "trace": lambda s: np.trace(s["covariance"], axis1=1, axis2=2),
    "determinant": lambda s: np.linalg.det(s["covariance"]),
    "corner": lambda s: s["covariance"][:, 0, 1],
    "raw": lambda s: s["raw_covariance"][:, 1, 1],
    "squares": lambda s: s["mean_squared_norm"],
    "joint": lambda s: s["covariance"][:, 0, 0] * s["sample_mean"],
}
WANTED = ("sample_mean", "mean_error_norm", "covariance", "raw_covariance", "mean_squared_norm")


def two_sample(first, second):
    return [stats.ks_2samp(f(first), f(second)).pvalue for f in NAMES.values()]


@pytest.mark.statistical
@pytest.mark.parametrize(("arm", "n"), [(ARMS[0], 3), (ARMS[0], 30), (ARMS[1], 2)])
def test_sufficient_statistics_are_distributed_as_those_of_samples(arm, n):
    """Null: Bartlett's draw equals plain sampling, n − 1 < d included. False alarm < 1e-6.

    Power: a divisor n − 1 for n shifts the trace by 1/n; see the negative control.
    """
    fast = arm.statistics(WANTED, n, 8000, np.random.default_rng(n))
    plain = SyntheticArm.statistics(arm, WANTED, n, 8000, np.random.default_rng(100 + n))
    # With n = 2 the covariance is singular and its determinant is nothing but rounding.
    pvalues = [
        p for name, p in zip(NAMES, two_sample(fast, plain), strict=True)
        if not (name == "determinant" and n <= 3)
    ]  # fmt: skip
    assert min(pvalues) > ALARM


@pytest.mark.statistical
def test_two_sample_test_sees_a_wrong_divisor():
    """Negative control of the test above."""
    arm = ARMS[0]
    fast = arm.statistics(WANTED, 4, 8000, np.random.default_rng(1))
    plain = SyntheticArm.statistics(arm, WANTED, 4, 8000, np.random.default_rng(2))
    fast["covariance"] = fast["covariance"] * 4 / 3
    assert min(two_sample(fast, plain)) < ALARM


@pytest.mark.statistical
def test_scalar_and_norm_shortcuts():
    """Null: shortcuts equal plain sampling. False alarm < 1e-6."""
    scalar = ARMS[2]
    wanted = ("sample_mean", "sample_variance", "mean_square", "second_mean")
    fast = scalar.statistics(wanted, 5, 8000, np.random.default_rng(1))
    plain = SyntheticArm.statistics(scalar, wanted, 5, 8000, np.random.default_rng(2))
    assert min(stats.ks_2samp(fast[name], plain[name]).pvalue for name in wanted) > ALARM
    for arm in ARMS[:2]:
        alone = arm.statistics(["mean_squared_norm"], 5, 8000, np.random.default_rng(3))
        plain = SyntheticArm.statistics(
            arm, ["mean_squared_norm"], 5, 8000, np.random.default_rng(4)
        )
        name = "mean_squared_norm"
        assert stats.ks_2samp(alone[name], plain[name]).pvalue > ALARM
    coin = BernoulliArm(0.3)
    fast = coin.statistics(["sample_variance"], 7, 8000, np.random.default_rng(5))
    plain = SyntheticArm.statistics(coin, ["sample_variance"], 7, 8000, np.random.default_rng(6))
    pair = [np.round(part["sample_variance"], 12) for part in (fast, plain)]
    assert stats.ks_2samp(*pair).pvalue > ALARM


def test_deviation_comes_from_plain_samples():
    rng = np.random.default_rng(0)
    drawn = GaussianArm(0.0, np.ones(4)).statistics(["mean_deviation", "covariance"], 6, 3, rng)
    bound = np.sqrt(np.trace(drawn["covariance"], axis1=1, axis2=2))
    assert (drawn["mean_deviation"] < bound).all()  # Jensen
    assert (drawn["mean_deviation"] > 0.7 * bound).all()


@pytest.mark.parametrize("arm", [GaussianArm(1.0, 4.0), BernoulliArm(0.3)], ids=["normal", "coin"])
def test_running_means_and_rows_are_of_the_same_samples(arm):
    names = ["rows", "running_mean", "sample_mean"]
    drawn = arm.statistics(names, 7, 3, np.random.default_rng(0))
    assert drawn["rows"].shape == drawn["running_mean"].shape == (3, 7)
    assert drawn["running_mean"][:, 3] == pytest.approx(drawn["rows"][:, :4].mean(axis=1))
    assert drawn["running_mean"][:, -1] == pytest.approx(drawn["sample_mean"])
    assert arm.size(names, 7) == 7


TAILS = [
    (GaussianArm(3.0, 4.0), "mean-error", "sample_mean", lambda s: np.abs(s - 3.0)),
    (GaussianArm(0.0, 1.0), "square-error", "mean_square", lambda s: np.abs(s - 1.0)),
    (GaussianArm(0.0, 1.0), "squared-mean", "sample_mean", np.square),
    (ARMS[0], "mean-norm", "mean_error_norm", np.asarray),
    (ARMS[1], "mean-norm-squared", "mean_error_norm", np.square),
    (ARMS[1], "squared-norm-error", "mean_squared_norm", lambda s: np.abs(s - 4.1)),
    (GammaArm(0.5, 2.0), "mean-error", "sample_mean", lambda s: np.abs(s - 1.0)),
    (
        GaussianArm(0.0, 4.0),
        "raw-covariance-error",
        "raw_covariance",
        lambda s: np.abs(s[:, 0, 0] - 4),
    ),
    (GaussianArm(5.0, 4.0), "covariance-error", "covariance", lambda s: np.abs(s[:, 0, 0] - 4)),
]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("arm", "quantity", "statistic", "error"), TAILS, ids=[f"{t[0].name} {t[1]}" for t in TAILS]
)
def test_exact_tail_is_that_of_the_draws(arm, quantity, statistic, error):
    """Null: exceedances are binomial with the exact tail. False alarm 1e-7. Sees a factor 2."""
    values = error(arm.statistics([statistic], 6, 50_000, np.random.default_rng(8))[statistic])
    threshold = float(np.quantile(values[:25_000], 0.98))
    tail = arm.tail(quantity, 6, threshold)
    fresh = values[25_000:]
    count = int((fresh > threshold).sum())
    assert stats.binomtest(count, fresh.size, tail).pvalue > ALARM
    assert stats.binomtest(count, fresh.size, min(2.0 * tail, 0.99)).pvalue < ALARM


def test_tail_of_a_product_of_means():
    arm = GaussianArm(0.0, 1.0)
    drawn = arm.statistics(["sample_mean", "second_mean"], 4, 50_000, np.random.default_rng(0))
    count = int((np.abs(drawn["sample_mean"] * drawn["second_mean"]) > 0.3).sum())
    tail = arm.tail("mean-product", 4, 0.3)
    assert stats.binomtest(count, 50_000, tail).pvalue > ALARM
    assert arm.tail("unheard-of", 4, 0.3) is None
    assert GaussianArm(1.0, 1.0).tail("squared-mean", 4, 0.3) is None


def test_outcomes_of_a_coin_are_complete():
    listed = BernoulliArm(0.3).outcomes((), 6)
    assert listed.probabilities.sum() == pytest.approx(1.0, rel=1e-13)
    assert listed.statistics["sample_variance"][2] == pytest.approx(
        np.var([1, 1, 0, 0, 0, 0], ddof=1)
    )


@pytest.mark.statistical
def test_lattice_is_distributed_as_the_draws():
    """Null: P(FD_n > x) from the lattice within its accuracy. False alarm 1e-7."""
    arm = FrechetArm(GaussianArm(0.0, 1.0), 0.7, 2.0)
    listed = arm.outcomes(("distance_plugin",), 12)
    assert listed.probabilities.sum() == pytest.approx(1.0, rel=1e-10)
    assert not listed.lower_only
    assert arm.outcomes(("mean_deviation",), 12).lower_only
    drawn = arm.statistics(["distance_plugin"], 12, 20_000, np.random.default_rng(3))
    # Mean of (X̄−0.7)² + (s−√2)² with divisor n: every part of the lattice has its weight.
    mean_s = math.sqrt(2 / 12) * math.gamma(6) / math.gamma(5.5)
    mean = 0.7**2 + 1 / 12 + 11 / 12 + 2 - 2 * math.sqrt(2) * mean_s
    weighted = listed.probabilities @ listed.statistics["distance_plugin"]
    assert weighted == pytest.approx(mean, rel=0.02)
    for x in (0.3, 1.0, 2.0):
        tail = float(listed.probabilities[listed.statistics["distance_plugin"] > x].sum())
        count = int((drawn["distance_plugin"] > x).sum())
        low, high = stats.binomtest(count, 20_000).proportion_ci(1 - ALARM)
        assert low / 1.15 < tail < high * 1.15  # in the bulk far better than promised


def test_distance_is_true():
    d = 4
    rng = np.random.default_rng(0)
    a, b = (m @ m.T for m in rng.normal(size=(2, d, d)))
    arm = FrechetArm(GaussianArm(np.arange(4.0), a), np.ones(4), b)
    roots = np.sqrt(np.linalg.eigvals(a @ b).real)  # another way to Tr (Σ Σ_r)^{1/2}
    gap = np.arange(4.0) - 1.0
    assert arm.facts["distance"] == pytest.approx(
        gap @ gap + np.trace(a + b) - 2 * roots.sum(), rel=1e-10
    )
    assert arm.facts["mean_gap"] == pytest.approx(np.linalg.norm(gap))
    assert arm.facts["trace_root"] == pytest.approx(roots.sum(), rel=1e-10)
    assert arm.facts["product_trace"] == pytest.approx(np.trace(a @ b), rel=1e-12)
    assert arm.facts["reference_cov"] == pytest.approx(b, rel=1e-10)
    assert arm.facts["reference_trace"] == pytest.approx(np.trace(b))
    assert arm.facts["reference_operator"] == pytest.approx(np.linalg.eigvalsh(b).max())
    names = ["covariance", "sample_trace_root", "distance_plugin", "mean_vector"]
    drawn = arm.statistics(names, 9, 1, rng)
    cov, moved = drawn["covariance"][0], drawn["mean_vector"][0] - 1.0
    root = np.sqrt(np.linalg.eigvals(cov @ b).real).sum()
    assert drawn["sample_trace_root"][0] == pytest.approx(root, rel=1e-9)
    assert drawn["distance_plugin"][0] == pytest.approx(
        moved @ moved + np.trace(cov + b) - 2 * root, rel=1e-9
    )
    assert arm.facts["reference_root_trace"] == pytest.approx(np.sqrt(np.linalg.eigvalsh(b)).sum())
    assert FrechetArm(ARMS[1], 0.0, ARMS[1].cov).facts["distance"] == pytest.approx(0.0, abs=1e-12)


def test_kernel_spectra():
    """Eigenvalues of K/n by their definition, for the same samples."""
    classes = CategoricalArm([0.5, 0.3, 0.2])
    counts = classes.statistics(["mean_vector", "sample_spectrum"], 9, 1, np.random.default_rng(0))
    rows = np.repeat(np.eye(3), np.round(9 * counts["mean_vector"][0]).astype(int), axis=0)
    gram = np.linalg.eigvalsh(rows @ rows.T / 9)[::-1][:3]
    assert counts["sample_spectrum"][0] == pytest.approx(gram, abs=1e-12)
    sphere = SphereArm(3, radius=2.0)
    rows = sphere.draw(9, np.random.default_rng(0))
    drawn = sphere.statistics(["sample_spectrum"], 9, 1, np.random.default_rng(0))
    gram = np.linalg.eigvalsh(rows @ rows.T / 4 / 9)[::-1][:3]
    assert drawn["sample_spectrum"][0] == pytest.approx(gram, abs=1e-12)


def test_moments_of_a_beta_variable_are_those_of_scipy():
    facts = BetaArm(2.0, 3.5).facts
    assert (facts["mean"], facts["variance"]) == pytest.approx(stats.beta.stats(2.0, 3.5))


def test_rows_of_clusters_lie_on_the_sphere_of_their_own_subspace():
    rows = SphereClustersArm([0.5, 0.3, 0.2], [1, 2, 2]).draw(100, np.random.default_rng(0))
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(100))
    lies_in = np.stack([(part != 0.0).any(axis=1) for part in np.split(rows, [1, 3], axis=1)])
    assert (lies_in.sum(axis=0) == 1).all()
    assert lies_in.any(axis=1).all()


@pytest.mark.statistical
def test_fourier_kernel_is_unbiased():
    """Null: mean FKEA kernel is [x = y]; its trace is exactly one. False alarm < 1e-6."""
    arm = VendiArm(CategoricalArm([0.5, 0.5]), order=2.0, frequencies=3)
    drawn = arm.statistics(["fourier_spectrum"], 10**6, 20_000, np.random.default_rng(0))
    spectrum = drawn["fourier_spectrum"]
    assert spectrum.sum(axis=1) == pytest.approx(1.0, rel=1e-12)
    # Off-diagonal ½ m, m the mean of cos ω over 3 frequencies: λ = ½ (1 ± |m|), E m² = 1/6.
    assert within(np.square(spectrum[:, 0] - spectrum[:, 1]), 1 / 6)


@pytest.mark.parametrize("name", EMBEDDING_NORMS)
def test_spectrum_has_the_norms_of_embeddings(name):
    d, trace, frobenius, operator = EMBEDDING_NORMS[name]
    spectrum = embedding_spectrum(name)
    assert spectrum.shape == (d,)
    assert spectrum.min() > 0.0
    assert spectrum.sum() == pytest.approx(trace, rel=1e-9)
    assert np.linalg.norm(spectrum) == pytest.approx(frobenius, rel=1e-9)
    assert spectrum.max() == pytest.approx(operator, rel=1e-9)


def test_power_law_spectrum():
    spectrum = power_law_spectrum(7, exponent=1.5, trace=3.0)
    assert spectrum.sum() == pytest.approx(3.0)
    assert spectrum[0] / spectrum[3] == pytest.approx(8.0)


@pytest.mark.parametrize(
    "norms",
    [
        {"trace": 1.0, "frobenius": 2.0, "operator": 0.5},
        {"trace": 100.0, "frobenius": 10.0, "operator": 1.0},
        {"trace": 3.0, "frobenius": math.nan, "operator": 1.0},
    ],
)
def test_impossible_norms_are_refused(norms):
    with pytest.raises(InputError, match="operator="):
        matched_spectrum(10, **norms)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: GaussianArm(0.0, [[1.0, 2.0], [2.0, 1.0]]), "`cov`"),
        (lambda: GaussianArm(0.0, [[1.0, 0.5], [0.0, 1.0]]), "`cov`"),
        (lambda: GaussianArm([0.0, 0.0], [1.0, 1.0, 1.0]), "`mean`"),
        (lambda: GaussianArm(0.0, [1.0, math.nan]), "`cov`"),
        (lambda: GaussianArm(math.inf, 1.0), "`mean`"),
        (lambda: StudentArm(0.0, 1.0, df=2.0), "`df`"),
        (lambda: SkewedArm(0.0, 1.0, shape=0.0), "`shape`"),
        (lambda: BernoulliArm(1.0), "`p`"),
        (lambda: BetaArm(0.0, 1.0), "`a`"),
        (lambda: UniformArm(1.0, 1.0), "`low`"),
        (lambda: GammaArm(1.0, -1.0), "`scale`"),
        (lambda: SphereArm(2, radius=math.inf), "`radius`"),
        (lambda: CategoricalArm([0.5, 0.6]), "`probabilities`"),
        (lambda: DirichletArm([0.0, 1.0]), "`concentrations`"),
        (lambda: DirichletArm([1.0, 1.0], weights=[0.5]), "`weights`"),
        (lambda: MixtureArm([]), "`components`"),
        (lambda: MixtureArm([GaussianArm(0.0, 1.0), SphereArm(2)]), "`components`"),
        (lambda: MixtureArm([BernoulliArm(0.5)]), "`components`"),
        (lambda: MixtureArm([GaussianArm(0.0, 1.0)], weights=[0.5]), "`weights`"),
        (lambda: FrechetArm(BernoulliArm(0.5), 0.0, 1.0), "`features`"),
        (lambda: FrechetArm(GaussianArm(0.0, 1.0), 0.0, [1.0, 2.0]), "`reference_cov`"),
        (lambda: FrechetArm(SphereArm(2), 0.0, [1.0, 2.0]).engine(), "`features`"),
        (lambda: VendiArm(SphereArm(2), order=0.5), "`order`"),
        (lambda: VendiArm(SphereArm(2), order=2.0, kept=3), "`kept`"),
        (lambda: VendiArm(SphereArm(2), order=2.0, frequencies=3), "`frequencies`"),
        (lambda: RbfArm([1.0, 0.0], 1.0), "`scales`"),
        (lambda: RbfArm([1.0], 0.0), "`bandwidth`"),
        (lambda: RbfArm([1.0], 1.0).vendi(0.0), "`order`"),
        (lambda: SphereClustersArm([0.5, 0.4], [1, 1]), "`probabilities`"),
        (lambda: SphereClustersArm([1.0], [0]), "`dimensions`"),
        (lambda: power_law_spectrum(3, exponent=-1.0, trace=1.0), "`exponent`"),
        (lambda: power_law_spectrum(3, exponent=1.0, trace=0.0), "`trace`"),
        (lambda: embedding_spectrum("vgg"), "`name`"),
    ],
)
def test_bad_arms_are_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [(0.0, 1.0, True), (0.2, 0.7, True), (-1e-9, 1.0, False), (0.0, 1.0 + 1e-9, False)],
)
def test_uniform_variables_are_of_the_unit_interval_if_they_lie_in_it(low, high, inside):
    assert ("unit-interval" in UniformArm(low, high).facts["families"]) == inside


def test_a_covariance_may_be_symmetric_but_for_rounding():
    """Products such as Q Λ Qᵀ have zeros that rounding makes anything, on either side."""
    cov = np.eye(6)
    cov[0, 1], cov[1, 0], cov[2, 3] = 1e-17, -3e-17, 2e-16
    arm = GaussianArm(np.zeros(6), cov)
    np.testing.assert_array_equal(arm.cov, arm.cov.T)
    np.testing.assert_allclose(arm.eigenvalues, 1.0, rtol=1e-12)


def test_moments_may_be_tensors():
    torch = pytest.importorskip("torch")
    arm = GaussianArm(torch.ones(2, requires_grad=True), torch.eye(2))
    np.testing.assert_array_equal(arm.mean, np.ones(2))
    np.testing.assert_array_equal(arm.cov, np.eye(2))
