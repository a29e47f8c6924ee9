"""Kernel distances: direct sums, published definitions, exact variances, coverage, refusals."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from scipy.stats import binom, energy_distance
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import normalize

import genbounds as gb
from genbounds.estimators import KernelReference, PolynomialKernel, median_bandwidth
from genbounds.estimators.kernels import _pair_kernels
from tests.warnings_of import codes


def gaussian(x, y, bandwidth):
    return rbf_kernel(x, y, gamma=0.5 / bandwidth**2)


KERNELS = {
    "rbf": ({"bandwidth": 2.0}, lambda x, y: gaussian(x, y, 2.0)),
    "several": (
        {"kernel": "rbf", "bandwidth": [1.0, 4.0]},
        lambda x, y: (gaussian(x, y, 1.0) + gaussian(x, y, 4.0)) / 2.0,
    ),
    "cmmd": ({}, lambda x, y: 1000.0 * gaussian(normalize(x), normalize(y), 10.0)),
    "kad": ({"bandwidth": 3.0}, lambda x, y: 100.0 * gaussian(x, y, 3.0)),
    "energy": ({}, lambda x, y: -cdist(x, y)),
    "kid": ({"kernel": PolynomialKernel()}, partial(polynomial_kernel, degree=3)),
    "line": ({"kernel": PolynomialKernel(degree=1)}, partial(polynomial_kernel, degree=1)),
    "square": (
        {"kernel": PolynomialKernel(degree=2, gamma=0.3, offset=0.0)},
        partial(polynomial_kernel, degree=2, gamma=0.3, coef0=0.0),
    ),
}
OF_DISTANCES = ("rbf", "several", "cmmd", "kad", "energy")


def options_of(name):
    return {"kernel": name, **KERNELS[name][0]}


def direct(x, y, kernel, *, unbiased):
    """Sums over pairs, rounded once."""
    within = []
    for rows in (x, y):
        values = kernel(rows, rows).astype(np.longdouble)
        n = len(rows)
        own = np.trace(values)
        within.append((values.sum() - own) / (n * (n - 1)) if unbiased else values.sum() / n**2)
    return float(within[0] + within[1] - 2.0 * kernel(x, y).astype(np.longdouble).mean())


@pytest.mark.parametrize("sizes", [(40, 25), pytest.param((1500, 1100), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KERNELS)
def test_value_is_the_sum_over_pairs(name, sizes):
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (sizes[0], 7)), rng.normal(size=(sizes[1], 7))
    for estimator, unbiased in (("debiased", True), ("plugin", False)):
        score = gb.kernel_distance(x, y, estimator=estimator, **options_of(name))
        expected = direct(x, y, KERNELS[name][1], unbiased=unbiased)
        # The constant of the kernel costs the direct sum digits, not the library.
        assert score.value == pytest.approx(
            expected, rel=1e-10, abs=1e-12 if name != "cmmd" else 1e-11
        )


@pytest.mark.parametrize("bandwidth", [0.2, 1e5])
def test_bandwidths_far_from_the_distances_cost_no_digits(bandwidth):
    """Values of 1e-30 are not taken from 1, and values of 1 - 1e-10 are."""
    rng = np.random.default_rng(12)
    sizes = (1.0, 30), (0.0, 25)
    x, y = (rng.normal(m, 1.0, (n, 12)).astype(np.longdouble) for m, n in sizes)

    def kernel(a, b):
        exponent = -((a[:, None] - b[None]) ** 2).sum(axis=2) / (2.0 * bandwidth**2)
        values = np.expm1(exponent) if bandwidth > 1.0 else np.exp(exponent)
        if a is b:  # not part of it, and larger than all the rest
            np.fill_diagonal(values, 0.0)
        return values

    reference = KernelReference(y.astype(float), kernel="rbf", bandwidth=bandwidth)
    expected = direct(x, y, kernel, unbiased=True)
    assert reference.estimate(x.astype(float)).value == pytest.approx(expected, rel=1e-8, abs=0.0)


@pytest.mark.parametrize("name", ["rbf", "energy"])
def test_near_equality_the_quadratic_part_is_kept(name):
    """Influences of groups are small by chance where the value is low; the variance is not."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, y = (
            gb.Sample(rows_around(0.0, 1, size, 4, rng), groups=np.arange(4 * size) // 4 + first)
            for size, first in ((60, 0), (80, 1000))
        )
        found = KernelReference(y, **options_of(name)).estimate(x)
        for error in (found.sample, found.reference):
            assert error.variance >= 0.999 * (error.quadratic_variance + error.mixed_variance)


def test_polynomial_is_kid():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.3, 1.2, (40, 7)), rng.normal(size=(25, 7))
    assert gb.kernel_distance(x, y) == gb.kernel_inception_distance(x, y)
    kernel = PolynomialKernel(degree=2, gamma=0.3, offset=0.0)
    expected = gb.kernel_inception_distance(x, y, degree=2, gamma=0.3, offset=0.0)
    assert gb.kernel_distance(x, y, kernel=kernel) == expected


