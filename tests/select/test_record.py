"""Runs that are recorded: resumed as if uninterrupted, refused if anything behind them changed."""

from __future__ import annotations

import os

import numpy as np
import pytest

import genbounds.select as select
from genbounds.estimators import Moments
from genbounds.files import atomic_write
from genbounds.select import FeatureArm, _loop, _sampler
from genbounds.simulate import GaussianArm
from genbounds.validation import InputError
from tests.refusal import refused
from tests.select.arms import Faulty, Finite, Normal
from tests.select.test_run import CLEAR, go, same


class Fuse(Normal):
    """Burns at a given call, once."""

    def __init__(self, mean, burns_at):
        super().__init__(mean)
        self.left = burns_at
        self.total = 0

    def draw(self, n, rng):
        self.left -= 1
        if self.left == 0:
            rng.standard_normal(3)  # a draw that dies halfway has used its stream
            raise KeyboardInterrupt
        self.total += n
        return super().draw(n, rng)


@pytest.mark.parametrize(
    ("policy", "burns_at"), [("lucb", 1), ("elimination", 2), ("thompson", 25), ("lucb", 60)]
)
def test_interrupted_run_continues_as_if_nothing_had_happened(tmp_path, policy, burns_at):
    def arms(fuse):
        return {"a": Normal(0.0), "b": Fuse(0.05, fuse), "c": Normal(0.1)}

    options = {"policy": policy, "budget": 2_000, "limit": 800}
    whole = go(arms(10**9), **options)
    broken = arms(burns_at)
    with pytest.raises(KeyboardInterrupt):
        go(broken, record=tmp_path, **options)
    again = arms(10**9)
    same(go(again, record=tmp_path, **options), whole)
    # nothing is drawn twice
    assert broken["b"].total + again["b"].total == whole.samples["b"]
    # and the finished folder answers without drawing at all
    idle = arms(10**9)
    same(go(idle, record=tmp_path, **options), whole)
    assert idle["b"].total == 0


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["greedy", "fd-ucb", "fid-ucb", "debiased-ucb", "thompson"])
def test_running_scores_are_resumed_bit_by_bit(tmp_path, policy):
    d = 140  # beyond the dimension where all eigenvalues are taken at every step
    reference = Moments(np.zeros(d), np.eye(d))

    class Breaking(GaussianArm):
        left = 10**9

        def draw(self, n, rng):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().draw(n, rng)

    def go_on(arm="a0", left=10**9, **options):
        arms = {f"a{i}": Breaking(np.full(d, 0.05 * i), np.ones(d)) for i in range(3)}
        arms[arm].left = left
        return select.run(arms, reference, policy=policy, budget=500, **options)

    whole = go_on()
    often = max(whole.samples, key=whole.samples.get)
    for left in (1, whole.samples[often] // 10):
        with pytest.raises(KeyboardInterrupt):
            go_on(often, left, record=tmp_path / str(left))
        same(go_on(record=tmp_path / str(left)), whole)


def test_a_folder_that_was_saved_many_times_is_taken_up(tmp_path, monkeypatch):
    """Rows are digested at each save, those since the last one only."""
    monkeypatch.setattr(_loop, "_SAVE_SECONDS", 0.0)
    arms = {"a": Fuse(0.0, 10**9), "b": Fuse(0.01, 10**9)}
    whole = go(arms, limit=400, record=tmp_path)
    assert len(whole.history.looks) > 6
    total = arms["a"].total
    same(go(arms, limit=400, record=tmp_path), whole)
    assert arms["a"].total == total


def test_finished_run_can_be_given_more_budget(tmp_path):
    arms = {"a": Normal(0.0), "b": Normal(0.02)}
    short = go(arms, record=tmp_path, budget=203)
    assert sum(short.samples.values()) == 203
    same(go(arms, record=tmp_path, budget=600), go(arms, record=tmp_path, budget=600))
    result = go(arms, record=tmp_path, budget=600)
    assert sum(result.samples.values()) == 600


def test_faults_are_remembered(tmp_path):
    def arms():
        return CLEAR | {
            "dead": Faulty({call: RuntimeError("gone") for call in range(3, 99)}),
            "file": Finite(0.0, size=42),
        }

    first = go(arms(), record=tmp_path)
    second_arms = arms()
    same(go(second_arms, record=tmp_path), first)
    assert second_arms["dead"].calls == 0
    assert second_arms["file"].given == 0


@pytest.mark.parametrize("change", [{"seed": 1}, {"batch": 7}, {"dtype": "float32"}])
def test_folder_of_another_run_is_refused(tmp_path, change):
    go(CLEAR, record=tmp_path)
    with pytest.raises(InputError, match=rf"other settings \({next(iter(change))}\): "):
        go(CLEAR, record=tmp_path, **change)


def recorded_files(tmp_path, *, a=0.0, reference=0.0, **options):
    """Run two files, shifted by `a` and 1, against a reference of known moments."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((2, 300, 2))
    arms = {"a": FeatureArm(rows[0] + a), "b": FeatureArm(rows[1] + 1.0)}
    known = Moments(np.full(2, reference), np.eye(2))
    return select.run(arms, known, record=tmp_path, **options)


def test_features_that_changed_are_refused(tmp_path):
    first = recorded_files(tmp_path)
    same(recorded_files(tmp_path), first)
    for change, name in [({"a": 1e-9}, "'a'"), ({"reference": 1e-9}, "reference")]:
        with pytest.raises(InputError, match=name):
            recorded_files(tmp_path, **change)
    # another question to the same samples is none
    assert recorded_files(tmp_path, confidence=0.99, policy="uniform").confidence == 0.99


def test_a_live_arm_may_say_what_it_draws_from(tmp_path):
    class Versioned(Normal):
        version = "1"

        def digest(self):
            return self.version

    arms = {"a": Versioned(0.0), "b": Normal(1.0)}
    go(arms, record=tmp_path)
    arms["a"].version = "2"
    with pytest.raises(InputError, match="'a'"):
        go(arms, record=tmp_path)


def test_arms_of_another_encoder_are_refused(tmp_path):
    def arms(encoder):
        made = {"a": Normal(0.0), "b": Normal(1.0)}
        for arm in made.values():
            arm.origin = {"encoder": encoder}
        return made

    go(arms("one"), record=tmp_path)
    with pytest.raises(InputError, match="'a', 'b'"):
        go(arms("two"), record=tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "3",
        '{"version": 2}',
        '{"version": 1, "identity": {}}',
        "[" * 99_999,
        "\x00",
    ],
)
def test_a_record_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        go(CLEAR, record=tmp_path)


def test_a_record_that_is_no_file_or_no_folder_is_one_line(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    with refused("run.json", "regular file"):
        go(CLEAR, record=tmp_path)
    with refused("run.json", "is a file, not a folder"):
        go(CLEAR, record=tmp_path / "run.json")


def test_a_missing_sample_file_is_one_line(tmp_path):
    go(CLEAR, record=tmp_path)
    (tmp_path / "1.npy").unlink()
    with pytest.raises(InputError, match=r"1\.npy"):
        go(CLEAR, record=tmp_path)


def test_joining_is_resumed(tmp_path):
    def arms(fuse):
        return {"a": Normal(0.0), "b": Normal(0.1), "late": Fuse(-0.1, fuse)}

    options = {"joins": {"late": 30}, "budget": 1_500}
    whole = go(arms(10**9), **options)
    for burns_at in (1, 40):
        with pytest.raises(KeyboardInterrupt):
            go(arms(burns_at), record=tmp_path / str(burns_at), **options)
        same(go(arms(10**9), record=tmp_path / str(burns_at), **options), whole)


def test_arms_can_be_added_to_a_finished_run(tmp_path):
    first = go({"a": Normal(1.0), "b": Normal(3.0)}, record=tmp_path)
    assert first.best == "a"
    old = Faulty({call: AssertionError("drawn twice") for call in range(1, 99)})
    arms = {"a": Normal(1.0), "b": old, "new": Normal(0.0)}
    second = go(arms, record=tmp_path)
    assert second.best == "new"
    assert old.calls == 0
    same(second, go({"a": Normal(1.0), "b": Normal(3.0), "new": Normal(0.0)}))
    with pytest.raises(InputError, match="arms"):
        go({"b": Normal(3.0), "a": Normal(1.0)}, record=tmp_path)


def test_run_from_features_is_resumed(tmp_path):
    rng = np.random.default_rng(3)
    files = {"a": rng.normal(0.0, size=(300, 1)), "b": rng.normal(0.1, size=(400, 1))}

    def arms(fuse):
        made = {name: FeatureArm(rows) for name, rows in files.items()}
        return made | {"c": Fuse(0.2, fuse)}

    whole = go(arms(10**9), policy="uniform")
    assert whole.samples["a"] == 300
    with pytest.raises(KeyboardInterrupt):
        go(arms(15), policy="uniform", record=tmp_path)
    same(go(arms(10**9), policy="uniform", record=tmp_path), whole)
    same(go(arms(10**9), policy="uniform", record=tmp_path), whole)


def test_a_folder_with_files_of_somebody_else_is_left_alone(tmp_path):
    """They bear the names of a record, and were written over."""
    np.save(tmp_path / "0.npy", np.arange(6.0))
    (tmp_path / "notes.npy").write_bytes(b"mine")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with refused("0.npy", "would be written over", "choose an empty folder"):
        go(CLEAR, record=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "0.npy").unlink()
    first = go(CLEAR, record=tmp_path)
    same(go(CLEAR, record=tmp_path), first)
    assert (tmp_path / "notes.npy").read_bytes() == b"mine"


def test_a_run_that_died_while_its_first_rows_were_written_goes_on(tmp_path, monkeypatch):
    """They are its own, though nothing had been said about them yet."""

    def dies(path, data):
        atomic_write(path, data)
        if path.suffix == ".npy":
            raise KeyboardInterrupt

    monkeypatch.setattr(_sampler, "atomic_write", dies)
    with pytest.raises(KeyboardInterrupt):
        go(CLEAR, record=tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "0.npy").exists()
    same(go(CLEAR, record=tmp_path), go(CLEAR))


def test_arms_of_another_run_are_listed(tmp_path):
    go({"a": Normal(0.0), "b": Normal(2.0)}, record=tmp_path)
    with refused("other settings (arms a, b)"):
        go({"a": Normal(0.0), "c": Normal(2.0)}, record=tmp_path)


def test_a_folder_that_another_run_is_using_is_refused(tmp_path):
    """The two would write their rows over one another's."""
    said = []

    class Second(Normal):
        def draw(self, n, rng):
            if not said:
                with pytest.raises(InputError, match="another run is at work there") as second:
                    go({"a": Normal(0.0), "b": Normal(0.5)}, record=tmp_path / "kept")
                said.append(str(second.value))
            return super().draw(n, rng)

    go({"a": Second(0.0), "b": Normal(0.5)}, record=tmp_path / "kept")
    assert said[0].startswith(f"{tmp_path / 'kept'}: ")
    assert not (tmp_path / "kept" / ".lock").exists()


def test_rows_of_a_record_that_are_gone_say_how_to_start_again(tmp_path):
    go({"a": Normal(0.0), "b": Normal(0.5)}, record=tmp_path)
    (tmp_path / "0.npy").write_bytes(b"")
    with refused("0.npy: it is missing or damaged", "choose an empty folder"):
        go({"a": Normal(0.0), "b": Normal(0.5)}, record=tmp_path)
