"""Degenerate and extreme data: the right value, an honest flag, or one clear refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genbounds as gb
from experiments.benchmarks.hard import pairs, spread

PAIRS = {pair.name: pair for pair in pairs()}
DEFINED = [name for name, pair in PAIRS.items() if pair.defined and "scale" not in name]
REFUSED = [name for name in PAIRS if name not in DEFINED]


def assert_sound(score):
    """Finite, ordered, and with a note wherever the interval has no width."""
    assert all(map(math.isfinite, (score.value, score.low, score.high, score.stderr)))
    assert score.low <= score.value <= score.high
    if score.high - score.low <= 1e-13 * abs(score.value):
        assert any(
            word in note for note in score.notes for word in ("no variation", "no interval")
        ), score


@pytest.mark.parametrize("name", DEFINED)
def test_plugin_distance_is_right(name):
    """Against 120 digits: to 1e-9 of the distance, or 1e-12 of the variances where it cancels."""
    pair = PAIRS[name]
    found = gb.frechet_distance(pair.fake, pair.real, estimator="plugin").value
    assert found == pytest.approx(pair.truth, rel=1e-9, abs=1e-12 * spread(pair))


@pytest.mark.parametrize("name", DEFINED)
def test_debiased_distance_is_sound(name):
    pair = PAIRS[name]
    score = gb.frechet_distance(pair.fake, pair.real)
    assert_sound(score)
    if (pair.fake != pair.fake[0]).any() and len(pair.fake) < 4 * pair.fake.shape[1]:
        assert any("unreliable" in note for note in score.notes)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_what_has_no_answer_is_refused(name, estimator):
    pair = PAIRS[name]
    with pytest.raises(gb.InputError, match=r"`(fake|real)`"):
        gb.frechet_distance(pair.fake, pair.real, estimator=estimator)


@pytest.mark.parametrize("power", [-200, -160, -150, -60, -22, 22, 60, 150, 160, 200, 307])
def test_extreme_scales_of_the_distance(power):
    """Refused, or so small that the distance is zero in double precision: never nan or wrong."""
    rng = np.random.default_rng(0)
    x, y = (10.0**power * rng.uniform(0.1, 1.0, size=(n, 3)) for n in (40, 50))
    if power < -160:
        assert gb.frechet_distance(x, y).value == 0.0
    else:
        with pytest.raises(gb.InputError, match=r"higher powers|squares overflow"):
            gb.frechet_distance(x, y)


@pytest.mark.parametrize("power", [-19, -10, 10, 19])
def test_ordinary_scales_do_not_matter(power):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(1.0, 1.0, size=(50, 3))
    one, scaled = gb.frechet_distance(x, y), gb.frechet_distance(x * 10.0**power, y * 10.0**power)
    for end in ("value", "low", "high"):
        assert getattr(scaled, end) == pytest.approx(
            getattr(one, end) * 10.0 ** (2 * power), rel=1e-9, abs=0
        )


# --- Vendi ---------------------------------------------------------------------------------------

VENDI = [("rbf", 1.0), ("rbf", 2.0), ("rbf", math.inf), ("laplace", 2.0), ("cosine", 2.0)]


@pytest.mark.parametrize(("kernel", "order"), VENDI)
@pytest.mark.parametrize("name", DEFINED)
def test_vendi_is_sound(name, kernel, order):
    x = PAIRS[name].fake
    if order == 2.0 and len(x) < 8:
        with pytest.raises(gb.InputError, match=r"at least 8 samples"):
            gb.vendi_score(x, kernel=kernel, order=order, method="ustat")
        return
    score = gb.vendi_score(x, kernel=kernel, order=order)
    assert_sound(score)
    assert score.value >= 1.0


@pytest.mark.parametrize(("kernel", "order"), VENDI)
@pytest.mark.parametrize("power", [-150, -60, 60, 149])
def test_vendi_does_not_depend_on_the_scale(power, kernel, order):
    x = np.random.default_rng(0).normal(size=(40, 3))
    one = gb.vendi_score(x, kernel=kernel, order=order)
    scaled = gb.vendi_score(x * 10.0**power, kernel=kernel, order=order)
    for end in ("value", "low", "high"):
        assert getattr(scaled, end) == pytest.approx(getattr(one, end), rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "cosine"])
@pytest.mark.parametrize("power", [-200, 160, 307])
def test_vendi_refuses_what_it_cannot_square(power, kernel):
    x = 10.0**power * np.random.default_rng(0).uniform(0.1, 1.0, size=(40, 3))
    with pytest.raises(gb.InputError, match=r"`x` has"):
        gb.vendi_score(x, kernel=kernel, order=2.0)


@pytest.mark.parametrize(
    ("rows", "truth"),
    [
        (np.ones((20, 3)), 1.0),
        (np.repeat(np.eye(4), 5, axis=0), 4.0),
        (np.repeat([[1.0, 0.0], [-1.0, 0.0]], 10, axis=0), 1.0),  # k² sees no sign
    ],
)
def test_vendi_of_few_distinct_rows(rows, truth):
    """Plug-in at order 2 with the cosine kernel, by hand."""
    score = gb.vendi_score(rows, kernel="cosine", order=2.0, method="exact")
    gram = rows @ rows.T / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows, axis=1)[:, None]
    assert 1.0 / np.mean(gram**2) == pytest.approx(truth)
    assert score.low <= truth * (1 + 1e-12)
    assert score.value == pytest.approx(truth, rel=0.3)


# --- Inception score -----------------------------------------------------------------------------

POSTERIORS = np.random.default_rng(0).dirichlet([0.1] * 5, size=50)
KL = POSTERIORS * np.log(POSTERIORS / POSTERIORS.mean(axis=0))
PLAIN = math.exp(KL.sum(axis=1).mean())
IS_CASES = {
    "one class in all": (np.eye(5)[[0] * 20], 1.0),
    "all rows alike": (np.repeat(POSTERIORS[:1], 30, axis=0), 1.0),
    "a single class": (np.ones((20, 1)), 1.0),
    "a class that never occurs": (np.column_stack([POSTERIORS, np.zeros(50)]), PLAIN),
    "every row ten times": (np.repeat(POSTERIORS, 10, axis=0), PLAIN),
    "every class alike, certain": (np.tile(np.eye(5), (10, 1)), 5.0),
    "a subnormal probability": (np.column_stack([np.ones(20), np.full(20, 5e-324)]), 1.0),
    "two rows": (np.eye(2), 2.0),
}


@pytest.mark.parametrize("name", IS_CASES)
def test_inception_score(name):
    probs, truth = IS_CASES[name]
    plain = gb.inception_score(probs, estimator="plugin")
    assert plain.value == pytest.approx(truth, rel=1e-12)
    for score in (plain, gb.inception_score(probs)):
        assert_sound(score)
        assert 1.0 <= score.value <= probs.shape[1]


@pytest.mark.parametrize(
    ("probs", "what"),
    [
        (POSTERIORS[:1], "at least 2 samples"),
        (POSTERIORS * 1e150, "sum to"),
        (np.full((3, 4), 1e308), "overflow|sum to"),
        (POSTERIORS - 0.01, "negative"),
        (np.where(POSTERIORS > 0.9, np.nan, POSTERIORS), "NaN"),
        (np.where(POSTERIORS > 0.9, np.inf, POSTERIORS), "infinite"),
    ],
)
def test_what_are_no_posteriors_is_refused(probs, what):
    with pytest.raises(gb.InputError, match=what):
        gb.inception_score(probs)


@pytest.mark.parametrize("score", [gb.frechet_distance, gb.vendi_score, gb.inception_score])
def test_signalling_nan_is_a_nan(score):
    """The bits of a NaN do not matter: one refusal, no warning from the processor."""
    x = np.full((20, 2), 0x7F800001, dtype="<u4").view("<f4")
    with pytest.raises(gb.InputError, match="NaN in row 0"):
        score(x, x) if score is gb.frechet_distance else score(x)


def test_the_truth_is_independent():
    """The 120-digit distance against a closed form: two diagonal samples of two rows."""
    from experiments.benchmarks.hard import exact_distance

    x, y = np.array([[0.0], [2.0]]), np.array([[1.0], [7.0]])  # variances 2 and 18, means 1 and 4
    assert exact_distance(x, y) == pytest.approx(9.0 + 2.0 + 18.0 - 2.0 * 6.0, rel=1e-15)
