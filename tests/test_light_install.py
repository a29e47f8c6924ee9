"""What a plain installation can do: everything but the audit, which says what it needs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

# What no plain installation has; the extras that the tests have are hidden behind this.
HIDDEN = (
    "sympy", "mpmath", "hypothesis", "statsmodels", "pandas", "torch", "torchvision",
    "torchmetrics", "pyarrow", "distributed", "dask", "onnxruntime",
    "sentence_transformers", "playwright",
)  # fmt: skip

HIDE = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HIDDEN!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def light(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDE + code], capture_output=True, text=True
    )


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for name, scale in {"real": 1.0, "good": 1.05, "bad": 2.0}.items():
        np.save(tmp_path / f"{name}.npy", scale * rng.normal(size=(400, 3)))
        np.save(tmp_path / f"p_{name}.npy", rng.dirichlet([0.1 * scale] * 4, size=300))
    return tmp_path


CALLS = [
    ["score", "real.npy", "good.npy", "bad.npy", "--out", "a", "--convergence"],
    ["score", "real.npy", "good.npy", "--metric", "kid", "--out", "b"],
    ["score", "p_good.npy", "p_bad.npy", "--metric", "is", "--out", "c"],
    ["score", "good.npy", "bad.npy", "--metric", "rke", "--out", "d"],
    ["score", "good.npy", "bad.npy", "--metric", "vendi", "--kernel", "cosine"],
    ["select", "--reference", "real.npy", "good.npy", "bad.npy", "--out", "e"],
    ["features", "real.npy", "--moments", "m.npz"],
    ["bounds"],
]
COVERAGE = """
import genbounds as gb
arm = gb.simulate.BernoulliArm(0.5)
gb.simulate.coverage(gb.bounds.catalog()["o24.hoeffding"], arm, 10, 0.1, 100, 0)
"""


@pytest.mark.slow
def test_scores_selection_page_and_coverage_need_no_extra(files):
    """In one process, as each call would import the library anew."""
    code = f"import os; os.chdir({str(files)!r}); from genbounds.cli import main\n"
    code += f"codes = [main(call) for call in {CALLS!r}]\n{COVERAGE}"
    done = light(code + "assert not any(codes), codes")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(files.glob("*/report.html"))) == 5


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["audit", "--quick"], ["bounds", "o24.hoeffding"]])
def test_the_audit_says_what_to_install(arguments):
    done = light(f"from genbounds.cli import main\nraise SystemExit(main({arguments!r}))")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for part in ("sympy, mpmath, hypothesis", "genbounds[audit]"):
        assert part in done.stderr


def test_the_probe_hides():
    """Negative control."""
    assert light("import sympy").returncode == 1


def test_what_is_hidden_is_in_no_plain_installation():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    plain = {line.partition(">")[0] for line in project["dependencies"]}
    assert not plain & set(HIDDEN)
    audit = {line.partition(">")[0] for line in project["optional-dependencies"]["audit"]}
    assert audit == {"sympy", "mpmath", "hypothesis"}
