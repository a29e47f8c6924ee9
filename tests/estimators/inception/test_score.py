"""Inception score: independent references, properties, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import genbounds as gb
from genbounds.estimators import inception_estimate, inception_splits
from tests.estimators.reference import log_inception_mpmath
from tests.warnings_of import codes


def posteriors(seed, n, classes, sharpness):
    return np.random.default_rng(seed).dirichlet(np.full(classes, sharpness), size=n)


@pytest.mark.parametrize(
    ("n", "classes", "sharpness"), [(2, 2, 1.0), (40, 3, 0.1), (60, 10, 0.01), (30, 5, 50.0)]
)
def test_plugin_against_forty_digits(n, classes, sharpness):
    probs = posteriors(n, n, classes, sharpness)
    got = gb.inception_score(probs, estimator="plugin").value
    assert_allclose(np.log(got), log_inception_mpmath(probs), rtol=1e-10, atol=1e-14)


def test_one_hot_posteriors():
    """K equally frequent certain classes: the score is K. Identical posteriors: it is 1."""
    one_hot = np.tile(np.eye(7), (30, 1))
    assert gb.inception_score(one_hot, estimator="plugin").value == pytest.approx(7.0, rel=1e-14)
    same = np.tile([0.2, 0.3, 0.5], (30, 1))
    score = gb.inception_score(same)
    assert (score.value, score.stderr) == (
        pytest.approx(1.0, abs=1e-12),
        pytest.approx(0.0, abs=1e-12),
    )


def test_the_bias_formula_is_the_exact_one_for_certain_classes():
    """With one-hot rows log IS is the plug-in entropy, whose bias -(K-1)/2n is Miller's (1955).

    Before the score is clipped to the largest possible one, K.
    """
    n, classes = 400, 8
    rng = np.random.default_rng(0)
    gains = [
        inception_estimate(rows).value - inception_estimate(rows, estimator="plugin").value
        for rows in (np.eye(classes)[rng.integers(classes, size=n)] for _ in range(50))
    ]
    # Halving adds zero-mean noise of about 1e-3 to one gain; 50 of them pin the mean to 2e-4.
    assert np.mean(gains) == pytest.approx((classes - 1) / (2 * n), abs=1e-3)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 80),
    classes=st.integers(1, 9),
    sharpness=st.sampled_from([0.01, 0.3, 1.0, 30.0]),
)
@settings(deadline=None, max_examples=60)
def test_laws(seed, n, classes, sharpness):
    """Bounds, class relabelling, row order, duplicated rows, float32, logits shift."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(classes, sharpness), size=n)
    plugin = gb.inception_score(probs, estimator="plugin")
    assert 1.0 <= plugin.value <= min(classes, n) * (1 + 1e-12)
    relabelled = gb.inception_score(probs[:, rng.permutation(classes)], estimator="plugin")
    assert_allclose(relabelled.value, plugin.value, rtol=1e-12)
    doubled = gb.inception_score(np.repeat(probs, 2, axis=0), estimator="plugin")
    assert_allclose(doubled.value, plugin.value, rtol=1e-12)
    assert_allclose(
        gb.inception_score(probs.astype(np.float32), estimator="plugin").value,
        plugin.value,
        rtol=1e-5,
    )
    score = gb.inception_score(probs)
    assert 1.0 <= score.low <= score.value <= score.high


def test_a_class_that_never_occurs_changes_nothing():
    probs = posteriors(1, 50, 4, 0.5)
    padded = np.hstack([probs, np.zeros((50, 3))])
    assert gb.inception_score(padded).value == pytest.approx(
        gb.inception_score(probs).value, rel=1e-13
    )


def test_too_few_samples_per_class_are_flagged():
    assert codes(gb.inception_score(posteriors(2, 60, 100, 0.1)), "caution") == {"few-samples"}
    assert gb.inception_score(posteriors(2, 600, 100, 0.1)).warnings == ()


GOOD = posteriors(0, 5, 3, 1.0)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (GOOD * 2, "sum to 2 in row 0.*softmax"),
        (np.vstack([GOOD, [[0.5, 0.7, -0.2]]]), "negative entry in row 5"),
        (np.vstack([GOOD, [[np.nan, 0.5, 0.5]]]), "NaN in row 5"),
        (GOOD[:1], "at least 2 samples"),
        (GOOD[0], r"must have shape \(n, d\)"),
        (np.zeros((3, 4)), "sum to 0 in row 0"),
    ],
)
def test_bad_input_is_one_clear_error(probs, message):
    with pytest.raises(gb.InputError, match=message):
        gb.inception_score(probs)


def test_posteriors_may_be_rounded_to_bfloat16():
    """Rounding is by 2⁻⁸ of an entry at most, and so are their sums; twice that is no rounding."""
    probs = posteriors(0, 400, 5, 1.0)
    bits = probs.astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x8000) & 0xFFFF0000).view(np.float32)
    assert np.abs(rounded.sum(axis=1) - 1.0).max() > 1e-3
    score, exact = gb.inception_score(rounded), gb.inception_score(probs)
    assert score.value == pytest.approx(exact.value, rel=1e-3)
    with pytest.raises(gb.InputError, match=r"sum to 1\.0078"):
        gb.inception_score(probs * (1.0 + 2.0**-7))


def test_splits_are_the_scores_of_the_parts():
    probs = np.random.default_rng(5).dirichlet(np.full(4, 0.5), size=103)
    scores = inception_splits(probs, splits=10)
    assert [score.n for score in scores] == [11] * 3 + [10] * 7
    assert scores[1] == gb.inception_score(probs[11:22], estimator="plugin")


def test_splits_of_fewer_rows_than_two_each_are_refused():
    with pytest.raises(gb.InputError, match="splits"):
        inception_splits(np.full((5, 2), 0.5), splits=3)
