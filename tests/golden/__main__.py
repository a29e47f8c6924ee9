"""Write the golden values anew, or compare: ``python -m tests.golden [--write] [NAME ...]``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from tests.golden.cases import cases, value_of
from tests.golden.compare import FILE, deviation


def run(names: list[str], *, write: bool) -> int:
    kept: dict[str, list[Any]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    chosen = {n: c for n, c in cases().items() if not names or any(n.startswith(p) for p in names)}
    worst, started = 0.0, time.perf_counter()
    for name, case in chosen.items():
        found = value_of(case)
        if write:
            kept[name] = found
            continue
        moved = deviation(found, kept.get(name, []))
        worst = max(worst, moved)
        if moved > 1e-12:
            print(f"{name}: {moved:.2e}")
    if write:
        lines = (f"{json.dumps(n)}: {json.dumps(v)}" for n, v in sorted(kept.items()))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    seconds = time.perf_counter() - started
    print(f"{len(chosen)} cases, largest deviation {worst:.2e}, {seconds:.0f} s", file=sys.stderr)
    return int(worst > 1e-12)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    sys.exit(run(given.names, write=given.write))
