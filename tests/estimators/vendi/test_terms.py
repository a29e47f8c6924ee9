"""First- and second-order terms of the log Vendi score against its derivatives, and coverage."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import genbounds as gb
from genbounds.estimators import vendi_expansion
from genbounds.estimators.kernels._kernels import KernelRows
from genbounds.estimators.vendi import _routes, _terms
from genbounds.estimators.vendi._expansion import PAIRING_SEED, spectral_bias, spectral_terms
from genbounds.estimators.vendi._spectrum import FeatureRows, from_features, from_gram
from genbounds.simulate import RbfArm, SphereClustersArm, vendi_truth


def unit_rows(n=10, d=4, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * [2.0, 1.2, 0.8, 0.5]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def log_score(values, order, kept):
    values = sorted(values, reverse=True)
    if kept is not None:
        head = values[:kept]
        values = [v + (1 - sum(head)) / kept for v in head]
    if order == math.inf:
        return -mpmath.log(max(values))
    if order == 1:
        return -sum(v * mpmath.log(v) for v in values)
    return mpmath.log(sum(v ** mpmath.mpf(order) for v in values)) / (1 - mpmath.mpf(order))


def derivatives(rows, directions, order, kept):
    """First and half the second derivative along C + ε Σ (φφᵀ - C), in forty digits."""
    with mpmath.workdps(40):
        exact = [[mpmath.mpf(float(v)) for v in row] for row in rows]
        d = len(exact[0])
        outer = [mpmath.matrix(d, d) for _ in exact]
        for matrix, row in zip(outer, exact, strict=True):
            for i in range(d):
                for j in range(d):
                    matrix[i, j] = row[i] * row[j]
        cov = sum(outer[1:], outer[0]) / len(exact)
        step_cov = sum((outer[i] - cov for i in directions), mpmath.matrix(d, d))

        def at(eps):
            return log_score(mpmath.eigsy(cov + eps * step_cov, eigvals_only=True), order, kept)

        step = mpmath.mpf(10) ** -12
        minus, zero, plus = at(-step), at(mpmath.mpf(0)), at(step)
        return float((plus - minus) / (2 * step)), float((plus + minus - 2 * zero) / step**2 / 2)


CASES = [(0.5, None), (1.0, None), (2.0, None), (3.0, None), (math.inf, None), (1.0, 2), (2.0, 3)]


@pytest.mark.parametrize("side", ["features", "gram"])
@pytest.mark.parametrize(("order", "kept"), CASES)
def test_terms_are_the_derivatives_of_the_score(order, kept, side, monkeypatch):
    """Influence and quadratic kernel of every row, from either side, share no formula with this.

    A cut spectrum softens the coupling of eigenvalues that the sample cannot tell apart; here it
    is told that the sample is so large that none are.
    """
    real = _terms.derivatives
    monkeypatch.setattr(
        _terms, "derivatives", lambda values, **given: real(values, **{**given, "n": 10**15})
    )
    monkeypatch.setattr(_terms, "SHIFTS", 1)
    rows = unit_rows()
    n = len(rows)
    features = FeatureRows.of(rows)
    spectrum = from_features(features) if side == "features" else from_gram(rows @ rows.T)
    terms = spectral_terms(spectrum.coordinates, spectrum.values, n=n, order=order, kept=kept)
    first, own = np.array([derivatives(rows, [i], order, kept) for i in range(n)]).T
    assert_allclose(terms.bias, own.mean() / (n - 1), rtol=1e-7)
    leave_one_out = first - first.mean() - 2 / n * (own - own.mean())
    assert_allclose(terms.influence, leave_one_out, rtol=1e-7, atol=1e-9)
    shuffled = np.random.default_rng(PAIRING_SEED).permutation(n)  # each row with the one before
    kernel = [
        (derivatives(rows, [i, j], order, kept)[1] - own[i] - own[j]) / 2
        for i, j in zip(shuffled, np.roll(shuffled, 1), strict=True)
    ]
    first_order = leave_one_out.var(ddof=1) / n
    second_order = 2 * np.mean(np.square(kernel)) / n**2
    expected = max(first_order - second_order, second_order)
    assert terms.variance == pytest.approx(expected, rel=1e-6)


def test_a_remainder_stands_for_eigenpairs_that_are_not_known():
    """Truncated: the terms from four eigenpairs and the norms, against those from all of them.

    The rest, spread over 60 eigenvalues, makes a good part of the bias.
    """
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 64)) * ([3.0, 2.0, 1.5, 1.2] + [0.15] * 60)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    spectrum = from_features(FeatureRows.of(rows))
    given = {"n": 400, "order": 1.0, "kept": 3}
    whole = spectral_terms(spectrum.coordinates, spectrum.values, **given)
    part = spectrum.head(4)
    some = spectral_terms(part.coordinates, part.values, **given)
    assert part.values.size == 4
    assert some.bias == pytest.approx(whole.bias, rel=0.02)
    assert some.variance == pytest.approx(whole.variance, rel=0.02)

    def without_remainder(index):
        for positions, z in part.coordinates(None):
            yield positions, z / np.linalg.norm(z, axis=1, keepdims=True)

    control = spectral_terms(without_remainder, part.values, **given)
    assert abs(control.bias / whole.bias - 1.0) > 0.1


UNEVEN = SphereClustersArm(tuple(1 / j / 2.9289682539682538 for j in range(1, 11)), (1,) * 10)
SPHERES = SphereClustersArm((0.5, 0.3, 0.2), (3, 6, 9))
GAUSS = RbfArm((2.0, 1.0, 1.0, 0.5), 2.0)
COVERAGE = {
    "clusters, order 1": (UNEVEN, {"kernel": "cosine"}, 800),
    "clusters, order 2": (UNEVEN, {"kernel": "cosine", "order": 2.0}, 800),
    "clusters, order inf": (UNEVEN, {"kernel": "cosine", "order": math.inf}, 800),
    "spheres, order 1": (SPHERES, {"kernel": "cosine"}, 800),
    "rbf, order 2": (GAUSS, {"bandwidth": 2.0, "order": 2.0}, 800),
    "rbf, order inf": (GAUSS, {"bandwidth": 2.0, "order": math.inf}, 100),
    "rbf, truncated": (GAUSS, {"bandwidth": 2.0, "method": "truncated", "components": 10}, 100),
}
FALSE_ALARM = 1e-7


@pytest.mark.statistical
@pytest.mark.parametrize("name", COVERAGE)
def test_intervals_cover_between_92_and_98_percent(name):
    """Null: true coverage in [0.92, 0.98] at n = 500 (the full study: docs/vendi.md).

    Exact binomial gates, false alarm 1e-7 a row. Power: intervals of 0.4 times the width (true
    coverage 0.57) are caught with probability above 0.999 even at 100 replications; run as a
    control.
    """
    arm, given, replications = COVERAGE[name]
    target = vendi_truth(arm.spectrum, given.get("order", 1.0), given.get("components"))
    rng = np.random.default_rng(7)
    hits = control = 0
    for _ in range(replications):
        score = gb.vendi_score(arm.draw(500, rng), **given)
        hits += score.low <= target <= score.high
        control += abs(math.log(score.value / target)) <= 0.4 * 1.96 * score.stderr / score.value
    low = stats.binom.ppf(FALSE_ALARM, replications, 0.92)
    high = stats.binom.isf(FALSE_ALARM, replications, 0.98)
    assert low <= hits <= high
    assert control < low


@pytest.mark.statistical
@pytest.mark.parametrize("order", [1.0, 3.0])
def test_the_bias_is_removed(order):
    """Null: the debiased log score of 200 rows is centred on the truth (before it is clipped).

    200 samples; gate at six standard errors of their mean, false alarm below 1e-8. Power: the
    plug-in misses the truth by more than twelve of them, run as a control; so would half of the
    bias.
    """
    arm = SphereClustersArm((0.25, 0.75), (4, 16))  # nearly flat: little first-order noise
    given = {"kernel": "cosine", "order": order}
    rng = np.random.default_rng(9)
    target = math.log(vendi_truth(arm.spectrum, order))
    errors = []
    for _ in range(200):
        rows = arm.draw(200, rng)
        errors.append(
            [
                vendi_expansion(rows, estimator=estimator, **given).value - target
                for estimator in ("debiased", "plugin")
            ]
        )
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0) / math.sqrt(len(errors))
    assert abs(mean[0]) < 6 * spread[0]
    assert abs(mean[1]) > 12 * spread[1]


@pytest.mark.statistical
def test_rke_u_statistic_and_its_variance_are_unbiased():
    """Null: the mean of U is E k², and of its variance the variance of U.

    4,000 samples of 60 rows: the means have standard errors of 0.5 % and 2 % of the spread; gates
    at six of their own estimated errors, false alarm below 1e-8. Power: keeping the diagonal moves
    U by 16 of them, losing the second-order part of the variance moves that by a third.
    """
    from genbounds.estimators.kernels._rke import frobenius

    arm = RbfArm((1.0, 1.0, 1.0, 1.0, 1.0, 1.0), 1.0)
    rng = np.random.default_rng(3)
    results = [frobenius(KernelRows(arm.draw(60, rng), "rbf", 1.0)) for _ in range(4000)]
    values = np.array([r.value for r in results])
    error = values - 1.0 / vendi_truth(arm.spectrum, 2.0)
    assert abs(error.mean()) < 6 * error.std() / math.sqrt(error.size)
    gap = np.array([r.variance for r in results]) - error**2
    assert abs(gap.mean()) < 6 * gap.std() / math.sqrt(gap.size)
    plugin = np.array([r.plugin for r in results]) - 1.0 / vendi_truth(arm.spectrum, 2.0)
    assert abs(plugin.mean()) > 6 * plugin.std() / math.sqrt(plugin.size)


@pytest.mark.parametrize(("order", "kept"), CASES)
def test_parts_that_cover_every_row_change_only_rounding(monkeypatch, order, kept):
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(501, 12)) * np.arange(1, 13) ** -0.5
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    spectrum = from_features(FeatureRows.of(rows))
    given = {"n": 501, "order": order, "kept": kept}
    whole = spectral_terms(spectrum.coordinates, spectrum.values, **given)
    monkeypatch.setattr(_terms, "PART_ROWS", 100)
    monkeypatch.setattr(_terms, "PART_WORK", 1)
    monkeypatch.setattr(_terms, "PART_NOISE", -1.0)  # never satisfied: all parts are used
    parts = spectral_terms(spectrum.coordinates, spectrum.values, every_row=False, **given)
    assert parts.bias == pytest.approx(whole.bias, rel=1e-9)
    assert_allclose(np.sort(parts.influence), np.sort(whole.influence), rtol=1e-7, atol=1e-10)
    assert parts.variance == pytest.approx(whole.variance, rel=0.1)  # other pairs of rows


def test_below_order_one_every_row_is_looked_at(monkeypatch):
    """There the influence of a rare row grows without bound, and a part would see none of them."""
    monkeypatch.setattr(_terms, "PART_ROWS", 100)
    monkeypatch.setattr(_terms, "PART_WORK", 1)
    rows = np.eye(30)[np.r_[np.arange(2990) % 20, 20:30]]
    spectrum = from_features(FeatureRows.of(rows))
    given = {"n": 3000, "kept": None, "every_row": False}
    terms = spectral_terms(spectrum.coordinates, spectrum.values, order=0.3, **given)
    assert terms.influence.size == 3000
    common = np.partition(terms.influence, -10)[:-10]
    assert terms.variance > 2.0 * common.var() / 3000
    part = spectral_terms(spectrum.coordinates, spectrum.values, order=1.0, **given)
    assert part.influence.size < 3000


@pytest.mark.parametrize("method", ["exact", "fkea"])
def test_products_in_float32_are_accurate(monkeypatch, method):
    """Network features in float32 against the same in float64: far below a standard error."""
    from genbounds.estimators.kernels import _kernels

    rng = np.random.default_rng(4)
    rows = rng.standard_normal((4200, 24)) * np.arange(1, 25) ** -0.5
    rows = rows.astype(np.float32)
    given = {"kernel": "cosine"} if method == "exact" else {"bandwidth": 2.0, "components": 20}
    for order in (0.5, 1.0, math.inf):
        single = gb.vendi_score(rows, method=method, order=order, **given)
        with monkeypatch.context() as patch:
            patch.setattr(_kernels, "SINGLE_ROWS", 10**9)
            double = gb.vendi_score(rows, method=method, order=order, **given)
        assert single.value == pytest.approx(double.value, rel=1e-6)
        assert single.value != double.value  # it was in float32
        assert single.stderr == pytest.approx(double.stderr, rel=1e-4)


def test_small_orders_of_float32_rows_see_eigenvalues_below_its_rounding():
    """Order 0.3, where 20 directions of scale 1e-4 count; products in float32 drown them."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((5000, 23)) * np.r_[1.0, 0.5, 0.4, np.full(20, 1e-4)]
    rows = rows.astype(np.float32)
    given = {"kernel": "cosine", "order": 0.3, "estimator": "plugin"}
    expected = gb.vendi_score(rows.astype(np.float64), **given)
    assert gb.vendi_score(rows, **given).value == pytest.approx(expected.value, rel=1e-4)
    three = gb.vendi_score(rows[:, :3], **given)
    assert abs(expected.value / three.value - 1.0) > 0.02
    # and a sample in three directions of 23 has no more at any order
    rows[:, 3:] = rows[:, :1]
    for order in (0.3, 1.0):
        single, double = (
            gb.vendi_score(x, kernel="cosine", order=order) for x in (rows, rows.astype(float))
        )
        assert single.value == pytest.approx(double.value, rel=1e-4)
        assert single.stderr == pytest.approx(double.stderr, rel=1e-2)


