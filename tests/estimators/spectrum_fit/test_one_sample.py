"""The distance of one sample with few rows to exact moments: derivatives, edges, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import genbounds as gb
from genbounds.estimators import FrechetReference
from tests.estimators.spectrum_fit.spectra import estimate, power_law
from tests.warnings_of import codes


def plugin(x):
    centred = x - x.mean(axis=0)
    roots = np.linalg.svd(centred, compute_uv=False) / math.sqrt(x.shape[0] - 1)
    mean = x.mean(axis=0)
    return float(mean @ mean + (roots**2).sum() + x.shape[1] - 2.0 * roots.sum())


def test_rows_that_do_not_vary_where_the_reference_does():
    x = np.zeros((11, 12))
    x[:, 0] = np.random.default_rng(3).normal(size=11)
    cov = np.diag([0.0] + [1.0] * 11)
    got = FrechetReference(gb.Moments(np.zeros(12), cov)).estimate(x)
    assert_allclose(got.value, np.mean(x[:, 0] ** 2) + 11.0)
    assert "low-rank" in codes(got)


class TestDerivatives:
    @pytest.mark.slow
    @pytest.mark.parametrize(("n", "d"), [(60, 30), (40, 60)])
    @pytest.mark.parametrize("heavy", [False, True])
    def test_influence_predicts_leaving_a_row_out(self, n, d, heavy):
        rng = np.random.default_rng([n, heavy])
        x = rng.normal(size=(n, d)) * np.sqrt(power_law(d, 1.0))
        if heavy:
            x /= np.sqrt(rng.chisquare(5, n) / 5.0)[:, None]
        whole = estimate(x)
        influence = whole.sample.influence
        assert abs(influence.mean()) < 1e-9 * np.abs(influence).max()
        left = np.array([whole.value - estimate(np.delete(x, i, 0)).value for i in range(n)])
        slope = np.cov(left, influence / (n - 1))
        assert slope[0, 1] / math.sqrt(slope[0, 0] * slope[1, 1]) > 0.8


class TestInvariance:
    @pytest.mark.parametrize(("n", "d"), [(30, 60), (90, 60)])
    def test_scale_and_order_of_rows(self, n, d):
        rng = np.random.default_rng(n)
        x = rng.normal(size=(n, d)) * np.sqrt(power_law(d, 1.0))
        lower = np.linalg.cholesky(np.cov(rng.normal(size=(4 * d, d)).T))
        base = estimate(x, lower=lower)
        for factor in (1e-3, 1e3):
            scaled = estimate(factor * x, lower=factor * lower)
            assert_allclose(scaled.value, factor**2 * base.value, rtol=1e-6)
            assert_allclose(scaled.variance, factor**4 * base.variance, rtol=1e-5)
        order = rng.permutation(n)
        shuffled = estimate(x[order], lower=lower)
        # Only the noise of the leverages could depend on the order, and only beyond 400 rows.
        assert_allclose(shuffled.value, base.value, rtol=1e-6)
        expected = base.sample.influence[order]
        tolerance = 1e-5 * np.abs(expected).max()
        assert_allclose(shuffled.sample.influence, expected, atol=tolerance)

    def test_same_input_same_bits(self):
        x = np.random.default_rng(0).normal(size=(25, 40))
        assert estimate(x).value == estimate(x).value


def finite(found):
    error = found.sample
    rows = np.zeros(1) if error.influence is None else error.influence
    numbers = [found.value, error.variance]
    return bool(np.isfinite(numbers).all() and np.isfinite(rows).all() and error.variance >= 0.0)


class TestRowScales:
    """Rows of two lengths, which the plain distribution takes for a wider spectrum."""

    @pytest.mark.slow
    def test_scales_are_seen_and_moments_alone_are_fooled(self):
        n, d, repeats = 90, 120, 12
        spectrum = 10.0 * power_law(d, 1.0)
        truth = spectrum.sum() + d - 2.0 * np.sqrt(spectrum).sum()
        rng = np.random.default_rng(8)
        rows, plain = [], []
        for _ in range(repeats):
            b = np.where(rng.random(n) < 0.5, 0.4, 1.6)
            x = rng.normal(size=(n, d)) * np.sqrt(spectrum) * np.sqrt(b)[:, None]
            got = estimate(x)
            rows.append((got.value - truth) / math.sqrt(got.variance))
            plain.append((estimate(x, n=n).value - truth) / math.sqrt(got.variance))
            assert got.method == "spectrum-fit"
            assert got.details  # that rows are of unequal scale
        # Null: mean of 12 errors of at most 1 se bias, sd at most 1.2: beyond 3 at 6 sd.
        assert abs(np.mean(rows)) < 3.0
        # Control: the same gate throws out the method that takes all rows as equal.
        assert np.mean(plain) > 3.0


class TestEdges:
    @pytest.mark.slow
    @settings(max_examples=60, deadline=None)
    @given(
        n=st.integers(2, 24),
        d=st.integers(1, 24),
        span=st.sampled_from([0.0, 2.0, 6.0, 12.0]),
        kind=st.sampled_from(["plain", "repeated", "flat", "low rank", "outlier", "cliff"]),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_never_raises_and_is_finite(self, n, d, span, kind, seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, d)) * np.geomspace(10.0 ** (span / 2), 10.0 ** (-span / 2), d)
        if kind == "repeated":
            x = x[np.arange(n) // 2]
        elif kind == "flat":
            x[:, ::2] = 1.0
        elif kind == "low rank":
            x = x[:, :1] @ rng.normal(size=(1, d))
        elif kind == "outlier":
            x[0] *= 1e6
        elif kind == "cliff":
            x[:, d // 2 :] *= 1e-5
        with np.errstate(all="raise", under="ignore"):
            result = estimate(x)
            assert finite(result)
            assert finite(estimate(x, n=n))
        if result.method in ("spectrum-fit", "contour"):
            assert not result.reliable or n >= 16

    def test_a_spectrum_with_a_cliff_takes_the_contour_and_is_right(self):
        rng = np.random.default_rng(4)
        d, n = 40, 100
        spectrum = np.where(np.arange(d) < d // 2, 1.0, 1e-4)
        x = rng.normal(size=(n, d)) * np.sqrt(spectrum)
        got = estimate(x)
        truth = spectrum.sum() + d - 2.0 * np.sqrt(spectrum).sum()
        assert got.method == "contour"
        assert abs(got.value - truth) < 6.0 * math.sqrt(got.variance) < 0.2 * truth

    def test_a_feature_that_few_rows_have_does_not_stop_the_jackknife(self):
        rng = np.random.default_rng(8)
        x = rng.normal(size=(100, 40)) * np.where(np.arange(40) < 20, 1.0, 1e-2)
        x[:, -1] = 0.0
        x[3, -1] = 1.0
        got = estimate(x)
        assert got.method == "contour"
        assert finite(got)

    def test_warnings(self):
        rng = np.random.default_rng(5)
        for shape in ((10, 5), (20, 100)):
            assert codes(estimate(rng.normal(size=shape)), "unreliable") == {"few-samples"}
        assert estimate(rng.normal(size=(60, 100))).warnings == ()
        repeated = np.repeat(rng.normal(size=(30, 40)), 2, axis=0)
        seen = estimate(repeated)
        assert "duplicates" in codes(seen, "caution")
        told = FrechetReference(gb.Moments(np.zeros(40), np.eye(40))).estimate(gb.Sample(repeated))
        assert codes(told, "caution") == {"low-rank"}
        assert told.reliable == seen.reliable

    @pytest.mark.parametrize("shape", [(60, 100), (100, 60)])
    def test_one_repeated_row_changes_little(self, shape):
        """A pool drawn with replacement, or a duplicated image, must not halve the rank."""
        rng = np.random.default_rng(7)
        x = rng.normal(size=shape) * np.arange(1.0, shape[1] + 1.0) ** -0.5
        once = estimate(x)
        x[-1] = x[0]
        twice = estimate(x)
        assert twice.reliable
        assert codes(twice, "caution") == {"duplicates"}
        assert abs(twice.value - once.value) < math.sqrt(once.variance)

    def test_moments_agree_with_rows_of_one_length(self):
        rng = np.random.default_rng(6)
        n, d = 120, 80
        lower = np.linalg.cholesky(np.cov(rng.normal(size=(4 * d, d)).T))
        x = rng.normal(size=(n, d))
        rows = estimate(x, lower=lower)
        moments = estimate(x, lower=lower, n=n)
        assert_allclose(moments.value, rows.value, atol=0.3 * math.sqrt(rows.variance))
        assert 0.5 < moments.variance / rows.variance < 2.0
        assert codes(moments, "caution") == {"moments-only"}


REPEATS = 40
NULL_MISS = 0.10
MOST_MISSES = int(stats.binom.isf(1e-7, REPEATS, NULL_MISS))
"""At 1e-7 each. Other laws and sizes: docs/evidence/accuracy.md."""


def misses(law, n, *, value=None):
    rng = np.random.default_rng([17, n])
    d = 48
    spectrum = 10.0 * power_law(d, 1.0)
    truth = spectrum.sum() + d - 2.0 * np.sqrt(spectrum).sum()
    count = 0
    for _ in range(REPEATS):
        x = rng.normal(size=(n, d)) * np.sqrt(spectrum)
        if law == "t8":
            x /= np.sqrt(rng.chisquare(8, n) / 6.0)[:, None]
        elif law == "gamma":
            x = (rng.gamma(4.0, size=(n, d)) / 2.0 - 2.0) * np.sqrt(spectrum)
        got = estimate(x)
        centre = got.value if value is None else value(x)
        count += abs(centre - truth) > 1.96 * math.sqrt(got.variance)
    return count


@pytest.mark.statistical
class TestCoverage:
    @pytest.mark.parametrize(("law", "n"), [("t8", 32), ("gamma", 72)])
    def test_interval_covers(self, law, n):
        """Null: ± 1.96 se misses at most 10 %. False alarm 1e-7 a gate (exact binomial).

        Power: a bias of three standard errors (miss rate 0.85) is seen with probability > 0.999.
        """
        assert misses(law, n) <= MOST_MISSES

    def test_control_plug_in_is_caught(self):
        assert misses("gauss", 32, value=plugin) > MOST_MISSES

    def test_gate_has_its_stated_power(self):
        assert stats.binom.sf(MOST_MISSES, REPEATS, 0.85) > 0.999
