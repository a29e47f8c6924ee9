"""Degenerate and extreme data through the program: what Python answers, or one line."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from experiments.benchmarks.hard import pairs

PAIRS = {pair.name: pair for pair in pairs()}

METRICS = {
    "fd": lambda fake, real: gb.frechet_distance(fake, real),
    "kid": lambda fake, real: gb.kernel_inception_distance(fake, real),
    "rke": lambda fake, real: gb.compare(
        {"fake": fake}, metric="rke", options={"kernel": "cosine"}
    ).scores["fake"],
}


def answer(call):
    try:
        return call()
    except gb.InputError:
        return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("hard")
    for number, pair in enumerate(PAIRS.values()):
        np.save(root / f"fake{number}.npy", pair.fake)
        np.save(root / f"real{number}.npy", pair.real)
    return root


@pytest.mark.parametrize("name", [*list(PAIRS)[::5], "all rows alike"])
def test_score(run, folder, name):
    """Of every fifth pair, by one metric: what the library answers has tests of its own."""
    pair, number = PAIRS[name], list(PAIRS).index(name)
    metric = list(METRICS)[number % len(METRICS)]
    expected = answer(lambda: METRICS[metric](pair.fake, pair.real))
    options = ["--kernel", "cosine"] if metric == "rke" else []
    files = [folder / f"real{number}.npy", folder / f"fake{number}.npy"][metric == "rke" :]
    result = run("score", *files, "--metric", metric, *options, "--json")
    if expected is None:
        assert result.code == 2
        assert result.out == ""
        assert result.err.count("\n") == 1
        assert result.err.startswith("genbounds: ")
        return
    assert result.code == 0
    (row,) = result.json["rows"]
    # All influences are kept for a comparison, where one score takes a part of a large sample.
    for field in ("value", "low", "high"):
        assert row[field] == pytest.approx(getattr(expected, field), rel=1e-9)
    # The command line looks at the files as well: these are ten rows of ones.
    seen = {"no-variation"} if name == "all rows alike" else set()
    codes = {warning["code"] for warning in row["warnings"]}
    assert codes == {warning.code for warning in expected.warnings} | seen


@pytest.mark.parametrize("power", [-150, 150])
def test_selection_refuses_extreme_scales(run, tmp_path, power):
    """Certificates add up variances, which are no numbers there."""
    rng = np.random.default_rng(0)
    for name in ("real", "a", "b"):
        np.save(tmp_path / f"{name}.npy", 10.0**power * rng.normal(size=(200, 3)))
    result = run(
        "select", "--reference", *(tmp_path / f"{name}.npy" for name in ("real", "a", "b"))
    )
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "double precision" in result.err
