from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from genbounds.estimators import EXACT, Estimate, SampleError
from genbounds.select import Certificate
from tests.warnings_of import caution, unreliable

SIZES = (100, 200, 400)
ALL = np.ones(8, dtype=bool)


def certificate(arms, *, top=1, tolerance=0.0, error=0.05):
    return Certificate(arms, SIZES, error=error, top=top, tolerance=tolerance)


def look(value, sd=0.1, *, reference=EXACT, higher_is_better=False, warnings=(), **sample):
    return Estimate(
        value=value,
        sample=SampleError(variance=sd**2, **sample),
        reference=reference,
        higher_is_better=higher_is_better,
        warnings=warnings,
    )


def test_one_clear_winner():
    c = certificate(3)
    for arm, value in enumerate([5.0, 1.0, 3.0]):
        assert c.answer() is None
        c.add(arm, look(value))
    assert c.answer() == (1,)
    assert not c.undecided().any()
    assert not c.open_pairs(ALL[:3]).any()


def test_orientation():
    c = certificate(2)
    c.add(0, look(5.0, higher_is_better=True))
    c.add(1, look(1.0, higher_is_better=True))
    assert c.answer() == (0,)


@pytest.mark.parametrize(("side", "expected"), [(1.001, (0,)), (0.999, None)])
def test_threshold_is_the_critical_value(side, expected):
    c = certificate(2)
    c.add(0, look(0.0))
    c.add(1, look(side * c.critical * np.hypot(0.1, 0.1)))
    assert c.answer() == expected


def test_few_degrees_of_freedom_need_more_evidence():
    c = certificate(2)
    gap = 1.001 * c.critical * np.hypot(0.1, 0.1)
    c.add(0, look(0.0, degrees_of_freedom=10.0))
    c.add(1, look(gap, degrees_of_freedom=10.0))
    assert c.answer() is None


def test_an_unreliable_look_is_no_evidence():
    c = certificate(2)
    c.add(0, look(0.0, warnings=(unreliable("misfit", "no smooth spectrum fits"),)))
    c.add(1, look(100.0, warnings=(caution("duplicates", "unreliable is only a word here"),)))
    assert c.answer() is None
    assert c.open_pairs(ALL[:2]).any()  # later looks may be reliable
    for arm, value in enumerate([0.0, 100.0]):
        c.add(arm, look(value))
    assert c.answer() == (0,)
    assert list(c.doubtful) == [1, 0]


EXPONENTIAL = np.random.default_rng(0).exponential(size=100) - 1.0


@pytest.mark.parametrize("higher_is_better", [False, True])
@pytest.mark.parametrize("odd_arm", [0, 1])
@pytest.mark.parametrize(
    "oddity",
    [
        # Right-skewed influences: a studentised score errs to the low side.
        {"influence": EXPONENTIAL},
        # Positive curvature: the estimated variance is small when the value is low, so that a low
        # value is too far out in standard errors.
        {"curvature": 2e-4},
    ],
    ids=["skewed", "bent"],
)
def test_odd_scores_need_more_evidence_on_the_heavy_side(oddity, odd_arm, higher_is_better):
    # A model that looks better because its score is low needs more evidence, one with a high score
    # not.
    for winner in (0, 1):
        c = certificate(2)
        gap = 1.01 * c.critical * np.hypot(0.1, 0.1)
        for arm in (0, 1):
            value = 0.0 if arm == winner else gap
            c.add(
                arm,
                look(
                    -value if higher_is_better else value,
                    higher_is_better=higher_is_better,
                    **(oddity if arm == odd_arm else {}),
                ),
            )
        heavy = (winner == odd_arm) != higher_is_better
        assert c.answer() == (None if heavy else (winner,))


@pytest.mark.parametrize(
    ("curvature", "more"),
    [
        (0.01, lambda c: 0.01 * (1.0 + c**2)),
        (-0.01, lambda c: 0.0),
        (9.0, lambda c: 0.6),  # beyond, the expansion behind it is not small
    ],
)
def test_curvature_adds_a_bounded_part(curvature, more):
    """Of a winner whose value and estimated variance rise and fall together; in standard errors."""
    for side, expected in [(1.0001, (0,)), (0.9999, None)]:
        c = certificate(2)
        stderr = np.hypot(0.1, 0.1)
        gap = side * (c.critical + more(c.critical)) * stderr
        c.add(0, look(0.0, curvature=curvature * stderr**3))
        c.add(1, look(gap))
        assert c.answer() == expected


