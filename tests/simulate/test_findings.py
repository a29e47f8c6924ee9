"""The findings say what the audit found, and nothing else."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from experiments.findings.document import document, width_ratio
from genbounds.bounds import catalog
from genbounds.simulate import audit

BOUNDS = catalog()
NAMES = [
    "o24.gaussian-mean",
    "repaired.gaussian-mean*",
    "o24.naive-mean-norm",
    "o24.hoeffding",
    "m25.empirical-bernstein",
    "m25.visit-sum-log",
    "repaired.visit-sum-log",
    "c20.rank-flip",
]


@pytest.fixture(scope="module")
def report():
    return audit(NAMES, replications=100)


def test_refuted_statements_come_with_a_case_and_a_repair(report):
    text = document(report, BOUNDS, command="the command")
    assert "Made by `the command`" in text
    assert "3 statements are refuted, 0 vacuous, 7 upheld" in text
    order = re.findall(r"^\| `([^`]+)` \| (refuted|vacuous|upheld)", text, flags=re.MULTILINE)
    verdicts = [verdict for _, verdict in order[: len(report.rows)]]
    assert verdicts == sorted(verdicts, key=["refuted", "vacuous", "upheld"].index)
    section = text.split("### `o24.gaussian-mean`")[1].split("### ")[0]
    assert report["o24.gaussian-mean"].counterexample in section
    assert "`repaired.gaussian-mean` | upheld" in section
    assert "2 (2 to 2)" in section  # the repair is twice as wide, in every cell
    assert "another quantity" in section  # the time-uniform one
    assert "`o24.naive-mean-norm` is refuted" in section
    assert "printed ε² over this: 1/4" in section
    assert "norms of clip high r" in text.split("## The papers' own embeddings")[1]
    assert "both deterministic" in text


def test_the_text_follows_the_verdicts(report):
    """With the right constant the same statement is no longer among the refuted ones."""
    name = "o24.gaussian-mean"
    right = dataclasses.replace(BOUNDS[name], constants={"factor": 2.0, "union": 2.0})
    mended = audit(catalogue={name: right}, replications=100)
    text = document(mended, BOUNDS, command="the command")
    assert "0 statements are refuted, 0 vacuous, 1 upheld" in text
    assert f"### `{name}`" not in text


def test_ratio_of_widths(report):
    printed, repair = report["o24.gaussian-mean"], report["repaired.gaussian-mean"]
    assert width_ratio(repair, printed) == pytest.approx((2.0, 2.0, 2.0))
    assert width_ratio(repair, report["c20.rank-flip"]) is None


def test_the_document_in_the_repository_is_that_of_the_catalogue():
    """It names every statement; a statement added later asks for the command to be run again."""
    text = (Path(__file__).parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
    table = text.split("## All verdicts, worst first")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)) == set(BOUNDS)
    for name in BOUNDS:
        heading = f"### `{name}`" in text
        assert heading == (f"| `{name}` | refuted" in table)
