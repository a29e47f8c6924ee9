"""MIFID against its definition and known truths, alone, compared and in decisions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import linalg

import genbounds as gb
from genbounds.estimators import FrechetReference, MifidReference
from tests.refusal import refused
from tests.warnings_of import codes

RNG = np.random.default_rng(4)
MEAN = np.array([4.0, 0.0, 0.0, 0.0])


def drawn(n, *, seed, shift=0.3, scale=1.0):
    """Rows about one direction: near in angle, though nothing is copied."""
    rng = np.random.default_rng(seed)
    return MEAN + shift + scale * rng.normal(size=(n, 4))


REAL = drawn(400, seed=1, shift=0.0)
FAKE = drawn(300, seed=2)


def angles_of(fake, real):
    """1 - |cos| between every row and the nearest reference row."""
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (fake, real)]
    return (1.0 - np.abs(units[0] @ units[1].T)).min(axis=1)


def published(fake, real, threshold):
    """The paper's score from its definition: covariances, and one cosine at a time."""
    gap = fake.mean(axis=0) - real.mean(axis=0)
    one, two = np.cov(fake.T), np.cov(real.T)
    distance = gap @ gap + np.trace(one + two - 2.0 * linalg.sqrtm(one @ two).real)
    smallest = [min(1.0 - abs(x @ y) / math.sqrt((x @ x) * (y @ y)) for y in real) for x in fake]
    penalty = np.mean(smallest)
    return distance / (penalty + 1e-14 if penalty < threshold else 1.0)


@pytest.mark.parametrize("threshold", [1e-6, 0.1])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_plugin_is_the_published_score(threshold, sign):
    score = gb.mifid(sign * FAKE[:80], REAL[:90], threshold=threshold, estimator="plugin")
    assert score.value == pytest.approx(published(sign * FAKE[:80], REAL[:90], threshold), rel=1e-9)


@pytest.mark.slow
def test_torchmetrics_has_the_two_samples_exchanged():
    """Its mean is over real rows. Both samples exchanged it is the published score."""
    torch = pytest.importorskip("torch")
    functions = pytest.importorskip("torchmetrics.image.mifid")

    def theirs(one, two):
        sides = [(x.mean(axis=0), np.cov(x.T), x) for x in (one, two)]
        given = [torch.from_numpy(array) for side in sides for array in side]
        return float(functions._mifid_compute(*given, cosine_distance_eps=0.1))

    score = gb.mifid(FAKE, REAL, estimator="plugin")
    assert score.value == pytest.approx(theirs(FAKE, REAL), rel=1e-9)
    assert score.value != pytest.approx(theirs(REAL, FAKE), rel=1e-3)


def test_rows_of_known_angles():
    real = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    angle = np.array([0.1, -0.2, np.pi / 2 + 0.3, np.pi - 0.4])
    fake = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.array([[1.0, 5.0, 0.1, 9.0]]).T
    found = MifidReference(real, threshold=0.5).estimate(gb.Sample(fake))
    expected = np.mean(1.0 - np.cos([0.1, 0.2, 0.3, 0.4]))
    assert f"nearest reference row: {expected:.3g}"[:40] in found.details[-1]


def test_digits_of_near_copies_are_kept():
    """1 - cos of double precision would be wrong by 1e-16, here a tenth of it."""
    step = 3e-8
    fake = np.stack([np.ones(4), np.array([-1.0, 1.0, -1.0, 1.0]) * step], axis=1)
    real = np.array([[2.0, 0.0], [0.0, 1.0], [-0.5, 0.3], [0.1, 4.0]])
    found = MifidReference(real).estimate(gb.Sample(fake))
    assert "nearest reference row: 4.500·10⁻¹⁶" in found.details[-1]


def test_no_penalty_leaves_the_distance():
    far = np.random.default_rng(5).normal(size=(2, 200, 32))
    score, distance = gb.mifid(*far), gb.compare({"a": far[0]}, far[1]).scores["a"]
    assert (score.value, score.low, score.high) == (distance.value, distance.low, distance.high)
    assert codes(score) == codes(distance)
    assert "no penalty" in score.details[-1]


def test_penalty_says_what_it_may_mean():
    score = gb.mifid(FAKE, REAL)
    assert "copies" in codes(score, "caution")
    assert score.reliable
    penalty = float(score.details[-1].split(": ")[1].split(";")[0])
    assert score.value == pytest.approx(gb.frechet_distance(FAKE, REAL).value / penalty, rel=0.02)


def test_near_the_threshold_it_is_unreliable():
    penalty = MifidReference(REAL).estimate(FAKE).details[-1]
    threshold = float(penalty.split(": ")[1].split(";")[0])
    score = gb.mifid(FAKE, REAL, threshold=threshold)
    assert codes(score, "unreliable") == {"threshold"}


