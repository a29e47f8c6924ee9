"""The list of metrics."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import genbounds as gb
from genbounds.estimators import metric_names, metric_spec, register_metric
from tests.refusal import refused


def test_every_metric_is_found_by_each_of_its_names():
    """Of two with one alias, the first would not be found; tests/frozen has all names."""
    for spec in map(metric_spec, metric_names()):
        for name in (spec.name, *spec.aliases):
            assert metric_spec(name) is spec


@pytest.mark.parametrize("spec", [None, "fd", len])
def test_what_is_no_metric_is_not_registered(spec):
    with refused("must be a SmoothScore or a MetricSpec; got"):
        register_metric(spec)


@pytest.mark.parametrize("name", ["help", "a:b", "--k", "a b", "a\nb", "a\x1bb", "", 3])
@pytest.mark.parametrize("alias", [False, True])
def test_names_that_mean_something_else_are_not_registered(name, alias):
    before = metric_names()
    given = {"name": "own", "aliases": (name,)} if alias else {"name": name}
    with refused("`name` must be a text without spaces and colons"):
        register_metric(replace(metric_spec("kid"), **given))
    assert metric_names() == before


@pytest.mark.parametrize("name", ["fd", "fid", "is"])
@pytest.mark.parametrize("alias", [False, True])
def test_no_metric_of_the_package_is_replaced(name, alias):
    before = metric_spec(name)
    given = {"name": "own", "aliases": (name,)} if alias else {"name": name}
    with refused(f"a metric named '{name}' is registered already"):
        register_metric(replace(metric_spec("kid"), **given))
    assert metric_spec(name) is before


def test_no_score_has_the_other_name_of_a_metric_of_the_package():
    score = gb.SmoothScore(
        lambda x, w: (w @ x).sum(), name="fid", higher_is_better=False, needs_reference=False
    )
    with refused("'fid' is the name of another metric"):
        metric_spec(score)


@pytest.mark.parametrize("options", ["x", 3])
def test_options_that_are_no_names_and_values_are_refused(options):
    x = np.random.default_rng(0).normal(size=(60, 3))
    with refused("must be a dict of names and values"):
        gb.compare({"a": x, "b": x + 1.0}, x - 1.0, metric="kid", options=options)


def test_a_kernel_that_fails_is_blamed_in_one_line():
    with refused("`kernel` fails: TypeError"):
        gb.vendi_score(np.eye(60), kernel=lambda rows: rows)


@pytest.mark.parametrize("name", metric_names())
def test_a_metric_reaches_another_process(name):
    """Where models are scored by a pool of processes, what describes the score is sent to them."""
    sent = pickle.dumps(metric_spec(name))
    assert pickle.loads(sent).name == metric_spec(name).name  # noqa: S301
