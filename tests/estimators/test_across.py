"""One ranking over several encoders."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

RNG = np.random.default_rng(0)
IMAGES = {
    "real": RNG.normal(size=(600, 6)),
    "a": RNG.normal(0.4, 1.1, size=(600, 6)),
    "b": RNG.normal(0.7, 1.0, size=(600, 6)),
}


def encoded(**encoders):
    """Features of the models, and of the reference, under every encoder."""
    fakes = {name: {key: f(IMAGES[key]) for key in "ab"} for name, f in encoders.items()}
    return fakes, {name: f(IMAGES["real"]) for name, f in encoders.items()}


def test_encoders_that_say_the_same_say_it_once():
    """The geometric mean of one distance in two units has the error of one, not of two halves."""
    found = gb.across(*encoded(one=lambda x: x, ten=lambda x: 10.0 * x))
    for model in "ab":
        single = gb.frechet_distance(IMAGES[model], IMAGES["real"])
        score = found.scores[model]
        assert score.value == pytest.approx(10.0 * single.value, rel=1e-9)
        relative = single.stderr / single.value
        # What cancels between random pairs of rows is not taken off where encoders differ.
        assert 1.0 <= score.stderr / score.value / relative < 1.1
    assert found.log_scale
    assert list(found.by_encoder) == ["one", "ten"]


def test_numbers_are_what_each_distance_is_divided_by():
    fakes, real = encoded(one=lambda x: x, half=lambda x: np.tanh(x[:, :3]))
    found = gb.across(fakes, real, scale={"one": 2.0, "half": 0.1})
    one, half = (gb.frechet_distance(fakes[name]["a"], real[name]).value for name in fakes)
    assert found.scores["a"].value == pytest.approx((one / 2.0 + half / 0.1) / 2.0, rel=1e-12)
    assert not found.log_scale


@pytest.mark.statistical
def test_the_floor_is_the_distance_of_halves_of_the_reference():
    """H0: their mean. Within 10 %, six standard errors of both: false alarms below 1e-8."""
    rng = np.random.default_rng(1)
    fakes, real = encoded(one=lambda x: x)
    value = gb.across(fakes, real, scale="floor").scores["a"].value
    halves = [
        gb.frechet_distance(*rng.normal(size=(2, 300, 6)), estimator="plugin").value
        for _ in range(200)
    ]
    distance = gb.frechet_distance(fakes["one"]["a"], real["one"]).value
    assert distance / value == pytest.approx(np.mean(halves), rel=0.1)


def test_encoders_that_disagree_are_named():
    """One sees the first features only, where b is nearer; the other the rest, where a is."""
    rng = np.random.default_rng(2)
    shift = np.array([1.0, 1.0, 0.0, 0.0])
    images = {"real": rng.normal(size=(500, 4)), "a": rng.normal(size=(500, 4)) + shift}
    images["b"] = rng.normal(size=(500, 4)) + shift[::-1]
    views = {"first": slice(0, 2), "last": slice(2, 4)}
    fakes = {name: {key: images[key][:, part] for key in "ab"} for name, part in views.items()}
    found = gb.across(
        fakes, {name: images["real"][:, part] for name, part in views.items()}, scale="floor"
    )
    assert found.disputed == (("a", "b", "last", "first"),)
    assert found.to_dict()["by_encoder"]["first"]["scores"]["b"]["value"] < 0.1


def test_what_is_no_table_of_encoders_is_refused():
    fakes, real = encoded(one=lambda x: x, half=lambda x: x[:, :3])
    with refused("real", "one, half"):
        gb.across(fakes, {"one": real["one"]})
    with refused("fakes", "'half'"):
        gb.across({**fakes, "half": {"a": fakes["half"]["a"]}}, real)
    with refused("fakes", "'a' has 599 rows"):
        gb.across({**fakes, "half": {**fakes["half"], "a": fakes["half"]["a"][1:]}}, real)
    with refused("scale", "'half'"):
        gb.across(fakes, real, scale={"one": 1.0})
    with refused("scale", "none"):
        gb.across(fakes, real, scale="none")
    with refused('scale="floor"', "'one'"):
        gb.across({"one": {"a": real["one"][::-1]}}, {"one": real["one"]})


def test_rows_that_repeat_are_one_draw_under_every_encoder():
    """Deduplicated rows come in an order of their own under each encoder."""
    twice = np.r_[0, np.arange(600)]
    encoders = {"one": lambda x: x, "minus": lambda x: -10.0 * x, "turned": lambda x: x[:, ::-1]}
    whole = gb.across(*encoded(**encoders)).scores["a"]
    fakes = {name: {"a": f(IMAGES["a"][twice])} for name, f in encoders.items()}
    real = {name: f(IMAGES["real"][twice]) for name, f in encoders.items()}
    found = gb.across(fakes, real).scores["a"]
    assert found.stderr / found.value == pytest.approx(whole.stderr / whole.value, rel=0.1)
    torch = pytest.importorskip("torch")
    for given in (np.ndarray.tolist, torch.tensor):
        again = gb.across(
            {name: {"a": given(by["a"].copy())} for name, by in fakes.items()},
            {name: given(x.copy()) for name, x in real.items()},
        )
        assert again.scores["a"].stderr == pytest.approx(found.stderr, rel=1e-9)
    rounded = {**fakes, "round": {"a": np.round(fakes["one"]["a"][:, :1])}}
    gb.across(rounded, {**real, "round": np.round(real["one"][:, :1])})


def test_a_distance_near_zero_has_no_logarithm():
    rng = np.random.default_rng(3)
    real, same, other = rng.normal(size=(3, 400, 4))
    fakes = {"blind": {"a": same + 0.15}, "seeing": {"a": other + 1.0}}
    score = gb.across(fakes, {"blind": real, "seeing": real}).scores["a"]
    assert "below-range" in {warning.code for warning in score.warnings}
    assert not score.reliable
    assert gb.across(fakes, {"blind": real, "seeing": real}, scale="floor").scores["a"].reliable
    names = np.arange(400)
    with refused("groups of the reference"):
        gb.across(
            {"one": {"a": gb.Sample(other + 1.0, groups=names)}},
            {"one": gb.Sample(real, groups=names)},
        )
