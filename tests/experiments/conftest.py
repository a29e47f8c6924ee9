"""A page to record into, with the sections of the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"


def section(page, name):
    """Return what stands between the markers of a section."""
    head, _, rest = page.read_text().partition(f"<!-- {name}: begin -->\n")
    assert head.startswith("# A\n")
    assert rest.endswith("\nlast\n")
    return rest.partition(f"<!-- {name}: end -->")[0]


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    texts = "".join(page.read_text(encoding="utf-8") for page in EVIDENCE.glob("*.md"))
    names = dict.fromkeys(re.findall(r"<!-- ([\w-]+): begin -->", texts))
    edges = [f"<!-- {name}: {edge} -->" for name in names for edge in ("begin", "end")]
    path.write_text("# A\n" + "\n".join(edges) + "\nlast\n")
    return path
