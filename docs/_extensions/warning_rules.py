"""The directive `warning-rules`: the table of every warning, made from `genbounds.diagnostics`."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from genbounds.diagnostics import RULES, Rule


def shown(text: str) -> str:
    """Return a message with its facts in italics, as a cell of a Markdown table."""
    return re.sub(r"\{(\w+)[^}]*\}", r"*\1*", text).replace("|", "\\|").replace("<", "&lt;")


def lines_of(rules: dict[str, Rule]) -> list[str]:
    """Return the lines of a Markdown table of these rules."""
    head = ["| code | severity | what was seen | what to do |", "|---|---|---|---|"]
    return head + [
        f"| `{rule.code}` | {rule.severity or 'by the facts'} | {shown(rule.message)} "
        f"| {shown(rule.remedy)} |"
        for rule in rules.values()
    ]


class WarningRules(SphinxDirective):
    """The table of all rules."""

    def run(self) -> list[nodes.Node]:
        """Return its nodes."""
        box = nodes.container()
        self.state.nested_parse(StringList(lines_of(RULES), "diagnostics.py"), 0, box)
        return box.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("warning-rules", WarningRules)
    return {"parallel_read_safe": True}