@pytest.mark.nightly
@pytest.mark.statistical
def test_skewness_allowance_is_the_edgeworth_correction():
    """Null: the mean of 50 exponentials, which is 0, is certified to be below 0 with at most 1.5
    times the nominal probability 0.01 (8,000 draws).

    One-sided binomial gate at 1e-6. Control: without influences, which carry the skewness, the
    same gate is broken (the true rate is about 3.5 times the nominal one).
    """
    n, draws = 50, 8_000
    x = np.random.default_rng(3).exponential(size=(draws, n)) - 1.0
    zero = Estimate(value=0.0, sample=SampleError(variance=1e-12))

    def wrong(known):
        count = 0
        for rows in x:
            sample = SampleError(
                variance=float(rows.var(ddof=1)) / n,
                degrees_of_freedom=n - 1.0,
                influence=rows - rows.mean() if known else None,
            )
            c = Certificate(2, (n,), error=0.01, top=1, tolerance=0.0)
            c.add(0, Estimate(value=float(rows.mean()), sample=sample))
            c.add(1, zero)
            count += c.answer() == (0,)
        return count

    most = stats.binom.isf(1e-6, draws, 0.015)
    assert wrong(known=True) <= most
    assert wrong(known=False) > most


def test_only_equal_looks_are_compared():
    c = certificate(2)
    c.add(0, look(0.0))
    c.add(0, look(0.0))
    assert c.answer() is None
    c.add(1, look(9.0))  # meets the first look of arm 0
    assert c.answer() == (0,)


def test_evidence_is_kept_when_later_looks_contradict_it():
    c = certificate(2)
    c.add(0, look(0.0))
    c.add(1, look(9.0))
    c.add(0, look(0.0))
    c.add(1, look(0.0))
    assert c.answer() == (0,)


def test_a_chain_is_a_proof():
    c = certificate(3, error=1e-6)
    # 0 beats 1 at the first look, 1 beats 2 at the second; 0 and 2 are never compared there.
    c.add(0, look(0.0))
    c.add(1, look(2.0))
    c.add(2, look(2.0))
    c.add(1, look(2.0))
    c.add(2, look(4.0))
    assert c.beats[0, 2]
    assert c.answer() == (0,)


def test_a_chain_of_any_length_is_a_proof():
    """At each look one arm beats the next, and the noise of all others hides everything else."""
    sizes = tuple(100 * 2**k for k in range(6))
    c = Certificate(7, sizes, error=1e-6, top=1, tolerance=0.0)
    for level in range(6):
        for arm in range(level, 7):
            c.add(arm, look(2.0 * (arm > level), sd=0.1 if arm < level + 2 else 100.0))
    assert (c.beats == np.triu(np.ones((7, 7), dtype=bool), 1)).all()
    assert c.answer() == (0,)


def test_chain_through_an_arm_set_aside_does_not_count():
    c = certificate(3)
    c.add(0, look(0.0))
    c.add(1, look(1.0))
    c.add(2, look(0.0))
    c.add(1, look(1.0))
    c.add(2, look(2.0))
    assert c.beats[0, 2]
    c.set_aside(1)
    assert not c.beats[0, 2]
    assert c.answer() is None


def test_top_two():
    c = certificate(4, top=2)
    for arm, value in enumerate([1.0, 9.0, 1.1, 8.0]):
        c.add(arm, look(value))
    assert set(c.answer()) == {0, 2}
    # more ways to be wrong, higher bar
    assert c.critical > certificate(4).critical


def test_tolerance_accepts_either_of_two_close_arms():
    strict, loose = certificate(2), certificate(2, tolerance=1.0)
    for c in (strict, loose):
        c.add(0, look(0.0))
        c.add(1, look(0.05))
    assert strict.answer() is None
    assert loose.answer() == (0,)


