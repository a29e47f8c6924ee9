"""`genbounds audit`: do published inequalities hold as printed? Every verdict is computed."""

from __future__ import annotations

from collections.abc import Sequence

import genbounds as gb
from genbounds._text import display
from genbounds.cli._command import Answer, command
from genbounds.cli._options import SEED, Folder, Output, argument, choice, flag, option, statements
from genbounds.cli._statements import choose
from genbounds.cli._terminal import print_table, progress, say, tidy

SERIAL = 10
"""Up to so many statements, starting processes takes longer than it saves."""

EXAMPLES = """
genbounds audit --quick
genbounds audit "o24.*" --jobs 4 --out results
genbounds audit --backend dask --scheduler tls://10.0.0.1:8786 --out results
genbounds audit m25.mean-norm --replications 100000 --seed 1 --json
"""


def _advice(output: Output, **_: object) -> str:
    if output.out is None:
        return "nothing was kept; with --out DIR the same command would go on from here."
    return f"what is finished is in {display(output.out)}; the same command goes on from here."


@command("[ID-or-glob]...", EXAMPLES, advice=_advice)
def audit(
    patterns: list[str] | None = argument(
        "ID-or-glob",
        "Statements to test, such as o24.hoeffding or 'm25.*'; all by default.",
        default=None,
        offers=statements,
    ),
    *,
    quick: bool = flag("Fewer replications: about a minute instead of ten."),
    replications: int | None = option(
        "N", "Samples drawn in each test case.", show_default="by the size of the case"
    ),
    seed: int = SEED,
    jobs: int | None = option(
        "J",
        "Number of processes; results do not depend on it.",
        show_default="every core for more than ten statements, else 1",
    ),
    backend: str = choice(
        "loky|dask",
        "Where the work is done: processes of this machine, or Dask workers.",
        default="loky",
    ),
    scheduler: str | None = option(
        "ADDRESS", "Address of a running Dask scheduler; without it, --jobs workers start here."
    ),
    threads: int = option(
        "T", "BLAS threads per process; can change the last digit of a result.", default=1
    ),
    output: Folder,
) -> Answer:
    """Test whether published inequalities hold as printed, and how tight they are.

    Every verdict is computed: refuted (it fails more often than it allows; a counterexample is
    printed), vacuous (it holds but says nothing) or not refuted. With --out DIR finished work is
    kept as it comes, and the same command goes on where it was interrupted.
    """
    ids = choose(patterns or [], gb.bounds.catalog())
    with tidy(), progress("audit") as advance:
        report = gb.simulate.audit(
            ids,
            replications=replications,
            seed=seed,
            jobs=_default_jobs(ids, scheduler) if jobs is None else jobs,
            backend=backend,
            scheduler=scheduler,
            threads=threads,
            quick=quick,
            out=output.out,
            progress=advance,
        )
    document = report.to_dict()
    return Answer(
        document=document,
        show=lambda: _show(report),
        page=lambda: gb.report.audit_page(document, bounds=gb.bounds.catalog()),
    )


def _default_jobs(ids: Sequence[str], scheduler: str | None) -> int:
    """Every core where starting processes pays; a cluster has its own workers."""
    if scheduler is not None or len(ids) <= SERIAL:
        return 1
    from joblib import cpu_count

    return int(cpu_count())


def _show(report: gb.simulate.AuditReport) -> None:
    from genbounds.report._audit import verdict_table
    from genbounds.report.wording import measured_lines

    print_table(verdict_table([row.to_dict() for row in report.rows]))
    for row in report.rows:
        if row.verdict == "refuted":
            say("", f"{row.id} is refuted: {row.counterexample}", f"  It {row.fit}.")
            say(*(f"  {line}" for line in measured_lines(row.to_dict())))
