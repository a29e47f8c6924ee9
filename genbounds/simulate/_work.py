"""Independent pieces of work: a study is cut into them, and goes on where it was interrupted.

This process does them, several processes of joblib, or Dask workers. Each result is kept in one
SQLite file as soon as it is there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import socket
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from operator import call
from pathlib import Path
from typing import Any, TypeVar

from numpy.random import SeedSequence

from genbounds._process import blas_threads, searching_installed_packages_only, silenced, versions
from genbounds._text import display
from genbounds.validation import InputError, check_choice, check_count, check_installed

Result = TypeVar("Result")

AUDIT = "audit.sqlite"
COVERAGE = "coverage.sqlite"

_APPLICATION = int.from_bytes(b"genb", "big")  # in the header, for the program `file`

# The whole schema, word for word: a store with anything else in it, a view for one, is not ours.
_TABLES = {
    "work": "CREATE TABLE work (key TEXT PRIMARY KEY, value TEXT, checksum TEXT)",
    "configuration": "CREATE TABLE configuration (key TEXT PRIMARY KEY, value TEXT)",
}

_log = logging.getLogger("genbounds.simulate")

Progress = Callable[[int, int, str], None]

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
    configuration: Mapping[str, Any] | None = None,
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
    configuration : mapping, optional
        What all results of the store depend on, beside versions and threads.
    """
    everything = versions() | dict(configuration or {}) | {"threads": workers.threads}
    with nullcontext() if out is None else open_store(out, everything, name=name) as store:
        results = [None if store is None else store.get(piece.key) for piece in pieces]
        pending = [index for index, result in enumerate(results) if result is None]
        tasks = [(pieces[index].function, *pieces[index].arguments) for index in pending]
        # Closed on the way out of an error as well: that ends processes and clusters at once.
        with closing(workers.run(call, tasks)) as finished:
            for done, (task, result) in enumerate(finished, len(pieces) - len(pending) + 1):
                piece = pieces[pending[task]]
                results[pending[task]] = result
                if store is not None:
                    store.put(piece.key, result)
                if progress is not None:
                    progress(done, len(pieces), piece.label)
    return [result for result in results if result is not None]


# --- processes of joblib ------------------------------------------------------------------------


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
    resume = "what was kept in a folder is safe, the same call goes on from there."
    with _client(workers) as client:
        from distributed import CancelledError, KilledWorker, as_completed
        from distributed.comm import CommClosedError

        waiting, indices, here = enumerate(tasks), dict[Any, int](), versions()
        finished = as_completed(loop=client.loop)

        def submit(count: int) -> None:
            for index, task in islice(waiting, count):
                given = (function, task, workers.threads, here)
                future = client.submit(_guarded, *given, pure=False, retries=0)
                indices[future] = index
                finished.add(future)

        try:
            _check_workers(client)
            submit(max(_LEAST_QUEUED, _QUEUED_PER_THREAD * sum(client.nthreads().values())))
            for future in finished:
                yield indices.pop(future), future.result()
                future.release()
                submit(1)
        except KilledWorker as error:
            raise InputError(
                f"a piece of work killed {error.allowed_failures + 1} workers in a row, "
                f"perhaps because memory ran out: ask for workers with more; {resume}"
            ) from None
        except (CancelledError, CommClosedError):
            raise InputError(
                "the connection to the cluster, or what one of its workers held, was lost: "
                f"{resume}"
            ) from None


