"""The map of the papers is complete, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.__main__ import TRIALS, scripts
from experiments.papers.__main__ import FINDINGS, PAGE, command, outcome, page, verdicts
from experiments.papers.rows import PAPERS
from genbounds.bounds import catalog

ROOT = Path(__file__).parents[2]
ROWS = [row for rows in PAPERS.values() for row in rows]
PRINTED = {name for name in catalog() if not name.startswith("repaired.")}


@pytest.fixture(scope="module")
def found():
    return verdicts(FINDINGS.read_text(encoding="utf-8"))


def test_no_printed_statement_is_missing_and_none_is_invented():
    assert {name for row in ROWS for name in row.ids} == PRINTED


def test_every_cell_says_something(found):
    for row in ROWS:
        assert row.item
        assert row.what
        assert outcome(row, found).strip(" ;"), row
        assert command(row)


def test_files_and_commands_are_there():
    known = set(scripts())
    for row in ROWS:
        assert (ROOT / row.file).is_file(), row
        asked = command(row)
        module = re.match(r"python -m experiments\.([\w.]+)", asked)
        if module:
            assert module[1] in known, row
        else:
            assert asked.startswith("genbounds audit "), row


def test_every_command_of_the_map_has_a_trial():
    """The same module and study, at its smallest size: `make experiments` runs them every night."""
    tried = {" ".join(trial.command.split()[:2]) for trial in TRIALS}
    tried |= {word.split()[0] for word in tried}
    asked = {command(row) for row in ROWS}
    asked = {text.removeprefix("python -m ") for text in asked if text.startswith("python")}
    assert asked
    assert asked <= tried


def test_statements_are_in_the_file_that_is_named():
    for row in ROWS:
        text = (ROOT / row.file).read_text(encoding="utf-8")
        assert all(f'"{name}"' in text for name in row.ids), row


def test_items_of_a_paper_are_named_once():
    for rows in PAPERS.values():
        items = [row.item for row in rows]
        assert len(items) == len(set(items))


def test_data_that_cannot_be_had_here_are_named():
    text = page(dict.fromkeys(PRINTED, "not refuted"))
    for name in ("CIFAR-10", "ImageNet", "FFHQ", "AFHQ", "FVD", "FAD", "GPU"):
        assert name in text


def test_the_page_is_that_of_the_findings(found):
    assert PAGE.read_text(encoding="utf-8") == page(found)


def test_verdicts_are_the_computed_ones(found):
    assert {word.split(" (")[0] for word in found.values()} <= {
        "refuted",
        "vacuous",
        "not refuted",
    }
