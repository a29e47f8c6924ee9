from __future__ import annotations

import json
import re

import numpy as np
import pytest

import genbounds as gb


def test_certified(run, zoo):
    result = run(
        "select", "--reference", zoo / "population.npz", zoo / "good.npy", zoo / "bad.npy", "--json"
    )
    assert result.code == 0
    assert result.err == ""
    document = result.json
    assert document["best"] == "good"
    assert document["certified"] is True
    assert document["confidence"] == 0.95
    assert document["samples"].keys() == {"good", "bad"} == document["scores"].keys()
    assert sum(document["samples"].values()) < 1000
    assert document["steps"] > 0


def test_no_certificate_is_a_negative_answer(run, zoo):
    result = run("select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "close.npy")
    assert result.code == 1
    assert result.err == ""
    assert re.search("good|close", result.out.splitlines()[0])
    assert "certified at" not in result.out


def test_inception(run, zoo):
    files = [zoo / "p_good.npy", zoo / "p_bad.npy"]
    noted = run("select", "--reference", zoo / "real.npy", *files, "--metric", "is", "--json")
    assert noted.json["best"] == "p_good"
    assert "real.npy" in noted.json["notes"][-1]
    logits = [zoo / "p_good_logits.npy", zoo / "p_bad_logits.npy"]
    assert run("select", *logits, "--metric", "is", "--logits", "--json").code == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--seed", "1"),
        ("--batch", "20"),
        ("--confidence", "0.9999"),
        ("--policy", "uniform"),
        ("--cost", "bad=7"),
    ],
)
def test_every_option_changes_something(run, zoo, option, value):
    command = ["select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy"]
    assert run(*command, "--json").json != run(*command, option, value, "--json").json


def test_another_metric_selects(run, zoo):
    command = ["select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy"]
    done = run(*command, "--metric", "kid", "--batch", "50", "--json")
    assert done.json["metric"] == "kid"
    assert set(done.json["samples"]) == {"good", "bad"}
    assert done.json["best"] == "good"


def test_tolerance(run, zoo):
    command = ["select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "close.npy"]
    assert run(*command).code == 1
    assert run(*command, "--tolerance", "9").code == 0


def test_top(run, zoo):
    files = [zoo / f"{name}.npy" for name in ("good", "close", "bad")]
    result = run("select", "--reference", zoo / "population.npz", *files, "--top", "2", "--json")
    assert result.code == 0
    assert set(result.json["top"]) == {"good", "close"}


@pytest.mark.parametrize("name", ["bad", "zoo/bad.npy"])
def test_cost_by_name_or_by_file(run, zoo, name, monkeypatch):
    monkeypatch.chdir(zoo.parent)
    (zoo.parent / "zoo").unlink(missing_ok=True)
    (zoo.parent / "zoo").symlink_to(zoo)
    command = ("select", "--reference", "zoo/real.npy", "zoo/good.npy", "zoo/bad.npy", "--json")
    document = run(*command, "--cost", f"{name}=3").json
    samples = document["samples"]
    assert document["cost"] == samples["good"] + 3 * samples["bad"]
    for wrong in ("bad", "bad=", "=3", "bad=0", "bad=nan", "ugly=3"):
        refused = run(*command, "--cost", wrong)
        assert refused.code == 2
        assert "--cost" in refused.err


LIVE = """
calls = 0

def steady(n, rng):
    return rng.standard_normal((n, 2))

def far(n, rng):
    return 1.0 + rng.standard_normal((n, 2))

def breaks(n, rng):
    global calls
    calls += 1
    if calls > 3:
        raise RuntimeError("no memory \\x1b[31mleft")
    return rng.standard_normal((n, 2))

def interrupted(n, rng):
    global calls
    calls += 1
    if calls == 5:
        raise KeyboardInterrupt
    return 0.1 + rng.standard_normal((n, 2))

def turns(n, rng):
    global calls
    calls += n
    return 6.0 * (np.arange(calls - n, calls)[:, None] % 2) + rng.standard_normal((n, 2))
"""


@pytest.fixture
def live(tmp_path, monkeypatch):
    """Return the start of a command in a folder with a module of live models."""
    monkeypatch.chdir(tmp_path)
    name = f"live_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("import numpy as np\n" + LIVE)
    np.savez(tmp_path / "real.npz", mu=np.zeros(2), sigma=np.eye(2))
    start = ("select", "--reference", "real.npz", "--budget", "3000", "--batch", "20")
    return lambda *names, options=(): (*start, *options, *(f"{name}:{arm}" for arm in names))


def test_a_live_model_that_fails_is_named_and_certifies_nobody(run, live):
    result = run(*live("steady", "breaks"))
    assert result.code == 1
    assert "RuntimeError: no memory" in result.out
    assert "\x1b" not in result.out
    document = run(*live("steady", "breaks", options=["--json"])).json
    states = {name.split(":")[1]: arm["state"] for name, arm in document["arms"].items()}
    assert states == {"steady": "live", "breaks": "set aside"}
    assert document["certified"] is False


def test_a_failing_live_model_does_not_stop_the_others(run, live, tmp_path):
    result = run(*live("steady", "far", "breaks", options=["--out", tmp_path / "out"]))
    assert result.code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "no memory" in page
    assert "\x1b" not in page


def test_a_live_model_that_takes_turns_is_named(run, live):
    result = run(*live("steady", "turns", options=["--json"]))
    assert result.code == 1
    (reason,) = [arm["reason"] for arm in result.json["arms"].values() if arm["reason"]]
    assert "turns" in reason


def test_what_user_code_prints_is_no_part_of_the_answer(run, live, tmp_path):
    name = f"chatty_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "print('loading')\n"
        "def model(n, rng):\n    print('drawing')\n    return 0.5 + rng.standard_normal((n, 2))\n"
    )
    result = run(*live("steady", options=["--json"]), f"{name}:model")
    assert len(result.json["samples"]) == 2
    assert "loading" in result.err
    assert "drawing" in result.err


