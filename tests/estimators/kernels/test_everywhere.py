"""CMMD, KAD and the energy distance are metrics like every other, wherever metrics are taken."""

from __future__ import annotations

import json

import numpy as np
import pytest

import genbounds as gb
from genbounds import report
from genbounds.cli import main
from genbounds.estimators import convergence, metric_spec

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(300, 3))
FAKES = {name: RNG.normal(mean, 1.0, size=(200, 3)) for name, mean in {"a": 0.2, "b": 1.0}.items()}

metrics = pytest.mark.parametrize("metric", ["cmmd", "kad", "energy"])


def alone(metric, name="a", **options):
    return gb.kernel_distance(FAKES[name], REAL, kernel=metric, **options)


@metrics
def test_in_compare(metric):
    ranking = gb.compare(FAKES, REAL, metric=metric)
    assert ranking.contenders == ("a",)
    assert {name: score.value for name, score in ranking.scores.items()} == {
        name: alone(metric, name).value for name in FAKES
    }
    # The noise of the common reference cancels.
    assert ranking.differences[0].stderr < np.hypot(*(s.stderr for s in ranking.scores.values()))


@metrics
def test_in_growing_samples(metric):
    grown = convergence(FAKES, REAL, metric=metric)
    assert [n for n, _ in grown["a"]] == [50, 100, 200]
    assert grown["a"][-1][1].value == alone(metric).value


@metrics
def test_followed_as_a_sample_grows(metric):
    """The plug-in of the rows so far, batch by batch."""
    prepared = metric_spec(metric).prepared(REAL)
    running = prepared.follow(3)
    for start in (0, 70):
        running.add(FAKES["a"][start : start + 70])
        whole = prepared.estimate(FAKES["a"][: start + 70], estimator="plugin").value
        assert running.loss() == pytest.approx(whole, rel=1e-9)


@metrics
def test_in_selection(metric):
    arms = {
        name: gb.simulate.GaussianArm(np.full(3, mean), np.eye(3))
        for name, mean in {"a": 0.2, "b": 1.5}.items()
    }
    found = gb.select.run(arms, REAL, metric=metric, budget=2000, batch=100)
    assert (found.metric, found.best) == (metric, "a")


@metrics
def test_on_the_command_line_and_the_page(metric, tmp_path, capsys):
    for name, rows in {"real": REAL, **FAKES}.items():
        np.save(tmp_path / f"{name}.npy", rows)
    files = [str(tmp_path / f"{name}.npy") for name in ("real", *FAKES)]
    out = tmp_path / "out"
    command = ["score", *files, "--metric", metric, "--json", "--out", str(out)]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["model"]: row["value"] for row in document["rows"]} == {
        name: alone(metric, name).value for name in FAKES
    }
    assert metric_spec(metric).title in (out / "report.html").read_text("utf-8")
    if metric != "energy":
        assert main([*command[:-2], "--bandwidth", "2.5"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["rows"][0]["value"] == alone(metric, bandwidth=2.5).value


@metrics
def test_on_the_page(metric):
    ranking = gb.compare(FAKES, REAL, metric=metric)
    page = report.score_page(ranking.scores, metric=metric, level=0.95, ranking=ranking).render()
    assert metric_spec(metric).title in page


@metrics
def test_in_a_training_loop(metric):
    torch = pytest.importorskip("torch")
    found = pytest.importorskip("genbounds.torchmetrics").FeatureMetric(metric=metric)
    found.update(torch.from_numpy(REAL), real=True)
    found.update(torch.from_numpy(FAKES["a"]))
    expected = alone(metric)
    assert float(found.compute()["value"]) == expected.value
    assert found.result == expected
