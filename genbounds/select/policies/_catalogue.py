"""Bonuses of the published policies, read from the catalogue of bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from genbounds.bounds import Bound, catalog

CONSTANTS = ("practical", "printed")

EXPONENTS = ("mean_power",)
"""Constants that are exponents: the practical form leaves them as they are."""


@lru_cache
def statement(name: str, *, practical: bool = False) -> Bound:
    """Return a bound of the catalogue: as printed, or with every constant factor replaced by one.

    The authors' published programs compute the second, "practical" form. A factor that is zero as
    printed stays zero.
    """
    bound = catalog()[name]
    if not practical:
        return bound
    ones = {
        constant: value if constant in EXPONENTS or value == 0.0 else 1.0
        for constant, value in bound.constants.items()
    }
    return replace(bound, constants=ones)


@lru_cache
def mean_part(bonus: str, mean: str, *, practical: bool = False) -> Bound:
    """Return the bound `mean` on ‖μ - μ̂‖ with the constants that it has inside of `bonus`."""
    constants = {
        name.removeprefix("mean_"): value
        for name, value in statement(bonus, practical=practical).constants.items()
        if name.startswith("mean_")
    }
    return replace(catalog()[mean], constants=constants)
