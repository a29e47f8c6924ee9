"""Scores of rows far from the origin, or far from one another: products of rows lose distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genbounds as gb
from genbounds.estimators import metric_names

RNG = np.random.default_rng(0)


def clusters(apart: float, n: int = 100, d: int = 3, seed: int = 0) -> np.ndarray:
    """Two clusters so far apart; the noise of their rows is a whole number of 2⁻²⁰ either way."""
    noise = np.round(np.random.default_rng(seed).normal(size=(n, d)) * 2**20) / 2**20
    noise[: n // 2] -= apart
    noise[n // 2 :] += apart
    return noise


SCORES = {
    "vendi 1": lambda x, y: gb.vendi_score(x, kernel="rbf", bandwidth=1.0),
    "vendi 2": lambda x, y: gb.vendi_score(x, kernel="rbf", bandwidth=1.0, order=2),
    "rbf": lambda x, y: gb.kernel_distance(x, y, kernel="rbf", bandwidth=1.0),
    "kad": lambda x, y: gb.kernel_distance(x, y, kernel="kad", bandwidth=1.0),
    "authpct": gb.authpct,
    "precision": lambda x, y: gb.precision_recall(x, y, splits=2).precision,
    "recall": lambda x, y: gb.precision_recall(x, y, splits=2).recall,
    "density": lambda x, y: gb.precision_recall(x, y, splits=2).density,
}


@pytest.mark.parametrize("name", SCORES)
def test_clusters_farther_apart_than_a_kernel_reaches(name):
    """Nothing within a cluster changes when both move apart, and nothing between them counts."""
    near, far = (
        SCORES[name](clusters(apart, 120, seed=1), clusters(apart, seed=2)) for apart in (64.0, 2e8)
    )
    assert far.value == pytest.approx(near.value, rel=1e-6)
    assert far.stderr == pytest.approx(near.stderr, rel=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "energy", "kad"])
@pytest.mark.parametrize("offset", [1e4, 1e9])
def test_a_sample_far_from_its_reference(kernel, offset):
    """The part of either sample is what it is without the offset."""
    x, y = (np.round(RNG.normal(size=(100, 3)) * 2**18) / 2**18 for _ in range(2))
    options = {} if kernel == "energy" else {"bandwidth": 1.0}
    near = gb.kernel_distance(x + 4096.0, y, kernel=kernel, **options)
    far = gb.kernel_distance(x + 4096.0 + offset, y, kernel=kernel, **options)
    moved = 2.0 * offset * np.sqrt(3.0) if kernel == "energy" else 0.0
    assert far.value - moved == pytest.approx(near.value, rel=1e-5, abs=1e-9 * moved)


@pytest.mark.parametrize(("dtype", "huge"), [(np.float32, 3e38), (np.float64, 1e12)])
@pytest.mark.parametrize("order", [1.0, 2.0])
def test_one_huge_entry_adds_one_row(dtype, huge, order):
    """A Vendi score with it is that of the other rows and one that is like no other."""
    x = RNG.normal(size=(400, 4)).astype(dtype)
    x[7, 1] = 100.0
    expected = gb.vendi_score(x, kernel="rbf", bandwidth=2.0, order=order)
    x[7, 1] = huge
    found = gb.vendi_score(x, kernel="rbf", bandwidth=2.0, order=order)
    assert found.value == pytest.approx(expected.value, rel=1e-5)


@settings(deadline=None, max_examples=40)
@given(
    exponent=st.floats(0.0, 12.0),
    outliers=st.integers(0, 3),
    order=st.sampled_from([1.0, 2.0, np.inf]),
    narrow=st.booleans(),
)
def test_a_vendi_score_lies_between_one_and_n(exponent, outliers, order, narrow):
    x = np.random.default_rng(1).normal(size=(60, 3))
    x[:outliers] += 10.0**exponent
    x[30:] -= 10.0**exponent
    x = x.astype(np.float32) if narrow else x
    score = gb.vendi_score(x, kernel="rbf", bandwidth=1.0, order=order, estimator="plugin")
    assert 1.0 - 1e-9 <= score.value <= 60.0 * (1.0 + 1e-9)


@pytest.mark.parametrize("offset", [1e9, 1e12])
@pytest.mark.parametrize("estimator", ["debiased", "plugin", "infinity"])
def test_a_distance_does_not_see_a_common_offset(offset, estimator):
    """Rows are whole multiples of 2⁻⁸, which float64 holds beside either offset."""
    x, y = (np.round(s * RNG.normal(size=(200, 4)) * 256) / 256 for s in (1.0, 1.2))
    expected = gb.frechet_distance(x, y, estimator=estimator)
    found = gb.frechet_distance(x + offset, y + offset, estimator=estimator)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    assert found.stderr == pytest.approx(expected.stderr, rel=1e-9)


def test_moments_that_have_lost_their_digits_are_unreliable():
    x, y = (gb.Moments.from_features(RNG.normal(size=(200, 4)) + 1e12) for _ in range(2))
    assert "extreme-scale" in {w.code for w in gb.frechet_distance(x, y).warnings}
    assert not gb.frechet_distance(x, y).reliable


def without_what_cancels(u: np.ndarray, v: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(x·y/d + 1)³ at x = u + c, y = v + c, less all that depends on one of them alone."""
    a, b, s = (u @ c / c.size)[:, None], v @ c / c.size, u @ v.T / c.size
    whole = c @ c / c.size + 1.0
    q = whole + a + b
    return s * (3.0 * q * q + 3.0 * q * s + s * s) + 3.0 * a * b * (2.0 * whole + a + b)


