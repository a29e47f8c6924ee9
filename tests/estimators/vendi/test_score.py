"""Vendi scores: independent references, properties, all methods against the exact one, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import genbounds as gb
from genbounds.estimators import median_bandwidth, rank, vendi_estimate
from genbounds.simulate import RbfArm, vendi_truth
from tests.estimators.vendi.kernels import KERNELS, features
from tests.refusal import refused
from tests.warnings_of import codes

ORDERS = [0.5, 1.0, 1.7, 2.0, 4.0, math.inf]
METHODS = ["exact", "truncated", "nystrom", "fkea", "lanczos"]


def renyi(matrix, order):
    """Vendi score of a kernel matrix as in Friedman & Dieng: eigenvalues of K/n."""
    p = np.linalg.eigvalsh(matrix / len(matrix))
    p = p[p > 1e-13]
    if math.isinf(order):
        return 1.0 / p.max()
    if order == 1.0:
        return np.exp(-(p * np.log(p)).sum())
    return (p**order).sum() ** (1.0 / (1.0 - order))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", KERNELS)
def test_plugin_against_the_eigenvalues_of_sklearns_kernels(name, order):
    arguments, reference = KERNELS[name]
    for n in (5, 150):  # fewer and more rows than features
        x = features(n=n)
        got = gb.vendi_score(x, order=order, method="exact", estimator="plugin", **arguments)
        assert_allclose(got.value, renyi(reference(x), order), rtol=1e-8)


def test_distances_do_not_lose_digits_to_a_large_mean():
    x = features()
    given = {"bandwidth": 1.7, "method": "exact", "estimator": "plugin"}
    assert_allclose(
        gb.vendi_score(x + 1e6, **given).value, gb.vendi_score(x, **given).value, rtol=1e-7
    )


def test_the_order_is_used_and_the_identity_scores_n():
    """Known faults of a peer: `score_X` drops q; its sparse method gives 1.12 for the identity."""
    x = features()
    scores = [gb.vendi_score(x, kernel="cosine", order=q, estimator="plugin").value for q in ORDERS]
    assert np.all(np.diff(scores) < -1e-3)
    identity = gb.vendi_score(np.eye(300), kernel="cosine", estimator="plugin")
    assert identity.value == pytest.approx(300.0, rel=1e-10)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(8, 40),
    d=st.integers(1, 6),
    kernel=st.sampled_from(["rbf", "laplace", "cosine", "polynomial"]),
    order=st.sampled_from(ORDERS),
)
@settings(deadline=None, max_examples=80)
def test_laws(seed, n, d, kernel, order):
    """Bounded by 1 and n, decreasing in the order, blind to the order of the rows and rotation."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) + 0.1
    bandwidth = 1.3 if kernel in {"rbf", "laplace"} else None
    arguments = {"kernel": kernel, "bandwidth": bandwidth, "estimator": "plugin"}

    def value(rows, alpha=order):
        return gb.vendi_score(rows, order=alpha, method="exact", **arguments).value

    base = value(x)
    assert 1.0 <= base <= n * (1 + 1e-9)
    assert value(x, order + 0.5) <= base * (1 + 1e-9)
    assert_allclose(value(x[rng.permutation(n)]), base, rtol=1e-8)
    if kernel != "laplace":  # the L1 distance does see the axes
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        assert_allclose(value(x @ turn), base, rtol=1e-7)
    assert_allclose(value(np.repeat(x, 2, axis=0)), base, rtol=1e-7)
    for estimator in ("debiased", "plugin"):
        score = gb.vendi_score(x, order=order, **{**arguments, "estimator": estimator})
        assert 1.0 <= score.low <= score.value <= score.high


