"""Every rule of the table of warnings is used, with the facts that it names; every code has one."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

import genbounds
from genbounds.diagnostics import CODES, RULES, warn_of

LIBRARY = Path(genbounds.__file__).parent


def uses():
    """Yield the rule and the facts of every warning in the library, and where it is given."""
    for path in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn_of":
                rules = [n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)]
                facts = {word.arg for word in node.keywords}
                yield from ((rule, facts, f"{path.name}:{node.lineno}") for rule in rules)


def facts_of(rule):
    texts = (RULES[rule].message, RULES[rule].remedy)
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_warning_gives_the_facts_that_its_rule_names():
    for rule, facts, where in uses():
        assert facts - {"severity"} == facts_of(rule), where
        assert ("severity" in facts) == (RULES[rule].severity is None), where


def test_every_rule_is_used_and_every_code_has_a_rule():
    assert {rule for rule, _, _ in uses()} == set(RULES)
    assert {rule.code for rule in RULES.values()} == set(CODES)


def test_a_fact_that_is_missing_is_an_error():
    with pytest.raises(KeyError):
        warn_of("few-groups", units=3.0)
