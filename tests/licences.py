"""Licences of what genbounds installs: ``python -m tests.licences`` writes them down.

What `pyproject.toml` names, with its extras, and all that this brings, as far as it is installed.
"""

from __future__ import annotations

import csv
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "evidence" / "data" / "licences.csv"
EXTRAS = ("audit", "torch", "parquet", "encoders", "text", "onnx", "torchmetrics", "dask")
"""What users install; tools of tests and pages are nobody's dependency."""


def required(lines: list[str], seen: dict[str, str]) -> None:
    """Add to `seen` the licence of every installed package that these lines bring."""
    for line in lines:
        needed = Requirement(line)
        name = re.sub(r"[-_.]+", "-", needed.name).lower()
        wanted = needed.marker is None or needed.marker.evaluate({"extra": ""})
        if not wanted or name in seen:
            continue
        try:
            seen[name] = licence(name)
        except PackageNotFoundError:
            continue
        required(requires(name) or [], seen)


def licence(name: str) -> str:
    """Return what the metadata of a package say: an expression, or their classifiers."""
    found = metadata(name)
    if "License-Expression" in found:
        return str(found["License-Expression"])
    classified = [c.split(" :: ")[-1] for c in found.get_all("Classifier", []) if "License" in c]
    text = str(found.get("License", "")).strip().partition("\n")[0]
    return ", ".join(c for c in classified if c != "OSI Approved") or text


def licences() -> dict[str, str]:
    """Return the licence of every package that an installation with all extras has here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    seen: dict[str, str] = {}
    required(project["dependencies"], seen)
    for extra in EXTRAS:
        required(project["optional-dependencies"][extra], seen)
    return seen


def main() -> None:
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [("package", "licence"), *sorted(licences().items())]
        )


if __name__ == "__main__":
    main()