@given(k=st.integers(2, 12), copies=st.integers(8, 30), order=st.sampled_from(ORDERS))
@settings(deadline=None, max_examples=30)
def test_equal_orthogonal_clusters_count_themselves(k, copies, order):
    rows = np.repeat(np.eye(k), copies, axis=0)
    exact = gb.vendi_score(rows, kernel="cosine", order=order, estimator="plugin")
    assert exact.value == pytest.approx(k, rel=1e-9)
    wide = gb.vendi_score(
        rows * 20.0, bandwidth=1.0, order=order, method="exact", estimator="plugin"
    )
    assert wide.value == pytest.approx(k, rel=1e-9)
    debiased = gb.vendi_score(rows, kernel="cosine", order=order)
    assert debiased.low <= k * (1 + 1e-9)
    assert k <= debiased.high * (1 + 1e-9)


@given(
    k=st.integers(2, 8),
    order=st.sampled_from([1.0, 2.0, 3.0]),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=10)
def test_every_approximation_counts_clusters_within_its_stated_error(k, order, seed):
    """t = k clusters: cut, landmarks and quadrature are exact; FKEA's spectrum within 6/√(2t)."""
    rows = 1e3 * np.repeat(np.eye(k), 40, axis=0)
    given = {"bandwidth": 10.0, "order": order, "estimator": "plugin", "seed": seed}
    for method, components in (("truncated", k), ("nystrom", k), ("lanczos", k)):
        score = gb.vendi_score(rows, method=method, components=components, **given)
        if method == "nystrom" and score.value < k * (1 - 1e-6):
            # A cluster without a landmark: the score is that of the others.
            assert score.value == pytest.approx(round(score.value), rel=0.2)
        else:
            assert score.value == pytest.approx(k, rel=1e-6)
    fourier = gb.vendi_score(rows, method="fkea", components=1000, **given).value
    # off-diagonal entries of the k × k kernel have standard deviation 1/√(2t)
    assert k * (1 - 6 * k / math.sqrt(2000)) <= fourier <= k * (1 + 1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", [1.0, 2.0])
def test_one_repeated_point_scores_one(method, order):
    rows = np.tile([1.0, 2.0, 3.0], (60, 1))
    extra = {} if method == "exact" else {"components": 3}
    score = gb.vendi_score(
        rows, bandwidth=1.0, order=order, method=method, estimator="plugin", **extra
    )
    assert score.value == pytest.approx(1.0, rel=1e-6)


GAUSS = RbfArm((2.0, 1.0, 1.0, 0.5), 2.0)


def test_the_closed_form_spectrum_is_that_of_the_law():
    """Σλ = 1 and Σλ² = E k² = Π (1 + 4s²/σ²)^(-1/2), by elementary integration."""
    assert GAUSS.spectrum.sum() == pytest.approx(1.0, abs=1e-10)
    square = np.prod([(1 + 4 * s**2 / GAUSS.bandwidth**2) ** -0.5 for s in GAUSS.scales])
    assert (GAUSS.spectrum**2).sum() == pytest.approx(square, rel=1e-12)


def test_each_result_names_its_method_and_statistic():
    x = features()
    found = {
        method: vendi_estimate(
            x,
            method=method,
            **({"order": 2.0} if method == "ustat" else {}),
            **({"components": 12} if method in METHODS[1:] else {}),
        )
        for method in [*METHODS, "ustat"]
    }
    assert {method: one.method for method, one in found.items()} == {
        "exact": "empirical",
        "truncated": "truncated",
        "nystrom": "nystrom",
        "fkea": "random-features",
        "lanczos": "lanczos",
        "ustat": "u-statistic",
    }
    # Quadrature estimates the same number; the other approximations are scores of their own.
    assert found["exact"].statistic == found["lanczos"].statistic
    assert len({one.statistic for one in found.values()}) == 5
    assert "depends-on-n" in codes(found["exact"])
    given = vendi_estimate(x, bandwidth=4.0, method="exact")
    assert len(found["exact"].assumptions) > len(given.assumptions)  # of a median bandwidth
    small = gb.vendi_score(x, method="truncated", components=40)
    assert "few-samples" in codes(small)
    assert gb.vendi_score(features(n=14, d=12), kernel="cosine").method == "empirical"
    assert gb.vendi_score(features(n=70, d=12), kernel="cosine").method == "third-order"


def test_open_method_is_truncated_for_many_rows_only_where_the_score_has_no_limit():
    x = features(n=2100, d=3)
    assert gb.vendi_score(x, bandwidth=1.0).method == "truncated"
    assert gb.vendi_score(x, bandwidth=1.0, order=2.0).method == "u-statistic"
    assert gb.vendi_score(x, kernel="cosine").method == "second-order"
    assert gb.vendi_score(x[:300], bandwidth=1.0).method == "empirical"


def test_compare_shares_one_bandwidth_and_orders_by_diversity():
    wide, narrow = features(1, n=400), 0.3 * features(2, n=300)
    for metric in ("rke", "vendi"):
        ranking = gb.compare({"narrow": narrow, "wide": wide}, metric=metric)
        assert ranking.best == "wide"
        assert ranking.differences[0].distinguishable
    by_reference = gb.compare({"a": wide, "b": narrow}, wide, metric="rke")
    sigma = median_bandwidth(wide)
    assert by_reference.scores["b"].value == pytest.approx(
        gb.vendi_score(narrow, bandwidth=sigma, order=2.0).value, rel=1e-12
    )


def test_different_statistics_are_not_ranked():
    x, y = features(1, n=90), features(2, n=100)
    base = {"bandwidth": 1.0, "method": "exact"}
    one = vendi_estimate(x, **base)
    for other in (
        vendi_estimate(y, **base),  # n-dependent, and n differs
        vendi_estimate(x, **{**base, "bandwidth": 2.0}),
        vendi_estimate(x, **base, order=2.0),
        vendi_estimate(x, bandwidth=1.0, method="truncated", components=10),
        vendi_estimate(x, kernel="cosine"),
    ):
        with pytest.raises(gb.InputError, match="different statistics"):
            rank({"a": one, "b": other}, metric="vendi")
    same = rank({"a": one, "b": vendi_estimate(y[:90], **base)}, metric="vendi")
    assert len(same.differences) == 1


GOOD = features(n=30)


@pytest.mark.parametrize(
    ("x", "arguments", "message"),
    [
        (GOOD, {"order": 0.0}, r"`order` must be a number in \(0, 64\], or inf; got 0.0"),
        (GOOD, {"order": math.nan}, "`order`"),
        (GOOD, {"method": "svd"}, "`method` must be one of"),
        (GOOD, {"kernel": "gauss"}, "`kernel` must be one of"),
        (GOOD, {"kernel": 3}, "`kernel` must be one of"),
        (GOOD, {"kernel": "cosine", "bandwidth": 1.0}, "'cosine' has none"),
        (GOOD, {"bandwidth": 0.0}, "`bandwidth` must be a positive"),
        (GOOD, {"method": "ustat"}, "'ustat' is for order 2"),
        (GOOD, {"method": "truncated"}, "`components` must be below"),
        (GOOD, {"method": "exact", "components": 3}, "`components` is not used"),
        (GOOD, {"method": "fkea", "kernel": "cosine"}, "shift-invariant"),
        (GOOD, {"method": "lanczos", "order": math.inf}, "finite orders"),
        (GOOD, {"estimator": "jackknife"}, "`estimator` must be one of"),
        (GOOD, {"level": 95}, "`level`"),
        (GOOD[:1], {}, "at least 2 samples"),
        (GOOD[0], {}, r"shape \(n, d\)"),
        (GOOD[:5], {"order": 2.0, "method": "ustat"}, "at least 8 samples"),
        (np.vstack([GOOD, np.full((1, 6), np.nan)]), {}, "NaN in row 30"),
        (np.vstack([GOOD, np.zeros((1, 6))]), {"kernel": "cosine"}, r"zero row \(30\)"),
        (GOOD, {"kernel": lambda a, b: np.ones(len(a))}, "must return shape"),
        (GOOD, {"kernel": lambda a, b: -np.ones((len(a), len(b)))}, "must be positive"),
        (GOOD, {"kernel": lambda a, b: 9 + a @ np.ones((6, 6)) @ b.T + a[:, :1]}, "symmetric"),
        (np.eye(40), {"kernel": "cosine", "order": 2.0}, "cannot be told from infinity"),
    ],
)
def test_bad_input_is_one_clear_error(x, arguments, message):
    with pytest.raises(gb.InputError, match=message):
        gb.vendi_score(x, **arguments)


def test_truth_of_the_arms_by_hand():
    assert vendi_truth(np.array([0.5, 0.5]), 1.0) == pytest.approx(2.0)
    assert vendi_truth(np.array([0.5, 0.3, 0.2]), 2.0, 2) == pytest.approx(1 / (0.6**2 + 0.4**2))


@pytest.mark.parametrize("landmarks", [20, 37])
def test_landmarks_are_those_of_scikit_learns_map(landmarks):
    """`landmarks=components` is the published method: as many rows drawn as eigenvalues kept."""
    kernel_approximation = pytest.importorskip("sklearn.kernel_approximation")
    x, t, sigma = features(n=300, d=4), 20, 2.0
    given = {"method": "nystrom", "components": t, "bandwidth": sigma, "estimator": "plugin"}
    drawn = np.random.default_rng(3).choice(300, landmarks, replace=False)
    mapped = kernel_approximation.Nystroem(gamma=0.5 / sigma**2, n_components=landmarks)
    spectrum = np.linalg.svd(mapped.fit(x[drawn]).transform(x), compute_uv=False) ** 2 / 300
    kept = spectrum[:t] + (1.0 - spectrum[:t].sum()) / t
    got = gb.vendi_score(x, landmarks=landmarks, seed=3, **given)
    assert_allclose(got.value, np.exp(-(kept * np.log(kept)).sum()), rtol=1e-9)
    assert f"{landmarks} landmarks" in str(got.details)


def test_five_landmarks_a_component_are_nearer_to_the_truncated_score():
    x = features(n=600, d=6)
    given = {"components": 30, "bandwidth": 2.0, "estimator": "plugin"}
    exact = gb.vendi_score(x, method="truncated", **given).value
    ours, published = (
        gb.vendi_score(x, method="nystrom", landmarks=landmarks, **given).value
        for landmarks in (None, 30)
    )
    assert ours == gb.vendi_score(x, method="nystrom", landmarks=150, **given).value
    assert abs(ours - exact) < 0.2 * abs(published - exact)


@pytest.mark.parametrize(
    ("method", "landmarks", "words"),
    [
        ("nystrom", 9, "must be from 10, the components, to 60, the rows; got 9"),
        ("nystrom", 61, "must be from 10"),
        ("nystrom", 0, "at least 1; got 0"),
        ("truncated", 10, "method 'nystrom' only"),
    ],
)
def test_landmarks_that_cannot_be_are_refused(method, landmarks, words):
    with refused("`landmarks`", words):
        gb.vendi_score(features(n=60), method=method, components=10, landmarks=landmarks)


@pytest.mark.parametrize("options", [{"kernel": "cosine"}, {"kernel": "cosine", "order": 1.5}])
def test_weights_that_are_nearly_equal_change_nearly_nothing(options):
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(300, 60)), 1.0 + 1e-6 * rng.random(300)
    plain, weighted = (gb.vendi_score(y, **options) for y in (x, gb.Sample(x, weights=weights)))
    assert plain.method == weighted.method == "third-order"
    assert weighted.value == pytest.approx(plain.value, rel=1e-7)
    assert weighted.stderr == pytest.approx(plain.stderr, rel=0.05)
