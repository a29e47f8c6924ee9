"""The adversary finds what is false and leaves what is true."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from genbounds import InputError
from genbounds.bounds import catalog
from genbounds.simulate import audit
from genbounds.simulate._search import DIMENSIONS, FAMILIES, _ascend, _score, search

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
    assert "picks = [1.0]" in row.counterexample


def test_counterexample_can_be_checked_by_hand():
    """The printed inputs violate the claim when evaluated again."""
    bound = catalog()["m25.trace-root-subadditive"]
    wrong = dataclasses.replace(bound, constants={"factor": 0.9})
    found = search(wrong, 2, np.random.SeedSequence(0))
    inputs = {name: np.array(value)[None] for name, value in found.inputs.items()}
    assert found.refutes
    assert wrong.error(**inputs)[0] == pytest.approx(found.left, rel=1e-12)
    assert wrong.width(**inputs)[0] == pytest.approx(found.right, rel=1e-12)
    # Simplified to a few digits.
    assert all(np.allclose(value, np.round(value, 2)) for value in inputs.values())


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
