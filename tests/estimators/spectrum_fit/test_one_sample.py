from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special, stats

from genbounds.estimators.spectrum_fit._contour import contour_trace_root
from genbounds.estimators.spectrum_fit._marchenko_pastur import RowLaw, fit_spectrum
from genbounds.estimators.spectrum_fit._one_sample import (
    GROUPING_SEED,
    FewSamples,
    few_samples,
    few_samples_from_moments,
    jackknifed_contour,
)


def estimate(x, *, lower=None, reference_mean=0.0, spectrum=None):
    d = x.shape[1]
    lower = np.eye(d) if lower is None else lower
    mean = x.mean(axis=0)
    centred = x - mean
    return few_samples(
        centred,
        centred @ lower,
        gap=mean - reference_mean,
        reference_trace=float((lower**2).sum()),
        reference_spectrum=spectrum,
    )


def steep_end(d):
    """Spectrum that falls slowly, and far more steeply from three fifths of its length on."""
    j = np.arange(1.0, d + 1.0)
    return j**-0.5 / (1.0 + (j / (0.6 * d)) ** 16)


def plugin(x):
    centred = x - x.mean(axis=0)
    roots = np.linalg.svd(centred, compute_uv=False) / math.sqrt(x.shape[0] - 1)
    mean = x.mean(axis=0)
    return float(mean @ mean + (roots**2).sum() + x.shape[1] - 2.0 * roots.sum())


def marchenko_pastur_quantiles(ratio, count):
    """Mid-quantiles of the Marchenko–Pastur law of the non-zero eigenvalues, population 1."""
    low, high = (1.0 - math.sqrt(ratio)) ** 2, (1.0 + math.sqrt(ratio)) ** 2
    angle = (np.arange(200_000) + 0.5) * math.pi / 200_000
    t = (low + high) / 2.0 - (high - low) / 2.0 * np.cos(angle)
    mass = np.sqrt((high - t) * (t - low)) / t * np.sin(angle)
    levels = np.cumsum(mass) / mass.sum()
    return np.interp((np.arange(count) + 0.5) / count, levels, t)


def power_law(d, exponent=2.0):
    return np.arange(1.0, d + 1.0) ** -exponent


def contour_of(x):
    values = np.linalg.eigvalsh(np.cov(x.T))
    return contour_trace_root(values, sizes=[len(x) - 1]).trace_root


