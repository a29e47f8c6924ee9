"""Metrics of selection beside fd and is."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pytest

import genbounds.select as select
from genbounds.estimators import (
    Moments,
    median_bandwidth,
    metric_names,
    metric_spec,
    vendi_estimate,
)
from genbounds.select import CustomMetric
from genbounds.validation import InputError
from tests.select.arms import Normal


class Clusters:
    """Rows near one of `k` corners."""

    def __init__(self, k, d=6):
        self.k, self.d = k, d

    def draw(self, n, rng):
        corners = np.eye(self.d)[rng.integers(self.k, size=n)]
        return 3.0 * corners + 0.1 * rng.standard_normal((n, self.d))


def resolve_metric(metric, reference, options=None):
    return metric_spec(metric).prepared(reference, options)


def first_look(metric, reference, d, options=None):
    """Samples of the first look of a run with arms of d features."""

    class Wide:
        def draw(self, n, rng):
            return np.abs(rng.standard_normal((n, d))) / d

    result = select.run({"a": Wide()}, reference, metric=metric, options=options, batch=50)
    return result.history.looks[0].score.n


DIVERSE = {"two": Clusters(2), "five": Clusters(5), "three": Clusters(3)}


@pytest.mark.parametrize("policy", ["lucb", "thompson"])
def test_rke_finds_the_most_diverse(policy):
    options = {"bandwidth": 1.0}
    result = select.run(
        DIVERSE, metric="rke", options=options, policy=policy, batch=20, budget=1_000, seed=0
    )
    assert result.best == "five"
    assert result.metric == "rke"
    score = result.scores["five"]
    # k² is exp(-|x - y|²): of two rows of one corner 1.04^-3 on average, of two corners nothing
    assert score.low < 5.0 * 1.04**3 < score.high
    if policy == "lucb":
        assert result.certified


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "policy"),
    [({"kernel": "cosine"}, "lucb"), ({"bandwidth": 1.0, "components": 20}, "debiased-ucb")],
)
def test_vendi_finds_the_most_diverse(options, policy):
    result = select.run(
        DIVERSE, metric="vendi", options=options, policy=policy, batch=50, budget=1_500
    )
    assert result.best == "five"
    assert result.certified or policy != "lucb"
    assert result.set_aside == {}


def test_bandwidth_comes_from_the_reference():
    rng = np.random.default_rng(0)
    real = Clusters(6).draw(300, rng)
    metric = resolve_metric("rke", real)
    rows = Clusters(3).draw(200, rng)
    expected = vendi_estimate(
        rows, order=2.0, method="ustat", bandwidth=median_bandwidth(real, kernel="rbf")
    )
    assert metric.estimate(rows).value == pytest.approx(expected.value, rel=1e-12)
    assert metric.columns == 6
    assert metric.plugin_loss(rows) < -metric.estimate(rows).value * 0.9  # larger is better


def test_first_look_fills_the_feature_space_where_the_spectrum_needs_it():
    assert first_look("vendi", None, 50, {"kernel": "cosine"}) == 400
    assert first_look("vendi", None, 50, {"kernel": "cosine", "order": 2.0}) == 100
    assert first_look("vendi", None, 50, {"bandwidth": 1.0}) == 202
    few = {"bandwidth": 1.0, "components": 20}
    assert first_look("vendi", None, 50, few) == 100
    assert first_look("rke", None, 50, {"bandwidth": 1.0}) == 100


def test_first_look_of_the_distance_waits_until_a_sampled_reference_cancels():
    assert first_look("fd", Moments(np.zeros(90), np.eye(90)), 90) == 180
    rows = np.random.default_rng(0).standard_normal((400, 90))
    assert first_look("fd", rows, 90) == 360
    assert first_look("fd", Moments(np.zeros(4), np.eye(4)), 4) == 100


def test_every_metric_of_the_estimators_is_known():
    """Fails for a metric that is added to the estimators and not here."""
    real = Clusters(6).draw(300, np.random.default_rng(0))
    for name in metric_names():
        if name == "mind" and find_spec("torch") is None:
            continue
        metric = resolve_metric(name, None if name in {"is", "mean"} else real)
        assert metric.name == name


def test_kid_finds_the_nearest():
    rng = np.random.default_rng(0)
    arms = {f"a{i}": Normal(0.4 * i) for i in range(3)}
    options = {"degree": 2}
    result = select.run(arms, rng.normal(size=(400, 1)), metric="kid", options=options, batch=50)
    assert (result.best, result.certified) == ("a0", True)
    assert any("the reference is a sample" in note for note in result.notes)
    plain = resolve_metric("kid", rng.normal(size=(60, 1)))
    rows = rng.normal(size=(50, 1))
    assert plain.plugin_loss(rows) > plain.estimate(rows).value  # its bias is positive
    changed = resolve_metric("kid", rng.normal(size=(60, 1)), {"degree": 2})
    assert changed.estimate(rows).value != plain.estimate(rows).value


def variance_of_first(**changes):
    """Plug-in variance, divisor n, so that it is too small by a share 1/n."""
    options = {
        "name": "spread",
        "value": lambda x: float(x[:, 0].var()),
        "influence": lambda x: (x[:, 0] - x[:, 0].mean()) ** 2,
        "bias": lambda x: -float(x[:, 0].var()) / len(x),
        "higher_is_better": True,
    }
    return CustomMetric(**(options | changes))


def test_custom_metric_expands_value_influence_and_bias():
    x = np.random.default_rng(1).normal(2.0, 1.5, size=(400, 1))
    found = variance_of_first()(x)
    assert found.value == pytest.approx(x.var() * (1 + 1 / 400), rel=1e-12)
    squares = (x[:, 0] - x.mean()) ** 2
    assert found.variance == pytest.approx(squares.var(ddof=1) / 400, rel=1e-12)
    assert found.sample.degrees_of_freedom == 399
    assert abs(found.sample.influence.sum()) < 1e-9
    assert variance_of_first(bias=None)(x).value == pytest.approx(x.var(), rel=1e-12)


def test_custom_metric_is_certified_and_keeps_its_plugin_for_greedy():
    arms = {"calm": Normal(0.0, sd=1.0), "wild": Normal(0.0, sd=1.6)}
    metric = variance_of_first()
    result = select.run(arms, metric=metric, batch=20)
    assert (result.best, result.certified, result.metric) == ("wild", True, "spread")
    resolved = resolve_metric(metric, None)
    x = np.random.default_rng(2).normal(size=(50, 1))
    assert resolved.plugin_loss(x) == pytest.approx(-x.var(), rel=1e-12)
    assert first_look(variance_of_first(samples_per_dimension=300), None, 1) == 300
    flipped = select.run(arms, metric=variance_of_first(higher_is_better=False), batch=20)
    assert flipped.best == "calm"


def test_custom_metric_with_a_wrong_influence_sets_the_arm_aside():
    bad = variance_of_first(influence=lambda x: np.zeros(3))
    with pytest.raises(InputError, match="must return one number per row"):
        select.run({"a": Normal(0.0)}, metric=bad)


@pytest.mark.parametrize(
    ("metric", "reference", "options"),
    [
        ("rke", None, None),
        ("vendi", Moments(np.zeros(2), np.eye(2)), None),
        ("rke", None, {"bandwidth": 1.0, "order": 1.0}),
        ("is", None, {"order": 1.0}),
        ("kid", None, None),
        ("kid", np.zeros((9, 2)), {"order": 1.0}),
        (variance_of_first(), None, {"order": 1.0}),
        ("is", np.zeros((5, 2)), None),
        ("inception", None, None),
    ],
)
def test_bad_metrics(metric, reference, options):
    with pytest.raises(InputError):
        select.run({"a": Normal(0.0)}, reference, metric=metric, options=options)


def test_greedy_on_the_plugin_of_a_custom_metric_starts_with_two_rows():
    s = select.run(
        {"a": Normal(0.0), "b": Normal(0.0, sd=3.0)},
        metric=variance_of_first(),
        policy="greedy",
        batch=1,
        budget=60,
    )
    assert s.samples["b"] > s.samples["a"]
    assert math.isfinite(s.cost)
