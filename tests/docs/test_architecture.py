"""What the texts say about the architecture: packages, dependencies, commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = re.findall(r"^\| `(\S+)` \|", CONTRIBUTING, re.MULTILINE)


def packages(folder: str) -> set[str]:
    return {
        path.parent.name
        for path in (ROOT / folder).glob("*/__init__.py")
        if any(path.parent.glob("*.py"))
    }


def test_the_map_shows_every_package_and_no_other():
    assert all((ROOT / name).exists() for name in MAP)
    folders = {name.strip("/") for name in MAP if re.fullmatch(r"genbounds/\w+/", name)}
    assert folders == {f"genbounds/{name}" for name in packages("genbounds")}


def test_every_step_of_an_array_has_its_place():
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    places = re.findall(r"^\d+\. .* `(\S+\.py)`$", text, re.MULTILINE)
    assert len(places) == 11
    assert all((ROOT / "genbounds" / place).is_file() for place in places)


def test_contributing_is_one_screen():
    assert len(CONTRIBUTING.splitlines()) <= 60
    assert len(re.findall(r"\w+", CONTRIBUTING)) <= 700


def test_every_dependency_is_named_with_its_reason():
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for wanted in project["optional-dependencies"].values():
        lines += wanted
    names = {re.split(r"[<>=\[]", line)[0].lower() for line in lines} - {"genbounds"}
    spelled = table.replace("-", "_")
    assert [name for name in sorted(names) if name.replace("-", "_") not in spelled] == []


def test_constraints_pin_what_builds_the_package():
    """Else two machines build different bytes."""
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    for name in ("build", "hatchling", "packaging", "pathspec", "pluggy", "trove-classifiers"):
        assert re.search(rf"^{name}==", pinned, re.MULTILINE), name


def test_commands_that_prove_things_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    declared = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert declared is not None
    assert set(declared[1].split()) == described
    for path in (".ci/run", ".ci/nightly", "CONTRIBUTING.md", "README.md", "docs/dependencies.md"):
        text = (ROOT / path).read_text(encoding="utf-8")
        told = re.findall(r"^make ([a-z ]+?)(?: #.*)?$", text, re.MULTILINE)
        told += re.findall(r"`make ([a-z ]+)`", text)
        assert {word for line in told for word in line.split()} <= described, path


def test_files_that_pages_name_exist():
    named = {
        (page.name, path)
        for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/e*/*.md"))
        for path in re.findall(
            r"`((?:genbounds|tests|experiments|docs|simulate|estimators|select)/[\w./]+)`",
            page.read_text(encoding="utf-8"),
        )
    }
    assert len(named) > 30
    assert [
        (page, path)
        for page, path in sorted(named)
        if not ((ROOT / path).exists() or (ROOT / "genbounds" / path).exists())
    ] == []
