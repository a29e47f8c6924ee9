"""Certified ceilings: never below the truth more often than allowed, and low where they can be."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import genbounds as gb
from tests.refusal import refused

MODES = np.eye(10, 16) * 12.0


def rows(weights, n, rng):
    return MODES[rng.choice(10, n, p=weights)] + rng.normal(size=(n, 16))


EQUAL = np.full(10, 0.1)
DROPPED = np.array([0.0, 0.0, *[0.125] * 8])
NAMES = ("precision@10", "overlap", "recall@10")


def truth(fake, real, lam):
    return min(np.minimum(fake, lam * real).sum() / min(lam, 1.0), 1.0)


class First:
    """A classifier that looks at the first feature."""

    def fit(self, x, y):
        return self

    def decision_function(self, x):
        return x[:, 0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_limits_of_shares_are_clopper_and_pearsons(share):
    """No real row looks generated, and of the generated ones some whole number looks real."""
    rng = np.random.default_rng(5)
    real, fake = np.zeros((800, 1)), (rng.random((600, 1)) >= share).astype(float)
    found = gb.precision_recall_ceiling(
        fake + 1e-9 * rng.random((600, 1)), real, lam=1, classifier=First(), level=0.9
    )
    hits = np.arange(found.m)
    possible = stats.beta.ppf(0.95, hits + 1, found.m - hits) + stats.beta.ppf(0.95, 1, found.n)
    assert np.abs(possible - found["overlap"]).min() < 1e-9
    assert share > 0.0 or found["overlap"] == pytest.approx(possible[0], rel=1e-9)


def test_dropped_modes_lower_overlap_and_recall_alone():
    rng = np.random.default_rng(0)
    found = gb.precision_recall_ceiling(rows(DROPPED, 1500, rng), rows(EQUAL, 1500, rng))
    assert tuple(found.ceilings) == NAMES
    assert found["precision@10"] == 1.0
    assert 0.8 <= found["overlap"] < 0.9
    assert 0.8 <= found["recall@10"] < 0.95
    assert found.reliable
    assert json.loads(json.dumps(found.to_dict()))["ceilings"] == found.ceilings
    assert len(found.to_frame()) == 3
    assert "overlap" in repr(found)


def test_a_shift_is_found_by_the_linear_classifier():
    rng = np.random.default_rng(1)
    real, fake = (rng.normal(size=(800, 20)) * [1.0, *[20.0] * 19] for _ in range(2))
    fake[:, 0] += 3.0  # overlap 0.13, which distances do not show
    found = gb.precision_recall_ceiling(fake, real, lam=1)
    assert found.classifiers == {"overlap": "logistic regression"}
    assert found["overlap"] < 0.3


@pytest.mark.nightly
@pytest.mark.statistical
def test_ceilings_are_valid():
    """False alarm 1e-6 if each misses with 5 % (measured: at most 1 %); one that misses with 20 %,
    as rows used twice would make it, is seen with probability 99 %.
    """
    rng = np.random.default_rng(2)
    misses = np.zeros(3, dtype=int)
    for _ in range(150):
        found = gb.precision_recall_ceiling(rows(DROPPED, 400, rng), rows(EQUAL, 400, rng))
        misses += [
            found[name] < truth(DROPPED, EQUAL, lam) - 1e-12
            for name, lam in zip(NAMES, (10.0, 1.0, 0.1), strict=True)
        ]
    assert misses.max() <= stats.binom.isf(1e-6 / 3.0, 150, 0.05)


class Guess:
    """A classifier that knows nothing."""

    def fit(self, x, y):
        self.n = len(x)
        return self

    def decision_function(self, x):
        return np.random.default_rng(len(x)).normal(size=len(x))


class Broken(Guess):
    def fit(self, x, y):
        raise RuntimeError("no\nluck")


def test_any_classifier_will_do_and_a_bad_one_leaves_ceilings_high():
    rng = np.random.default_rng(3)
    fake, real = rows(DROPPED, 600, rng), rows(EQUAL, 600, rng)
    found = gb.precision_recall_ceiling(fake, real, classifier=Guess(), lam=(2.0, 0.5))
    assert found.ceilings == {"precision@2": 1.0, "recall@2": 1.0}
    assert set(found.classifiers.values()) == {"Guess"}
    with refused("`classifier`", "no luck"):
        gb.precision_recall_ceiling(fake, real, classifier=Broken())
    with refused("`classifier`", "fit"):
        gb.precision_recall_ceiling(fake, real, classifier=Guess)
    with refused("`lam`"):
        gb.precision_recall_ceiling(fake, real, lam=(1.0, 0.0))
    with refused("`fake`", "199", "200"):
        gb.precision_recall_ceiling(fake[:199], real)
    with refused("`real`", "weights"):
        gb.precision_recall_ceiling(fake, gb.Sample(real, weights=np.ones(600)))


def test_one_row_of_each_group_certifies():
    """Copies of rows make no ceiling lower."""
    rng = np.random.default_rng(4)
    prompt = np.repeat(np.arange(300), 3)
    fake = np.repeat(rows(DROPPED, 300, rng), 3, axis=0) + 0.01 * rng.normal(size=(900, 16))
    found = gb.precision_recall_ceiling(gb.Sample(fake, groups=prompt), rows(EQUAL, 900, rng))
    assert found.m < 200 < found.n