@pytest.mark.parametrize("offset", [0.0, 10.0, 100.0, 1000.0])
def test_value_and_error_of_kid_are_those_without_what_cancels(offset):
    """A term f(x) + f(y) of the kernel cancels in the distance, and in its error.

    Where the error kept f(x) / n, it was 4.3 times as large at 1,000 standard deviations.
    """
    rng, n, c = np.random.default_rng(1), 300, np.full(8, offset)
    u, v = (np.round(rng.normal(m, s, size=(n, 8)) * 1024) / 1024 for m, s in ((0.3, 1.2), (0, 1)))
    own, other, across = (without_what_cancels(*pair, c) for pair in ((u, u), (v, v), (u, v)))
    for square in (own, other):
        np.fill_diagonal(square, 0.0)
    pairs = n * (n - 1.0)
    found = gb.kernel_distance(u + c, v + c)
    value = own.sum() / pairs + other.sum() / pairs - 2.0 * across.mean()
    assert found.value == pytest.approx(value, rel=1e-6)
    # The jackknife of both samples, which lies 2 % above at offset 0.
    loo = [
        (square.sum() - 2.0 * square.sum(axis=1)) / ((n - 1.0) * (n - 2.0))
        - 2.0 * (across.sum() - rest) / (n * (n - 1.0))
        for square, rest in ((own, across.sum(axis=1)), (other, across.sum(axis=0)))
    ]
    variance = sum((n - 1.0) ** 2 / n * np.var(one, ddof=1) for one in loo)
    assert found.stderr == pytest.approx(np.sqrt(variance), rel=0.04)


