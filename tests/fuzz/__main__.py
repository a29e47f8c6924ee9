"""Feed the readers hostile files: ``python -m tests.fuzz --inputs 1000000`` (``make fuzz``).

Inputs come in blocks, each with its own seed, of one reader after the other; what is done is kept,
so that an interrupted run goes on, until the readers or the fuzzer change. ``--engine atheris``
lets the coverage of the readers guide the search instead (atheris has wheels for some Pythons
only). What breaks a reader is kept in a folder and named.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.seeds import MAKERS, SHARES, scratch, write_corpus

BLOCK = 1_000
ROOT = Path(__file__).parents[2]
READERS = ("genbounds/files", "genbounds/features/sources")
WATCHED = (*READERS, "tests/fuzz")


def sources(name: str) -> list[Path]:
    """Return the Python files that a path in the repository holds."""
    root = ROOT / name
    return sorted(root.rglob("*.py")) if root.is_dir() else [root]


def keep(folder: Path, suffix: str, data: bytes, error: Exception) -> None:
    """Write a finding and say so."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}{suffix}"
    path.write_bytes(data)
    print(f"{path}: {error}", file=sys.stderr, flush=True)


class Progress:
    """What is done, by reader; kept in a file that belongs to one state of the code."""

    def __init__(self, path: Path, seed: int) -> None:
        digest = hashlib.sha256(str(seed).encode())
        for name in WATCHED:
            for file in sources(name):
                digest.update(file.read_bytes())
        self._path, self._state = path, digest.hexdigest()
        self.counts = {suffix: {"read": 0, "refused": 0, "broken": 0} for suffix in MAKERS}
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["state"] == self._state:
                self.counts = kept["counts"]

    def done(self, suffix: str) -> int:
        """Return the number of inputs that a reader has had."""
        return sum(self.counts[suffix].values())

    @property
    def total(self) -> int:
        """Inputs of all readers."""
        return sum(map(self.done, self.counts))

    @property
    def broken(self) -> int:
        """Findings of all readers."""
        return sum(count["broken"] for count in self.counts.values())

    def save(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = {"state": self._state, "counts": self.counts}
        self._path.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def table(self) -> str:
        """Return the counts as lines."""
        lines = [f"{'reader':<14}{'inputs':>10}{'read':>10}{'refused':>10}{'broken':>8}"]
        for suffix, count in self.counts.items():
            numbers = (self.done(suffix), count["read"], count["refused"], count["broken"])
            lines.append("{:<14}{:>10,}{:>10,}{:>10,}{:>8,}".format(suffix, *numbers))
        return "\n".join(lines)


def wanted(inputs: int) -> dict[str, int]:
    """Divide the inputs among the readers, in whole blocks."""
    parts = sum(SHARES.values())
    return {
        suffix: -(-inputs * share // (parts * BLOCK)) * BLOCK for suffix, share in SHARES.items()
    }


def blocks(progress: Progress, goal: dict[str, int]) -> Iterator[str]:
    """Yield the readers in turn, as long as one has not had its inputs."""
    while behind := [suffix for suffix in goal if progress.done(suffix) < goal[suffix]]:
        yield from behind


def at_random(inputs: int, seed: int, findings: Path) -> int:
    """Run seeded mutations; returns the number of findings."""
    from tests.fuzz.harness import Broken, probe
    from tests.fuzz.mutations import mutate

    progress = Progress(findings / "progress.json", seed)
    goal = wanted(inputs)
    before, start, shown = progress.total, time.monotonic(), 0.0
    if before:
        print(f"going on after {before:,} inputs", flush=True)
    with scratch() as folder:
        for suffix in blocks(progress, goal):
            number = progress.done(suffix) // BLOCK
            rng = random.Random(f"{seed} {suffix} {number}")
            outcomes = {"read": 0, "refused": 0, "broken": 0}
            faulthandler.dump_traceback_later(900.0, exit=True)  # a hang outside Python
            for _ in range(BLOCK):
                data = mutate(suffix, rng)
                try:
                    outcomes[probe(Path(folder) / f"x{suffix}", data)] += 1
                except Broken as error:
                    outcomes["broken"] += 1
                    keep(findings, suffix, data, error)
            for outcome, count in outcomes.items():
                progress.counts[suffix][outcome] += count
            progress.save()
            took = time.monotonic() - start
            if took > shown + 10.0:
                shown, rate = took, (progress.total - before) / took
                left = (sum(goal.values()) - progress.total) / rate
                print(
                    f"{progress.total:,} inputs, {rate:,.0f} a second, {left:,.0f} s left",
                    flush=True,
                )
    faulthandler.cancel_dump_traceback_later()
    print(progress.table())
    print(f"{progress.total:,} inputs, {progress.broken} of them broke a reader")
    return progress.broken


def guided(inputs: int, seed: int, findings: Path) -> None:
    """Run atheris; it ends the process itself, with another status than 0 at the first finding."""
    import atheris

    files = [file.relative_to(ROOT) for name in READERS for file in sources(name)]
    ours = [".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files]
    with atheris.instrument_imports(
        include=[*ours, "zipfile", "tarfile", "numpy.lib._format_impl"]
    ):
        from tests.fuzz.harness import Broken, probe

    suffixes = list(MAKERS)
    corpus = findings / "corpus"
    write_corpus(corpus)
    shelf = scratch()
    folder = Path(shelf.name)

    def one_input(data: bytes) -> None:
        if not data:
            return
        suffix = suffixes[data[0] % len(suffixes)]
        try:
            probe(folder / f"x{suffix}", data[1:])
        except Broken as error:
            keep(findings, suffix, data[1:], error)
            raise

    atheris.Setup(
        [
            sys.argv[0], str(corpus), f"-atheris_runs={inputs}", f"-seed={seed + 1}",
            "-max_len=65536", "-rss_limit_mb=2048", "-timeout=120", f"-artifact_prefix={findings}/",
        ],
        one_input,
    )  # fmt: skip
    atheris.Fuzz()


def main() -> int:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=("random", "atheris"), default="random")
    parser.add_argument("--findings", type=Path, default=Path(".cache/fuzz"))
    options = parser.parse_args()
    if options.engine == "random":
        return min(at_random(options.inputs, options.seed, options.findings), 1)
    try:
        guided(options.inputs, options.seed, options.findings)
    except ModuleNotFoundError as error:
        if error.name != "atheris":
            raise
        print("atheris is not installed: nothing is guided by coverage", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
