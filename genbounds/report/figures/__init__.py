"""Pictures of results. Every function is pure: results in, `Figure` out, equal for equal input."""

from genbounds.report.figures._formula import formula as formula
