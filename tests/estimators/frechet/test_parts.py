"""Large samples: a part of the rows stands for all of them, and triangles for whole matrices."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import genbounds as gb
from genbounds.core import expansion as _second_order
from genbounds.core import moments as _moments
from genbounds.estimators import FrechetReference, Moments, transport_from_sums
from genbounds.estimators._extrapolation import extrapolate
from genbounds.estimators.frechet import _form, _pair, _running, _sample
from genbounds.estimators.frechet._form import RootHessian, exponential_factor
from genbounds.estimators.frechet._gaussian import fourth_moments
from genbounds.estimators.frechet._pair import FrechetPair
from genbounds.estimators.frechet._sample import sample_of

PART_NOISE = _second_order.PART_NOISE


def small_parts(monkeypatch, rows, noise=PART_NOISE):
    for module in (_pair, _form):
        monkeypatch.setattr(module, "PART_ROWS", rows)
        monkeypatch.setattr(module, "PART_WORK", 1)
    monkeypatch.setattr(_second_order, "PART_NOISE", noise)


def skewed_rows(seed, n, d, stretch=1.0):
    rng = np.random.default_rng(seed)
    mix = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0] / np.arange(1, d + 1) ** 0.3
    return stretch * (rng.gamma(2.0, size=(n, d)) - 2.0) @ mix


@pytest.mark.parametrize("n", [600, 601, 650])
def test_parts_that_cover_every_row_change_only_rounding(monkeypatch, n):
    x, y = skewed_rows(2, n, 6, 1.2), skewed_rows(3, 640, 6)
    samples = sample_of("fake", x), sample_of("real", y)
    whole = FrechetPair(*samples)
    some_rows = FrechetPair(*samples, every_row=False)
    small_parts(monkeypatch, 100, noise=-1.0)  # never satisfied: all parts are used
    for k in (0, 1):
        some, every = some_rows.error_of(k), whole.error_of(k)
        assert some.bias == pytest.approx(every.bias, rel=1e-12)
        # E h(x, x')² comes from other pairs of rows.
        assert some.variance == pytest.approx(every.variance, rel=0.2)
        assert_allclose(some.influence, every.influence, rtol=1e-9)
        assert some.degrees_of_freedom == every.degrees_of_freedom


def test_the_linear_part_of_the_kernel_has_the_mean_that_is_used():
    x, y = skewed_rows(4, 300, 5), skewed_rows(5, 400, 5, 1.3)
    pair = FrechetPair(sample_of("fake", x), sample_of("real", y))
    for form in pair.forms.values():
        ((positions, block),) = form.blocks(None)
        terms = form.terms(block, positions)
        own, known = terms.own, terms.known
        assert known.mean() == pytest.approx(form.known_mean, rel=1e-10)
        # What is left to average varies less than the whole: the point of it.
        assert np.var(own - known) < 0.6 * np.var(own)


@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.floats(0.0, 16.0),
    st.sampled_from([1e-20, 1.0, 1e20]),
)
def test_the_factor_of_the_weights_is_exact_at_any_spread_of_the_roots(seed, r, decades, unit):
    roots = unit * 10.0 ** np.random.default_rng(seed).uniform(-decades, 0.0, size=r)
    factor = exponential_factor(roots)
    weights = np.outer(roots, roots) / np.add.outer(roots, roots) / 2.0
    assert_allclose(factor @ factor.T, weights, rtol=2e-11)
    assert factor.shape[1] < 120 + 7 * decades


def test_products_with_the_factor_are_those_with_the_weights(monkeypatch):
    x, y = skewed_rows(14, 300, 12), skewed_rows(15, 400, 12, 1.3)
    fake, real = sample_of("fake", x), sample_of("real", y)
    narrow = FrechetPair(fake, real)
    expected = narrow.expand().errors
    monkeypatch.setattr(_form, "WIDE", 0)
    wide = FrechetPair(fake, real)
    for got, want in zip(wide.expand().errors, expected, strict=True):
        for name in ("bias", "variance", "curvature"):
            assert getattr(got, name) == pytest.approx(getattr(want, name), rel=1e-9)
        assert_allclose(got.influence, want.influence, rtol=1e-9)
    slopes = RootHessian(wide.directions.roots).slopes
    wide_bias = wide.gaussian_bias(wide.directions.singular)
    monkeypatch.undo()
    assert_allclose(slopes, RootHessian(narrow.directions.roots).slopes, rtol=1e-9)
    assert wide_bias == pytest.approx(narrow.gaussian_bias(narrow.directions.singular), rel=1e-10)


def test_a_part_of_the_rows_stands_for_all(monkeypatch):
    """The two values differ by less than 8 of the standard errors given to the part's noise."""
    x, y = skewed_rows(6, 900, 16, 1.1), skewed_rows(7, 800, 16)
    reference = FrechetReference(y)
    every = reference.estimate(x)
    small_parts(monkeypatch, 100)
    some = reference.estimate(x, influences=False)
    noise = np.sqrt(PART_NOISE * some.stderr**2)
    assert 0.0 < abs(some.value - every.value) < 8 * noise
    assert some.stderr == pytest.approx(every.stderr, rel=0.3)
    assert some.sample.degrees_of_freedom < every.sample.degrees_of_freedom
    assert some.sample.influence is None
    assert every.sample.influence.shape == (900,)
    assert reference.estimate(x, influences=False) == some  # the same part at every call
    assert some.method == "third-order"
    # The control: a value with the bias left in is outside.
    assert abs(some.value - reference.plugin(x)) > 8 * noise


