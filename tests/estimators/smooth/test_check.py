"""`check_score` on scores that are smooth, and on some that are not."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.estimators.smooth.scores import (
    gap,
    kid,
    largest_eigenvalue,
    largest_mean,
    log_inception,
    log_rke,
    mean,
    median,
    neighbours,
    precision,
)
from tests.warnings_of import codes

torch = pytest.importorskip("torch")
from genbounds.estimators.smooth import Sliced  # noqa: E402

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(300, 5)), RNG.normal(0.1, 1.2, size=(250, 5))
LONG = X * [3.0, 1.0, 1.0, 1.0, 1.0]
P = RNG.dirichlet(np.full(5, 0.4), size=300)


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (gap, (X, Y)), (kid, (X, Y)), (precision, (X, Y)), (log_inception, (P,)),
        (log_rke, (X + 0.3,)), (mean, (X,)), (largest_eigenvalue, (LONG,)),
    ],
)  # fmt: skip
def test_smooth_scores_pass(function, rows):
    found = gb.check_score(function, *rows)
    assert (found.ok, found.derivative, found.warnings) == (True, "hessian", ())
    assert str(found) == 'smooth: derivative="hessian"'


def noisy(x, w):
    return w @ (x[:, 0] + torch.rand(len(x), dtype=torch.float64))


def unbiased_variance(x, w):
    c = x[:, 0] - w @ x[:, 0]
    return (w @ c**2) * len(x) / (len(x) - 1)


def half_blind(x, w, y, v):
    return ((w @ x - y.mean(0)) ** 2).sum()


def understated(x, w):
    """Its gradient is a tenth of what it should be: weights are detached in part."""
    return (0.9 * w.detach() + 0.1 * w) @ x[:, 0].exp()


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (neighbours, (X, Y)), (largest_eigenvalue, (X,)), (median, (X,)),
        (largest_mean, (X - X.mean(0),)),
        (noisy, (X,)), (unbiased_variance, (X,)), (half_blind, (X, Y)), (understated, (X,)),
        (lambda x, w: (w @ x[:, 0]).float(), (X,)),
        (lambda x, w: (0.0 * (w @ x[:, 0])).sqrt(), (X,)),
    ],
)  # fmt: skip
def test_what_is_not_smooth_is_refused(function, rows):
    found = gb.check_score(function, *rows)
    assert not found.ok
    assert codes(found, "unreliable") == {"not-smooth"}
    assert str(found).startswith("not smooth:\n")


def test_the_sliced_distance_is_told_to_use_secants():
    found = gb.check_score(Sliced(20, 0), X, Y)
    assert (found.ok, found.derivative) == (True, "secant")
    assert "secant" in found.warnings[0].remedy
    score = gb.SmoothScore(
        Sliced(20, 0), name="s", higher_is_better=False, needs_reference=True, derivative="secant"
    )
    assert gb.check_score(score, X, Y).warnings == ()


def test_a_hessian_that_misses_the_bias_is_seen_without_being_asked():
    how = {"name": "s", "higher_is_better": False}
    lines = gb.SmoothScore(Sliced(5, 0), needs_reference=True, **how)
    assert "not-smooth" in codes(lines(X, Y), "unreliable")
    assert "not-smooth" not in codes(gb.SmoothScore(mean, needs_reference=False, **how)(X))


def test_its_arguments():
    with pytest.raises(gb.InputError, match="must be a function"):
        gb.check_score("kid", X)
    with pytest.raises(gb.InputError, match="at least 80"):
        gb.check_score(mean, X[:79])
    with pytest.raises(gb.InputError, match="`function` of mean fails: TypeError"):
        gb.check_score(mean, X, Y)