def test_the_answer_says_its_tolerance_and_what_a_sample_costs(run, zoo, tmp_path):
    files = [zoo / f"{name}.npy" for name in ("good", "close")]
    call = ("select", "--reference", zoo / "real.npy", *files, "--tolerance", "9")
    done = run(*call, "--cost", "close=3", "--out", tmp_path)
    said = "no other is better by more than 9"
    assert said in done.out.splitlines()[0]
    assert ", cost " in done.out
    assert said in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run(*call, "--json").json["tolerance"] == 9.0


def test_the_headline_says_how_many_models_are_left(run, zoo, tmp_path):
    rng = np.random.default_rng(0)
    d = len(np.load(zoo / "population.npz")["mu"])
    for name in ("one", "two"):
        grouped = np.repeat(rng.normal(size=(60, d)), 5, axis=0)
        np.save(tmp_path / f"{name}.npy", grouped + 0.1 * rng.normal(size=(300, d)))
    call = ("select", "--reference", zoo / "population.npz")
    out = tmp_path / "out"
    two_left = run(*call, zoo / "good.npy", zoo / "bad.npy", tmp_path / "one.npy", "--out", out)
    assert two_left.code == 0
    assert two_left.out.startswith("good is the best of 2 models left by ")
    assert "the best of 2 models left" in (out / "report.html").read_text(encoding="utf-8")
    none_left = run(*call, tmp_path / "one.npy", tmp_path / "two.npy", "--out", out)
    assert none_left.code == 1
    assert none_left.out.startswith("Not certified: every model was set aside.\n")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Not certified: every model was set aside." in page


def test_first_look(run, zoo):
    call = ("select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy")
    later = run(*call, "--first-look", 150, "--json").json
    assert set(later["samples"].values()) == {150}


def test_options_of_a_policy(run, zoo):
    files = [zoo / f"{name}.npy" for name in ("good", "close", "bad")]
    base = ["select", "--reference", zoo / "real.npy", *files, "--budget", "300", "--json"]
    printed = ["constants=printed", "threshold=none", "kappa=0.5", "refresh=0", "burn_in=20"]
    asked = [word for text in printed for word in ("--policy-option", text)]
    found = run(*base, "--policy", "fd-ucb", *asked)
    policy = gb.select.FdUcb(
        constants="printed", threshold=None, kappa=0.5, refresh=0.0, burn_in=20
    )
    arms = {path.stem: gb.select.FeatureArm(np.load(path)) for path in files}
    expected = gb.select.run(arms, np.load(zoo / "real.npy"), policy=policy, budget=300)
    assert found.json["samples"] == expected.samples
    assert found.json["samples"] != run(*base, "--policy", "fd-ucb").json["samples"]


@pytest.mark.parametrize(
    ("policy", "text", "words"),
    [
        ("fd-ucb", "kapa=1", "fd-ucb has no option kapa: its options are constants, kappa"),
        ("lucb", "kappa=1", "lucb has no option kappa: it has none"),
        ("fd-ucb", "kappa=x", "kappa must be a number; got x"),
        ("fd-ucb", "kappa=-1", "--policy-option kappa"),
        ("fd-ucb", "refresh=none", "refresh must be a number"),
        ("is-ucb", "naive=maybe", "naive must be true or false"),
        ("greedy", "burn_in=1.5", "burn_in must be a whole number"),
        ("fd-ucb", "constants", "--policy-option constants"),
    ],
)
def test_bad_options_of_a_policy(run, zoo, policy, text, words):
    real = zoo / "real.npy"
    found = run("select", "--reference", real, real, real, "--policy", policy,
                "--policy-option", text)  # fmt: skip
    assert (found.code, found.out) == (2, "")
    assert words in found.err
    assert found.err.count("\n") == 1


def test_interrupted_live_models_go_on_from_their_record(run, live, tmp_path):
    kept = ["--record", tmp_path / "kept"]
    broken = run(*live("steady", "interrupted", options=kept))
    assert broken.code == 130
    assert "kept" in broken.err
    again = run(*live("steady", "interrupted", options=[*kept, "--json"]))
    assert again.code in (0, 1)
    whole = run(*live("steady", "interrupted", options=["--json"]))
    assert whole.json == again.json
    record = json.loads((tmp_path / "kept" / "run.json").read_text())
    assert len(record["arms"]) == 2


