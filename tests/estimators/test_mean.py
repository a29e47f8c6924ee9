"""Mean scores: textbook formulas, finite-sample coverage with bounds, pairs, every surface."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom, ttest_rel
from statsmodels.regression.mixed_linear_model import MixedLM

import genbounds as gb
from genbounds.cli import main
from genbounds.estimators import convergence
from tests.refusal import refused
from tests.warnings_of import codes

RNG = np.random.default_rng(0)
VALUES = {name: RNG.normal(mean, 0.1, 200) for name, mean in {"a": 0.3, "b": 0.25}.items()}


def test_independent_values():
    x = VALUES["a"]
    score = gb.mean_score(x)
    assert score.value == pytest.approx(x.mean(), rel=1e-14)
    assert score.stderr == pytest.approx(x.std(ddof=1) / np.sqrt(200), rel=1e-12)
    assert gb.mean_score(x[:, None]) == score
    assert (score.method, score.reliable) == ("mean", True)


def test_equal_groups_are_the_random_effects_of_a_mixed_model():
    """The same error, by REML: statsmodels stops at about 1e-6 of it here."""
    rng, prompt = np.random.default_rng(3), np.repeat(np.arange(60), 5)
    x = rng.normal(size=60)[prompt] + 1.5 * rng.normal(size=prompt.size)
    score = gb.mean_score(gb.Sample(x[:, None], groups=prompt))
    fit = MixedLM(x, np.ones((x.size, 1)), groups=prompt).fit(reml=True)
    assert score.value == pytest.approx(fit.params[0], rel=1e-9)
    assert score.stderr == pytest.approx(fit.bse[0], rel=1e-4)


def test_groups_are_a_ratio_of_sums():
    """CR2 of what a group moves the mean by, that group left out of what it is compared with."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 1 + np.arange(60) % 5)
    x = rng.normal(size=60)[groups] + 0.3 * rng.normal(size=groups.size)
    score = gb.mean_score(x, groups=groups)
    assert score.value == pytest.approx(x.mean(), rel=1e-12)
    share = np.bincount(groups) / x.size
    moves = np.bincount(groups, x - x.mean()) / x.size * (1.0 + 120.0 / 59.0 * (share - 1.0 / 60.0))
    expected = np.sqrt(((moves - moves.mean()) ** 2 / (1.0 - share)).sum())
    left = np.array([x[groups != g].mean() for g in range(60)])
    jackknife = np.sqrt(59.0 / 60.0 * ((left - left.mean()) ** 2).sum())
    assert expected == pytest.approx(jackknife, rel=0.05)
    assert score.stderr == pytest.approx(expected, rel=1e-4)
    assert score.stderr > 1.5 * gb.mean_score(x).stderr
    sample = gb.Sample(x[:, None], groups=groups)
    assert gb.mean_score(sample) == score


def test_pairs_by_prompt():
    """Models with the same group ids are compared in pairs."""
    rng = np.random.default_rng(2)
    prompt = rng.normal(size=100)
    scores = {name: prompt + rng.normal(m, 0.1, 100) for name, m in {"a": 0.0, "b": 0.03}.items()}
    told = {name: gb.Sample(x[:, None], groups=np.arange(100)) for name, x in scores.items()}
    pair = gb.compare(told, metric="mean").difference("b", "a")
    apart = scores["b"] - scores["a"]
    assert pair.value == pytest.approx(apart.mean(), rel=1e-12)
    assert pair.stderr == pytest.approx(apart.std(ddof=1) / 10.0, rel=1e-12)
    assert pair.pvalue == pytest.approx(ttest_rel(scores["b"], scores["a"]).pvalue, rel=0.02)


def test_the_limit_is_where_the_capital_rejects():
    """Either end of an interval at 95 % has half of the error: log 40. Groups bet by their sums."""
    stakes = 0.9 * 0.5 ** np.arange(6)
    groups = np.repeat(np.arange(50), 1 + np.arange(50) % 4)
    values = np.random.default_rng(3).random(groups.size)

    def capital(m, sums, sizes):
        return np.mean([np.prod(1.0 + s * (sums / m - sizes)) for s in stakes])

    low = gb.mean_score(values, groups=groups, bounds=(0, 1)).low
    sums, sizes = np.bincount(groups, values) / 4.0, np.bincount(groups) / 4.0
    assert capital(low, sums, sizes) == pytest.approx(40.0, rel=1e-9)
    values = np.clip(VALUES["a"], 0.0, 1.0)
    low = gb.mean_score(values, bounds=(0, 1)).low
    assert capital(low, values, 1.0) == pytest.approx(40.0, rel=1e-9)
    assert gb.mean_score(np.zeros(200), bounds=(0, 1)).low == 0.0


