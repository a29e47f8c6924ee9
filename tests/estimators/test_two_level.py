"""Two levels: a model's score, sharpened by many draws of a cheap partner."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

import genbounds as gb
from tests.refusal import refused

EXACT = gb.Moments(mean=np.zeros(8), cov=np.eye(8))


def drawn(rng, n, more, likeness=0.9):
    """Draws of a model, of a worse partner from noise so much alike, and further ones."""
    noise, other = rng.normal(size=(2, n, 8))
    cheap = 1.3 * (likeness * noise + math.sqrt(1.0 - likeness**2) * other) + 0.6
    return 1.1 * noise + 0.2, cheap, 1.3 * rng.normal(size=(more, 8)) + 0.6


TRUTH = 8 * (0.2**2 + 0.1**2)


def codes(score):
    """Codes of the warnings."""
    return {warning.code for warning in score.warnings}


def test_a_mean_has_the_textbook_control_variate():
    """Value, weight and error of the mean in closed form, with a degree of freedom for the fit."""
    rng = np.random.default_rng(0)
    u, n, more = rng.normal(size=400), 400, 4000
    v = 3.0 * (0.8 * u + 0.6 * rng.normal(size=n)) + 7.0
    w = 3.0 * rng.normal(size=more) + 7.0
    found = gb.two_level(u[:, None], v[:, None], w[:, None], metric="mean")
    of_w = w.var(ddof=1) / more
    covariance = np.cov(u, v) / n
    b = covariance[0, 1] / (covariance[1, 1] + of_w)
    own = np.var(u - b * v, ddof=1) / n * (n - 1) / (n - 2)
    assert found.beta == pytest.approx(b, rel=1e-9)
    assert found.value == pytest.approx(u.mean() + b * (w.mean() - v.mean()), rel=1e-9)
    assert found.stderr == pytest.approx(math.sqrt(own + b**2 * of_w), rel=1e-9)
    assert found.correlation == pytest.approx(np.corrcoef(u, v)[0, 1], rel=1e-9)
    assert found.plain.value == pytest.approx(u.mean(), rel=1e-12)


@pytest.mark.parametrize("metric", ["fd", "kid", "vendi"])
def test_the_value_is_the_sum_of_three_scores(metric):
    """T = S_E(n) + b [S_C(N) - S_C(n)], on the scale on which the score is additive."""
    parts = drawn(np.random.default_rng(1), 300, 900)
    real = np.random.default_rng(2).normal(size=(500, 8))
    options = {"bandwidth": 3.0, "order": 2.0} if metric == "vendi" else {}
    found = gb.two_level(*parts, real, metric=metric, beta=0.5, options=options)
    prepared = gb.estimators.metric_spec(metric).prepared(real, options, list(parts))
    one, two, three = (prepared.estimate(x).value for x in parts)
    value = one + 0.5 * (three - two)
    assert found.value == pytest.approx(math.exp(value) if metric == "vendi" else value, rel=1e-12)
    assert found.beta == 0.5
    assert type(found.low) is float


def test_what_is_left_follows_the_correlation():
    """1 - r² N/(N + n) of the variance due to the rows; that of the reference stays whole."""
    rng = np.random.default_rng(3)
    parts = drawn(rng, 500, 5000, likeness=0.95)
    exact = gb.two_level(*parts, EXACT)
    assert exact.variance_left == pytest.approx(1.0 - exact.correlation**2 / 1.1, abs=0.03)
    assert exact.reference_share == 0.0
    sampled = gb.two_level(*parts, rng.normal(size=(800, 8)))
    whole = gb.frechet_distance(parts[0], gb.Moments(np.zeros(8), np.eye(8), 800))
    alone = gb.frechet_distance(parts[0], EXACT)
    of_reference = whole.stderr**2 - alone.stderr**2
    assert sampled.reference_share * sampled.stderr**2 == pytest.approx(of_reference, rel=0.25)


@pytest.mark.statistical
@pytest.mark.parametrize(("likeness", "n", "times"), [(0.7, 300, 5), (0.95, 300, 10)])
def test_intervals_cover(likeness, n, times):
    """H0: 94 % cover. False alarms below 1e-6; coverage of 80 % is seen with 99 %."""
    rng, hits, runs = np.random.default_rng(4), 0, 200
    for _ in range(runs):
        found = gb.two_level(*drawn(rng, n, n * times, likeness), EXACT)
        hits += found.low <= TRUTH <= found.high
    assert hits >= binom.ppf(1e-6, runs, 0.94)


def test_a_partner_from_other_noise_is_left_out():
    """Chance correlations gain nothing: the plain score is returned, with the reason."""
    rng = np.random.default_rng(5)
    images, _, more = drawn(rng, 300, 900)
    _, stranger, _ = drawn(rng, 300, 900)
    found = gb.two_level(images, stranger, more, EXACT)
    assert {"unpaired-noise", "chance-correlation"} <= codes(found)
    assert (found.value, found.low, found.high) == (
        found.plain.value,
        found.plain.low,
        found.plain.high,
    )
    assert (found.beta, found.variance_left) == (0.0, 1.0)


def test_further_draws_of_another_partner_are_seen():
    """Draws 10 % wider than the common ones shift the score: unreliable, none of 100 by chance.

    Chance: 0.3 % of the time; more than 5 of 100 have probability 1e-7.
    """
    rng = np.random.default_rng(6)
    images, cheap, more = drawn(rng, 500, 5000)
    found = gb.two_level(images, cheap, 1.1 * more, EXACT)
    assert "other-partner" in codes(found)
    assert not found.reliable
    seen = [
        "other-partner" in codes(gb.two_level(*drawn(rng, 200, 1000), EXACT)) for _ in range(100)
    ]
    assert sum(seen) <= 5


def test_few_rows_and_little_gain_are_said():
    rng = np.random.default_rng(7)
    assert "fitted-beta" in codes(gb.two_level(*drawn(rng, 120, 1200, 0.98), EXACT))
    given = gb.two_level(*drawn(rng, 120, 1200, 0.98), EXACT, beta=0.7)
    assert "fitted-beta" not in codes(given)
    assert "little-gain" in codes(gb.two_level(*drawn(rng, 2000, 2000, 0.4), EXACT))


def test_groups_are_the_units_of_both_levels():
    """Four images of a prompt, alike but for a little noise, are worth one."""
    rng = np.random.default_rng(8)
    images, cheap, more = drawn(rng, 200, 2000)
    prompts, further = np.repeat(np.arange(200), 4), np.repeat(np.arange(2000), 4)
    names = 200 + further
    one = gb.two_level(images, cheap, more, EXACT)
    four = gb.two_level(
        gb.Sample(images[prompts], groups=prompts),
        gb.Sample(cheap[prompts], groups=prompts),
        gb.Sample(more[further], groups=names),
        EXACT,
    )
    assert four.stderr == pytest.approx(one.stderr, rel=0.02)


def test_what_cannot_be_sharpened_is_refused():
    images, cheap, more = drawn(np.random.default_rng(9), 100, 300)
    with refused("cheap", "99 rows for 100"):
        gb.two_level(images, cheap[:99], more, EXACT)
    with refused("metric"):
        gb.two_level(images, cheap, more, images + 1.0, metric="precision")
    with refused("beta"):
        gb.two_level(images, cheap, more, EXACT, beta=math.nan)
    crossed = gb.Sample(images, groups=np.repeat(np.arange(20), 5), seeds=np.tile(np.arange(5), 20))
    with refused("seeds"):
        gb.two_level(crossed, cheap, more, EXACT)


def test_noise_that_was_started_again_is_seen():
    """Further draws that are the common ones tell nothing new."""
    images, cheap, more = drawn(np.random.default_rng(10), 300, 900)
    for again in (cheap, np.vstack([cheap[:50], more]), np.vstack([more, more[:50]])):
        found = gb.two_level(images, cheap, again, EXACT)
        assert not found.reliable
        assert "same-rows" in codes(found)


def test_rows_that_repeat_are_one_draw():
    """In whatever order both scores hold them; independent models share no names by it."""
    images, cheap, more = drawn(np.random.default_rng(11), 300, 3000)
    whole = gb.two_level(images, cheap, more, EXACT)
    twice = np.r_[0, np.arange(300)]
    found = gb.two_level(images[twice], cheap[twice], more, EXACT)
    assert found.correlation == pytest.approx(whole.correlation, abs=0.02)
    assert found.stderr == pytest.approx(whole.stderr, rel=0.05)
    again = gb.compare({"a": images[twice]}, EXACT, partners={"a": np.vstack([cheap[twice], more])})
    assert again.scores["a"].value == pytest.approx(found.value, rel=1e-12)


def test_samples_that_do_not_belong_together_are_refused():
    images, cheap, more = drawn(np.random.default_rng(12), 200, 400)
    names, classes = np.arange(200), np.arange(200) % 2
    with refused("cheap_more", "groups"):
        gb.two_level(
            gb.Sample(images, groups=names),
            gb.Sample(cheap, groups=names),
            gb.Sample(more[:200], groups=names),
            EXACT,
        )
    with refused("groups of the reference"):
        gb.two_level(
            gb.Sample(images, groups=names),
            gb.Sample(cheap, groups=names),
            more,
            gb.Sample(images + 1.0, groups=names),
        )
    with refused("strata"):
        gb.two_level(gb.Sample(images, strata=classes), cheap, more, EXACT)
    with refused("statistic"):
        gb.two_level(images, cheap, more, metric="vendi", options={"method": "exact"})


def test_samples_may_be_tensors_lists_or_single_values():
    torch = pytest.importorskip("torch")
    images, cheap, more = drawn(np.random.default_rng(13), 200, 400)
    expected = gb.two_level(images, cheap, more, EXACT).value
    whole = np.vstack([cheap, more])
    for given in (np.ndarray.tolist, lambda x: torch.tensor(x, requires_grad=True)):
        found = gb.two_level(given(images), given(cheap), given(more), EXACT)
        assert found.value == pytest.approx(expected, rel=1e-12)
        ranking = gb.compare({"a": given(images)}, EXACT, partners={"a": given(whole)})
        assert ranking.scores["a"].value == pytest.approx(expected, rel=1e-12)
        assert gb.plan(
            given(images), EXACT, half_width=0.05, partner=given(cheap), costs=(64, 4)
        ).pays
    column, values = (
        gb.two_level(*(shaped(x) for x in (images, cheap, more)), metric="mean").value
        for shaped in (lambda x: x[:, :1], lambda x: x[:, 0])
    )
    assert values == column