def test_tolerance_does_not_accept_a_worse_arm():
    c = certificate(2, tolerance=0.5)
    c.add(0, look(0.0))
    c.add(1, look(0.6, sd=0.01))
    assert c.answer() == (0,)
    for values in [(0.0, 0.6), (0.6, 0.0), (0.0, 0.0)]:
        c = certificate(2, tolerance=0.5)
        for arm, value in enumerate(values):
            c.add(arm, look(value, sd=1.0))
        assert c.answer() is None


def test_reference_noise_alone_closes_a_pair():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=50)

    def noisy(value, influence, sd):
        return look(
            value,
            sd,
            reference=SampleError(
                variance=float(influence.var(ddof=1)) / influence.size, influence=influence
            ),
        )

    # Same influence: the reference's noise cancels, the pair stays open.
    c = certificate(2)
    c.add(0, noisy(0.0, shared, 0.001))
    c.add(1, noisy(0.001, shared, 0.001))
    assert c.open_pairs(ALL[:2]).any()
    # Opposite influence: noise of 0.28 that no sample lessens, against a gap of 0.001.
    c = certificate(2)
    c.add(0, noisy(0.0, shared, 0.001))
    c.add(1, noisy(0.001, -shared, 0.001))
    assert not c.open_pairs(ALL[:2]).any()
    assert c.hopeless_pairs()[0, 1]
    # While the arms' own noise is large the question is still open.
    c = certificate(2)
    c.add(0, noisy(0.0, shared, 1.0))
    c.add(1, noisy(0.001, -shared, 1.0))
    assert c.open_pairs(ALL[:2]).any()


def test_reference_noise_that_may_cancel_later_closes_nothing():
    # The pair of the second case above, from estimates that do not know the noise row by row.
    c = certificate(2)
    for arm, value in enumerate([0.0, 0.001]):
        c.add(arm, look(value, 0.001, reference=SampleError(variance=0.04, degrees_of_freedom=4.0)))
    assert c.open_pairs(ALL[:2]).any()
    assert not c.hopeless_pairs().any()


def test_pairs_out_of_reach_are_closed():
    c = certificate(2)
    c.add(0, look(0.0))
    c.add(1, look(0.0))
    c.add(0, look(0.0))
    exhausted = np.array([True, False])
    assert not c.open_pairs(exhausted).any()  # arm 1 is behind and cannot be pulled
    assert c.open_pairs(~exhausted).any()  # arm 0 is ahead: its look is already there
    c = certificate(2)
    for _ in SIZES:
        c.add(0, look(0.0))
        c.add(1, look(0.0))
    assert not c.open_pairs(ALL[:2]).any()  # after the last look there is none


def test_no_noise_no_comparison():
    c = certificate(2)
    c.add(0, look(0.0, sd=0.0))
    c.add(1, look(9.0, sd=0.0))
    assert c.answer() is None


def test_no_answer_without_a_rival():
    """One live arm, or `top` that leaves none out, is no comparison."""
    c = certificate(2)
    c.add(0, look(0.0))
    c.add(1, look(9.0))
    assert c.answer() == (0,)
    c.set_aside(1)
    assert c.answer() is None
    assert not c.undecided().any()
    c = certificate(3, top=2)
    for arm, value in enumerate([0.0, 9.0, 0.0]):
        c.add(arm, look(value))
    assert set(c.answer()) == {0, 2}
    c.set_aside(1)
    assert c.answer() is None


@pytest.mark.parametrize(("side", "expected"), [(1.0001, (0,)), (0.9999, None)])
def test_skewness_adds_that_of_the_mean_of_the_influence(side, expected):
    """Cornish and Fisher's (2 c² + 1)/6 of the third cumulant, in standard errors."""
    influence = np.random.default_rng(0).exponential(size=50) + 3.0
    c, stderr = certificate(2), np.hypot(0.1, 0.1)
    skewness = stats.moment(influence, order=3) / 50**2 / stderr**3
    c.add(0, look(0.0, influence=influence))
    c.add(1, look(side * stderr * (c.critical + skewness * (2.0 * c.critical**2 + 1.0) / 6.0)))
    assert c.answer() == expected
