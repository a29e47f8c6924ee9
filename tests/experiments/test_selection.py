"""The selection experiments: arms as described, studies that go on, tables that count."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from experiments.selection import error_rate, regret, sample_size
from experiments.selection.embeddings import EMBEDDINGS, Builder, PosteriorArm, posteriors, spectrum
from experiments.selection.scenarios import errors, rank_flip, savings
from experiments.selection.store import study
from genbounds.estimators import FrechetReference, inception_expansion


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
        score = reference.expand(problem.arms[name].draw(20_000, rng), influences=False)
        assert abs(score.value - problem.truth[name]) < 6.0 * score.stderr
    assert len(set(problem.truth.values())) == len(problem.arms)


def test_truth_of_the_posteriors():
    arm = PosteriorArm(np.array([0.5, 0.3, 0.2]), (0.1, 0.4))
    score = inception_expansion(arm.draw(50_000, np.random.default_rng(0)))
    assert abs(score.value - arm.log_score) < 6.0 * score.stderr
    built, truth = posteriors(4, 50, seed=1)
    assert all(truth[name] == pytest.approx(np.exp(built[name].log_score)) for name in built)


def test_study_does_each_job_once(tmp_path):
    done = []

    def work(a, b):
        done.append((a, b))
        return {"sum": a + b}

    out = tmp_path / "runs.jsonl"
    jobs = [(1, 2), (3, 4)]
    assert study(jobs, work, out=out, workers=1) == {(1, 2): {"sum": 3}, (3, 4): {"sum": 7}}
    with out.open("a") as file:
        file.write('{"job": [5')  # killed while it wrote
    more = study([*jobs, (5, 6)], work, out=out, workers=1)
    assert more[5, 6] == {"sum": 11}
    assert done == [(1, 2), (3, 4), (5, 6)]
    assert study([*jobs, (5, 6)], work, out=out, workers=1) == more
    assert len(done) == 3


def test_regret_exponent_of_known_curves():
    samples = np.unique(np.geomspace(10, 1_000, 41).astype(int))
    runs = [
        {"samples": samples.tolist(), "regret": (c * samples**-0.5).tolist()} for c in (1.0, 2.0)
    ]
    value, low, high = regret.exponent(runs, draws=50)
    assert value == pytest.approx(0.5, abs=1e-6)
    assert low == pytest.approx(0.5, abs=1e-6)
    assert high == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("study_name", "scenario", "policy"),
    [("main", "is 5", "debiased"), ("ablation", "clip 5", "batch 50"), ("joining", "clip", "ucb")],
)
def test_regret_runs_and_resumes(tmp_path, monkeypatch, capsys, study_name, scenario, policy):
    command = ["regret", study_name, "--scenario", scenario, "--policy", policy]
    command += ["--steps", "60", "--trials", "2", "--dimension", "10", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    regret.main()
    first = capsys.readouterr().out
    lines = (tmp_path / "regret.jsonl").read_text().splitlines()
    assert len(lines) == len({tuple(json.loads(line)["job"]) for line in lines}) >= 2
    assert list(tmp_path.glob(f"{study_name}-*.svg"))
    regret.main()
    assert capsys.readouterr().out == first  # from disk: the times in the table are the same
    assert (tmp_path / "regret.jsonl").read_text().splitlines() == lines


def test_joining_arms_come_one_after_the_other():
    run = regret.one_trial("joining", "clip 5", "random", 0, 250, 10)
    assert run["samples"][-1] == 1_250
    assert 0.0 < run["ratio"][-1] <= 1.0


@pytest.mark.parametrize("name", errors())
def test_right_answers_of_the_error_scenarios_are_right(name):
    """No arm has a truly smaller distance than an arm that counts as right (FD scenarios)."""
    scenario = errors()[name]
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
    assert all(truth(scenario.arms[name]) < best + 1e-9 for name in scenario.right)


def test_outcomes_are_counted(tmp_path, monkeypatch, capsys):
    command = ["error_rate", "rank-flip", "--runs", "2", "--scenario", "greedy"]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path)])
    error_rate.main()
    assert "| greedy | 2 | 2 | 2 | 100.00% |" in capsys.readouterr().out
    runs = [{"outcome": o, "seconds": 1.0} for o in ["wrong"] * 5 + ["open"] * 95]
    outcomes, upper, seconds = error_rate.summary(runs)
    assert (outcomes["wrong"], seconds) == (5, 100.0)
    assert upper == pytest.approx(0.1023, abs=1e-4)  # Clopper-Pearson, one-sided 95 %


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
