"""Feed the readers hostile files: ``python -m tests.fuzz --inputs 1000000`` (``make fuzz``).

With atheris the search is guided by the coverage of the readers; without it, and with
``--engine random``, by a seeded generator. What breaks a reader is kept in a folder and named.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path

from tests.fuzz.seeds import MAKERS, scratch, write_corpus


def keep(folder: Path, suffix: str, data: bytes, error: Exception) -> None:
    """Write a finding and say so."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}{suffix}"
    path.write_bytes(data)
    print(f"{path}: {error}", file=sys.stderr, flush=True)


def at_random(inputs: int, seed: int, findings: Path) -> int:
    """Run seeded mutations; returns the number of findings."""
    from tests.fuzz.harness import Broken, probe
    from tests.fuzz.mutations import mutate

    rng = random.Random(seed)
    found, outcomes = 0, {"read": 0, "refused": 0}
    start = time.monotonic()
    with scratch() as folder:
        for number in range(1, inputs + 1):
            suffix = rng.choice(list(MAKERS))
            data = mutate(suffix, rng)
            try:
                outcomes[probe(Path(folder) / f"x{suffix}", data)] += 1
            except Broken as error:
                found += 1
                keep(findings, suffix, data, error)
            if number % 10_000 == 0 or number == inputs:
                rate = number / (time.monotonic() - start)
                print(f"{number:,} inputs, {rate:,.0f} a second: {outcomes}", flush=True)
    return found


def guided(inputs: int, seed: int, findings: Path) -> None:
    """Run atheris; it ends the process itself, with another status than 0 at the first finding."""
    import atheris

    with atheris.instrument_imports(
        include=["genbounds.files", "zipfile", "numpy.lib._format_impl"]
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
            "-max_len=65536", "-rss_limit_mb=2048", "-timeout=20", f"-artifact_prefix={findings}/",
        ],
        one_input,
    )  # fmt: skip
    atheris.Fuzz()


def main() -> int:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=("auto", "atheris", "random"), default="auto")
    parser.add_argument("--findings", type=Path, default=Path(".cache/fuzz"))
    options = parser.parse_args()
    if options.engine != "random":
        try:
            import atheris  # noqa: F401
        except ImportError:
            if options.engine == "atheris":
                parser.error("atheris is not installed: pip install atheris")
            print("atheris is not installed: mutations are drawn at random", file=sys.stderr)
        else:
            guided(options.inputs, options.seed, options.findings)
            return 0
    return min(at_random(options.inputs, options.seed, options.findings), 1)


if __name__ == "__main__":
    raise SystemExit(main())
