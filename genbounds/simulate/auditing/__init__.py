"""The audit of the catalogue: scenarios, searches, exact checks, fits, and verdicts from them."""

from __future__ import annotations

from genbounds.simulate.auditing._audit import audit
from genbounds.simulate.auditing._results import AuditReport, AuditRow, CellResult

__all__ = ["AuditReport", "AuditRow", "CellResult", "audit"]