def test_the_second_half_takes_its_excess_from_the_first(monkeypatch):
    """Nearly the same as with terms of its own; the control, no excess, is far off."""
    rng = np.random.default_rng(12)
    x, y = (rng.standard_t(5, size=(2000, 12)) * scale for scale in (1.2, 1.0))
    parts = [sample_of("x", z).halves() for z in (x, y)]

    def halves(every_row):
        return [FrechetPair(*half, every_row=every_row) for half in zip(*parts, strict=True)]

    exact = np.mean(_pair._half_values(halves(True)))
    small_parts(monkeypatch, 100, noise=-1.0)
    error = np.mean(_pair._half_values(halves(False))) - exact
    first = halves(True)[0]
    excess = first.bias() - first.gaussian_bias(first.directions.singular)
    assert 0.0 < abs(error) < 0.25 * excess / 2.0
    assert abs(error + excess / 2.0) > 0.5 * excess / 2.0


def test_reference_influences_keep_every_row(monkeypatch):
    """Differences of models need them: `compare` never works on parts."""
    small_parts(monkeypatch, 50)
    x, y = skewed_rows(8, 400, 4, 1.2), skewed_rows(9, 500, 4)
    assert FrechetReference(y).estimate(x).reference.influence.shape == (500,)
    ranking = gb.compare({"a": x, "b": 1.5 * x}, y)
    assert ranking.best == "a"


@pytest.mark.parametrize("d", [1, 7, 256, 301])
@pytest.mark.parametrize("rank", ["full", "singular"])
def test_products_that_skip_zeros(d, rank):
    """The roots, with vectors and without, are those of plain products; nothing is overwritten."""
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(2, 2 * d + 9, d)) * np.linspace(1.0, 2.0, d)
    if rank == "singular":
        y[:, -1] = y[:, 0]
    pair = FrechetPair(sample_of("fake", x), sample_of("real", y))
    before = pair.fake.cov.copy()
    plain = np.linalg.svd(pair.fake.factor.T @ pair.real.factor, compute_uv=False)
    assert_allclose(pair.roots_alone, plain, rtol=1e-9, atol=1e-7)
    assert_allclose(pair.directions.singular, plain, rtol=1e-9, atol=1e-7)
    assert np.array_equal(pair.fake.cov, before)


@pytest.mark.parametrize("d", [1, 7, 300])
def test_products_with_a_triangle(d):
    rng = np.random.default_rng(d)
    lower = np.tril(rng.normal(size=(d, d))) / d + np.eye(d)
    for matrix in (rng.normal(size=(d, max(d - 1, 1))), np.asfortranarray(rng.normal(size=(d, d)))):
        before = matrix.copy()
        assert_allclose(
            _running.few_times(matrix.T, lower, lower=True), matrix.T @ lower, atol=1e-12
        )
        assert_allclose(_running.few_times(matrix.T, lower), matrix.T @ lower, atol=1e-12)
        assert np.array_equal(matrix, before)


