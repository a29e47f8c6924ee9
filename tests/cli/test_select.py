from __future__ import annotations

import re

import pytest


def test_certified(run, zoo):
    result = run(
        "select", "--reference", zoo / "population.npz", zoo / "good.npy", zoo / "bad.npy", "--json"
    )
    assert result.code == 0
    assert result.err == ""
    document = result.json
    assert document["best"] == "good"
    assert document["certified"] is True
    assert document["confidence"] == 0.95
    assert document["samples"].keys() == {"good", "bad"} == document["scores"].keys()
    assert sum(document["samples"].values()) < 1000
    assert document["steps"] > 0


def test_no_certificate_is_a_negative_answer(run, zoo):
    result = run("select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "close.npy")
    assert result.code == 1
    assert result.err == ""
    assert re.search("good|close", result.out.splitlines()[0])
    assert "certified at" not in result.out


def test_budget(run, zoo):
    result = run(
        "select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy",
        "--budget", "60", "--policy", "uniform", "--json",
    )  # fmt: skip
    assert result.code == 1
    assert sum(result.json["samples"].values()) == 60


def test_inception(run, zoo):
    files = [zoo / "p_good.npy", zoo / "p_bad.npy"]
    assert run("select", *files, "--metric", "is", "--json").json["best"] == "p_good"
    noted = run("select", "--reference", zoo / "real.npy", *files, "--metric", "is", "--json")
    assert "real.npy" in noted.json["notes"][-1]
    logits = [zoo / "p_good_logits.npy", zoo / "p_bad_logits.npy"]
    assert run("select", *logits, "--metric", "is", "--logits", "--json").code == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [("--seed", "1"), ("--batch", "20"), ("--confidence", "0.9999"), ("--policy", "uniform")],
)
def test_every_option_changes_something(run, zoo, option, value):
    command = ["select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy"]
    assert run(*command, "--json").json != run(*command, option, value, "--json").json


def test_out_repeats_byte_for_byte(run, zoo, tmp_path):
    command = [
        "select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy",
        "--out", tmp_path,
    ]  # fmt: skip
    run(*command)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert first.keys() == {"results.json", "report.html"}
    run(*command)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


@pytest.mark.parametrize("metric", ["kid", "vendi", "rke"])
def test_other_metrics_select(run, zoo, metric):
    command = ["select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy"]
    done = run(*command, "--metric", metric, "--batch", "50", "--json")
    assert done.json["metric"] == metric
    assert set(done.json["samples"]) == {"good", "bad"}
    if metric == "kid":
        assert done.json["best"] == "good"
