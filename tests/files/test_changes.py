"""Files that another program changes while they are read: one line, or one version's numbers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from genbounds import files
from tests.files.made import IDS, WRITERS, X, written
from tests.refusal import refused
from tests.scratch import keep_in_memory

CUT_AFTERWARDS = """
import os, sys
import numpy as np
from genbounds import files

rows = files.read_features(sys.argv[1])
os.truncate(sys.argv[1], 1000)
print(float(np.asarray(rows)[-1, -1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".pt"])
def test_a_file_that_is_cut_after_it_was_read_does_no_harm(tmp_path, suffix):
    """72 MB, more than is kept in memory. A map of the file itself would end in SIGBUS."""
    rows, path = np.full((9_000, 1_000), 3.0), tmp_path / f"x{suffix}"
    if suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file({"features": rows}, path)
    elif suffix == ".pt":
        torch = pytest.importorskip("torch")
        torch.save(torch.from_numpy(rows), path)
    else:
        np.save(path, rows) if suffix == ".npy" else np.savez(path, features=rows)
    command = [sys.executable, "-c", CUT_AFTERWARDS, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3.0\n"), done.stderr


@pytest.mark.parametrize(("writer", "suffix"), WRITERS, ids=IDS)
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, writer, suffix):
    """Between its first byte and its last, here when the numbers are about to be looked at."""
    keep_in_memory(monkeypatch, 16)
    path = written(tmp_path, writer, suffix)
    content = path.read_bytes()

    def disturbed(function):
        def call(*arguments, **options):
            path.write_bytes(content)
            os.utime(path, (1, 1))  # however coarse the clock of the file system is
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(tempfile, "TemporaryFile", disturbed(tempfile.TemporaryFile))
    if suffix in (".pt", ".pth"):
        torch = pytest.importorskip("torch")
        monkeypatch.setattr(torch, "load", disturbed(torch.load))
    with refused(path.name, "changed"):
        files.read(path)


def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path, monkeypatch):
    keep_in_memory(monkeypatch, 16)
    path, scratch = tmp_path / "x.npy", tempfile.TemporaryFile
    np.save(path, X)

    def cut(**options):
        os.truncate(path, 200)
        return scratch(**options)

    monkeypatch.setattr(tempfile, "TemporaryFile", cut)
    with refused("x.npy", "changed"):
        files.read(path)


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path):
    """Writers that rename, as ours do, disturb no reader."""
    path = tmp_path / "x.npy"
    np.save(path, X)
    rows = files.read_features(path)
    files.atomic_write(path, b"another content")
    assert (rows == X).all()


def test_scratch_files_are_gone(tmp_path, monkeypatch):
    keep_in_memory(monkeypatch, 16)
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # what Python found before
    for writer, suffix in WRITERS:
        files.read(written(tmp_path, writer, suffix))
        assert list(folder.iterdir()) == []


WHILE_WRITTEN = """
import sys
from genbounds.cli import main
sys.exit(main(["score", sys.argv[1], sys.argv[2], "--json"]))
"""

WRITER = """
import sys
import numpy as np
rng = np.random.default_rng(0)
one, two = (rng.normal(size=(20_000, 60)) * s for s in (1.0, 2.0))
with open(sys.argv[1], "r+b") as file:
    while True:
        for rows in (one, two):
            file.seek(128)
            file.write(rows.tobytes())
            file.flush()
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_scores_of_a_file_that_is_written_all_the_time(tmp_path):
    """Ten tries against a writer that never rests: the score of a whole version, or one line."""
    import json

    rng = np.random.default_rng(0)
    one, two = (rng.normal(size=(20_000, 60)) * s for s in (1.0, 2.0))
    np.save(tmp_path / "real.npy", rng.normal(size=(2_000, 60)))
    path = tmp_path / "x.npy"

    def score():
        command = [sys.executable, "-c", WHILE_WRITTEN, tmp_path / "real.npy", path]
        return subprocess.run(command, capture_output=True, text=True)

    values = set()
    for rows in (one, two):
        np.save(path, rows)
        values.add(json.loads(score().stdout)["rows"][0]["value"])
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
    try:
        outcomes = [score() for _ in range(10)]
    finally:
        writer.kill()
        writer.wait()
    for done in outcomes:
        if done.returncode == 0:
            assert json.loads(done.stdout)["rows"][0]["value"] in values
        else:
            assert done.returncode == 2, done.stderr
            assert done.stderr.count("\n") == 1
            assert str(Path(path)) in done.stderr
