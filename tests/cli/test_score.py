from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import genbounds as gb
from genbounds.cli._inputs import METRICS, model_names, softmax
from genbounds.validation import InputError

ROW = {
    "model", "metric", "estimator", "value", "low", "high", "level", "stderr", "n", "notes",
}  # fmt: skip


def test_json_is_the_contract_and_nothing_else(run, zoo):
    result = run("score", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy", "--json")
    assert result.code == 0
    assert result.err == ""
    assert [row["model"] for row in result.json["rows"]] == ["good", "bad"]
    for row in result.json["rows"]:
        assert row.keys() == ROW
        assert row["metric"] == "fd"
        assert row["level"] == 0.95
        assert row["n"] == 500
        assert row["low"] <= row["value"] <= row["high"]
    assert result.json["ranking"]["contenders"] == ["good"]
    assert result.json["ranking"]["differences"][0]["distinguishable"] is True


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_numbers_are_the_library_s(run, zoo, estimator):
    row = run(
        "score", zoo / "real.npy", zoo / "bad.npy", "--estimator", estimator, "--level", "0.9",
        "--json",
    ).json["rows"][0]  # fmt: skip
    expected = gb.frechet_distance(
        np.load(zoo / "bad.npy"), np.load(zoo / "real.npy"), estimator=estimator, level=0.9
    )
    assert {key: row[key] for key in expected.to_dict()} == expected.to_dict()


def test_plugin_has_no_ranking(run, zoo):
    files = [zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy"]
    assert "ranking" not in run("score", *files, "--estimator", "plugin", "--json").json
    assert "ranking" not in run("score", *files[:2], "--json").json


def test_reference_statistics(run, zoo):
    known = run("score", zoo / "population.npz", zoo / "good.npy", "--json").json
    counted = run("score", zoo / "counted.npz", zoo / "good.npy", "--json").json
    assert "taken as exactly known" in known["notes"][0]
    assert counted["notes"] == []
    assert counted["rows"][0]["stderr"] > known["rows"][0]["stderr"]


def test_generated_statistics(run, zoo):
    row = run("score", zoo / "real.npy", zoo / "counted.npz", "--json").json["rows"][0]
    assert row["model"] == "counted"
    assert row["n"] == 900


def test_inception_ranks_the_models_and_scores_the_reference_beside(run, zoo):
    files = [zoo / f"{name}.npy" for name in ("p_real", "p_bad", "p_good")]
    document = run("score", *files, "--metric", "is", "--json").json
    assert [row["model"] for row in document["rows"]] == ["p_bad", "p_good"]
    assert document["reference"]["model"] == "p_real"
    assert document["ranking"]["contenders"] == ["p_good"]


def test_inception_of_one_file_is_that_model(run, zoo):
    document = run("score", zoo / "p_good.npy", "--metric", "is", "--json").json
    assert [row["model"] for row in document["rows"]] == ["p_good"]
    assert "reference" not in document


def test_inception_does_not_need_its_reference(run, zoo):
    document = run("score", zoo / "real.npy", zoo / "p_good.npy", "--metric", "is", "--json").json
    assert [row["model"] for row in document["rows"]] == ["p_good"]
    assert document["notes"][0].startswith("the Inception score uses no reference")
    assert "real.npy" in document["notes"][0]


def test_logits_are_posteriors_after_a_softmax(run, zoo):
    plain = run("score", zoo / "p_good.npy", "--metric", "is", "--json").json["rows"][0]
    logits = run(
        "score", zoo / "p_good_logits.npy", "--metric", "is", "--logits", "--json"
    ).json["rows"][0]  # fmt: skip
    assert logits["value"] == pytest.approx(plain["value"], rel=1e-9)


def test_softmax_of_extremes():
    x = np.array([[1e308, -1e308, 0.0], [0.0, 0.0, 0.0], [-800.0, 0.0, 1.0]])
    result = softmax(x)
    np.testing.assert_allclose(result.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(result[0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(result[1], 1 / 3)
    with pytest.raises(InputError, match="row 1"):
        softmax(np.array([[0.0, 1.0], [np.nan, 0.0]]))


def test_text_says_who_is_distinguishable(run, zoo):
    result = run("score", zoo / "real.npy", *(zoo / f"{n}.npy" for n in ("bad", "good", "close")))
    assert result.code == 0
    lines = result.out.splitlines()
    assert (
        lines[0] == "Fréchet distance (smaller is better), 95\N{NARROW NO-BREAK SPACE}% intervals"
    )
    assert lines[4].split()[0] in ("good", "close")  # best first
    assert "the samples do not tell it from" in result.out
    assert "\x1b" not in result.out


def test_a_single_best_is_named(run, zoo):
    result = run("score", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy")
    assert "good is the best of them" in result.out


def test_says_on_a_terminal_where_the_page_is(run, zoo, tmp_path, monkeypatch):
    call = ("score", zoo / "real.npy", zoo / "good.npy", "--out", tmp_path, "--json")
    assert run(*call).err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    result = run(*call)
    assert result.err.endswith(f"report: {tmp_path / 'report.html'}\n")
    assert result.json["rows"]


def test_one_model_has_no_group(run, zoo):
    assert "Group" not in run("score", zoo / "real.npy", zoo / "good.npy").out
    assert "Group" in run("score", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy").out


def test_out_repeats_byte_for_byte(run, zoo, tmp_path):
    command = ["score", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy", "--out", tmp_path]
    assert run(*command).code == 0
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert first.keys() == {"results.json", "report.html"}
    result = run(*command, "--json")
    assert result.out.encode() == first["results.json"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_convergence_is_on_the_page_and_in_the_json_if_asked_for(run, zoo, tmp_path):
    """Numbers are the library's; a model without rows is left out, with a note."""
    files = [zoo / name for name in ("real.npy", "good.npy", "bad.npy", "counted.npz")]
    plain = run("score", *files, "--json").json
    assert "convergence" not in plain
    out = run("score", *files, "--convergence", "--json", "--out", tmp_path).json
    assert {key: out[key] for key in ("rows", "ranking")} == {
        key: plain[key] for key in ("rows", "ranking")
    }
    fakes = {name: np.load(zoo / f"{name}.npy") for name in ("good", "bad")}
    grown = gb.estimators.convergence(fakes, np.load(zoo / "real.npy"))
    assert out["convergence"].keys() == grown.keys()
    for name, points in grown.items():
        rows = out["convergence"][name]
        assert [row["n"] for row in rows] == [62, 125, 250, 500] == [n for n, _ in points]
        for row, (_, score) in zip(rows, points, strict=True):
            assert (row["value"], row["low"], row["high"]) == pytest.approx(
                (score.value, score.low, score.high), rel=1e-9
            )
    assert "no convergence of counted" in out["notes"][-1]
    assert "counted.npz" in out["notes"][-1]
    page = (tmp_path / "report.html").read_text()
    assert "Do the scores settle as samples are added?" in page
    assert page.count("<title>good, n = 62") == 2


@pytest.mark.parametrize("metric", METRICS)
def test_convergence_of_every_metric(run, zoo, metric):
    stem = "p_" if metric == "is" else ""
    files = [zoo / f"{stem}{name}.npy" for name in ("real", "good")]
    document = run("score", *files, "--metric", metric, "--convergence", "--json").json
    (points,) = document["convergence"].values()
    assert [row["n"] for row in points] == [points[-1]["n"] >> k for k in (3, 2, 1, 0)][
        -len(points) :
    ]
    assert points[-1]["value"] == document["rows"][0]["value"]


def test_convergence_that_nobody_would_see_is_refused(run, zoo):
    result = run("score", zoo / "real.npy", zoo / "good.npy", "--convergence")
    assert (result.code, result.out) == (2, "")
    assert "give --out or --json" in result.err


def test_what_is_finished_is_kept(run, zoo, tmp_path):
    np.save(tmp_path / "broken.npy", np.full((50, 4), np.nan))
    out = tmp_path / "out"
    files = [zoo / "real.npy", zoo / "good.npy", tmp_path / "broken.npy"]
    assert run("score", *files, "--out", out).code == 2
    kept = json.loads((out / "results.json").read_text())
    assert [row["model"] for row in kept["rows"]] == ["good"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a.npy", "b.npy"], ["a", "b"]),
        (["gan/x.npy", "vae/x.npy", "y.npy"], ["gan/x", "vae/x", "y"]),
        (["1/gan/x.npy", "2/gan/x.npy"], ["1/gan/x", "2/gan/x"]),
        (["x.npy", "x.npz"], ["x.npy", "x.npz"]),
        (["x.npy", "x.npy", "x.npy"], ["x.npy", "x.npy (2)", "x.npy (3)"]),
        (["gan/x.npy", "x.npy"], ["gan/x", "x"]),
    ],
)
def test_model_names_are_short_and_unique(paths, names):
    from pathlib import Path

    assert model_names([Path(path) for path in paths]) == names


def test_every_metric_of_the_library_is_on_offer():
    from genbounds.estimators import METRICS as LIBRARY

    assert set(METRICS) == set(LIBRARY)


def test_diversity_needs_no_reference_and_one_bandwidth(run, zoo):
    """The first file gives the bandwidth and is scored for orientation; another one changes it."""
    names = ("real.npy", "good.npy")
    real, good = (np.load(zoo / name) for name in names)
    sigma = gb.estimators.median_bandwidth(real)
    document = run("score", *(zoo / name for name in names), "--metric", "rke", "--json").json
    expected = gb.vendi_score(good, order=2.0, bandwidth=sigma)
    assert document["rows"][0]["value"] == pytest.approx(expected.value, rel=1e-12)
    assert document["reference"]["model"] == "real"
    alone = run("score", zoo / "good.npy", "--metric", "vendi", "--kernel", "cosine", "--json").json
    assert alone["rows"][0]["value"] == pytest.approx(
        gb.vendi_score(good, kernel="cosine").value, rel=1e-12
    )


def test_vendi_of_few_rows(run, zoo, tmp_path):
    """No more rows than eigenvalues are usually kept: fewer are, and the table says how many."""
    few = np.load(zoo / "good.npy")[:60]
    np.save(tmp_path / "few.npy", few)
    given = run("score", zoo / "real.npy", tmp_path / "few.npy", "--metric", "vendi", "--json").json
    for row in (given["rows"][0], given["reference"]):
        assert row["estimator"] == "vendi, truncated at t=59"
        assert "truncated at t=59 for all: the smallest sample has 60 rows" in row["notes"][-1]
