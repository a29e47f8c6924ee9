"""The findings say what the audit found, and nothing else."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from experiments.findings.by_hand import BY_HAND
from experiments.findings.document import CONCLUSIONS, SERVES, document, width_ratio
from experiments.findings.merge import merged
from genbounds.bounds import catalog
from genbounds.report.wording import verdict_word
from genbounds.simulate import audit

BOUNDS = catalog()
NAMES = [
    "o24.gaussian-mean",
    "repaired.gaussian-mean",
    "o24.naive-mean-norm",
    "o24.hoeffding",
    "m25.visit-sum-log",
    "c20.rank-flip",
]


@pytest.fixture(scope="module")
def report():
    return audit(NAMES, replications=50)


def test_every_statement_known_to_fail_has_a_case_by_hand():
    text = (Path(__file__).parents[2] / "docs" / "evidence" / "findings.md").read_text(
        encoding="utf-8"
    )
    assert set(re.findall(r"^\| `([^`]+)` \| refuted", text, flags=re.MULTILINE)) == set(BY_HAND)


def verdicts(text):
    """The verdicts of the document's tables, by statement."""
    return dict(
        re.findall(r"^\| `([^`]+)` \| (refuted|vacuous|not refuted)", text, flags=re.MULTILINE)
    )


def test_refuted_statements_come_with_a_case_and_a_repair(report):
    text = document(report, BOUNDS, command="the command")
    assert "`the command`" in text
    found = verdicts(text)
    assert {name: found[name] for name in found if name in {row.id for row in report.rows}} == {
        row.id: verdict_word(row.verdict) for row in report.rows
    }
    order = list(found.values())[: len(report.rows)]
    assert order == sorted(order, key=["refuted", "vacuous", "not refuted"].index)
    section = text.split("### `o24.gaussian-mean`")[1].split("### ")[0]
    assert report["o24.gaussian-mean"].counterexample in section
    assert "| `repaired.gaussian-mean` | not refuted |" in section
    assert "2 (2 to 2)" in section  # the repair is twice as wide, in every cell
    assert "`o24.naive-mean-norm`" in section  # its proof uses this one


def test_the_text_follows_the_verdicts(report):
    """With the right constant the same statement is no longer among the refuted ones."""
    name = "o24.gaussian-mean"
    right = dataclasses.replace(BOUNDS[name], constants={"factor": 2.0, "union": 2.0})
    mended = audit(catalogue={name: right}, replications=100)
    text = document(mended, BOUNDS, command="the command")
    assert verdicts(text)[name] == "not refuted"
    assert f"### `{name}`" not in text


def test_statements_that_were_audited_alone_go_into_the_page_of_all():
    kept, changed = "o24.gaussian-mean", "o24.hoeffding"
    names = [kept, changed, "repaired.gaussian-mean"]
    page = document(audit(names, replications=100), BOUNDS, command="the command")
    wrong = dataclasses.replace(BOUNDS[changed], constants={"factor": 0.05})
    planted = audit(catalogue={changed: wrong}, replications=100)
    part = document(planted, BOUNDS, command="the command")
    text = merged(page, part, {changed}, "Today.")
    assert verdicts(page) == {kept: "refuted", changed: "not refuted", names[2]: "not refuted"}
    assert verdicts(text) == verdicts(page) | {changed: "refuted"}
    assert f"### `{changed}`" in text
    assert f"### `{kept}`" in text
    assert "2 statements are refuted, 0 vacuous, 1 not refuted" in text
    assert f"Since then alone: `{changed}`. Today." in text
    back = merged(text, page, set(names), "Today.")
    assert back.split("## What")[1] == page.split("## What")[1]


def test_a_statement_that_is_new_to_the_page_stands_with_its_verdict():
    first = document(audit(["o24.gaussian-mean"], replications=100), BOUNDS, command="c")
    new = document(audit(["o24.squared-mean"], replications=100), BOUNDS, command="c")
    text = merged(first, new, {"o24.squared-mean"}, "Today.")
    assert list(verdicts(text)) == ["o24.gaussian-mean", "o24.squared-mean"]
    assert "an audit of 2 statements" in text


