"""`genbounds audit` and `genbounds bounds`."""

from __future__ import annotations

import pytest

from genbounds.bounds import catalog
from genbounds.validation import InputError


def test_list(run):
    result = run("bounds")
    assert result.code == 0
    for name in catalog():
        assert name in result.out
    document = run("bounds", "--json").json
    assert [entry["id"] for entry in document["bounds"]] == list(catalog())
    assert {"id", "claim", "latex", "source", "form", "assumptions"} <= document["bounds"][0].keys()


@pytest.mark.slow
def test_explain(run):
    result = run("bounds", "o24.gaussian-mean")
    bound = catalog()["o24.gaussian-mean"]
    assert result.code == 0
    document = run("bounds", "o24.gaussian-mean", "--json").json
    assert document["verdict"] == "refuted"
    for text in (bound.claim, bound.latex, bound.source, "refuted", document["counterexample"]):
        assert text in result.out


def test_explain_keeps_a_page(run, tmp_path):
    assert run("bounds", "o24.gaussian-mean", "--out", tmp_path).code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "refuted" in page
    assert page.count("<svg") >= 3  # the formula, and a figure in two sizes


@pytest.mark.nightly
def test_explain_shows_every_failure_probability(run):
    shown = run("bounds", "o24.covariance-dimension").out
    assert "10⁻²⁰" in shown
    assert shown.count("δ: ") == 1
    cells = run("bounds", "o24.covariance-dimension", "--json").json["by_delta"]
    assert [cell["delta"] for cell in cells if cell["refutes"]] == [1e-6, 1e-8, 1e-12, 1e-20]
    assert cells[0]["delta"] == 0.2
    assert run("bounds", "m25.visit-sum-log", "--json").json["by_delta"] == []


def test_what_survives_is_not_called_proven(run):
    """The JSON word stays; people read what it means."""
    call = ("audit", "o24.hoeffding", "--replications", "100")
    assert run(*call, "--json").json["rows"][0]["verdict"] == "upheld"
    text = run(*call).out
    assert "not refuted" in text
    assert "upheld" not in text


def test_audit(run):
    command = ["audit", "o24.gaussian-mean", "o24.hoe*", "--replications", "200"]
    result = run(*command, "--json")
    assert result.code == 0
    assert result.err == ""
    rows = {row["id"]: row for row in result.json["rows"]}
    assert rows.keys() == {"o24.gaussian-mean", "o24.hoeffding"}
    assert rows["o24.gaussian-mean"]["verdict"] == "refuted"
    assert rows["o24.hoeffding"]["verdict"] == "upheld"
    for row in rows.values():
        assert {
            "id", "source", "verdict", "form", "cells", "worst", "tightness", "counterexample",
        } <= row.keys()  # fmt: skip
        assert {"arm", "n", "d", "delta", "miss", "miss_low", "miss_high"} <= row["worst"].keys()
    assert result.json["seed"] == 0
    assert isinstance(result.json["version"], str)


def test_audit_options_change_something(run):
    command = ["audit", "o24.squared-mean", "--replications", "200", "--json"]
    plain = run(*command).json
    assert run(*command, "--seed", "1").json["rows"] != plain["rows"]
    assert (
        run("audit", "o24.squared-mean", "--replications", "300", "--json").json["rows"]
        != plain["rows"]
    )
    assert run(*command, "--jobs", "1", "--backend", "loky").json == plain


def test_audit_text_shows_the_counterexample(run):
    result = run("audit", "o24.gaussian-mean", "--quick")
    document = run("audit", "o24.gaussian-mean", "--quick", "--json").json
    assert document["rows"][0]["counterexample"] in result.out
    assert "(exact)" in result.out


@pytest.mark.parametrize(
    ("pattern", "scheduler", "jobs"),
    [("o24.hoeffding", None, 1), ("*", None, 3), ("*", "tcp://here:1", 1)],
)
def test_the_whole_catalogue_takes_every_core(run, monkeypatch, pattern, scheduler, jobs):
    asked = {}

    def refuse(ids, **options):
        asked.update(options)
        raise InputError("seen enough.")

    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    monkeypatch.setattr("genbounds.simulate.audit", refuse)
    assert run("audit", pattern, *(["--scheduler", scheduler] if scheduler else [])).code == 2
    assert asked["jobs"] == jobs
