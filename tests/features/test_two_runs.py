"""Two runs on one output: one of them is refused; what was kept is of one run, or is not used."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from genbounds import features, files
from genbounds.validation import InputError
from tests.features.conftest import N
from tests.features.test_extract import Toy
from tests.refusal import refused

HELD = """
import time
from pathlib import Path
import numpy as np
calls = 0
def embed(batch):
    global calls
    calls += 1
    Path("started").touch()
    while calls > batches():
        time.sleep(0.02)
    return np.array([[image.mean(), image.std()] for image in batch])

def batches():
    try:  # it may go at any moment
        return int(Path("hold").read_text())
    except FileNotFoundError:
        return 1_000_000

def other(batch):
    return -embed(batch)
"""


def command(*arguments):
    code = "import sys; from genbounds.cli import program; program()"
    return [sys.executable, "-c", code, *map(str, arguments)]


@pytest.fixture
def start(tmp_path, media):
    """Start the program in a folder with encoders that wait while a file `hold` is there."""
    (tmp_path / "held.py").write_text(HELD)
    (tmp_path / "hold").write_text("3")  # batches before it waits
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    running = []

    def call(*arguments):
        process = subprocess.Popen(
            command(*arguments),
            cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        return process

    yield call
    (tmp_path / "hold").unlink(missing_ok=True)
    for process in running:
        process.kill()
        process.communicate()


def wait_for(path):
    end = time.monotonic() + 60.0
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("second", ["embed", "other"])
def test_a_second_run_is_refused_while_the_first_works(media, tmp_path, start, second):
    call = ("--batch", 2, "--out", "x.safetensors")
    first = start("features", media / "folder", "--encoder", "held:embed", *call)
    wait_for(tmp_path / "started")
    late = start("features", media / "folder", "--encoder", f"held:{second}", *call)
    out, err = late.communicate(timeout=60)
    assert (late.returncode, out, err.count("\n")) == (2, "", 1), err
    assert "x.safetensors" in err
    (tmp_path / "hold").unlink()
    assert first.wait(timeout=60) == 0
    assert files.read_metadata(tmp_path / "x.safetensors")["encoder"] == "python:held:embed"
    assert files.read_features(tmp_path / "x.safetensors").shape == (N, 2)


@pytest.mark.slow
def test_statistics_in_one_file_likewise(media, tmp_path, start):
    call = ("features", media / "folder", "--encoder")
    first = start(*call, "held:embed", "--out", "a.npy", "--moments", "s.npz", "--batch", 2)
    wait_for(tmp_path / "started")
    late = start(*call, "held:other", "--moments", "s.npz", "--batch", 2)
    assert late.wait(timeout=60) == 2
    (tmp_path / "hold").unlink()
    assert first.wait(timeout=60) == 0
    assert sorted(path.name for path in tmp_path.glob("[as]*.np*")) == ["a.npy", "s.npz"]


@pytest.mark.slow
def test_scores_of_folders_in_one_folder_likewise(media, tmp_path, start):
    shutil.copytree(media / "folder", tmp_path / "real", symlinks=True)
    (tmp_path / "hold").write_text("0")
    call = ("score", tmp_path / "real", media / "folder", "--out", "out", "--encoder")
    first = start(*call, "held:embed")
    wait_for(tmp_path / "started")
    late = start(*call, "held:other")
    _, err = late.communicate(timeout=60)
    assert (late.returncode, err.count("\n")) == (2, 1), err
    (tmp_path / "hold").unlink()
    first.communicate(timeout=60)
    kept = tmp_path / "out" / "features"
    encoders = {files.read_metadata(path)["encoder"] for path in kept.glob("*.safetensors")}
    assert encoders == {"python:held:embed"}
    assert not (kept / ".lock").exists()


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_lock(media, tmp_path, start):
    call = ("features", media / "folder", "--encoder", "held:embed", "--out", "x.npy")
    first = start(*call, "--batch", 2)
    wait_for(tmp_path / "started")
    first.send_signal(signal.SIGKILL)
    first.wait()
    (tmp_path / "hold").unlink()
    again = start(*call, "--batch", 2)
    assert again.wait(timeout=60) == 0
    assert not (tmp_path / "x.npy.parts").exists()


def test_a_pipe_for_a_lock_is_not_waited_for(media, tmp_path):
    (tmp_path / "x.npy.parts").mkdir()
    os.mkfifo(tmp_path / "x.npy.parts" / ".lock")
    with refused("x.npy.parts", "cannot be written"):
        features.extract(features.open_source([media / "folder"]), Toy(), out=tmp_path / "x.npy")


def interrupted(source, out, *, fail_at=4, **options):
    with pytest.raises(KeyboardInterrupt):
        features.extract(source, Toy(fail_at=fail_at), out=out, batch=2, block=2, **options)


def test_blocks_are_stamped(media, tmp_path):
    """A block of another run is refused, wherever it came from; before, it became a part."""
    source = features.open_source([media / "folder"])
    interrupted(source, tmp_path / "x.npy")
    other = Toy(description={"encoder": "other"}, fail_at=4)
    with pytest.raises(KeyboardInterrupt):
        features.extract(source, other, out=tmp_path / "y.npy", batch=2, block=2)
    foreign = sorted((tmp_path / "y.npy.parts").glob("0*"))[1]
    shutil.copy(foreign, tmp_path / "x.npy.parts" / foreign.name)
    with refused("x.npy.parts"):
        features.extract(source, Toy(), out=tmp_path / "x.npy", batch=2, block=2)
    interrupted(source, tmp_path / "z.npy")
    interrupted(source, tmp_path / "w.npy")
    assert len(list((tmp_path / "z.npy.parts").iterdir())) == 4


@pytest.mark.parametrize("at", [0, -1])
def test_a_damaged_block_is_computed_again(media, tmp_path, caplog, at):
    source = features.open_source([media / "folder"])
    features.extract(source, Toy(), out=tmp_path / "whole.npy", batch=2, block=2)
    interrupted(source, tmp_path / "x.npy")
    block = sorted((tmp_path / "x.npy.parts").glob("0*"))[2]
    content = bytearray(block.read_bytes())
    content[at] ^= 1
    block.write_bytes(content)
    encoder = Toy()
    result = features.extract(source, encoder, out=tmp_path / "x.npy", batch=2, block=2)
    assert result.resumed == 4
    assert block.name in caplog.text
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_damaged_statistics_are_computed_again(media, tmp_path, caplog):
    source = features.open_source([media / "folder"])
    features.extract(source, Toy(), moments=tmp_path / "whole.npz", batch=2, block=2)
    with pytest.raises(KeyboardInterrupt):
        features.extract(source, Toy(fail_at=4), moments=tmp_path / "x.npz", batch=2, block=2)
    kept = tmp_path / "x.npz.parts" / "moments.npz"
    content = bytearray(kept.read_bytes())
    content[100] ^= 1
    kept.write_bytes(content)
    assert (
        features.extract(source, Toy(), moments=tmp_path / "x.npz", batch=2, block=2).resumed == 0
    )
    assert "moments.npz" in caplog.text
    assert (tmp_path / "x.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_an_input_that_changes_is_refused(media, tmp_path):
    folder = tmp_path / "folder"
    shutil.copytree(media / "folder", folder, symlinks=True)

    class Meanwhile(Toy):
        def encode(self, batch):
            os.utime(folder / "00.png", (len(self.batches) + 1,) * 2)
            return super().encode(batch)

    source = features.open_source([folder])
    with refused("input"):
        features.extract(source, Meanwhile(), out=tmp_path / "x.npy", batch=2, block=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]
    (folder / "00.png").unlink()
    with refused("00.png"):
        features.extract(source, Toy(), out=tmp_path / "x.npy")


def test_locks_in_one_process(tmp_path):
    """The public face of the lock is `extract`; two threads of one program are two runs."""
    import threading

    folder, outcomes = tmp_path / "rows.npy", []
    np.save(folder, np.ones((40, 2)))

    class Slow(Toy):
        takes = None

        def prepare(self, item):
            return item

        def encode(self, batch):
            time.sleep(0.2)
            return np.stack(batch)

    def run():
        try:
            features.extract(
                features.open_source([folder]), Slow(takes=None), out=tmp_path / "x.npy", batch=8
            )
            outcomes.append("done")
        except InputError:
            outcomes.append("refused")

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "refused", "refused", "refused"]
    assert json.dumps(np.load(tmp_path / "x.npy").tolist()) == json.dumps([[1.0, 1.0]] * 40)
    assert sorted(Path(tmp_path).iterdir()) == [folder, tmp_path / "x.npy"]
