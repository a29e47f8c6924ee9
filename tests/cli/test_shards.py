"""A quoted pattern names several files as one sample, wherever files are read."""

from __future__ import annotations

import json

import numpy as np
import pytest

from genbounds import files
from tests.features.conftest import N
from tests.features.conftest import media as media  # a fixture

COMMANDS = [
    "score {real} {fake} {other}",
    "gate {real} {other} {fake} --margin 0.1",
    "track {real} {step1} {step2}",
    "memorisation {fake} --train {other} --heldout {real}",
    "modes {real} {fake}",
    "select --reference {real} {fake} {other} --budget 600",
]
NAMES = ("real", "fake", "other", "step1", "step2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of samples: NAME.npz, and the same rows in NAME-0.npz to NAME-3.npz."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    for shift, name in enumerate(NAMES):
        rows = rng.normal(0.05 * shift, 1.0, size=(400, 3)).astype(np.float32)
        np.savez(folder / f"{name}.npz", features=rows)
        for k in range(4):
            np.savez(folder / f"{name}-{k}.npz", features=rows[100 * k : 100 * k + 100])
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pattern_is_read_as_one_file(run, folder, command):
    found = []
    for ending in (".npz", "-*.npz"):
        paths = {name: f"{folder}/{name}{ending}" for name in NAMES}
        words = [word.format(**paths) for word in command.split()]
        done = run(*words, "--json")
        assert done.code in (0, 1), done.err  # a gate that is not passed ends with 1
        found.append(json.dumps(done.json).replace("-*", ""))
    assert found[0] == found[1]


def test_groups_of_all_shards_are_read(run, folder, tmp_path):
    prompts = np.arange(400) // 4
    rows = files.read_features(folder / "fake.npz")
    np.savez(tmp_path / "one.npz", features=rows, groups=prompts)
    for k in range(3):
        kept = slice(134 * k, 134 * k + 134)  # prompt 33 is in two files
        np.savez(tmp_path / f"part-{k}.npz", features=rows[kept], groups=prompts[kept])
    scores = [
        run("score", folder / "real.npz", tmp_path / name, "--json").json["rows"][0]
        for name in ("one.npz", "part-*.npz")
    ]
    assert scores[0].pop("model") == "one"
    assert scores[1].pop("model") == "part-*"
    assert scores[0] == scores[1]
    assert any("groups of rows" in text for text in scores[0]["assumptions"])


def test_what_is_wrong_with_shards_is_one_line(run, folder):
    done = run("score", folder / "real.npz", folder / "gone-*.npz")
    assert (done.code, done.out) == (2, "")
    assert "gone-*.npz: no file has such a name" in done.err


def test_parts_of_an_extraction_are_scored_as_one(run, media, folder, tmp_path):
    encoder = ("--encoder", "tests.features.toy:moments", "--batch", 2)
    whole = tmp_path / "whole.safetensors"
    assert run("features", media / "folder", *encoder, "--out", whole).code == 0
    for i in (1, 2, 3):
        out = tmp_path / f"part-{i}.safetensors"
        done = run("features", media / "folder", *encoder, "--out", out, "--part", f"{i}/3")
        assert done.code == 0, done.err
    pattern = tmp_path / "part-*.safetensors"
    assert (files.read_features(pattern) == files.read_features(whole)).all()
    assert len(files.read_features(pattern)) == N
    out.unlink()
    done = run("score", whole, pattern)
    assert done.code == 2
    assert "part 3 is missing" in done.err


@pytest.mark.parametrize("part", ["2", "3/2", "-1/2", "1/99"])
def test_a_part_that_cannot_be_is_one_line(run, media, tmp_path, part):
    done = run(
        "features", media / "folder", "--encoder", "tests.features.toy:moments",
        "--out", tmp_path / "x.npz", f"--part={part}",
    )  # fmt: skip
    assert (done.code, done.out) == (2, "")
    assert "--part" in done.err
