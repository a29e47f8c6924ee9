"""Who does the work changes no digit; processes that die are replaced, or named in one error."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from genbounds import InputError
from genbounds.simulate import Workers, audit, interval_coverage
from tests.simulate.test_coverage import draw_normal, student

pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("cluster")  # one process sets it up
SLOW = pytest.mark.slow  # each starts processes that import the package

STUDY = {
    "patterns": ["o24.gaussian-mean", "m25.visit-sum-log"],
    "replications": 60,
    "seed": 5,
}


def document(**options):
    return json.dumps(audit(**STUDY, **options).to_dict())


@pytest.fixture(scope="module")
def alone():
    return document()


@pytest.fixture(scope="module")
def cluster():
    """A real cluster of two processes, as a machine of its own would run it."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as made:
        yield made


def pids(cluster):
    from distributed import Client

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        return set(client.run(os.getpid).values())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_no_digit_depends_on_the_workers(alone, backend):
    assert document(backend=backend, jobs=2) == alone


@SLOW
def test_a_cluster_at_an_address_twice(alone, cluster):
    for _ in range(2):
        assert document(backend="dask", scheduler=cluster.scheduler_address) == alone


class Stop(Exception):
    pass


@SLOW
@pytest.mark.parametrize("first", ["loky", "dask"])
def test_another_backend_takes_over(alone, cluster, tmp_path, first):
    """Interrupted on one, ended on the other; nothing is done twice."""
    where = {
        "loky": {"jobs": 2},
        "dask": {"backend": "dask", "scheduler": cluster.scheduler_address},
    }
    second = where.pop("dask" if first == "loky" else "loky")
    seen = []

    def stop(done, total, label):
        seen.append(total)
        if done == 20:
            raise Stop

    with pytest.raises(Stop):
        document(**where[first], out=tmp_path, progress=stop)
    assert document(**second, out=tmp_path, progress=lambda *a: seen.append(a)) == alone
    assert len(seen) == seen[0]


@SLOW
def test_a_killed_dask_worker_is_replaced(alone, cluster):
    before = pids(cluster)
    victim = min(before)
    count = 0

    def kill(done, total, label):
        nonlocal count
        count += 1
        if done == 5:
            os.kill(victim, signal.SIGKILL)

    options = {"backend": "dask", "scheduler": cluster.scheduler_address}
    assert document(**options, progress=kill) == alone
    assert count > 10
    after = pids(cluster)
    assert len(after) == 2
    assert victim not in after


def die_once(folder, index):
    """Kill the own process in the middle of the third piece, the first time."""
    mark = Path(folder) / "died"
    if index == 2 and not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return index, os.getpid()


@SLOW
def test_the_piece_of_a_worker_that_dies_runs_again(cluster, tmp_path):
    workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
    found = dict(workers.run(die_once, [(str(tmp_path), index) for index in range(6)]))
    assert {key: value[0] for key, value in found.items()} == {i: i for i in range(6)}
    assert found[2][1] != int((tmp_path / "died").read_text())


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def lose_the_connection():
    from distributed.comm import CommClosedError

    raise CommClosedError("the worker is gone")


@SLOW
def test_a_connection_that_is_lost_is_one_error(cluster):
    workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
    with pytest.raises(InputError, match=r"connection to the cluster.*was lost: what was kept"):
        list(workers.run(lose_the_connection, [(), ()]))


@SLOW
def test_a_piece_that_kills_every_worker_is_one_error(cluster, monkeypatch):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
    with pytest.raises(InputError, match="killed 1 workers"):
        list(workers.run(die, [()]))


@SLOW
def test_a_killed_process_is_one_error():
    with pytest.raises(InputError, match="fewer jobs"):
        list(Workers(jobs=2).run(die, [(), ()]))


def blas_threads():
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    return max(pool["num_threads"] for pool in threadpool_info())


@SLOW
@pytest.mark.parametrize("options", [{"jobs": 1}, {"jobs": 2}, {"backend": "dask"}], ids=str)
def test_every_process_has_the_blas_threads_asked_for(options, cluster):
    if "backend" in options:
        options = options | {"scheduler": cluster.scheduler_address}
    found = Workers(**options, threads=2).run(blas_threads, [(), ()])
    assert [count for _, count in found] == [2, 2]


@SLOW
def test_other_versions_on_a_worker_are_refused(cluster, monkeypatch):
    there = np.__version__
    monkeypatch.setattr(np, "__version__", "1.0")
    workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
    with pytest.raises(InputError, match=rf"numpy {there} there, 1\.0 here"):
        list(workers.run(blas_threads, [()]))


@SLOW
def test_a_worker_without_the_package_is_named(tmp_path):
    """It would die of the first piece, and a study without workers wait for ever."""
    from distributed import LocalCluster

    (tmp_path / "without.py").write_text("import sys\nsys.modules['genbounds'] = None\n")
    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as empty:
        address = empty.scheduler_address
        command = [sys.executable, "-m", "dask", "worker", address, "--nthreads", "1"]
        command += ["--no-nanny", "--no-dashboard", "--preload", "without.py"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as worker:
            try:
                workers = Workers(backend="dask", scheduler=address)
                with pytest.raises(InputError, match=r"the Dask worker tcp://\S+ cannot import"):
                    list(workers.run(blas_threads, [()]))
            finally:
                worker.kill()


@SLOW
def test_a_scheduler_without_workers_is_named(monkeypatch):
    from distributed import Client, LocalCluster

    def wait(client, count, timeout):
        raise TimeoutError

    monkeypatch.setattr(Client, "wait_for_workers", wait)
    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as empty:
        workers = Workers(backend="dask", scheduler=empty.scheduler_address)
        with pytest.raises(InputError, match=r"no worker joined the Dask scheduler within \d+ s"):
            list(workers.run(blas_threads, [()]))


def test_a_scheduler_that_does_not_answer_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for address in (f"tcp://127.0.0.1:{port}", "nonsense"):
        workers = Workers(backend="dask", scheduler=address)
        with pytest.raises(InputError, match=f"`scheduler` '{address}' does not answer"):
            list(workers.run(blas_threads, [()]))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"jobs": 0}, "jobs"),
        ({"threads": 0}, "threads"),
        ({"backend": "ray"}, "'loky', 'dask'"),
        ({"scheduler": "tcp://x:1"}, "choose backend 'dask'"),
        ({"backend": "dask", "scheduler": "tcp://x:1", "jobs": 2}, "`jobs`"),
    ],
)
def test_workers_that_make_no_sense_are_refused(options, match):
    with pytest.raises(InputError, match=match):
        Workers(**options)


def test_interval_coverage_is_kept_and_goes_on(tmp_path):
    options = {"replications": 20, "seed": 2, "level": 0.9, "arm": "normal", "chunk": 3}
    plain = interval_coverage(student(0.9), draw_normal, 2.0, **options)
    calls = []

    def stop(done, total, label):
        calls.append(total)
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        interval_coverage(student(0.9), draw_normal, 2.0, **options, out=tmp_path, progress=stop)
    again = interval_coverage(
        student(0.9), draw_normal, 2.0, **options, out=tmp_path,
        progress=lambda *a: calls.append(a),
    )  # fmt: skip
    assert again == plain
    assert len(calls) == calls[0] == 7
    with pytest.raises(InputError, match="`arm`"):
        interval_coverage(student(0.9), draw_normal, 2.0, **(options | {"arm": ""}), out=tmp_path)
