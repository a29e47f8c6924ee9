"""A small zoo of files, and the program run in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from genbounds.cli import main


def listen_to_ctrl_c() -> None:
    """Run in a new process: a shell's background jobs, and all their children, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


ON_TERMINAL = """
import fcntl, struct, sys, termios
from genbounds.cli import main

widths, *words = sys.argv[1:]
codes = set()
for width in map(int, widths.split()):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    codes.add(main(words))
    print(end="\\f", flush=True)
sys.exit(0 if codes <= {0, 1} else 2)
"""


def on_terminal(
    widths: Sequence[int], *words: object, errors: int | None = None, **environment: str
) -> list[str]:
    """Run the program on a pseudo-terminal of each width; return what it shows there.

    Standard error goes there too, but where `errors` names another place.
    """
    import pty

    primary, secondary = pty.openpty()
    left = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    with subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, " ".join(map(str, widths)), *map(str, words)],
        stdout=secondary,
        stderr=secondary if errors is None else errors,
        env={k: v for k, v in os.environ.items() if k not in left} | environment,
    ) as program:
        os.close(secondary)
        output = b""
        while True:
            try:
                chunk = os.read(primary, 65536)
            except OSError:  # the other end was closed
                break
            if not chunk:
                break
            output += chunk
        assert program.wait(60) == 0
    os.close(primary)
    return output.decode().split("\f")[:-1]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys):
    """Run `genbounds` with these arguments."""

    def call(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def zoo(tmp_path_factory) -> Path:
    """Return a folder of good files: never written to by tests."""
    folder = tmp_path_factory.mktemp("zoo")
    rng = np.random.default_rng(0)
    d = 4
    np.save(folder / "real.npy", rng.normal(size=(600, d)))
    for name, scale in {"good": 1.0, "close": 1.02, "bad": 2.0}.items():
        np.save(folder / f"{name}.npy", scale * rng.normal(size=(500, d)))
    np.savez(folder / "population.npz", mu=np.zeros(d), sigma=np.eye(d))
    np.savez(folder / "counted.npz", mu=np.zeros(d), sigma=np.eye(d), n=900)
    for name, alpha in {"p_real": 0.05, "p_good": 0.1, "p_bad": 1.0}.items():
        posteriors = rng.dirichlet([alpha] * 5, size=400)
        np.save(folder / f"{name}.npy", posteriors)
        np.save(folder / f"{name}_logits.npy", np.log(posteriors + 1e-300) + 3.0)
    return folder
