"""The benchmark of the Vendi family at a tiny size."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from experiments.benchmarks import vendi


@pytest.fixture
def tiny(monkeypatch):
    """Every case on 60 rows of 8 features; truncated and approximate ones with few components."""
    small = {"components": 5}
    options = {"lanczos": small, "truncated": small, "nystrom": small, "fkea": small}

    def shrunk(name, call):
        method = name.rpartition(" ")[2]
        if method not in options:
            return call
        return vendi.ours(bandwidth=4.0, method=method, **options[method])

    cases = {
        case: (60, 8, {name: shrunk(name, call) for name, call in calls.items()})
        for case, (_, _, calls) in vendi.CASES.items()
    }
    monkeypatch.setattr(vendi, "CASES", cases)
    monkeypatch.setattr(vendi, "ENOUGH", 0.0)

    def run(command, **given):
        case, name = command[-2:]
        result = json.dumps(vendi.one(case, name))
        return SimpleNamespace(returncode=0, stdout=result, stderr="")

    monkeypatch.setattr(vendi.subprocess, "run", run)
    monkeypatch.setattr(vendi, "find_spec", lambda name: None)


def test_every_case_runs_and_is_recorded(tiny, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- vendi: begin -->\n<!-- vendi: end -->\nb\n")
    assert vendi.main(["--record", "--page", str(page)]) == 0
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    ours = sum(not name.startswith("peer") for _, _, c in vendi.CASES.values() for name in c)
    assert len(rows) == ours + len(vendi.QUOTED)
    assert all(float(row[6]) > 0.0 for row in rows)
    quoted = next(row for row in rows if "quoted" in row[4])
    assert float(quoted[5]) == 167.0
