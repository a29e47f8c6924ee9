"""Runs on disk, one JSON line each: an interrupted study goes on where it stopped."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from genbounds.simulate import Workers

Run = dict[str, Any]
Key = tuple[Any, ...]


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say who does the runs; `workers_of` reads them."""
    parser.add_argument("--jobs", type=int, default=1, help="processes on this machine")
    parser.add_argument("--backend", choices=("loky", "dask"), default="loky")
    parser.add_argument("--scheduler", help="address of a Dask cluster, with --backend dask")
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads of a process")


def workers_of(options: argparse.Namespace) -> Workers:
    """Return who does the runs."""
    return Workers(
        jobs=options.jobs,
        backend=options.backend,
        scheduler=options.scheduler,
        threads=options.threads,
    )


def study(
    jobs: Iterable[Key], work: Callable[..., Run], *, out: Path | None, workers: Workers
) -> dict[Key, Run]:
    """Return the result of ``work(*job)`` for every job, from disk where it is known.

    In the order of the jobs, and the same whoever does them.

    Parameters
    ----------
    jobs : iterable of tuple
        JSON-able arguments, which also name the job.
    work : callable
    out : Path or None
        File of JSON lines ``{"job": [...], "run": {...}}``, appended to as results come.
    workers : Workers
    """
    wanted = list(jobs)
    known = {} if out is None else read(out)
    left = [job for job in wanted if job not in known]
    if left and out is not None:
        _end_line(out)
    for index, run in workers.run(_importable(work), left):
        known[left[index]] = run
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"job": left[index], "run": run}) + "\n")
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