def test_a_part_stands_for_all_rows_within_the_noise_it_admits(monkeypatch):
    """40 samples: bias from a tenth of the rows against all, in units of the stated noise.

    The mean square of 40 standard normals is below 2.6 but for 1e-7; averaging h itself instead of
    what is not linear in z² is off by a factor of ten in it.
    """
    rng = np.random.default_rng(6)
    monkeypatch.setattr(_terms, "PART_ROWS", 200)
    monkeypatch.setattr(_terms, "PART_WORK", 1)
    monkeypatch.setattr(_terms, "PART_NOISE", math.inf)  # one part is enough
    squares = []
    for _ in range(40):
        rows = rng.normal(size=(2000, 15)) * np.arange(1, 16) ** -0.5
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        spectrum = from_features(FeatureRows.of(rows))
        given = {"n": 2000, "order": 1.0, "kept": None}
        whole = spectral_terms(spectrum.coordinates, spectrum.values, **given)
        part = spectral_terms(spectrum.coordinates, spectrum.values, every_row=False, **given)
        assert part.influence.size == 200
        squares.append((part.bias - whole.bias) ** 2)
        noise = 0.9 * np.var(_rest(rows, spectrum)) / 200 / 2000**2
    assert np.mean(squares) < 2.6 * noise


def _rest(rows, spectrum):
    """Part of h(x, x) that is not linear in the squared coordinates."""
    at = _terms.derivatives(spectrum.values, order=1.0, kept=None, n=len(rows))
    z = np.concatenate([block for _, block in spectrum.coordinates(None)])
    excess = z**2 - spectrum.values
    return 0.5 * (excess**2 @ at.curvature + at.coupling.form(excess))


