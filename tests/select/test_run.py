from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import genbounds.select as select
from genbounds.estimators import Estimate, Moments, SampleError
from genbounds.select import EncodedArm, FeatureArm, Greedy, Policy
from genbounds.simulate import GaussianArm
from genbounds.validation import InputError
from tests.select.arms import Normal, mean_metric

CLEAR = {"good": Normal(0.0), "bad": Normal(2.0), "worse": Normal(3.0)}


def go(arms, **options):
    return select.run(arms, **({"metric": mean_metric, "limit": 2_000} | options))


def same(a, b):
    assert json.dumps(a.to_dict()) == json.dumps(b.to_dict())
    np.testing.assert_array_equal(a.history.picks, b.history.picks)
    np.testing.assert_array_equal(a.history.drawn, b.history.drawn)
    assert a.history.looks == b.history.looks


@pytest.mark.parametrize("policy", ["lucb", "elimination", "uniform"])
def test_certifies_a_clear_winner(policy):
    result = go(CLEAR, policy=policy)
    assert (result.best, result.certified, result.stopped) == ("good", True, "certified")
    assert result.top == ("good",)
    assert result.confidence == 0.95
    assert result.samples == {"good": 100, "bad": 100, "worse": 100}
    assert result.steps == 60
    assert list(result.scores) == ["good", "bad", "worse"]
    score = result.scores["good"]
    assert score.n == 100
    assert score.level == 0.95
    assert score.low < 0.0 < score.high


def test_scores_come_from_the_first_rows_at_the_planned_sizes():
    seen: dict[int, set[bytes]] = {}

    def spying(rows):
        seen.setdefault(len(rows), set()).add(rows.tobytes())
        return mean_metric(rows)

    arms = {"a": Normal(0.0), "b": Normal(0.02)}
    result = go(arms, metric=spying, batch=60, limit=300)
    assert result.samples == {"a": 300, "b": 300}
    sizes = select.look_sizes(100, 300)
    assert sorted(seen) == list(sizes)
    for small, large in itertools.pairwise(sizes):
        starts = {rows[: small * 8] for rows in seen[large]}
        assert starts == seen[small]


def test_orientation_comes_from_the_estimate():
    def higher(rows):
        e = mean_metric(rows)
        return replace(e, higher_is_better=True)

    assert go(CLEAR, metric=higher).best == "worse"


def test_result_is_json():
    keys = {"best", "certified", "confidence", "samples", "scores", "steps"}
    document = json.loads(json.dumps(go(CLEAR).to_dict(), allow_nan=False))
    assert keys <= set(document)


def test_result_prints_a_line_for_each_arm():
    result = go(CLEAR)
    first, *rest = repr(result).splitlines()
    assert first.startswith(f"Selection(best {result.best}: certified at 95\u202f%")
    assert [line.split()[0] for line in rest] == list(result.scores)
    for line, (name, score) in zip(rest, result.scores.items(), strict=True):
        assert f"{score.value:.6g}  [{score.low:.6g}, {score.high:.6g}]" in line
        assert line.endswith(f"{result.samples[name]} samples")


@pytest.mark.parametrize("policy", ["lucb", "thompson"])
def test_deterministic_by_seed(policy):
    arms = {"a": Normal(0.0), "b": Normal(0.2), "c": Normal(0.3)}
    first, again, other = (go(arms, policy=policy, seed=seed, budget=1_500) for seed in (1, 1, 2))
    same(first, again)
    assert first.scores != other.scores


def test_samples_of_an_arm_do_not_depend_on_the_policy():
    drawn: dict[str, list[np.ndarray]] = {}

    class Spy(Normal):
        def draw(self, n, rng):
            rows = super().draw(n, rng)
            drawn[current].append(rows)
            return rows

    for current in ("lucb", "random", "uniform"):
        drawn[current] = []
        go({"spied": Spy(0.0), "b": Normal(0.1), "c": Normal(0.2)}, policy=current, budget=900)
    streams = [np.concatenate(rows) for rows in drawn.values()]
    shortest = min(map(len, streams))
    assert shortest >= 100
    for stream in streams[1:]:
        np.testing.assert_array_equal(stream[:shortest], streams[0][:shortest])


def test_arms_have_different_streams():
    result = go({"a": Normal(0.0), "b": Normal(0.0)}, budget=200, policy="uniform")
    assert result.scores["a"].value != result.scores["b"].value


