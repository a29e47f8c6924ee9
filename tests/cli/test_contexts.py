"""`genbounds select --contexts`: a winner for each kind of row of files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import genbounds as gb
from genbounds.report.wording import STOPPED
from genbounds.select import FeatureArm

CENTRES = {"cats": 0.0, "dogs": 3.0}


def write(path, errors, n=800, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(list(errors), n)
    shift = np.array([CENTRES.get(k, 0.0) + errors[k] for k in kind])
    np.savez(path, features=rng.normal(shift[:, None], size=(n, 2)), kind=kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("contexts")
    write(where / "real.npz", {"cats": 0.0, "dogs": 0.0}, seed=1)
    write(where / "a.npz", {"cats": 0.0, "dogs": 1.5}, seed=2)
    write(where / "b.npz", {"cats": 1.5, "dogs": 0.0}, seed=3)
    write(where / "same.npz", {"cats": 0.0, "dogs": 0.0}, seed=4)
    write(where / "alike.npz", {"cats": 0.0, "dogs": 0.0}, seed=5)
    write(where / "lacks.npz", {"cats": 0.0}, seed=6)
    write(where / "more.npz", {"cats": 0.0, "dogs": 0.0, "cows": 0.0}, seed=7)
    np.save(where / "plain.npy", np.random.default_rng(8).normal(size=(300, 2)))
    np.savez(where / "stats.npz", mu=np.zeros(2), sigma=np.eye(2))
    return where


def call(folder, reference, *models):
    files = [folder / f"{name}.npz" for name in models]
    return ("select", "--reference", folder / f"{reference}.npz", *files, "--contexts", "kind")


def test_numbers_are_the_library_s(run, folder):
    result = run(*call(folder, "real", "a", "b"), "--json", "--batch", 50)
    assert (result.code, result.err) == (0, "")

    def parts(name):
        held = np.load(folder / f"{name}.npz")
        return {k: held["features"][held["kind"] == k] for k in CENTRES}

    arms = {name: {k: FeatureArm(x) for k, x in parts(name).items()} for name in "ab"}
    expected = gb.select.run(arms, contexts=parts("real"), batch=50, retries=0)
    document = result.json
    assert document["winners"] == expected.winners == {"cats": "a", "dogs": "b"}
    found = json.loads(json.dumps(expected.to_dict()))
    assert {key: document[key] for key in found} == found


def test_the_table_says_what_is_undecided(run, folder):
    result = run(*call(folder, "real", "same", "alike"))
    assert result.code == 1
    assert "Not certified in all contexts: 0 of 2 decided" in result.out
    assert "same, alike" in result.out
    assert "the recommendation is an estimate" in result.out
    for context in ("cats", "dogs"):
        line = next(x for x in result.out.splitlines() if x.startswith(f"* {context}: "))
        assert line.removeprefix(f"* {context}: ") in STOPPED.values()
    good = run(*call(folder, "real", "a", "b"))
    assert good.code == 0
    assert "A best model in each of 2 contexts, together at 95" in good.out


@pytest.mark.slow
def test_out_has_a_page(run, folder, tmp_path):
    assert run(*call(folder, "real", "same", "alike"), "--out", tmp_path).code == 1
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Which model for which kind of prompt" in html
    assert "no guarantee" in html
    document = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert document["complete"]
    assert document["undecided"] == {"cats": ["same", "alike"], "dogs": ["same", "alike"]}


def test_without_a_reference_the_models_name_the_contexts(run, tmp_path):
    rng = np.random.default_rng(0)
    for name, alphas in {"sure": (0.05, 0.05), "unsure": (1.0, 1.0)}.items():
        kind = rng.integers(2, size=800)
        rows = np.array([rng.dirichlet(np.full(4, alphas[k])) for k in kind])
        np.savez(tmp_path / f"{name}.npz", features=rows, kind=kind)
    files = sorted(tmp_path.glob("*.npz"))
    result = run("select", *files, "--metric", "is", "--contexts", "kind", "--json")
    assert result.code == 0
    assert result.json["winners"] == {"0": "sure", "1": "sure"}


def test_strata_that_are_the_contexts_go(run, folder, tmp_path):
    """Else every context would be one stratum, and its rows not looked at."""

    def found(**labels):
        for name in ("real", "a", "b"):
            held = dict(np.load(folder / f"{name}.npz"))
            order = np.argsort(held["kind"])
            held = {key: values[order] for key, values in held.items()}
            if name == "a":  # every row stands twice
                held["features"][1::2] = held["features"][::2]
            own = {role: make(held["kind"]) for role, make in labels.items()}
            np.savez(tmp_path / f"{name}.npz", **held, **own)
        return run(*call(tmp_path, "real", "a", "b"), "--json", "--batch", 50)

    def pairs(kind):
        return np.char.add(kind, (np.arange(len(kind)) // 2).astype(str))

    plain, grouped = found(), found(groups=pairs)
    assert "dependent" in plain.out
    assert found(strata=lambda kind: kind).json == plain.json
    assert found(strata=lambda kind: kind, groups=pairs).json == grouped.json != plain.json
    assert "numbers were fixed" not in plain.out
    assert "numbers were fixed" in found(strata=lambda kind: np.arange(len(kind)) % 2).out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("real", "a", "lacks"), "lacks.npz has no rows of context dogs, which"),
        (("real", "a", "more"), "real.npz has no rows of context cows, which"),
        (("real", "a", "b", "--contexts", "kinds"), "has no array kinds, only: features, kind"),
        (("real", "a", "b", "--contexts", "folders"), "`--contexts` "),
        (("real", "a", "b", "my_models:gan"), "`--contexts` is for files"),
        (("real", "a", "plain.npy"), "plain.npy: has no array kind"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(run, folder, arguments, text):
    models = [name for name in arguments[1:3] if not name.endswith(".npy")]
    rest = [folder / name if name.endswith(".npy") else name
            for name in arguments[1:] if name not in models]  # fmt: skip
    result = run(*call(folder, arguments[0], *models), *rest)
    assert (result.code, result.out) == (2, "")
    assert text in result.err
    assert result.err.count("\n") == 1
