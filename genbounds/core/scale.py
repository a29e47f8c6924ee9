"""Features of extreme size: computed at an ordinary size, and the result scaled back.

A distance is a power of lengths, its variance twice that power, and the components of its error
higher ones: they leave double precision long before the distance does. Division by a power of two
changes no bit of a feature (but for subnormal ones), so that the result is that of the features as
they are. Only where a call begins and where its result leaves is there anything to do.
"""

from __future__ import annotations

import math
from dataclasses import replace

from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.validation import InputError

REPRESENTABLE = 96.0
"""Decades by which a score may be scaled: third cumulants of it still fit double precision."""


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
    """Return ``unit**power`` for a power of two, by which a score is to be multiplied.

    Raises
    ------
    InputError
        If the square and the cube of it leave double precision.
    """
    if abs(power * math.log10(unit)) > REPRESENTABLE:
        raise InputError(
            f"the features are of the order of {unit:.1g}, and the error of their score is beyond "
            "double precision: multiply the features of both samples by a common number."
        )
    return power_of(unit, power)


def power_of(unit: float, power: int) -> float:
    """Return ``unit**power`` for a power of two; 0 where that underflows."""
    return math.ldexp(1.0, power * (math.frexp(unit)[1] - 1))


def scaled_back(estimate: Estimate, unit: float, *, power: int) -> Estimate:
    """Return the estimate for the features as they were before they were divided by `unit`.

    Parameters
    ----------
    estimate : Estimate
        Of a statistic that is multiplied by ``c**power`` where features are multiplied by c.
    unit : float
        A power of two.
    power : int

    Raises
    ------
    InputError
        As `factor_of`.
    """
    if unit == 1.0:
        return estimate
    note = warn_of("extreme-scale", unit=unit)
    others = tuple(
        one for one in estimate.warnings if one.code != note.code or one.severity == "unreliable"
    )  # a caution is said once
    return replace(estimate.scaled(factor_of(unit, power)), warnings=(*others, note))