@contextmanager
def _client(workers: Workers) -> Iterator[Any]:
    packages = ("distributed",) if workers.scheduler else ("distributed", "cryptography")
    check_installed("backend 'dask'", "dask", *packages)
    from distributed import Client

    with ExitStack() as stack:
        scheduler, security = workers.scheduler, None
        if scheduler is None:
            cluster = stack.enter_context(_local_cluster(workers.jobs))
            scheduler, security = cluster.scheduler_address, cluster.security
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
def _local_cluster(jobs: int) -> Iterator[Any]:
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    # Nannies leave these in the environment of this process.
    left = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    roles = ("scheduler", "worker", "nanny")
    # No web pages of scheduler and workers: these would not be encrypted.
    pages = {f"distributed.{role}.http.routes": list[str]() for role in roles}
    with (
        searching_installed_packages_only(*left, "PYTHONHASHSEED", "__DASK_PARENT_PID"),
        dask.config.set(pages),
        LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            # Whoever may talk to a scheduler may run code: other users of this machine too. Key and
            # certificate are in the memory of this cluster.
            security=Security.temporary(),
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


# --- the store ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Store:
    """Key-value store of finished work; made by `open_store`.

    Each row has a checksum of its key, its value and the configuration. A row that was damaged,
    altered or copied from another store is dropped with a message, and computed again.
    """

    connection: sqlite3.Connection
    path: Path
    configuration: Mapping[str, str]

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was kept under `key`, or None."""
        try:
            query = "SELECT value, checksum FROM work WHERE key = ?"
            row = self.connection.execute(query, (key,)).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _damaged(self.path, error) from error
        if row is None:
            return None
        value, checksum = row
        if not isinstance(value, str) or checksum != self._checksum(key, value):
            _log.warning(
                "%s: a kept result is damaged or was altered: computed again (%s).",
                display(self.path),
                display(key, limit=80),
            )
            return None
        return dict(json.loads(value))

    def _checksum(self, key: str, value: str) -> str:
        text = json.dumps([sorted(self.configuration.items()), key, value])
        return hashlib.sha256(text.encode()).hexdigest()

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep `value` at once."""
        text = json.dumps(value)
        try:
            with self.connection:
                self.connection.execute(
                    "INSERT OR REPLACE INTO work VALUES (?, ?, ?)",
                    (key, text, self._checksum(key, text)),
                )
        except sqlite3.Error as error:
            raise InputError(
                f"{display(self.path)}: cannot keep a result ({error}): free some space or choose "
                "another folder; what was kept before is safe, the same command resumes."
            ) from error


@contextmanager
def open_store(folder: Path | str, settings: Mapping[str, Any], *, name: str) -> Iterator[Store]:
    """Open or make a store in a folder.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    settings : mapping
        What every result in the store depends on; must agree with that of an existing store.
    name : str
        File name, `AUDIT` or `COVERAGE`.

    Raises
    ------
    InputError
        If the folder cannot be written, another run uses the store, the file is not a store, or
        it belongs to another configuration (the difference is named).
    """
    path = Path(folder) / name
    wanted = {key: json.dumps(value) for key, value in settings.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0.0)
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{display(path)}: cannot be opened ({error}): choose a folder that can be written."
        ) from error
    with closing(connection):
        # A text that is none any more still has to fail its checksum, not the reader.
        connection.text_factory = lambda content: content.decode("utf-8", "replace")
        try:
            _prepare(connection, path)
            _agree(connection, path, wanted)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise InputError(f"{display(path)}: {_unusable(error)}.") from error
        yield Store(connection, path, wanted)


def _unusable(error: Exception) -> str:
    """Say why a file is no store, and what to do."""
    if not isinstance(error, sqlite3.OperationalError):
        return f"is not a store of results ({display(error)}): choose another folder"
    if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
        advice = "another run uses this folder: wait for it or choose another one"
    else:
        advice = "choose a folder that can be written and has space"
    return f"cannot be used ({display(error)}): {advice}"


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # Exclusive: a second run on the same folder is refused for as long as this one lives.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL").fetchall()
    if tables:
        if dict(tables) != _TABLES:
            raise sqlite3.DatabaseError("it holds other tables")
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise _damaged(path, state)
    # A write in any case: a read-only folder is refused before any work, not after the first piece.
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    if not tables:
        for statement in _TABLES.values():
            connection.execute(statement)
    connection.commit()


def _agree(connection: sqlite3.Connection, path: Path, wanted: Mapping[str, str]) -> None:
    stored = dict(connection.execute("SELECT key, value FROM configuration").fetchall())
    if not stored:
        with connection:
            connection.executemany("INSERT INTO configuration VALUES (?, ?)", wanted.items())
        return
    differences = [
        f"{key} {stored.get(key, 'unknown')} there, {wanted.get(key, 'unknown')} asked"
        for key in sorted(stored.keys() | wanted.keys(), key=str)
        if stored.get(key) != wanted.get(key)
    ]
    if differences:
        raise InputError(
            f"{display(path)} holds results of another configuration "
            f"({display('; '.join(differences))}): ask for the same, or choose another folder."
        )


def _damaged(path: Path, reason: object) -> InputError:
    return InputError(
        f"{display(path)}: is damaged ({display(reason, limit=80)}): delete it, and the same "
        "command computes everything again."
    )
