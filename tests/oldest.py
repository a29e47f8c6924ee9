"""Print every lower bound of pyproject.toml as an exact version: ``python -m tests.oldest``.

`make oldest` installs these, so that no lower bound is a guess. torch, which takes gigabytes, what
needs it, and what serves the documentation are left out; ``python -m tests.oldest encoders text``
prints those of these extras alone, for `make floors`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("audit", "parquet", "demo", "test")
LEFT_OUT = {"torch", "playwright"}


def lower_bounds(*extras: str) -> dict[str, str]:
    """Return package and lowest version in these extras, or in all that `make oldest` tests."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    lines = [] if extras else [*project["dependencies"]]
    for extra in extras or EXTRAS:
        lines += project["optional-dependencies"][extra]
    found = {}
    for line in lines:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", line)
        if match and (extras or match[1] not in LEFT_OUT):
            found[match[1]] = match[2]
        elif not match and not line.startswith("genbounds["):
            raise SystemExit(f"{PROJECT}: {line!r} has no lower bound of the form name>=version")
    return found


if __name__ == "__main__":
    print(
        *(f"{name}=={version}" for name, version in lower_bounds(*sys.argv[1:]).items()), sep="\n"
    )
