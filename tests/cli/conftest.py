"""A small zoo of files, and the program run in this process."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from genbounds.cli import main


def listen_to_ctrl_c() -> None:
    """Run in a new process: a shell's background jobs, and all their children, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
