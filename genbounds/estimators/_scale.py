"""Features of extreme size: computed at an ordinary size, and the result taken back.

A distance is a power of lengths, its variance twice that power, and terms of its error higher ones:
all of them leave double precision long before the distance does. Division by a power of two
changes no bit of a feature (but for subnormal ones), so that the result is that of the features as
they are.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from genbounds.estimators._expansion import OUT_OF_RANGE, Expansion, times_unit
from genbounds.validation import InputError

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


def unit_of(size: float, *, decades: float) -> float:
    """Return 1 for features of an ordinary size, else the power of two next to `size`.

    Parameters
    ----------
    size : float
        Finite; 0 where all is constant.
    decades : float
        How far an ordinary size may be from 1.
    """
    if size == 0.0 or abs(math.log10(size)) <= decades:
        return 1.0
    return math.ldexp(1.0, max(math.frexp(size)[1], -1021))


def factor_of(unit: float, power: int) -> float:
    """Return ``unit**power`` for a power of two, refusing what leaves double precision.

    Raises
    ------
    InputError
        If it is beyond 1.8e308.
    """
    exponent = power * (math.frexp(unit)[1] - 1)
    if exponent >= 1024:
        raise InputError(OUT_OF_RANGE)
    return math.ldexp(1.0, exponent)


def taken_back(expansion: Expansion, unit: float, *, power: int) -> Expansion:
    """Return an expansion of features that were divided by `unit`, in the units of the features.

    Parameters
    ----------
    expansion : Expansion
        Of a statistic that is multiplied by ``c**power`` where features are multiplied by c.
    unit : float
        A power of two.
    power : int
        Of the unit.

    Raises
    ------
    InputError
        If the score of the features as they are is beyond double precision.
    """
    if unit == 1.0:
        return expansion
    factor = factor_of(unit, power)
    notes: tuple[str, ...] = (
        f"features of extreme size: computed for features divided by {unit:.4g}, to which "
        "amounts in other notes belong",
    )
    if abs(times_unit(expansion.value, factor)) < SMALLEST_NORMAL and expansion.value != 0.0:
        notes += (
            "unreliable: the score is below the smallest numbers of double precision (2e-308), "
            "which have lost digits or are 0",
        )
    return replace(expansion, unit=factor, notes=expansion.notes + notes)
