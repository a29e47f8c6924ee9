"""What stands beside the package: one version everywhere, workflows that call what exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import genbounds
from tests.processors import KERNELS

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

CONDA = {"matplotlib": "matplotlib-base"}
"""Names that differ there."""

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
    assert commands == {
        "ci": [".ci/run"],
        "nightly": [".ci/nightly"],
        "wheels": ["make package"],
        "docs": ["make docs"],
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^package:", makefile, flags=re.MULTILINE)
    for script in (".ci/run", ".ci/nightly"):
        assert os.access(ROOT / script, os.X_OK)


def test_selections_of_tests_name_what_exists():
    """Of the Makefile, and of other processors: a file that was moved would end a run at night."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lists = re.findall(r"^\w+_TESTS := (.*)$", makefile, flags=re.MULTILINE)
    assert len(lists) == 3
    named = {name for line in lists for name in line.split()}
    named |= {f"tests/{name}" for names in KERNELS.values() for name in names}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_workflows_may_only_read():
    """But for the jobs that publish, which run nothing: a token of theirs, no password."""
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "permissions:\n  contents: read" in text, path
        assert "secrets." not in text
        for job in re.split(r"^  (?=\w+:$)", text.partition("\njobs:\n")[2], flags=re.MULTILINE):
            if ": write" in job:
                assert "needs: build" in job
                assert "environment:" in job
                assert "run:" not in job


def test_releases_ask_for_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    asked = [line.removeprefix("    - ") for line in run.splitlines()]
    wanted = [Requirement(text) for text in project["dependencies"]]
    assert asked == [
        f"python {project['requires-python']}",
        *(f"{CONDA.get(one.name, one.name)} {one.specifier}" for one in wanted),
    ]
    assert f'version: "{project["version"]}"' in recipe
    assert project["name"] in project["scripts"]  # `pipx run` and `uvx` start it by that name
    shown = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert shown["license"] == project["license"]
    assert f'title: "{shown["title"]}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")))
    known = re.findall(r"^@\w+{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE)
    assert cited == set(known)


@pytest.mark.parametrize(
    ("margin", "status", "decision"),
    [("50%", 0, "pass"), ("0.001%", 1, "inconclusive"), ("x", 2, "")],
)
def test_the_action_gates_and_says_so(tmp_path, margin, status, decision):
    """The script of action.yml: its answer in the summary and the outputs, its status the job's."""
    rng = np.random.default_rng(0)
    for name, scale in (("real", 1.0), ("a model's; $(id)", 1.3), ("new", 1.3)):
        np.save(tmp_path / f"{name}.npy", scale * rng.normal(size=(2000, 4)))
    given = re.findall(
        r"^        (\w+): \${{ inputs", (ROOT / "action.yml").read_text(), re.MULTILINE
    )
    values = {
        "REFERENCE": "real.npy",
        "BASELINE": "a model's; $(id).npy",
        "CANDIDATE": "new.npy",
        "MARGIN": margin,
        "OPTIONS": "--level 0.9",
        "OUT": "gate",
    }
    assert {*given} == {*values, "WHAT"}
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs"
    found = subprocess.run(
        [str(ROOT / "packaging" / "gate.sh")],
        cwd=tmp_path,
        env={
            **os.environ,
            **values,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(outputs),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == status, found.stderr
    if decision:
        assert outputs.read_text() == f"decision={decision}\n"
        assert summary.read_text() == found.stdout != ""
    else:
        assert not outputs.exists()
        assert "--margin" in found.stderr


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
