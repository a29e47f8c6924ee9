"""From how many samples on an arm is scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from genbounds.estimators import Prepared
from genbounds.validation import InputError

MINIMUM_LOOK = 100
"""No arm is scored on fewer rows."""


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


def too_few_samples(
    metric: Prepared, columns: int, first: int, sizes: Mapping[str, int]
) -> InputError:
    """Say that no arm has enough samples, how many it takes, and what can be done with them."""
    largest = max(sizes, key=sizes.__getitem__)
    ways = ["`genbounds score` (`compare`) gives scores with intervals"]
    if metric.reference is not None:
        ways.append(f"metric 'kid' selects from {MINIMUM_LOOK} samples on")
    rest = f"; with fewer, {' and '.join(ways)}"
    return InputError(
        f"no arm has enough samples: with {columns} columns metric {metric.name!r} is certified "
        f"from {first} samples an arm on, and the largest, {largest!r}, has {sizes[largest]}{rest}."
    )
