"""The package as installed: quick to import, no network, names of the contract."""

from __future__ import annotations

import subprocess
import sys

import pytest

import genbounds as gb

HEAVY = (
    "torch",
    "matplotlib",
    "pandas",
    "statsmodels",
    "sympy",
    "sklearn",
    "jinja2",
    "scipy.stats",
)


def python(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_is_light():
    """Heavy packages are imported by the functions that need them."""
    loaded = python("import sys, genbounds; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_nothing_touches_the_network():
    """A whole small job runs with sockets forbidden."""
    code = """
import socket
def refuse(*args, **kwargs): raise AssertionError("network")
socket.socket = refuse
import numpy as np, genbounds as gb
x = np.random.default_rng(0).normal(size=(200, 3))
print(gb.compare({"a": x + 1, "b": x[:100]}, x[::-1] * 1.1).best)
"""
    assert python(code).strip() == "b"


@pytest.mark.parametrize(
    "name",
    [
        "Moments",
        "frechet_distance",
        "inception_score",
        "compare",
        "Score",
        "Ranking",
        "bounds.catalog",
        "bounds.Bound",
        "simulate.coverage",
        "simulate.Coverage",
        "simulate.GaussianArm",
        "select.run",
        "select.Selection",
    ],
)
def test_names_of_the_contract(name):
    target = gb
    for part in name.split("."):
        target = getattr(target, part)
    assert target.__doc__


def test_generators_are_not_touched():
    """Global random state stays as it was: every function takes its own seed."""
    code = """
import numpy as np, genbounds as gb
before = np.random.get_state()[1].copy()
x = np.random.default_rng(0).normal(size=(300, 3))
gb.frechet_distance(x, x[::-1] + 1)
assert (np.random.get_state()[1] == before).all()
"""
    python(code)
