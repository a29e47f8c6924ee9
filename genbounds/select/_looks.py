"""When an arm is scored: from how many samples on, at which sizes, and when that is believed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import FEW_RATIO, Prepared
from genbounds.estimators.spectrum_fit._root import FEW_ROWS
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
    few = metric.few_samples_per_dimension
    ratio = metric.samples_per_dimension if few is None else few
    return max(MINIMUM_LOOK, math.ceil(ratio * columns), 2 * metric.minimum)


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


def check_enough_samples(metric: Prepared, columns: int, sizes: Mapping[str, float]) -> None:
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
        f"from {first} samples per arm on, and the largest, {largest!r}, has {sizes[largest]:.0f}; "
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


# --- sizes of the looks, and their common critical value ------------------------------------------

# Nodes of the Gauss-Legendre rule; 96 agree with 300 to 1e-9 for growth factors down to 1.1.
_NODES = 96
_SMALLEST_GROWTH = 1.1

LEFT_OVER = 1.05
"""Rows of an arm that runs out, in those of a shorter one, up to which both end at one look."""


def look_sizes(
    first: int, limit: int, *, growth: float = 1.25, ends: Iterable[float] = ()
) -> tuple[int, ...]:
    """Sample sizes at which an arm is scored: `first`, then each `growth` times the last.

    Parameters
    ----------
    first, limit : int
        Smallest and largest size; both are looks.
    growth : float
        Ratio of neighbouring sizes, at least 1.1.
    ends : iterable of float
        Rows of arms that run out: looks as well, from which on the others are planned anew, so that
        no rows are left over. Of ends within 5 % of one another the smallest counts.

    Returns
    -------
    tuple of int
        Strictly increasing.
    """
    if not growth >= _SMALLEST_GROWTH:
        raise InputError(f"must be at least {_SMALLEST_GROWTH}; got {growth!r}.", argument="growth")
    if limit < first:
        raise InputError(
            f"({limit} samples per arm) lies below the first look ({first} samples): raise it, or "
            "look earlier where the metric allows it (`first_look`).",
            argument="limit",
        )
    sizes = [first]
    for end in sorted(end for end in {*ends, limit} if end <= limit):
        if end < limit and end <= LEFT_OVER * sizes[-1]:
            continue
        while sizes[-1] < end:
            sizes.append(int(min(math.ceil(sizes[-1] * growth), end)))
    return tuple(sizes)


def crossing_probability(
    critical: float, sizes: tuple[int, ...], *, sides: int = 1, order: int = 1
) -> float:
    """Probability that a standardised statistic ever reaches `critical` at one of its looks.

    Parameters
    ----------
    critical : float
        Critical value of the z-statistic, the same at all looks.
    sizes : tuple of int
        Sample sizes of the looks, increasing.
    sides : {1, 2}
        Whether crossing ``-critical`` counts too.
    order : {1, 2}
        The z-statistics have correlation ``(n_k / n_l) ** (order / 2)``, k ≤ l. 1 is that of a
        running mean. 2 is that of the second-order part of a von Mises expansion (a degenerate
        U-statistic); it is the smaller one, and the smaller the correlations, the larger the
        crossing probability (Slepian), so that it holds for any mixture of the two.

    Returns
    -------
    float

    Notes
    -----
    Both correlations make the z-statistics a Markov chain: the density of the paths that have not
    crossed is carried from look to look by quadrature (Armitage, McPherson & Rowe 1969).
    """
    from scipy.special import ndtr

    # What leaves below `low` in the one-sided case is counted as crossing: 1e-15 a look.
    low = -critical if sides == 2 else min(-8.0, critical - 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = (critical - low) / 2.0
    z = half * nodes + (critical + low) / 2.0
    weights = half * weights
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    correlations = [(n / later) ** (order / 2.0) for n, later in itertools.pairwise(sizes)]
    if not correlations:
        return 1.0 - float(ndtr(critical) - (ndtr(low) if sides == 2 else 0.0))
    for correlation in correlations[:-1]:
        # Density of the next z-statistic (rows) given the present one (columns).
        spread = math.sqrt(1.0 - correlation**2)
        step = (z[:, None] - correlation * z[None, :]) / spread
        kernel = np.exp(-0.5 * step**2) / (spread * math.sqrt(2.0 * math.pi))
        density = kernel @ (weights * density)
    # The last look is integrated in closed form.
    last = correlations[-1]
    spread = math.sqrt(1.0 - last**2)
    stay = ndtr((critical - last * z) / spread)
    if sides == 2:
        stay = stay - ndtr((low - last * z) / spread)
    return 1.0 - float(weights @ (density * stay))


@lru_cache(maxsize=256)
def critical_value(
    error: float, sizes: tuple[int, ...], *, sides: int = 1, order: int = 1
) -> float:
    """Smallest common critical value whose `crossing_probability` is `error`.

    Examples
    --------
    >>> round(critical_value(0.05, (100,)), 3)
    1.645
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    lowest = -float(ndtri(error / sides))  # one look
    if len(sizes) == 1:
        return lowest
    highest = -float(ndtri(error / (sides * len(sizes))))  # union bound
    return float(
        brentq(
            lambda c: crossing_probability(c, sizes, sides=sides, order=order) - error,
            lowest,
            highest + 1e-6,
            xtol=1e-10,
        )
    )
