"""Plant faults in the code, one at a time, and see whether a test fails: ``make mutants``.

``python -m tests.mutants --each 50 --seed 1`` draws faults at random in each folder that
`[tool.mutants]` of pyproject.toml names, and runs the tests of the faulty module until one fails:
those of its name first (`_moments.py`: `test_moments.py`), then its folder. A fault that passes all
is printed; `mutants.toml` lists those that change nothing, with the reason, and they are not drawn.
The faults are those of cosmic-ray. They are planted in a copy of the project, so that an
interrupted run leaves none behind.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import shutil
import sys
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import MutationVisitor, mutate_and_test
from cosmic_ray.plugins import get_operator, operator_names
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import MutationSpec, TestOutcome
from scipy.stats import beta, binom

ROOT = Path(__file__).parents[1]
COPY = ROOT / ".cache" / "mutants" / "tree"
LEFT_OUT = shutil.ignore_patterns(".*", "out", "dist", "_build", "__pycache__")
FALSE_ALARM = 1e-6
LONGEST = 3600  # seconds of the clock, for tests that wait
MEMORY = 16 * 2**20  # address space of the tests in KiB; a fault may ask for any amount


@dataclass(frozen=True)
class Fault:
    """One change of one line: where, and what it makes of the line."""

    module: str
    line: int
    before: str
    after: str
    mutation: MutationSpec

    def __str__(self) -> str:
        return f"{self.module}:{self.line}\n  - {self.before}\n  + {self.after}"


def settings() -> dict:
    """Return `[tool.mutants]`."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]


def harmless() -> dict[tuple[str, str], list[str]]:
    """Return the lines, by module, where faults change nothing to be tested, and their faults.

    No faults: whatever is made of the line.
    """
    text = (ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)["harmless"]
    return {(one["module"], one["line"]): one.get("faults", []) for one in listed}


