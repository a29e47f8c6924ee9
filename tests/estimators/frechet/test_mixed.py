"""Fréchet distances of mixtures: value, gradient and convexity of the search; halves by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genbounds as gb
from genbounds.core.checks import check_rows
from genbounds.estimators import FrechetReference, difference, frechet_mixture
from genbounds.estimators.kernels import folded
from genbounds.mixtures import _frechet as _mixed
from genbounds.mixtures._frechet import MixtureDistance, least_distance

D = 3


def moments(mean, cov):
    return gb.Moments(np.asarray(mean, dtype=float), np.asarray(cov, dtype=float))


def mixed(models, shares):
    """Mean and covariance of a mixture, each row's model being drawn first."""
    mean = sum(w * one.mean for w, one in zip(shares, models, strict=True))
    cov = sum(
        w * (one.cov + np.outer(one.mean - mean, one.mean - mean))
        for w, one in zip(shares, models, strict=True)
    )
    return moments(mean, cov)


@st.composite
def covariances(draw):
    """Of any rank, and of sizes that features have: far smaller ones are refused as such."""
    entries = st.integers(-8, 8).map(lambda k: k / 8.0)
    root = np.array(draw(st.lists(entries, min_size=D * D, max_size=D * D))).reshape(D, D)
    root[:, draw(st.integers(0, D)) :] = 0.0
    return draw(st.sampled_from([1e-6, 1.0, 100.0])) * root @ root.T


@st.composite
def problems(draw):
    """Three models and a reference, whose covariances may be singular, large, small or equal."""
    vectors = st.lists(st.integers(-10, 10).map(float), min_size=D, max_size=D)
    four = [moments(draw(vectors), draw(covariances())) for _ in range(4)]
    return four[:3], four[3]


def shares():
    positive = st.integers(0, 16).map(lambda k: k / 16.0)
    return (
        st.tuples(positive, positive, positive)
        .filter(lambda w: sum(w) > 0.1)
        .map(lambda w: np.array(w) / sum(w))
    )


@settings(max_examples=25)
@given(problems(), shares())
def test_the_value_is_the_distance_of_the_mixed_moments(problem, w):
    models, real = problem
    distance = MixtureDistance(models, real)
    value, _ = distance(w)
    size = real.cov.trace() + sum(one.cov.trace() + one.mean @ one.mean for one in models)
    expected = gb.frechet_distance(mixed(models, w), real).value
    assert value == pytest.approx(expected, abs=1e-6 * max(size, 1e-12))
    found, wanted = distance.mixed(w), mixed(models, w)
    assert found.mean == pytest.approx(wanted.mean, rel=1e-9, abs=1e-9 * max(size, 1e-12))
    assert found.cov == pytest.approx(wanted.cov, rel=1e-9, abs=1e-9 * max(size, 1e-12))


@settings(max_examples=25)
@given(problems(), shares(), shares())
def test_the_distance_is_convex_in_the_shares(problem, one, two):
    """What makes the mean shares of both halves no worse than the mean of both distances."""
    models, real = problem
    distance = MixtureDistance(models, real)
    size = real.cov.trace() + sum(m.cov.trace() + m.mean @ m.mean for m in models)
    between = distance((one + two) / 2.0)[0]
    assert between <= (distance(one)[0] + distance(two)[0]) / 2.0 + 1e-6 * max(size, 1e-12)


def some_models(rng, count):
    return [
        moments(rng.normal(size=D), np.cov(rng.normal(size=(D, 20)) * rng.uniform(0.5, 2.0)))
        for _ in range(count)
    ]


def test_the_gradient_is_that_of_the_value():
    rng = np.random.default_rng(0)
    *models, real = some_models(rng, 5)
    distance, w = MixtureDistance(models, real), np.array([0.1, 0.2, 0.3, 0.4])
    numeric = [
        (distance(w + 1e-6 * step)[0] - distance(w - 1e-6 * step)[0]) / 2e-6 for step in np.eye(4)
    ]
    assert distance(w)[1] == pytest.approx(numeric, rel=1e-6)


