"""Do the verdicts hang on the seed? Repeat the audit and compare.

python -m experiments.findings.seeds --quick --seeds 10
"""

from __future__ import annotations

import argparse
import sys
import time

from genbounds.simulate import AuditReport, audit

RANDOM = {"monte-carlo", "importance", "search", "fit"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="1,000 samples a cell")
    parser.add_argument("--replications", type=int, default=None, help="samples a cell")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()

    def run(seed: int, names: list[str]) -> AuditReport:
        return audit(
            names,
            seed=seed,
            quick=arguments.quick,
            replications=arguments.replications,
            jobs=arguments.jobs,
        )

    start = time.process_time()
    first = run(0, [])
    print(f"seed 0: {time.process_time() - start:.0f} s of this process", file=sys.stderr)
    verdicts = {row.id: row.verdict for row in first.rows}
    # Exact tails and lattices do not know the seed.
    drawn = [row.id for row in first.rows if any(c.evidence in RANDOM for c in row.results)]
    changes = []
    for seed in range(1, arguments.seeds):
        report = run(seed, drawn)
        for row in report.rows:
            if row.verdict != verdicts[row.id]:
                changes.append(f"{row.id}: {verdicts[row.id]} at seed 0, {row.verdict} at {seed}")
        print(f"seed {seed}: {time.process_time() - start:.0f} s in all", file=sys.stderr)
    print(
        f"{len(verdicts)} verdicts, {len(drawn)} on random evidence, {arguments.seeds} seeds, "
        f"{first.replications} samples a cell: {len(changes)} changes"
    )
    print(*changes, sep="\n", end="\n" if changes else "")


if __name__ == "__main__":
    main()
