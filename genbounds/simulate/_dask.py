"""Pieces of work on Dask workers: of a cluster at an address, or of one made here."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from genbounds._process import searching_installed_packages_only
from genbounds.files import display
from genbounds.simulate._cluster import run_on
from genbounds.validation import InputError, how_to_install

Result = TypeVar("Result")

# Seconds until a scheduler without workers is an error: those of a batch system start late.
LONGEST_WAIT = 600

_RESUME = "what was kept in a folder is safe, the same call goes on from there."


def run_on_dask(
    function: Callable[..., Result],
    tasks: Sequence[tuple[Any, ...]],
    *,
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
        genbounds or has other versions, or a piece kills every worker that takes it.
    """
    with _client(jobs, scheduler) as client:
        yield from run_on(client, function, tasks, threads=threads, then=_RESUME)


@contextmanager
def _client(jobs: int, scheduler: str | None) -> Iterator[Any]:
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            f"backend 'dask' needs the package distributed: {how_to_install('dask')}."
        ) from None
    with ExitStack() as stack:
        security = None
        if scheduler is None:
            security = _temporary_credentials()
            # Nannies leave these in the environment of this process.
            left = dask.config.get("distributed.nanny.pre-spawn-environ", {})
            left = (*left, "PYTHONHASHSEED", "__DASK_PARENT_PID")
            stack.enter_context(searching_installed_packages_only(*left))
            stack.enter_context(_without_pages())
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # Whoever may talk to a scheduler may run code: other users of this machine too.
                security=security,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,  # a worker that dies is replaced
            )
            address = stack.enter_context(cluster).scheduler_address
        else:
            _check_reachable(scheduler)
            address = scheduler
        client = stack.enter_context(Client(address, security=security, set_as_default=False))
        try:
            client.wait_for_workers(1, timeout=LONGEST_WAIT)
        except TimeoutError:
            raise InputError(
                f"no worker joined the Dask scheduler within {LONGEST_WAIT} s: look for the reason "
                "in what the workers print, then run the same command again."
            ) from None
        yield client


def _temporary_credentials() -> Any:
    """Return a key and a certificate that exist only in the memory of this cluster."""
    from distributed.security import Security

    try:
        return Security.temporary()
    except ImportError:
        raise InputError(
            f"backend 'dask' needs the package cryptography: {how_to_install('dask')}."
        ) from None


@contextmanager
def _without_pages() -> Iterator[None]:
    """Have scheduler and workers serve no web pages: these would not be encrypted."""
    import dask

    pages: dict[str, list[str]] = {
        f"distributed.{role}.http.routes": [] for role in ("scheduler", "worker", "nanny")
    }
    with dask.config.set(pages):
        yield


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
