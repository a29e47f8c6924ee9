"""What a result warns of, by the codes of `genbounds.results`: tests never read the messages."""

from __future__ import annotations

from typing import Any

from genbounds.results import Diagnostic


def codes(result: Any, severity: str | None = None) -> set[str]:
    """Return the codes of a result's warnings, all or those of one severity."""
    return {w.code for w in result.warnings if severity in (None, w.severity)}


def caution(code: Any, message: str, remedy: str = "") -> Diagnostic:
    """Return a warning of the test's own."""
    return Diagnostic(code=code, severity="caution", message=message, remedy=remedy)


def unreliable(code: Any, message: str, remedy: str = "") -> Diagnostic:
    """Return a warning of the test's own."""
    return Diagnostic(code=code, severity="unreliable", message=message, remedy=remedy)
