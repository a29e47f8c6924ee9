"""Settings of the whole process, changed for a while and put back; the versions that it runs.

Several threads may change one. Both `warnings.catch_warnings` and `threadpool_limits` put back what
they found. Where two of them overlap in time without one lying inside the other, the last to end
puts back what the first one had set, and it stays. So the first comer changes the setting, and the
last to leave restores it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

_WARNINGS = threading.RLock()


@contextmanager
def silenced(category: type[Warning], message: str = "") -> Iterator[None]:
    """Ignore warnings of a category, one thread at a time: keep what is inside short.

    Parameters
    ----------
    category : type
    message : str
        Regular expression of how they begin; all by default.
    """
    with _WARNINGS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=category)
        yield


SMALL_WORK = 2**30
"""Multiply-adds below which one BLAS thread is faster."""


class _Limit:
    """The number of BLAS threads while somebody wants it limited."""

    lock = threading.Lock()
    users = 0
    before: Any = None


@contextmanager
def threads_for(work: float, limit: Callable[[], Any] | None = None) -> Iterator[None]:
    """Keep BLAS to one thread where there is little to compute.

    NumPy and SciPy bring an OpenBLAS each, whose threads spin for a while when they are done and
    take the cores from the other's: on two cores a Fréchet distance of 320 × 64 takes 40 ms with
    two threads and 5 ms with one. From about 4,000 × 512 on more threads pay.

    Parameters
    ----------
    work : float
        Multiply-adds of the largest product, about.
    limit : callable, optional
        What limits them, by default to one, and returns how to put it back.
    """
    if work >= SMALL_WORK:
        yield
        return
    with _Limit.lock:
        if not _Limit.users:
            _Limit.before = limit() if limit else _blas().limit(limits=1, user_api="blas")
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if not _Limit.users:
                # Newer versions of threadpoolctl let no thread but the first set it.
                import threadpoolctl

                controller: Any = getattr(threadpoolctl, "OpenBLASController", None)
                free = getattr(controller, "clear_controlling_thread", lambda force: None)
                free(force=True)
                _Limit.before.restore_original_limits()
                free(force=True)


def blas_threads(threads: int) -> AbstractContextManager[None]:
    """Limit the BLAS threads of this process; of calls that overlap, the first one's number counts.

    Parameters
    ----------
    threads : int
    """
    from threadpoolctl import threadpool_limits

    return threads_for(0.0, lambda: threadpool_limits(limits=threads))


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return what sets BLAS threads: to look for the libraries takes longer than a small score."""
    import scipy.linalg  # noqa: F401  # loads SciPy's
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def environment(values: Mapping[str, str], *also: str) -> Iterator[None]:
    """Set variables of the environment; in the end these, and those in `also`, are as before."""
    before = {name: os.environ.get(name) for name in (*values, *also)}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def searching_installed_packages_only(*also: str) -> Iterator[None]:
    """Have new processes ignore the working folder until they know this one's search path.

    Workers are started as ``python -m …``, for which Python puts the working folder first: a file
    joblib.py there would be run. In the end this variable of the environment, and those in `also`,
    are as before.
    """
    with environment({"PYTHONSAFEPATH": "1"}, *also):
        yield


def versions() -> dict[str, str]:
    """Return the version of each package that the digits of a result depend on.

    Beside the kind of processor, which no version tells.
    """
    # By name: the root of the package imports every layer above this one.
    packages = ("genbounds", "numpy", "scipy")
    return {name: str(import_module(name).__version__) for name in packages}
