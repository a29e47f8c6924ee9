"""Formulas as MathML, made when the page is built: no script, no font, no network to read them."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_log = logging.getLogger(__name__)
# What the converter passes on as text is what it did not understand.
_LEFT_OVER = re.compile(r"\\[A-Za-z]+|<mi>(?:&amp;|&)</mi>")
_BARE = re.compile(r"\\d?t?binom\s*[^{\s]")  # \binom n2 takes what follows for its argument


def mathml(latex: str, *, display: str) -> str:
    """Convert a formula; ValueError if any part of it would be shown as it was typed."""
    if _BARE.search(latex):
        raise ValueError(r"write \binom{n}{k} with braces")
    try:
        converted = convert(latex, display=display)
    except Exception as error:  # the converter has no common base of its errors
        raise ValueError(f"{type(error).__name__} {error}") from error
    if unknown := _LEFT_OVER.findall(converted):
        raise ValueError(f"not understood: {' '.join(unknown)}")
    return converted


def _visit(self: HTML5Translator, node: nodes.Element, display: str) -> None:
    latex = node.astext()
    try:
        self.body.append(mathml(latex, display=display))
    except ValueError as error:
        _log.warning("formula %r: %s", latex, error, location=node)
        self.body.append(f"<code>{self.encode(latex)}</code>")
    raise nodes.SkipNode


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    _visit(self, node, "inline")


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append('<div class="formula" tabindex="0">')
    try:
        _visit(self, node, "block")
    finally:
        self.body.append("</div>")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer as `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