FAR = {
    "KID": lambda x, y: gb.kernel_distance(x, y),
    "KID by groups": lambda x, y: gb.kernel_distance(gb.Sample(x, groups=np.arange(200) // 2), y),
    "mixture by KID": lambda x, y: gb.mixture({"a": x, "b": y[::-1]}, y),
}


@pytest.mark.parametrize("offset", [1e6, 1e12])
@pytest.mark.parametrize("name", FAR)
def test_a_polynomial_that_has_lost_its_digits_is_unreliable(name, offset):
    """At 1e12 another warning of the same code, a caution, took its place."""
    x, y = np.random.default_rng(2).integers(-512, 512, size=(2, 200, 4)) / 256.0
    for moved, lost in (((x + offset, y + offset), True), ((x + offset, y), False)):
        found = FAR[name](*moved)
        codes = {w.code for w in found.warnings if w.severity == "unreliable"}
        assert ("extreme-scale" in codes) == lost


ROUNDED = {
    "rbf": SCORES["rbf"],
    "vendi": lambda x, y: gb.vendi_score(x),
    "authpct": gb.authpct,
    "precision": SCORES["precision"],
    "modes": gb.modes,
    "memorisation": lambda x, y: gb.memorisation(x, y, y[::-1] + 0.5),
    **{np.dtype(t).name: gb.frechet_distance for t in (np.float16, np.float32, np.float64)},
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rows_whose_digits_their_type_does_not_hold_are_unreliable(name):
    """Steps of 1/8, 1/4 and 1/2 of a standard deviation, and of 1/256 of that."""
    dtype = np.dtype(name if name.startswith("float") else "float64")
    offset = {"float16": 600.0, "float32": 4e6, "float64": 1e15}[dtype.name]
    x, y = np.random.default_rng(3).normal(scale=1.1, size=(2, 120, 4))
    for moved, coarse in ((offset, True), (offset / 256.0, False)):
        found = ROUNDED[name]((x + moved).astype(dtype), (y + moved).astype(dtype))
        lost = any("floating-point type holds" in w.message for w in found.warnings)
        assert (lost, found.reliable and coarse) == (coarse, False)


def test_whole_numbers_and_constant_features_lose_nothing():
    rng = np.random.default_rng(4)
    counts = rng.poisson(3.0, size=(2, 200, 4))
    constant = np.concatenate([rng.normal(size=(2, 200, 4)), np.full((2, 200, 1), 1e17)], axis=2)
    for x, y in (counts, counts.astype(np.float16), constant):
        assert "extreme-scale" not in {w.code for w in gb.frechet_distance(x, y).warnings}


@pytest.mark.parametrize("offset", [2**55, -(2**60), 2**63])
def test_integers_that_no_float_holds_are_refused(offset):
    x = RNG.integers(-100, 100, size=(50, 3))
    moved = x.astype(np.uint64) + np.uint64(offset) if offset == 2**63 else x + offset
    with pytest.raises(gb.InputError, match="subtract a common number"):
        gb.frechet_distance(moved, x)
    assert gb.frechet_distance(x + 2**40, x + 2**40).value == gb.frechet_distance(x, x).value


@pytest.mark.parametrize("n", [10**9, 10**12, 10**15, 2**62, 10**30])
def test_a_reference_of_more_rows_than_there_are_is_as_good_as_exact(n):
    x, mean, cov = RNG.normal(size=(300, 6)), np.zeros(6), np.eye(6)
    exact = gb.compare({"a": x, "b": 1.1 * x}, gb.Moments(mean, cov)).scores
    found = gb.compare({"a": x, "b": 1.1 * x}, gb.Moments(mean, cov, n)).scores
    for name in exact:
        assert found[name].value == pytest.approx(exact[name].value, rel=1e-5, abs=1e-6)
        assert found[name].high == pytest.approx(exact[name].high, rel=1e-5)
    few = gb.frechet_distance(x[:10], gb.Moments(mean, cov, n))
    assert few.value == pytest.approx(gb.frechet_distance(x[:10], gb.Moments(mean, cov)).value)
    both = gb.frechet_distance(gb.Moments(mean, 1.1 * cov, n), gb.Moments(mean, cov, n))
    assert both.value == pytest.approx(6.0 * (1.1**0.5 - 1.0) ** 2, rel=1e-4)
    assert gb.plan(x, gb.Moments(mean, cov, n), half_width=0.05).feasible


# By definition: a power of products, directions from the origin, and inputs that are no features.
SEES_THE_ORIGIN = {"kid", "cmmd", "mifid", "is", "mean"}


@pytest.mark.parametrize("metric", sorted(set(metric_names()) - SEES_THE_ORIGIN))
@settings(deadline=None, max_examples=4)
@given(exponent=st.integers(10, 44), towards=st.sampled_from([1.0, -1.0]))
def test_no_score_sees_a_common_offset(metric, exponent, towards):
    """Rows are whole multiples of 2⁻⁶, which float64 holds beside every such offset."""
    rng = np.random.default_rng(3)
    a, b, real = (np.round(s * rng.normal(size=(150, 4)) * 64) / 64 for s in (1.0, 1.2, 1.1))
    offset = towards * 2.0**exponent
    near = gb.compare({"a": a, "b": b}, real, metric=metric).scores
    moved = {"a": a + offset, "b": b + offset}
    far = gb.compare(moved, real + offset, metric=metric).scores
    for name, score in near.items():
        assert far[name].value == pytest.approx(score.value, rel=1e-6)
        assert far[name].stderr == pytest.approx(score.stderr, rel=1e-5)
