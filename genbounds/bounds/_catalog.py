"""The catalogue: every statement by its id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from genbounds.bounds import (
    _deterministic,
    _frechet,
    _inception,
    _matrices,
    _plugin,
    _quasi,
    _rates,
    _repaired,
    _scalars,
    _sharper,
    _steps,
    _vectors,
    _vendi,
)
from genbounds.bounds._bound import Bound

_TOPICS = (
    _scalars,
    _vectors,
    _matrices,
    _deterministic,
    _frechet,
    _plugin,
    _inception,
    _vendi,
    _steps,
    _quasi,
    _rates,
    _repaired,
    _sharper,
)


@cache
def catalog() -> Mapping[str, Bound]:
    """List every statement of the catalogue.

    Returns
    -------
    Mapping of str to Bound
        Read-only, printed statements first (``o24.``, ``m25.``, ``v24.``, ``c20.``), then those
        that hold in their place (``repaired.``).
    """
    bounds = [bound for topic in _TOPICS for bound in topic.STATEMENTS]
    return MappingProxyType({bound.id: bound for bound in bounds})
