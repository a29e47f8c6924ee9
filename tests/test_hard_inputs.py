"""Degenerate and extreme data: the right value, an honest flag, or one clear refusal."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import genbounds as gb
from experiments.benchmarks.hard import pairs, spread
from tests.warnings_of import codes

PAIRS = {pair.name: pair for pair in pairs()}
NOT_A_DOUBLE = "error of their score is beyond double precision: multiply the features"
TOO_FAR = ["scale 1e-150", "scale 1e150"]  # the distance is a double, its error is not
FINITE = [name for name, pair in PAIRS.items() if pair.defined]
DEFINED = [name for name in FINITE if name not in TOO_FAR]
REFUSED = [name for name in PAIRS if name not in FINITE]


def assert_sound(score):
    """Finite, ordered, and with a warning wherever the interval has no width."""
    assert all(map(math.isfinite, (score.value, score.low, score.high, score.stderr)))
    assert score.low <= score.value <= score.high
    if score.high - score.low <= 1e-13 * abs(score.value):
        assert codes(score) & {"no-variation", "same-rows", "extreme-scale"}, score


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
        assert not score.reliable


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_what_has_no_answer_is_refused(name, estimator):
    pair = PAIRS[name]
    with pytest.raises(gb.InputError, match=r"`(fake|real)`"):
        gb.frechet_distance(pair.fake, pair.real, estimator=estimator)


@pytest.mark.parametrize("name", TOO_FAR)
@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
@pytest.mark.parametrize("score", [gb.frechet_distance, gb.kernel_inception_distance])
def test_what_has_no_error_is_refused(score, name, estimator):
    with pytest.raises(gb.InputError, match=NOT_A_DOUBLE):
        score(PAIRS[name].fake, PAIRS[name].real, estimator=estimator)


SIDES = {
    "rows": np.random.default_rng(0).normal(size=(40, 3)),
    "few rows": np.random.default_rng(1).normal(size=(3, 3)),
    "moments": gb.Moments(np.ones(3), np.diag([1.0, 2.0, 3.0]), 40),
}


def scaled(x, factor):
    """Return features, or their moments, multiplied by a number."""
    if isinstance(x, gb.Moments):
        return gb.Moments(x.mean * factor, x.cov * factor**2, x.n)
    return x * factor


def assert_scaled(found, one, factor, rtol=1e-12):
    """Value, ends and standard error are those of `one` times the square of `factor`."""
    for field in ("value", "low", "high", "stderr"):
        expected = getattr(one, field)
        assert getattr(found, field) / factor / factor == pytest.approx(expected, rel=rtol)


EXTREME = 47
"""Decades of the features within which the cube of a squared distance is still a double."""


@pytest.mark.parametrize("power", [-EXTREME, -21, -19, -10, 10, 19, 21, EXTREME])
@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
@pytest.mark.parametrize("kind", ["rows", "few rows", "moments"])
def test_scales_of_the_distance_do_not_matter(kind, estimator, power):
    """Where squares, their variances and the latters' powers leave double precision."""
    x = SIDES[kind]
    y = np.random.default_rng(2).normal(1.0, 1.0, size=(50, 3))
    one = gb.frechet_distance(x, y, estimator=estimator)
    factor = 10.0**power
    found = gb.frechet_distance(scaled(x, factor), y * factor, estimator=estimator)
    # The spectrum fitted to few rows is an optimiser's: 3e-11 measured.
    assert_scaled(found, one, factor, rtol=1e-9 if kind == "few rows" else 1e-12)
    assert ("extreme-scale" in codes(found, "caution")) == (abs(power) > 20)


@pytest.mark.parametrize("power", [-150, 150])
def test_scales_of_a_comparison_do_not_matter(power):
    rng = np.random.default_rng(3)
    fakes, real = (
        {c: rng.normal(k, 1.0, size=(60, 3)) for k, c in enumerate("abc")},
        rng.normal(size=(60, 3)),
    )
    one = gb.compare(fakes, real)
    found = gb.compare({c: x * 2.0**power for c, x in fakes.items()}, real * 2.0**power)
    assert found.groups == one.groups
    assert list(found.scores) == list(one.scores)
    for a, b in zip(found.differences, one.differences, strict=True):
        assert_scaled(a, b, 2.0**power)


def test_models_of_unlike_scales_are_compared():
    """Each is computed in units of its own; differences are taken in the larger one."""
    rng = np.random.default_rng(4)
    x, real = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    ranking = gb.compare({"huge": x * 1e25, "large": x * 3e22, "plain": x}, real)
    assert list(ranking.scores) == ["plain", "large", "huge"]
    assert all(pair.distinguishable for pair in ranking.differences)
    gap = ranking.difference("large", "huge")
    large, huge = (float(ranking.scores[name]) for name in ("large", "huge"))
    assert gap.value == pytest.approx(large - huge, rel=1e-12)


@pytest.mark.parametrize("power", [-200, -160, -EXTREME - 2, EXTREME + 2, 145])
def test_a_distance_whose_error_is_no_double_is_refused(power):
    x, y = SIDES["rows"], np.random.default_rng(2).normal(1.0, 1.0, size=(50, 3))
    for call in (gb.frechet_distance, lambda a, b: gb.compare({"a": a}, b)):
        with pytest.raises(gb.InputError, match=NOT_A_DOUBLE):
            call(x * 10.0**power, y * 10.0**power)
    with pytest.raises(gb.InputError, match=NOT_A_DOUBLE):
        gb.estimators.FrechetReference(y * 10.0**power).plugin(x * 10.0**power)


