"""Pieces of work on Dask workers: of a cluster at an address, or of one made here."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any, TypeVar

from genbounds._process import blas_threads, searching_installed_packages_only, versions
from genbounds._text import display
from genbounds.validation import InputError, how_to_install

Result = TypeVar("Result")

# Seconds until a scheduler without workers is an error: those of a batch system start late.
LONGEST_WAIT = 600

# Enough pieces wait at the scheduler to keep every thread busy; the rest stay here, so that the
# memory of the scheduler does not grow with the work.
_QUEUED_PER_THREAD = 4
_LEAST_QUEUED = 64


def run_on_dask(
    function: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    jobs: int,
    scheduler: str | None,
    threads: int,
) -> Generator[tuple[int, Result], None, None]:
    """Yield ``(index, function(*tasks[index]))`` as the results come, in any order.

    Parameters
    ----------
    function : callable
    tasks : sequence of tuple
        Arguments of every call.
    jobs : int
        Workers of the local cluster, where `scheduler` is None.
    scheduler : str or None
        Address of a running scheduler.
    threads : int
        BLAS threads of each worker while it works.

    Raises
    ------
    InputError
        If Dask is not installed, the scheduler cannot be reached or gets no worker, a worker lacks
        genbounds or has other versions, a piece kills every worker that takes it, or the
        connection is lost.
    """
    with _client(jobs, scheduler) as client, _losses_explained():
        from distributed import as_completed

        _check_workers(client)
        waiting, indices, here = enumerate(tasks), dict[Any, int](), versions()
        finished = as_completed(loop=client.loop)

        def submit(count: int) -> None:
            for index, task in islice(waiting, count):
                given = (function, task, threads, here)
                future = client.submit(_guarded, *given, pure=False, retries=0)
                indices[future] = index
                finished.add(future)

        submit(max(_LEAST_QUEUED, _QUEUED_PER_THREAD * sum(client.nthreads().values())))
        for future in finished:
            yield indices.pop(future), future.result()
            future.release()
            submit(1)


@contextmanager
def _client(jobs: int, scheduler: str | None) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"backend 'dask' needs the package distributed: {how_to_install('dask')}."
        ) from None
    with ExitStack() as stack:
        security = None
        if scheduler is None:
            security = _temporary_credentials()
            scheduler = stack.enter_context(_local_cluster(jobs, security)).scheduler_address
        else:
            _check_reachable(scheduler)
        client = stack.enter_context(Client(scheduler, security=security, set_as_default=False))
        try:
            client.wait_for_workers(1, timeout=LONGEST_WAIT)
        except TimeoutError:
            raise InputError(
                f"no worker joined the Dask scheduler within {LONGEST_WAIT} s: look for the reason "
                "in what the workers print, then run the same command again."
            ) from None
        yield client


@contextmanager
def _local_cluster(jobs: int, security: Any) -> Iterator[Any]:
    import dask
    from distributed import LocalCluster

    # Nannies leave these in the environment of this process.
    left = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    # No web pages of scheduler and workers: these would not be encrypted.
    pages: dict[str, list[str]] = {
        f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker", "nanny")
    }
    with (
        searching_installed_packages_only(*left, "PYTHONHASHSEED", "__DASK_PARENT_PID"),
        dask.config.set(pages),
        LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            # Whoever may talk to a scheduler may run code: other users of this machine too.
            security=security,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # a worker that dies is replaced
        ) as cluster,
    ):
        yield cluster


def _temporary_credentials() -> Any:
    """Return a key and a certificate that exist only in the memory of this cluster."""
    from distributed.security import Security

    try:
        return Security.temporary()
    except ImportError:
        raise InputError(
            f"backend 'dask' needs the package cryptography: {how_to_install('dask')}."
        ) from None


def _check_reachable(scheduler: str) -> None:
    """Raise at once if nothing answers: a client would wait long and fail obscurely."""
    from distributed.comm import get_address_host_port

    try:
        host, port = get_address_host_port(scheduler, strict=True)
        socket.create_connection((host, port), timeout=10.0).close()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{scheduler!r} does not answer ({display(error)}): give the address that "
            "`dask scheduler` prints, such as tls://10.0.0.1:8786.",
            argument="scheduler",
        ) from None


def _check_workers(client: Any) -> None:
    """Raise if a worker has another genbounds, NumPy or SciPy, or lacks one.

    A worker would die of the first piece of a package that it lacks. The question is a function
    within a function, which is sent as it is, not by name.
    """

    def installed(names: tuple[str, ...]) -> dict[str, str] | str:
        from importlib import import_module

        try:
            return {name: str(import_module(name).__version__) for name in names}
        except ImportError as error:
            return str(error)

    here = versions()
    for worker, there in client.run(installed, tuple(here)).items():
        if isinstance(there, str):
            raise InputError(
                f"the Dask worker {display(worker)} cannot import genbounds ({display(there)}): "
                f"install there the version of this machine, {here['genbounds']}."
            )
        _check_versions(f"the Dask worker {display(worker)}", there, here)


def _check_versions(worker: str, there: dict[str, str], here: dict[str, str]) -> None:
    differences = ", ".join(
        f"{name} {display(there[name])} there, {version} here"
        for name, version in here.items()
        if there[name] != version
    )
    if differences:
        raise InputError(f"{worker} runs other versions ({differences}): make them the same.")


def _guarded(
    function: Callable[..., Result], task: tuple[Any, ...], threads: int, expected: dict[str, str]
) -> Result:
    """Run on a worker: no other versions, no other number of threads than asked."""
    _check_versions("a Dask worker", versions(), expected)
    with blas_threads(threads):
        return function(*task)


@contextmanager
def _losses_explained() -> Iterator[None]:
    """Say in one line that workers or the connection were lost, and what to do then."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    resume = "what was kept in a folder is safe, the same call goes on from there."
    try:
        yield
    except KilledWorker as error:
        raise InputError(
            f"a piece of work killed {error.allowed_failures + 1} workers in a row, "
            f"perhaps because memory ran out: ask for workers with more; {resume}"
        ) from None
    except (CancelledError, CommClosedError):
        raise InputError(
            f"the connection to the cluster, or what one of its workers held, was lost: {resume}"
        ) from None
