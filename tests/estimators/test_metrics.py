"""The list of metrics."""

from __future__ import annotations

from genbounds.estimators import metric_names, metric_spec
from genbounds.estimators._metrics import BUILT_IN


def test_every_metric_is_found_by_each_of_its_names():
    """Of two with one name, or an alias, the first would not be found."""
    assert metric_names() == tuple(spec.name for spec in BUILT_IN)
    for spec in BUILT_IN:
        for name in (spec.name, *spec.aliases):
            assert metric_spec(name) is spec
