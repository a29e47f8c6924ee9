"""The benchmark of every score at a tiny size: whoever computes the same number gets the same."""

from __future__ import annotations

import pytest

from experiments import memory
from experiments.benchmarks import __main__ as benchmarks
from experiments.benchmarks import scores

pytest.importorskip("torch")

SAME = {
    "kid": "100 subsets, with interval",  # of all 200 rows: no choice is left
    "cmmd": "as published",
    "kad": "unbiased, with interval",
    "energy": "as published",
    "mind": "as published",
    "mean": "interval",
    "neighbours": "four scores, intervals, ratios",
}
ROUNDING = {"cmmd": 0.02, "kid": 1e-3}
"""Single precision: kernel values near 1, times 1,000, as clip-mmd computes them; sums that differ
by the number of threads (1.04e-4 was seen)."""


def first(told: float | str) -> float:
    return float(str(told).replace(",", "").split()[0])


@pytest.mark.parametrize("name", SAME)
def test_ours_and_theirs_agree_where_both_compute_the_same(name):
    case = scores.CASES[name](200, 6)
    assert SAME.keys() == scores.CASES.keys()
    mine = first(case.ours[SAME[name]]())
    assert mine > 0.0
    for call in case.peers.values():
        assert first(call()) == pytest.approx(mine, rel=ROUNDING.get(name, 1e-4))


def test_tables(monkeypatch, capsys):
    shown = "benchmarks scores --rows 100 --columns 4 --repeats 1 --threads 1 --cpu"
    monkeypatch.setattr("sys.argv", shown.split())
    benchmarks.main()
    said = capsys.readouterr().out
    assert said.count("###") == len(scores.CASES)
    assert "| scipy's bootstrap |" in said
    monkeypatch.setattr("sys.argv", ["benchmarks", "fame"])
    with pytest.raises(SystemExit):
        benchmarks.main()
    assert "no case 'fame'" in capsys.readouterr().err


@pytest.mark.skipif(not memory.forget_peak(), reason="this kernel keeps its peaks")
def test_memory_of_each_call():
    calls = {
        "larger": lambda: len(b"1" * (400 << 20)),
        "large": lambda: len(b"1" * (200 << 20)),
        "small": lambda: 1.0,
    }
    found = benchmarks.measured(calls, 2, lambda: 0.0)
    for name, gib in {"larger": 400 / 1024, "large": 200 / 1024, "small": 0.0}.items():
        assert found[name].gib == pytest.approx(gib, abs=0.05)