def test_energy_of_numbers_is_that_of_scipy():
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.3, 1.2, (40, 1)), rng.normal(size=(25, 1))
    score = gb.kernel_distance(x, y, kernel="energy", estimator="plugin")
    assert score.value == pytest.approx(energy_distance(x[:, 0], y[:, 0]) ** 2, rel=1e-12)


def test_kad_takes_the_median_distance_of_the_reference():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.3, 3.0, (300, 5)), rng.normal(size=(200, 5))
    found = gb.kernel_distance(x, y, kernel="kad")
    bandwidth = median_bandwidth(y)
    assert found.value == gb.kernel_distance(x, y, kernel="kad", bandwidth=bandwidth).value
    rbf = gb.kernel_distance(x, y, kernel="rbf")
    assert found.value == pytest.approx(100.0 * rbf.value, rel=1e-12)
    assert found.stderr == pytest.approx(100.0 * rbf.stderr, rel=1e-12)
    assert any(f"{bandwidth:.6g}" in line for line in found.assumptions)


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


@pytest.mark.parametrize("name", KERNELS)
def test_variance_is_made_of_centred_matrices(name):
    rng = np.random.default_rng(4)
    x, y = (rng.normal(shift, 1.0, (n, 5)) for shift, n in ((0.7, 53), (0.0, 61)))
    options, kernel = options_of(name), KERNELS[name][1]
    found = KernelReference(y, **options).estimate(x)
    crossed = kernel(x, y)
    for rows, k, error in ((x, crossed, found.sample), (y, crossed.T, found.reference)):
        n, m = k.shape
        own = kernel(rows, rows)
        square, shared = within_square(own.copy()), between_square(k)
        witness = (own.sum(axis=1) - np.diagonal(own)) / (n - 2) - k.mean(axis=1)
        linear = witness.var(ddof=1) - square / (n - 2) - shared / m
        expected = 4 * linear / n + 2 * square / (n * (n - 1)) + 2 * shared / (n * m)
        assert linear > 0.0
        assert error.variance == pytest.approx(expected, rel=1e-7)
        # 2 (w - mean w), by leaving out one row at a time.
        off = own - np.diag(np.diagonal(own))
        scores = [
            off[np.ix_(left, left)].sum() / ((n - 1) * (n - 2)) - 2.0 * k[left].mean()
            for left in (np.delete(np.arange(n), i) for i in range(n))
        ]
        expected_influence = (n - 1) * (np.mean(scores) - scores)
        np.testing.assert_allclose(error.influence, expected_influence, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "given", "used"), [(10, "f4", "f8"), (11, "f4", "f4"), (11, "f8", "f8")]
)
def test_single_precision_serves_many_rows_that_have_no_more(monkeypatch, rows, given, used):
    monkeypatch.setattr(_pair_kernels, "SINGLE_ROWS", 10)
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(given)
    kernel = _pair_kernels.Polynomial(degree=3, gamma=1.0, offset=1.0)
    for _, block in _pair_kernels.prepared_blocks(x, kernel):
        assert block.dtype == used


def test_pairs_of_outliers_are_relied_on_by_kernels_that_they_cannot_dominate():
    """Radial kernels are at most 1, the energy kernel grows no faster than its linear part."""
    kinds = _pair_kernels.Polynomial, _pair_kernels.Radial, _pair_kernels.Energy
    assert [kind.bounded for kind in kinds] == [False, True, True]


@pytest.mark.parametrize("name", OF_DISTANCES)
def test_a_far_centre_costs_no_digits(name):
    """Distances do not see it. CMMD sees directions, which are then nearly all one."""
    rng = np.random.default_rng(5)
    x, y = (np.round(rng.normal(m, 1.0, (60, 3)) * 2**20) / 2**20 for m in (0.5, 0.0))
    here, far = (KernelReference(y + c, **options_of(name)).estimate(x + c) for c in (0.0, 2.0**20))
    if name == "cmmd":
        truth = direct(x + 2.0**20, y + 2.0**20, lambda a, b: -5.0 * of_angles(a, b), unbiased=True)
        assert far.value == pytest.approx(truth, rel=1e-3, abs=0.0)
    else:
        assert far.value == pytest.approx(here.value, rel=1e-9)
        assert far.stderr == pytest.approx(here.stderr, rel=1e-7)


