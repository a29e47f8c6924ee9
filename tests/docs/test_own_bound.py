"""The table of docs/own_bound.md: a statement may take what it lists for its setting."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb

pytest.importorskip("sympy")
pytest.importorskip("hypothesis")

PAGE = Path(__file__).parents[2] / "docs" / "own_bound.md"


def listed() -> list[tuple[str, list[str], list[str]]]:
    """Return (setting, true quantities, sample quantities) for each setting of the table."""
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            cells = [re.findall(r"`([a-z_-]+)`", cell) for cell in line.strip("|").split("|")]
            rows += [(setting, cells[2], cells[3]) for setting in cells[0] if cells[2]]
    return rows


def zero_of(names: list[str]):
    """Return a function that takes the quantities `names` and returns 0 for each sample."""

    def zero(**quantities):
        assert quantities.keys() == set(names)
        return 0.0 * np.ravel(np.asarray(quantities[names[0]], dtype=float))[0]

    keyword = inspect.Parameter.KEYWORD_ONLY
    zero.__signature__ = inspect.Signature([inspect.Parameter(name, keyword) for name in names])
    return zero


@pytest.mark.parametrize(("setting", "facts", "drawn"), listed(), ids=lambda cell: str(cell)[:20])
def test_a_statement_may_take_each_quantity(setting, facts, drawn):
    """The audit finds them in every distribution of the setting; none may be missing."""
    bound = gb.bounds.Bound(
        id="me.any",
        claim="0 ≤ 1",
        latex="0 \\le 1",
        source="none",
        setting=setting,
        assumptions=(gb.bounds.Assumption(text="n ≥ 2", predicate=lambda f, n, d: n >= 2),),
        quantity=gb.bounds.Quantity(name="nothing", text="0", function=zero_of([*facts, *drawn])),
        constants={},
        width_function=lambda constants: 1.0,
    )
    row = gb.simulate.audit(catalogue={"me.any": bound}, replications=2)["me.any"]
    assert row.verdict in ("upheld", "vacuous")


def test_a_report_is_printed_as_its_findings():
    """Refuted statements first; an inequality without probability has no width to compare."""
    names = ["o24.hoeffding", "o24.visit-sum-log"]
    first, case, fails, then, fit = str(gb.simulate.audit(names, replications=60)).splitlines()
    assert first == "o24.visit-sum-log: refuted"
    assert case.startswith("  picks = [1]")
    assert fails == "  fails in 4 of 4 cases"
    assert then == "o24.hoeffding: not refuted"
    assert fit.startswith("  fails in 0 of 432 cases; width over what would do: median 4.")


def test_the_table_is_read():
    assert len(listed()) >= 12
