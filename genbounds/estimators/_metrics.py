"""Every metric by its name: `compare`, selection, the command line and the page ask here.

Each is described by a `MetricSpec` beside its score, and listed in `BUILT_IN`. `register_metric`
adds one of your own (docs/extending.md).
"""

from __future__ import annotations

import re
from typing import Any

from genbounds._text import quoted
from genbounds.estimators import (
    _mean,
    copies,
    frechet,
    inception,
    kernels,
    neighbours,
    smooth,
    vendi,
)
from genbounds.estimators._metric_spec import CustomMetric, MetricSpec, function_spec
from genbounds.estimators.smooth import SmoothScore
from genbounds.validation import InputError, check_choice

BUILT_IN = (
    frechet.FD,
    kernels.KID,
    inception.IS,
    vendi.VENDI,
    vendi.RKE,
    kernels.CMMD,
    kernels.KAD,
    kernels.ENERGY,
    *neighbours.METRICS,
    smooth.MIND,
    copies.AUTHPCT,
    copies.MIFID,
    _mean.MEAN,
    frechet.SFID,
)

_registry = {name: spec for spec in BUILT_IN for name in (spec.name, *spec.aliases)}
_taken = frozenset(_registry)

_NAME = re.compile(r"(?!-|help$)[^\s:]+")
"""On the command line `--metric help` lists the metrics, and `module:name` is a user's own."""


def register_metric(spec: MetricSpec | SmoothScore) -> MetricSpec:
    """Make a metric known by its name to `compare` and selection.

    The command line takes it as ``--metric module:name``, whether it is registered or not.

    Parameters
    ----------
    spec : MetricSpec or SmoothScore

    Returns
    -------
    MetricSpec

    Raises
    ------
    InputError
        If it is no metric; or if the name, or an alias, is that of another one or none that the
        command line could take. One of your own may be registered again, as a cell of a notebook
        that is run twice does.
    """
    if isinstance(spec, SmoothScore):
        spec = _described(spec)
    if not isinstance(spec, MetricSpec):
        raise InputError(
            f"must be a SmoothScore or a MetricSpec; got {quoted(spec)}.", argument="spec"
        )
    for name in (spec.name, *spec.aliases):
        given: object = name  # callers are not type-checked
        if not (isinstance(given, str) and given.isprintable() and _NAME.fullmatch(given)):
            raise InputError(
                "must be a text without spaces and colons that does not begin with '-' and is not "
                f"'help'; got {quoted(name)}.",
                argument="name",
            )
        known = _registry.get(name)
        if known is not None and (known.name != spec.name or known.name in _taken):
            raise InputError(f"a metric named {name!r} is registered already.")
    for name in (spec.name, *spec.aliases):
        _registry[name] = spec
    return spec


def metric_names() -> tuple[str, ...]:
    """Names of all metrics, without aliases."""
    return tuple(dict.fromkeys(spec.name for spec in _registry.values()))


def metric_spec(metric: Any) -> MetricSpec:
    """Return the description of a metric.

    Parameters
    ----------
    metric : str, MetricSpec, SmoothScore, CustomMetric or callable
        A name or alias; or a function from rows to an `Estimate`, which holds its own reference.

    Raises
    ------
    InputError
        If no metric has that name.
    """
    if isinstance(metric, MetricSpec):
        return metric
    if isinstance(metric, CustomMetric):
        return metric.spec()
    if isinstance(metric, SmoothScore):
        return _described(metric)
    if isinstance(metric, str):
        # FID, KID, IS are written so; a metric of one's own may have capitals of its own.
        for name in (metric, metric.lower()):
            if name in _registry:
                return _registry[name]
    if callable(metric):
        return function_spec(metric)
    return _registry[check_choice("metric", metric, _registry)]


def _described(score: SmoothScore) -> MetricSpec:
    """Describe a score of your own, under a name that is its own."""
    if score.name in _taken:
        raise InputError(
            f"{score.name!r} is the name of another metric: choose another.", argument="name"
        )
    return smooth.smooth_spec(score)
