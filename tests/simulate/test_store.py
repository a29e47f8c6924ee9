"""What is kept survives kills, full disks and second runs; every refusal is one clear error.

The program runs as a real process in the slow tests, as a user would run, kill and repeat it; what
is quick is in `test_audit.py` (interruption in the same process, two runs on one folder).
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from genbounds import InputError
from genbounds.simulate import audit

STORE = "audit.sqlite"
pytestmark = pytest.mark.xdist_group("store")  # one process sets it up

# About a hundred pieces, two seconds of work.
COMMAND = ["audit", "o24.covariance", "m25.visit-sum-log", "--replications", "150", "--json"]

EMPTY = 24 * 1024  # bytes of the store before its first pieces


def start(out, *, preexec_fn=None, extra=()):
    code = "import sys; from genbounds.cli import program; sys.argv[0] = 'genbounds'; program()"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *COMMAND, "--out", str(out), *extra],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=preexec_fn,
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def kill(process):
    """Only this process: those that it started keep its pipes open for a while."""
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    process.stdout.close()
    process.stderr.close()


def results(folder):
    return {name: (folder / name).read_bytes() for name in ("results.json", "report.html")}


def wait_until(condition, *, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never happened"
        time.sleep(0.02)


def size_of_store(folder):
    return (folder / STORE).stat().st_size if (folder / STORE).exists() else 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    code, _, err = finish(start(folder))
    assert (code, err) == (0, "")
    return folder


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("extra", [(), ("--jobs", "2"), ("--backend", "dask")], ids=str)
def test_a_killed_program_goes_on_with_the_same_bytes(tmp_path, whole, extra):
    """kill -9 by process id in the middle, then the same command (for one, twice)."""
    process = start(tmp_path, extra=extra)
    wait_until(lambda: size_of_store(tmp_path) > EMPTY)
    kill(process)
    assert not (tmp_path / "results.json").exists()
    for _ in range(1 if extra else 2):
        code, _, err = finish(start(tmp_path, extra=extra))
        assert (code, err) == (0, "")
        assert results(tmp_path) == results(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([STORE, *results(whole)])


@pytest.mark.slow
def test_a_second_run_is_refused_and_a_killed_one_leaves_no_lock(tmp_path):
    first = start(tmp_path)
    wait_until(lambda: size_of_store(tmp_path) > EMPTY)
    os.kill(first.pid, signal.SIGSTOP)  # it holds the folder for as long as it lives
    code, out, err = finish(start(tmp_path))
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "another run uses this folder" in err
    kill(first)
    code, _, err = finish(start(tmp_path))
    assert (code, err) == (0, "")


def limit_files(size):
    def apply():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return apply


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [1, 40], ids=["at the start", "in the middle"])
def test_a_full_disk_is_one_error_and_nothing_is_lost(tmp_path, whole, kilobytes):
    """The kernel refuses writes beyond so many bytes of a file, as a full disk does."""
    code, out, err = finish(start(tmp_path, preexec_fn=limit_files(kilobytes * 1024)))
    assert code == 2, err
    assert out == ""
    assert err.count("\n") == 1
    assert "space" in err
    assert not (tmp_path / "results.json").exists()
    if size_of_store(tmp_path) > EMPTY:  # else there is nothing to go on with
        code, _, err = finish(start(tmp_path))
        assert (code, err) == (0, "")
        assert results(tmp_path) == results(whole)


@pytest.mark.slow
def test_a_full_disk_at_the_report_is_one_error(tmp_path, whole):
    """There is space for the store, not for the page: the results are whole, the page is absent."""
    files = results(whole)
    size = len(files["report.html"])
    assert size > len(files["results.json"])
    shutil.copy(whole / STORE, tmp_path)
    code, _, err = finish(start(tmp_path, preexec_fn=limit_files(size - 1)))
    assert code == 2
    assert err.count("\n") == 1
    assert "report.html: cannot be written" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == [STORE, "results.json"]


@contextmanager
def as_nobody():
    """Without the rights of root, which may write anywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("before", ["empty", "a finished run"])
def test_a_read_only_folder_is_one_error(before):
    audit(["m25.visit-sum-log"], replications=10)  # everything is imported as root
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if before != "empty":
            audit(["m25.visit-sum-log"], replications=10, out=folder)
        kept = {path.name: path.read_bytes() for path in folder.iterdir()}
        folder.chmod(0o555)
        for path in folder.iterdir():
            path.chmod(0o444)
        with as_nobody(), pytest.raises(InputError, match=r"choose a folder that can be written"):
            audit(["m25.visit-sum-log"], replications=10, out=folder)
        folder.chmod(0o755)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_a_store_of_another_version_is_refused(tmp_path, monkeypatch):
    import genbounds

    audit(["m25.visit-sum-log"], replications=10, out=tmp_path)
    monkeypatch.setattr(genbounds, "__version__", "9.9")
    with pytest.raises(
        InputError, match=r'another configuration \(genbounds "0\.[^"]+" there, "9\.9" asked\)'
    ):
        audit(["m25.visit-sum-log"], replications=10, out=tmp_path)