def of_angles(a, b):
    """‖x/|x| - y/|y|‖² in extended precision; CMMD is -5 times that where it is small."""
    a, b = (rows.astype(np.longdouble) for rows in (a, b))
    a, b = (rows / np.sqrt((rows**2).sum(axis=1, keepdims=True)) for rows in (a, b))
    return ((a[:, None] - b[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("factor", [1e-140, 1e-30, 1e30, 1e140])
@pytest.mark.parametrize("name", ["kad", "energy", "cmmd"])
def test_features_of_extreme_size(name, factor):
    """KAD and CMMD do not see the unit of the features; the energy distance has it."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(0.5, 1.0, (60, 3)), rng.normal(size=(50, 3))
    if name == "energy" and not 1e-96 < factor < 1e96:  # the cube of its error has no number
        with pytest.raises(gb.InputError, match="multiply the features"):
            gb.kernel_distance(factor * x, factor * y, kernel=name)
        return
    one, other = (gb.kernel_distance(c * x, c * y, kernel=name) for c in (1.0, factor))
    unit = factor if name == "energy" else 1.0
    assert other.value == pytest.approx(unit * one.value, rel=1e-9, abs=0.0)
    assert other.stderr == pytest.approx(unit * one.stderr, rel=1e-9, abs=0.0)


@pytest.mark.parametrize(("degree", "factor"), [(2, 1e-200), (3, 1e-100), (3, 1e150)])
def test_a_polynomial_without_offset_of_features_beyond_double_precision(degree, factor):
    x, y = factor * np.random.default_rng(0).normal(size=(2, 50, 4))
    kernel = PolynomialKernel(degree=degree, offset=0.0)
    with pytest.raises(gb.InputError, match="multiply the features"):
        gb.kernel_distance(x, y, kernel=kernel)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kad", "kid"])
def test_torch_and_single_precision(name):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    x, y = (rng.normal(m, 1.0, (4200, 8)).astype(np.float32) for m in (0.2, 0.0))
    options = {"kernel": KERNELS[name][0].get("kernel", name)}
    score = gb.kernel_distance(torch.from_numpy(x), torch.from_numpy(y), **options)
    assert score == gb.kernel_distance(x, y, **options)
    wide = gb.kernel_distance(x.astype(float), y.astype(float), **options)
    assert score.value == pytest.approx(wide.value, abs=1e-3 * wide.stderr)
    assert score.stderr == pytest.approx(wide.stderr, rel=1e-4)


@pytest.mark.parametrize("name", ["kad", "energy"])
def test_a_design_of_single_rows_is_independent_rows(name):
    """Both ways to the same numbers; that of designs looks at some pairs only."""
    rng = np.random.default_rng(11)
    x, y = gb.Sample(rng.normal(0.5, 1.0, (150, 3))), gb.Sample(rng.normal(size=(170, 3)))
    reference = KernelReference(y, kernel=name)
    plain = reference.estimate(x)
    reference._must_expand = lambda design: True
    designed = reference.estimate(x)
    assert designed.value == pytest.approx(plain.value, rel=1e-10)
    for side in ("sample", "reference"):
        one, two = getattr(designed, side), getattr(plain, side)
        assert one.variance == pytest.approx(two.variance, rel=0.03)
        assert one.curvature == pytest.approx(two.curvature, rel=0.03)
        assert one.skewness == pytest.approx(two.skewness, rel=0.1)


def truth_of(kernel, shift, d):
    """Distance of N(μ, I) and N(0, I), ‖μ‖ = shift, for σ = 2; energy for d = 1."""
    if kernel == "rbf":
        near = (4.0 / 6.0) ** (d / 2.0)
        return 2.0 * near * -np.expm1(-(shift**2) / 12.0)
    root = np.sqrt(2.0)

    def apart(t):
        return root * np.sqrt(2.0 / np.pi) * np.exp(-(t**2) / 4.0) + t * (
            1.0 - 2.0 * ndtr(-t / root)
        )

    return 2.0 * (apart(shift) - apart(0.0))


def rows_around(shift, d, groups, each, rng):
    """Rows of N(μ, I); those of one group have correlation 0.8."""
    common = np.repeat(rng.normal(size=(groups, d)), each, axis=0)
    x = np.sqrt(0.8) * common + np.sqrt(0.2) * rng.normal(size=(groups * each, d))
    x[:, 0] += shift
    return x


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("kernel", "d", "shift"), [("rbf", 4, 0.0), ("energy", 1, 1.0)])
def test_coverage(kernel, d, shift):
    """Of equal distributions and of far ones, against truths in closed form.

    H0: at least 92 % of 500 intervals at 95 % hold the truth; a false alarm has probability 1e-6.
    Power: an interval of half the length holds a far truth with 67 %, missed with 1e-20.
    """
    options = {"bandwidth": 2.0} if kernel == "rbf" else {}
    truth, hits, runs = truth_of(kernel, shift, d), 0, 500
    for stream in np.random.SeedSequence(8).spawn(runs):
        rng = np.random.default_rng(stream)
        x, y = rows_around(shift, d, 80, 1, rng), rows_around(0.0, d, 100, 1, rng)
        found = gb.kernel_distance(gb.Sample(x), gb.Sample(y), kernel=kernel, **options)
        hits += found.low <= truth <= found.high
    assert hits >= binom.ppf(1e-6, runs, 0.92)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize(("kernel", "d"), [("rbf", 4), ("energy", 1)])
def test_coverage_of_groups(kernel, d, shift):
    """Four rows a prompt, told and untold.

    H0: at least 90 % of 200 at 95 % when told; a false alarm has probability 1e-6. Untold intervals
    hold fewer than that: the designs matter. An interval below the range does not count. Of equal
    distributions on a line untold intervals, cut at 0, hold 86 %: told ones are tested only.
    """
    options = {"bandwidth": 2.0} if kernel == "rbf" else {}
    truth, runs, hits = truth_of(kernel, shift, d), 200, np.zeros(2, dtype=int)
    for stream in np.random.SeedSequence(9).spawn(runs):
        rng = np.random.default_rng(stream)
        x, y = rows_around(shift, d, 60, 4, rng), rows_around(0.0, d, 80, 4, rng)
        for k, told in enumerate((True, False)):
            samples = [
                gb.Sample(rows, groups=start + np.arange(len(rows)) // 4 if told else None)
                for rows, start in ((x, 0), (y, 1000))
            ]
            found = gb.kernel_distance(*samples, kernel=kernel, **options)
            believed = "out-of-range" not in codes(found, "unreliable")
            hits[k] += believed and found.low <= truth <= found.high
    gate = binom.ppf(1e-6, runs, 0.9)
    assert hits[0] >= gate
    assert hits[1] < (runs if (kernel, shift) == ("energy", 0.0) else gate)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gb.kernel_distance(x, x, kernel="mmd"), "'polynomial', 'rbf', 'cmmd', 'kad'"),
        (lambda x: gb.kernel_distance(x, x, kernel="energy", bandwidth=1.0), "'energy' has none"),
        (lambda x: gb.kernel_distance(x, x, bandwidth=1.0), "'polynomial' has none"),
        (lambda x: gb.kernel_distance(x, x, kernel="rbf", bandwidth=[]), "empty"),
        (lambda x: gb.kernel_distance(x, x, kernel="rbf", bandwidth=[1.0, -1.0]), "positive"),
        (lambda x: gb.kernel_distance(x, x, kernel="rbf", bandwidth=0.0), "positive"),
        (lambda x: gb.kernel_distance(x, x, kernel="rbf", bandwidth=1e-90), "too far"),
        (lambda x: gb.kernel_distance(np.vstack([x, 0 * x[:1]]), x, kernel="cmmd"), "row .10."),
        (lambda x: gb.kernel_distance(gb.Moments.from_features(x), x, kernel="kad"), "moments"),
        (lambda x: gb.kernel_distance(x[:3], x, kernel="energy"), "at least 4"),
        (lambda x: KernelReference(x, kernel="kad", degree=2), "polynomial"),
        (lambda x: gb.compare({"a": x}, x, metric="energy", options={"bandwidth": 1}), "options"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(gb.InputError, match=words):
        call(np.random.default_rng(10).normal(size=(10, 3)))


@pytest.mark.parametrize("kernel", ["rbf", "kad"])
def test_reference_rows_that_are_mostly_equal_have_a_bandwidth(kernel):
    """Their median distance is 0: with that as bandwidth every score was 0, reliable."""
    rng = np.random.default_rng(1)
    real = rng.normal(size=(300, 4))
    real[:261] = 0.0
    near, far = (
        gb.kernel_distance(rng.normal(m, 1, (300, 4)), real, kernel=kernel) for m in (0, 5)
    )
    assert 0.0 < near.value < far.value
    assert near.stderr > 0.0
    same = gb.kernel_distance(rng.normal(size=(300, 4)), np.zeros((300, 4)), kernel=kernel)
    assert not same.reliable


@pytest.mark.parametrize("bandwidth", [1e-3, 1e-2, 0.1, 1.0, 30.0])
def test_a_bandwidth_that_sees_nothing_is_called_so(bandwidth):
    """A shift of 100 standard deviations was "0 [0, 0]", reliable."""
    rng = np.random.default_rng(0)
    real, fake = rng.normal(size=(200, 8)), rng.normal(size=(200, 8)) + 100.0
    found = gb.kernel_distance(fake, real, kernel="rbf", bandwidth=bandwidth)
    assert ("implausible-input" in {w.code for w in found.warnings}) == (bandwidth < 0.5)
    told = gb.Sample(fake, groups=np.arange(200) // 4)
    found = gb.kernel_distance(told, real, kernel="rbf", bandwidth=bandwidth)
    assert ("implausible-input" in {w.code for w in found.warnings}) == (bandwidth < 0.5)
