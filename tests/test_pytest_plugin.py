"""The fixture `genbounds_gate`, as a project that installs genbounds sees it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

pytest_plugins = ["pytester"]

TESTS = """
import numpy as np

real, old, same, bad = (
    scale * np.random.default_rng(seed).normal(size=(800, 3))
    for seed, scale in enumerate((1.0, 1.2, 1.2, 1.9))
)

def test_no_worse(genbounds_gate):
    verdict = genbounds_gate(same, old, real, margin=0.4)
    assert verdict.decision == "pass"

def test_worse(genbounds_gate):
    genbounds_gate(bad, old, real, margin="5%")

def test_unclear(genbounds_gate):
    genbounds_gate(same, old, real, margin=0.001)

def test_unclear_is_fine(genbounds_gate):
    genbounds_gate(same, old, real, margin=0.001, inconclusive="pass")
"""


def test_the_fixture_fails_with_one_line(pytester):
    pytester.makepyfile(TESTS)
    result = pytester.runpytest("-p", "genbounds.pytest_plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2)
    text = result.stdout.str()
    assert "fail: fd of candidate is" in text
    assert "inconclusive: fd of candidate is" in text
    assert "Traceback" not in text
    assert "def test_worse" not in text


def test_loading_the_plugin_imports_nothing_heavy():
    code = "import sys, pytest; before = set(sys.modules); import genbounds.pytest_plugin; print(*(set(sys.modules) - before))"  # noqa: E501
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "matplotlib", "torch", "genbounds.decisions"}
    assert not heavy & set(found.stdout.split())


def test_the_entry_point_is_the_module():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    points = project["project"]["entry-points"]["pytest11"]
    assert points == {"genbounds.pytest_plugin": "genbounds.pytest_plugin"}
