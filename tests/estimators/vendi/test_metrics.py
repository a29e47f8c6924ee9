"""Vendi scores as metrics: options that are refused before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from tests.refusal import refused

X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize("metric", ["vendi", "rke"])
@pytest.mark.parametrize(
    "options",
    [
        {"components": "x"},
        {"components": 0},
        {"order": "x", "method": "exact"},
        {"order": np.array([1.0, 2.0])},
        {"kernel": np.eye(3)},
    ],
)
def test_bad_options_are_said_in_one_line(metric, options):
    with refused(f"`{next(iter(options))}`"):
        gb.compare({"a": X, "b": X + 1.0}, X, metric=metric, options=options)


def test_no_components_are_not_the_usual_number_of_them():
    with refused("`components`", "got 0"):
        gb.vendi_score(X, method="truncated", components=0)


@pytest.mark.parametrize("method", [None, "exact", "truncated"])
def test_a_number_of_components_is_refused_in_the_same_words_by_all(method):
    with refused("`components` must be a whole number of at least 1; got -1"):
        gb.vendi_score(X, method=method, components=-1)
    with refused("`components` must be a whole number of at least 1; got -1"):
        gb.compare({"a": X, "b": X}, metric="vendi", options={"components": -1, "method": method})


BAD = np.where(np.arange(60).reshape(20, 3) == 22, np.nan, X)  # row 7


@pytest.mark.parametrize("metric", ["vendi", "rke"])
def test_a_bad_row_is_named_as_it_was_given(metric):
    """Not as one of the rows of all models, from which the bandwidth comes."""
    with refused("model 'b': `", "has NaN in row 7"):
        gb.compare({"a": X, "b": BAD}, metric=metric)
    with refused("`real` has NaN in row 7"):
        gb.compare({"a": X, "b": X + 1.0}, BAD, metric=metric)
    with refused("`real` needs at least 2 samples"):
        gb.compare({"a": X, "b": X + 1.0}, X[:1], metric=metric)


@pytest.mark.parametrize("metric", ["vendi", "rke"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bandwidth": -1}, "`bandwidth` must be a positive, finite number; got -1"),
        ({"kernel": "cosine", "bandwidth": 1.0}, "`bandwidth` is for the kernels 'rbf' and"),
        ({"kernel": "cosin"}, "`kernel` must be one of 'rbf'"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0; got -1"),
    ],
)
def test_an_option_is_no_fault_of_a_model(metric, options, words):
    arms = {name: lambda n, rng: rng.normal(size=(n, 3)) for name in "ab"}
    for call in (
        lambda: gb.compare({"a": X, "b": X + 1.0}, metric=metric, options=options),
        lambda: gb.select.run(arms, X, metric=metric, options=options, batch=20, budget=100),
    ):
        with pytest.raises(gb.InputError) as caught:
            call()
        assert str(caught.value).startswith(words)
        assert caught.value.model == ""
