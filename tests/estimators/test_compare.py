"""Rankings: simultaneous coverage, shared noise, groups, refusals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import genbounds as gb
from genbounds.estimators import Estimate, SampleError, rank


def features(rng, n, shift, d=6):
    return rng.normal(shift, 1.0, size=(n, d))


def test_order_groups_and_the_reference_prepared_once():
    rng = np.random.default_rng(0)
    real = features(rng, 4000, 0.0)
    fakes = {
        "far": features(rng, 3000, 1.0),
        "near": features(rng, 2000, 0.1),
        "tie": features(rng, 3000, 1.0),
    }
    ranking = gb.compare(fakes, real)
    assert ranking.best == "near"
    assert ranking.contenders == ("near",)
    assert {frozenset(group) for group in ranking.groups} == {
        frozenset({"near"}),
        frozenset({"far", "tie"}),
    }
    for name, fake in fakes.items():
        assert ranking.scores[name] == gb.frechet_distance(fake, real)
    pair = ranking.difference("tie", "near")
    assert (pair.better, pair.worse) == ("near", "tie")
    assert pair.value == pytest.approx(ranking.scores["near"].value - ranking.scores["tie"].value)
    assert pair.high < 0.0


def test_inception_orders_downward():
    rng = np.random.default_rng(1)
    sharp, flat = (rng.dirichlet(np.full(10, a), size=800) for a in (0.05, 1.0))
    ranking = gb.compare({"flat": flat, "sharp": sharp}, metric="is")
    assert list(ranking.scores) == ["sharp", "flat"]
    assert ranking.differences[0].low > 0.0


def test_noise_of_the_shared_reference_cancels():
    """Two models equally far on the same side feel a small reference alike."""
    rng = np.random.default_rng(2)
    real = features(rng, 300, 0.0)
    ranking = gb.compare({"a": features(rng, 20000, 1.0), "b": features(rng, 20000, 1.0)}, real)
    alone = [score.stderr for score in ranking.scores.values()]
    assert ranking.differences[0].stderr < 0.3 * np.hypot(*alone)


def test_noise_of_shared_prompts_cancels():
    rng = np.random.default_rng(3)
    real, latent = features(rng, 5000, 0.0), rng.normal(size=(2000, 6))
    fakes = {"a": latent * 1.5, "b": latent * 1.52}
    prompts = np.arange(2000)
    shared = {name: gb.Sample(x, groups=prompts) for name, x in fakes.items()}
    loose, paired = gb.compare(fakes, real), gb.compare(shared, real)
    assert paired.differences[0].stderr < 0.2 * loose.differences[0].stderr
    assert paired.differences[0].distinguishable
    assert not loose.differences[0].distinguishable
    assert any("equal group ids share" in text for text in paired.assumptions)
    assert "the samples of the models are independent of one another" in loose.assumptions


@pytest.mark.statistical
def test_differences_of_many_equal_models_hold_together():
    """Null: the 28 differences of eight models hold together with a probability of 0.95.

    At most 174 of 2,400 rankings may claim a difference: P(Bin(2400, 0.05) > 174) < 1e-6. A family
    of eight in place of 28 claims one in 11 % of rankings and is missed with a probability below
    1e-9, as the control shows.
    """
    rng = np.random.default_rng(5)
    claims = few = 0
    for values in rng.normal(size=(2400, 8)):
        ranking = rank(
            {
                f"m{i}": Estimate(value=value, sample=SampleError(variance=1.0))
                for i, value in enumerate(values)
            },
            metric="fd",
        )
        claims += any(d.distinguishable for d in ranking.differences)
        few += min(d.pvalue for d in ranking.differences) < 0.05 / 8
    assert claims <= 174
    assert few > 174


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.floats(0.01, 10.0)), min_size=1, max_size=7))
def test_letters_say_exactly_who_is_separated(models):
    """Errors of unlike size make any pattern: the best and the last alike, and not the middle."""
    names = [f"m{i}" for i in range(len(models))]
    ranking = rank(
        {
            name: Estimate(value=value, sample=SampleError(variance=stderr**2))
            for name, (value, stderr) in zip(names, models, strict=True)
        },
        metric="fd",
    )
    groups = ranking.groups
    for pair in ranking.differences:
        together = any({pair.better, pair.worse} <= set(group) for group in groups)
        assert pair.distinguishable == (not together)
    for a, b in combinations(groups, 2):
        assert not set(a) <= set(b)
        assert not set(b) <= set(a)
    assert {name for group in groups for name in group} == set(names)


@pytest.mark.parametrize(
    ("fakes", "kwargs", "message"),
    [
        ({}, {}, "at least one model"),
        ([np.eye(3)], {}, "must map the name"),
        ({"a": np.eye(3)}, {"metric": "fdd"}, "`metric` must be one of"),
        ({"a": np.full((4, 3), np.nan)}, {}, "model 'a': .*NaN"),
        ({"a": np.ones((4, 2))}, {}, "model 'a': `fake` has 2 features"),
        ({"a": np.eye(3)}, {"level": 2}, "`level` must be"),
    ],
)
def test_bad_input_names_the_model(fakes, kwargs, message):
    with pytest.raises(gb.InputError, match=message):
        gb.compare(fakes, np.random.default_rng(0).normal(size=(30, 3)), **kwargs)


def test_fd_needs_a_reference():
    with pytest.raises(gb.InputError, match="needs a reference"):
        gb.compare({"a": np.eye(3)})


@pytest.mark.slow
def test_the_plugin_flips_a_rank_and_the_debiased_score_does_not():
    """C20's rank flip: the better model has the larger bias (2.25 against 1.53 at 200 rows).

    Over 100 samples the mean plug-in gap is wrong, the mean debiased gap right, both by more than
    six standard errors (false alarm 1e-9).
    """
    rng = np.random.default_rng(8)
    d, n, runs = 40, 200, 100
    real = gb.estimators.FrechetReference(gb.Moments(np.zeros(d), np.eye(d)))
    better, worse = 3.2, 0.3**2 * d
    gaps = {"plugin": np.empty(runs), "debiased": np.empty(runs)}
    for run in range(runs):
        a = rng.normal(np.sqrt(better / d), 1.0, (n, d))
        b = rng.normal(0.0, 0.7, (n, d))
        for estimator, gap in gaps.items():
            gap[run] = (
                real.estimate(a, estimator=estimator, influences=False).value
                - real.estimate(b, estimator=estimator, influences=False).value
            )
    assert better < worse
    noise = {name: 6.0 * gap.std() / np.sqrt(runs) for name, gap in gaps.items()}
    assert gaps["plugin"].mean() > noise["plugin"]
    assert gaps["debiased"].mean() < -noise["debiased"]
    assert abs(gaps["debiased"].mean() - (better - worse)) < noise["debiased"]


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "cosine"])
@pytest.mark.parametrize("metric", ["vendi", "rke"])
def test_collapsed_models_are_told_apart_by_no_rounding(metric, kernel):
    """One row, over and over: all score 1 without any variation, up to the last digit or two."""
    rng = np.random.default_rng(0)
    models = {str(k): np.tile(rng.normal(size=5) * 10.0**k, (100 + 7 * k, 1)) for k in range(-2, 4)}
    ranking = gb.compare(models, features(rng, 50, 0.0, d=5), metric=metric,
                         options={"kernel": kernel})  # fmt: skip
    assert {round(score.value, 12) for score in ranking.scores.values()} == {1.0}
    assert not any(pair.distinguishable for pair in ranking.differences)
    assert set(ranking.contenders) == set(models)


def test_differences_beyond_rounding_stay():
    one = gb.Moments(np.zeros(2), np.eye(2))
    near = {str(k): gb.Moments(np.array([1.0, k * 1e-7]), np.eye(2)) for k in (0, 100)}
    ranking = gb.compare(near, one)
    assert ranking.contenders == ("0",)


@pytest.mark.parametrize("sizes", [(40, 90), (100, 300), (101, 300)])
def test_vendi_of_few_rows_is_truncated_alike_for_all(sizes):
    """With no more rows than eigenvalues are usually kept, fewer are kept, of every model."""
    rng = np.random.default_rng(1)
    models = {str(n): features(rng, n, 0.0) for n in sizes}
    real = features(rng, 300, 0.0)
    bandwidth = gb.estimators.vendi_options("vendi", [real])[0]["bandwidth"]
    ranking = gb.compare(models, real, metric="vendi")
    kept = min(100, min(sizes) - 1)
    for name, score in ranking.scores.items():
        assert score.method == "truncated"
        alone = gb.vendi_score(
            models[name], method="truncated", components=kept, bandwidth=bandwidth
        )
        assert score.value == alone.value


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["fd", "kid"])
def test_a_pvalue_is_small_exactly_where_its_interval_excludes_zero(metric):
    """One pair: the level of the interval that ends at 0 is one less the p-value."""
    small = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        real = features(rng, 400, 0.0)
        fakes = {"a": features(rng, 300, 0.30), "b": features(rng, 300, 0.30 + 0.03 * seed)}
        pair = gb.compare(fakes, real, metric=metric).differences[0]
        assert pair.pvalue_adjusted == pair.pvalue
        assert 0.0 < pair.pvalue <= 1.0
        for level in (0.5, 0.95):
            found = gb.compare(fakes, real, metric=metric, level=level).differences[0]
            assert found.pvalue == pair.pvalue
            assert (pair.pvalue < 1.0 - level) == found.distinguishable
        if 1e-6 < pair.pvalue < 0.99:
            low, high = (
                gb.compare(
                    fakes, real, metric=metric, level=1.0 - pair.pvalue * (1.0 + sign * 1e-4)
                )
                .differences[0]
                .distinguishable
                for sign in (1.0, -1.0)
            )
            assert (low, high) == (True, False)
        small += pair.pvalue < 0.05
    assert 0 < small < 8  # both kinds were seen


def test_adjusted_pvalues_count_the_pairs():
    rng = np.random.default_rng(20)
    fakes = {
        name: features(rng, 300, shift)
        for name, shift in zip("abcd", (0.3, 0.32, 0.4, 0.7), strict=True)
    }
    ranking = gb.compare(fakes, features(rng, 400, 0.0))
    assert len(ranking.differences) == 6
    for pair in ranking.differences:
        assert pair.pvalue_adjusted == min(1.0, 6.0 * pair.pvalue)
        assert (pair.pvalue_adjusted < 0.05) == pair.distinguishable
    assert len({pair.distinguishable for pair in ranking.differences}) == 2
