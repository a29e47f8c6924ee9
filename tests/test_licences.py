"""What is installed with genbounds may be used by anybody: permissive licences, listed."""

from __future__ import annotations

import csv
import re
import tomllib

import pytest

from tests.licences import EXTRAS, ROOT, TABLE, licences

PERMISSIVE = re.compile(
    r"(MIT|BSD|0BSD|3-Clause BSD|Apache|ISC|PSF|Python Software|Zlib|CC0|BSL|CNRI)[\w.() -]*"
)
FILES_ALONE = {"hypothesis", "tqdm"}
"""MPL-2.0: what is changed in their own files is to be given away, and nothing else."""


def table() -> dict[str, str]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return {package: licence for package, licence in rows}


@pytest.mark.parametrize("of", [table, licences], ids=["listed", "installed"])
def test_every_licence_is_permissive(of):
    for package, licence in of().items():
        parts = re.split(r" (?:AND|OR|WITH) ", licence)
        if package in FILES_ALONE:
            parts.remove("MPL-2.0")
        odd = [
            part for part in parts if not (PERMISSIVE.fullmatch(part) or "LLVM-exception" == part)
        ]
        assert odd == [], package


def test_the_list_has_what_the_project_names():
    """New? ``python -m tests.licences``, where all of it is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in EXTRAS:
        lines += project["optional-dependencies"][extra]
    named = {re.split("[>=]", line)[0].replace("_", "-") for line in lines}
    assert named - table().keys() == set()