def test_equal_arms_end_at_the_limit_without_a_certificate():
    result = go({"a": Normal(0.0), "b": Normal(0.0)}, limit=300, seed=0)
    assert (result.certified, result.stopped) == (False, "limit")
    assert result.samples == {"a": 300, "b": 300}


def test_an_answer_says_the_tolerance_it_is_certified_at():
    arms = {"a": Normal(0.0), "b": Normal(0.3), "c": Normal(2.0)}
    found = go(arms, tolerance=0.5)
    assert (found.certified, found.tolerance, found.to_dict()["tolerance"]) == (True, 0.5, 0.5)
    said = "certified at 95\u202f%: no other is better by more than 0.5"
    assert found.verdict == said
    assert said in repr(found)
    assert "better by more than 0.5" in found.notes[0]
    exact = go({"a": Normal(0.0), "c": Normal(2.0)})
    assert (exact.tolerance, exact.verdict) == (0.0, "certified at 95\u202f%")
    assert go({"a": Normal(0.0), "b": Normal(0.0)}).verdict == "not certified"


def test_a_reference_of_unknown_size_hedges_the_answer(tmp_path):
    """Every score rests on it, and no sample of the arms tells how far it is off."""
    arms = {"near": GaussianArm([1.0], [1.0]), "far": GaussianArm([2.0], [1.0])}
    known = select.run(arms, Moments(np.zeros(1), np.eye(1)), batch=50)
    assert (known.reliable, known.warnings) == (True, ())
    np.savez(tmp_path / "cached.npz", mu=np.zeros(1), sigma=np.eye(1))
    found = select.run(arms, Moments.load(tmp_path / "cached.npz"), batch=50)
    assert found.certified
    assert not found.reliable
    assert [warning.severity for warning in found.warnings] == ["unreliable"]
    assert found.verdict != known.verdict
    assert str(found.warnings[0]) in repr(found)
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["reliable"] is False
    assert [one["code"] for one in document["warnings"]] == [one.code for one in found.warnings]


def test_budget_is_kept_and_named():
    result = go({"a": Normal(0.0), "b": Normal(0.0)}, budget=333)
    assert sum(result.samples.values()) == 333
    assert (result.certified, result.stopped) == (False, "budget")


def test_budget_too_small_for_a_look_says_so():
    result = go(CLEAR, budget=60)
    assert not result.certified
    assert result.best == "good"  # from the few samples there are
    assert result.stopped == "budget"
    for score in result.scores.values():
        assert [warning.code for warning in score.warnings] == ["few-samples"]
        assert not score.reliable


def test_policies_that_never_stop_get_the_papers_horizon():
    """They report the certificate all the same."""
    result = go(CLEAR, policy="random")
    assert result.certified
    assert result.steps == 1_000
    assert sum(result.samples.values()) == 5_000
    assert result.stopped == "budget"


def test_budget_needs_a_batch_for_every_arm():
    with pytest.raises(InputError) as refused:
        go(CLEAR, budget=14)
    assert refused.value.argument == "budget"


def test_pairs_that_the_tolerance_settles_are_left_alone():
    """Equal arms: `lucb` went on drawing those whose order was not asked for any more."""
    given = {"top": 3, "tolerance": 0.3, "limit": 5_000, "batch": 50}
    spent = {"lucb": 0, "uniform": 0}
    for seed in range(6):
        for policy in spent:
            found = go({name: Normal(0.0) for name in "abcdef"}, policy=policy, seed=seed, **given)
            assert found.certified
            spent[policy] += found.total_samples
    assert spent["lucb"] <= spent["uniform"]


def test_files_are_judged_by_all_their_rows_and_no_look_is_planned_beyond():
    rng = np.random.default_rng(0)
    sizes = {"a": 196, "b": 240, "c": 1_000}
    rows = {name: rng.normal(size=(n, 1)) for name, n in sizes.items()}
    found = go({name: FeatureArm(x) for name, x in rows.items()}, policy="uniform")
    assert (found.certified, found.stopped) == (False, "exhausted")
    # With 760 rows more than any other, "c" has nothing to be compared with.
    assert {name: score.n for name, score in found.scores.items()} == {"a": 196, "b": 240, "c": 240}
    assert found.samples["c"] < 1_000
    assert found.arms["a"].reason == "exhausted after 196 samples"
    shorter = rows | {"c": rows["c"][:240]}
    same_looks = go({name: FeatureArm(x) for name, x in shorter.items()}, policy="uniform")
    assert same_looks.scores["a"] == found.scores["a"]
    even = go({name: FeatureArm(x[:190]) for name, x in rows.items()}, policy="uniform")
    assert (even.stopped, even.scores["b"].n) == ("exhausted", 190)
    live = go({"a": FeatureArm(rows["a"]), "d": Normal(0.0)}, limit=None)
    assert {score.n for score in live.scores.values()} == {196}


