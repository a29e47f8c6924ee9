"""Workers run nobody else's code: no file of the working folder, no stranger's on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from genbounds.simulate import audit

PROGRAM = "from genbounds.cli import program; program()"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_workers_import_nothing_from_the_working_folder(tmp_path, backend):
    """The program itself does not (-P); its workers used to, as ``python -m`` puts it first."""
    for name in ("joblib", "distributed", "cloudpickle", "threadpoolctl", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"open('ran', 'a').write('{name} ')\n" + TAKE_OVER)
    arguments = ["audit", "o24.gaussian-mean", "--replications", "20", "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *arguments, "--backend", backend, "--json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    ran = (tmp_path / "ran").read_text() if (tmp_path / "ran").exists() else ""
    assert ran == ""
    assert done.returncode == 0, done.stderr


# A file of that name that does no harm: it steps aside for the real one.
TAKE_OVER = """
import sys
here = sys.path.pop(0)
del sys.modules[__name__]
sys.modules[__name__] = __import__(__name__)
sys.path.insert(0, here)
"""


def listening():
    """Return address and port of every socket on which this process or a child of it listens."""
    psutil = pytest.importorskip("psutil")
    me = psutil.Process()
    return {
        (connection.laddr.ip, connection.laddr.port)
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def page(port):
    """Return what a browser would get."""
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        connection.settimeout(5.0)
        try:
            return connection.recv(100)
        except OSError:
            return b""


STRANGER = """
import os, sys
from distributed import Client
with Client(sys.argv[1], timeout=5, set_as_default=False) as client:
    print("RAN", client.submit(os.getpid).result(timeout=5), flush=True)
"""


@pytest.mark.slow
def test_a_stranger_cannot_run_code_in_a_cluster_made_here():
    """Another user of the machine may reach the ports; without the key he gets nowhere."""
    pytest.importorskip("distributed")
    before = listening()
    seen = {}

    def look(done, total, label):
        if seen:
            return
        seen["open"] = listening() - before
        seen["pages"] = [page(port) for _, port in seen["open"]]
        strangers = [
            subprocess.Popen(
                [sys.executable, "-c", STRANGER, f"{scheme}://127.0.0.1:{port}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for _, port in seen["open"]
            for scheme in ("tcp", "tls")
        ]
        end = time.monotonic() + 15.0  # a client without the key waits for an answer
        for stranger in strangers:
            with suppress(subprocess.TimeoutExpired):
                stranger.wait(timeout=max(end - time.monotonic(), 0.1))
            stranger.kill()
            seen["ran"] = seen.get("ran", "") + stranger.communicate()[0]

    environment = dict(os.environ)
    audit(["o24.gaussian-mean"], replications=20, backend="dask", jobs=1, progress=look)
    assert len(seen["open"]) >= 2  # scheduler and worker
    assert {address for address, _ in seen["open"]} == {"127.0.0.1"}
    assert seen["ran"] == ""
    assert not any(b"200 OK" in answer for answer in seen["pages"])
    assert dict(os.environ) == environment


# A worker's process imports the program again: without the guard it would start another worker.
DASK = """from dask.__main__ import main
if __name__ == "__main__":
    main()"""


@pytest.mark.nightly
@pytest.mark.slow
def test_the_documented_cluster(tmp_path):
    """The script of docs/studies.md, on one machine instead of SLURM's."""
    pytest.importorskip("distributed")
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    script = Path(__file__).parents[2] / "docs" / "_static" / "slurm.sh"
    recipe = script.read_text().removeprefix("#!/bin/bash")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for old, new in {
        "8786": str(port), "--interface ib0": "--host 127.0.0.1", "$(hostname -i)": "127.0.0.1",
        "srun --ntasks=63 ": "", '"$SLURM_SUBMIT_DIR/results"': "results",
        "genbounds audit": "timeout 180 genbounds audit o24.gaussian-mean --replications 20",
    }.items():  # fmt: skip
        assert old in recipe
        recipe = recipe.replace(old, new)
    (tmp_path / "bin").mkdir()
    for name, code in {
        "genbounds": PROGRAM, "dask": DASK
    }.items():  # fmt: skip
        script = tmp_path / "bin" / name
        script.write_text(f"#!{sys.executable}\n{code}\n")
        script.chmod(0o755)
    # Into a file, not a pipe: a worker that outlives its nanny for a moment would hold a pipe open.
    log = tmp_path / "log"
    with log.open("w") as out:
        done = subprocess.run(
            ["bash", "-c", recipe + "\nstatus=$?; kill -9 $(jobs -p); exit $status"],
            cwd=tmp_path, stdout=out, stderr=out, timeout=240,
            env=os.environ
            | {
                "HOME": str(tmp_path),
                "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)]),
            },
        )  # fmt: skip
    assert done.returncode == 0, log.read_text()
    assert (tmp_path / "results" / "results.json").exists()
    assert not list(tmp_path.glob("tmp.*"))  # the certificate is gone
