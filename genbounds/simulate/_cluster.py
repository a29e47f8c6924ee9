"""Pieces of work on the workers of a Dask cluster that a client is connected to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
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
    from distributed import as_completed

    why = unlike_here(client)
    if why is not None:
        raise InputError(f"{why}.")
    submitted = _submitter(client, threads)
    coming = enumerate(tasks)
    queued = max(_LEAST_QUEUED, _QUEUED_PER_THREAD * _threads_of(client))
    indices: dict[Any, int] = {}
    finished = as_completed(loop=client.loop)

    def submit() -> None:
        with _explained(then):  # tasks may send rows
            for index, task in coming:
                future = submitted(function, task)
                indices[future] = index
                finished.add(future)
                return

    for _ in range(queued):
        submit()
    for future in finished:
        with _explained(then):
            result = future.result()
        yield indices.pop(future), result
        future.release()
        submit()


def unlike_here(client: Any) -> str | None:
    """Say which worker has another genbounds, NumPy or SciPy, or lacks one; None if none does.

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
            return (
                f"the Dask worker {display(worker)} cannot import genbounds ({display(there)}): "
                f"install there the version of this machine, {here['genbounds']}"
            )
        if there != here:
            return (
                f"the Dask worker {display(worker)} runs other versions "
                f"({_differences(there, here)}): make them the same"
            )
    return None


def _differences(there: dict[str, str], here: dict[str, str]) -> str:
    return ", ".join(
        f"{name} {display(there[name])} there, {here[name]} here"
        for name in here
        if there[name] != here[name]
    )


def _threads_of(client: Any) -> int:
    return sum(client.nthreads().values())


def _submitter(client: Any, threads: int) -> Callable[..., Any]:
    """Return what submits a function with its arguments, and returns the future."""
    expected = versions()

    def submitted(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
        return client.submit(_guarded, function, task, threads, expected, pure=False, retries=0)

    return submitted


@contextmanager
def _explained(then: str) -> Iterator[None]:
    """Say in one line that workers or the connection were lost, and what to do then."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise InputError(
            f"a piece of work killed {error.allowed_failures + 1} workers in a row, "
            f"perhaps because memory ran out: ask for workers with more; {then}"
        ) from None
    except (CancelledError, CommClosedError):
        raise InputError(
            f"the connection to the cluster, or what one of its workers held, was lost: {then}"
        ) from None


def _guarded(
    function: Callable[..., Result],
    task: tuple[Any, ...],
    threads: int,
    expected: dict[str, str],
) -> Result:
    """Run on a worker: no other versions, no other number of threads than asked."""
    here = versions()
    if here != expected:
        differences = _differences(here, expected)
        raise InputError(f"a Dask worker runs other versions ({differences}): make them the same.")
    with blas_threads(threads):
        return function(*task)
