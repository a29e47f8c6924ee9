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


def lopsided(a, b):
    """No symmetric kernel: a transposed product must not be taken for the other."""
    return (a @ b.T - a[:, :1]).exp()


def test_it_is_the_product_and_twice_differentiable():
    rng = np.random.default_rng(1)
    x, y = (torch.tensor(rng.normal(size=(1100, 3))) for _ in range(2))  # several blocks

    def through(v):
        return (kernel_product(lopsided, x, y, v) ** 3).sum()

    def dense(v):
        return ((lopsided(x, y) @ v) ** 3).sum()

    v = torch.tensor(rng.dirichlet(np.ones(1100)))
    along = torch.tensor(rng.normal(size=1100))
    assert float(through(v)) == pytest.approx(float(dense(v)), rel=1e-12)
    found, expected = (
        (torch.autograd.functional.jacobian(f, v), torch.autograd.functional.hvp(f, v, along)[1])
        for f in (through, dense)
    )
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


def test_a_score_made_with_it_is_the_same():
    def blocked(x, w, y, v):
        own, other = kernel_product(cubic, x, x, w), kernel_product(cubic, x, y, v)
        return w @ own + v @ kernel_product(cubic, y, y, v) - 2 * w @ other

    one, two = (
        gb.SmoothScore(f, name="k", higher_is_better=False, needs_reference=True)(X, Y)
        for f in (kid, blocked)
    )
    assert (one.value, one.stderr) == pytest.approx((two.value, two.stderr), rel=1e-10)
