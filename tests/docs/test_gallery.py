"""Every script of the gallery runs, prints something, and is shown."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs(script, tmp_path, monkeypatch, capsys):
    if "torch" in script.stem:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_every_script_is_shown():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) >= 10
    for script in SCRIPTS:
        assert f"gallery/{script.name}\n" in page