def test_an_unreliable_best_makes_the_answer_unreliable():
    def half_heavy(n, rng):
        return rng.standard_t(1.1, size=(n, 1))

    arms = {"heavy": half_heavy, "far": GaussianArm([4000.0], [1.0])}
    found = select.run(arms, Moments(np.zeros(1), np.eye(1)), batch=50, limit=300)
    best = found.scores[found.best]
    assert not best.reliable
    assert not found.reliable
    assert {w.message for w in found.warnings} >= {f"{found.best}: {best.warnings[0].message}"}


def test_single_arm_is_scored_and_nothing_is_certified():
    result = go({"only": Normal(0.0)})
    assert (result.best, result.certified, result.stopped) == ("only", False, "no rival")
    assert result.samples == {"only": 100}
    assert result.scores["only"].n == 100


def test_best_guess_is_an_undefeated_arm():
    # "late" is beaten at its first look and has the best estimate only afterwards.
    values = {(0, 100): 0.0, (1, 100): 1.0, (2, 100): 0.0}
    values |= {(0, 200): 0.0, (1, 200): -0.01, (2, 200): 0.0}

    def scripted(rows):
        value = values[int(rows[0, 0]), len(rows)]
        return Estimate(value=value, sample=SampleError(n=len(rows), variance=0.01))

    arms = {name: Normal(i, sd=0.0) for i, name in enumerate(["early", "late", "other"])}
    result = go(arms, metric=scripted, policy="uniform", limit=200, growth=2.0)
    assert not result.certified
    assert result.scores["late"].value == -0.01
    assert result.best == "early"


def test_best_guess_had_a_look():
    class First(Policy):
        name = "first"

        def select(self, state):
            return (0,)

    arms = {"seen": Normal(0.0), "lucky": Normal(-50.0)}
    result = go(arms, policy=First(), budget=200)
    assert result.scores["lucky"].value < result.scores["seen"].value
    assert result.best == "seen"
    assert list(result.scores) == ["seen", "lucky"]


def test_history_measures_regret():
    result = go(CLEAR, policy="uniform", first_look=10, batch=5)
    history = result.history
    assert history.names == ("good", "bad", "worse")
    assert history.drawn.sum() == sum(result.samples.values())
    truth = {"good": 0.0, "bad": 2.0, "worse": 3.0}
    regret = history.average_regret(truth)
    np.testing.assert_allclose(regret[:3], [0.0, 1.0, 5.0 / 3.0], rtol=1e-15)
    np.testing.assert_allclose(history.optimal_pick_ratio(truth)[:3], [1.0, 0.5, 1 / 3])
    np.testing.assert_allclose(
        history.optimal_pick_ratio(truth, higher_is_better=True)[:3], [0.0, 0.0, 1 / 3]
    )
    with pytest.raises(InputError, match="'worse'"):
        history.average_regret({"good": 0.0, "bad": 2.0})
    steps = [look.step for look in history.looks]
    assert steps == sorted(steps)
    assert not history.picks.flags.writeable


# Fréchet distance


def test_frechet_distance_against_exact_and_sampled_reference():
    arms = {f"a{i}": GaussianArm([i, 0.0], np.ones(2)) for i in range(3)}
    exact = select.run(arms, Moments(np.zeros(2), np.eye(2)), batch=20)
    sample = select.run(arms, np.random.default_rng(0).normal(size=(500, 2)), batch=20)
    for result in (exact, sample):
        assert result.certified
        assert result.best == "a0"
    told = ["the reference is a sample" in result.notes[0] for result in (exact, sample)]
    assert told == [False, True]


def test_reference_noise_ends_the_run_early():
    # FD 1 in opposite directions: 200 reference rows blur the difference by 0.28.
    arms = {"left": GaussianArm([-1.0], [1.0]), "right": GaussianArm([1.01], [1.0])}
    reference = np.random.default_rng(0).normal(size=(200, 1))
    result = select.run(arms, reference, batch=500, limit=100_000)
    assert (result.certified, result.stopped) == (False, "reference")
    assert result.total_samples < 40_000


# Arguments


