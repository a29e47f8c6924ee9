"""Plant errors in every statement and every study, and write docs/evidence/planted.md.

python -m experiments.planted --out out/planted

Finished rows are kept under --out: a second call goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from experiments.planted.studies import Plant, plants
from experiments.planted.widths import FACTORS, judge, seen_from, without_terms
from genbounds.bounds import Bound, catalog

COMMAND = "python -m experiments.planted"


def of_width(bound: Bound, replications: int, seed: int) -> dict[str, Any]:
    """Plant factors of the width, and leave out one term after the other."""
    refutes = judge(bound, replications, seed)
    factor, by = seen_from(bound, refutes)
    missing = without_terms(bound) if factor is not None and factor < 1.0 else {}
    unseen = [name for name, variant in missing.items() if not refutes(variant)]
    return {"factor": factor, "by": by, "terms": len(missing), "unseen": unseen}


def of_study(plant: Plant) -> dict[str, Any]:
    """Audit with one error in the study."""
    row = plant.row()
    return {"verdict": row.verdict, "found": row.counterexample or ""}


def page(widths: Mapping[str, Mapping[str, Any]], studies: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page."""
    caught = {name: row["factor"] for name, row in widths.items()}
    never = [name for name, factor in caught.items() if factor is None]
    standing = [factor for factor in caught.values() if factor is not None and factor < 1.0]
    refuted = len(caught) - len(standing) - len(never)
    count = {limit: sum(factor >= limit for factor in standing) for limit in (0.9, 0.7, 0.3)}
    seen = sum(row["verdict"] == "refuted" for row in studies.values())
    lines = [
        "# What the audit would have caught",
        "",
        f"Made by `{COMMAND}`. Do not edit: run the command again.",
        "",
        "A verdict is worth something only if it could have been another. So errors are planted on "
        "purpose, in every statement and in every study, and the audit is run on them. What it "
        "does not see is listed here as well.",
        "",
        "A wrong constant in *our transcription* is caught elsewhere: a test writes every printed "
        "formula a second time and compares to 1e-13. The tables below are about the *audit*: "
        "would it notice if a paper's own claim were wrong by so much?",
        "",
        "## Studies of rates",
        "",
        f'{seen} of {len(studies)} planted errors turn the verdict to refuted. "Samples" is the '
        "`replications` of the audit; the findings are made with 10,000.",
        "",
        "| statement | planted error | samples | verdict with the error |",
        "|---|---|---|---|",
    ]
    known = {key(plant): plant for plant in plants()}
    for name, row in studies.items():
        plant, verdict = known[name], said(row["verdict"])
        count_of = f"{plant.replications:,}"
        lines.append(f"| `{plant.id}` | {plant.what} | {count_of} | {verdict} |")
    lines += [
        "",
        "What is not refuted, and why: FID∞ without replacement, since it is right (with it, it is "
        "refuted); an error that does not vanish as τ → 0 in the product of V24's Theorem 3(b), "
        "and enough landmarks for its smallest class, for the same reason; a bonus 30 % smaller "
        "leaves IS-UCB's bound on the regret true, since it is far wider than needed (a hundredth "
        "of it is caught); for FD-UCB the "
        "theorem's bound exceeds all that can be lost within 1,000 steps, so that no run could "
        "contradict it, and its verdict is *vacuous* for that reason.",
        "",
        "## Statements with a width",
        "",
        f'The width is multiplied by {", ".join(f"{factor:g}" for factor in FACTORS)}. "Refuted '
        'below" is the largest of these factors at which the statement is refuted, by exact tails, '
        "exact checks, searches or plain samples; those tilted in an audit may see more. "
        f"Of {len(caught)} statements {refuted} are refuted as they stand. Of the others "
        f"{count[0.9]} are refuted with 10 % less, {count[0.7]} with 30 % less, {count[0.3]} with "
        "70 % less: the rest are so wide that a smaller constant leaves them true, or too wide for "
        "samples to tell. A term is left out by a constant 0, or a union bound over one event.",
        "",
        "| refuted below | by | statements; in brackets the terms left out and not seen |",
        "|---|---|---|",
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for name, row in widths.items():
        factor = "never" if row["factor"] is None else f"{row['factor']:g}×"
        unseen = f" ({', '.join(row['unseen'])})" if row["unseen"] else ""
        alike.setdefault((factor, row["by"] or "–"), []).append(f"`{name}`{unseen}")
    for (factor, by), names in alike.items():
        lines.append(f"| {factor} | {by} | {', '.join(names)} |")
    lines.append("")
    if never:
        listed = ", ".join(f"`{name}`" for name in never)
        lines += [
            f"Never refuted, at a hundredth of the width either: {listed}. At α = 1 both sides of "
            "its difference are 1: the claim says nothing, which is its verdict (*vacuous*).",
            "",
        ]
    return "\n".join(lines)


def said(verdict: str) -> str:
    """Say a verdict as the table does."""
    return {"upheld": "not refuted"}.get(verdict, verdict)


def key(plant: Plant) -> str:
    """Name of one planted error."""
    return f"{plant.id}: {plant.what}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="pattern of ids; no page is written then")
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/planted"))
    parser.add_argument("--file", type=Path, default=Path("docs/evidence/planted.md"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / "rows.json"
    rows = json.loads(kept.read_text("utf-8")) if kept.exists() else {"widths": {}, "studies": {}}
    bounds = [bound for bound in catalog().values() if bound.form != "rate"]
    work = [("widths", bound.id, bound.id, bound) for bound in bounds]
    work += [("studies", key(plant), plant.id, plant) for plant in plants()]
    for kind, name, about, what in work:
        if name not in rows[kind] and fnmatchcase(about, arguments.only):
            print(name, file=sys.stderr, flush=True)
            rows[kind][name] = (
                of_study(what)
                if isinstance(what, Plant)
                else of_width(what, arguments.replications, arguments.seed)
            )
            kept.write_text(json.dumps(rows), encoding="utf-8")
    if arguments.only == "*":
        ordered: dict[str, dict[str, Any]] = {"widths": {}, "studies": {}}
        for kind, name, _, _ in work:
            ordered[kind][name] = rows[kind][name]
        arguments.file.write_text(page(**ordered), encoding="utf-8")
        print(f"wrote {arguments.file}")


if __name__ == "__main__":
    main()
