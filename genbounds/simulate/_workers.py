"""Who does the work: this process, several processes of joblib, or Dask workers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from genbounds._process import blas_threads, searching_installed_packages_only, silenced, versions
from genbounds._text import display
from genbounds.validation import InputError, check_choice, check_count, check_installed

Result = TypeVar("Result")

BACKENDS = ("loky", "dask")

_IDLE_SECONDS = 20

# Seconds until a scheduler without workers is an error: those of a batch system start late.
LONGEST_WAIT = 600

# Enough pieces wait at the scheduler to keep every thread busy; the rest stay here, so that the
# memory of the scheduler does not grow with the work.
_QUEUED_PER_THREAD = 4
_LEAST_QUEUED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who does the work. Results do not depend on it, except on `threads`.

    Parameters
    ----------
    jobs : int
        Processes on this machine; 1 with "loky" works in the calling one.
    backend : {"loky", "dask"}
        Processes of joblib, or Dask workers: a local cluster of `jobs` processes, or the one at
        `scheduler`. A Dask worker that dies is replaced and its pieces run again.
    scheduler : str, optional
        Address of a running Dask scheduler, such as ``"tls://10.0.0.1:8786"``.
    threads : int
        BLAS threads of each process. More than one can change the last digit of a result.

    Raises
    ------
    InputError
        If a value is not legal, or `scheduler` goes with another backend or with `jobs`.
    """

    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        check_count("jobs", self.jobs)
        check_count("threads", self.threads)
        check_choice("backend", self.backend, BACKENDS)
        if self.scheduler is None:
            return
        if self.backend != "dask":
            raise InputError(
                f"is for clusters; backend {self.backend!r} has none: choose backend 'dask'.",
                argument="scheduler",
            )
        if self.jobs != 1:
            raise InputError(
                f"is decided by the cluster where a scheduler is given: leave it out; "
                f"got {self.jobs}.",
                argument="jobs",
            )

    def run(
        self, function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield ``(index, function(*tasks[index]))`` as the results come, in any order.

        Raises
        ------
        InputError
            If workers keep dying, Dask is not installed, the scheduler cannot be reached or gets no
            worker, a worker lacks genbounds or has other versions, or the connection is lost.
        """
        if self.backend == "dask":
            yield from _dask(self, function, tasks)
        elif self.jobs > 1 and len(tasks) > 1:
            yield from _loky(self, function, tasks)
        else:
            with blas_threads(self.threads):
                for index, task in enumerate(tasks):
                    yield index, function(*task)


def _loky(
    workers: Workers, function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]
) -> Generator[tuple[int, Result], None, None]:
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # Workers whose master was killed notice nothing: they leave when idle for so long.
    options = {"inner_max_num_threads": workers.threads, "idle_worker_timeout": _IDLE_SECONDS}
    with searching_installed_packages_only(), parallel_config(backend="loky", **options):
        pool = Parallel(n_jobs=workers.jobs, return_as="generator_unordered")
        results = pool(delayed(_numbered)(function, *task) for task in enumerate(tasks))
        try:
            # Not `yield from`: on its way out it would close `results` with a warning.
            for result in results:  # noqa: UP028
                yield result
        except TerminatedWorkerError:
            raise InputError(
                "a worker process was killed, perhaps because memory ran out: ask for fewer "
                "jobs; what was kept in a folder is safe, the same call goes on from there."
            ) from None
        finally:
            with silenced(UserWarning):  # that work was cut short
                results.close()


def _numbered(function: Callable[..., Any], index: int, task: tuple[Any, ...]) -> tuple[int, Any]:
    return index, function(*task)


# --- Dask: workers of a cluster at an address, or of one made here ------------------------------


def _dask(
    workers: Workers, function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]
) -> Generator[tuple[int, Result], None, None]:
    with _client(workers.jobs, workers.scheduler) as client, _losses_explained():
        from distributed import as_completed

        _check_workers(client)
        waiting, indices, here = enumerate(tasks), dict[Any, int](), versions()
        finished = as_completed(loop=client.loop)

        def submit(count: int) -> None:
            for index, task in islice(waiting, count):
                given = (function, task, workers.threads, here)
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
    packages = ("distributed",) if scheduler else ("distributed", "cryptography")
    check_installed("backend 'dask'", "dask", *packages)
    from distributed import Client
    from distributed.security import Security

    with ExitStack() as stack:
        security = None
        if scheduler is None:
            security = Security.temporary()  # key and certificate in the memory of this cluster
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
