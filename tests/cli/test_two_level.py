"""Partners and several encoders on the command line."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb

N = 300


@pytest.fixture
def noise(tmp_path):
    """Files of a model, of its partner and of a reference; returns the arrays."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N + 2000, 6))
    arrays = {
        "model": 1.1 * z[:N] + 0.2,
        "cheap": 1.3 * z + 0.5,
        "pilot": 1.3 * z[:N] + 0.5,
        "real": rng.normal(size=(2000, 6)),
        "other": 1.2 * z[:N, :4],
        "real-other": rng.normal(size=(2000, 4)),
    }
    for name, rows in arrays.items():
        np.save(tmp_path / f"{name}.npy", rows)
    return arrays


def test_a_partner_sharpens_a_score(run, tmp_path, noise):
    files = [tmp_path / f"{name}.npy" for name in ("real", "model")]
    result = run("score", *files, "--partner", tmp_path / "cheap.npy", "--json")
    expected = gb.two_level(noise["model"], noise["cheap"][:N], noise["cheap"][N:], noise["real"])
    (row,) = result.json["rows"]
    assert row["value"] == pytest.approx(expected.value, rel=1e-12)
    assert row["plain"]["value"] == pytest.approx(expected.plain.value, rel=1e-12)
    assert {"beta", "correlation", "variance_left", "reference_share"} <= row.keys()
    shown = run("score", *files, "--partner", tmp_path / "cheap.npy", "--out", tmp_path / "out")
    assert "model alone: " in shown.out
    assert (tmp_path / "out" / "report.html").exists()


def test_a_plan_says_how_many_of_both(run, tmp_path, noise):
    call = ["plan", tmp_path / "real.npy", tmp_path / "model.npy", "--half-width", "0.1"]
    result = run(*call, "--partner", tmp_path / "pilot.npy", "--costs", "64,4", "--json")
    assert result.code == 0
    assert result.json["pays"] is True
    assert result.json["n_cheap"] > result.json["n"]
    dear = run(*call, "--partner", tmp_path / "pilot.npy", "--costs", "1,1", "--json")
    assert (dear.code, dear.json["pays"], dear.json["n_cheap"]) == (0, False, None)


def test_encoders_have_a_row_each_and_one_together(run, tmp_path, noise):
    first = f"pixels={tmp_path / 'real.npy'}:{tmp_path / 'model.npy'}"
    second = f"edges={tmp_path / 'real-other.npy'}:{tmp_path / 'other.npy'}"
    result = run("score", "--across", first, second, "--json")
    assert result.code == 0
    rows = {row["encoder"]: row for row in result.json["rows"]}
    assert list(rows) == ["all", "pixels", "edges"]
    assert {row["model"] for row in rows.values()} == {"model"}
    pixels, edges = (rows[name]["value"] for name in ("pixels", "edges"))
    assert rows["all"]["value"] == pytest.approx(np.sqrt(pixels * edges), rel=1e-9)
    again = run("score", "--across", first, "--across", second, "--scale", "floor")
    assert "multiples of the floor" in again.out
    assert "\nedges, 97.5" in again.out
    for place, name in enumerate(("inc-a", "inc-b", "dino-b", "dino-a")):
        np.save(tmp_path / f"{name}.npy", noise["model"] + 0.1 * place)
    models = [f"{tmp_path / name}.npy" for name in ("inc-a", "inc-b", "dino-b", "dino-a")]
    real = tmp_path / "real.npy"
    call = [f"inc={real}:{models[0]}:{models[1]}", f"dino={real}:{models[2]}:{models[3]}"]
    exchanged = run("score", "--across", *call)
    assert exchanged.code == 2
    assert "in one order" in exchanged.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        (["--across", "a=real.npy"], "'a=real.npy'"),
        (["--across", "a=real.npy:model.npy", "b=real.npy:model.npy:cheap.npy"], "`--across`"),
        (["real.npy", "model.npy", "--partner", "pilot.npy"], "`--partner`"),
        (["real.npy", "model.npy", "model.npy", "--partner", "cheap.npy"], "once for every model"),
        (["real.npy", "model.npy", "--partner", "cheap.npy", "--across", "a=b:c"], "`--across`"),
    ],
)
def test_what_does_not_fit_is_one_line(run, tmp_path, noise, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    result = run("score", *arguments)
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("costs", [[], ["--costs", "64"], ["--costs", "a,b"]])
def test_costs_that_are_none_are_refused(run, tmp_path, noise, costs):
    call = ["plan", tmp_path / "real.npy", tmp_path / "model.npy", "--half-width", "0.1"]
    result = run(*call, "--partner", tmp_path / "pilot.npy", *costs)
    assert result.code == 2
    assert "costs" in result.err
