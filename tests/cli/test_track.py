"""`genbounds track`: steps from file names, the table, JSON, the page, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds.cli.decisions import steps_of
from genbounds.validation import InputError

SCALES = {100: 2.0, 300: 1.5, 1000: 1.1, 2000: 1.1, 10000: 1.6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    np.save(where / "real.npy", rng.normal(size=(1500, 4)))
    for step, scale in SCALES.items():
        np.save(where / f"step-{step}.npy", scale * rng.normal(size=(800, 4)))
    np.save(where / "again.npy", 1.1 * rng.normal(size=(900, 4)))
    for k, alpha in enumerate((1.0, 0.2)):
        np.save(where / f"probs-{k}.npy", rng.dirichlet(np.full(5, alpha), size=500))
    return where


def checkpoints(folder):
    return sorted(folder.glob("step-*.npy"))  # as a shell does: 100, 1000, 10000, 2000, 300


def test_steps_come_in_order_and_numbers_are_the_library_s(run, folder):
    result = run("track", folder / "real.npy", *checkpoints(folder), "--json")
    assert (result.code, result.err) == (0, "")
    assert [look["step"] for look in result.json["looks"]] == list(SCALES)
    assert result.json["looks"][0]["model"] == "step-100"
    assert result.json["verdict"] == "collapsed"
    assert result.json["complete"]
    samples = {step: np.load(folder / f"step-{step}.npy") for step in SCALES}
    expected = gb.track(samples, np.load(folder / "real.npy")).to_dict()
    for look, other in zip(result.json["looks"], expected.pop("looks"), strict=True):
        assert {key: look[key] for key in other} == json.loads(json.dumps(other))
    assert {key: result.json[key] for key in expected} == json.loads(json.dumps(expected))


def test_the_table_and_the_verdict(run, folder):
    out = run("track", folder / "real.npy", *checkpoints(folder)).out.replace("\u202f", " ")
    assert "Collapsed: step 10000 is worse than" in out
    assert re.search(r"Keep step \d+\. Corrected for having been chosen, its interval is \[", out)
    assert "the number of looks (5) was fixed beforehand" in out


def test_a_forgotten_reference_is_refused(run, folder):
    """The first checkpoint would be taken for the real data."""
    result = run("track", *checkpoints(folder))
    assert (result.code, result.out) == (2, "")
    assert "step-100.npy" in result.err
    assert "named as the checkpoints are" in result.err
    one, *others = checkpoints(folder)
    assert run("track", "--reference", one, *others, "--json").code == 0  # said in so many words


def test_fresh_samples(run, folder):
    again = ("--fresh", folder / "again.npy")
    result = run("track", folder / "real.npy", *checkpoints(folder), *again, "--json")
    kept = result.json["kept"]
    assert kept["fresh"]
    assert kept["score"]["n"] == 900
    assert len(result.json["looks"]) == len(SCALES)


def test_every_file_is_a_checkpoint_where_there_is_no_reference(run, folder):
    files = [folder / "probs-1.npy", folder / "probs-0.npy"]
    document = run("track", *files, "--metric", "is", "--json").json
    assert [look["state"] for look in document["looks"]] == ["first", "improved"]


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["step-20.npy", "step-100.npy"], [20, 100]),
        (["run2-step-0100-2048.npy", "run2-step-0200-2048.npy"], [100, 200]),
        (["epoch=1-step=500.npz", "epoch=2-step=1000.npz"], [500, 1000]),
        (["v3/step7.npy"], [7]),
        (["epoch=1-step=100-fid=12.50.npy", "epoch=2-step=200-fid=3.25.npy"], [100, 200]),
        (["step-100-seed7.npy", "step-200-seed3.npy"], [100, 200]),
        (["run3-500.npy", "run3-900.npy"], [500, 900]),
    ],
)
def test_the_step_is_the_number_after_step_or_the_one_that_differs(names, steps):
    assert list(steps_of([Path(name) for name in names]).values()) == steps


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["first.npy", "step-2.npy"], "first.npy: its name has no whole number"),
        (
            ["run-2.npy", "run-1-3.npy"],
            "several numbers in the names of the files differ, or one has more",
        ),
        (["run-1-20.npy", "run-2-30.npy"], "several numbers in the names of the files differ"),
        (["m_0.10.npy", "m_0.9.npy"], "no whole number"),
        (["step-100k.npy", "step-1m.npy"], "no whole number"),
        (["ckpt-1e3.npy", "ckpt-1e4.npy"], "no whole number"),
        (["a/step-2.npy", "b/step-2.npy"], "are both of step 2"),
        (["step-02.npy", "step-2.npy"], "are both of step 2"),
        (["step-2.npy", "step-2.npy"], "given twice"),
    ],
)
def test_names_without_clear_steps_are_refused(names, message):
    with pytest.raises(InputError, match=message) as caught:
        steps_of([Path(name) for name in names])
    assert "\n" not in str(caught.value)


def test_a_pattern_is_no_row_of_checkpoints(tmp_path):
    """The shell leaves it as it is in quotes, and where no file has such a name."""
    with pytest.raises(InputError, match="no file has such a name: check the pattern"):
        steps_of([tmp_path / "step-*.npy"])
    (tmp_path / "step-1.npy").touch()
    with pytest.raises(InputError, match="leave out the quotes"):
        steps_of([tmp_path / "step-*.npy"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--min-delta", "-1"], "`--min-delta` must be"),
    ],
)
def test_bad_options_are_one_line(run, folder, more, message):
    result = run("track", folder / "real.npy", *checkpoints(folder), *more)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
