"""Independent pieces of work on one process, several, or a cluster, kept as they are finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from numpy.random import SeedSequence

from genbounds import _process
from genbounds.simulate._store import COVERAGE, open_store
from genbounds.validation import InputError, check_choice, check_count

Result = TypeVar("Result")

BACKENDS = ("loky", "dask")

_IDLE_SECONDS = 20


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
            If workers keep dying, or the cluster cannot be reached or runs other versions.
        """
        if self.backend == "dask":
            from genbounds.simulate._dask import run_on_dask

            yield from run_on_dask(function, tasks, self.jobs, self.scheduler, self.threads)
        elif self.jobs == 1 or len(tasks) < 2:
            with _process.blas_threads(self.threads):
                for index, task in enumerate(tasks):
                    yield index, function(*task)
        else:
            yield from self._loky(function, tasks)

    def _loky(
        self, function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]
    ) -> Generator[tuple[int, Result], None, None]:
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        # Workers whose master was killed notice nothing: they leave when idle for so long.
        with (
            _process.searching_installed_packages_only(),
            parallel_config(
                backend="loky",
                inner_max_num_threads=self.threads,
                idle_worker_timeout=_IDLE_SECONDS,
            ),
        ):
            pool = Parallel(n_jobs=self.jobs, return_as="generator_unordered")
            results = pool(
                delayed(_numbered)(function, index, task) for index, task in enumerate(tasks)
            )
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
                with _process.silenced(UserWarning):  # that work was cut short
                    results.close()


def _numbered(
    function: Callable[..., Result], index: int, task: tuple[Any, ...]
) -> tuple[int, Result]:
    return index, function(*task)


Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: a chunk of replications, the exact tails of a scenario, or a search.

    Attributes
    ----------
    study : sequence
        Names the piece among all of a store, in types of JSON: everything that its result depends
        on and that the configuration of the store does not hold.
    label : str
        For progress.
    function : callable
        Returns a dict that JSON keeps unchanged. Its random numbers come from a `SeedSequence`
        among `arguments`, so that they are the same wherever and whenever it runs.
    arguments : tuple
    """

    study: Sequence[object]
    label: str
    function: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> str:
        """Name in the store."""
        return json.dumps(self.study, ensure_ascii=False)


def chunks(replications: int, most: int) -> tuple[int, ...]:
    """Cut `replications` into chunks of at most `most`."""
    return tuple(min(most, replications - start) for start in range(0, replications, most))


def stream(seed: int, *keys: object) -> SeedSequence:
    """Child of `seed` for the named piece of work: the same in whatever order or place it runs."""
    words = tuple(
        int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=4).digest(), "big")
        for key in keys
    )
    return SeedSequence(seed, spawn_key=words)


def work(
    pieces: Sequence[Piece],
    *,
    workers: Workers,
    out: Path | str | None,
    progress: Progress | None,
    name: str = COVERAGE,
    configuration: Mapping[str, Any] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Do the pieces and return their results, in their order.

    Parameters
    ----------
    pieces : sequence of Piece
    workers : Workers
    out : path or None
        Folder with the store: results that it holds are not computed again, new ones kept at once.
    progress : callable or None
        Called as ``progress(done, total, label)`` after every finished piece.
    name : str
        File name of the store.
    configuration : mapping
        What all results of the store depend on, beside versions and threads.
    """
    everything = _process.versions() | dict(configuration) | {"threads": workers.threads}
    with nullcontext() if out is None else open_store(out, everything, name=name) as store:
        results = [None if store is None else store.get(piece.key) for piece in pieces]
        pending = [index for index, result in enumerate(results) if result is None]
        tasks = [(pieces[index].function, pieces[index].arguments) for index in pending]
        # Closed on the way out of an error as well: that ends processes and clusters at once.
        with closing(workers.run(_call, tasks)) as finished:
            for done, (task, result) in enumerate(finished, len(pieces) - len(pending) + 1):
                piece = pieces[pending[task]]
                results[pending[task]] = result
                if store is not None:
                    store.put(piece.key, result)
                if progress is not None:
                    progress(done, len(pieces), piece.label)
    return [result for result in results if result is not None]


def _call(function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    return function(*arguments)
