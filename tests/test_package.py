"""The package as installed: quick to import, no network; public names: `tests/frozen`."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds import report

HEAVY = (
    "torch",
    "matplotlib",
    "pandas",
    "statsmodels",
    "sympy",
    "mpmath",
    "sklearn",
    "jinja2",
    "joblib",
    "pyarrow",
    "safetensors",
    "typer",
    "rich",
    "scipy.linalg",  # 0.15 s with what it imports: half the time of `import genbounds`
    "scipy.special",
    "scipy.stats",
    "scipy.optimize",
    "scipy.integrate",
)


def python(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_import_is_light():
    """Heavy packages are imported by the functions that need them."""
    loaded = python("import sys, genbounds; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_importing_the_package_imports_nothing_yet():
    loaded = python("import sys, genbounds; print(*sys.modules)").split()
    assert "numpy" not in loaded
    assert (
        "numpy" in python("import sys, genbounds; genbounds.Moments; print(*sys.modules)").split()
    )


def test_names_for_type_checkers_are_those_that_exist():
    """The package imports its names when asked; the list for type checkers is written out."""
    assert gb.__file__ is not None
    tree = ast.parse(Path(gb.__file__).read_text(encoding="utf-8"))
    (block,) = [
        node for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]  # fmt: skip
    written = {
        alias.name: f"{node.module}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(written) == set(gb.__all__)
    for name, module in written.items():
        thing = getattr(gb, name)
        assert thing is (sys.modules.get(f"genbounds.{name}") or getattr(sys.modules[module], name))
    with pytest.raises(AttributeError, match="nothing"):
        gb.nothing  # noqa: B018


def test_what_the_package_itself_imports_is_not_listed():
    shown = set(python("import genbounds; genbounds.Score; print(*dir(genbounds))").split())
    assert set(gb.__all__) <= shown
    modules = {path.stem for path in Path(gb.__file__ or "").parent.iterdir()}
    assert {name for name in shown if name[0] != "_"} <= {*gb.__all__, *modules}


FORBIDDEN = """
import socket, subprocess, sys, urllib.request
def refuse(*args, **kwargs):
    raise AssertionError("network")
for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname", "socketpair"):
    setattr(socket, name, refuse)
"""


@pytest.mark.slow
def test_nothing_touches_the_network(tmp_path):
    """Import, scores, a ranking, a selection, a report: with sockets and look-ups forbidden.

    Nor is torch, seconds to import, touched where nobody passes a tensor.
    """
    code = f"""
{FORBIDDEN}
import numpy as np, genbounds as gb
from genbounds.cli import main
rng = np.random.default_rng(0)
x = rng.normal(size=(200, 3))
np.save({str(tmp_path / "x.npy")!r}, x)
np.save({str(tmp_path / "y.npy")!r}, 1.1 * x[::-1])
print(gb.compare({{"a": x + 1, "b": x[:100]}}, x[::-1] * 1.1).best)
gb.vendi_score(x)
gb.inception_score(rng.dirichlet([0.1] * 4, size=100))
gb.select.run({{"a": gb.simulate.GaussianArm(np.zeros(3), np.eye(3)),
                "b": gb.simulate.GaussianArm(np.ones(3), np.eye(3))}},
              x, budget=400)
main(["score", {str(tmp_path / "x.npy")!r}, {str(tmp_path / "y.npy")!r}, "--json",
      "--out", {str(tmp_path)!r}])
assert "torch" not in sys.modules, "torch without a tensor"
"""
    assert python(code).startswith("b\n")
    assert (tmp_path / "report.html").exists()


def test_the_ban_works():
    """Negative control of the test above."""
    with pytest.raises(subprocess.CalledProcessError) as failed:
        python(FORBIDDEN + "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')")
    assert "AssertionError: network" in failed.value.stderr


@pytest.mark.slow
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


THREADED = {
    "frechet_distance": lambda x: gb.frechet_distance(x, x[::-1] * 1.1 + 0.1).to_dict(),
    "few samples": lambda x: gb.frechet_distance(x[:5], x[::-1] * 1.1).to_dict(),
    "inception_score": lambda x: gb.inception_score(x**2 / (x**2).sum(1)[:, None]).to_dict(),
    "vendi_score": lambda x: gb.vendi_score(x, method="lanczos").to_dict(),
    "rke": lambda x: gb.vendi_score(x, order=2.0, method="ustat").to_dict(),
    "compare": lambda x: gb.compare({"a": x, "b": 2 * x}, x[::-1] + 0.3).to_dict(),
    "sobol": lambda x: gb.sobol_normal(3, rng=int(abs(x[0, 0]) * 1e6)).draw(64).tolist(),
    "catalog": lambda x: [b.claimed(0.05) for b in gb.bounds.catalog().values()],
    "coverage": lambda x: gb.simulate.coverage(
        gb.bounds.catalog()["o24.hoeffding"], gb.simulate.BetaArm(2.0, 3.0), 20, 0.1, 2000,
        int(abs(x[0, 0]) * 1e6),
    ).miss,
    "select": lambda x: gb.select.run(
        {"a": gb.simulate.GaussianArm(np.zeros(3), np.eye(3)),
         "b": gb.simulate.GaussianArm(np.full(3, 2.0), np.eye(3))},
        x, budget=600, seed=int(abs(x[0, 0]) * 1e6),
    ).samples,
    "report": lambda x: report.score_page(
        {"a": gb.frechet_distance(x, x[::-1] + 0.5)}, metric="fd", level=0.95
    ).render(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", THREADED)
def test_threads_do_not_disturb_each_other(name):
    """Sixteen calls on eight inputs, four at a time, give what they give one after the other."""
    call = THREADED[name]
    inputs = [np.random.default_rng(seed).normal(size=(60, 3)) for seed in range(8)] * 2
    expected = [call(x) for x in inputs[:8]] * 2
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # as many switches as can be
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(call, inputs))
    finally:
        sys.setswitchinterval(interval)
    assert found == expected


def test_threads_probe_sees_a_shared_state():
    """Negative control: a function that goes through a global is caught."""
    shared = {}

    def careless(x):
        shared["x"] = x
        for _ in range(200):
            pass
        time.sleep(1e-4)
        return float(shared["x"][0, 0])

    inputs = [np.full((1, 1), float(k)) for k in range(64)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(careless, inputs)) != [careless(x) for x in inputs]


@pytest.mark.slow
def test_processes_give_the_same():
    """A forked and a spawned worker compute what this process computes."""
    from joblib import Parallel, delayed

    x = np.random.default_rng(0).normal(size=(50, 3))
    calls = [delayed(_score)(x, shift) for shift in (0.5, 1.0)]
    assert Parallel(n_jobs=2)(calls) == [_score(x, 0.5), _score(x, 1.0)]


def _score(x, shift):
    return gb.frechet_distance(x, x[::-1] * 1.2 + shift).to_dict()
