"""Both sides of deterministic inequalities, exactly, against their evaluation in floats."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from genbounds.bounds import catalog, exact_sides
from genbounds.simulate.auditing._inputs import FAMILIES, as_floats

BOUNDS = catalog()
DETERMINISTIC = [name for name, bound in BOUNDS.items() if bound.form == "deterministic"]


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_exact_sides_are_those_of_the_statement(name, d):
    """Two evaluations that share no code, on random rational inputs; constants too."""
    bound = BOUNDS[name]
    changed = {key: 1.25 * value for key, value in bound.constants.items()}
    rng = np.random.default_rng(d)
    family = FAMILIES[bound.setting]
    for constants in (dict(bound.constants), changed):
        statement = dataclasses.replace(bound, constants=constants)
        point = np.round(rng.standard_normal((1, family.size(d))) * 4.0, 1)
        single = {key: value[0] for key, value in family.decode(point, d).items()}
        inputs = family.rational(single, None)
        assert not bound.violated(as_floats(inputs), 1, 0.5)
        found = exact_sides(statement, inputs)
        floats = {key: value[None] for key, value in as_floats(inputs).items()}
        if "t" in floats:
            floats["t"] = floats["t"].astype(int)
        left = statement.error(**floats).ravel()[0]
        right = np.ravel(statement.width(**floats))[0]
        assert float(Fraction(found.left)) == pytest.approx(left, rel=1e-9, abs=1e-12)
        assert float(Fraction(found.right)) == pytest.approx(right, rel=1e-9, abs=1e-12)