def test_variance_and_bias_are_those_of_the_jackknife():
    """Rows that stand aside make the distance and the angle large: the variances alone would add
    up to several times that of the ratio. Its bias is that beyond the bias of the distance.
    """
    real, fake = (drawn(400, seed=seed, shift=0.0, scale=0.5) for seed in (1, 7))
    fake[:40, 1] += 3.0
    reference = MifidReference(real)
    found = reference.estimate(gb.Sample(fake), estimator="plugin")
    whole = FrechetReference(real)
    angles = angles_of(fake, real)
    distances = np.array([whole.plugin(np.delete(fake, i, axis=0)) for i in range(400)])
    ratios = distances / ((angles.sum() - angles) / 399.0)
    assert found.value == pytest.approx(whole.plugin(fake) / angles.mean(), rel=1e-9)
    jackknife = 399.0 / 400.0 * np.sum((ratios - ratios.mean()) ** 2)
    assert found.sample.variance == pytest.approx(jackknife, rel=0.1)
    own = distances.mean() - whole.plugin(fake)
    bias = 399.0 * (ratios.mean() - found.value - own / angles.mean())
    debiased = whole.estimate(gb.Sample(fake)).value / angles.mean()
    left = debiased - reference.estimate(gb.Sample(fake)).value
    assert left == pytest.approx(bias, rel=0.1)


def test_scale_does_not_matter():
    plain, large = gb.mifid(FAKE, REAL), gb.mifid(8.0 * FAKE, 8.0 * REAL)
    assert large.value == pytest.approx(64.0 * plain.value, rel=1e-12)
    huge = gb.mifid(FAKE * 2.0**100, REAL * 2.0**100)
    assert huge.value == pytest.approx(plain.value * 2.0**200, rel=1e-12)


def test_groups_widen_and_units_of_both_samples_take_the_worst_covariance():
    prompt = np.repeat(np.arange(75), 4)
    rng = np.random.default_rng(9)
    x = MEAN + 0.3 + rng.normal(size=(75, 4))[prompt] + 0.1 * rng.normal(size=(300, 4))
    told = gb.mifid(gb.Sample(x, groups=prompt), REAL)
    plain = gb.mifid(gb.Sample(x), REAL)
    assert told.stderr > 1.5 * plain.stderr
    ids = np.arange(300)
    common = rng.normal(size=(300, 4))
    one, two = (
        gb.Sample(MEAN + k * 0.3 + common + 0.3 * rng.normal(size=(300, 4)), groups=ids)
        for k in (1.0, 0.0)
    )
    shared = gb.mifid(one, two)
    penalty = angles_of(one.features, two.features)
    distance = gb.frechet_distance(one, two)
    slope = distance.value / penalty.mean() ** 2
    worst = distance.stderr / penalty.mean() + slope * penalty.std(ddof=1) / math.sqrt(300)
    assert shared.value == pytest.approx(distance.value / penalty.mean(), rel=1e-9)
    assert shared.stderr == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "subjects"),
    [
        ({"real": gb.Moments(np.zeros(4), np.eye(4))}, ("`real`", "moments")),
        ({"fake": gb.Moments(np.zeros(4), np.eye(4))}, ("`fake`", "Moments")),
        ({"fake": FAKE[:, :3]}, ("`fake`", "3 features", "4")),
        ({"fake": np.where(np.arange(300)[:, None] == 7, 0.0, FAKE)}, ("`fake`", "row (7)")),
        ({"real": np.where(np.arange(400)[:, None] == 9, 0.0, REAL)}, ("`real`", "row (9)")),
        ({"threshold": 0.0}, ("`threshold`", "0")),
        ({"threshold": 2}, ("`threshold`", "2")),
        ({"estimator": "infinity"}, ("`estimator`",)),
    ],
)
def test_refusals(change, subjects):
    with refused(*subjects):
        gb.mifid(**{"fake": FAKE, "real": REAL} | change)


def test_it_is_a_metric_for_every_decision():
    models = {"near": FAKE, "far": drawn(300, seed=3, shift=1.0)}
    ranking = gb.compare(models, REAL, metric="mifid", options={"threshold": 0.2})
    assert ranking.best == "near"
    assert ranking.contenders == ("near",)
    json.dumps(ranking.to_dict(), allow_nan=False)
    alone = gb.mifid(FAKE, REAL, threshold=0.2)
    assert ranking.scores["near"].value == alone.value
    verdict = gb.gate(models["far"], FAKE, REAL, margin=1.0, metric="mifid")
    assert verdict.decision == "fail"
    assert gb.plan(FAKE, REAL, half_width=40.0, metric="mifid").n is not None


def test_no_cosine_distance_is_unreliable():
    """With one feature of one sign all directions are the same: a distance over rounding."""
    rng = np.random.default_rng(1)
    score = gb.mifid(3.0 + 0.1 * rng.normal(size=(300, 1)), 3.0 + 0.1 * rng.normal(size=(400, 1)))
    assert not score.reliable
    assert any(w.code == "copies" and w.severity == "unreliable" for w in score.warnings)