@pytest.mark.parametrize("reference", ["full", "exact", "singular"])
def test_coordinates_have_unit_covariance_on_either_side(reference):
    """Pᵀ Σ P = 1, and each root is shared: also where no triangle factors the reference."""
    x, y = skewed_rows(4, 300, 5), skewed_rows(5, 400, 5, 1.3)
    if reference == "singular":
        y[:, 4] = y[:, 0]
    real = gb.Moments(np.zeros(5), np.diag([4.0, 1.0, 1.0, 0.5, 0.1]))
    pair = FrechetPair(sample_of("fake", x), sample_of("real", real if reference == "exact" else y))
    _, roots, projections = pair.directions
    assert roots.size == (4 if reference == "singular" else 5)
    for side, projection in zip((pair.fake, pair.real), projections, strict=True):
        unit = projection.T @ side.cov @ projection
        assert_allclose(unit, np.eye(roots.size), atol=1e-10)
    crossed = projections[0].T @ pair.fake.cov @ pair.real.cov @ projections[1]
    assert_allclose(crossed, np.diag(roots), atol=1e-10)


@pytest.mark.parametrize("d", [1, 5, 256, 301])
def test_symmetric_part_and_mirror(d):
    matrix = np.random.default_rng(d).normal(size=(d, d))
    part, gap = _moments.symmetric_part(matrix)
    assert np.array_equal(part, part.T)
    assert_allclose(part, (matrix + matrix.T) / 2, rtol=1e-15)
    assert gap == np.abs(matrix - matrix.T).max()
    mirrored = _moments.mirror_lower(matrix.copy())
    assert np.array_equal(mirrored, np.tril(matrix) + np.tril(matrix, -1).T)


def test_rows_are_streamed_from_a_mapped_file(tmp_path, monkeypatch):
    """Value and interval of a file that is never in memory: a few numbers a row are kept, no row.

    The file grows by 15 MB; memory may grow by a seventh of that. The result is that of the array.
    """
    import tracemalloc

    from genbounds import files

    for module in (_moments, _form):
        monkeypatch.setattr(module, "BLOCK_BYTES", 2**20)
    d, rng = 64, np.random.default_rng(0)
    real = gb.Moments(np.zeros(d), np.eye(d))
    peaks, sizes = [], []
    for n in (20_000, 80_000):
        x = rng.standard_normal((n, d), dtype=np.float32)
        np.save(tmp_path / "x.npy", x)
        mapped = files.read_features(tmp_path / "x.npy")
        tracemalloc.start()
        score = gb.frechet_distance(mapped, real)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(x.nbytes)
        assert score == gb.frechet_distance(x, real)
    # A part of the rows is looked at for near duplicates, larger for the larger file.
    assert peaks[1] - peaks[0] < (sizes[1] - sizes[0]) / 3


@pytest.mark.parametrize("every_row", [True, False])
def test_single_precision_products_are_accurate_at_any_condition_number(monkeypatch, every_row):
    """Features of standard deviations from 1 down to 1e-4 about a mean of 1, all in float32.

    Against the same numbers in float64. Measured: some 1e-7, also at 1e-7.
    """
    d, n = 24, 700
    rng = np.random.default_rng(9)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = np.geomspace(1.0, 1e-4, d)
    x, y = (
        ((rng.gamma(2.0, size=(n, d)) - 2.0) * scale * scales @ turn + 1.0).astype(np.float32)
        for scale in (1.2, 0.7)
    )
    expected = FrechetReference(y.astype(float)).estimate(x.astype(float), influences=every_row)
    monkeypatch.setattr(_pair, "SINGLE_WIDTH", 1)
    single = FrechetReference(y).estimate(x, influences=every_row)
    bias = FrechetReference(y).plugin(x) - expected.value
    assert single.value == pytest.approx(expected.value, abs=1e-4 * bias)
    assert single.value != expected.value
    for one, other in zip(
        (single.sample, single.reference), (expected.sample, expected.reference), strict=True
    ):
        assert one.variance == pytest.approx(other.variance, rel=1e-3)
        assert one.curvature == pytest.approx(other.curvature, rel=1e-3)
        if every_row:
            assert_allclose(one.influence, other.influence, atol=1e-4 * other.influence.std())


def float32_rows(seed, scales, mean, n=700, dtype=np.float32):
    """Skewed rows of those standard deviations along axes turned at random."""
    d = len(scales)
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(d, d)))[0]
    rows = (np.random.default_rng(seed).gamma(2.0, size=(n, d)) - 2.0) * scales
    return (rows @ turn + mean).astype(dtype)