def test_ratio_of_widths(report):
    printed, repair = report["o24.gaussian-mean"], report["repaired.gaussian-mean"]
    assert width_ratio(repair, printed) == pytest.approx((2.0, 2.0, 2.0))
    assert width_ratio(repair, report["c20.rank-flip"]) is None


def test_the_document_in_the_repository_is_that_of_the_catalogue():
    """It names every statement; a statement added later asks for the command to be run again."""
    text = (Path(__file__).parents[2] / "docs" / "evidence" / "findings.md").read_text(
        encoding="utf-8"
    )
    table = text.split("## All verdicts, worst first")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)) == set(BOUNDS)
    for name in BOUNDS:
        heading = f"### `{name}`" in text
        assert heading == (f"| `{name}` | refuted" in table)


@pytest.mark.parametrize("name", BY_HAND)
def test_every_case_by_hand_refutes(name):
    """Plain arithmetic, beside the audit: more is missed than allowed."""
    missed, allowed = BY_HAND[name]()
    assert missed > allowed
    assert missed <= 1.0 or BOUNDS[name].form == "deterministic"  # there: the two sides


@pytest.mark.parametrize(
    "name",
    [
        "o24.chi-square-mean",
        "o24.product-of-means",
        pytest.param("o24.covariance-dimension", marks=pytest.mark.slow),
        pytest.param("m25.mean-norm", marks=pytest.mark.slow),
    ],
)
def test_cases_by_hand_agree_with_exact_tails(name):
    missed, allowed = BY_HAND[name]()
    row = audit([name], replications=20)[name]
    wanted = pytest.approx(allowed, rel=1e-9, abs=0.0)
    claims = [cell for cell in row.results if cell.claimed == wanted]
    assert any(cell.miss == pytest.approx(missed, rel=1e-4, abs=0.0) for cell in claims)


def test_the_repository_s_findings_can_be_run():
    """Every refuted statement comes with code that a reader can paste; it says what is printed."""
    text = (Path(__file__).parents[2] / "docs" / "evidence" / "findings.md").read_text(
        encoding="utf-8"
    )
    sections = text.split("## Refuted statements and their repairs")[1].split("\n## ")[0]
    for section in sections.split("### ")[1:]:
        name = section.split("`")[1]
        code = section.split("```python\n")[1].split("```")[0]
        places = {}
        exec(code.rsplit("print(", 1)[0], places)
        printed = [float(part) for part in code.rsplit("# ", 1)[1].split(",")]
        names = ("left", "right") if "left, right" in code else ("missed", "allowed")
        assert [places[key] for key in names] == pytest.approx(printed, rel=1e-5, abs=0.0), name
        assert places[names[0]] > places[names[1]], name
        assert re.search(r"^\| repair \|.*\n.*\n\| `", section, flags=re.MULTILINE), name


@pytest.mark.slow
def test_conclusions_say_what_survives():
    """Each theorem's row names the repair in its place, where there is one."""
    names = ["m25.mean-norm", "m25.fd-bonus", "o24.fd-bonus", "repaired.fd-bonus", "m25.fd-ucb*"]
    text = document(audit(names, replications=60), BOUNDS, command="the command")
    table = text.split("## Which conclusions survive")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ") and "`" in line]
    rows = {line.split("`")[1]: line for line in lines}
    assert "`m25.mean-norm`" in rows["m25.fd-bonus"]
    assert "`repaired.fd-bonus`" in rows["o24.fd-bonus"]
    assert "1e-20" in rows["o24.fd-bonus"]
    assert "m25.fd-ucb-regret" in rows


def test_conclusions_speak_of_statements_of_the_catalogue():
    named = {name for names in CONCLUSIONS.values() for name in names} | set(SERVES)
    assert named | {name for served in SERVES.values() for name in served} <= set(BOUNDS)
