"""`genbounds reproduce`."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    rng = np.random.default_rng(0)
    np.save(folder / "real.npy", rng.normal(size=(600, 3)))
    np.save(folder / "model.npy", 1.2 * rng.normal(size=(500, 3)))
    gb.Moments.from_features(np.load(folder / "real.npy")).save(folder / "real.npz")
    np.savez(folder / "uncounted.npz", mu=np.zeros(3), sigma=np.eye(3))
    return folder


def call(run, files, *options, reference="real.npy"):
    return run("reproduce", files / reference, files / "model.npy", *options)


def test_status_and_document(run, files, tmp_path):
    found = gb.reproduction(
        np.load(files / "model.npy"), np.load(files / "real.npy"), n=5000, published=0.15
    )
    done = call(run, files, "--n", 5000, "--published", 0.15, "--json", "--out", tmp_path)
    assert (done.code, done.err) == (0, "")
    expected = {key: getattr(found, key) for key in ("low", "high", "value", "pvalue", "decision")}
    assert expected.items() <= done.json.items()
    assert (tmp_path / "report.html").is_file()
    away = call(run, files, "--n", 5000, "--published", 2.31)
    assert (away.code, away.out[:15]) == (1, "not consistent:")
    assert call(run, files, "--n", 5000).code == 0
    np.save(tmp_path / "few.npy", np.load(files / "model.npy")[:10])
    few = run("reproduce", files / "real.npy", tmp_path / "few.npy", "--n", 50, "--published", 0.15)
    assert (few.code, few.out[:13]) == (1, "inconclusive:")
    anew = call(run, files, "--n", 5000, "--published", 2.31, "--training-sd", 3)
    assert anew.code == 0


def test_statistics_as_the_reference(run, files):
    options = ("--n", 5000, "--published", 0.15, "--json")
    whole = call(run, files, *options).json
    for reference in ("real.npz", "uncounted.npz"):
        done = call(run, files, *options, reference=reference)
        assert done.code == 0
    assert call(run, files, *options, reference="real.npz").json["low"] == pytest.approx(
        whole["low"]
    )
    own = call(run, files, *options, "--published-reference-n", 900, reference="uncounted.npz")
    assert own.code == 2
    assert "uncounted.npz" in own.err
