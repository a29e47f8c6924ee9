"""Kill commands at random: ``python -m tests.fuzz.kills --kills 200`` (``make fuzz``).

A command is started, killed after a random time by a random signal, and started again, three times
at most; then it runs to its end. After every kill each file of the results is whole, and no less is
kept than before; in the end results are, byte for byte, those of a run that nothing disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from genbounds import InputError, cli, files

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
IN_A_ROW = 3
ENDED = {0, 1, 129, 130, 143, -signal.SIGHUP, -signal.SIGINT, -signal.SIGKILL, -signal.SIGTERM}
ENCODER = ("--encoder", "tests.features.toy:moments")


def _blocks(folder: Path) -> int:
    """Return the blocks of features that are kept; a finished file counts as more than it had."""
    found = [path.relative_to(folder) for path in folder.rglob("*.safetensors")]
    whole = {path for path in found if path.parent.suffix != ".parts"}
    parts = [path for path in found if path not in whole]
    return 10_000 * len(whole) + sum(path.parent.with_suffix("") not in whole for path in parts)


def _recorded(folder: Path) -> int:
    state = folder / "record" / "run.json"
    if not state.exists():
        return 0
    return sum(arm["n"] for arm in json.loads(state.read_text())["arms"].values())


def _rows(folder: Path) -> int:
    store = folder / "audit.sqlite"
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM work").fetchone()[0])
        except sqlite3.OperationalError:  # killed before there was a table
            return 0


@dataclass(frozen=True)
class Command:
    """A command that writes into the folder it is given, and what of its work is kept there."""

    words: Callable[[Path, Path], list[str]]
    kept: Callable[[Path], int]


COMMANDS = {
    "score": Command(
        lambda data, out: [
            "score", f"{data}/real", f"{data}/fake", *ENCODER, "--out", str(out), "--convergence",
        ],
        _blocks,
    ),
    "select": Command(
        lambda data, out: [
            "select", "--reference", f"{data}/real.npy", "tests.features.toy:good",
            "tests.features.toy:bad", "tests.features.toy:model", "--batch", "20",
            "--budget", "1500", "--policy", "uniform", "--record", f"{out}/record",
            "--out", str(out),
        ],
        _recorded,
    ),
    "features": Command(
        lambda data, out: [
            "features", f"{data}/real", *ENCODER, "--batch", "4", "--out", f"{out}/x.safetensors",
            "--moments", f"{out}/x.npz",
        ],
        _blocks,
    ),
    "audit": Command(
        lambda data, out: [
            "audit", "o24.hoeffding", "--replications", "500", "--quick",
            "--out", str(out),
        ],
        _rows,
    ),
}  # fmt: skip


class Broken(AssertionError):
    """Something was lost, or is half written."""


def make_data(folder: Path) -> None:
    """Write images of two models and the features of a reference."""
    rng = np.random.default_rng(0)
    for name, top in {"real": 256, "fake": 200}.items():
        (folder / name).mkdir()
        for number in range(150):
            image = Image.fromarray(rng.integers(0, top, (9, 7, 3), dtype=np.uint8))
            image.save(folder / name / f"{number:03d}.png")
    np.save(folder / "real.npy", rng.normal(size=(500, 4)))


def start(words: list[str], log: Path) -> int:
    """Run a command in a process of its own, which has everything imported already."""
    from genbounds.features import _extract

    heard = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    # A signal between the fork and `try` would raise in the child and run the parent's clean-up.
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
        return child
    try:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        _extract.BLOCK = 8  # many blocks of few images
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
        except KeyboardInterrupt:
            os._exit(130)  # it came before the command began
        os._exit(cli.main(words))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(99)


def finish(child: int) -> int:
    """Wait for a process; return its exit status, or the negative of the signal that ended it."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def results(folder: Path) -> dict[str, bytes]:
    """Return the files of a finished run; the store of the audit has the order of the work."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".sqlite" and not path.name.startswith(".genbounds-")
    }


def check_whole(folder: Path, truth: dict[str, bytes]) -> None:
    """Raise unless every file with a name of a result is whole."""
    for name in truth:
        path = folder / name
        if not path.exists():
            continue
        content = path.read_bytes()
        if name.endswith(".json") and not name.startswith("record"):
            if json.loads(content)["complete"] and content != truth[name]:
                raise Broken(f"{path} says that it is complete")
        elif name.endswith(".html") and content != truth[name]:
            raise Broken(f"{path} is the page of something else")
        elif name.endswith((".safetensors", ".npz")):
            files.read(path)


def one_round(
    command: Command, data: Path, truth: dict[str, bytes], seconds: float, rng: random.Random
) -> Counter[str]:
    """Kill a command up to three times, then let it finish; return what ended it."""
    ends: Counter[str] = Counter()
    # Beside the first run's folder: files of features say where the images are, seen from there.
    with tempfile.TemporaryDirectory(dir=data.parent) as name:
        out, log, kept = Path(name), data.parent / "log", 0
        words = command.words(data, out)
        for _ in range(rng.randint(1, IN_A_ROW)):
            number = rng.choice(SIGNALS)
            child = start(words, log)
            time.sleep(rng.uniform(0.0, seconds))
            os.kill(child, number)
            status = finish(child)
            said = log.read_text(errors="replace") if log.exists() else ""
            if status not in ENDED or "Traceback" in said:
                raise Broken(f"{number.name}: exit status {status}: {said}")
            ends["finished before" if status in (0, 1) else number.name] += 1
            try:
                check_whole(out, truth)
            except (InputError, ValueError) as error:
                raise Broken(f"{number.name}: {error}") from error
            if (now := command.kept(out)) < kept:
                raise Broken(f"{number.name}: of {kept} kept, {now} are left")
            kept = now
        status = finish(start(words, log))
        if status not in (0, 1):
            raise Broken(f"does not go on: exit status {status}: {log.read_text()}")
        if (found := results(out)) != truth:
            changed = [key for key in truth | found if truth.get(key) != found.get(key)]
            raise Broken(f"ends with other bytes: {', '.join(changed)}")
    return ends


def run(kills: int, seed: int, say: Callable[[str], None]) -> Counter[str]:
    """Kill until so many processes were killed; return how processes ended."""
    rng, ends = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        data.mkdir()
        make_data(data)
        truths, seconds = {}, {}
        for key, command in COMMANDS.items():
            out, log = Path(name) / key, Path(name) / "log"
            with contextlib.redirect_stdout(io.StringIO()):  # imports what it needs, here
                cli.main(command.words(data, Path(name) / "first" / key))
            began = time.monotonic()
            status = finish(start(command.words(data, out), log))
            seconds[key] = time.monotonic() - began
            if status not in (0, 1):
                raise Broken(log.read_text())
            truths[key] = results(out)
        say(", ".join(f"{key} {took:.1f} s" for key, took in seconds.items()))
        done: Counter[str] = Counter()
        while ends.total() - ends["finished before"] < kills:
            key = min(COMMANDS, key=lambda key: done[key])
            found = one_round(COMMANDS[key], data, truths[key], seconds[key], rng)
            ends += found
            done[key] += found.total() - found["finished before"]
            say(f"{done.total()} killed: {dict(done)}, {dict(ends)}")
    return ends


def main() -> int:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        ends = run(options.kills, options.seed, lambda text: None)
    except Broken as error:
        print(f"lost: {error}")
        return 1
    print(f"nothing was lost: {dict(ends)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
