"""Formulas, drawn without a network."""

from __future__ import annotations

import io
import re
from typing import Any

from genbounds.report._canvas import COLOUR, drawing_style, inline


def formula(latex: str) -> str | None:
    """Draw a formula as inline SVG in the page's colour; None if matplotlib cannot read it."""
    from matplotlib.figure import Figure as Drawing

    style: dict[Any, Any] = {
        "svg.fonttype": "path",
        "svg.hashsalt": "genbounds",
        "mathtext.fontset": "stix",
    }
    buffer = io.StringIO()
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    try:
        with drawing_style(style):
            drawing = Drawing(figsize=(1, 1), dpi=72)
            drawing.text(0, 0, f"${_mathtext(latex)}$", fontsize=17, color=COLOUR["ink"])
            drawing.savefig(
                buffer,
                format="svg",
                metadata=empty,
                bbox_inches="tight",
                pad_inches=0.03,
                transparent=True,
            )
    except ValueError:  # mathtext knows a part of LaTeX
        return None
    return inline(buffer.getvalue(), keep_size=True)


# What the catalogue uses of LaTeX beyond mathtext, in mathtext's words.
_TOKEN = r"\s*(\\[A-Za-z]+|[^\s{}\\\[])"
_GROUP = r"\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[A-Za-z]+|[^\s{}\\])"
_FRACTION = re.compile(rf"\\[td]frac{_GROUP}{_GROUP}")
_WORDS = re.compile(r"\\text\{([^{}]*)\}")
_TRANSLATIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"\\(sqrt|mathcal|mathbb|hat|tilde|bar){_TOKEN}", r"\\\1{\2}"),
        (r"\\[Bb]igg?l(?![A-Za-z])", r"\\left"),
        (r"\\[Bb]igg?r(?![A-Za-z])", r"\\right"),
        (r"\\le(?![A-Za-z])", r"\\leq "),
        (r"\\ge(?![A-Za-z])", r"\\geq "),
    )
)


def _mathtext(latex: str) -> str:
    latex = _WORDS.sub(lambda found: r"\mathrm{" + found[1].replace(" ", r"\ ") + "}", latex)
    for pattern, replacement in _TRANSLATIONS:
        latex = pattern.sub(replacement, latex)
    found = 1
    while found:  # a fraction may hold another
        latex, found = _FRACTION.subn(r"\\frac{\1}{\2}", latex)
    return latex
