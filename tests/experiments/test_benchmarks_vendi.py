"""The benchmark of the Vendi family at a tiny size."""

from __future__ import annotations

import json
import time
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
        result = json.dumps(vendi.one(case, name, cpu="--cpu" in command))
        return SimpleNamespace(returncode=0, stdout=result, stderr="")

    monkeypatch.setattr(vendi.subprocess, "run", run)
    monkeypatch.setattr(vendi, "find_spec", lambda name: None)


def test_every_case_runs_and_is_recorded(tiny, page):
    assert vendi.main(["--record", "--page", str(page)]) == 0
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    ours = sum(not name.startswith("peer") for _, _, c in vendi.CASES.values() for name in c)
    assert len(rows) == ours + len(vendi.QUOTED)
    assert all(float(row[6]) > 0.0 for row in rows)
    quoted = next(row for row in rows if "quoted" in row[4])
    assert float(quoted[5]) == 167.0


def test_processor_seconds_leave_sleep_out(tiny, monkeypatch, capsys):
    monkeypatch.setitem(vendi.CASES, "sleep", (60, 8, {"genbounds sleeps": sleep}))
    assert vendi.main(["sleep"]) == vendi.main(["sleep", "--cpu"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| sleep")]
    wall, processor = (float(row.split("|")[5]) for row in rows)
    assert wall > 0.1 > processor
    with pytest.raises(SystemExit):  # other seconds than those of the page
        vendi.main(["--cpu", "--record"])


def sleep(x):
    time.sleep(0.2)
    return 1.0
