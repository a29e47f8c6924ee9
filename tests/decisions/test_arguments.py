"""A bad reference is called what the function's own argument is called."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

X, Y = np.random.default_rng(0).normal(size=(2, 60, 3))
CALLS = {
    "gate": lambda real: gb.gate(X, Y, real, margin=0.1),
    "plan": lambda real: gb.plan(X, real, half_width=0.1),
    "track": lambda real: gb.track({1: X, 2: Y}, real),
    "compare_recipes": lambda real: gb.compare_recipes({"a": [X, Y], "b": [Y, X]}, real),
    "mixture by fd": lambda real: gb.mixture({"a": X, "b": Y}, real, metric="fd"),
    "mixture by kid": lambda real: gb.mixture({"a": X, "b": Y}, real, metric="kid"),
    "Monitor": gb.Monitor,
    "select.plan": lambda real: gb.select.plan({"a": X, "b": Y}, real),
    "select.run": lambda real: gb.select.run(
        {name: lambda n, rng: rng.normal(size=(n, 3)) for name in "ab"}, real, batch=50, budget=200
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_reference_is_called_as_the_caller_does(name):
    bad = np.where(np.arange(60)[:, None] == 7, np.nan, X)
    with refused("`reference` has NaN in row 7"):
        CALLS[name](bad)
    with refused("`reference` needs at least"):
        CALLS[name](X[:1])
