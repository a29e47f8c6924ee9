"""What the terminal and the page both say about audits and selections, said once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genbounds._text import interval, number, short, shown


def verdict_word(verdict: str) -> str:
    """Return what people read for a `verdict` of the audit: what survived is not proven by that."""
    return "not refuted" if verdict == "upheld" else verdict


USUAL_DELTA = 0.05
"""A statement that fails only at smaller failure probabilities says so at first sight."""


def verdict_text(verdict: str, refuted_from: float | None) -> str:
    """Return the word for a verdict, and the failure probabilities to which it is limited.

    Parameters
    ----------
    verdict : str
        Of the audit.
    refuted_from : float or None
        Largest failure probability at which it is refuted.
    """
    if verdict == "refuted" and refuted_from is not None and refuted_from < USUAL_DELTA:
        return f"refuted (only at δ ≤ {refuted_from:g})"
    return verdict_word(verdict)


STOPPED = {
    "certified": "the certificate was reached",
    "budget": "the budget is spent",
    "limit": "the arms have given as many samples as they may",
    "reference": "the reference sample is too small to separate the leading models",
    "exhausted": "an arm has no more samples to give",
    "no rival": "fewer than two arms are left",
}
"""Why a selection ended, as a sentence says it."""


def stop_reason(stopped: str) -> str:
    """Say why a selection ended; a word that is not known stays as it is."""
    return STOPPED.get(stopped, shown(stopped))


def rate(miss: float, low: float, high: float) -> str:
    """Format the measured rate `miss` with its interval (`low`, `high`); if exact, without."""
    return f"{number(miss)} (exact)" if low == high else f"{number(miss)} {interval(low, high)}"


def measured_lines(row: Mapping[str, Any]) -> list[str]:
    """Return what an audit measured about one statement.

    Parameters
    ----------
    row : mapping
        The statement's row of an audit, as ``genbounds audit --json`` prints it.
    """
    worst = row["worst"]
    size = "" if worst["n"] is None else f"n = {number(worst['n'])}, "
    case = f"{worst['arm']}, {size}d = {number(worst['d'])}"
    if worst["delta"] is None:
        lines = [f"Searched for inputs that violate it; worst: {case}."]
    else:
        lines = [
            f"Worst case: {case}.",
            f"At δ = {short(worst['delta'])} it fails at a rate of "
            f"{rate(worst['miss'], worst['miss_low'], worst['miss_high'])}; allowed: "
            f"{short(worst['claimed'])}.",
        ]
    if row["tightness"] is not None and row["verdict"] != "refuted":
        lines.append(f"Width over what would do, median: {number(row['tightness'])}.")
    return lines
