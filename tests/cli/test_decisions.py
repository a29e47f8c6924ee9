"""`genbounds gate` and `genbounds plan`."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import genbounds as gb


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    for name, scale in {"real": 1.0, "old": 1.2, "new": 1.2, "bad": 1.8}.items():
        np.save(folder / f"{name}.npy", scale * rng.normal(size=(600, 3)))
    gb.Moments.from_features(np.load(folder / "old.npy"), keep=300).save(folder / "base.npz")
    np.savez(folder / "uncounted.npz", mu=np.zeros(3), sigma=np.eye(3))
    common = rng.normal(size=(600, 3))
    for name in ("one", "two"):
        x = common + 0.2 * rng.normal(size=(600, 3))
        np.savez(folder / f"{name}.npz", features=1.2 * x, prompt=np.arange(600))
    for name, alpha in {"p_old": 0.1, "p_new": 0.1, "p_bad": 0.6}.items():
        np.save(folder / f"{name}.npy", rng.dirichlet([alpha] * 4, size=400))
    return folder


def test_gate_says_one_line_and_its_status(run, files):
    files = {path.stem: path for path in files.iterdir()}
    passes = run("gate", files["real"], files["old"], files["new"], "--margin", "0.1")
    assert passes.code == 0
    assert passes.err == ""
    assert passes.out.count("\n") == 1
    assert passes.out.startswith("pass: fd of new is ")
    fails = run("gate", files["real"], files["old"], files["bad"], "--margin", "2%")
    assert (fails.code, fails.out[:5]) == (1, "fail:")
    unclear = ("gate", files["real"], files["old"], files["new"], "--margin", "0.001")
    assert run(*unclear).code == 1
    assert run(*unclear).out.startswith("inconclusive: ")
    assert run(*unclear, "--inconclusive", "pass").code == 0
    assert run(*fails_of(files), "--inconclusive", "pass").code == 1
    verbose = run(*unclear, "--verbose").out
    assert "Assumptions" in verbose
    assert "Methods" in verbose


def test_a_margin_above_the_baseline_s_own_score_is_no_share(run, files):
    """`--margin 5` where 5 % is meant passes a candidate that is tens of times as far away."""
    three = [files / f"{name}.npy" for name in ("real", "old", "bad")]
    found = run("gate", *three, "--margin", "5")
    assert (found.code, found.out[:5]) == (0, "pass:")
    assert "the margin, 5, is 37 times the score of old" in found.out
    assert "add the sign: '5%'" in found.out
    assert "margin, " not in run("gate", *three, "--margin", "5%").out
    assert "margin, " not in run("gate", *three, "--margin", "0.1").out


def fails_of(files):
    return "gate", files["real"], files["old"], files["bad"], "--margin", "2%"


def test_gate_document_is_the_library_s(run, files):
    given = [files / f"{name}.npy" for name in ("real", "old", "new")]
    call = ("gate", *given, "--margin", "0.3", "--level", "0.9", "--equivalence")
    found = run(*call, "--json")
    real, old, new = (np.load(path) for path in given)
    told = gb.gate(new, old, real, margin=0.3, level=0.9, equivalence=True)
    document = found.json
    assert {"decision", "difference", "margin", "samples_needed"} <= document.keys()
    for key in ("decision", "worse_by", "low", "high", "margin", "samples_needed"):
        assert document[key] == getattr(told, key)
    assert {document["difference"]["better"], document["difference"]["worse"]} == {"old", "new"}


def test_results_of_another_command_are_not_overwritten(run, files, tmp_path):
    three = [files / f"{name}.npy" for name in ("real", "old", "new")]
    gate = ("gate", *three, "--margin", "0.3", "--out", tmp_path / "d")
    score = ("score", *three, "--out", tmp_path / "d")
    assert (run(*score).code, run(*score, "--level", "0.9").code) == (0, 0)
    first = {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()}
    found = run(*gate)
    assert (found.code, found.out) == (2, "")
    assert found.err == (
        f"genbounds: `--out` is {tmp_path / 'd'}, where `genbounds score` keeps its results: give "
        "each command a folder of its own.\n"
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()} == first
    again = run(*score)
    assert again.err == (
        f"genbounds: the results in {tmp_path / 'd'} were of other files or options: replaced.\n"
    )
    assert run(*score).err == ""
    (tmp_path / "d" / "results.json").write_text("[1", encoding="utf-8")  # nobody's
    assert run(*gate).code == 0


def test_gate_takes_statistics_groups_and_scores_without_reference(run, files):
    real, new = files / "real.npy", files / "new.npy"
    kept = run("gate", real, files / "base.npz", new, "--margin", "0.3", "--json").json
    whole = run("gate", real, files / "old.npy", new, "--margin", "0.3", "--json").json
    assert kept["decision"] == whole["decision"] == "pass"
    assert kept["high"] == pytest.approx(whole["high"], rel=0.1)
    uncounted = run("gate", real, files / "uncounted.npz", new, "--margin", "9", "--json").json
    assert (uncounted["decision"], uncounted["reliable"]) == ("inconclusive", False)
    pair = ("gate", real, files / "one.npz", files / "two.npz", "--margin", "0.3", "--json")
    paired, alone = (
        found["high"] - found["worse_by"]
        for found in (run(*pair, "--groups", "prompt").json, run(*pair, "--iid").json)
    )
    assert paired < 0.7 * alone
    posteriors = ("gate", files / "p_old.npy", files / "p_bad.npy", "--metric", "is")
    assert run(*posteriors, "--margin", "1%", "--json").json["decision"] == "fail"
    rke = ("gate", files / "old.npy", new, "--metric", "rke", "--margin", "20%")
    assert run(*rke, "--kernel", "cosine").code == 0
    with_reference = run(*rke, "--kernel", "rbf", "--reference", real)
    assert with_reference.code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["real.npy", "old.npy", "--margin", "1"], "a reference and 2 models; got 2 files"),
        (["p_old.npy", "--metric", "is", "--margin", "1"], "takes 2 models; got 1 file"),
        (
            ["real.npy", "old.npy", "new.npy", "--margin", "1", "--inconclusive", "maybe"],
            "`--inconclusive`",
        ),
    ],
)
def test_gate_refuses_with_one_line(run, files, arguments, words):
    given = [files / word if "." in word and word[0].isalpha() else word for word in arguments]
    found = run("gate", *given)
    assert found.code == 2
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert words in found.err


def test_plan(run, files, tmp_path):
    real, old, new = (files / f"{name}.npy" for name in ("real", "old", "new"))
    found = run("plan", real, old, "--half-width", "0.2", "--out", tmp_path)
    assert found.code == 0
    assert found.out.startswith("fd ± 0.2 (95\u202f%): ")
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    told = gb.plan(np.load(old), np.load(real), half_width=0.2)
    assert (document["n"], document["limit"]) == (told.n, told.limit)
    assert "How many samples does it take?" in (tmp_path / "report.html").read_text("utf-8")
    never = run("plan", real, old, "--half-width", "0.001", "--json")
    assert never.code == 1
    assert (never.json["n"], never.json["feasible"]) == (None, False)
    assert never.json["reference_needed"] > 600
    np.save(tmp_path / "few.npy", np.load(old)[:3])
    few = run("plan", real, tmp_path / "few.npy", "--half-width", "99", "--json")
    assert (few.code, few.json["feasible"], few.json["reliable"]) == (0, True, False)
    pair = run("plan", real, old, new, "--gap", "0.2", "--power", "0.9", "--json").json
    assert pair["two_models"]
    assert pair["n"] == gb.plan((np.load(old), np.load(new)), np.load(real), gap=0.2, power=0.9).n
    posteriors = run("plan", files / "p_old.npy", "--metric", "is", "--half-width", "0.1")
    assert posteriors.code == 0


def test_plan_of_a_selection(run, files, tmp_path):
    real, old, new = (files / f"{name}.npy" for name in ("real", "old", "new"))
    found = run("plan", real, old, new, "--confidence", "0.95", "--power", "0.5", "--out", tmp_path)
    told = gb.select.plan({"old": np.load(old), "new": np.load(new)}, np.load(real), power=0.5)
    assert found.code == (0 if told.feasible else 1)
    assert found.out.startswith(re.sub("(?<=\\d)\u202f(?=\\d)", "", str(told)))
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (document["budget"], document["samples"]) == (told.budget, told.samples)
    assert "How many samples until" in (tmp_path / "report.html").read_text("utf-8")
    never = run("plan", real, old, new, "--confidence", "0.95", "--limit", "100", "--json")
    assert (never.code, never.json["budget"]) == (1, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["real.npy", "old.npy"], "--half-width, --gap or --confidence"),
        (["real.npy", "old.npy", "--gap", "1", "--half-width", "1"], "--half-width, --gap or"),
        (["real.npy", "old.npy", "new.npy", "--gap", "1", "--confidence", "0.9"], "one target"),
        (["real.npy", "old.npy", "--confidence", "0.9"], "at least two models"),
        (["real.npy", "old.npy", "--gap", "1", "--limit", "9"], "`--limit` is for --confidence"),
        (["real.npy", "--gap", "1"], "1 model or 2 models; got 1 file"),
    ],
)
def test_plan_refuses_with_one_line(run, files, arguments, words):
    given = [files / word if word.endswith(".npy") else word for word in arguments]
    found = run("plan", *given)
    assert (found.code, found.out) == (2, "")
    assert words in found.err


@pytest.mark.parametrize("target", [("--half-width", "9"), ("--gap", "9"), ("--confidence", "0.5")])
def test_a_small_pilot_is_taken_whatever_is_planned(run, files, tmp_path, target):
    """With --confidence it always was; the others refused it."""
    pilots = [tmp_path / f"{name}.npy" for name in ("few", "less")]
    for path, name in zip(pilots, ("old", "new"), strict=True):
        np.save(path, np.load(files / f"{name}.npy")[:8])
    found = run("plan", files / "real.npy", *pilots, *target, "--json")
    assert found.code in (0, 1)
    assert any("too many samples rather" in w["message"] for w in found.json["warnings"])
