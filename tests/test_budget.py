"""The library stays within its budget: `tests/budget.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests import budget

BUDGET = tomllib.loads(Path(__file__).with_name("budget.toml").read_text(encoding="utf-8"))


pytestmark = pytest.mark.xdist_group("budget")  # one process counts


@pytest.fixture(scope="module")
def sizes():
    return budget.sizes()


def test_sizes_are_within_the_budget(sizes):
    """Too large? Delete first; a raise says why in the same commit."""
    assert sizes.keys() == BUDGET["size"].keys()
    assert {k: v for k, v in sizes.items() if v > BUDGET["size"][k]} == {}


def test_trips_are_within_the_budget(tmp_path):
    found = budget.trips(tmp_path)
    assert found.keys() == BUDGET["trips"].keys()
    for name, figures in found.items():
        limits = BUDGET["trips"][name]
        assert {k: v for k, v in figures.items() if v > limits[k]} == {}, name


def test_a_budget_is_no_wish(sizes):
    """A limit far above what is there would hold nothing: at most a twentieth."""
    assert {k: v for k, v in BUDGET["size"].items() if v > 1.05 * sizes[k] + 5} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1\n", 1),
        ('"""About."""\n\n\nx = (\n    1,  # one\n)\n# a comment\n', 3),
        ('def f():\n    """About."""\n    return """not\n    about"""\n', 3),
    ],
)
def test_code_lines(text, lines):
    assert len(budget.code_lines(text)) == lines
