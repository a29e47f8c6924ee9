"""How far numbers moved."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("golden.json")


def deviation(found: list[Any], kept: list[Any]) -> float:
    """Largest relative deviation of two lists; infinite where they are not of one kind."""
    if len(found) != len(kept):
        return math.inf
    return max((_apart(a, b) for a, b in zip(found, kept, strict=True)), default=0.0)


def _apart(a: Any, b: Any) -> float:
    numeric = isinstance(a, float) or isinstance(b, float)
    if not numeric or a is None or b is None:
        return 0.0 if a == b else math.inf
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / max(abs(a), abs(b))