def test_shares_minimise_over_the_simplex():
    """Optimality conditions: the gradient is least, and equal, where there is weight."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        *models, real = some_models(rng, 4)
        found = least_distance(MixtureDistance(models, real))
        gradient = MixtureDistance(models, real)(found)[1]
        assert found.sum() == pytest.approx(1.0)
        assert gradient[found > 0.0] == pytest.approx(gradient.min(), rel=0.01)


def test_a_mixture_that_is_the_reference_is_found():
    rng = np.random.default_rng(2)
    models = some_models(rng, 3)
    found = least_distance(MixtureDistance(models, mixed(models, [0.5, 0.0, 0.5])))
    assert found == pytest.approx([0.5, 0.0, 0.5], abs=0.01)


def plain(samples, shares):
    *models, real = samples
    return gb.frechet_distance(mixed(models, shares), real).value


def plain_difference(half, shares):
    """Standard error of FD(one) - FD(mixture), whose rows and reference are the same."""
    one, two, real = half
    rows = np.concatenate([one, two])
    weights = np.repeat(shares / [len(one), len(two)], [len(one), len(two)])
    model = np.repeat([0, 1], [len(one), len(two)])
    ids = np.arange(len(rows))
    against = FrechetReference(gb.Sample(real))
    return difference(
        against.estimate(gb.Sample(one, groups=ids[: len(one)])),
        against.estimate(gb.Sample(rows, groups=ids, strata=model, weights=weights)),
    ).stderr


def halves_of(a, b, real, *, seed):
    """Rows of two models and of the reference in each half."""
    samples = (a, b, real)
    seen = [(name, check_rows("fake", x, needs="")) for name, x in zip("ab ", samples, strict=True)]
    folds = [part.fold for part in folded(seen, 2, seed)]
    return [[x[f == half] for x, f in zip(samples, folds, strict=True)] for half in (0, 1)]


def test_both_halves_by_hand():
    """One half chooses and the other judges, both ways; the values are those of weighted rows."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(-1.0, size=(120, 2)), rng.normal(1.0, size=(160, 2))
    real = rng.choice([-1.0, 1.0], size=(200, 1)) + 3.0 * rng.normal(size=(200, 2))
    found = frechet_mixture({"a": a, "b": b}, real, seed=5)
    halves = halves_of(a, b, real, seed=5)
    values, gains, gaps = [], [], []
    for half in (0, 1):
        chosen = [gb.Moments.from_features(x) for x in halves[1 - half]]
        shares = least_distance(MixtureDistance(chosen[:2], chosen[2]))
        assert found.weights[half] == pytest.approx(shares, abs=0.02)  # other divisors
        one, two, judge = halves[half]
        here = [moments(x.mean(axis=0), np.cov(x.T, bias=True)) for x in halves[half]]
        each = [plain(here, w) for w in (*found.weights, found.weights.mean(axis=0))]
        gaps.append((each[0] + each[1]) / 2.0 - each[2])
        weights = np.repeat(found.weights[half] / [len(one), len(two)], [len(one), len(two)])
        model = np.repeat([0, 1], [len(one), len(two)])
        pooled = gb.Sample(np.concatenate([one, two]), weights=weights, strata=model)
        judge = gb.Sample(judge)
        values.append(gb.frechet_distance(pooled, judge))
        gains.append(gb.frechet_distance(gb.Sample(one), judge).value - values[-1].value)
    value = np.mean([score.value for score in values])
    assert min(gaps) > 1e-4  # the shares of both halves differ
    assert found.mixed.value == pytest.approx(value - np.mean(gaps), rel=1e-6)
    low, high = found.mixed.interval(0.95)
    assert (low + high) / 2.0 == pytest.approx(value - np.mean(gaps) / 2.0, rel=0.02)
    stderr = np.hypot(*(score.stderr for score in values)) / 2.0
    assert found.mixed.stderr == pytest.approx(stderr, rel=0.05)
    assert found.gains[0].value == pytest.approx(np.mean(gains), rel=0.01)
    each = [plain_difference(halves[half], found.weights[half]) for half in (0, 1)]
    assert found.gains[0].stderr == pytest.approx(np.hypot(*each) / 2.0, rel=0.05)


def jackknifed(half, weights):
    """Jackknife variance of the difference of one half's distances at two sets of shares."""

    def change(samples):
        here = [moments(x.mean(axis=0), np.cov(x.T, bias=True)) for x in samples]
        return plain(here, weights[0]) - plain(here, weights[1])

    variance = 0.0
    for k, rows in enumerate(half):
        left = [
            change([np.delete(x, i, axis=0) if j == k else x for j, x in enumerate(half)])
            for i in range(len(rows))
        ]
        variance += (len(rows) - 1.0) * np.var(left)
    return variance


def test_the_choice_of_shares_adds_to_the_variance():
    """Of models that are much alike, whose best shares are hardly known."""
    rng = np.random.default_rng(4)
    a, b, real = (rng.normal(size=(n, 2)) for n in (160, 120, 200))
    found = frechet_mixture({"a": a, "b": b}, real, seed=5)
    halves = halves_of(a, b, real, seed=5)
    choice = np.mean([jackknifed(half, found.weights) for half in halves]) / 4.0
    without = found.mixed.sample.variance + found.mixed.reference.variance
    assert choice > 0.2 * without
    assert found.mixed.variance == pytest.approx(without + choice, rel=0.05)
    gains = [plain_difference(*pair) ** 2 for pair in zip(halves, found.weights, strict=True)]
    assert found.gains[0].stderr ** 2 == pytest.approx(np.mean(gains) / 2.0 + choice, rel=0.05)


@pytest.mark.parametrize("n", [100, 30])
def test_one_model_with_few_rows_a_feature_is_judged_alone(n):
    """The error of its reference is then known from groups of rows, and not row by row.

    The other is so far away that a search which stops at what is small beside the distance at
    equal shares leaves it 5e-4 or nothing of 15 rows, as the processor rounds.
    """
    rng = np.random.default_rng(0)
    models = {"near": rng.normal(size=(n, 20)), "far": 50.0 + rng.normal(size=(n, 20))}
    found = frechet_mixture(models, rng.normal(size=(1000, 20)), seed=0)
    assert (found.weights == [1.0, 0.0]).all()
    assert found.mixed.shared_variance == 0.0
    assert np.isfinite(found.mixed.stderr)


def test_what_samples_share_counts_beside_the_choice_of_shares(monkeypatch):
    """Prompts that models and reference have in common."""
    rng, prompts = np.random.default_rng(0), np.arange(200)
    base = rng.normal(size=(200, 3))
    a, b, real = (
        gb.Sample(base + shift + rng.normal(size=(200, 3)), groups=prompts)
        for shift in (0.1, -0.1, 0.0)
    )
    monkeypatch.setattr(_mixed, "_variance_of_choice", lambda *given: 0.0)
    without = frechet_mixture({"a": a, "b": b}, real, seed=0).mixed
    monkeypatch.undo()
    found = frechet_mixture({"a": a, "b": b}, real, seed=0).mixed
    assert without.shared_variance < 0.0
    choice = found.shared_variance - without.shared_variance
    assert choice > 0.0
    assert found.variance == pytest.approx(without.variance + choice)
