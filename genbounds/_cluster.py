"""Pieces of work on the workers of a Dask cluster that a client is connected to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from genbounds._process import blas_threads
from genbounds._text import display
from genbounds._versions import versions
from genbounds.validation import InputError

Result = TypeVar("Result")

# Enough pieces wait at the scheduler to keep every thread busy; the rest stay here, so that the
# memory of the scheduler does not grow with the work.
_QUEUED_PER_THREAD = 4
_LEAST_QUEUED = 64


def active_client() -> Any:
    """Return the client of Dask on which this thread computes by default; None without one."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    try:
        distributed.get_worker()
    except ValueError:
        return None if client.asynchronous else client
    return None  # a piece of work that waits for others keeps its thread from them


def run_on(
    client: Any,
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    *,
    threads: int,
    then: str,
) -> Generator[tuple[int, Result], None, None]:
    """Yield ``(index, function(*task))`` for all tasks as the results come, in any order.

    Parameters
    ----------
    client : distributed.Client
    function : callable
    tasks : iterable of tuple
        Arguments of every call; futures of this client among them, or in tuples, are what they
        stand for.
    threads : int
        BLAS threads of each worker while it works.
    then : str
        What to do after a failure, in its message.

    Raises
    ------
    InputError
        If a worker lacks genbounds or has other versions, a piece kills every worker that takes it,
        or the connection, or a worker that held a future, is lost.
    """
    from distributed import CancelledError, KilledWorker, as_completed

    _require_package(client)
    expected = versions()
    coming = enumerate(tasks)
    queued = max(_LEAST_QUEUED, _QUEUED_PER_THREAD * sum(client.nthreads().values()))
    indices: dict[Any, int] = {}
    finished = as_completed(loop=client.loop)

    def submit() -> None:
        for index, task in coming:
            future = client.submit(
                _guarded, function, task, threads, expected, pure=False, retries=0
            )
            indices[future] = index
            finished.add(future)
            return

    for _ in range(queued):
        submit()
    for future in finished:
        try:
            result = future.result()
        except KilledWorker as error:
            raise InputError(
                f"a piece of work killed {error.allowed_failures + 1} workers in a row, "
                f"perhaps because memory ran out: ask for workers with more; {then}"
            ) from None
        except CancelledError:
            raise InputError(
                f"the connection to the cluster, or what one of its workers held, was lost: {then}"
            ) from None
        yield indices.pop(future), result
        future.release()
        submit()


def _require_package(client: Any) -> None:
    """Raise if a worker cannot import genbounds: it would die of the first piece it unpacks.

    The question is a function within a function, which is sent as it is, not by name.
    """

    def reason() -> str | None:
        from importlib import import_module

        try:
            import_module("genbounds")
        except ImportError as error:
            return str(error)
        return None

    for worker, why in client.run(reason).items():
        if why is not None:
            raise InputError(
                f"the Dask worker {display(worker)} cannot import genbounds ({display(why)}): "
                "install there the "
                f"version of this machine, {versions()['genbounds']}."
            )


def _guarded(
    function: Callable[..., Result],
    task: tuple[Any, ...],
    threads: int,
    expected: dict[str, str],
) -> Result:
    """Run on a worker: no other versions, no other number of threads than asked."""
    here = versions()
    if here != expected:
        differences = ", ".join(
            f"{name} {here[name]} there, {expected[name]} here"
            for name in expected
            if here[name] != expected[name]
        )
        raise InputError(f"a Dask worker runs other versions ({differences}): make them the same.")
    with blas_threads(threads):
        return function(*task)
