"""`genbounds bounds`: the catalogue of inequalities, and one of them explained."""

from __future__ import annotations

from typing import Any

import genbounds as gb
from genbounds._text import short
from genbounds.cli._command import Answer, command
from genbounds.cli._options import Folder, argument, statements
from genbounds.cli._statements import choose
from genbounds.cli._terminal import print_table, progress, say

EXAMPLES = """
genbounds bounds
genbounds bounds m25.empirical-bernstein
genbounds bounds --json
"""


@command("[ID]", EXAMPLES, advice="nothing was kept; run the same command again.")
def bounds(
    statement: str | None = argument(
        "ID",
        "The inequality to explain; without it all are listed.",
        default=None,
        offers=statements,
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
        return Answer(
            document={"bounds": [describe(bound) for bound in listing.values()]},
            show=lambda: print_table(
                gb.report.Table(
                    ("Id", "Form", "Claim", "Source"),
                    [(b.id, b.form, b.claim, b.source) for b in listing.values()],
                )
            ),
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
    return {
        "id": bound.id,
        "claim": bound.claim,
        "latex": bound.latex,
        "source": bound.source,
        "setting": bound.setting,
        "form": bound.form,
        "assumptions": [assumption.text for assumption in bound.assumptions],
        "constants": dict(bound.constants),
        "repairs": bound.repairs,
    }


def _explain(bound: gb.bounds.Bound, row: dict[str, Any]) -> None:
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
        heads = ("δ", "Allowed", "Missed", "At least", "At most", "", "Worst distribution", "n")
        cells = [
            (
                short(cell["delta"]),
                short(cell["claimed"]),
                cell["miss"],
                cell["miss_low"],
                cell["miss_high"],
                "too often" if cell["refutes"] else "",
                str(cell["arm"]),
                str(cell["n"]),
            )
            for cell in row["by_delta"]
        ]
        print_table(gb.report.Table(heads, cells))
