"""Independent pieces of work on one or several processes, each with one BLAS thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from genbounds.validation import check_count

Result = TypeVar("Result")


def run_jobs(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], *, jobs: int = 1
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, function(*tasks[index]))`` as the results come, in any order.

    Parameters
    ----------
    function : callable
    tasks : sequence of tuple
        Arguments of every call.
    jobs : int
        Worker processes; 1 works in this one.
    """
    from threadpoolctl import threadpool_limits

    jobs = check_count("jobs", jobs)
    if jobs == 1 or len(tasks) < 2:
        with threadpool_limits(limits=1):
            for index, task in enumerate(tasks):
                yield index, function(*task)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
        yield from pool(
            delayed(_numbered)(function, index, task) for index, task in enumerate(tasks)
        )


def _numbered(
    function: Callable[..., Result], index: int, task: tuple[Any, ...]
) -> tuple[int, Result]:
    return index, function(*task)
