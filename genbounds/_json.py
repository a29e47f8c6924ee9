"""Results as plain JSON types: what each of them tells, by the names of its attributes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np


class AsJson:
    """What turns a result into plain JSON types."""

    __slots__ = ()
    _json: ClassVar[str] = "*"
    """Names of what is told: attributes, ``key=attribute``, ``*`` for all fields, ``-name`` for all
    but one of them."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; a float that JSON cannot hold (infinity, NaN) becomes None."""
        names: list[str] = []
        for name in self._json.split():
            if name == "*":
                names += [field.name for field in fields(self)]  # type: ignore[arg-type]
            elif name[0] == "-":
                names.remove(name[1:])
            else:
                names.append(name)
        told = (name.partition("=") for name in names)
        return {key: as_json(getattr(self, attribute or key)) for key, _, attribute in told}


def as_json(value: Any) -> Any:
    """Return a value, and all that it holds, as plain JSON types."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, (np.generic, np.ndarray)):
        return as_json(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    return [as_json(each) for each in value]
