"""`genbounds memorisation`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import genbounds as gb


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    rng = np.random.default_rng(0)
    train, heldout, fresh = rng.normal(size=(3, 200, 12))
    copied = np.concatenate([train[:30] + 0.01 * rng.normal(size=(30, 12)), fresh])
    for name, x in {"train": train, "heldout": heldout, "fresh": fresh, "copied": copied}.items():
        np.save(folder / f"{name}.npy", x)
    for name, x, first in (("g_train", train, 0), ("g_heldout", heldout, 100)):
        np.savez(folder / f"{name}.npz", features=x, clips=first + np.arange(200) // 4)
    np.savez(folder / "moments.npz", mu=np.zeros(12), sigma=np.eye(12), n=200)
    np.save(folder / "narrow.npy", fresh[:, :5])
    np.save(folder / "nan.npy", np.full((9, 12), np.nan))
    return folder


def call(files, fake="copied", train="train.npy", heldout="heldout.npy"):
    where = files / f"{fake}.npy"
    return "memorisation", where, "--train", files / train, "--heldout", files / heldout


def test_the_document_is_the_library_s(run, files, tmp_path):
    found = run(*call(files), "--fdr", "0.2", "--level", "0.9", "--out", tmp_path, "--json")
    assert (found.code, found.err) == (0, "")
    fake, train, heldout = (np.load(files / f"{x}.npy") for x in ("copied", "train", "heldout"))
    told = gb.memorisation(fake, train, heldout, fdr=0.2, level=0.9)
    assert found.json == json.loads(json.dumps(told.to_dict())) | {
        "command": "memorisation",
        "complete": True,
    }
    assert {"pvalue", "copies_pvalue", "share_low", "suspects", "warnings"} <= found.json.keys()
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == found.json
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Does the model copy its training data?" in page
    assert "What is reproduced" in page


def test_what_is_printed(run, files):
    found = run(*call(files))
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0].startswith("copies: at least ")
    assert "Training row" in lines[2]
    assert "more (--json, --out)" in found.out
    assert "Assumptions" not in found.out
    calm = run(*call(files, "fresh"), "--verbose")
    assert calm.code == 0  # the test ran
    assert calm.out.startswith("no sign of copies")
    assert "Assumptions" in calm.out


def test_groups_of_real_rows(run, files):
    grouped = call(files, train="g_train.npz", heldout="g_heldout.npz")
    found = run(*grouped, "--groups", "clips", "--json").json
    assert (found["unit"], found["train_units"]) == ("group", 50)
    assert run(*grouped, "--iid", "--json").json["unit"] == "row"
    lost = run(*call(files), "--groups", "clips")
    assert lost.code == 2
    assert "has no array clips" in lost.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"heldout": "train.npy"}, "train.npy` holds the same rows"),
        ({"heldout": "moments.npz"}, "moments.npz: holds statistics"),
        ({"fake": "narrow"}, "train.npy` has 12: both must come from the same encoder"),
    ],
)
def test_bad_files_are_one_line(run, files, change, words):
    found = run(*call(files, **change), "--json")
    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1
    assert words in found.err


def test_pictures_of_both_sides(run, files, tmp_path):
    """As the files say, or as `--images` does, twice."""
    rng = np.random.default_rng(1)
    np.save(files / "images-fake.npy", rng.integers(256, size=(230, 4, 4), dtype=np.uint8))
    np.save(files / "images-train.npy", rng.integers(256, size=(200, 4, 4), dtype=np.uint8))
    bare = run(*call(files), "--out", tmp_path / "bare")
    assert "pass --images" in (tmp_path / "bare" / "report.html").read_text(encoding="utf-8")
    images = ["--images", files / "images-fake.npy", "--images", files / "images-train.npy"]
    found = run(*call(files), *images, "--out", tmp_path / "shown", "--json")
    page = (tmp_path / "shown" / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == 2 * min(24, len(found.json["suspects"])) > 0
    assert (bare.code, found.code) == (0, 0)
