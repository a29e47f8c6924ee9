"""`genbounds audit` and `bounds`: published inequalities, listed, explained and tested."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import genbounds as gb
from genbounds._errors import InputError
from genbounds._text import display, short
from genbounds.cli._command import Answer, command
from genbounds.cli._options import SEED, Folder, Output, argument, choice, flag, option
from genbounds.cli._terminal import print_table, progress, say, tidy

SERIAL = 10
"""Up to so many statements, starting processes takes longer than it saves."""

AUDIT_EXAMPLES = """
genbounds audit --quick
genbounds audit "o24.*" --jobs 4 --out results
genbounds audit --backend dask --scheduler tls://10.0.0.1:8786 --out results
genbounds audit m25.mean-norm --replications 100000 --seed 1 --json
"""


def _advice(output: Output, **_: object) -> str:
    if output.out is None:
        return "nothing was kept; with --out DIR the same command would go on from here."
    return f"what is finished is in {display(output.out)}; the same command goes on from here."


@command("[ID-or-glob]...", AUDIT_EXAMPLES, advice=_advice)
def audit(
    patterns: list[str] | None = argument(
        "ID-or-glob",
        "Statements to test, such as o24.hoeffding or 'm25.*'; all by default.",
        default=None,
        offers=lambda: gb.bounds.catalog(),
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


# --- bounds ---------------------------------------------------------------------------------------

BOUNDS_EXAMPLES = """
genbounds bounds
genbounds bounds m25.empirical-bernstein
genbounds bounds --json
"""


@command("[ID]", BOUNDS_EXAMPLES, advice="nothing was kept; run the same command again.")
def bounds(
    statement: str | None = argument(
        "ID",
        "The inequality to explain; without it all are listed.",
        default=None,
        offers=lambda: gb.bounds.catalog(),
    ),
    *,
    output: Folder,
) -> Answer:
    """List published inequalities about these scores, or explain one of them.

    Explained are formula, source, assumptions, constants and verdict. The verdict comes from a
    quick audit that runs at once; `genbounds audit ID` tests more.
    """
    listing = gb.bounds.catalog()
    if statement is None:
        rows = [(b.id, b.form, b.claim, b.source) for b in listing.values()]
        return Answer(
            document={"bounds": [describe(bound) for bound in listing.values()]},
            show=lambda: print_table(gb.report.Table(("Id", "Form", "Claim", "Source"), rows)),
        )
    bound = listing[choose([statement], listing)[0]]
    with progress("quick audit") as advance:
        report = gb.simulate.audit([bound.id], quick=True, progress=advance)
    row = report.rows[0].to_dict()
    return Answer(
        document=describe(bound) | row,
        show=lambda: _explain(bound, row),
        page=lambda: gb.report.statement_page(bound, row),
    )


def describe(bound: gb.bounds.Bound) -> dict[str, Any]:
    """Return what is known of a statement without an experiment, in plain JSON types."""
    names = "id claim latex source setting form assumptions constants repairs"
    told = {name: getattr(bound, name) for name in names.split()}
    assumptions = [assumption.text for assumption in bound.assumptions]
    return told | {"assumptions": assumptions, "constants": dict(bound.constants)}


def _explain(bound: gb.bounds.Bound, row: dict[str, Any]) -> None:
    from genbounds.report._audit import evidence_table
    from genbounds.report.wording import measured_lines, verdict_text

    say(f"{bound.id}  ({bound.form})", "", f"  {bound.claim}", "", f"LaTeX    {bound.latex}")
    say(f"source   {bound.source}", f"setting  {bound.setting}")
    for assumption in bound.assumptions:
        say(f"assumes  {assumption.text}")
    for name, value in bound.constants.items():
        say(f"constant {name} = {short(value)}")
    if bound.repairs:
        say(f"repairs  {bound.repairs}")
    said = verdict_text(row["verdict"], row["refuted_from"])
    say("", f"verdict  {said} (quick audit)")
    if row["counterexample"]:
        say(f"         {row['counterexample']}")
    for line in measured_lines(row):
        say(f"         {line}")
    for check in row["checks"]:
        say(f"{'holds' if check['holds'] else 'fails':<8} {check['claim']}; {check['found']}")
    if row["by_delta"]:
        say("", "δ: the probability with which the statement may fail")
        print_table(evidence_table(row["by_delta"]))


def choose(patterns: Sequence[str], ids: Collection[str]) -> list[str]:
    """Return the ids that match any pattern (``o24.*``), in the order of the catalogue.

    Raises
    ------
    InputError
        If a pattern matches nothing; names the nearest ids.
    """
    chosen = set()
    for pattern in patterns:
        found = [name for name in ids if fnmatchcase(name, pattern)]
        if not found:
            near = get_close_matches(pattern, ids, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "`genbounds bounds` lists them."
            raise InputError(
                f"no statement {display(pattern, limit=60)!r} in the catalogue: {hint}"
            )
        chosen.update(found)
    return [name for name in ids if name in chosen] if patterns else list(ids)
