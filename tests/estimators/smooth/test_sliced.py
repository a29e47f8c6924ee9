"""The sliced distance against linear programmes, and that its bias is gone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import genbounds as gb

torch = pytest.importorskip("torch")
from genbounds.estimators.smooth import Sliced, sliced_score  # noqa: E402

RNG = np.random.default_rng(0)
D, LINES = 3, 5
X, Y = RNG.normal(5.0, 2.0, size=(19, D)), RNG.normal(4.0, 1.0, size=(13, D))
W, V = RNG.dirichlet(np.ones(19)), RNG.dirichlet(np.ones(13))


def transport_cost(a, w, b, v):
    """Kantorovich's linear programme."""
    cost = (a[:, None] - b[None]) ** 2
    sums = np.zeros((a.size + b.size, cost.size))
    for i in range(a.size):
        sums[i, i * b.size : (i + 1) * b.size] = 1.0
    for j in range(b.size):
        sums[a.size + j, j :: b.size] = 1.0
    return linprog(cost.ravel(), A_eq=sums, b_eq=np.concatenate([w, v]), method="highs").fun


def textbook(x, w, y, v, *, seed=4):
    theta = np.random.default_rng(seed).standard_normal((D, LINES))
    theta /= np.linalg.norm(theta, axis=0)
    return 3 * D * np.mean([transport_cost(x @ t, w, y @ t, v) for t in theta.T])


def sliced(x, w, y, v):
    return Sliced(LINES, 4)(*(torch.tensor(a) for a in (x, w, y, v)))


@pytest.mark.parametrize(("w", "v"), [(W, V), (np.full(19, 1 / 19), np.full(13, 1 / 13))])
def test_value_is_that_of_the_linear_programme(w, v):
    assert float(sliced(X, w, Y, v)) == pytest.approx(textbook(X, w, Y, v), rel=1e-11)


@pytest.mark.parametrize("lines", [LINES, 90_000])  # of so many, in blocks
def test_value_of_equally_many_rows_pairs_them_in_order(lines):
    """As published: sorted projections, squared differences, times 3 d."""
    theta = np.random.default_rng(4).standard_normal((D, lines))
    theta /= np.linalg.norm(theta, axis=0)
    a, b = (np.sort(rows[:13] @ theta, axis=0) for rows in (X, Y))
    u = torch.full((13,), 1 / 13, dtype=torch.float64)
    expected = 3 * D * ((a - b) ** 2).mean()
    found = Sliced(lines, 4)(torch.tensor(X[:13]), u, torch.tensor(Y), u)
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_gradient_is_that_of_differences_of_the_linear_programme():
    w, v = torch.tensor(W, requires_grad=True), torch.tensor(V, requires_grad=True)
    value = Sliced(LINES, 4)(torch.tensor(X), w, torch.tensor(Y), v)
    g, h = (part.numpy() for part in torch.autograd.grad(value, (w, v)))
    rng = np.random.default_rng(1)
    for _ in range(3):
        a, b = W * rng.normal(size=19), V * rng.normal(size=13)
        a, b = a - W * a.sum(), b - V * b.sum()
        e = 1e-5
        slope = (
            (textbook(X, W + e * a, Y, V + e * b) - textbook(X, W - e * a, Y, V - e * b)) / e / 2
        )
        assert g @ a + h @ b == pytest.approx(slope, rel=1e-6)


def test_the_metric_is_the_function_and_knows_its_directions():
    x, y = RNG.normal(size=(60, D)), RNG.normal(0.5, 1.0, size=(50, D))
    alone = gb.sliced_distance(x, y, directions=LINES, seed=4)
    options = {"directions": LINES, "seed": 4}
    assert gb.compare({"x": x}, y, metric="mind", options=options).scores["x"] == alone
    plugin = gb.estimators.metric_spec("mind").prepared(y, options)
    u, v = np.full(60, 1 / 60), np.full(50, 1 / 50)
    assert plugin.plugin_loss(x) == pytest.approx(textbook(x, u, y, v), rel=1e-10)
    for wrong in ({"directions": 0}, {"seed": -1}):
        with pytest.raises(gb.InputError):
            gb.sliced_distance(x, y, **wrong)


@pytest.mark.parametrize("power", [20, -20, 140, -140])
def test_the_unit_of_the_features_changes_nothing(power):
    """Powers of two change no bit; the step of a secant had a length in the unit of the score."""
    x, y = RNG.normal(size=(60, D)), RNG.normal(0.5, 1.0, size=(50, D))
    one = gb.sliced_distance(x, y, directions=LINES)
    two = gb.sliced_distance(2.0**power * x, 2.0**power * y, directions=LINES)
    assert two.reliable
    for field in ("value", "low", "high", "stderr"):
        assert getattr(two, field) == 2.0 ** (2 * power) * getattr(one, field)


@pytest.mark.parametrize("factor", [1e60, 1e-60, 1e140, 1e-300])
def test_features_whose_scores_have_no_error_in_double_precision_are_refused(factor):
    with pytest.raises(gb.InputError, match="multiply the features of both samples by a common"):
        gb.sliced_distance(factor * X, factor * Y, directions=LINES)


def test_its_assumption_is_not_that_it_is_smooth():
    rng = np.random.default_rng(0)
    found = gb.sliced_distance(rng.normal(size=(60, 3)), rng.normal(size=(60, 3)), directions=8)
    assert any("piecewise linear function of the weights" in text for text in found.assumptions)
    assert not any("smooth function" in text for text in found.assumptions)


def test_rows_that_repeat_and_constant_ones():
    """Levels of both samples coincide: every weight is at a kink."""
    x = np.repeat(RNG.normal(size=(20, D)), 3, axis=0)
    told = gb.Sample(x, groups=np.arange(60) // 3)
    assert np.isfinite(gb.sliced_distance(told, X, directions=LINES).stderr)
    constant = gb.sliced_distance(np.ones((10, D)), np.zeros((10, D)), directions=LINES)
    assert constant.value == pytest.approx(3 * D / D * D, rel=2.0)
    assert not constant.reliable


@pytest.mark.statistical
def test_equal_distributions_have_about_nothing():
    """60 pairs: the mean is within 5 of its standard errors, while plug-ins are all above."""
    score = sliced_score(directions=8)
    values, covered = [], 0
    for seed in range(60):
        x, y = np.random.default_rng((9, seed)).normal(size=(2, 100, D))
        estimate = gb.estimators.metric_spec(score).prepared(y).estimate(gb.Sample(x))
        values.append(estimate.value)
        found = estimate.score(0.95)
        covered += found.low <= 0.0 <= found.high
        assert estimate.value + estimate.sample.bias + estimate.reference.bias > 0.0
    assert abs(np.mean(values)) <= 5.0 * np.std(values) / np.sqrt(60)
    assert covered >= 45  # of 60 at 0.95: fewer with probability 1e-9
