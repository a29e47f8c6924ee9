"""When a running comparison may be believed: planned looks and their common critical value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from genbounds.validation import Float, InputError

#: Nodes of the Gauss-Legendre rule; 96 agree with 300 to 1e-9 for growth factors down to 1.1.
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
        density = _transition(z, correlation) @ (weights * density)
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


def _transition(z: Float, correlation: float) -> Float:
    """Density of the next z-statistic (rows) given the present one (columns)."""
    spread = math.sqrt(1.0 - correlation**2)
    step = (z[:, None] - correlation * z[None, :]) / spread
    kernel: Float = np.exp(-0.5 * step**2) / (spread * math.sqrt(2.0 * math.pi))
    return kernel
