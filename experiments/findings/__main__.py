"""Audit the whole catalogue and write docs/evidence/findings.md.

python -m experiments.findings --out out/findings
python -m experiments.findings --only "m25.mean-norm*"  # these alone, into the page as it is
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.findings.document import document
from experiments.findings.merge import merged
from experiments.record import stamp
from genbounds.bounds import catalog
from genbounds.simulate import audit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=None, help="samples a cell")
    parser.add_argument("--quick", action="store_true", help="1,000 samples a cell")
    parser.add_argument("--only", nargs="*", default=[], metavar="ID", help="these alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder that keeps finished work")
    parser.add_argument("--file", type=Path, default=Path("docs/evidence/findings.md"))
    arguments = parser.parse_args()

    def progress(done: int, total: int, label: str) -> None:
        if done % 100 == 0 or done == total:
            print(f"{done}/{total} {label}", file=sys.stderr)

    report = audit(
        arguments.only,
        replications=arguments.replications,
        quick=arguments.quick,
        seed=arguments.seed,
        jobs=arguments.jobs,
        out=arguments.out,
        progress=progress,
    )
    command = "python -m experiments.findings" + (" --quick" if arguments.quick else "")
    text = document(report, catalog(), command=command)
    if arguments.only:
        page = arguments.file.read_text(encoding="utf-8")
        text = merged(page, text, {row.id for row in report.rows}, stamp())
    arguments.file.write_text(text, encoding="utf-8")
    print(f"wrote {arguments.file}")


if __name__ == "__main__":
    main()
