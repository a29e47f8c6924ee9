"""The study at large d and the benchmarks of simulation run, at sizes that take a moment."""

from __future__ import annotations

import pytest

from experiments.accuracy import large
from experiments.benchmarks import simulation


@pytest.mark.parametrize("turned", [[], ["--turned"]])
def test_large_study(tmp_path, capsys, turned):
    command = ["--features", "32", "--samples", "400", "--replications", "40", "--jobs", "1"]
    command += ["--out", str(tmp_path), *turned]
    assert large.main(command) == 0
    first = capsys.readouterr().out.splitlines()
    assert "| 400 | 40 |" in first[2]
    assert "NumPy" in first[-1]
    assert large.main(command) == 0  # from what was kept
    again = capsys.readouterr().out.splitlines()
    assert again[:3] == first[:3]
    assert "for 0 batches" in again[-1]


@pytest.mark.slow
def test_benchmark_prints_one_row_a_size(capsys):
    options = ["--sizes", "64", "--seconds", "0.01", "--repeats", "1", "--device", "cpu"]
    assert simulation.main(options) in (0, 1)  # whether the aims are met is for a quiet machine
    rows = capsys.readouterr().out.splitlines()
    assert [row.count("|") for row in rows] == [13, 13, 13]
    cells = [cell.strip() for cell in rows[2].split("|")]
    assert cells[1] == "64, 1,000"
    assert float(cells[4]) == pytest.approx(float(cells[2]) / float(cells[3]), rel=0.1)