@pytest.mark.parametrize(
    ("arms", "options", "argument"),
    [
        ({}, {}, "arms"),
        ([Normal(0.0)], {}, "arms"),
        ({"a": object()}, {}, "arms"),
        ({"a": Normal}, {}, "arms"),
        ({"a": np.zeros((200, 1))}, {}, "arms"),
        ({1: Normal(0.0)}, {}, "arms"),
        (CLEAR, {"policy": "best"}, "policy"),
        (CLEAR, {"metric": "inception"}, "metric"),
        (CLEAR, {"confidence": 95}, "confidence"),
        (CLEAR, {"batch": 0}, "batch"),
        (CLEAR, {"budget": 0.5}, "budget"),
        (CLEAR, {"seed": -1}, "seed"),
        (CLEAR, {"top": 3}, "top"),
        (CLEAR, {"tolerance": -1.0}, "tolerance"),
        (CLEAR, {"limit": 50}, "limit"),
        (CLEAR, {"first_look": 1}, "first_look"),
        (CLEAR, {"growth": 1.0}, "growth"),
        (CLEAR, {"retries": -1}, "retries"),
        (CLEAR, {"cost": {"ugly": 1.0}}, "cost"),
        (CLEAR, {"cost": {"bad": 0.0}}, "cost"),
        (CLEAR, {"cost": 3.0}, "cost"),
        (CLEAR, {"joins": {"bad": -1}}, "joins['bad']"),
        (CLEAR, {"joins": dict.fromkeys(CLEAR, 5)}, "joins"),
        (CLEAR, {"dtype": "int8"}, "dtype"),
        (CLEAR, {"dtype": "half a byte"}, "dtype"),
    ],
)
def test_bad_arguments(arms, options, argument):
    with pytest.raises(InputError) as refused:
        go(arms, **options)
    assert refused.value.argument == argument


@pytest.mark.parametrize("options", [{"metric": "fd"}, {"reference": np.zeros((5, 1))}])
def test_reference_must_be_there_exactly_where_it_is_needed(options):
    with pytest.raises(InputError, match="reference"):
        go(CLEAR, **options)


@pytest.mark.parametrize("metric", ["fd", "rke"])
def test_a_bad_reference_is_called_as_it_was_passed(metric):
    with pytest.raises(InputError, match=r"^`reference` has NaN in row 0"):
        select.run(CLEAR, np.full((300, 2), np.nan), metric=metric)


def test_progress_sees_every_round():
    steps = []
    go(CLEAR, progress=lambda state: steps.append(state.step))
    assert steps == sorted(steps)
    assert steps[-1] == 60


def test_own_policy():
    class First(Policy):
        name = "first"

        def select(self, state):
            return (0,)

    result = go(CLEAR, policy=First(), budget=100)
    assert result.samples == {"good": 90, "bad": 5, "worse": 5}
    assert result.policy == "first"


def test_options_travel_with_the_policy():
    result = go(CLEAR, policy=Greedy(burn_in=50), budget=200)
    assert result.samples == {"good": 100, "bad": 50, "worse": 50}


def test_samples_are_kept_in_the_type_asked_for(tmp_path):
    seen = []

    def spying(rows):
        seen.append(rows.dtype)
        return mean_metric(rows)

    arms = {"a": Normal(0.0), "b": Normal(1.0)}
    half = go(arms, metric=spying, dtype="float16", record=tmp_path)
    assert set(seen) == {np.dtype("float16")}
    full = go(arms)
    assert half.scores["a"].value != full.scores["a"].value
    assert half.scores["a"].value == pytest.approx(full.scores["a"].value, abs=1e-3)
    with pytest.raises(InputError, match="dtype"):
        go(arms, record=tmp_path)
    far = go(arms | {"far": Normal(1e6)}, dtype="float16")
    assert "float16" in far.set_aside["far"]


# Costs, and arms that join


def test_budget_is_in_units_of_cost():
    arms = {"cheap": Normal(0.0), "dear": Normal(0.0)}
    result = go(arms, cost={"dear": 10.0}, budget=1_000, policy="uniform")
    assert result.samples["cheap"] + 10 * result.samples["dear"] == result.cost <= 1_000
    assert result.stopped == "budget"
    # a policy that wants no certificate spends the rest on cheap samples
    assert go(arms, cost={"dear": 10.0}, budget=1_000, policy="random").cost == 1_000
    assert go(arms, budget=600).cost == 600.0
    with pytest.raises(InputError):
        go(arms, cost={"dear": 10.0}, budget=54)


