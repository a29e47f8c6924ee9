"""Recipes over seeds: pooling, what runs share, the best of k, refusals, coverage."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

import genbounds as gb
from genbounds.decisions import rank_recipes
from tests.decisions.made import known, normal_estimates

D = 4
REAL = gb.Moments(np.zeros(D), np.eye(D))


def runs(scale, k, rng, *, tau=0.05, n=400):
    return [(scale + tau * rng.normal()) * rng.normal(size=(n, D)) for _ in range(k)]


@pytest.fixture(scope="module")
def ranking():
    rng = np.random.default_rng(0)
    recipes = {"base": runs(1.6, 4, rng, tau=0.2), "new": runs(1.2, 3, rng, tau=0.2)}
    return gb.compare_recipes(recipes, REAL)


# --- pooling --------------------------------------------------------------------------------------


def test_equal_samples_without_common_noise_are_welch_s_test():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.0, 1.0, size=4), rng.normal(3.0, 2.0, size=6)
    estimates = {"a": [known(x, 0.1) for x in a], "b": [known(x, 0.1) for x in b]}
    pair = rank_recipes(estimates, metric="fd").differences[0]
    welch = stats.ttest_ind(a, b, equal_var=False)
    interval = welch.confidence_interval(0.95)
    assert pair.pvalue == pytest.approx(welch.pvalue, rel=1e-9)
    assert (pair.low, pair.high) == pytest.approx((interval.low, interval.high))


# --- what runs share ------------------------------------------------------------------------------


def test_noise_of_the_reference_is_no_noise_of_seeds_and_cancels():
    rng = np.random.default_rng(2)
    own = 0.1 * np.eye(6)
    root = np.hstack([own, np.full((6, 1), 5.0)])
    values = root @ rng.normal(size=7)
    found = normal_estimates(values, root)
    ranking = rank_recipes({"a": found[:3], "b": found[3:]}, metric="fd")
    for noise in ranking.noise.values():
        assert noise.common == pytest.approx(5.0, rel=1e-6)
        assert noise.within == pytest.approx(0.1, rel=1e-6)
    assert ranking.differences[0].stderr < 0.5
    assert all(score.stderr > 4.9 for score in ranking.scores.values())


def test_what_does_not_cancel_of_it_is_added_once():
    """Recipe "b" feels the reference twice as much: a standard deviation of 5 is left."""
    rng = np.random.default_rng(3)
    root = np.hstack([0.1 * np.eye(20), np.repeat([[5.0], [10.0]], 10, axis=0)])
    found = normal_estimates(root @ rng.normal(size=21), root)
    pair = rank_recipes({"a": found[:10], "b": found[10:]}, metric="fd").differences[0]
    assert pair.stderr == pytest.approx(5.0, rel=0.01)


def test_common_prompts_are_no_noise_of_samples():
    rng = np.random.default_rng(4)
    latents, ids = rng.normal(size=(500, D)), np.arange(500)

    def told(scale, groups):
        noise = 0.1 * rng.normal(size=(500, D))
        return gb.Sample(scale * latents + noise, groups=groups)

    shared = {r: [told(c, ids) for _ in range(3)] for r, c in {"a": 1.3, "b": 1.31}.items()}
    loose = {r: [gb.Sample(x.features) for x in xs] for r, xs in shared.items()}
    one, two = gb.compare_recipes(shared, REAL), gb.compare_recipes(loose, REAL)
    assert one.noise["a"].within < 0.4 * two.noise["a"].within
    assert one.noise["a"].common > 2.0 * one.noise["a"].within


# --- results --------------------------------------------------------------------------------------


def test_a_ranking_that_says_what_is_noise(ranking):
    assert isinstance(ranking, gb.Ranking)
    assert ranking.best == "new"
    assert ranking.scores["base"].n == 1600
    assert ranking.noise["base"].seeds == 4
    assert ranking.noise["base"].seed_share > 0.5
    assert "more training runs" in ranking.advice
    assert ranking.advice in repr(ranking)
    document = json.loads(json.dumps(ranking.to_dict(), allow_nan=False))
    assert set(document["noise"]["new"]) == {"seeds", "between", "within", "common", "seed_share"}
    assert "Sd of seeds" in ranking.to_markdown()
    assert len(ranking.to_frame()) == 2
    assert "<svg" in ranking._repr_html_()


def test_scores_on_the_log_scale():
    rng = np.random.default_rng(5)
    sharp = [rng.dirichlet(np.full(5, 0.1), size=300) for _ in range(3)]
    flat = [rng.dirichlet(np.full(5, 1.0), size=300) for _ in range(3)]
    found = gb.compare_recipes({"flat": flat, "sharp": sharp}, metric="is")
    assert found.best == "sharp"
    assert found.log_scale
    low = min(gb.inception_score(x).value for x in sharp)
    high = max(gb.inception_score(x).value for x in sharp)
    assert low <= found.scores["sharp"].value <= high


def test_an_unreliable_run_makes_its_recipe_unreliable():
    rng = np.random.default_rng(6)
    bad = runs(1.6, 2, rng)
    bad[1][:] = bad[1][0]
    found = gb.compare_recipes({"bad": bad, "good": runs(1.2, 2, rng)}, REAL)
    assert not found.scores["bad"].reliable
    assert found.scores["good"].reliable


X = np.random.default_rng(0).normal(size=(100, D))


@pytest.mark.parametrize(
    ("recipes", "message"),
    [
        ({}, "must map the name of every recipe"),
        ({"a": [X, X + 1.0], "b": [X]}, "1 training run of 'b'"),
        ({"a": X}, "to a list with one sample per training run"),
        ({"a": [X, X[:, :2]]}, "model 'a, run 2'"),
    ],
)
def test_bad_input_is_one_clear_line(recipes, message):
    with pytest.raises(gb.InputError, match=message) as caught:
        gb.compare_recipes(recipes, REAL)
    assert "\n" not in str(caught.value)


def test_one_sample_for_two_runs_is_said():
    found = gb.compare_recipes({"a": [X, X], "b": runs(1.2, 2, np.random.default_rng(1))}, REAL)
    assert "same-rows" in {warning.code for warning in found.warnings}


# --- the best of k --------------------------------------------------------------------------------

SCORE = gb.Score(
    value=3.0, low=2.8, high=3.2, level=0.95, stderr=0.1, n=1000, estimator="debiased",
    method="second-order",
)  # fmt: skip


@pytest.mark.parametrize(("k", "shift"), [(2, 0.564), (10, 1.539)])
def test_the_bias_of_the_best_is_that_of_order_statistics(k, shift):
    assert gb.best_of(SCORE, k).value == pytest.approx(3.0 + 0.1 * shift, abs=1e-4)
    larger = gb.best_of(replace(SCORE, higher_is_better=True), k)
    smaller = gb.best_of(SCORE, k)
    assert larger.value == pytest.approx(3.0 - 0.1 * shift, abs=1e-4)
    assert (3.0 - larger.low, 3.0 - larger.high) == pytest.approx(
        (smaller.high - 3.0, smaller.low - 3.0)
    )


def test_one_evaluation_is_no_choice():
    assert gb.best_of(SCORE, 1) is SCORE


@pytest.mark.parametrize(("score", "k", "name"), [(SCORE, 0, "k"), (3.0, 2, "score")])
def test_best_of_refuses(score, k, name):
    with pytest.raises(gb.InputError, match=f"`{name}` must be"):
        gb.best_of(score, k)


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(("k", "tau"), [(10, 0.0), (3, 1.0), (5, 3.0)])
def test_intervals_cover_over_seeds(k, tau):
    """Null: the difference of two recipes is covered in 93 to 97 %, of 400 (150) pairs of recipes.

    Cells beyond these three are in docs/evidence.

    The tails of the binomial at 93 and 97 % have probability below 1e-6. Power: intervals from the
    noise of samples alone cover 82 % or less at tau = 1 and more, and are caught with certainty.
    """
    rng = np.random.default_rng([k, int(tau)])
    pairs, covered, short = 150 if k == 10 else 400, 0, 0
    for _ in range(pairs):
        within = rng.uniform(0.7, 1.3, size=2 * k)
        values = np.sqrt(within + tau**2) * rng.normal(size=2 * k)
        root = np.hstack([np.diag(np.sqrt(within)), np.ones((2 * k, 1))])
        found = normal_estimates(values + rng.normal(), root)
        pair = rank_recipes({"a": found[:k], "b": found[k:]}, metric="fd").differences[0]
        covered += pair.low <= 0.0 <= pair.high
        gap = values[:k].mean() - values[k:].mean()
        short += abs(gap) <= 1.96 * np.sqrt(within.sum()) / k
    low, high = stats.binom.ppf(1e-6, pairs, 0.93), stats.binom.isf(1e-6, pairs, 0.97)
    assert low <= covered <= high
    if tau == 3.0:
        assert short < low


def test_parts_of_the_noise_are_those_of_a_mixed_model():
    """REML of runs that are alike within; statsmodels stops at about 1e-4 of a standard error."""
    rng, runs_of_a, n = np.random.default_rng(3), 8, 40
    rest = rng.normal(size=n)
    levels = 1.2 * rng.normal(size=runs_of_a)
    values = np.array([level + rng.permutation(rest) for level in levels])
    recipes = {"a": [run[:, None] for run in values], "b": [rng.normal(size=(n, 1))] * 2}
    found = gb.compare_recipes(recipes, metric="mean")
    run = np.repeat(np.arange(runs_of_a), n)
    fit = MixedLM(values.ravel(), np.ones((values.size, 1)), groups=run).fit(reml=True)
    noise, score = found.noise["a"], found.scores["a"]
    assert noise.between == pytest.approx(np.sqrt(fit.cov_re[0, 0]), rel=1e-3)
    assert noise.within == pytest.approx(np.sqrt(fit.scale / n), rel=1e-3)
    assert score.value == pytest.approx(fit.params[0], rel=1e-6)


@pytest.mark.parametrize("shared", [0.0, 0.3, 1.0])
def test_the_interval_of_the_best_covers(shared):
    """H0: 95 % of 20,000 cover, both tails 1e-7. Untold, fewer do: power 1."""
    rng, runs, k = np.random.default_rng(4), 20_000, 10
    own = rng.normal(size=(runs, k)).min(axis=1)
    least = np.sqrt(1.0 - shared) * own + np.sqrt(shared) * rng.normal(size=runs)
    found = gb.best_of(SCORE, k, shared=shared)
    ends = np.array([found.low, found.value, found.high])
    low, value, high = (ends - SCORE.value) / SCORE.stderr
    hits = int(((least + low <= 0.0) & (least + high >= 0.0)).sum())
    assert stats.binom.ppf(1e-7, runs, 0.95) <= hits <= stats.binom.isf(1e-7, runs, 0.95)
    assert abs((least + value).mean()) < 5.5 * least.std() / np.sqrt(runs)


@pytest.mark.parametrize("shared", [-0.1, 1.1, True, float("nan"), "half"])
def test_best_of_refuses_a_share_that_is_none(shared):
    with pytest.raises(gb.InputError, match="shared"):
        gb.best_of(SCORE, 3, shared=shared)


def test_a_collapsed_seed_has_a_share_of_0_and_an_interval():
    """The run is all one row, far off: its recall is 0, where a standard error is 0 as well."""
    rng = np.random.default_rng(4)
    real, *good = (rng.normal(size=(200, D)) for _ in range(6))
    collapsed = np.full((200, D), 50.0) + 1e-9 * rng.normal(size=(200, D))
    recipes = {"sound": good[:3], "risky": [*good[3:], collapsed]}
    found = gb.compare_recipes(recipes, real, metric="recall")
    assert found.scores["risky"].low == 0.0
    assert found.scores["risky"].high > 0.5
    assert found.best == "sound"
