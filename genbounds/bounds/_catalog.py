"""The catalogue: every statement by its id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from genbounds.bounds import _c20, _m25, _o24, _repaired, _v24
from genbounds.bounds._bound import Bound, Quantity

_SOURCES = (_o24, _m25, _v24, _c20, _repaired)


@cache
def catalog() -> Mapping[str, Bound]:
    """List every statement of the catalogue.

    Returns
    -------
    Mapping of str to Bound
        Read-only, printed statements first (``o24.``, ``m25.``, ``v24.``, ``c20.``), then those
        that hold in their place (``repaired.``).
    """
    bounds = [bound for source in _SOURCES for bound in source.STATEMENTS]
    return MappingProxyType({bound.id: bound for bound in bounds})


def borrows_name(quantity: Quantity) -> bool:
    """Whether the catalogue has this name for other quantities only: what it knows is of those."""
    namesakes = [bound.quantity for bound in catalog().values()]
    namesakes = [own for own in namesakes if own.name == quantity.name]
    return bool(namesakes) and quantity not in namesakes
