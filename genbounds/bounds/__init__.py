"""Every concentration inequality as an object: claim, assumptions, source, constants, width."""

from __future__ import annotations

from genbounds.bounds._bound import Assumption, Bound, Facts, Quantity
from genbounds.bounds._catalog import catalog
from genbounds.bounds._exact import ExactSides, exact_sides
from genbounds.bounds._inequalities import clip, entropy_sum, truncate
from genbounds.bounds._tails import (
    normal_product_tail,
    weighted_chi_square_quantile,
    weighted_chi_square_tail,
)

__all__ = [
    "Assumption",
    "Bound",
    "ExactSides",
    "Facts",
    "Quantity",
    "catalog",
    "clip",
    "entropy_sum",
    "exact_sides",
    "normal_product_tail",
    "truncate",
    "weighted_chi_square_quantile",
    "weighted_chi_square_tail",
]
