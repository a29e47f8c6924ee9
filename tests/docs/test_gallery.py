"""Every script of the gallery is shown, and so runs when the pages are built (`make docs`)."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


def test_every_script_is_shown():
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) >= 10
    for script in SCRIPTS:
        assert f"```{{script}} gallery/{script.name}\n" in page