@pytest.mark.parametrize("order", [0.5, 1.0, math.inf])
def test_the_second_half_is_the_whole_without_the_first(order):
    """Spectra of both halves from the whole's second moments, against each half's own."""
    job = _routes.Job(
        rows=KernelRows(unit_rows(101, 4), "cosine", None),
        order=order,
        plugin=False,
        components=1,
        seed=0,
        every_row=True,
    )
    features = FeatureRows.of(job.rows.rows)
    quick = list(_routes._half_spectra(job, features, features.gram()))
    plain = list(_routes._half_spectra(job, features, None))
    assert [n for _, n in quick] == [n for _, n in plain] == [51, 50]
    for (one, n), (two, _) in zip(quick, plain, strict=True):
        assert_allclose(one.values, two.values, rtol=1e-12)
        given = {"n": n, "order": order}
        value, bias, noise = spectral_bias(one.coordinates, one.values, every_row=True, **given)
        terms = spectral_terms(two.coordinates, two.values, kept=None, **given)
        assert (value, bias) == pytest.approx((terms.value, terms.bias), rel=1e-10)
        assert noise == terms.noise == 0.0


def test_unit_rows_are_made_alike_before_and_after_all_are():
    x = np.random.default_rng(1).normal(size=(20, 3))
    rows, index = KernelRows(x, "cosine", None), np.array([3, 17])
    before = rows.unit_rows(index)
    assert_allclose(before, x[index] / np.linalg.norm(x[index], axis=1, keepdims=True), rtol=1e-14)
    assert_allclose(rows.rows[index], before, rtol=0)
    assert_allclose(rows.subset(index).unit_rows(slice(None)), before, rtol=0)
