"""The metric that docs/extending.md adds works everywhere, and nothing else had to be touched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds import report
from genbounds.cli import main
from genbounds.estimators import (
    MetricSpec,
    convergence,
    metric_names,
    metric_spec,
    register_metric,
)

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
LONGEST = 10
"""Lines that a metric may take."""

pytest.importorskip("torch")

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(900, 3))
FAKES = {name: RNG.normal(mean, 1.0, size=(400, 3)) for name, mean in {"a": 0.2, "b": 0.6}.items()}


def source():
    """Return the block of the page that registers the metric."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (found,) = (block for block in blocks if "register_metric(" in block)
    return found


@pytest.fixture(autouse=True)
def toy():
    """Register the metric; return what does so."""

    def register():
        exec(compile(source(), str(PAGE), "exec"), {"gb": gb})  # our own page

    register()
    return register


@pytest.fixture
def files(tmp_path):
    """Return the paths of the reference and of every model."""
    for name, rows in {"real": REAL, **FAKES}.items():
        np.save(tmp_path / f"{name}.npy", rows)
    return [str(tmp_path / f"{name}.npy") for name in ("real", *FAKES)]


def squared(rows):
    """The score by hand: squared gap of the means, less what noise adds on average."""
    gap = rows.mean(axis=0) - REAL.mean(axis=0)
    return gap @ gap - sum(x.var(axis=0, ddof=1).sum() / len(x) for x in (rows, REAL))


def test_it_is_short():
    lines = [line for line in source().splitlines() if line and not line.startswith("#")]
    assert len(lines) <= LONGEST
    assert "toy" in metric_names()


def test_it_may_be_registered_again_and_takes_no_other_s_name(toy):
    toy()  # as a notebook does
    for taken in ("fd", "fid"):
        other = MetricSpec(name=taken, title="mine", prepare=metric_spec("toy").prepare)
        with pytest.raises(gb.InputError, match="registered already"):
            register_metric(other)
    assert metric_spec("fid").title == metric_spec("fd").title != "mine"


def test_in_compare():
    ranking = gb.compare(FAKES, REAL, metric="toy")
    assert list(ranking.scores) == ["a", "b"]
    assert ranking.contenders == ("a",)
    for name, rows in FAKES.items():
        score = ranking.scores[name]  # the bias is known up to the noise of 16 probes
        assert score.value == pytest.approx(squared(rows), abs=0.5 * score.stderr)
    # The noise of the common reference cancels.
    alone = [score.stderr for score in ranking.scores.values()]
    assert ranking.differences[0].stderr < np.hypot(*alone)


@pytest.mark.parametrize("policy", ["lucb", "debiased-ucb"])
def test_in_selection(policy):
    arms = {
        name: gb.simulate.GaussianArm(np.full(3, mean), np.eye(3))
        for name, mean in {"a": 0.2, "b": 1.0}.items()
    }
    found = gb.select.run(arms, REAL, policy=policy, metric="toy", budget=1500, batch=50)
    assert found.metric == "toy"
    assert found.best == "a"
    assert found.scores["a"].low <= 0.12 <= found.scores["a"].high


def test_in_growing_samples():
    grown = convergence(FAKES, REAL, metric="toy")
    ranking = gb.compare(FAKES, REAL, metric="toy")
    for name, points in grown.items():
        assert [n for n, _ in points] == [50, 100, 200, 400]
        assert points[-1][1] == ranking.scores[name]


def test_on_the_page():
    ranking = gb.compare(FAKES, REAL, metric="toy")
    page = report.score_page(
        ranking.scores,
        metric="toy",
        level=0.95,
        ranking=ranking,
        convergence=convergence(FAKES, REAL, metric="toy"),
    ).render()
    assert "toy" in page


def test_on_the_command_line(files, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["score", *files, "--metric", "toy", "--json", "--out", str(out),
                 "--convergence"]) == 0  # fmt: skip
    document = json.loads(capsys.readouterr().out)
    ranking = gb.compare(FAKES, REAL, metric="toy")
    assert {row["model"]: row["value"] for row in document["rows"]} == {
        name: score.value for name, score in ranking.scores.items()
    }
    assert document["ranking"]["letters"] == ranking.letters
    assert [len(points) for points in document["convergence"].values()] == [4, 4]
    assert "toy" in (out / "report.html").read_text("utf-8")
    assert main(["score", *files, "--metric", "toy"]) == 0
    assert "toy" in capsys.readouterr().out


def test_in_selection_on_the_command_line(files, capsys):
    real, *models = files
    assert main(["select", "--reference", real, *models, "--metric", "toy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == "a"


def test_in_a_training_loop():
    torch = pytest.importorskip("torch")
    metric = pytest.importorskip("genbounds.torchmetrics").FeatureMetric(metric="toy")
    metric.update(torch.from_numpy(REAL), real=True)
    metric.update(torch.from_numpy(FAKES["a"]))
    expected = gb.compare(FAKES, REAL, metric="toy").scores["a"]
    assert {name: float(number) for name, number in metric.compute().items()} == {
        "value": expected.value,
        "low": expected.low,
        "high": expected.high,
        "reliable": 1.0,
    }
