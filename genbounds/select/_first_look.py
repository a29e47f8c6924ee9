"""From how many samples on an arm is scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import FEW_RATIO, Prepared
from genbounds.estimators.spectrum_fit._few_rows import FEW_ROWS
from genbounds.validation import InputError

MINIMUM_LOOK = 100
"""No arm is scored on fewer rows."""

CLEARLY = 1e-3
"""Share of the largest singular value from which on a direction is more than rounding."""


def standard_look(metric: Prepared, columns: int) -> int:
    """Return from how many samples on the metric's second-order methods serve."""
    return max(MINIMUM_LOOK, metric.samples_per_dimension * columns, 2 * metric.minimum)


def earliest_look(metric: Prepared, columns: int) -> int:
    """Return from how many samples on any estimate of the metric may be evidence."""
    if metric.few_samples_per_dimension is None:
        return standard_look(metric, columns)
    few = math.ceil(metric.few_samples_per_dimension * columns)
    return max(MINIMUM_LOOK, few, 2 * metric.minimum)


def choose_first_look(metric: Prepared, columns: int, within_reach: Sequence[float]) -> int:
    """Return the standard first look, or the earliest where not every arm can give so many samples.

    Parameters
    ----------
    metric : Prepared
    columns : int
    within_reach : sequence of float
        Samples that each arm can give, as known before a single one is drawn: what the samples say
        has no part in the choice. Those below the earliest look can give no evidence either way
        and do not count.
    """
    standard, earliest = standard_look(metric, columns), earliest_look(metric, columns)
    able = [n for n in within_reach if n >= earliest]
    return earliest if able and min(able) < standard else standard


def check_enough_samples(metric: Prepared, columns: int, sizes: Mapping[str, int]) -> None:
    """Refuse arms of which none has as many samples as the earliest look needs.

    `sizes` has the samples of every arm by name.
    """
    first, largest = earliest_look(metric, columns), max(sizes, key=sizes.__getitem__)
    if sizes[largest] >= first:
        return
    ways = ["`genbounds score` (`compare`) gives scores with intervals"]
    if metric.reference is not None and metric.reference.has_rows:
        ways.append(f"metric 'kid' selects from {MINIMUM_LOOK} samples on")
    elif metric.reference is not None and not metric.reference.serves_few_samples:
        ways.append("the reference's features in place of its moments allow fewer")
    raise InputError(
        f"no arm has enough samples: with {columns} columns metric {metric.name!r} is certified "
        f"from {first} samples per arm on, and the largest, {largest!r}, has {sizes[largest]}; "
        f"with fewer, {' and '.join(ways)}."
    )


def check_reference(metric: Prepared, batches: Sequence[NDArray[Any]]) -> None:
    """Refuse a reference of so few rows that no look can be evidence, whatever is drawn.

    Arms that fill few directions make do with few reference rows: what counts is how many the first
    `batches` of all arms show.
    """
    reference = metric.reference
    if reference is None or reference.n is None or reference.n >= FEW_ROWS:
        return
    directions = min(map(_directions, batches), default=0)
    if reference.n >= FEW_RATIO * directions:
        return
    raise InputError(
        f"has only {reference.n} rows: by metric {metric.name!r} it can certify nothing, however "
        f"many samples are drawn. Use more rows, better {FEW_RATIO} or more per feature"
        + (", or metric 'kid'." if reference.has_rows else "."),
        argument="reference",
    )


def _directions(rows: NDArray[Any]) -> int:
    """Directions in which rows vary, beyond any doubt of rounding."""
    if len(rows) < 2:
        return 0
    sizes = np.linalg.svdvals(rows - rows.mean(axis=0, dtype=np.float64))
    return int((sizes > CLEARLY * sizes[0]).sum())
