"""Scores that selection can compare: from rows to a debiased value with its variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from genbounds.estimators import Expansion, FrechetReference, inception_expansion
from genbounds.validation import InputError, check_choice

METRICS = ("fd", "is")

Rows = NDArray[Any]


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
        For a user's own metric, its `expand` value.
    columns : int or None
        Features that the rows must have; None where the metric does not care.
    rows_per_column : int
        The first look of an arm takes ``max(FEWEST_ROWS, rows_per_column * d)`` rows.
    """

    name: str
    expand: Callable[[Rows], Expansion]
    plugin_loss: Callable[[Rows], float]
    columns: int | None = None
    rows_per_column: int = 0

    def first_look(self, columns: int) -> int:
        """Fewest rows, of so many `columns`, whose expansion a critical value is meant for."""
        return max(FEWEST_ROWS, self.rows_per_column * columns)


FEWEST_ROWS = 100


def loss(expansion: Expansion) -> float:
    """Value turned so that small is good."""
    return -expansion.value if expansion.higher_is_better else expansion.value


def resolve_metric(metric: str | Callable[[Rows], Expansion], reference: Any) -> Metric:
    """Make a `Metric` of a name or of a callable ``metric(rows) -> Expansion``."""
    if metric == "fd":
        if reference is None:
            raise InputError("`reference` is needed for metric 'fd': an array (m, d) or Moments.")
        prepared = FrechetReference(reference)
        return Metric(
            name="fd",
            expand=prepared.expand,
            plugin_loss=prepared.plugin,
            columns=prepared.d,
            rows_per_column=8,
        )
    if reference is not None:
        raise InputError(
            "`reference` is used by metric 'fd' only; pass None for 'is', and let a metric of "
            "your own hold its reference itself."
        )
    if metric == "is":
        return Metric(
            name="is",
            expand=inception_expansion,
            plugin_loss=lambda rows: -inception_expansion(rows, estimator="plugin").value,
            rows_per_column=5,
        )
    if callable(metric):
        return Metric(
            name=getattr(metric, "__name__", type(metric).__name__),
            expand=metric,
            plugin_loss=lambda rows: loss(metric(rows)),
        )
    check_choice("metric", metric, METRICS)
    raise AssertionError  # unreachable: every legal choice is handled above
