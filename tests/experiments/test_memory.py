from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import memory

ROOT = Path(__file__).parents[2]


def in_child(line: str) -> float:
    command = [sys.executable, "-c", f"from experiments import memory\n{line}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return float(done.stdout)


@pytest.mark.skipif(not memory.STATUS.exists(), reason="no /proc here (Linux has one)")
def test_peak_is_that_of_the_program_alone():
    """A small program started by a large one is small; one that takes 0.3 GiB says so."""
    ballast = np.ones(1 << 26)  # 0.5 GiB
    assert memory.peak_gib() > 0.5
    assert in_child("print(memory.peak_gib())") < 0.2
    assert in_child("x = b'1' * (300 << 20); del x; print(memory.peak_gib())") > 300 / 1024
    assert ballast[-1] == 1.0


def test_without_proc_the_usual_measure_serves(monkeypatch, tmp_path):
    here = memory.peak_gib()
    monkeypatch.setattr(memory, "STATUS", tmp_path / "none")
    assert memory.peak_gib() == pytest.approx(here, rel=0.5)
