"""Scores that selection can compare: from rows to a debiased value with its variance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import (
    METRICS,
    Expansion,
    FrechetReference,
    KernelReference,
    Moments,
    inception_expansion,
    squared_kernel_sum,
    vendi_metric,
    vendi_options,
)
from genbounds.select._running import Running, RunningFrechet, RunningInception
from genbounds.select._running_kernel import RunningKid, RunningRke
from genbounds.validation import Float, InputError, check_choice

Rows = NDArray[Any]


FEWEST_ROWS = 100
"""No arm is scored on fewer."""

FEWEST_PAIRWISE = 8
"""Rows below which the variance of a U-statistic of pairs is not estimated."""

KERNEL_OPTIONS = ("degree", "gamma", "offset")
VENDI = ("vendi", "rke")
RADIAL = ("rbf", "laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One score, in the forms that selection needs.

    Attributes
    ----------
    name : str
        As written in results.
    expand : callable
        Rows to `Expansion`: debiased value with its variance. The certificate uses nothing else.
    plugin_loss : callable
        Rows to the plain estimate, turned so that small is good: what the published policies use.
        For a user's own callable, its `expand` value.
    follow : callable or None
        Of the number of columns: a plug-in score that follows a growing sample (`Running`); None
        where each step has to take all rows anew.
    columns : int or None
        Features that the rows must have; None where the metric does not care.
    rows_per_column, fewest_rows : int
        No score is defined below `fewest_rows`. The first look of an arm takes
        ``max(FEWEST_ROWS, rows_per_column * d, 2 * fewest_rows)`` rows.
    reference : FrechetReference or None
        For policies that need its moments; metric "fd" only.
    sampled_reference : bool
        Whether the target is the distance to the population behind a reference sample.
    """

    name: str
    expand: Callable[[Rows], Expansion]
    plugin_loss: Callable[[Rows], float]
    follow: Callable[[int], Running] | None = None
    columns: int | None = None
    rows_per_column: int = 0
    fewest_rows: int = 2
    reference: FrechetReference | None = None
    sampled_reference: bool = False

    def first_look(self, columns: int) -> int:
        """Fewest rows, of so many `columns`, whose expansion a critical value is meant for."""
        return max(FEWEST_ROWS, self.rows_per_column * columns, 2 * self.fewest_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMetric:
    """A score of your own: value, influence function, bias correction.

    Attributes
    ----------
    name : str
    value : callable
        Rows (n, d) to the plug-in score.
    influence : callable
        Rows to the influence of each of them on the score, (n,): the derivative of the score in
        the weight of a row. It is centred here; its variance over n is that of the score.
    bias : callable or None
        Rows to what `value` is too large by on average; None: unbiased to order 1/n.
    higher_is_better : bool
    rows_per_column : int
        The first look takes ``max(100, rows_per_column * d)`` rows.

    Examples
    --------
    The variance of the first feature, whose plug-in (divisor n) is too small by its n-th part:

    >>> import numpy as np
    >>> import genbounds as gb
    >>> spread = gb.select.CustomMetric(
    ...     name="spread",
    ...     value=lambda x: float(x[:, 0].var()),
    ...     influence=lambda x: (x[:, 0] - x[:, 0].mean()) ** 2,
    ...     bias=lambda x: -float(x[:, 0].var()) / len(x),
    ...     higher_is_better=True,
    ... )
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> bool(np.isclose(spread(x).value, x.var(ddof=1), rtol=1e-5))
    True
    """

    name: str
    value: Callable[[Rows], float]
    influence: Callable[[Rows], Any]
    bias: Callable[[Rows], float] | None = None
    higher_is_better: bool = False
    rows_per_column: int = 0

    def __call__(self, rows: Rows) -> Expansion:
        """Debiased value with its variance."""
        n = rows.shape[0]
        influence: Float = np.asarray(self.influence(rows), dtype=np.float64)
        if influence.shape != (n,):
            raise InputError(
                f"`influence` of metric {self.name!r} must return one number a row, shape ({n},); "
                f"got shape {influence.shape}."
            )
        influence = influence - influence.mean()
        bias = 0.0 if self.bias is None else float(self.bias(rows))
        return Expansion(
            estimator="debiased",
            value=float(self.value(rows)) - bias,
            variance=float(influence @ influence) / (n - 1) / n,
            degrees_of_freedom=n - 1.0,
            influence=influence,
            n=n,
            higher_is_better=self.higher_is_better,
        )


def loss(expansion: Expansion) -> float:
    """Value turned so that small is good."""
    return -expansion.value if expansion.higher_is_better else expansion.value


def resolve_metric(
    metric: str | CustomMetric | Callable[[Rows], Expansion],
    reference: Any,
    options: Mapping[str, Any] | None = None,
) -> Metric:
    """Make a `Metric` of a name, of a `CustomMetric` or of a callable ``metric(rows)``."""
    if callable(metric):
        if reference is not None:
            raise InputError(_NO_REFERENCE.format("a metric of your own"))
        _refuse(options, "a metric of your own")
        return _custom(metric)
    check_choice("metric", metric, METRICS)
    if metric in VENDI:
        return _vendi(metric, reference, dict(options or {}))
    if metric == "kid":
        return _kid(reference, dict(options or {}))
    _refuse(options, f"metric {metric!r}")
    if metric == "fd":
        if reference is None:
            raise InputError("`reference` is needed for metric 'fd': an array (m, d) or Moments.")
        prepared = FrechetReference(reference)
        return Metric(
            name="fd",
            expand=lambda rows: _of_ordinary_size(prepared.expand(rows)),
            plugin_loss=prepared.plugin,
            follow=lambda columns: RunningFrechet(prepared),
            columns=prepared.d,
            # The noise of a sampled reference cancels row by row from four rows a feature on.
            rows_per_column=2 if prepared.n is None else 4,
            reference=prepared,
            sampled_reference=prepared.n is not None,
        )
    if metric == "is":
        if reference is not None:
            raise InputError(_NO_REFERENCE.format("metric 'is'"))
        return Metric(
            name="is",
            expand=inception_expansion,
            plugin_loss=lambda rows: -inception_expansion(rows, estimator="plugin").value,
            follow=RunningInception,
            rows_per_column=5,
        )
    raise AssertionError  # unreachable: every metric of the estimators is handled above


def _of_ordinary_size(expansion: Expansion) -> Expansion:
    """Refuse what was computed in another unit: certificates add up values and variances."""
    if expansion.unit != 1.0:
        raise InputError(
            "the features are of an extreme size: multiply those of all arms and of the reference "
            "by a common number."
        )
    return expansion


_NO_REFERENCE = (
    "`reference` is not used by {}; pass None, and let a metric of your own hold its reference "
    "itself."
)


def _refuse(options: Mapping[str, Any] | None, what: str) -> None:
    if options:
        raise InputError(f"`options` are for the metrics 'kid', 'vendi' and 'rke'; got {what}.")


def _custom(metric: CustomMetric | Callable[[Rows], Expansion]) -> Metric:
    if isinstance(metric, CustomMetric):
        sign, value = (-1.0 if metric.higher_is_better else 1.0), metric.value
        return Metric(
            name=metric.name,
            expand=metric,
            plugin_loss=lambda rows: sign * float(value(rows)),
            rows_per_column=metric.rows_per_column,
        )
    return Metric(
        name=getattr(metric, "__name__", type(metric).__name__),
        expand=metric,
        plugin_loss=lambda rows: loss(metric(rows)),
    )


def _kid(reference: Any, options: dict[str, Any]) -> Metric:
    if reference is None:
        raise InputError("`reference` is needed for metric 'kid': an array (m, d).")
    unknown = [name for name in options if name not in KERNEL_OPTIONS]
    if unknown:
        raise InputError(
            f"`options` of metric 'kid' must be among {', '.join(KERNEL_OPTIONS)}; "
            f"got {unknown[0]!r}."
        )
    prepared = KernelReference(reference, **options)
    return Metric(
        name="kid",
        expand=lambda rows: _of_ordinary_size(prepared.expand(rows)),
        plugin_loss=lambda rows: prepared.expand(rows, estimator="plugin").value,
        follow=lambda columns: RunningKid(prepared),
        columns=prepared.d,
        fewest_rows=FEWEST_PAIRWISE,
        sampled_reference=True,
    )


def _vendi(metric: str, reference: Any, options: dict[str, Any]) -> Metric:
    """Vendi scores; the reference is there for the bandwidth only."""
    kernel = options.get("kernel", "rbf")
    radial = isinstance(kernel, str) and kernel in RADIAL
    if isinstance(reference, Moments):
        raise InputError(
            f"`reference` must be features for metric {metric!r}, from which the bandwidth is "
            "taken; got Moments."
        )
    if radial and reference is None and options.get("bandwidth") is None:
        raise InputError(
            f"metric {metric!r} needs `reference`, or a `bandwidth` in `options`: all arms must "
            "be scored with one bandwidth."
        )
    samples = [] if reference is None else [reference]
    given, _ = vendi_options(metric, samples, options)
    expand = vendi_metric(metric, samples, options)

    def pair_sum(one: Rows, two: Rows) -> float:
        return squared_kernel_sum(
            one, two, kernel=given["kernel"], bandwidth=given.get("bandwidth")
        )

    # A spectrum of order below 2 is debiased only where the samples fill the feature dimension;
    # with an infinite one it is truncated, which takes more rows than components.
    below = metric == "vendi" and options.get("order", 1.0) < 2.0
    components = 100 if options.get("components") is None else int(options["components"])
    return Metric(
        name=metric,
        expand=expand,
        plugin_loss=lambda rows: loss(expand(rows, estimator="plugin")),
        follow=(lambda columns: RunningRke(pair_sum)) if metric == "rke" else None,
        columns=None if reference is None else np.shape(reference)[1],
        rows_per_column=8 if below and not radial else 0,
        fewest_rows=components + 1 if below and radial else FEWEST_PAIRWISE,
    )
