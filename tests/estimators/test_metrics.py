"""The list of metrics."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds.estimators import metric_names, metric_spec, register_metric
from genbounds.estimators._metrics import BUILT_IN
from tests.refusal import refused


def test_every_metric_is_found_by_each_of_its_names():
    """Of two with one name, or an alias, the first would not be found."""
    assert metric_names() == tuple(spec.name for spec in BUILT_IN)
    for spec in BUILT_IN:
        for name in (spec.name, *spec.aliases):
            assert metric_spec(name) is spec


@pytest.mark.parametrize("spec", [None, "fd", len])
def test_what_is_no_metric_is_not_registered(spec):
    with refused("must be a SmoothScore or a MetricSpec; got"):
        register_metric(spec)


@pytest.mark.parametrize("options", ["x", 3])
def test_options_that_are_no_names_and_values_are_refused(options):
    x = np.random.default_rng(0).normal(size=(60, 3))
    with refused("must be a dict of names and values"):
        gb.compare({"a": x, "b": x + 1.0}, x - 1.0, metric="kid", options=options)


def test_a_kernel_that_fails_is_blamed_in_one_line():
    with refused("`kernel` fails: TypeError"):
        gb.vendi_score(np.eye(60), kernel=lambda rows: rows)
