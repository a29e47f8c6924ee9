"""The selection experiments: arms as described, studies that go on, tables that count."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from experiments.selection import (
    error_rate,
    factors,
    large,
    norms,
    real,
    regret,
    sample_size,
)
from experiments.selection.embeddings import EMBEDDINGS, Builder, PosteriorArm, posteriors, spectrum
from experiments.selection.floor import fewest_samples
from experiments.selection.scenarios import errors, few, rank_flip, savings
from experiments.selection.store import study
from genbounds.estimators import FrechetReference, inception_estimate
from genbounds.simulate import GaussianArm, Workers


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_spectra_have_the_printed_norms(name):
    embedding = EMBEDDINGS[name]
    for row in (embedding.reference, *embedding.models.values()):
        values = spectrum(row, embedding.dimension)
        assert values.sum() == pytest.approx(row.trace, rel=1e-6)
        assert np.sqrt((values**2).sum()) == pytest.approx(row.root_square, rel=1e-6)
        assert values.max() == pytest.approx(row.operator, rel=1e-12)
        assert values.min() > 0.0


@pytest.mark.parametrize("kind", ["pretrained", "controlled"])
def test_truth_of_the_arms_is_their_distance(kind):
    problem = getattr(Builder("clip", 30), kind)(seed=3)
    reference = FrechetReference(problem.reference)
    rng = np.random.default_rng(0)
    for name in list(problem.arms)[:3]:
        score = reference.estimate(problem.arms[name].draw(20_000, rng), influences=False)
        assert abs(score.value - problem.truth[name]) < 6.0 * score.stderr
    assert len(set(problem.truth.values())) == len(problem.arms)


def test_truth_of_the_posteriors():
    arm = PosteriorArm(np.array([0.5, 0.3, 0.2]), (0.1, 0.4))
    score = inception_estimate(arm.draw(50_000, np.random.default_rng(0)))
    assert abs(score.value - arm.log_score) < 6.0 * score.stderr
    built, truth = posteriors(4, 50, seed=1)
    assert all(truth[name] == pytest.approx(np.exp(built[name].log_score)) for name in built)


def test_norms_from_50_images_are_those_expected():
    """Known of a diagonal covariance: Tr Σ̂² exceeds Tr Σ² by about (Tr Σ)²/n, Tr Σ̂ falls by 1/n."""
    found = norms.drawn(np.full(200, 2.0), 50, 8, 0)["plain"].mean(axis=0)
    assert found[0] == pytest.approx(400 * 49 / 50, rel=0.02)
    assert found[1] == pytest.approx(math.sqrt(800 + 400**2 / 50), rel=0.04)
    assert {name: set(table) for name, table in norms.FROM_50.items()} == {
        name: {*embedding.models, "ImageNet"} for name, embedding in EMBEDDINGS.items()
    }


def test_factors_of_the_bound_are_those_of_the_paper():
    """M25 (15) to (17) with Σ = I in two dimensions, Σ_r = s² I, a gap of 1.5."""
    first, second, third = factors.factors(2.0)
    assert first == pytest.approx(4.0 * 3.0**0.25)
    assert second == pytest.approx((1.5 + 4.0) * math.sqrt(math.sqrt(2.0) + 1.0) + 2.0)
    assert third == pytest.approx(math.sqrt(2.0) + 1.0)
    small = factors.bound(4, 5, 2.0, 1000)
    expected = (
        first * 0.8**0.25 * 1000**0.75 + second * math.sqrt(800) + third * 0.8 * math.log(1000)
    )
    assert small == pytest.approx(expected)
    assert factors.power([1.0, 2.0, 4.0], [3.0, 6.0, 12.0]) == pytest.approx(1.0)


def test_study_does_each_job_once(tmp_path):
    done = []

    def work(a, b):
        done.append((a, b))
        return {"sum": a + b}

    out = tmp_path / "runs.jsonl"
    jobs = [(1, 2), (3, 4)]
    assert study(jobs, work, out=out, workers=Workers()) == {(1, 2): {"sum": 3}, (3, 4): {"sum": 7}}
    with out.open("a") as file:
        file.write('{"job": [5')  # killed while it wrote
    more = study([*jobs, (5, 6)], work, out=out, workers=Workers())
    assert more[5, 6] == {"sum": 11}
    assert done == [(1, 2), (3, 4), (5, 6)]
    assert study([*jobs, (5, 6)], work, out=out, workers=Workers()) == more
    assert len(done) == 3


def test_no_exponent_of_a_regret_that_begins_late():
    samples = list(range(5, 505, 5))
    run = {"samples": samples, "regret": [max(0.0, n - 100) / n for n in samples]}
    assert regret.exponent([run, run], draws=5) is None


def test_regret_exponent_of_known_curves():
    samples = np.unique(np.geomspace(10, 1_000, 41).astype(int))
    runs = [
        {"samples": samples.tolist(), "regret": (c * samples**-0.5).tolist()} for c in (1.0, 2.0)
    ]
    value, low, high = regret.exponent(runs, draws=50)
    assert value == pytest.approx(0.5, abs=1e-6)
    assert low == pytest.approx(0.5, abs=1e-6)
    assert high == pytest.approx(0.5, abs=1e-6)


def regrets(**values):
    return {
        policy: [{"regret": [value], "ratio": [0.5], "samples": [5]} for value in at]
        for policy, at in values.items()
    }


def test_verdicts_say_where_ours_is_not_ahead():
    ours = {"debiased-ucb": [1.0, 1.1, 0.9, 1.0], "thompson": [0.5] * 4}
    runs = regrets(**ours, greedy=[0.5, 0.5, 0.6, 0.4]) | regrets(
        **{"naive-ucb M25": [1.0, 3.0, 0.9, 1.2], "fd-ucb as tuned": [2.0, 2.1, 2.0, 2.2]}
    )
    lines = regret.verdict({"clip 5": runs})
    assert lines[0].startswith(
        "* Of 3 pairs of a scenario and a published or naive policy, debiased-ucb has the smaller "
        "average regret in 2; not against greedy on clip 5 (-0.5 ± 0.23)."
    )
    assert "Within the interval of zero: naive-ucb M25 on clip 5 (+0.52 ± " in lines[0]
    assert lines[1:] == [
        "* fd-ucb as tuned against naive-ucb M25: undecided on clip 5.",
        "* fd-ucb as tuned against greedy: worse on clip 5.",
    ]


def test_joining_arms_come_one_after_the_other():
    run = regret.one_trial("joining", "clip 5", "random", 0, 250, 10)
    assert run["samples"][-1] == 1_250
    assert 0.0 < run["ratio"][-1] <= 1.0


@pytest.mark.parametrize("name", errors() | few())
def test_right_answers_of_the_error_scenarios_are_right(name):
    """No arm has a truly smaller distance than an arm that counts as right (FD scenarios)."""
    scenario = (errors() | few())[name]
    assert set(scenario.right) <= set(scenario.arms)
    if scenario.metric != "fd":
        return
    reference = scenario.reference(np.random.default_rng(0))
    if isinstance(reference, np.ndarray):
        return
    root = np.sqrt(np.diagonal(reference.cov))

    def truth(arm):
        cov = np.diagonal(arm.cov) if arm.cov.ndim == 2 else arm.cov
        return float(arm.mean @ arm.mean + ((np.sqrt(cov) - root) ** 2).sum())

    best = min(truth(arm) for arm in scenario.arms.values())
    right = scenario.arms if scenario.either else scenario.right
    assert all(truth(scenario.arms[name]) < best + 1e-9 for name in right)


def test_outcomes_are_counted(tmp_path, monkeypatch, capsys, page):
    command = ["error_rate", "rank-flip", "--runs", "2", "--page", str(page)]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path), "--scenario", "greedy"])
    error_rate.main()
    printed = capsys.readouterr().out
    assert "| greedy | 2 | 2 | 2 | 100.00% |" in printed
    assert "Upper limit above 6%: greedy." in printed
    assert "greedy" not in page.read_text()  # a part of a study is not recorded
    runs = [{"outcome": o, "seconds": 1.0} for o in ["wrong"] * 5 + ["open"] * 95]
    outcomes, upper, seconds = error_rate.summary(runs)
    assert (outcomes["wrong"], seconds) == (5, 100.0)
    assert upper == pytest.approx(0.1023, abs=1e-4)  # Clopper-Pearson, one-sided 95 %
    assert error_rate.report({"a": runs}, 0.11, 100)[-1] == "No upper limit is above 11%."
    short = error_rate.report({"a": runs, "b": []}, 0.1, 200)
    assert sum(line.startswith("| a |") for line in short) == 1
    assert short[-1] == ("Upper limit above 10%: a. Fewer than 200 runs so far: a (100); b (0).")


def test_a_run_of_two_tied_kinds_is_read_twice(monkeypatch, tmp_path, page):
    name = "Student t8 against Gaussian, tied, d=64"
    readings = errors()[name].readings(name)
    assert readings == {f"{name}, {arm} is right": (arm,) for arm in ("t8", "Gaussian")}
    one, two = readings.values()
    for certified, expected in (("t8", "right wrong"), ("Gaussian", "wrong right"), (None, "open")):
        run = {"certified": certified, "seconds": 0.0}
        found = [error_rate.read(run, right)["outcome"] for right in (one, two)]
        assert found == (expected.split() if certified else ["open", "open"])
    monkeypatch.setitem(error_rate.STUDIES, "certificates", lambda: {name: errors()[name]})
    command = ["error_rate", "certificates", "--runs", "1", "--page", str(page)]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path)])
    error_rate.main()
    recorded = page.read_text()
    assert f"| {name}, t8 is right | 1 |" in recorded
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--known", "--runs", "5"])
    error_rate.main()  # of what is on disk
    assert f"| {name}, t8 is right | 1 |" in page.read_text()
    assert f"Fewer than 5 runs so far: {name}, t8 is right (1)" in page.read_text()


def test_rank_flip_is_one():
    scenario = rank_flip()
    reference = FrechetReference(scenario.reference(np.random.default_rng(0)))
    plain = {
        name: np.mean([reference.plugin(arm.draw(100, np.random.default_rng(s))) for s in range(9)])
        for name, arm in scenario.arms.items()
    }
    assert plain["wide"] > plain["narrow"]


def test_bonus_as_an_interval_needs_more_than_anybody_has():
    scenario = savings()["3 arms, graded by 50%"]
    tuned, printed = (
        sample_size.bonus_samples(scenario, confidence=0.95, constants=constants)
        for constants in ("practical", "printed")
    )
    assert 1e6 < tuned < printed


def test_fewest_samples_of_two_shifted_arms():
    # Equal unit covariances, distances d² and D²: the means need only meet half way, at the price
    # (D - d)²/8 of each.
    best, second, gap = sample_size.front(savings()["3 arms, graded by 50%"])
    assert gap == pytest.approx(0.125)
    length = 0.375**0.5 - 0.5
    expected = math.log(1.0 / 0.12) / (length**2 / 4.0)
    assert fewest_samples(best, second, gap, confidence=0.95) == pytest.approx(expected)
    # The variance along the mean counts: four times of it everywhere, four times as many.
    wide = [GaussianArm(arm.mean, 4.0 * np.asarray(arm.cov)) for arm in (best, second)]
    assert fewest_samples(*wide, gap, confidence=0.95) == pytest.approx(4.0 * expected)


def test_large_problem_has_the_gap_that_it_says():
    arms, reference, truth = large.problem(0.05, 0.05, 40, seed=1)
    one, two = sorted(truth.values())
    assert one == pytest.approx(0.05 * np.trace(reference.cov))
    assert two == pytest.approx(1.05 * one)
    score = FrechetReference(reference).estimate(
        arms["ADMG"].draw(20_000, np.random.default_rng(0)), influences=False
    )
    assert abs(score.value - truth["ADMG"]) < 6.0 * score.stderr


def test_shares_of_uniform_are_counted():
    shares = {
        "a": {"elimination": np.array([0.4, np.nan]), "lucb": np.array([0.5, 0.5])},
        "b": {"elimination": np.array([0.6, 1.2]), "lucb": np.array([0.5, 1.1])},
    }
    one, two = sample_size.verdict(shares)
    assert one == (
        "elimination: median over 2 scenarios 65% of uniform, worst scenario 90%; runs above "
        "110 % in b (120%)."
    )
    assert two.endswith("no run above 110 %.")


@pytest.fixture
def files(tmp_path):
    """Return a source of three feature files, of which "near" is best."""
    rng = np.random.default_rng(0)
    for name, shift in (("reference", 0.0), ("near", 0.2), ("far", 1.0)):
        np.save(tmp_path / f"{name}.npy", rng.normal((shift, 0.0, 0.0), size=(2_000, 3)))
    return [str(tmp_path / f"{name}.npy") for name in ("reference", "near", "far")]


def test_files_are_read_from_their_start_in_every_run(files):
    source = "\n".join(files)
    assert real.models(source).best == "near"
    first = real.certificate(source, "lucb", 0.95, 0)
    assert first["outcome"] == "right"
    assert first["samples"] == real.certificate(source, "lucb", 0.95, 0)["samples"]
    spent = [real.regret(source, "greedy", 100, seed) for seed in (1, 1)]
    assert spent[0]["regret"] == spent[1]["regret"]
    assert 0.0 < spent[0]["ratio"] <= 1.0


@pytest.mark.slow
def test_a_study_of_files_prints_and_records_nothing(tmp_path, files, monkeypatch, capsys, page):
    command = ["real", "--reference", files[0], "--files", *files[1:], "--runs", "2"]
    command += ["--steps", "40", "--out", str(tmp_path / "out"), "--page", str(page)]
    before = page.read_text()
    monkeypatch.setattr(sys, "argv", command)
    real.main()
    printed = capsys.readouterr().out
    assert "| lucb | 2, 0, 0 | " in printed
    assert "| debiased-ucb | " in printed
    assert page.read_text() == before
    real.main()
    assert capsys.readouterr().out == printed