def test_bounds_move_with_the_unit():
    score = gb.mean_score(np.repeat([0.0, 1.0], [30, 170]), bounds=(0, 1))
    moved = gb.mean_score(np.repeat([-2.0, 8.0], [30, 170]), bounds=(-2, 8))
    assert [moved.low, moved.high] == pytest.approx([10 * score.low - 2, 10 * score.high - 2])
    sure = gb.mean_score(np.ones(50), bounds=(0, 1))
    assert sure.reliable
    assert sure.low < 0.95
    assert sure.high == 1.0
    assert "no-variation" in codes(gb.mean_score(np.ones(50)), "unreliable")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["rare", "groups", "beta"])
@pytest.mark.nightly
def test_bounds_cover_from_few_values(kind):
    """H0: at least 95 % of 500 intervals hold the mean; a false alarm has probability 1e-6.

    Student's interval of rare values covers 26 % (n = 30, p = 0.01): power 1. Betting on groups as
    on values would cover fewer than 60 % of groups of up to eight equal values.
    """
    runs, hits, plain = 500, 0, 0
    for stream in np.random.SeedSequence(4).spawn(runs):
        rng = np.random.default_rng(stream)
        groups = None
        if kind == "rare":
            x, truth = (rng.random(30) < 0.01).astype(float), 0.01
        elif kind == "beta":
            x, truth = rng.beta(0.1, 0.9, 20), 0.1
        else:
            groups = np.repeat(np.arange(40), rng.integers(1, 9, 40))
            x, truth = (rng.random(40) < 0.3).astype(float)[groups], 0.3
        for given in (groups, None):
            found = gb.mean_score(x, groups=given, bounds=(0, 1))
            held = found.low <= truth <= found.high
            hits, plain = hits + held * (given is groups), plain + held * (given is None)
            if groups is None:
                break
    gate = binom.ppf(1e-6, runs, 0.95)
    assert hits >= gate
    if kind == "groups":
        assert plain < gate


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.statistical
def test_groups_cover():
    """H0: at least 92 % of 400; α = 1e-6. Untold intervals of eight alike values cover half."""
    runs, hits = 400, np.zeros(2, dtype=int)
    groups = np.repeat(np.arange(50), 8)
    for stream in np.random.SeedSequence(5).spawn(runs):
        rng = np.random.default_rng(stream)
        x = rng.normal(size=50)[groups] + 0.5 * rng.normal(size=400)
        for k, given in enumerate((groups, None)):
            found = gb.mean_score(x, groups=given)
            hits[k] += found.low <= 0.0 <= found.high
    gate = binom.ppf(1e-6, runs, 0.92)
    assert hits[0] >= gate > hits[1]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("n", "rates"),
    [
        (60, (0.97, 0.99)),
        pytest.param(100, (0.98, 1.0), marks=pytest.mark.nightly),
        (60, (0.9, 0.9)),
    ],
)
def test_differences_of_rates_near_1(n, rates):
    """H0: a worse rate passes a margin of its difference in 5 %, intervals miss in 5 %; α = 1e-6.

    Student's passed 16.8 % [13.2, 20.8] and covered 83 %: power above 0.999.
    """
    rng, runs, passed, missed = np.random.default_rng(7), 300, 0, 0
    margin = rates[1] - rates[0]
    asked = {"metric": "mean", "options": {"bounds": (0, 1)}}
    for _ in range(runs):
        worse, better = ((rng.random((n, 1)) < rate).astype(float) for rate in rates)
        gap = gb.compare({"worse": worse, "better": better}, **asked).difference("worse", "better")
        missed += not gap.low <= -margin <= gap.high
        if margin:
            passed += gb.gate(worse, better, None, margin=margin, **asked).decision == "pass"
    assert max(passed, missed) <= binom.ppf(1.0 - 1e-6, runs, 0.05)


