"""`genbounds mixture`: the table, JSON, the page, exit statuses, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

import genbounds as gb


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("mixture")
    rng = np.random.default_rng(0)
    for name, centre in {"left": -1.0, "right": 1.0}.items():
        np.save(where / f"{name}.npy", rng.normal(centre, size=(200, 2)))
    np.save(where / "real.npy", rng.normal(size=(400, 2)) + rng.choice([-1.0, 1.0], size=(400, 1)))
    np.save(where / "small.npy", rng.normal(size=(12, 2)))
    np.save(where / "wide.npy", 4.0 * rng.normal(size=(200, 2)))
    np.save(where / "fair.npy", rng.normal(size=(200, 2)) + rng.choice([-1.0, 1.0], size=(200, 1)))
    return where


def test_numbers_are_the_library_s(run, folder):
    files = [folder / f"{name}.npy" for name in ("real", "left", "right")]
    options = ("--metric", "energy", "--folds", 4, "--seed", 3, "--level", 0.9)
    result = run("mixture", *files, *options, "--json")
    assert (result.code, result.err) == (0, "")
    samples = {name: np.load(folder / f"{name}.npy") for name in ("left", "right")}
    real = np.load(folder / "real.npy")
    expected = gb.mixture(samples, real, metric="energy", folds=4, seed=3, level=0.9).to_dict()
    document = result.json
    assert {key: document[key] for key in expected} == json.loads(json.dumps(expected))


def test_the_table_and_the_verdict(run, folder):
    files = [folder / f"{name}.npy" for name in ("real", "left", "right")]
    result = run("mixture", *files)
    assert result.code == 0
    assert "Share" in result.out
    assert "better than the best single model, " in result.out


def test_without_a_certificate_the_status_is_1(run, folder):
    result = run("mixture", *(folder / f"{name}.npy" for name in ("real", "fair", "wide")))
    assert result.code == 1
    assert "not certified to be better than the best single model, fair" in result.out


def test_a_mixture_that_is_worse_than_a_model_says_so(run, folder):
    worse = set()
    for others in (("fair", "wide"), ("left", "right"), ("left", "wide"), ("fair", "left")):
        files = [folder / f"{name}.npy" for name in ("real", *others)]
        gain = run("mixture", *files, "--json").json["gain"]
        worse.add(gain < 0.0)
        assert ("which scores better alone" in run("mixture", *files).out) == (gain < 0.0)
    assert worse == {True, False}


def test_rke_needs_no_reference(run, folder):
    models = [folder / "left.npy", folder / "right.npy"]
    alone = run("mixture", *models, "--metric", "rke", "--json")
    assert alone.code == 0
    assert set(alone.json["weights"]) == {"left", "right"}
    given = run("mixture", *models, "--metric", "rke", "--reference", folder / "real.npy", "--json")
    assert given.json["score"]["value"] != alone.json["score"]["value"]  # another bandwidth


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("real", "left"), "--metric kid takes a reference and at least two models; got 2 files."),
        (("left", "--metric", "rke"), "--metric rke takes at least two models; got 1 file."),
        (("real", "left", "right", "--metric", "is"), "`--metric` must be one of fd, kid"),
    ],
)
def test_refusals_are_one_line(run, folder, arguments, text):
    files = {path.stem: path for path in folder.glob("*.npy")}
    result = run("mixture", *(files.get(argument, argument) for argument in arguments))
    assert (result.code, result.out) == (2, "")
    assert text in result.err
    assert result.err.count("\n") == 1
