"""`genbounds modes`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image

import genbounds as gb

CENTRES = 8.0 * np.eye(4)
BAD_NAME = '<script>alert("x")&.npy'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modes")
    rng = np.random.default_rng(0)
    for name, first in {"real.npy": 0, "gan.npy": 1, BAD_NAME: 0}.items():
        kind = rng.integers(first, 4, size=500)
        np.save(folder / name, CENTRES[kind] + rng.normal(size=(500, 4)))
        pictures = np.broadcast_to((60 * kind)[:, None, None], (500, 8, 8)).astype(np.uint8)
        np.save(folder / f"images-{name}", pictures)
    np.savez(
        folder / "grouped.npz", features=np.load(folder / "gan.npy"), prompt=np.arange(500) // 2
    )
    np.savez(folder / "stats.npz", mu=np.zeros(4), sigma=np.eye(4), n=100)
    np.save(folder / "few.npy", rng.normal(size=(20, 4)))
    np.save(folder / "wide.npy", rng.normal(size=(100, 5)))
    return folder


def test_one_model(run, folder, tmp_path):
    call = ("modes", folder / "real.npy", folder / "gan.npy")
    found = run(*call)
    assert (found.code, found.err) == (0, "")
    assert re.match(r"gan: (\d) regions differ \(95\u202f%\): \1 missing\n", found.out)
    document = run(*call, "--json", "--out", tmp_path).json
    told = gb.modes(np.load(folder / "gan.npy"), np.load(folder / "real.npy")).to_dict()
    assert document["regions"] == [{"model": "gan", **region} for region in told["regions"]]
    assert document["rows"][0]["counted_real"] == 250
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Region 1, missing: real rows" in page
    assert "pass --images" in page
    assert f"row {document['regions'][0]['rows']['real'][0]}" in page
    assert run(*call, "--seed", "1", "--json").json["regions"] != document["regions"]
    low = run(*call, "--level", "0.5", "--json").json["regions"][0]
    assert low["high"] < document["regions"][0]["high"]


def test_models_with_pictures(run, folder, tmp_path):
    names = ["real.npy", "gan.npy", BAD_NAME]
    images = [word for name in names for word in ("--images", folder / f"images-{name}")]
    files = [folder / name for name in names]
    document = run("modes", *files, *images, "--out", tmp_path, "--json").json
    assert [row["model"] for row in document["rows"]] == ["gan", BAD_NAME.removesuffix(".npy")]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    found = [region for region in document["regions"] if region["kind"] == "missing"]
    shown = sum(len(region["rows"]["real"]) for region in found)
    assert page.count('src="data:image/png;base64,') == shown == 8 * len(found) > 0
    assert "<script>alert" not in page


def test_folders_are_encoded_and_shown(run, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name, first in {"real": 0, "fake": 1}.items():
        (tmp_path / name).mkdir()
        for number in range(120):
            grey = np.full((8, 8, 3), 80 * rng.integers(first, 3) + 2, dtype=np.uint8)
            grey += rng.integers(0, 20, size=grey.shape, dtype=np.uint8)
            Image.fromarray(grey).save(tmp_path / name / f"{number:03d}.png")
    call = (
        "modes",
        tmp_path / "real",
        tmp_path / "fake",
        "--encoder",
        "tests.features.toy:moments",
    )
    found = run(*call, "--out", tmp_path / "out", "--json").json
    assert found["regions"][0]["kind"] in ("missing", "rare")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') >= 8
    assert f"{found['regions'][0]['rows']['real'][0]:03d}.png" in page
    monkeypatch.chdir(tmp_path)
    again = tmp_path / "out" / "features"  # the files say where the pictures are
    run("modes", again / "real.safetensors", again / "fake.safetensors", "--out", tmp_path / "two")
    assert (tmp_path / "two" / "report.html").read_text(encoding="utf-8") == page


def test_groups(run, folder):
    call = ("modes", folder / "real.npy", folder / "grouped.npz", "--json")
    assert run(*call, "--groups", "prompt").json["rows"][0]["counted_fake"] == 125
    assert run(*call, "--iid").json["rows"][0]["counted_fake"] == 250


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["real.npy"], "at least one model; got one file"),
        (["real.npy", "stats.npz"], "modes needs the features themselves"),
        (["real.npy", "gan.npy", "--images", "x", "--out", "o"], "`--images` is given once"),
        (["real.npy", "gan.npy", "--images", "x", "--images", "y"], "add --out"),
        (
            ["real.npy", "gan.npy", "--images", "x", "--images", "y", "--out", "o"],
            "`--images` x: no such file or folder: check the path.\n",
        ),
    ],
)
def test_refuses_with_one_line(run, folder, arguments, words):
    given = [folder / word if "." in word else word for word in arguments]
    found = run("modes", *given)
    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1
    assert words in found.err