def prose(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where a fault would be one of a type or a text: annotations, errors, decorators."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.expr | ast.stmt | None] = []
        if isinstance(node, ast.Raise | ast.JoinedStr):
            parts = [node]
        elif isinstance(node, ast.AnnAssign | ast.arg):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            parts = [*node.decorator_list, getattr(node, "returns", None)]
        for part in filter(None, parts):
            end = (part.end_lineno or part.lineno, part.end_col_offset or 0)
            spans.append(((part.lineno, part.col_offset), end))
    return spans


def places(module: Path, operators: str) -> list[MutationSpec]:
    """Return every fault that the operators can plant in a module."""
    nodes = list(ast_nodes(get_ast_from_path(module)))
    skipped = prose(module.read_text(encoding="utf-8"))
    found = []
    for name in filter(re.compile(operators).fullmatch, operator_names()):
        operator = get_operator(name)()
        spots = (spot for node in nodes for spot in operator.mutation_positions(node))
        found += [
            MutationSpec(module, name, number, start, end)
            for number, (start, end) in enumerate(spots)
            if not any(first <= start < last for first, last in skipped)
        ]
    return found


def fault(mutation: MutationSpec) -> Fault | None:
    """Return what a mutation does; None where the result is no Python or does the same."""
    old = mutation.module_path.read_text(encoding="utf-8")
    operator = get_operator(mutation.operator_name)()
    new = MutationVisitor.mutate_code(old, operator, mutation.occurrence)
    try:
        compile(new, "mutant", "exec")
        if ast.dump(ast.parse(old)) == ast.dump(ast.parse(new)):
            return None
    except SyntaxError:
        return None
    pairs = zip(old.splitlines(), new.splitlines(), strict=False)
    number, before, after = next(
        (number, before.strip(), after.strip())
        for number, (before, after) in enumerate(pairs, start=1)
        if before != after
    )
    if before.replace("strict=True", "strict=False") == after:  # a guard for authors
        return None
    return Fault(mutation.module_path.as_posix(), number, before, after, mutation)


def sample(folder: str, operators: str, each: int, seed: int) -> list[Fault]:
    """Draw faults of a folder, each equally likely, without those that are listed as harmless."""
    known, found = harmless(), []
    candidates = [
        mutation
        for path in sorted(Path(folder).rglob("*.py"))
        for mutation in places(path, operators)
    ]
    random.Random(f"{seed} {folder}").shuffle(candidates)
    for drawn in map(fault, candidates):
        if drawn is None:
            continue
        faults = known.get((drawn.module, drawn.before), [""])
        if faults and drawn.after not in faults:
            found.append(drawn)
        if len(found) == each:
            break
    return found


def tests_of(module: str) -> tuple[list[str], str]:
    """Return the files of a module's tests, those of its name first, and the folder of them all."""
    path = Path(module)
    folder = Path("tests", *path.parts[1:-1])
    while not folder.is_dir():
        folder = folder.parent
    own = sorted(folder.glob(f"test_{path.stem.lstrip('_')}*.py"))
    # File by file: pytest would run the folder in its own order where it is named as well.
    others = (place for place in sorted(folder.rglob("test_*.py")) if place not in own)
    return [str(place) for place in (*own, *others)], str(folder)


def command(tests: list[str], seconds: float) -> str:
    """Return the command that runs tests until one fails, with limits of time and memory."""
    quick = "not slow and not statistical and not nightly"
    run = f'{sys.executable} -m pytest -x -q -p no:cacheprovider -m "{quick}" {" ".join(tests)}'
    return f"bash -c 'ulimit -t {seconds:.0f} -v {MEMORY}; exec {run}'"


@cache
def unharmed(folder: str) -> float:
    """Return how long the tests of a folder take without a fault, in seconds of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result, output = run_tests(command([folder], LONGEST), LONGEST)
    if result is not TestOutcome.SURVIVED:
        raise SystemExit(f"{output}\n{folder} has tests that fail without any fault")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def outcome(planted: Fault) -> str:
    """Plant a fault and run its tests, for three times as long as they take without it."""
    tests, folder = tests_of(planted.module)
    seconds = 30.0 + 3.0 * unharmed(folder)
    result = mutate_and_test([planted.mutation], command(tests, seconds), LONGEST)
    if result.test_outcome is TestOutcome.SURVIVED:
        return "survived"
    shown = re.search(r"^(FAILED|ERROR) ", result.output or "", flags=re.MULTILINE)
    return "killed" if shown else "stopped"


def shares(counts: dict[str, Counter]) -> str:
    """Return a line for each folder: the share of faults seen, with its exact 95 % interval."""
    lines = ["| folder | faults | killed | stopped | survived | share seen |", "|---|" + "---|" * 5]
    for folder, count in counts.items():
        n, seen = count.total(), count["killed"] + count["stopped"]
        low = beta.ppf(0.025, seen, n - seen + 1) if seen else 0.0
        high = beta.ppf(0.975, seen + 1, n - seen) if seen < n else 1.0
        lines.append(
            f"| `{folder}` | {n} | {count['killed']} | {count['stopped']} | {count['survived']} "
            f"| {seen / n:.0%} [{low:.0%}, {high:.0%}] |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the sample; 1 where a folder sees significantly fewer faults than it must."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=50, help="faults in each folder, at most")
    parser.add_argument("--minutes", type=float, default=60, help="begin no fault after this time")
    parser.add_argument("--seed", type=int, default=0)
    options, chosen = parser.parse_args(), settings()
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, ignore=LEFT_OUT)
    os.chdir(COPY)
    # The tests must import the copy, and not the libraries of cosmic-ray.
    os.environ["PYTHONPATH"] = str(COPY)
    operators = "core/(" + "|".join(chosen["operators"]) + ")"
    drawn = [sample(f, operators, options.each, options.seed) for f in chosen["folders"]]
    # One of each folder in turn: wherever time ends, each folder has a random sample.
    order = [faults[i] for i in range(options.each) for faults in drawn if i < len(faults)]
    print(f"seed {options.seed}: {len(order)} faults at most", flush=True)
    end = time.monotonic() + 60 * options.minutes
    counts: dict[str, Counter] = {folder: Counter() for folder in chosen["folders"]}
    for planted in order:
        if time.monotonic() > end:
            break
        result = outcome(planted)
        counts["/".join(planted.module.split("/")[:2])][result] += 1
        print(result, planted, flush=True)
    counts = {folder: count for folder, count in counts.items() if count}
    print(shares(counts))
    return int(
        any(
            binom.cdf(n.total() - n["survived"], n.total(), chosen["least"]) < FALSE_ALARM
            for n in counts.values()
        )
    )


if __name__ == "__main__":
    raise SystemExit(main())
