"""The workflow of docs/ci.md: its steps run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np

import genbounds as gb
from genbounds.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
OTHERS = ("pip install genbounds-*.whl", "python sample.py")


def workflow() -> str:
    (found,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found


def steps() -> list[str]:
    return re.findall(r"^ +(?:- )?run: (.+)$", workflow(), re.MULTILINE)


def test_steps_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("real.npy", rng.normal(size=(2000, 4)))
    gb.Moments.from_features(1.3 * rng.normal(size=(2000, 4)), keep=500).save("baseline.npz")
    ours = [step for step in steps() if step not in OTHERS]
    assert len(ours) == 1
    for scale, status in ((1.3, 0), (2.0, 1)):
        np.save("candidate.npy", scale * rng.normal(size=(2000, 4)))
        for step in ours:
            words = shlex.split(step)
            program, *arguments = words[: words.index(">>")]
            assert program == "genbounds"
            assert main(arguments) == status
        assert capsys.readouterr().out.count("\n") == 1
    # What is kept with the run is there.
    (path,) = re.findall(r"^ +path: (.+)$", workflow(), re.MULTILINE)
    assert Path(path, "report.html").exists()
