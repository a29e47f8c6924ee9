"""Vendi scores as metrics: what all models have in common, so that their scores compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.estimate import Estimate
from genbounds.estimators._metric_spec import MetricSpec, Prepare, Prepared
from genbounds.estimators.kernels import RunningRke, squared_kernel_sum
from genbounds.estimators.kernels._kernel_rows import check_kernel
from genbounds.estimators.kernels._parameters import BANDWIDTH_ROWS, median_bandwidth
from genbounds.estimators.kernels._rke import MINIMUM
from genbounds.estimators.vendi._expansion import PAIRING_SEED
from genbounds.estimators.vendi._score import (
    COMPONENTS,
    check_order,
    check_settings,
    vendi_estimate,
)
from genbounds.samples import features_of
from genbounds.validation import InputError, check_features, check_finite

SETTINGS = ("method", "components", "landmarks", "seed")
OPTIONS = ("kernel", "bandwidth", "order", *SETTINGS)


def vendi_metric(
    metric: str,
    samples: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    *,
    smallest: int | None = None,
) -> Callable[..., Estimate]:
    """Return the function that estimates the same statistic of any model.

    Parameters
    ----------
    metric : {"vendi", "rke"}
    samples : sequence of array_like
        Where one bandwidth for all models comes from, if none is given: the reference, or all
        models, each with equally many rows.
    options : mapping, optional
        Keyword arguments of `vendi_score`. "rke" has order 2 and the method "ustat"; "vendi" with
        an infinite feature dimension and an order below 2 is truncated at every n, so that sample
        sizes may differ.
    smallest : int, optional
        Rows of the smallest model, where all are known: a truncation keeps fewer eigenvalues than
        that.
    """
    return _estimator(*vendi_options(metric, samples, options, smallest=smallest))


def _estimator(given: Mapping[str, Any], note: str) -> Callable[..., Estimate]:
    def estimate(x: Any, *, estimator: str = "debiased") -> Estimate:
        found = vendi_estimate(x, estimator=estimator, **given)
        return replace(found, details=(*found.details, note)) if note else found

    return estimate


# A branch for each option that could be wrong.
def vendi_options(
    metric: str,
    samples: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    *,
    smallest: int | None = None,
) -> tuple[dict[str, Any], str]:
    """Complete the options that all models share, with a note on what was chosen for them.

    Parameters
    ----------
    metric : {"vendi", "rke"}
    samples : sequence of array_like
    options : mapping, optional
    smallest : int, optional
        All as for `vendi_metric`.

    Returns
    -------
    tuple of dict and str
        Keyword arguments of `vendi_score`, bandwidth and method among them; the note, or "".

    Raises
    ------
    InputError
        If an option is unknown or not legal for the metric, or samples differ in width.
    """
    given = dict(options or {})
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        raise InputError(
            f"must be among {', '.join(OPTIONS)}; got {unknown[0]!r}.", argument="options"
        )
    kernel = given.setdefault("kernel", "rbf")
    if not (isinstance(kernel, str) and kernel == "precomputed"):
        check_kernel(kernel, given.get("bandwidth"))
    order, components = check_order(given.get("order", 1.0)), given.get("components")
    check_settings(**{name: given[name] for name in SETTINGS if name in given})
    radial, note = _is_radial(kernel), ""
    if radial and given.get("bandwidth") is None:
        if not samples:
            raise InputError(
                f"is needed by metric {metric!r}: all models are scored with one bandwidth, which "
                "comes from its rows (in Python `options` may give a `bandwidth` instead).",
                argument="reference",
            )
        share = max(2, BANDWIDTH_ROWS // max(len(samples), 1))
        rng = np.random.default_rng(PAIRING_SEED)
        parts = []
        for sample in samples:
            rows = check_features("x", features_of(sample), minimum=0)
            part = rows[np.sort(rng.choice(len(rows), min(share, len(rows)), replace=False))]
            # Whoever scores the model refuses its bad rows, and names them.
            parts.append(part[np.isfinite(part).all(axis=1)])
        if len({part.shape[1] for part in parts}) > 1:
            raise InputError("all models need equally many features; they share one bandwidth.")
        given["bandwidth"] = median_bandwidth(np.concatenate(parts), kernel=kernel)
        note = (
            f"one bandwidth for all, {given['bandwidth']:.6g}, by the median heuristic; "
            "taken as given"
        )
    if metric == "rke":
        for name, value in (("order", 2.0), ("method", "ustat")):
            if given.setdefault(name, value) != value:
                raise InputError(f"metric 'rke' has {name} {value!r}; use metric 'vendi'.")
    elif given.get("method") is None:
        infinite = radial or callable(kernel)
        limitless = infinite and order < 2.0
        given["method"] = "truncated" if limitless else "exact"
        open_ended = limitless and components is None
        if open_ended and smallest is not None and 1 < smallest <= COMPONENTS["truncated"]:
            given["components"] = smallest - 1
            few = f"truncated at t={smallest - 1} for all: the smallest sample has {smallest} rows"
            note = f"{note}; {few}" if note else few
    return given, note


def _is_radial(kernel: object) -> bool:
    return isinstance(kernel, str) and kernel in ("rbf", "laplace")


def _prepare(metric: str) -> Prepare:
    """Prepare one of the two; the reference is there for the bandwidth only."""

    def prepare(reference: Any, options: Mapping[str, Any], models: Sequence[Any]) -> Prepared:
        radial = _is_radial(options.get("kernel", "rbf"))
        samples = list(models)
        if reference is not None:
            samples = [reference]
            check_finite("real", check_features("real", features_of(reference)))
        sizes = [len(model) for model in models if hasattr(model, "__len__")]
        smallest = min(sizes, default=None)
        given, note = vendi_options(metric, samples, options, smallest=smallest)

        def pair_sum(one: NDArray[Any], two: NDArray[Any]) -> float:
            return squared_kernel_sum(
                one, two, kernel=given["kernel"], bandwidth=given.get("bandwidth")
            )

        # A spectrum of order below 2 is debiased only where the samples fill the feature
        # dimension; an infinite one is truncated, which takes more rows than components.
        below = given.get("order", 1.0) < 2.0
        kept = options.get("components") or COMPONENTS["truncated"]
        return Prepared(
            estimate=_estimator(given, note),
            follow=(lambda columns: RunningRke(pair_sum)) if metric == "rke" else None,
            columns=None if reference is None else np.shape(reference)[1],
            samples_per_dimension=8 if below and not radial else 0,
            minimum=kept + 1 if below and radial else MINIMUM,
        )

    return prepare


def _all_empirical(estimates: Iterable[Estimate]) -> str | None:
    """From few samples a spectrum is fitted, unless it is refused: then for no model."""
    empirical = {estimate.method == "empirical" for estimate in estimates}
    return "plugin" if len(empirical) == 2 else None


VENDI = MetricSpec(
    name="vendi",
    title="Vendi score",
    summary="Vendi score: effective number of different samples, of any order",
    prepare=_prepare("vendi"),
    higher_is_better=True,
    reference="optional",
    options=OPTIONS,
    common_estimator=_all_empirical,
)

RKE = MetricSpec(
    name="rke",
    title="Vendi score of order 2 (RKE)",
    summary="Vendi score of order 2, unbiased at any number of samples",
    prepare=_prepare("rke"),
    higher_is_better=True,
    reference="optional",
    options=OPTIONS,
)
