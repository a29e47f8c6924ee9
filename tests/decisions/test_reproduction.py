"""Where another laboratory's plug-in distance falls."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import genbounds as gb
from tests.refusal import refused
from tests.warnings_of import codes

RNG = np.random.default_rng(0)
D = 4
REAL = RNG.normal(size=(1500, D))
FAKE = 1.2 * RNG.normal(size=(1000, D))


def plug_in(fake, real):
    return gb.frechet_distance(fake, real, estimator="plugin").value


def test_with_our_own_numbers_it_is_our_plug_in():
    found = gb.reproduction(FAKE, REAL, n=1000)
    assert found.predicted == found.value == pytest.approx(plug_in(FAKE, REAL), rel=1e-12)
    one_sided = gb.frechet_distance(FAKE, gb.Moments(REAL.mean(0), np.cov(REAL.T)))
    assert found.stderr == pytest.approx(one_sided.stderr * 2**0.5)
    assert (found.decision, found.pvalue) == (None, None)


def test_other_numbers_of_rows_have_other_biases():
    few, many = (gb.reproduction(FAKE, REAL, n=n).predicted for n in (200, 100_000))
    whole = gb.frechet_distance(FAKE, gb.Moments(REAL.mean(0), np.cov(REAL.T))).value
    assert few > gb.reproduction(FAKE, REAL, n=1000).predicted > many
    assert many == pytest.approx(whole, rel=0.01)  # what bias is left is that of the reference
    own = gb.reproduction(FAKE, REAL, n=100_000, published_reference_n=100_000)
    assert own.predicted == pytest.approx(gb.frechet_distance(FAKE, REAL).value, rel=0.01)


def test_each_source_of_noise_widens():
    same = gb.reproduction(FAKE, REAL, n=5000)
    own = gb.reproduction(FAKE, REAL, n=5000, published_reference_n=5000)
    anew = gb.reproduction(FAKE, REAL, n=5000, training_sd=0.1)
    assert same.stderr < own.stderr
    assert anew.stderr**2 == pytest.approx(same.stderr**2 + 2 * 0.1**2)
    assert own.high - own.low < gb.reproduction(FAKE, REAL, n=500).high


def test_verdict_and_pvalue():
    middle = gb.reproduction(FAKE, REAL, n=5000)
    for published, decision in {middle.high: "consistent", 1.01 * middle.high: "not"}.items():
        found = gb.reproduction(FAKE, REAL, n=5000, published=published)
        assert found.decision == decision
        assert (found.pvalue >= 0.05 - 1e-12) == (decision == "consistent")
    assert str(found).startswith("not consistent: ")
    assert "(p < 0.0001)" in str(gb.reproduction(FAKE, REAL, n=5000, published=1e3))
    assert json.loads(json.dumps(found.to_dict()))["decision"] == "not"
    assert "predicted" in found.to_markdown()


def test_moments_and_groups_will_do():
    kept = [gb.Moments.from_features(x, keep=500) for x in (FAKE, REAL)]
    whole = gb.reproduction(FAKE, REAL, n=5000)
    assert gb.reproduction(*kept, n=5000).predicted == pytest.approx(whole.predicted, rel=0.01)
    groups = np.arange(1000) // 5
    grouped = gb.reproduction(gb.Sample(FAKE, groups=groups), REAL, n=200)
    assert grouped.stderr > 0.0


def test_what_is_unreliable_stays_so():
    twice = gb.reproduction(np.repeat(FAKE, 2, axis=0), REAL, n=5000)
    assert "duplicates" in codes(twice)
    assert str(gb.reproduction(FAKE[:6], REAL, n=500)).endswith("unreliable: see the warnings")


@pytest.mark.parametrize(("m", "decision"), [(10, "inconclusive"), (20, "consistent")])
def test_a_small_reference_of_theirs_denies_nothing(m, decision):
    """Bias as 1/m and the noise of our own reference denied 25 % of true distances at 20 rows."""
    found = gb.reproduction(FAKE, REAL, n=1000, published_reference_n=m)
    rng = np.random.default_rng(5)
    fakes, reals = 1.2 * rng.normal(size=(50, 1000, D)), rng.normal(size=(50, m, D))
    theirs = map(plug_in, fakes, reals)
    said = [replace(found, published=published).decision for published in theirs]
    assert said.count(decision) >= 45


def test_moments_do_not_tell_of_many_fewer_rows():
    moments = gb.Moments.from_features(REAL, keep=500)
    few, more = (gb.reproduction(FAKE, moments, n=1000, published_reference_n=m) for m in (70, 90))
    assert codes(few) == {"few-samples"}
    assert "70 reference rows" in str(few.warnings[0])
    assert codes(more) == set()


@pytest.mark.parametrize(
    "fake", [FAKE[:6], FAKE[:40], np.random.default_rng(1).standard_t(1.5, size=(300, D))]
)
@pytest.mark.parametrize("published", [0.2, 1e6])
def test_of_a_score_that_is_not_relied_on_nothing_is_decided(fake, published):
    """As by the gate; ten rows, or heavy tails, were consistent with nearly everything."""
    found = gb.reproduction(fake, REAL, n=5000, published=published)
    assert found.decision == "inconclusive"
    assert "a score cannot be relied on: " in str(found)


BAD = {
    "n": {"n": 1},
    "published": {"n": 10, "published": float("nan")},
    "training_sd": {"n": 10, "training_sd": -1.0},
    "published_reference_n": {"n": 10, "published_reference_n": 0},
    "level": {"n": 10, "level": 1.0},
    "metric": {"n": 10, "metric": "kid"},
}


@pytest.mark.parametrize("argument", BAD)
def test_refusals(argument):
    with refused(f"`{argument}`"):
        gb.reproduction(FAKE, REAL, **BAD[argument])


def test_samples_that_it_cannot_take():
    moments = gb.Moments(np.zeros(D), np.eye(D))
    assert gb.reproduction(FAKE, moments, n=5000).decision is None  # their file as well
    with refused("`real`"):
        gb.reproduction(FAKE, moments, n=5000, published_reference_n=100)
    with refused("`fake`"):
        gb.reproduction(moments, REAL, n=5000)
    with refused("`fake`"):
        gb.reproduction(gb.Sample(FAKE, weights=np.ones(1000)), REAL, n=5000)


@pytest.mark.statistical
def test_the_prediction_holds_what_another_laboratory_prints():
    """H0: it holds at least 91 % (95 % meant, 93 measured); false alarms below 1e-6.

    An interval of the true distance, or the plug-in's, holds 17 to 94 % in such cases: 60 % or
    less is seen with a probability above 1 - 1e-6.
    """
    hits = {(250, None): 0, (4000, 4000): 0, (600, 30): 0}
    runs = 160
    for seed in range(runs):
        rng = np.random.default_rng([seed, 7])
        fake, real = 1.2 * rng.normal(size=(600, D)), rng.normal(size=(600, D))
        for n, m in hits:
            other = real if m is None else rng.normal(size=(m, D))
            theirs = plug_in(1.2 * rng.normal(size=(n, D)), other)
            said = gb.reproduction(fake, real, n=n, published=theirs, published_reference_n=m)
            hits[n, m] += said.decision == "consistent"
    assert all(stats.binom.cdf(k, runs, 0.91) > 1e-6 for k in hits.values()), hits
