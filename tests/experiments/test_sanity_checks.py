"""The suite of sanity checks: thirty criteria, read as published, of the library's own scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import genbounds as gb
from experiments.accuracy import sanity_checks as suite
from experiments.accuracy.sanity_checks import CHECKS, CRITERIA, Curve
from tests.estimators.neighbours import dense

STILL = (suite.flat, suite.settles)
"""The rules that a score which never moves can keep."""


def criteria(check):
    return {one.asks: one for one in CRITERIA if one.check == check}


def test_there_are_thirty_criteria_two_of_each_check():
    assert len(CRITERIA) == 30
    assert len(CHECKS) == 15
    assert all(len(criteria(check)) == 2 for check in CHECKS)


def reach(r):
    """Shares of generated and of real rows with one of the others within r: the true scores where
    distributions are r apart or the same."""

    def of(real):
        def values(fake):
            near = cdist(fake, real) < r
            return np.array([near.any(axis=1).mean(), near.any(axis=0).mean()])

        return values

    return of


@pytest.mark.parametrize(
    ("check", "r"), [("modes dropped or invented", 1.0), ("ball in a torus", 0.05)]
)
def test_the_true_scores_pass(check, r):
    drawn = suite.curves(check, reach(r), repeats=1, rows=300, seed=0)
    for score, found in zip(("precision", "recall"), drawn, strict=True):
        assert all(one.passed(score, found) for one in criteria(check).values()), score


def test_a_constant_passes_only_where_nothing_is_to_change():
    for check in ("modes dropped or invented", "ball in a torus", "one sample rounded"):
        (found,) = suite.curves(check, lambda real: lambda fake: 0.5, repeats=1, rows=20, seed=0)
        for asks, one in criteria(check).items():
            for score, rules in (("precision", one.fidelity), ("recall", one.diversity)):
                expected = all(rule in STILL for rule in rules)
                assert one.passed(score, found) == expected, (check, asks, score)


def test_shapes():
    x = np.linspace(-1.0, 1.0, 11)
    hill = Curve("", x, np.exp(-8.0 * x**2))
    assert suite.bell(0.0)(hill)
    assert not suite.bell(0.4)(hill)
    slope = Curve("", x, 1.0 - (x + 1.0) / 2.0)
    assert suite.falls(slope)
    assert not suite.rises(slope)
    assert suite.falls_by(0.5)(slope)
    late = Curve("", x, np.where(x < 0.9, 1.0, 0.0))
    assert suite.falls(late)
    assert not suite.falls_by(0.5)(late)
    early = Curve("", x, np.where(x < -0.1, 0.0, 0.5))
    assert suite.settles(early)
    assert not suite.flat(early)
    assert suite.rises(early)


def test_what_is_too_wide_may_be_low_or_high_but_not_both():
    one = criteria("wider and narrower")["values"]
    x = np.array([0.1, 1.0, 10.0])
    low, high = Curve("d = 1", x, np.array([0, 1, 0.0])), Curve("d = 8", x, np.array([0, 1, 1.0]))
    for score in suite.SYMBOLS:
        diversity = "recall" in score or score == "coverage"
        assert one.passed(score, [low, low]) == diversity
        assert one.passed(score, [high, high]) == diversity
        assert not one.passed(score, [low, high])


@pytest.mark.parametrize(("n", "m", "d"), [(200, 200, 2), (200, 150, 20), (150, 200, 1)])
def test_the_scores_are_those_of_the_library(n, m, d):
    rng = np.random.default_rng(0)
    real, fake = 3.0 + rng.normal(size=(n, d)), 3.0 + 0.8 * rng.normal(size=(m, d))
    found = dict(zip(suite.COLUMNS, suite.Against(real).values(fake), strict=True))
    real, fake = ((rows - real.mean(axis=0)) / real.std(axis=0) for rows in (real, fake))
    for k, names in ((3, ("precision", "recall")), (5, ("density", "coverage"))):
        four = gb.precision_recall(gb.Sample(fake[:n]), gb.Sample(real), k=k)
        for name in names:
            published = dense.four(fake, real, k)[suite.FOUR.index(name)]
            assert found["as published", name] == pytest.approx(published, rel=1e-12)
            # Fewer generated rows: what real rows get in recall is that of a random part of them.
            rel = 0.1 if (m < n and name == "recall") else 1e-12
            expected = four.calibrated[name].value
            assert found["calibrated", name] == pytest.approx(expected, rel=rel)
            capped = found["at most 1", name]
            assert capped == min(found["calibrated", name], 1.0)
    for pair in suite.PAIRS:
        smaller = min(found["at most 1", name] for name in pair.split(" and "))
        assert found["at most 1", pair] == smaller


def test_ceilings_are_those_of_the_library_where_it_gives_any():
    rng = np.random.default_rng(0)
    real, fake = rng.normal(size=(250, 2)), 6.0 + rng.normal(size=(250, 2))
    found = dict(zip(suite.COLUMNS, suite.Against(real).values(fake), strict=True))
    scaled = ((rows - real.mean(axis=0)) / real.std(axis=0) for rows in (fake, real))
    ceiling = gb.precision_recall_ceiling(*map(gb.Sample, scaled))
    for name in suite.CEILINGS:
        assert found["ceiling", name] == ceiling[name] < 1.0
    assert np.isnan(suite.Against(real).values(fake[:150])[-2:]).all()


def test_the_tables():
    verdicts = {column: [True] * 30 for column in suite.COLUMNS}
    verdicts["calibrated", "recall"][4] = False
    counts = {row[0]: row[1:] for row in suite.counted(verdicts)}
    assert counts["recall"] == ["30", "29", "30", "–"]
    assert counts["recall and coverage"] == ["–", "–", "30", "–"]
    assert counts["precision@10"] == ["–", "–", "–", "30"]
    row = suite.failed(verdicts)[4]
    assert row == [CRITERIA[4].check, CRITERIA[4].asks, "–", "R", "–", "–"]
