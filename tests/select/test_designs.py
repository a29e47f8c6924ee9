"""Arms that say how their rows were drawn."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds.select import FeatureArm
from tests.refusal import refused

D = 3
KNOWN = gb.Moments(np.zeros(D), np.eye(D))


class Pairs:
    """Two alike rows of every prompt."""

    def __init__(self, shift, *, told=True, odd=False):
        self.shift, self.told, self.odd, self.prompt = shift, told, odd, 0

    def draw(self, n, rng):
        prompts = self.prompt + np.arange(n) // 2
        self.prompt += (n + 1) // 2
        base = rng.normal(size=((n + 1) // 2, D))[np.arange(n) // 2]
        rows = self.shift + np.sqrt(0.9) * base + np.sqrt(0.1) * rng.normal(size=(n, D))
        if not self.told or (self.odd and self.prompt > 30):
            return rows
        return gb.Sample(rows, groups=prompts)


def test_groups_of_an_arm_are_in_its_standard_error():
    told = gb.select.run({"a": Pairs(0.1), "b": Pairs(1.0)}, KNOWN, batch=20)
    assert told.best == "a"
    assert told.certified
    score = told.scores["a"]
    assert any("groups of rows" in assumption for assumption in score.assumptions)


def test_batches_that_say_it_now_and_then_set_the_arm_aside():
    found = gb.select.run(
        {"a": Pairs(0.1), "odd": Pairs(0.5, odd=True), "b": Pairs(1.0)}, KNOWN, batch=20
    )
    assert "some batches only" in found.arms["odd"].reason


def test_weights_are_refused():
    class Weighted:
        def draw(self, n, rng):
            return gb.Sample(rng.normal(size=(n, D)), weights=np.ones(n))

    found = gb.select.run({"a": Pairs(0.1), "w": Weighted(), "b": Pairs(1.0)}, KNOWN, batch=20)
    assert "weights" in found.arms["w"].reason


def test_a_file_is_drawn_by_its_design():
    """Groups stay together, and of every stratum each beginning has its share."""
    rng = np.random.default_rng(0)
    strata, groups = np.repeat(["x", "y", "y"], 40), np.arange(120) // 4
    arm = FeatureArm(gb.Sample(rng.normal(size=(120, D)), groups=groups, strata=strata))
    first = arm.draw(60, np.random.default_rng(1))
    assert np.unique(first.strata, return_counts=True)[1].tolist() == [20, 40]
    _, sizes = np.unique(first.groups, return_counts=True)
    assert (sizes == 4).sum() >= 14
    rest = arm.draw(100, np.random.default_rng(1))
    assert sorted([*first.groups, *rest.groups]) == sorted(groups)
    assert arm.digest() != FeatureArm(first.features).digest()


def test_a_recorded_run_goes_on_with_its_groups(tmp_path):
    def arms():
        return {"a": Pairs(0.1), "b": Pairs(0.2)}

    short = {"batch": 20, "record": tmp_path / "kept"}
    gb.select.run(arms(), KNOWN, budget=200, **short)
    again = gb.select.run(arms(), KNOWN, budget=200, **short)
    once = gb.select.run(arms(), KNOWN, budget=200, batch=20)
    assert again.scores == once.scores


@pytest.mark.parametrize("length", [3, 5])
def test_wrong_labels_are_one_line(length):
    with refused("groups"):
        gb.Sample(np.zeros((4, D)), groups=np.zeros(length, dtype=int))


@pytest.mark.parametrize("what", ["weights", "seeds"])
def test_what_a_file_cannot_be_drawn_by_is_refused(what):
    """Weights were dropped without a word."""
    told = {"weights": {"weights": np.arange(1.0, 41.0)}, "seeds": {"seeds": np.arange(40) % 4}}
    sample = gb.Sample(np.zeros((40, D)), groups=np.arange(40) // 4, **told[what])
    with pytest.raises(gb.InputError, match=f"has {what}"):
        FeatureArm(sample)