def test_pairs_that_all_agree_may_differ_in_what_was_not_drawn():
    """100 prompts right for both models: the rule of three, and no interval of [0, 0]."""
    x = gb.Sample(np.ones((100, 1)), groups=np.arange(100))
    asked = {"metric": "mean", "options": {"bounds": (0, 1)}}
    gap = gb.compare({"a": x, "b": x}, **asked).difference("a", "b")
    assert gap.high >= 3.0 / 100.0
    assert gap.low <= -3.0 / 100.0
    assert gb.gate(x, x, None, margin=0.02, **asked).decision == "inconclusive"


def test_on_every_surface(tmp_path, capsys):
    columns = {name: x[:, None] for name, x in VALUES.items()}
    ranking = gb.compare(columns, metric="mean", options={"bounds": (-1, 2)})
    assert ranking.contenders == ("a", "b")  # what values between these bounds may still hide
    assert gb.compare(columns, metric="mean").contenders == ("a",)
    assert ranking.scores["a"] == gb.mean_score(VALUES["a"], bounds=(-1, 2))
    grown = convergence(columns, metric="mean")
    assert grown["a"][-1] == (200, gb.mean_score(VALUES["a"]))
    for name, column in columns.items():
        np.save(tmp_path / f"{name}.npy", column)
    files = [str(tmp_path / f"{name}.npy") for name in columns]
    assert main(["score", *files, "--metric", "mean", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["value"] for row in rows] == pytest.approx([x.mean() for x in VALUES.values()])
    arms = {name: (lambda n, rng, m=m: rng.normal(m, 0.1, (n, 1))) for name, m in
            {"a": 0.3, "b": 0.2}.items()}  # fmt: skip
    found = gb.select.run(arms, None, metric="mean", budget=1000, batch=50)
    assert (found.best, found.certified) == ("a", True)


def test_in_a_training_loop():
    torch = pytest.importorskip("torch")
    metric = pytest.importorskip("genbounds.torchmetrics").FeatureMetric(metric="mean")
    metric.update(torch.from_numpy(VALUES["a"][:, None]))
    assert float(metric.compute()["value"]) == pytest.approx(VALUES["a"].mean())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: gb.mean_score(np.ones((5, 2))), "one number per sample"),
        (lambda x: gb.mean_score(x[:1]), "at least 2"),
        (lambda x: gb.mean_score([0.5, np.nan, 1.0]), "NaN in row 1"),
        (lambda x: gb.mean_score(x, bounds=(1, 0)), "the smaller one first"),
        (lambda x: gb.mean_score(x, bounds=1.0), "two finite numbers"),
        (lambda x: gb.mean_score(x, bounds=(0, 0.5)), "`values` has .* outside the bounds"),
        (lambda x: gb.mean_score(x, groups=[1, 2]), "one id per row"),
        (lambda x: gb.mean_score(gb.Sample(x[:, None]), groups=np.arange(6)), "groups of its own"),
        (
            lambda x: gb.mean_score(
                gb.Sample(x[:, None], strata=[0, 0, 0, 1, 1, 1]), bounds=(0, 1)
            ),
            "strata or weights",
        ),
        (lambda x: gb.mean_score("values.npy"), "name of a file"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(gb.InputError, match=words):
        call(np.linspace(0.0, 1.0, 6))


def test_what_is_said_of_values_speaks_of_values():
    """A number, equal values, and values of whose squares nothing is left (a width of 0 before)."""
    rng = np.random.default_rng(0)
    with refused("`values`", "one number per sample"):
        gb.mean_score(5)
    (warning,) = gb.mean_score(np.full(100, 3.0)).warnings
    assert warning.code == "no-variation"
    assert "features" not in str(warning)
    for size in (1e-200, 1e-160):
        with refused("`values`", "multiply them"):
            gb.mean_score(size * rng.normal(size=100))
    assert gb.mean_score(1e-90 * rng.normal(size=100)).stderr > 0.0
    assert gb.mean_score(1e-200 * rng.random(100), bounds=(0, 1)).low < 1e-200
