"""The audit of the catalogue: scenarios, searches, exact checks, fits, and verdicts from them."""

from genbounds.simulate.auditing._audit import audit as audit
from genbounds.simulate.auditing._results import AuditReport as AuditReport
from genbounds.simulate.auditing._results import AuditRow as AuditRow
from genbounds.simulate.auditing._results import CellResult as CellResult
