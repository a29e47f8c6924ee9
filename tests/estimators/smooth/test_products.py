"""Products with a kernel matrix that is never whole."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds.estimators import kernel_product
from tests.estimators.smooth.scores import cubic, kid

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(0.3, 1.0, size=(90, 3)), RNG.normal(size=(70, 3))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("genbounds.estimators.smooth._products.BLOCK_ENTRIES", 1000)


def lopsided(a, b):
    """No symmetric kernel: a transposed product must not be taken for the other."""
    return (a @ b.T - a[:, :1]).exp()


def test_it_is_the_product_and_twice_differentiable():
    x, y = torch.tensor(X), torch.tensor(Y)

    def through(v):
        return (kernel_product(lopsided, x, y, v) ** 3).sum()

    def dense(v):
        return ((lopsided(x, y) @ v) ** 3).sum()

    v = torch.full((70,), 1 / 70, dtype=torch.float64)
    assert float(through(v)) == pytest.approx(float(dense(v)), rel=1e-12)
    for derivative in (torch.autograd.functional.jacobian, torch.autograd.functional.hessian):
        torch.testing.assert_close(derivative(through, v), derivative(dense, v), rtol=1e-10, atol=0)


def test_a_score_made_with_it_is_the_same():
    def blocked(x, w, y, v):
        own, other = kernel_product(cubic, x, x, w), kernel_product(cubic, x, y, v)
        return w @ own + v @ kernel_product(cubic, y, y, v) - 2 * w @ other

    one, two = (
        gb.SmoothScore(f, name="k", higher_is_better=False, needs_reference=True)(X, Y)
        for f in (kid, blocked)
    )
    assert (one.value, one.stderr) == pytest.approx((two.value, two.stderr), rel=1e-10)
