"""Both sides of deterministic inequalities, exactly, against their twins and in floats."""

from __future__ import annotations

import dataclasses
import sys
from fractions import Fraction

import numpy as np
import pytest

from genbounds.bounds import catalog, exact_sides
from tests.bounds.twins import twins_of

BOUNDS = catalog()
DETERMINISTIC = [name for name, bound in BOUNDS.items() if bound.form == "deterministic"]


def inputs_of(bound, d, rng):
    """Tenths for every input of any statement; probabilities sum to one exactly."""

    def tenths(*shape, low=-40, high=41):
        drawn = rng.integers(low, high, size=shape or None)
        return np.vectorize(lambda k: Fraction(int(k), 10), otypes=[object])(drawn)

    def distribution(count, beyond=0):
        weights = np.sort(rng.integers(1, 9, count))[::-1]
        total = int(weights.sum())
        return [Fraction(int(w), total) for w in weights] + [Fraction(0)] * beyond

    root = tenths(d, d)
    smaller = root @ root.T + np.diag([Fraction(1)] * d)
    t = int(rng.integers(1, d + 1))
    counts = rng.integers(1, 9, d)
    inputs = {
        "factor": root,
        "other_factor": tenths(d, d),
        "reference_factor": tenths(d, d) + np.diag([Fraction(9)] * d),
        "smaller": smaller,
        "larger": smaller + np.diag(tenths(d, low=0)),
        "a": root + root.T,
        "b": smaller,
        "p": distribution(d + 1),
        "p_estimate": distribution(d + 1)[::-1],
        "v": distribution(d),
        "w": distribution(t, d - t),
        "t": Fraction(t),
        "alpha": Fraction(3, 10) + (not bound.setting.startswith("visits")),
        "picks": [Fraction(int(count)) for count in counts],
        "batch": Fraction(3),
        "burn_in": Fraction(5),
        "weights": tenths(d, low=0),
        "shapes": tenths(d, low=0),
        "scales": tenths(d, low=1),
        "deviations": tenths(d, low=0),
        "position": Fraction(-7, 10),
        "points": tenths(d + 1, 2, low=0, high=10),
        "knots": np.sort(tenths(2, 2, low=0, high=11), axis=1),
        "levels": tenths(2, 3),
    }
    return {name: np.array(value, dtype=object).tolist() for name, value in inputs.items()}


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_exact_sides_are_those_of_the_statement(name, d):
    """With 50 digits those of the twins, which share no code; in floats the same to rounding."""
    bound = BOUNDS[name]
    changed = {key: 1.25 * value for key, value in bound.constants.items()}
    rng = np.random.default_rng(d)
    for constants in (dict(bound.constants), changed):
        statement = dataclasses.replace(bound, constants=constants)
        inputs = inputs_of(bound, d, rng)
        floats = {key: np.array(value, dtype=float) for key, value in inputs.items()}
        assert not bound.violated(floats, 1, 0.5)
        exact = exact_sides(statement, {key: inputs[key] for key in bound.needs})
        batch = {key: value[None] for key, value in floats.items()}
        if "t" in batch:
            batch["t"] = batch["t"].astype(int)
        left = statement.error(**batch).ravel()[0]
        right = np.ravel(statement.width(**batch))[0]
        said = [Fraction(exact.left), Fraction(exact.right)]
        assert [float(side) for side in said] == pytest.approx([left, right], rel=1e-9, abs=1e-12)
        for side, twin in zip(said, twins_of(statement, inputs), strict=True):
            assert abs(side - twin) <= 1e-18 * max(1, abs(side))


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_floats_need_no_mpmath(name, monkeypatch):
    bound = BOUNDS[name]
    inputs = inputs_of(bound, 2, np.random.default_rng(0))
    floats = {key: np.array(inputs[key], dtype=int if key == "t" else float) for key in bound.needs}
    monkeypatch.setitem(sys.modules, "mpmath", None)
    assert np.isfinite(bound.error(**floats)).all()
    assert np.isfinite(bound.width(**floats)).all()
