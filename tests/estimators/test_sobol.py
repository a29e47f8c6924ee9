"""Sobol normals: SciPy's own points, marginals, refusals, intervals over scramblings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats
from scipy.stats import qmc

import genbounds as gb
from genbounds.estimators import SobolCache

METHODS = ["inverse", "box-muller"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [1, 2, 5, 64])
def test_points_are_those_of_scipy_at_the_same_seed(method, d):
    engine = qmc.MultivariateNormalQMC(
        np.zeros(d), inv_transform=method == "inverse", seed=np.random.default_rng(11)
    )
    sampler = gb.sobol_normal(d, method=method, rng=11)
    first, second = sampler.draw(64), sampler.draw(64)
    expected = engine.random(128)
    np.testing.assert_array_equal(np.vstack([first, second]), expected)
    again = gb.sobol_normal(d, method=method, rng=11).draw(128)
    np.testing.assert_array_equal(again, expected)
    other = gb.sobol_normal(d, method=method, rng=12).draw(128)
    assert not np.array_equal(other, expected)


@pytest.mark.statistical
@pytest.mark.parametrize("method", METHODS)
def test_marginals_are_standard_normal(method):
    """Null: each coordinate is N(0, 1); the KS distance of 4,096 balanced points is near 1/4096.

    An independent sample would exceed 0.04 with probability 2 exp(-2·4096·0.04²) = 4e-6 each; a
    balanced one never does. Power: doubled variance (0.17) is seen; run as a control.
    """
    points = np.asarray(gb.sobol_normal(6, method=method, rng=0).draw(4096))
    distance = [stats.kstest(column, "norm").statistic for column in points.T]
    assert max(distance) < 0.04
    if method == "inverse":  # one point in each of the 4,096 intervals of equal probability
        assert max(distance) <= 1.0 / 4096 + 1e-9
    assert stats.kstest(math.sqrt(2.0) * points[:, 0], "norm").statistic > 0.04
    assert np.abs(np.corrcoef(points.T) - np.eye(6)).max() < 0.05


def test_drop_in_for_numpy_and_torch():
    torch = pytest.importorskip("torch")
    sampler = gb.sobol_normal(12, rng=0)
    assert sampler.standard_normal((8, 3, 4)).shape == (8, 3, 4)
    latents = sampler.randn(16, 12, 1, 1, dtype=torch.float64)
    assert latents.shape == (16, 12, 1, 1)
    assert latents.dtype == torch.float64
    assert sampler.randn(4, 12).dtype == torch.get_default_dtype()
    assert sampler.drawn == 28
    assert gb.sobol_normal(1).standard_normal(8).shape == (8,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gb.sobol_normal(0), "`d` must be a whole number"),
        (lambda: gb.sobol_normal(21_202), "at most 21201.*direction numbers"),
        (lambda: gb.sobol_normal(21_201, method="box-muller"), "at most 21200"),
        (lambda: gb.sobol_normal(2, method="polar"), "`method` must be one of"),
        (lambda: gb.sobol_normal(2).draw(100), "power of two; got 100.*64 or 128.*balanced=False"),
        (lambda: gb.sobol_normal(2).draw(2**31), "2\\^30 points"),
        (lambda: gb.sobol_normal(6).standard_normal((8, 5)), "trailing axes of 6"),
        (lambda: gb.sobol_cache(2, size=1000), "^`size` must be a power of two.* or 1024\\.$"),
        (
            lambda: gb.score_over_scramblings(abs, abs, d=2, n=100),
            "^`n` must be a power of two.* draw 64 or 128\\.$",  # it takes no balanced=False
        ),
        (lambda: gb.score_over_scramblings(abs, abs, d=2, n=8, replicates=2), "`replicates`"),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(gb.InputError, match=message):
        call()


def test_unbalanced_draws_on_request():
    assert gb.sobol_normal(3, balanced=False).draw(100).shape == (100, 3)


def test_an_interval_for_independent_rows_is_refused():
    latents = gb.sobol_normal(4, rng=0).draw(256)
    features = np.tanh(latents @ np.ones((4, 3)))  # the mark survives a generator in NumPy
    real = np.random.default_rng(0).normal(size=(300, 3))
    for call in (
        lambda: gb.vendi_score(features),
        lambda: gb.frechet_distance(features, real),
        lambda: gb.inception_score(np.abs(features)),
        lambda: gb.compare({"a": features}, metric="rke"),
    ):
        with pytest.raises(gb.InputError, match=r"quasi-random.*score_over_scramblings"):
            call()
    assert gb.vendi_score(np.asarray(features)).value > 1.0


def test_the_cache_serves_every_point_once_an_epoch_in_random_order():
    cache = gb.sobol_cache(2, size=256, rng=5)
    assert isinstance(cache, SobolCache)
    epoch = np.vstack([cache.draw(100), cache.draw(100), cache.draw(56)])
    second = np.asarray(cache.draw(256))
    np.testing.assert_array_equal(np.sort(epoch[:, 0]), np.sort(second[:, 0]))
    assert not np.array_equal(epoch, second)
    assert len(np.unique(epoch[:, 0])) == 256
    # of neighbours in an unshuffled sequence each pair lies in opposite halves
    opposite = np.mean(np.sign(epoch[0::2, 0]) != np.sign(epoch[1::2, 0]))
    assert 0.2 < opposite < 0.8


def mean_square(rows):
    return float((rows**2).mean())


@pytest.mark.statistical
def test_intervals_over_scramblings_cover():
    """Null: true coverage in [0.92, 0.98] for E exp(mean of z) over 8 scramblings of 64 points.

    Exact binomial gates on 400 replications, false alarm 1e-7 each side; 0.4 times the width
    covers 0.62 of the time and is caught, run as a control. An interval that took the rows as
    independent would cover always: also run.
    """
    truth = math.exp(0.25)
    hits = narrow = naive = 0
    for seed in range(400):
        pooled = []

        def generate(latents, pooled=pooled):
            values = np.exp(latents @ np.array([0.5, 0.5]))
            pooled.append(values)
            return values

        score = gb.score_over_scramblings(generate, np.mean, d=2, n=64, replicates=8, rng=seed)
        hits += score.low <= truth <= score.high
        narrow += abs(score.value - truth) <= 0.4 * (score.high - score.value)
        every = np.concatenate(pooled)
        naive += abs(score.value - truth) <= 1.96 * every.std() / math.sqrt(every.size)
    assert stats.binom.ppf(1e-7, 400, 0.92) <= hits <= stats.binom.isf(1e-7, 400, 0.98)
    assert narrow < stats.binom.ppf(1e-7, 400, 0.92)
    assert naive >= 399  # at 98 % with probability below 0.003


def test_scramblings_are_reproducible_and_less_variable_than_independent_latents():
    given = {"d": 2, "n": 256, "replicates": 10}
    one = gb.score_over_scramblings(lambda z: z, mean_square, rng=3, **given)
    two = gb.score_over_scramblings(lambda z: z, mean_square, rng=3, **given)
    assert one == two
    assert one.n == 2560
    independent = math.sqrt(2.0 / (2 * 2560))  # of the mean of 2 · 2,560 squares
    assert one.stderr < independent / 3


# --- what the score of a scrambling says of itself ------------------------------------------------


def test_what_the_inner_score_says_is_kept():
    def statistic(x):
        return gb.vendi_score(x, kernel="cosine", order=2, method="exact", estimator="plugin")

    inner = statistic(np.random.default_rng(0).normal(size=(64, 3)))
    score = gb.score_over_scramblings(lambda z: z, statistic, d=3, n=64, replicates=4)
    assert score.higher_is_better
    assert (score.title, score.estimator) == (inner.title, "plugin")
    kept = {w.code for w in inner.warnings} - {"bias-left"}  # of independent rows
    assert {w.code for w in score.warnings} == kept | {"few-samples"}


@pytest.mark.parametrize("metric", ["fd", "kid", "vendi"])
def test_a_debiased_score_is_refused_with_the_call_that_is_right(metric):
    """It subtracts the bias of independent rows: 0.62 [0.61, 0.63] for a truth of 0.78."""
    real = np.random.default_rng(0).normal(size=(200, 3))
    statistics = {
        "fd": lambda x, **asked: gb.frechet_distance(x, real, **asked),
        "kid": lambda x, **asked: gb.kernel_distance(x, real, **asked),
        "vendi": lambda x, **asked: gb.vendi_score(x, kernel="cosine", **asked),
    }
    given = {"d": 3, "n": 64, "replicates": 3}
    with pytest.raises(gb.InputError, match=r"estimator='plugin' .*genbounds\.kernel_dist"):
        gb.score_over_scramblings(lambda z: z, statistics[metric], **given)
    plain = gb.score_over_scramblings(
        lambda z: z, lambda x: statistics[metric](x, estimator="plugin"), **given
    )
    assert plain.estimator == "plugin"


def test_scramblings_that_all_agree_say_nothing_of_others():
    for statistic in (lambda x: 0.0, lambda x: gb.mean_score((x[:, 0] > 9.0).astype(float))):
        score = gb.score_over_scramblings(lambda z: z, statistic, d=2, n=64, replicates=3)
        assert not score.reliable
        assert "no-variation" in {w.code for w in score.warnings if w.severity == "unreliable"}


@pytest.mark.parametrize(
    ("replicates", "spread", "said"),
    [
        (16, 2.0, {("few-samples", "caution")}),
        (60, 2.0, {("heavy-tails", "unreliable")}),
        (60, 0.1, set()),
    ],
)
def test_few_or_skew_scramblings_are_said(replicates, spread, said):
    """Log-normal scores (σ = 2): 16 cover 68 % [65, 71] and do not show why; 60 cover 79 %.

    Of 60 such 94.4 % [92.8, 95.7] are seen, of 60 normal ones 0 [0, 0.4] accused (1,000 runs).
    """
    seen = iter(np.exp(spread * special.ndtri((np.arange(replicates) + 0.5) / replicates)))
    given = {"d": 2, "n": 64, "replicates": replicates}
    score = gb.score_over_scramblings(lambda z: z, lambda x: next(seen), **given)
    assert {(w.code, w.severity) for w in score.warnings} == said


def test_a_plugin_is_not_told_of_a_bias_that_its_rows_lack():
    """Independent rows would leave +0.04, these 0.002; and "debiased", the remedy, is refused."""
    exact = gb.Moments(np.zeros(4), np.eye(4))

    def statistic(x):
        return gb.frechet_distance(x, exact, estimator="plugin")

    independent = statistic(np.random.default_rng(0).normal(size=(256, 4)))
    assert "bias-left" in {w.code for w in independent.warnings}
    score = gb.score_over_scramblings(lambda z: z, statistic, d=4, n=256)
    assert "bias-left" not in {w.code for w in score.warnings}
    assert score.value < 0.1 * independent.value


def test_an_unreliable_scrambling_is_not_hidden_by_a_later_one():
    kinds = iter(["unreliable", "caution", "caution"])

    def statistic(x):
        warning = gb.Diagnostic(code="duplicates", severity=next(kinds), message="repeated")
        return replace(gb.mean_score(x[:, 0]), warnings=(warning,))

    score = gb.score_over_scramblings(lambda z: z, statistic, d=2, n=64, replicates=3)
    assert not score.reliable


@pytest.mark.parametrize(
    ("generate", "statistic", "message"),
    [
        (lambda z: z[:-1], np.mean, "`generate` must return a row for each of 8 latents; got 7"),
        (lambda z: z, lambda x: x.mean(axis=0), "`statistic` must return one finite number"),
        (lambda z: z, lambda x: "0.5", "`statistic` must return one finite number.*got '0.5'"),
        (lambda z: z, lambda x: [1.0, [2.0]], "`statistic` must return one finite number"),
        (lambda z: z, lambda x: np.nan, "`statistic` must return one finite number.*got nan"),
    ],
)
def test_what_no_scrambling_may_return_is_refused_in_one_line(generate, statistic, message):
    with pytest.raises(gb.InputError, match=message):
        gb.score_over_scramblings(generate, statistic, d=2, n=8, replicates=3)


def test_the_interval_is_that_of_a_mean_of_the_scramblings():
    """Moved for skewness: where every third of 16 sees an event, 96.7 % cover, not 90.4 %."""
    values = np.repeat([0.0, 1.0, 2.0], [12, 3, 1]) / 64.0
    seen = iter(values)
    given = {"d": 2, "n": 64, "replicates": 16}
    score = gb.score_over_scramblings(lambda z: z, lambda x: next(seen), **given)
    mean = gb.mean_score(values)
    assert (score.low, score.high) == (mean.low, mean.high)
    assert score.high - score.value > 1.3 * (score.value - score.low)
    assert (score.n, score.title, score.higher_is_better) == (1024, "", False)
