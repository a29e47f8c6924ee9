"""Runs on disk, one JSON line each: an interrupted study goes on where it stopped."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

Run = dict[str, Any]
Key = tuple[Any, ...]


def study(
    jobs: Iterable[Key], work: Callable[..., Run], *, out: Path | None, workers: int
) -> dict[Key, Run]:
    """Return the result of ``work(*job)`` for every job, from disk where it is known.

    Parameters
    ----------
    jobs : iterable of tuple
        JSON-able arguments, which also name the job.
    work : callable
    out : Path or None
        File of JSON lines ``{"job": [...], "run": {...}}``, appended to as results come.
    workers : int
    """
    from joblib import Parallel, delayed

    wanted = list(jobs)
    known = {} if out is None else read(out)
    left = [job for job in wanted if job not in known]
    if left and out is not None:
        _end_line(out)
    work = _importable(work)
    results = Parallel(n_jobs=workers, return_as="generator_unordered")(
        delayed(_named)(work, job) for job in left
    )
    for job, run in results:
        known[job] = run
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"job": job, "run": run}) + "\n")
    return {job: known[job] for job in wanted}


def _importable(work: Callable[..., Run]) -> Callable[..., Run]:
    """Return the same function of the module of its name: workers know no `__main__` of ours."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if work.__module__ != "__main__" or spec is None:
        return work
    found: Callable[..., Run] = getattr(import_module(spec.name), work.__name__)
    return found


def _end_line(out: Path) -> None:
    """Make sure that what is appended starts a line, whatever a killed study left."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists() and not out.read_bytes().endswith(b"\n"):
        with out.open("a", encoding="utf-8") as file:
            file.write("\n")


def _named(work: Callable[..., Run], job: Key) -> tuple[Key, Run]:
    return job, work(*job)


def read(out: Path) -> dict[Key, Run]:
    """Return the runs on disk by their job; none if there is no such file."""
    if not out.exists():
        return {}
    known = {}
    for line in out.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # cut off when the study was killed
            continue
        known[tuple(row["job"])] = row["run"]
    return known
