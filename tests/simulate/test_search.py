"""The adversary finds what is false and leaves what is true."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from genbounds import InputError
from genbounds.bounds import catalog, exact_sides
from genbounds.bounds._repaired import visits_by_picks
from genbounds.simulate import audit
from genbounds.simulate._search import (
    DIMENSIONS,
    FAMILIES,
    _ascend,
    _floats,
    _rational,
    _score,
    _shrunk,
    search,
)

# Smallest change of a constant that makes a true inequality false, and how it is planted.
PLANTED = {
    "m25.trace-root-perturbation": {"factor": 0.98},  # √A against √B needs 1, printed is 2
    "m25.trace-root-monotone": {"factor": 0.999},
    "m25.trace-root-subadditive": {"factor": 0.999},
    "m25.inverse-order": {"ratio": 0.999},
    "m25.clip-optimism": {"point": 0.3},
    "v24.hoffman-wielandt": {"factor": 0.999},
    "v24.simplex-projection": {"factor": 0.999},
    "v24.norm-embedding": {"root": 2.5},
    "o24.visit-sum-power": {"base": 0.9},
    "m25.visit-sum-power": {"base": 0.9},
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_error_turns_the_verdict(name):
    bound = catalog()[name]
    assert audit([name]).rows[0].verdict == "upheld"
    wrong = dataclasses.replace(bound, constants={**bound.constants, **PLANTED[name]})
    row = audit([name], catalogue={name: wrong}).rows[0]
    assert row.verdict == "refuted"
    assert "exceeds the right side" in row.counterexample


@pytest.mark.parametrize("name", ["o24.visit-sum-log", "m25.visit-sum-log"])
def test_false_as_printed_with_a_small_counterexample(name):
    row = audit([name]).rows[0]
    assert row.verdict == "refuted"
    assert "picks = [1], batch = 1" in row.counterexample
    assert "= 1 exceeds the right side 0" in row.counterexample


@pytest.mark.parametrize("name", ["o24.visit-sum-log", "m25.visit-sum-log"])
def test_the_right_constants_in_a_false_inequality_are_upheld(name):
    bound = catalog()[name]
    right = dataclasses.replace(bound, constants={"offset": 1.0}, width_function=visits_by_picks)
    assert audit(catalogue={name: right})[name].verdict == "upheld"


def numbers(value):
    """What a printed counterexample says, as floats."""
    if isinstance(value, list):
        return np.array([numbers(part) for part in value])
    return float(Fraction(value))


@pytest.mark.parametrize("name", ["m25.trace-root-subadditive", "v24.simplex-projection"])
def test_counterexample_can_be_checked_by_hand(name):
    """The printed inputs violate the claim when evaluated again, and they are small."""
    wrong = dataclasses.replace(catalog()[name], constants={"factor": 0.9})
    found = search(wrong, 2, np.random.SeedSequence(0))
    inputs = {key: numbers(value)[None] if np.ndim(value) else np.array([numbers(value)])
              for key, value in found.inputs.items()}  # fmt: skip
    if "t" in inputs:
        inputs["t"] = inputs["t"].astype(int)
    assert found.refutes
    assert wrong.error(**inputs)[0] == pytest.approx(float(found.left), rel=1e-12)
    assert wrong.width(**inputs)[0] == pytest.approx(float(found.right), rel=1e-12)
    assert sum(np.count_nonzero(value) for value in inputs.values()) <= 5


def test_shrinking_ends_at_the_simplest_input():
    """One entry of one matrix, the smallest whole number, and the same for every loaded module."""
    bound = catalog()["v24.hoffman-wielandt"]
    wrong = dataclasses.replace(bound, constants={"factor": 0.99})
    found = _shrunk(wrong, 3, np.random.SeedSequence(8))
    entries = [abs(v) for name in ("a", "b") for row in found.inputs[name] for v in row if v]
    assert entries == [2]  # the setting adds the transpose
    assert found.sides.left == "2"
    assert found.sides.right == "1.98"
    assert _shrunk(bound, 3, np.random.SeedSequence(8)) is None


DETERMINISTIC = [name for name, bound in catalog().items() if bound.form == "deterministic"]


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_exact_sides_are_those_of_the_statement(name, d):
    """Two evaluations that share no code, on random rational inputs; constants too."""
    bound = catalog()[name]
    changed = {key: 1.25 * value for key, value in bound.constants.items()}
    rng = np.random.default_rng(d)
    size, decode = FAMILIES[bound.setting]
    for constants in (dict(bound.constants), changed):
        statement = dataclasses.replace(bound, constants=constants)
        point = np.round(rng.standard_normal((1, size(d))) * 4.0, 1)
        single = {key: value[0] for key, value in decode(point, d).items()}
        inputs = _rational(bound.setting, single, None)
        assert not bound.violated(_floats(inputs), 1, 0.5)
        found = exact_sides(statement, inputs)
        floats = {key: value[None] for key, value in _floats(inputs).items()}
        if "t" in floats:
            floats["t"] = floats["t"].astype(int)
        left = statement.error(**floats).ravel()[0]
        right = np.ravel(statement.width(**floats))[0]
        assert float(Fraction(found.left)) == pytest.approx(left, rel=1e-9, abs=1e-12)
        assert float(Fraction(found.right)) == pytest.approx(right, rel=1e-9, abs=1e-12)


def test_rounding_is_not_a_violation():
    """Both sides equal but for rounding: the search sees more than 1e-12, fifty digits do not."""
    bound = catalog()["m25.inverse-order"]
    matrix = 1e-3 * np.eye(2) + np.outer([1.0, 3.0], [1.0, 3.0])
    inputs = {"smaller": matrix[None], "larger": matrix[None]}
    rational = _rational("ordered-pair", {k: v[0] for k, v in inputs.items()}, None)
    assert bound.error(**inputs)[0] != 1.0
    assert exact_sides(bound, rational).violation < 1e-11
    assert exact_sides(bound, rational).violation <= 0.0


def test_an_inequality_without_a_twin_needs_a_gross_violation():
    bound = catalog()["v24.hoffman-wielandt"]

    def width(c, a, b):
        return c["factor"] * np.linalg.norm(a - b, axis=(-2, -1))

    inputs = {"a": [[Fraction(1)]], "b": [[Fraction(2)]]}
    own = dataclasses.replace(bound, width_function=width)
    assert exact_sides(own, inputs) is None
    assert audit(catalogue={own.id: own})[own.id].verdict == "upheld"
    wrong = dataclasses.replace(own, constants={"factor": 0.9})
    assert audit(catalogue={own.id: wrong})[own.id].verdict == "refuted"


def test_repeatable():
    bound = catalog()["v24.hoffman-wielandt"]
    assert DIMENSIONS[0] == 1
    first, second = (search(bound, 2, np.random.SeedSequence(4)) for _ in range(2))
    assert first == second
    assert first.ratio == pytest.approx(1.0, rel=1e-3)  # attained by commuting matrices


def test_gradient_finds_what_chance_left():
    """From a rough point the ascent comes far nearer to the edge of Hoffman–Wielandt."""
    bound = catalog()["v24.hoffman-wielandt"]
    points = np.random.default_rng(0).standard_normal((3, 18))
    score = _score(bound, FAMILIES[bound.setting][1](points, 3))
    climbed, better, tried = _ascend(bound, points, score, 3)
    assert (better > score).all()
    assert better.max() > -1e-6  # attained, from a gap of a third or more
    assert score.max() < -0.3
    assert np.array_equal(_score(bound, FAMILIES[bound.setting][1](climbed, 3)), better)
    assert tried >= 3 * 36
    # What is true is not violated by climbing.
    assert (better <= 1e-12).all()


def test_unknown_setting_is_refused():
    bound = dataclasses.replace(catalog()["v24.hoffman-wielandt"], setting="elsewhere")
    with pytest.raises(InputError, match="elsewhere"):
        search(bound, 2, np.random.SeedSequence(0))