def test_lucb_settles_cheap_rivals_first():
    arms = {"best": Normal(0.0), "dear": Normal(0.1), "cheap": Normal(0.13)}
    options = {"budget": 5_000, "limit": 4_000}
    plain, thrifty = go(arms, **options), go(arms, cost={"dear": 2.0}, **options)
    first = [look.arm for look in thrifty.history.looks[3:]]
    assert "dear" not in first[: first.index("cheap") + 2]
    assert [look.arm for look in plain.history.looks[3:]] != first


def test_a_model_that_joins_is_found():
    arms = {"old": Normal(1.0), "older": Normal(2.0), "new": Normal(0.0)}
    result = go(arms, policy="greedy", joins={"new": 50}, budget=1_000)
    assert result.history.joined == (0, 0, 50)
    assert 2 not in result.history.picks[:50]
    assert result.history.picks[50] == 2
    assert result.best == "new"
    # regret is against the best that there was
    truth = {"old": 1.0, "older": 2.0, "new": 0.0}
    regret = result.history.average_regret(truth) * np.arange(1, 201)
    assert regret[49] == pytest.approx((result.history.picks[:50] == 1).sum())
    assert result.history.optimal_pick_ratio(truth)[0] == 1.0


def test_an_arm_that_never_joined_is_no_regret():
    arms = {"old": Normal(1.0), "never": Normal(0.0)}
    history = go(arms, policy="random", joins={"never": 999}, budget=100).history
    assert history.joined == (0, -1)
    assert history.optimal_pick_ratio({"old": 1.0, "never": 0.0})[-1] == 1.0


@pytest.mark.parametrize("policy", ["lucb", "elimination"])
def test_certificate_waits_for_arms_to_come(policy):
    arms = {"good": Normal(1.0), "bad": Normal(3.0), "late": Normal(0.0)}
    result = go(arms, policy=policy, joins={"late": 10**6})
    assert (result.best, result.certified) == ("late", True)
    # the run does not idle until step 10**6: the late arm joins once the others are settled
    assert result.history.joined[2] == 40
    assert result.samples["bad"] == 100
    lone = go({"only": Normal(0.0), "late": Normal(1.0)}, policy=policy, joins={"late": 99})
    assert lone.certified


def test_joining_arm_of_another_width_is_set_aside():
    class Wide(Normal):
        def draw(self, n, rng):
            return rng.standard_normal((n, 3))

    result = go(CLEAR | {"late": Wide(0.0)}, joins={"late": 5})
    assert result.set_aside == {"late": "its rows have 3 columns, other arms have 1"}
    assert result.certified


# Arms of what users have


def test_recorded_features_come_each_once():
    rows = np.arange(40.0).reshape(20, 2)
    arm, rng = FeatureArm(rows), np.random.default_rng(0)
    drawn = np.concatenate([arm.draw(7, rng) for _ in range(4)])
    assert arm.draw(1, rng).shape == (0, 2)
    assert not np.array_equal(drawn, rows)
    np.testing.assert_array_equal(np.sort(drawn[:, 0]), rows[:, 0])
    other = np.concatenate([FeatureArm(rows).draw(20, np.random.default_rng(1))])
    assert not np.array_equal(drawn, other)


def test_encoded_arm_encodes_what_was_generated():
    arms = {
        name: EncodedArm(lambda n, rng, m=mean: m + rng.normal(size=(n, 4, 4)), encode)
        for name, mean, encode in [
            ("near", 0.1, lambda images: images.mean(axis=2)),
            ("far", 2.0, lambda images: images.mean(axis=2)),
            ("broken", 0.0, lambda images: images),
        ]
    }
    result = select.run(arms, Moments(np.zeros(4), np.eye(4) / 4), batch=20)
    assert (result.best, result.certified) == ("near", True)
    assert "shape" in result.set_aside["broken"]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: FeatureArm(np.zeros(3)), "rows"),
        (lambda: EncodedArm(None, abs), "generate"),
        (lambda: EncodedArm(abs, 3), "encode"),
    ],
)
def test_bad_arms(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument


def test_plain_functions_are_arms():
    def near(n, rng):
        return rng.standard_normal((n, 1))

    functions = {"near": near, "far": lambda n, rng: 2.0 + rng.standard_normal((n, 1))}
    result = go(functions)
    assert (result.best, result.certified) == ("near", True)
    same(result, go({"near": Normal(0.0), "far": Normal(2.0)}))
