"""`genbounds audit`: every inequality on trial, every verdict computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from genbounds.cli._completion import offer, statements
from genbounds.cli._inputs import options, renamed
from genbounds.cli._statements import choose, measured
from genbounds.cli._terminal import (
    AsJson,
    Out,
    announce,
    interruptible,
    keep,
    print_json,
    print_table,
    progress,
    say,
)

SERIAL = 10
"""Up to so many statements, starting processes takes longer than it saves."""

EXAMPLES = """Examples:

\b
genbounds audit --quick
genbounds audit "o24.*" --jobs 4 --out results
genbounds audit --backend dask --scheduler tcp://10.0.0.1:8786 --out results
genbounds audit m25.mean-norm --replications 100000 --seed 1 --json
"""


def audit(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID-or-glob",
            autocompletion=offer(statements),
            help="Statements to examine, such as o24.hoeffding or 'm25.*'; all by default.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer replications: about a minute instead of ten.")
    ] = False,
    replications: Annotated[
        int | None,
        typer.Option(
            "--replications", metavar="N", help="Samples drawn in each cell.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of all random numbers.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="J",
            help="Processes; results do not depend on it.",
            show_default="every core for more than ten statements, else 1",
        ),
    ] = None,
    backend: Annotated[
        str,
        typer.Option(
            "--backend",
            metavar="loky|dask",
            autocompletion=offer("loky|dask"),
            help="Processes of this machine, or Dask workers.",
        ),
    ] = "loky",
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Of a running Dask scheduler; without it, Dask starts --jobs workers here.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            "--threads", metavar="T", help="BLAS threads a process; can change the last digit."
        ),
    ] = 1,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Put the field's inequalities on trial.

    Do they hold as printed, and how tight are they? Every verdict is computed: refuted (it fails
    more often than it allows; a counterexample is shown), vacuous (it holds and says nothing) or
    upheld. With --out DIR finished work is kept as it comes, and the same command goes on where
    it was interrupted.
    """
    from genbounds.bounds import catalog
    from genbounds.simulate import audit as put_on_trial

    ids = choose(patterns or [], catalog())
    advice = (
        "nothing was kept; with --out DIR the same command would go on from here."
        if out is None
        else f"what is finished is in {out}; the same command goes on from here."
    )
    with (
        interruptible(advice),
        progress("audit") as advance,
        renamed(options("replications", "seed", "jobs", "backend", "scheduler", "threads")),
    ):
        report = put_on_trial(
            ids,
            replications=replications,
            seed=seed,
            jobs=_default_jobs(ids, scheduler) if jobs is None else jobs,
            backend=backend,
            scheduler=scheduler,
            threads=threads,
            quick=quick,
            out=out,
            progress=advance,
        )
    document = report.to_dict()
    keep(out, document)
    if out is not None:
        from genbounds.report import audit_page, write_page

        write_page(out / "report.html", audit_page(document, bounds=catalog()))
        announce(out / "report.html")
    if as_json:
        print_json(document)
    else:
        _print(document["rows"])


def _default_jobs(ids: Sequence[str], scheduler: str | None) -> int:
    """Every core where starting processes pays; a cluster has its own workers."""
    if scheduler is not None or len(ids) <= SERIAL:
        return 1
    from joblib import cpu_count

    return int(cpu_count())


def _print(rows: list[dict[str, Any]]) -> None:
    from genbounds.report import number

    print_table(
        ("Statement", "Verdict", "Form", "Tightness", "Cells", "Source"),
        [
            (
                row["id"],
                row["verdict"],
                row["form"],
                number(row["tightness"]),
                number(row["cells"]),
                row["source"],
            )
            for row in rows
        ],
        numeric=("Tightness", "Cells"),
    )
    for row in rows:
        if row["verdict"] == "refuted":
            say("", f"{row['id']} is refuted: {row['counterexample']}")
            say(*(f"  {line}" for line in measured(row)))
