"""``--metric module:name``: a score of the user's own, and what goes wrong in their code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

SOURCE = """
import sys
import genbounds as gb

def gap(x, w, y, v):
    return ((w @ x - v @ y) ** 2).sum()

def fails(x, w, y, v):
    raise KeyError("two\\nlines \\x1b[31m")

def leaves(x, w, y, v):
    sys.exit(0)

def score(function):
    how = {"higher_is_better": False, "needs_reference": True}
    return gb.SmoothScore(function, name="<b>mine</b>", **how)

means, failing, leaving = map(score, (gap, fails, leaves))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_scores.py").write_text(SOURCE)
    (tmp_path / "own_boom.py").write_text("raise ValueError('not\\nnow')")
    (tmp_path / "own_quits.py").write_text("import sys; sys.exit(0)")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("own_scores", "own_boom", "own_quits"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_every_command_takes_it(run, zoo):
    # What it prints is no part of a document on standard output.
    chatty = SOURCE.replace("    return", "    print('scoring')\n    return") + "print('loading')\n"
    Path("own_scores.py").write_text(chatty)
    real, good, bad = (zoo / f"{name}.npy" for name in ("real", "good", "bad"))
    own = ("--metric", "own_scores:means")
    document = run("score", real, good, bad, *own, "--json", "--out", "out").json
    assert [row["metric"] for row in document["rows"]] == ["<b>mine</b>"] * 2
    page = Path("out/report.html").read_text("utf-8")
    assert "<b>mine</b>" not in page
    assert "&lt;b&gt;mine&lt;/b&gt;" in page
    assert (
        run("gate", real, good, bad, "--margin", "0.5", *own, "--json").json["decision"] == "pass"
    )
    assert run("plan", real, good, "--half-width", "1", *own, "--json").json["feasible"]
    chosen = run("select", "--reference", real, good, bad, *own, "--json", "--budget", "1000")
    assert chosen.code in (0, 1)
    assert chosen.json["best"] in ("good", "bad")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "own_scores:failing",
            r"`function` of <b>mine</b> fails: KeyError: 'two\nlines \x1b[31m'.",
        ),
        ("own_scores:leaving", "`function` of <b>mine</b> fails: SystemExit: 0."),
        ("own_scores:gap", "`--metric` own_scores:gap is no score"),
        ("own_scores:nothing", "the module has no 'nothing'"),
        ("own_boom:x", "own_boom:x: fails when it is imported: ValueError: not now."),
        ("own_quits:x", "the module ends the program when it is imported"),
        ("own_missing:x", "there is no module 'own_missing'"),
        (
            "own_scores",
            "`--metric` must be one that `--metric help` lists, or module:name; got 'own_scores'.",
        ),
    ],
)
def test_what_goes_wrong_is_one_line(run, zoo, name, said):
    outcome = run("score", zoo / "real.npy", zoo / "good.npy", "--metric", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert said in outcome.err


def test_code_runs_only_if_it_is_named(run, zoo):
    assert run("score", zoo / "real.npy", zoo / "good.npy", "--metric", "kid").code == 0
    assert "own_scores" not in sys.modules
