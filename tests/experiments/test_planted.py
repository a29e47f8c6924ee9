"""The audit sees errors that are planted on purpose; the page lists every statement and study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.planted.studies import plants
from experiments.planted.widths import judge, seen_from, without_terms
from genbounds.bounds import catalog

BOUNDS = catalog()
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "planted.md"
CHEAP = (
    "c20.fid-bias",
    "c20.fid-variance",
    "c20.rank-flip",
    "c20.sobol",
    "c20.sobol-rate",
    "v24.nystrom-product",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [plant for plant in plants() if plant.id in CHEAP and plant.replications < 5000],
    ids=lambda plant: f"{plant.id} {plant.what}",
)
def test_an_error_in_a_study_turns_its_verdict(plant):
    assert (plant.row().verdict == "refuted") == plant.seen


def test_patches_leave_nothing_behind():
    plant = next(plant for plant in plants() if plant.id == "c20.rank-flip")
    (name,) = plant.patches
    from genbounds.simulate.auditing import _rates

    before = getattr(_rates, name)
    with plant.planted():
        assert getattr(_rates, name) is not before
    assert getattr(_rates, name) is before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "factor", "by"),
    [
        ("o24.gaussian-mean", 1.5, "exact tail"),  # twice its width is right, 1.5 is not
        ("repaired.gaussian-mean-exact", 0.95, "exact tail"),
        ("repaired.visit-sum-log", 0.95, "search"),
        ("v24.vector-bernstein", 0.3, "samples"),
    ],
)
def test_a_width_too_narrow_is_seen_from_the_factor_that_theory_gives(name, factor, by):
    found, how = seen_from(BOUNDS[name], judge(BOUNDS[name], 400, 0))
    assert found == factor
    assert by in how


def test_leaving_out_a_term_leaves_the_rest():
    found = without_terms(BOUNDS["o24.bennett"])
    assert found.keys() == {"root", "linear"}
    assert dict(found["root"].constants) == {"root": 0.0, "linear": 1.0 / 3.0}


def test_the_page_has_every_statement_and_every_planted_error():
    text = PAGE.read_text(encoding="utf-8")
    tables = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    listed = set(re.findall(r"`([^`]+)`", tables))
    assert listed == set(BOUNDS)
    for plant in plants():
        line = next(line for line in text.splitlines() if f"`{plant.id}` | {plant.what} |" in line)
        assert line.endswith("| refuted |") == plant.seen, line