@pytest.mark.parametrize("power", [160, 200, 307])
def test_features_whose_squares_are_no_doubles_are_refused(power):
    x = 10.0**power * np.random.default_rng(0).uniform(0.1, 1.0, size=(40, 3))
    with pytest.raises(gb.InputError, match="squares overflow: divide all samples"):
        gb.frechet_distance(x, x[::-1])
    mean = np.full(3, 10.0**power)
    with pytest.raises(gb.InputError, match=NOT_A_DOUBLE):
        gb.frechet_distance(gb.Moments(mean, np.eye(3), 50), gb.Moments(-mean, np.eye(3)))


# --- kernel distance -----------------------------------------------------------------------------

KERNELS = [{}, {"degree": 1}, {"degree": 2, "gamma": 0.3, "offset": 0.0}, {"degree": 5}]
ENOUGH = [name for name in DEFINED if min(len(PAIRS[name].fake), len(PAIRS[name].real)) >= 4]


def exact_kernel_distance(x, y, degree=3, gamma=None, offset=1.0):
    """Average the kernel over pairs of different rows, in 700 decimal digits."""
    with mpmath.workdps(700):
        scale = mpmath.mpf(1) / x.shape[1] if gamma is None else mpmath.mpf(gamma)
        one, two = (mpmath.matrix(z.astype(np.float64).tolist()) for z in (x, y))

        def mean(a, b, within):
            gram = a * b.T
            total = mpmath.mpf(0)
            for i in range(a.rows):
                for j in range(b.rows):
                    if not (within and i == j):
                        total += (scale * gram[i, j] + offset) ** degree
            return total / (a.rows * (b.rows - within))

        return float(mean(one, one, True) + mean(two, two, True) - 2 * mean(one, two, False))


@pytest.mark.parametrize("power", [-150, -60, -15, 0, 5, 12, 15, 20, 48, 60, 150])
@pytest.mark.parametrize("options", KERNELS, ids=str)
def test_scales_of_the_kernel_distance(options, power):
    """Right to rounding, or refused where its error is no double."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(1.0, 1.2, size=(9, 3)), rng.normal(size=(7, 3))
    factor = 10.0**power
    # Beside an offset small features count by their square only.
    of_degree_one = power < 0 and options.get("offset", 1.0) > 0.0
    if abs(power) * 2 * (1 if of_degree_one else options.get("degree", 3)) > 95:
        with pytest.raises(gb.InputError, match=NOT_A_DOUBLE):
            gb.kernel_inception_distance(x * factor, y * factor, **options)
        return
    score = gb.kernel_inception_distance(x * factor, y * factor, **options)
    truth = exact_kernel_distance(x * factor, y * factor, **options)
    assert score.value == pytest.approx(truth, rel=1e-12, abs=1e-307)
    assert_sound(score)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENOUGH)
def test_kernel_distance_of_hard_inputs(name):
    """To 1e-12 of the mean kernel, whose rounding a difference cannot beat."""
    pair = PAIRS[name]
    # Repeated rows would count as one draw each.
    score = gb.kernel_inception_distance(gb.Sample(pair.fake), gb.Sample(pair.real))
    truth = exact_kernel_distance(pair.fake, pair.real)
    length = max(
        float((z.astype(np.float64) ** 2).sum(axis=1).max()) for z in (pair.fake, pair.real)
    )
    size = length / pair.fake.shape[1]
    kernel = size if size < 1.0 else size**3
    assert score.value == pytest.approx(max(truth, 0.0), rel=1e-12, abs=1e-12 * kernel)
    assert all(map(math.isfinite, (score.value, score.low, score.high, score.stderr)))
    assert score.low <= score.value <= score.high
    if truth < 0.0:
        assert "out-of-range" in codes(score)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**14, 2.0**40])
def test_kernel_distance_of_many_single_precision_rows(factor):
    """Beyond what float32 holds of squared kernels, blocks are evaluated in float64."""
    rng = np.random.default_rng(6)
    x, y = (rng.normal(shift, 1.0, size=(4200, 2)).astype(np.float32) for shift in (0.5, 0.0))
    found = gb.kernel_inception_distance(x * np.float32(factor), y * np.float32(factor))
    wide = gb.kernel_inception_distance(x.astype(float) * factor, y.astype(float) * factor)
    for field in ("value", "low", "high", "stderr"):
        assert getattr(found, field) == pytest.approx(getattr(wide, field), rel=1e-9, abs=0.0)


# --- Vendi ---------------------------------------------------------------------------------------

VENDI = [("rbf", 1.0), ("rbf", 2.0), ("rbf", math.inf), ("laplace", 2.0), ("cosine", 2.0)]


@pytest.mark.parametrize(("kernel", "order"), VENDI)
@pytest.mark.parametrize("name", FINITE)
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
@pytest.mark.parametrize("power", [-150, -60, 60, 150])
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
        (np.array([[-np.inf, np.inf], [np.inf, np.inf]]), "infinite"),
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