@pytest.mark.parametrize("mean", [0.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("estimator", ["plugin", "debiased", "infinity"])
def test_scatter_in_single_precision_keeps_the_value(monkeypatch, estimator, dtype, mean):
    """To 1e-6 of the distance, against the same numbers in double; measured: below 2e-7."""
    monkeypatch.setattr(_moments, "BLOCK_BYTES", 2**14)  # several blocks
    scales = np.geomspace(1.0, 0.1, 24)
    x, y = float32_rows(1, 1.2 * scales, mean, dtype=dtype), float32_rows(2, scales, mean)
    expected = gb.frechet_distance(x.astype(float), y.astype(float), estimator=estimator)
    monkeypatch.setattr(_sample, "SINGLE_WIDTH", 1)
    assert sample_of("fake", x).precision is np.float32
    score = gb.frechet_distance(x, y, estimator=estimator)
    assert score.value == pytest.approx(expected.value, rel=1e-6)
    assert score.value != expected.value
    assert score.low == pytest.approx(expected.low, rel=1e-5)


@pytest.mark.parametrize(
    ("scales", "size"),
    [
        (np.geomspace(1.0, 1e-3, 24), 1.0),  # features that are nearly combinations of others
        (np.ones(24), 1e-10),  # squares that leave the range of single precision
        (np.ones(24), 1e10),
    ],
)
def test_single_precision_is_refused_where_it_would_lose_something(monkeypatch, scales, size):
    x, y = (float32_rows(seed, scales * size, 0.0) for seed in (1, 2))
    expected = gb.frechet_distance(1.2 * x, y)
    monkeypatch.setattr(_sample, "SINGLE_WIDTH", 1)
    assert sample_of("fake", x).precision is np.float64
    assert gb.frechet_distance(1.2 * x, y) == expected


@pytest.mark.parametrize("share", [0.02, 0.4, 0.6, 0.98, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_of_some_rows(monkeypatch, share, dtype):
    """Of most rows, from the few others: entries as good as those of the textbook's formula."""
    monkeypatch.setattr(_moments, "BLOCK_BYTES", 2**14)
    monkeypatch.setattr(_sample, "SINGLE_WIDTH", 1)
    x = float32_rows(4, np.geomspace(1.0, 0.2, 12), 3.0, dtype=dtype)
    sample = sample_of("fake", x)
    index = np.sort(np.random.default_rng(5).choice(len(x), round(share * len(x)), replace=False))
    before = sample.cov.copy()
    moments = sample.some(index)
    exact = x[index].astype(float)
    spread = exact.std(axis=0)
    atol = (1e-6 if dtype is np.float32 else 1e-14) * np.outer(spread, spread)
    assert moments.n == index.size
    assert_allclose(moments.mean, exact.mean(axis=0), rtol=1e-13)
    assert (np.abs(moments.cov - np.cov(exact.T)) <= atol).all()
    assert np.array_equal(sample.cov, before)


def test_an_outlier_is_left_out_without_a_trace_of_it():
    """Its square, 1e24, less itself would leave rounding of 1e8 in place of a variance of one."""
    x = np.random.default_rng(6).normal(size=(200, 3))
    x[17, 1] = 1e12
    sample = sample_of("fake", x)
    index = np.delete(np.arange(200), 17)
    moments = sample.some(index)
    assert_allclose(moments.cov, np.cov(x[index].T), rtol=1e-10)
    whole = _moments.row_moments(x)
    assert whole.without(_moments.row_moments(x[:20])) is None


@pytest.mark.parametrize("replace", [False, True])
def test_extrapolation_is_that_of_the_published_subsets(replace):
    """Drawn and scored one by one, with a line through the plug-in values."""
    x, y = skewed_rows(6, 400, 5, 1.2), skewed_rows(7, 500, 5)
    subsets = gb.estimators.Subsets(points=6, minimum=40, replace=replace, seed=3)
    sizes = np.rint(np.linspace(40, 400, 6)).astype(int)
    rng = np.random.default_rng(3)
    values = [
        FrechetReference(y).plugin(x[rng.choice(400, size=size, replace=replace)]) for size in sizes
    ]
    expected = np.polyfit(1.0 / sizes, values, 1)[1]
    got = gb.estimators.frechet_infinity(x, y, subsets=subsets)
    assert got.value == pytest.approx(expected, rel=1e-10)
    assert got.reliable != replace


def test_a_prediction_is_the_line_at_that_size():
    subsets = gb.estimators.Subsets(points=5, minimum=40)
    line = extrapolate(lambda index: 3.0 + 7.0 / index.size, 400, subsets)
    assert line.at(1000) == pytest.approx(3.007, rel=1e-12)
    assert line.at(40) == pytest.approx(line.scores[0, 0], rel=1e-12)


@pytest.mark.parametrize("replace", [False, True])
def test_subsets_with_replacement_lead_to_the_biased_score_of_the_pool(replace):
    real = Moments(np.zeros(16), np.eye(16))
    subsets = gb.estimators.Subsets(replace=replace)
    ratios = []
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=(1000, 16))
        got = gb.estimators.frechet_infinity(x, real, subsets=subsets)
        ratios.append(got.value / FrechetReference(real).plugin(x))
    assert (np.median(ratios) > 0.7) == replace  # the truth is 0


@pytest.mark.parametrize("rank", [3, 5])
def test_the_spectrum_has_as_many_eigenvalues_as_the_rank(rank):
    values = np.array([5.0, 4.0, 3.0, 2.0, 1.0]) * (np.arange(5) < rank)
    sample = sample_of("x", gb.Moments(np.zeros(5), np.diag(values[[2, 0, 4, 1, 3]])))
    assert_allclose(sample.spectrum, values[:rank], rtol=1e-9)


def test_moments_of_single_precision_blocks():
    """Against the textbook formula in double, where the mean in single precision is 0.03 off."""
    x = float32_rows(3, np.linspace(0.5, 1.0, 5), 1e6, n=300)  # rounded by up to 0.03
    moments = _moments.row_moments(x, dtype=np.float32)
    exact = x.astype(float)
    assert_allclose(moments.mean, exact.mean(axis=0), rtol=1e-13)
    assert_allclose(moments.cov, np.cov(exact.T), rtol=1e-5, atol=1e-6)


def test_halves_of_named_rows_have_the_covariances_of_their_rows():
    """One image a caption in both samples: a half's covariance has the divisor of its own rows."""
    x, ids = skewed_rows(20, 90, 5), np.arange(90)
    sample = sample_of("fake", gb.Sample(x, groups=ids))
    half = sample.design.halves(np.random.default_rng(0))
    for part, rows in zip(sample.halves(half), sample.design.rows_of_halves(half), strict=True):
        assert_allclose(part.cov, np.cov(x[rows].T), rtol=1e-12)


@pytest.mark.parametrize("interval", ["jackknife", "bootstrap"])
def test_resampled_intervals_are_refused_with_what_to_do(interval):
    with pytest.raises(gb.InputError, match="may be left out"):
        gb.frechet_distance(np.eye(8), np.eye(8), interval=interval)
    with pytest.raises(gb.InputError, match="may be left out"):
        gb.inception_score(np.eye(8), interval=interval)


def test_the_other_sample_lowers_the_roots_by_a_second_derivative():
    """Of Tr √(S (I + W) S), S the roots: W is Wishart noise, of variance 2/n and, apart, 1/n."""
    s, h = np.array([2.0, 1.0, 0.4]), 1e-3

    def trace_root(noise):
        return np.sqrt(np.linalg.eigvalsh(np.diag(s) @ (np.eye(3) + noise) @ np.diag(s))).sum()

    lowered = 0.0
    for i, j in combinations_with_replacement(range(3), 2):
        noise = np.zeros((3, 3))
        noise[i, j] = noise[j, i] = h
        bent = trace_root(noise) - 2.0 * s.sum() + trace_root(-noise)
        lowered -= (2.0 if i == j else 1.0) * bent / (2.0 * h**2)
    shares = s / np.add.outer(s, s)
    moved = transport_from_sums(s, shares.sum(axis=1), (shares**2).sum(axis=1), np.inf, 1e4)
    assert 1e4 * (moved - s).sum() == pytest.approx(lowered, rel=1e-5)


def test_fourth_moments_by_their_definition():
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    gap, hessian = np.ones(3), RootHessian(np.ones(2))
    _, found, _ = fourth_moments(x, w, gap, hessian)
    influence = 2.0 * x.sum(axis=1) + (x**2).sum(axis=1) - (w**2).sum(axis=1)
    assert found == pytest.approx(np.var(influence, ddof=1), rel=1e-12)


def test_the_bias_alone_of_unequal_groups_is_that_of_the_whole_error():
    """The ratio term of unequal groups is taken along the same transport map."""
    rng = np.random.default_rng(9)
    groups = np.repeat(np.arange(40), np.tile([1, 2, 5, 8], 10))
    x = rng.normal(size=(40, 3))[groups] + rng.normal(size=(groups.size, 3))
    fake, real = (
        sample_of(name, sample)
        for name, sample in (
            ("fake", gb.Sample(1.3 * x, groups=groups)),
            ("real", gb.Sample(rng.normal(size=(90, 3)))),
        )
    )
    pair = FrechetPair(fake, real)
    assert pair.bias() == pytest.approx(pair.expand().bias, rel=1e-12)
