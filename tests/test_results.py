"""Results: frozen, plain JSON, readable."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

import genbounds as gb
from tests.warnings_of import unreliable

CAUTION = gb.Diagnostic(code="few-samples", severity="caution", message="a", remedy="b")
SCORE = gb.Score(
    value=1.5,
    low=1.0,
    high=2.0,
    level=0.95,
    stderr=0.25,
    n=100,
    estimator="debiased",
    method="second-order",
    warnings=(CAUTION,),
    assumptions=("c",),
)


def test_a_score_is_a_number_with_its_interval():
    assert float(SCORE) == 1.5
    first, *rest = repr(SCORE).splitlines()
    assert first == "Score(1.5, 95% interval [1, 2], n=100, debiased, second-order)"
    assert [line.strip() for line in rest] == [str(CAUTION)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        SCORE.value = 2.0
    with pytest.raises(TypeError):
        iter(SCORE)


def test_a_model_card_takes_the_score():
    """By the Hub's own reader of cards."""
    hub = pytest.importorskip("huggingface_hub.repocard_data")
    score = dataclasses.replace(SCORE, title="Fréchet distance")
    entry = json.loads(json.dumps(score.model_index("gan", dataset="imagenet-1k")))
    name, (found,) = hub.model_index_to_eval_results(entry)
    assert (name, found.dataset_name, found.metric_value) == ("gan", "imagenet-1k", 1.5)
    assert found.metric_name == score.citation()
    assert found.metric_type == "frechet_distance"  # no title: the Hub takes an identifier
    card = hub.ModelCardData(model_name="gan", eval_results=[found])
    assert card.to_dict()["model-index"][0]["results"] == entry[0]["results"]


@pytest.mark.parametrize("names", [("", "cifar10"), ("gan", " "), ("gan", None)])
def test_a_model_card_has_names(names):
    with pytest.raises(gb.InputError, match="must be a name"):
        SCORE.model_index(names[0], dataset=names[1])


def test_json_holds_every_field_and_no_infinity():
    document = json.loads(json.dumps(SCORE.to_dict(), allow_nan=False))
    assert document == {
        "value": 1.5,
        "low": 1.0,
        "high": 2.0,
        "level": 0.95,
        "stderr": 0.25,
        "n": 100,
        "estimator": "debiased",
        "method": "second-order",
        "reliable": True,
        "warnings": [{"code": "few-samples", "severity": "caution", "message": "a", "remedy": "b"}],
        "assumptions": ["c"],
        "details": [],
        "title": "",
        "reference_n": None,
        "encoder": "",
        "notes": ["a", "c"],
    }
    endless = dataclasses.replace(SCORE, high=math.inf, n=None)
    assert json.loads(json.dumps(endless.to_dict(), allow_nan=False))["high"] is None


def test_a_score_is_reliable_unless_a_warning_says_otherwise():
    assert SCORE.reliable
    doubt = dataclasses.replace(CAUTION, severity="unreliable")
    doubted = dataclasses.replace(SCORE, warnings=(CAUTION, doubt))
    assert not doubted.reliable
    assert doubted.to_dict()["reliable"] is False


def ranking(gaps):
    names = ("x", "y", "z")
    pairs = (("x", "y"), ("x", "z"), ("y", "z"))
    return gb.Ranking(
        metric="fd",
        level=0.95,
        scores=dict.fromkeys(names, SCORE),
        differences=tuple(
            gb.Difference(
                better=a,
                worse=b,
                value=g,
                low=g - 1.0,
                high=g + 1.0,
                stderr=0.5,
                pvalue=0.04,
                pvalue_adjusted=0.04,
            )
            for (a, b), g in zip(pairs, gaps, strict=True)
        ),
        groups=(("x", "y"), ("z",)),
    )


def test_contenders_are_those_whom_nobody_beats():
    result = ranking((-0.5, -2.0, -1.5))
    assert result.best == "x"
    assert result.contenders == ("x", "y")
    assert result.difference("z", "y").distinguishable
    assert not result.difference("y", "x").distinguishable
    with pytest.raises(KeyError, match="no pair"):
        result.difference("x", "w")
    assert [line.split()[-1] for line in repr(result).splitlines()[1:]] == ["a", "a", "b"]
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["contenders"] == ["x", "y"]


def test_letters_go_on_after_z():
    """53 models that all differ have a group each."""
    names = [f"m{k}" for k in range(53)]
    result = dataclasses.replace(
        ranking((-0.5, -2.0, -1.5)),
        scores=dict.fromkeys(names, SCORE),
        groups=tuple((name,) for name in names),
    )
    found = [result.letters[f"m{k}"] for k in (0, 25, 26, 27, 52)]
    assert found == ["a", "z", "aa", "ab", "ba"]


def test_a_line_says_that_its_numbers_are_unreliable():
    """`print` shows one line, which `repr` follows with the warnings."""
    rng = np.random.default_rng(0)
    real, one, two = rng.normal(size=(3, 400, 3))
    found = gb.mixture({"one": one, "two": two}, real)
    assert "warnings" not in str(found)
    mixed = found.warned(unreliable("leak", "rows of the reference"))
    labels = np.repeat(np.arange(4), 100)  # four groups tell no variance
    few = gb.Sample(one, groups=labels)
    planned = gb.plan(few, real, metric="kid", half_width=1.0)
    selected = gb.select.plan({"few": few, "two": two}, real, metric="kid")
    arms = {"one": gb.select.FeatureArm(one), "two": gb.select.FeatureArm(two)}
    ran = gb.select.run(arms, real, metric="kid", target="mixture", tolerance=9.0, batch=100)
    ran = dataclasses.replace(ran, warnings=mixed.warnings)
    for found in (mixed, planned, selected, ran):
        assert not found.reliable
        assert str(found).endswith("; unreliable: see the warnings")
        assert "\n" not in str(found)
        assert found.warnings[0].message in repr(found)


def test_what_json_cannot_hold_is_none_wherever_it_stands():
    told = dataclasses.replace(SCORE, value=np.float64(np.nan), low=-np.inf, high=np.inf).to_dict()
    assert (told["value"], told["low"], told["high"], told["stderr"]) == (None, None, None, 0.25)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
