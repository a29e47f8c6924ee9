"""What a result warns of, by the codes of `genbounds.results`: tests never read the messages."""

from __future__ import annotations

from typing import Any


def codes(result: Any, severity: str | None = None) -> set[str]:
    """Return the codes of a result's warnings, all or those of one severity."""
    return {w.code for w in result.warnings if severity in (None, w.severity)}