def test_advice_after_ctrl_c_is_true(run, live, zoo, monkeypatch):
    lost = run(*live("steady", "interrupted"))
    assert lost.code == 130
    assert "lost" in lost.err
    assert "--record" in lost.err

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("genbounds.select.run", interrupt)
    files = run("select", "--reference", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy")
    assert files.code == 130
    assert "in the files" in files.err


def test_record_of_other_files_is_refused(run, zoo, tmp_path):
    for name in ("good", "bad"):
        (tmp_path / f"{name}.npy").write_bytes((zoo / f"{name}.npy").read_bytes())
    files = [tmp_path / "good.npy", tmp_path / "bad.npy"]
    command = ("select", "--reference", zoo / "real.npy", *files, "--record", tmp_path / "kept")
    first = run(*command, "--json")
    assert run(*command, "--json").json == first.json
    np.save(files[1], np.load(files[1])[::-1])
    changed = run(*command)
    assert changed.code == 2
    assert "'bad'" in changed.err
    assert changed.err.count("\n") == 1


def test_too_few_rows_are_one_line_that_says_what_works(run, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("real", "a", "b"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((80, 300)))
    paths = [tmp_path / f"{name}.npy" for name in ("real", "a", "b")]
    result = run("select", "--reference", *paths)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "150" in result.err


def test_a_module_that_ends_the_program_is_no_answer(run, live, tmp_path):
    """Its exit status 0 would say that the best model is certified."""
    name = f"script_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("import sys\nsys.exit(0)\n")
    result = run(*live("steady"), f"{name}:arm")
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "__main__" in result.err


def test_an_error_in_the_user_s_module_is_no_negative_answer(run, live, tmp_path):
    """Status 1 would say that nothing is certified. The traceback is theirs to read, escaped."""
    name = f"broken_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text('raise RuntimeError("\\x1b[2Jboom")\n')
    result = run(*live("steady"), f"{name}:arm")
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith("RuntimeError: \\x1b[2Jboom\n")
    assert "\x1b" not in result.err


def test_implausible_files_are_named(run, tmp_path):
    """Pixels were certified without a word."""
    rng = np.random.default_rng(0)
    for name, top in {"real": 255, "good": 255, "bad": 150}.items():
        np.save(tmp_path / f"{name}.npy", rng.integers(0, top, (400, 4)).astype(np.uint8))
    paths = [tmp_path / f"{name}.npy" for name in ("good", "bad")]
    result = run("select", "--reference", tmp_path / "real.npy", *paths, "--out", tmp_path / "out")
    assert result.out.count("8-bit integers") == 3
    assert "8-bit integers" in (tmp_path / "out" / "report.html").read_text()


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    where, rng = tmp_path_factory.mktemp("halves"), np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(500, 1))
    np.save(where / "real.npy", rng.normal(size=(500, 3)) + signs)
    for name, centre in {"left": -1.0, "right": 1.0}.items():
        np.save(where / f"{name}.npy", rng.normal(centre, size=(250, 3)))
    return where


MIXED = ("--metric", "kad", "--target", "mixture")


def test_the_best_mixture_is_that_of_the_library(run, halves, tmp_path):
    files = [halves / "left.npy", halves / "right.npy"]
    call = ("select", "--reference", halves / "real.npy", *files, *MIXED, "--tolerance", 3)
    done = run(*call, "--json", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    arms = {file.stem: gb.select.FeatureArm(np.load(file)) for file in files}
    expected = gb.select.run(
        arms,
        np.load(halves / "real.npy"),
        metric="kad",
        target="mixture",
        tolerance=3.0,
        retries=0,
    ).to_dict()
    assert {key: done.json[key] for key in expected} == json.loads(json.dumps(expected))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Which mixture of models is best?" in page
    assert "Share" in run(*call).out


def test_the_best_mixture_by_rke_needs_no_reference_but_for_its_bandwidth(run, halves):
    files = [halves / "left.npy", halves / "right.npy"]
    rke = ("--metric", "rke", "--target", "mixture", "--tolerance", 1)
    done = run("select", "--reference", halves / "real.npy", *files, *rke, "--json")
    assert (done.code, done.json["certified"]) == (0, True)
    assert done.json["gap_high"] <= 1.0
    refused = run("select", *files, *rke)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "bandwidth" in refused.err


def test_a_mixture_that_is_not_certified_and_what_does_not_apply(run, halves):
    files = [halves / "left.npy", halves / "right.npy"]
    call = ("select", "--reference", halves / "real.npy", *files, *MIXED)
    open_ = run(*call, "--tolerance", 0.001)
    assert open_.code == 1
    assert "not certified, stopped: exhausted" in open_.out
    refused = run(*call, "--tolerance", 1, "--top", 2)
    assert refused.code == 2
    assert "`--top` does not apply to target 'mixture'" in refused.err
