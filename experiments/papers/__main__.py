"""Write docs/evidence/papers.md: every item of the papers, with the verdicts of the findings.

python -m experiments.papers
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from experiments.papers.rows import AUDIT, PAPERS, REAL, REAL_IS, Row
from genbounds.bounds import catalog
from genbounds.simulate.auditing._proofs import proof_steps
from genbounds.simulate.auditing._results import Check

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "docs" / "evidence" / "findings.md"
PAGE = ROOT / "docs" / "evidence" / "papers.md"


def verdicts(text: str) -> dict[str, str]:
    """Read the table of verdicts of the findings: verdict, and where a refutation begins."""
    table = text.split("## All verdicts, worst first")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", table, flags=re.MULTILINE))


def command(row: Row) -> str:
    """Return what runs a row."""
    return row.command or f"{AUDIT} {' '.join(row.ids)}"


@cache
def steps(name: str) -> list[Check]:
    """Exact checks of the steps of a statement's proof."""
    return proof_steps(catalog()[name])


def outcome(row: Row, found: Mapping[str, str]) -> str:
    """Return the verdicts of a row's statements, and its note; of a step, whether it holds."""
    if row.step:
        (check,) = (check for check in steps(row.proof) if check.claim.startswith(row.step))
        said = "holds" if check.holds else f"fails: {check.found}"
        return f"this step {said}; the statement: {found[row.proof]}"
    said = [f"`{name}` {found[name]}" if len(row.ids) > 1 else found[name] for name in row.ids]
    return "; ".join([*said, row.note] if row.note else said)


def page(found: Mapping[str, str]) -> str:
    """Write the page."""
    lines = [
        "# The papers, item by item",
        "",
        "Made by `python -m experiments.papers` from `experiments/papers/rows.py` and the verdicts "
        "in [the findings](findings.md). Do not edit.",
        "",
        "Every numbered statement, algorithm, table and figure of the papers: its statement in "
        "[the catalogue](../bounds.md), or what computes it here, and the verdict, or the reason "
        "why it is not here. A statement is tried by `genbounds audit ID`. What a verdict covers "
        "is said in [the findings](findings.md).",
        "",
        "*this step …*: an exact check between two lines of a proof, with the audit of the "
        "statement; that it fails refutes no theorem.",
        "",
        "## With images of your own",
        "",
        "With the images, a GPU and the encoder's weights: `genbounds features FOLDER --encoder … "
        f"--out model_a.npy` for each model, then `{REAL}`. IS-UCB needs posteriors of a "
        f"classifier, rows that sum to one: `{REAL_IS}`.",
        "",
    ]
    for paper, rows in PAPERS.items():
        lines += [
            f"## {paper}",
            "",
            "| item | what | statement, or file and command | verdict, or the reason |",
            "|---|---|---|---|",
        ]
        for row in rows:
            where = ", ".join(f"`{name}`" for name in row.ids)
            if row.step:
                where = f"proof of `{row.proof}`"
            elif not row.ids:
                where = f"`{command(row)}`"
                if row.file.removesuffix(".py").replace("/", ".") not in where:
                    where = f"`{row.file.removeprefix('docs/evidence/')}`; {where}"
            elif row.command:
                where += f"; `{row.command}`"
            cells = (row.item, row.what, where, outcome(row, found))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=PAGE)
    arguments = parser.parse_args()
    found = verdicts(FINDINGS.read_text(encoding="utf-8"))
    arguments.file.write_text(page(found), encoding="utf-8")
    print(f"wrote {arguments.file}")


if __name__ == "__main__":
    main()
