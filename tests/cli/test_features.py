"""`genbounds features`, scores of folders, live arms: from files on disk to the answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

import genbounds as gb
from genbounds import features, files
from tests.cli.conftest import listen_to_ctrl_c
from tests.features import toy


def folder_of(path, count, low, high, seed):
    path.mkdir()
    rng = np.random.default_rng(seed)
    pixels = rng.integers(low, high, size=(count, 6, 5, 3), dtype=np.uint8)
    for number, picture in enumerate(pixels):
        Image.fromarray(picture).save(path / f"{number:04d}.png")
    return toy.moments(list(pixels))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a place with three folders of images, and what the toy encoder makes of them."""
    root = tmp_path_factory.mktemp("folders")
    content = {
        "real": folder_of(root / "real", 120, 0, 256, 0),
        "same": folder_of(root / "same", 100, 0, 256, 1),
        "dark": folder_of(root / "dark", 100, 0, 200, 2),
    }
    return root, content


TOY = ("--encoder", "tests.features.toy:moments")


def test_features_of_a_folder(run, folders, tmp_path):
    root, content = folders
    out, moments = tmp_path / "x.safetensors", tmp_path / "x.npz"
    done = run("features", root / "real", *TOY, "--out", out, "--moments", moments, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["n"] == 120
    assert done.json["d"] == 6
    assert done.json["origin"]["encoder"] == "python:tests.features.toy:moments"
    assert (files.read_features(out) == content["real"]).all()
    assert gb.Moments.load(moments).n == 120
    again = run("features", root / "real", *TOY, "--out", out, "--moments", moments)
    assert again.code == 0
    assert "120 × 6 features" in again.out.replace("\N{NO-BREAK SPACE}", " ")
    assert "was there already" in again.err


@pytest.mark.parametrize("option", ["--out", "--moments"])
def test_features_of_another_folder_are_not_written_over(run, folders, tmp_path, option):
    root, _ = folders
    kept = tmp_path / ("x.npz" if option == "--moments" else "x.safetensors")
    assert run("features", root / "real", *TOY, option, kept).code == 0
    before = kept.read_bytes()
    other = run("features", root / "dark", *TOY, option, kept)
    assert (other.code, other.out) == (2, "")
    assert f"{kept}: holds the result of another run" in other.err
    assert kept.read_bytes() == before
    assert list(tmp_path.iterdir()) == [kept]


def test_a_file_that_does_not_say_what_it_holds_is_replaced_with_a_line(run, folders, tmp_path):
    root, content = folders
    out = tmp_path / "x.npy"
    assert "replaced" not in run("features", root / "real", *TOY, "--out", out).err
    assert f"{out}: what was there" in run("features", root / "dark", *TOY, "--out", out).err
    assert (files.read_features(out) == content["dark"]).all()


def test_options_reach_the_encoder(run, folders, tmp_path):
    root, _ = folders
    options = ["--size", 3, "--fit", "crop", "--resize", 4, "--interpolation", "lanczos"]
    options += ["--channels", 3, "--white", 255, "--mean", "1,2,3", "--std", "2"]
    flat = ("--encoder", "tests.features.toy:flat", *options)
    done = run("features", root / "real", *flat, "--out", tmp_path / "x.npy", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.json["origin"]["preprocessing"]) == {
        "size": 3, "fit": "crop", "resize": 4, "interpolation": "lanczos", "channels": 3,
        "white": 255.0, "mean": [1.0, 2.0, 3.0], "std": [2.0],
    }  # fmt: skip
    assert done.json["d"] == 27


def test_a_folder_scores_as_its_array(run, folders, tmp_path):
    root, content = folders
    for name, rows in content.items():
        np.save(tmp_path / f"{name}.npy", rows)
    models = ("same", "dark")
    arrays = run("score", *(tmp_path / f"{name}.npy" for name in ("real", *models)), "--json")
    call = ("score", *(root / name for name in ("real", *models)), *TOY, "--out", tmp_path / "out")
    encoded = run(*call, "--json")
    assert encoded.code == 0, encoded.err
    # The arrays do not say which encoder made them; all else is the same.
    expected = arrays.json
    for row in (*expected["rows"], expected["ranking"]["winner"]):
        row["encoder"] = "python:tests.features.toy:moments"
    assert encoded.json == expected
    kept = tmp_path / "out" / "features" / "dark.safetensors"
    stamp = kept.stat().st_mtime_ns
    assert run(*call, "--json").json == expected
    assert kept.stat().st_mtime_ns == stamp  # not encoded again
    mixed = run("score", tmp_path / "real.npy", root / "dark", *TOY, "--json").json
    assert mixed["rows"][0] == expected["rows"][1]
    assert [warning["code"] for warning in mixed["warnings"]] == ["encoder-mismatch"]


def test_an_array_of_images_scores_as_its_folder(run, folders, tmp_path):
    root, _ = folders
    pictures = [np.asarray(Image.open(path)) for path in sorted((root / "dark").iterdir())]
    np.savez(tmp_path / "dark.npz", arr_0=np.stack(pictures))
    found = [
        run("score", root / "real", path, *TOY, "--json").json
        for path in (root / "dark", tmp_path / "dark.npz")
    ]
    assert found[0] == found[1]


def test_folders_are_called_by_their_whole_name(run, folders, tmp_path):
    root, _ = folders
    for name in ("gan-0.2", "gan-0.8"):
        (tmp_path / name).symlink_to(root / "dark")
    found = run("score", root / "real", tmp_path / "gan-0.2", tmp_path / "gan-0.8", *TOY, "--json")
    assert [row["model"] for row in found.json["rows"]] == ["gan-0.2", "gan-0.8"]


def test_other_encoders_are_refused(run, folders, tmp_path):
    root, _ = folders
    run("features", root / "real", *TOY, "--out", tmp_path / "a.safetensors")
    flat = ("--encoder", "tests.features.toy:flat")
    run("features", root / "real", *flat, "--moments", tmp_path / "b.npz")
    for call in (
        ("score", tmp_path / "b.npz", tmp_path / "a.safetensors"),
        ("select", "--reference", tmp_path / "b.npz", tmp_path / "a.safetensors"),
        ("score", tmp_path / "b.npz", root / "dark", *TOY),
    ):
        done = run(*call)
        assert done.code == 2
        assert "encoder differ" in done.err


def test_live_arms(run, tmp_path):
    np.save(tmp_path / "real.npy", np.random.default_rng(0).normal(size=(2000, 4)))
    arms = [f"tests.features.toy:{name}" for name in ("bad", "model")]
    call = ("select", "--reference", tmp_path / "real.npy", *arms, "--batch", 20, "--json")
    done = run(*call, "--budget", 20_000)
    assert done.code == 0, done.err
    assert done.json["best"] == "tests.features.toy:model"
    assert list(done.json["samples"]) == arms
    real = np.load(tmp_path / "real.npy")
    live = {name: features.live_arm(name) for name in arms}
    direct = gb.select.run(live, real, batch=20, budget=20_000)
    assert done.json["samples"] == direct.samples
    no_budget = run(*call)
    assert no_budget.code == 2
    assert "--budget" in no_budget.err
    wrong = run(*call[:3], "tests.features.toy:NUMBER", "--budget", 10)
    assert wrong.code == 2
    assert "neither a function of (n, rng)" in wrong.err


def test_live_arms_behind_an_encoder(run, folders):
    root, _ = folders
    arms = [f"tests.features.toy:{name}" for name in ("dark", "light")]
    call = ("select", "--reference", root / "dark", *arms, *TOY, "--batch", 20)
    done = run(*call, "--budget", 4000, "--json")
    assert done.code == 0, done.err
    assert done.json["best"] == "tests.features.toy:dark"


def test_an_encoder_that_ends_the_program_is_no_success(run, folders, tmp_path):
    """Its exit status 0 would say that the features are there."""
    root, _ = folders
    leaves = ("--encoder", "tests.features.toy:leaves")
    for call in (
        ("features", root / "real", *leaves, "--out", tmp_path / "x.npy"),
        ("score", root / "real", root / "dark", *leaves),
    ):
        done = run(*call)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1
        assert "ended the program" in done.err


def test_scores_need_an_encoder_for_folders(run, folders):
    root, _ = folders
    done = run("score", root / "real", root / "dark")
    assert done.code == 2
    assert "real is a folder of images: add --encoder inception" in done.err
    done = run("features", root / "real", "--out", "x.npy")
    assert "real holds images: add --encoder" in done.err


SLOW = """
import time
from pathlib import Path
import numpy as np
calls = 0
def embed(batch):
    global calls
    calls += 1
    while calls > 8 and Path("hold").exists():  # until it is stopped, however busy the machine is
        time.sleep(0.02)
    return np.array([[image.mean(), image.std()] for image in batch])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_keeps_finished_blocks(folders, tmp_path):
    """Killed softly and hard, then finished: the bytes of an undisturbed run."""
    root, _ = folders
    (tmp_path / "slow_encoder.py").write_text(SLOW)
    (tmp_path / "hold").touch()
    code = (
        "import sys; from genbounds.features import _extract as e; e.BLOCK = 4;"
        "from genbounds.cli import program; program()"
    )
    command = [sys.executable, "-c", code, "features", str(root / "real"), "--encoder"]
    command += ["slow_encoder:embed", "--batch", "2", "--out"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    options = {"cwd": tmp_path, "env": environment, "stderr": subprocess.PIPE, "text": True}
    options["preexec_fn"] = listen_to_ctrl_c
    for kind, status in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = subprocess.Popen([*command, "x.safetensors"], **options)
        parts = tmp_path / "x.safetensors.parts"
        blocks = len(list(parts.glob("0*"))) if parts.exists() else 0
        while not parts.exists() or len(list(parts.glob("0*"))) < blocks + 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(kind)
        message = process.communicate()[1]
        assert process.returncode == status
        assert ("finished blocks are kept" in message) == (status == 130)
    (tmp_path / "hold").unlink()
    for name in ("x.safetensors", "y.safetensors"):
        subprocess.run([*command, name], check=True, **options)
    first, second = (tmp_path / f"{name}.safetensors" for name in "xy")
    assert first.read_bytes() == second.read_bytes()


def test_only_weights(run, tmp_path, monkeypatch):
    """What lies in the cache with another checksum is named; nothing is asked of a server."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    name = "pt_inception-2015-12-05-6726825d.pth"
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    (tmp_path / "hub" / "checkpoints" / name).write_bytes(b"part")
    done = run("features", "--download", "inception")
    assert done.code == 2
    assert name in done.err
    assert "6726825d" in done.err
