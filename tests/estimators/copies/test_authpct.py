"""AuthPct against its definition and known truths, alone, compared and in decisions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

import genbounds as gb
from tests.refusal import refused
from tests.warnings_of import codes

RNG = np.random.default_rng(3)
TRAIN = RNG.normal(size=(200, 6))
FRESH = RNG.normal(size=(150, 6))
COPIES = TRAIN[:150] + 0.02 * RNG.normal(size=(150, 6))


def published(fake, train):
    """As a matrix of distances says it, in the words of the paper."""
    between = cdist(train, fake)
    own = cdist(train, train)
    np.fill_diagonal(own, np.inf)
    nearest = between.argmin(axis=0)
    return 100.0 * np.mean(between.min(axis=0) > own.min(axis=0)[nearest])


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_value_is_the_published_one(scale, dtype):
    fake, train = (scale * FRESH).astype(dtype), TRAIN.astype(dtype)
    expected = published(fake.astype("f8"), train.astype("f8"))
    score = gb.authpct(fake, train)
    assert score.value == pytest.approx(expected, rel=1e-12)
    assert 20.0 < expected < 100.0


def test_known_shares():
    """On a line with training rows at 0, 1, 10 the radii are 1, 1 and 9."""
    train = np.array([[0.0], [1.0], [10.0]])
    fake = gb.Sample(np.array([[-0.5], [-1.5], [2.0], [2.5], [8.0], [19.0], [20.0], [10.0]]))
    # -0.5: near; -1.5: authentic; 2: a tie is not; 2.5: authentic; 8, 19 (tie): near; 20: authentic
    assert gb.authpct(fake, train).value == 100.0 * 3.0 / 8.0


def test_interval_of_independent_rows_is_the_binomial_one():
    for fake in (FRESH, COPIES, TRAIN + 50.0):  # the last two: none and all
        score = gb.authpct(gb.Sample(fake), TRAIN, level=0.9)
        hits = round(score.value * len(fake) / 100.0)
        exact = stats.binomtest(hits, len(fake)).proportion_ci(0.9, "exact")
        assert (score.low, score.high) == pytest.approx((100.0 * exact.low, 100.0 * exact.high))
        assert score.reliable
        share = (hits + 2.0) / (len(fake) + 4.0)
        assert score.stderr >= 100.0 * math.sqrt(share * (1.0 - share) / len(fake))
    assert gb.authpct(COPIES, TRAIN).high < 5.0 < 45.0 < gb.authpct(FRESH, TRAIN).low


def test_all_authentic_is_no_caution_whatever_the_rounding():
    for n in range(2, 120):
        assert not codes(gb.authpct(gb.Sample(TRAIN[:n] + 50.0), TRAIN)), n


def test_few_rows_are_doubted_where_the_interval_is_not_exact():
    rows = RNG.normal(size=(30, 6))
    assert "few-samples" not in codes(gb.authpct(gb.Sample(rows), TRAIN))
    for how in ({"strata": np.arange(30) % 2}, {"weights": 1.0 + np.arange(30.0)}):
        assert "few-samples" in codes(gb.authpct(gb.Sample(rows, **how), TRAIN), "caution")


def test_exact_copies_are_none_of_them_authentic():
    score = gb.authpct(TRAIN[:100], TRAIN)
    assert (score.value, score.low) == (0.0, 0.0)
    assert score.reliable  # a leak is what is measured


def test_unit_and_origin_do_not_matter():
    plain = gb.authpct(FRESH, TRAIN)
    assert gb.authpct(FRESH * 2.0**60, TRAIN * 2.0**60) == plain
    assert gb.authpct(FRESH * 2.0**300, TRAIN * 2.0**300).value == plain.value
    assert gb.authpct(FRESH + 2.0**20, TRAIN + 2.0**20).value == plain.value


def test_groups_widen_and_strata_narrow():
    rng = np.random.default_rng(5)
    prompt = np.repeat(np.arange(60), 4)
    x = rng.normal(size=(60, 6))[prompt] + 0.05 * rng.normal(size=(240, 6))
    told, plain = (gb.authpct(gb.Sample(x, groups=g), TRAIN) for g in (prompt, None))
    assert told.stderr > 1.4 * plain.stderr
    by_group = np.array([gb.authpct(gb.Sample(x[prompt == g]), TRAIN).value for g in range(60)])
    assert told.stderr == pytest.approx(by_group.std(ddof=1) / math.sqrt(60), rel=2e-3)
    which = np.repeat([0, 1], [120, 90])
    y = np.concatenate([FRESH[:120], COPIES[:90]])
    fixed, free = (gb.authpct(gb.Sample(y, strata=s), TRAIN) for s in (which, None))
    assert fixed.stderr < 0.8 * free.stderr
    assert fixed.value == free.value


@pytest.mark.parametrize("design", ["groups", "strata"])
def test_dependent_rows_of_one_kind_have_an_interval(design):
    """Of u groups that copy all their rows, or of u rows in strata, p is below 1 - (α/2)^(1/u)."""
    labels = np.repeat(np.arange(30), 5)
    score = gb.authpct(gb.Sample(COPIES[:1] + 0.0 * COPIES, **{design: labels}), TRAIN)
    units, free = (30, 29) if design == "groups" else (150, 120)
    rows = units * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, free)) ** 2
    assert score.high == pytest.approx(100.0 * (1.0 - 0.025 ** (1.0 / rows)), rel=1e-9)
    assert (score.value, score.low) == (0.0, 0.0)


def test_repeated_rows():
    """Of the model they are one draw; of the training set they hide copies."""
    twice = gb.authpct(np.repeat(FRESH, 2, axis=0), TRAIN)
    assert twice.stderr == pytest.approx(gb.authpct(FRESH, TRAIN).stderr, rel=1e-2)
    assert "duplicates" in codes(twice)
    score = gb.authpct(gb.Sample(FRESH), np.vstack([TRAIN, TRAIN[:3]]))
    assert codes(score, "caution") == {"duplicates"}
    assert "6 of 203 training rows" in score.notes[0]


@pytest.mark.parametrize(
    ("fake", "train", "subjects"),
    [
        (FRESH, gb.Moments(np.zeros(6), np.eye(6)), ("`train`", "moments")),
        (gb.Moments(np.zeros(6), np.eye(6)), TRAIN, ("`fake`", "moments")),
        (FRESH[:, :4], TRAIN, ("`fake`", "4 features", "6")),
        (FRESH, TRAIN[:1], ("`train`", "2")),
        (np.where(FRESH > 2.5, np.nan, FRESH), TRAIN, ("`fake`", "NaN")),
        (FRESH, np.where(TRAIN > 2.5, np.inf, TRAIN), ("`train`",)),
    ],
)
def test_refusals(fake, train, subjects):
    with refused(*subjects):
        gb.authpct(fake, train)


def test_it_is_a_metric_for_every_decision():
    rng = np.random.default_rng(8)
    heldout = rng.normal(size=(300, 6))
    models = {"gan": FRESH, "copier": COPIES, "held out": heldout}
    ranking = gb.compare(models, TRAIN, metric="authpct")
    assert ranking.scores["gan"] == gb.authpct(FRESH, TRAIN)
    assert ranking.contenders == tuple(n for n in ranking.scores if n != "copier")
    json.dumps(ranking.to_dict(), allow_nan=False)
    verdict = gb.gate(COPIES, heldout, TRAIN, margin=5.0, metric="authpct")
    assert verdict.decision == "fail"
    plan = gb.plan(heldout, TRAIN, half_width=2.0, metric="authpct")
    share = gb.authpct(heldout, TRAIN).value / 100.0
    needed = stats.norm.ppf(0.975) ** 2 * share * (1.0 - share) / 0.02**2
    assert plan.n == pytest.approx(needed, rel=0.1)


def test_selection_finds_the_model_that_copies_less():
    def arm(share):
        def draw(n, rng):
            copied = TRAIN[rng.integers(200, size=n)] + 0.02 * rng.normal(size=(n, 6))
            return np.where(rng.random((n, 1)) < share, copied, rng.normal(size=(n, 6)))

        return draw

    found = gb.select.run(
        {"copier": arm(0.5), "honest": arm(0.0)}, TRAIN, metric="authpct", seed=1, budget=4000
    )
    assert (found.best, found.certified) == ("honest", True)


@pytest.mark.statistical
def test_intervals_hold_the_share_of_the_model():
    """Exact limits miss with probability at most 5 %; of 400 runs 43 or more with less than 1e-6.

    Normal ones of 30 rows of which 97 % are authentic would miss in over half of them.
    """
    rng = np.random.default_rng(11)
    train = np.array([[0.0], [1.0]])  # radii 1: authentic is what lies beyond [-1, 2]
    misses = 0
    for _ in range(400):
        fake = np.where(rng.random(30) < 0.97, rng.uniform(3, 4, 30), rng.uniform(0, 1, 30))
        score = gb.authpct(gb.Sample(fake[:, None]), train)
        misses += not score.low <= 97.0 <= score.high
    assert misses < stats.binom.isf(1e-6, 400, 0.05)


def test_a_file_of_training_rows_and_a_dominating_weight_are_named():
    score = gb.authpct(TRAIN, TRAIN)
    assert codes(score, "caution") >= {"copies"}
    assert any(
        f"{len(TRAIN)} of {len(TRAIN)} generated rows are training rows" in str(w)
        for w in score.warnings
    )
    weights = np.ones(len(FRESH))
    weights[0] = 1e5
    heavy = gb.authpct(gb.Sample(FRESH, weights=weights), TRAIN)
    assert not heavy.reliable
    assert "few-samples" in codes(heavy, "unreliable")