class TestJackknifedContour:
    def test_value_is_that_of_groups_left_out(self):
        """Against covariances of the rows that are left, formed anew."""
        rng = np.random.default_rng(10)
        d, n, groups = 40, 101, 5
        x = rng.normal(size=(n, d)) * np.where(np.arange(d) < d // 2, 1.0, 1e-2) + 3.0
        label = np.random.default_rng(GROUPING_SEED).permutation(np.arange(n) % groups)
        without = np.mean([contour_of(x[label != group]) for group in range(groups)])
        root = groups * contour_of(x) - (groups - 1) * without
        mean = x.mean(axis=0)
        trace = np.trace(np.cov(x.T))
        got = estimate(x)
        assert got.route == "contour"
        expected = mean @ mean + trace * (1.0 - 1.0 / n) + d - 2.0 * root
        assert got.value == pytest.approx(expected, rel=1e-9)

    def test_more_groups_where_rows_are_scarce_and_none_beyond(self):
        x = np.random.default_rng(11).normal(size=(45, 36))
        x -= x.mean(axis=0)
        whole = contour_of(x)
        assert jackknifed_contour(x, 36, whole) != whole  # 20 groups leave 41 degrees of freedom
        assert jackknifed_contour(x[:41], 36, whole) == whole

    def test_removes_what_rows_of_unequal_length_leave(self):
        """Elliptical rows, b of variance 0.25: less than half of the contour's bias remains.

        The linear part, half of Tr M̂ - d, is exactly unbiased and taken out: what is left is the
        bias with little noise. Limits are 5.5 standard errors, a false alarm once in 10⁷; measured
        0.141 before, 0.001 after.
        """
        rng = np.random.default_rng(12)
        d, n = 16, 64
        left = []
        for _ in range(400):
            x = rng.normal(size=(n, d)) * np.sqrt(rng.choice([0.5, 1.5], size=(n, 1)))
            x -= x.mean(axis=0)
            linear = (d + (x**2).sum() / (n - 1)) / 2.0
            whole = contour_of(x)
            left.append((linear - whole, linear - jackknifed_contour(x, d, whole)))
        contour, jackknifed = np.array(left).T
        error = 5.5 * np.std(np.abs(jackknifed) - 0.5 * contour, ddof=1) / math.sqrt(len(left))
        assert abs(jackknifed.mean()) + error < 0.5 * contour.mean()


class TestClosedForms:
    @pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
    def test_endless_samples_give_the_roots_themselves(self, exponent):
        values = 3.0 * power_law(40, exponent)
        exact = np.sqrt(values).sum()
        fit = fit_spectrum(values, rows=[RowLaw(10**9)], rank=40)
        contour = contour_trace_root(values, sizes=[10**9])
        # Measured: 3e-9 for the contour, 2e-4 for the grouping of the fit.
        assert_allclose(contour.trace_root, exact, rtol=1e-7)
        assert_allclose(fit.value, exact, rtol=1e-3)

    @pytest.mark.parametrize("n", [20, 50, 200])
    def test_one_dimension_is_the_bias_of_a_standard_deviation(self, n):
        """c4(n): E sd = σ (1 - 1/(4N) + O(N⁻²)), the one-dimensional Bai–Silverstein bias."""
        N = n - 1
        c4 = math.sqrt(2.0 / N) * math.exp(special.gammaln(n / 2) - special.gammaln(N / 2))
        contour = contour_trace_root(np.array([4.0]), sizes=[N]).trace_root
        assert_allclose(contour, 2.0 / c4, atol=2.0 / N**2)
        assert abs(contour - 2.0) > 0.2 / N  # the correction is there

    @pytest.mark.parametrize("ratio", [0.5, 0.8])
    def test_identity_by_contour(self, ratio):
        d = 400
        values = marchenko_pastur_quantiles(ratio, d)
        got = contour_trace_root(values, sizes=[round(d / ratio)]).trace_root
        assert_allclose(got, d, rtol=3e-3)
        assert np.sqrt(values).sum() < 0.95 * d

    @pytest.mark.parametrize("sizes", [[39], [39, 59]])
    @pytest.mark.parametrize("kept", [3, 8])
    @pytest.mark.parametrize("cliff", [1e-12, 1e-18, 1e-24])
    def test_eigenvalues_next_to_0_are_as_good_as_none(self, sizes, kept, cliff):
        """Whatever the decades between: the contour of the others is a short one."""
        rng = np.random.default_rng([kept, len(sizes)])
        values = rng.chisquare(30, size=16) / 30.0
        values[kept:] *= cliff
        got = contour_trace_root(values, sizes=sizes)
        alone = contour_trace_root(values[:kept], sizes=sizes)
        assert_allclose(got.trace_root, alone.trace_root, rtol=1e-8 + 30.0 * math.sqrt(cliff))
        assert alone.trace_root > np.sqrt(values[:kept]).sum()

    @pytest.mark.parametrize("ratio", [0.5, 2.0, 4.0])
    def test_identity_by_fit(self, ratio):
        d = 400
        N = round(d / ratio)
        values = ratio * marchenko_pastur_quantiles(1.0 / ratio, N) if ratio > 1.0 else None
        if values is None:
            values = marchenko_pastur_quantiles(ratio, d)
        got = fit_spectrum(values, rows=[RowLaw(N)], rank=d).value
        assert_allclose(got, d, rtol=1e-2)
        assert np.sqrt(values).sum() < 0.95 * d

    def test_rows_that_do_not_vary_where_the_reference_does(self):
        rng = np.random.default_rng(3)
        x = np.zeros((30, 4))
        x[:, 0] = rng.normal(size=30)
        centred = x - x.mean(axis=0)
        lower = np.diag([0.0, 1.0, 1.0, 1.0])
        got = few_samples(centred, centred @ lower, gap=np.zeros(4), reference_trace=3.0)
        variance = float(np.var(x[:, 0], ddof=1))
        assert_allclose(got.value, variance * (1.0 - 1.0 / 30) + 3.0)
        assert got.notes


class TestDerivatives:
    def test_weights_are_the_derivative_of_the_contour(self):
        values = power_law(20)
        base = contour_trace_root(values, sizes=[60])
        step = 1e-5
        for index in (0, 7, 19):
            moved = values.copy()
            moved[index] *= 1.0 + step
            forward = contour_trace_root(moved, sizes=[60]).trace_root
            t, x = values[index], base.points
            predicted = ((t * x / (t + x) ** 2 / 60) @ base.weights).real * step
            # All but the derivative of the O(1/N) correction: a few per cent here.
            assert_allclose(forward - base.trace_root, predicted, rtol=0.2)

    @pytest.mark.parametrize(("n", "d"), [(60, 30), (40, 60)])
    @pytest.mark.parametrize("heavy", [False, True])
    def test_influence_predicts_leaving_a_row_out(self, n, d, heavy):
        rng = np.random.default_rng([n, heavy])
        x = rng.normal(size=(n, d)) * np.sqrt(power_law(d, 1.0))
        if heavy:
            x /= np.sqrt(rng.chisquare(5, n) / 5.0)[:, None]
        whole = estimate(x)
        assert whole.influence is not None
        assert abs(whole.influence.mean()) < 1e-9 * np.abs(whole.influence).max()
        left = np.array([whole.value - estimate(np.delete(x, i, 0)).value for i in range(n)])
        slope = np.cov(left, whole.influence / (n - 1))
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
        assert shuffled.influence is not None
        assert base.influence is not None
        tolerance = 1e-5 * np.abs(base.influence).max()
        assert_allclose(shuffled.influence, base.influence[order], atol=tolerance)

    def test_same_input_same_bits(self):
        x = np.random.default_rng(0).normal(size=(25, 40))
        assert estimate(x).value == estimate(x).value


def finite(result: FewSamples) -> bool:
    numbers = [result.value, result.variance]
    rows = np.zeros(1) if result.influence is None else result.influence
    return bool(np.isfinite(numbers).all() and np.isfinite(rows).all() and result.variance >= 0.0)


class TestRowScales:
    """Rows of two lengths, which the plain law takes for a wider spectrum."""

    def test_scales_are_seen_and_moments_alone_are_fooled(self):
        n, d, repeats = 90, 120, 12
        spectrum = 10.0 * power_law(d, 1.0)
        truth = spectrum.sum() + d - 2.0 * np.sqrt(spectrum).sum()
        rng = np.random.default_rng(8)
        rows, plain, routes = [], [], []
        for _ in range(repeats):
            b = np.where(rng.random(n) < 0.5, 0.4, 1.6)
            x = rng.normal(size=(n, d)) * np.sqrt(spectrum) * np.sqrt(b)[:, None]
            got = estimate(x)
            moments = few_samples_from_moments(
                gap=x.mean(axis=0), cov=np.cov(x.T), lower=np.eye(d), n=n, reference_trace=float(d)
            )
            rows.append((got.value - truth) / math.sqrt(got.variance))
            plain.append((moments.value - truth) / math.sqrt(got.variance))
            routes.append(got.route)
        assert set(routes) == {"separable spectrum fit"}
        # Null: mean of 12 errors of at most 1 se bias, sd at most 1.2: beyond 3 at 6 sd.
        assert abs(np.mean(rows)) < 3.0
        # Control: the same gate throws out the route that takes all rows as equal.
        assert np.mean(plain) > 3.0


class TestKnownShape:
    """The spectrum of the reference, where it is known, stands for what few rows do not show."""

    def test_a_steep_end_that_the_rows_do_not_show(self):
        """Half as many rows as directions; the generated law is the reference's, 1.5 times as wide.

        Less than half of the bias remains, to either side, that a smooth spectrum has in the same
        samples. Limits are 5.5 standard errors, a false alarm once in 10⁷; measured in 40 of them:
        -1.59 before, -0.29 after.
        """
        d, n = 96, 48
        spectrum = steep_end(d)
        lower = np.diag(np.sqrt(spectrum))
        truth = (1.5 - 1.0) ** 2 * spectrum.sum()
        rng = np.random.default_rng(14)
        errors = []
        for _ in range(80):
            x = 1.5 * rng.normal(size=(n, d)) @ lower
            smooth = estimate(x, lower=lower).value
            known = estimate(x, lower=lower, spectrum=spectrum).value
            errors.append((smooth - truth, known - truth))
        smooth, known = np.array(errors).T
        for side in (known - smooth / 2.0, -known - smooth / 2.0):  # smooth is below the truth
            assert side.mean() > 5.5 * side.std(ddof=1) / math.sqrt(len(errors))

    def test_a_power_law_adds_nothing(self):
        values = np.sort(np.random.default_rng(3).chisquare(4, 40) * power_law(40))[::-1]
        plain = fit_spectrum(values, rows=[RowLaw(80)], rank=60)
        known = fit_spectrum(values, rows=[RowLaw(80)], rank=60, shape=power_law(60, 1.3))
        assert_allclose(known.value, plain.value, rtol=1e-5)

    def test_a_shape_that_the_rows_contradict_is_not_taken(self):
        values = power_law(40)
        cliff = np.where(np.arange(40) < 5, 1.0, 1e-8)
        plain = fit_spectrum(values, rows=[RowLaw(400)], rank=40)
        known = fit_spectrum(values, rows=[RowLaw(400)], rank=40, shape=cliff)
        assert known.value == plain.value

    def test_only_ratios_of_the_reference_spectrum_count(self):
        x = np.random.default_rng(4).normal(size=(30, 60)) * np.sqrt(steep_end(60))
        one = estimate(x, spectrum=steep_end(60)).value
        for unit in (1e-12, 1e6):
            assert_allclose(estimate(x, spectrum=unit * steep_end(60)).value, one, rtol=1e-9)
        assert one != estimate(x).value

    def test_rows_that_show_every_direction_need_no_shape(self):
        x = np.random.default_rng(5).normal(size=(61, 60)) * np.sqrt(steep_end(60))
        known = np.sqrt(steep_end(60))  # the square of which is the spectrum, the reference being 1
        assert estimate(x, spectrum=known).value == estimate(x).value
        assert estimate(x[:60], spectrum=known).value != estimate(x[:60]).value


class TestEdges:
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
            cov = np.atleast_2d(np.cov(x.T))
            moments = few_samples_from_moments(
                gap=x.mean(axis=0), cov=cov, lower=np.eye(d), n=n, reference_trace=float(d)
            )
            assert finite(moments)
        assert result.reliable is False or n >= 16

    def test_a_spectrum_with_a_cliff_takes_the_contour_and_is_right(self):
        rng = np.random.default_rng(4)
        d, n = 40, 100
        spectrum = np.where(np.arange(d) < d // 2, 1.0, 1e-4)
        x = rng.normal(size=(n, d)) * np.sqrt(spectrum)
        got = estimate(x)
        truth = spectrum.sum() + d - 2.0 * np.sqrt(spectrum).sum()
        assert got.route == "contour"
        assert abs(got.value - truth) < 6.0 * math.sqrt(got.variance) < 0.2 * truth

    def test_a_feature_that_few_rows_have_does_not_stop_the_jackknife(self):
        rng = np.random.default_rng(8)
        x = rng.normal(size=(100, 40)) * np.where(np.arange(40) < 20, 1.0, 1e-2)
        x[:, -1] = 0.0
        x[3, -1] = 1.0
        got = estimate(x)
        assert got.route == "contour"
        assert finite(got)

    def test_flags(self):
        rng = np.random.default_rng(5)
        assert not estimate(rng.normal(size=(10, 5))).reliable
        few = estimate(rng.normal(size=(20, 100)))
        assert not few.reliable
        assert "decaying smoothly" in few.notes[0]
        enough = estimate(rng.normal(size=(60, 100)))
        assert enough.reliable
        assert not enough.notes
        repeated = estimate(np.repeat(rng.normal(size=(20, 30)), 2, axis=0))
        assert any("span only" in note for note in repeated.notes)
        assert any("20 of 40 rows repeat" in note for note in repeated.notes)
        assert not repeated.reliable

    @pytest.mark.parametrize("shape", [(60, 100), (100, 60)])
    def test_one_repeated_row_changes_little(self, shape):
        """A pool drawn with replacement, or a duplicated image, must not halve the law's rank."""
        rng = np.random.default_rng(7)
        x = rng.normal(size=shape) * np.arange(1.0, shape[1] + 1.0) ** -0.5
        once = estimate(x)
        x[-1] = x[0]
        twice = estimate(x)
        assert twice.reliable
        assert any("1 of" in note for note in twice.notes)
        assert abs(twice.value - once.value) < math.sqrt(once.variance)

    def test_moments_agree_with_rows_of_one_length(self):
        rng = np.random.default_rng(6)
        n, d = 120, 80
        lower = np.linalg.cholesky(np.cov(rng.normal(size=(4 * d, d)).T))
        x = rng.normal(size=(n, d))
        rows = estimate(x, lower=lower)
        moments = few_samples_from_moments(
            gap=x.mean(axis=0),
            cov=np.cov(x.T),
            lower=lower,
            n=n,
            reference_trace=float((lower**2).sum()),
        )
        assert_allclose(moments.value, rows.value, atol=0.3 * math.sqrt(rows.variance))
        assert 0.5 < moments.variance / rows.variance < 2.0
        assert "moments alone" in moments.notes[-1]


REPEATS = 40
NULL_MISS = 0.10
MOST_MISSES = int(stats.binom.isf(1e-7, REPEATS, NULL_MISS))
"""Six gates at 1e-7 each: a false alarm below 1e-6 in all."""


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
    @pytest.mark.parametrize("n", [32, 72])
    @pytest.mark.parametrize("law", ["gauss", "gamma", "t8"])
    def test_interval_covers(self, law, n):
        """Null: ± 1.96 se misses at most 10 %. False alarm 1e-7 a gate (exact binomial).

        Power: a bias of three standard errors (miss rate 0.85) is seen with probability > 0.999.
        """
        assert misses(law, n) <= MOST_MISSES

    def test_control_plug_in_is_caught(self):
        assert misses("gauss", 32, value=plugin) > MOST_MISSES

    def test_gate_has_its_stated_power(self):
        assert stats.binom.sf(MOST_MISSES, REPEATS, 0.85) > 0.999
