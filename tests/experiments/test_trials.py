"""Every documented experiment has a smallest size at which `make experiments` runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments import __main__ as trials
from experiments.__main__ import ROOT, TRIALS, Trial

PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.md")]


def documented() -> set[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    return set(re.findall(r"python -m experiments\.([\w.]*\w)", text))


def test_every_script_and_every_documented_command_is_tried():
    known = {trial.module for trial in TRIALS}
    assert len(documented()) > 20
    assert documented() <= known
    assert set(trials.scripts()) <= known


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A small one, with a script that works, one that skips and one that fails."""
    root = tmp_path / "root"
    for name in trials.COPIED:
        (root / name).mkdir(parents=True)
    (root / "docs" / "page.md").write_text("mine")
    (root / "experiments" / "__init__.py").touch()
    end = '\nif __name__ == "__main__":\n    main()\n'
    for name, body in {
        "fine": "import pathlib\ndef main(): pathlib.Path('docs/page.md').write_text('its own')",
        "shy": "import sys\ndef main(): print('skipped: no card', file=sys.stderr)",
        "broken": "def main(): raise SystemExit('it broke')",
        "strict": "def main(): raise SystemExit(1)",
        "slow": "import time\ndef main(): time.sleep(60)",
    }.items():
        (root / "experiments" / f"{name}.py").write_text(body + end)
    monkeypatch.setattr(trials, "ROOT", root)
    return root


def run(monkeypatch, tmp_path, *made, limit=30):
    monkeypatch.setattr(trials, "TRIALS", made)
    monkeypatch.setattr(trials, "scripts", list)
    return trials.main(["--scratch", str(tmp_path / "scratch"), "--limit", str(limit)])


def test_pages_stay_as_they_are(repository, tmp_path, monkeypatch, capsys):
    for _ in range(2):  # and again over what the first left
        assert run(monkeypatch, tmp_path, Trial(module="fine"), Trial(module="shy")) == 0
    assert (repository / "docs" / "page.md").read_text() == "mine"
    assert (tmp_path / "scratch" / "docs" / "page.md").read_text() == "its own"
    said = capsys.readouterr().out
    assert "skipped in part" in said
    assert "skipped: no card" in said
    assert said.endswith("every script runs\n")


def test_what_fails_is_seen(repository, tmp_path, monkeypatch, capsys):
    judged = Trial(module="strict", statuses=(0, 1))
    assert run(monkeypatch, tmp_path, Trial(module="broken"), judged) == 1
    assert run(monkeypatch, tmp_path, Trial(module="strict")) == 1
    assert run(monkeypatch, tmp_path, Trial(module="slow"), limit=1) == 1
    said = capsys.readouterr().out
    assert "status 1: it broke" in said
    assert "TOO LONG" in said


def test_a_script_without_a_smallest_size_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(trials, "scripts", lambda: ["digits.new"])
    with pytest.raises(SystemExit):
        trials.main([])
    assert "nothing says how to make digits.new small" in capsys.readouterr().err


def test_names():
    assert Trial(module="gpu", arguments="--small").command == "experiments.gpu --small"
    assert Path(trials.__file__).parent == ROOT / "experiments"
