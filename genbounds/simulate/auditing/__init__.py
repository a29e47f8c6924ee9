"""The audit of the catalogue: scenarios, searches, exact checks, fits, and verdicts from them."""
