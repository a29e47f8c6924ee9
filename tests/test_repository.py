"""What stands beside the package: one version everywhere, workflows that call what exists."""

from __future__ import annotations

import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import genbounds

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(
    not WORKFLOWS, reason="the source archive has neither workflows nor scripts"
)


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (cited,) = re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE)
    assert cited == project["version"] == genbounds.__version__
    (licence,) = re.findall(r"^license: (.*)$", citation, flags=re.MULTILINE)
    assert licence == project["license"]


def test_all_that_the_set_up_installs_is_pinned():
    """In `constraints.txt`, with what is needed by what is needed."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(line.split("==")[0]) for line in lines if "==" in line}
    left, seen = [Requirement("genbounds[test,lint]")], set()
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        key = (name, *sorted(wanted.extras))
        try:
            needed = metadata.requires(name) if key not in seen else None
        except metadata.PackageNotFoundError:  # not needed here, or not by this environment
            continue
        seen.add(key)
        for text in needed or ():
            other = Requirement(text)
            extras = [{"extra": extra} for extra in ("", *wanted.extras)]
            if other.marker is None or any(map(other.marker.evaluate, extras)):
                left.append(other)
    environment = {"setuptools"}  # which `venv` brings
    assert {name for name, *_ in seen} - pinned <= {"genbounds", *environment}


def test_workflows_call_what_everybody_calls():
    """Nothing is tested by a workflow that a developer could not run by the same command."""
    commands = {
        path.stem: re.findall(r"- run: (.*)", path.read_text(encoding="utf-8"))
        for path in WORKFLOWS
    }
    assert commands == {"ci": [".ci/run"], "nightly": [".ci/nightly"], "wheels": ["make package"]}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^package:", makefile, flags=re.MULTILINE)
    for script in (".ci/run", ".ci/nightly"):
        assert os.access(ROOT / script, os.X_OK)


def test_workflows_may_only_read():
    for path in WORKFLOWS:
        assert "permissions:\n  contents: read" in path.read_text(encoding="utf-8"), path


def test_what_the_promises_name_exists():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(tests/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_no_address_is_invented():
    """The project is on no index and has no address of its own yet: nobody is sent to another's."""
    pages = [ROOT / "README.md", ROOT / "pyproject.toml", *ROOT.glob("docs/**/*.md")]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"github\.com/genbounds|pip install genbounds\b(?!-)", text), path


def test_lines_listed_as_harmless_are_there():
    """Else `make mutants` passes over what has become another line, or lists what is gone."""
    listed = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    for one in listed["harmless"]:
        lines = (ROOT / one["module"]).read_text(encoding="utf-8").splitlines()
        assert one["line"] in [line.strip() for line in lines], one
        assert one["why"], one
