from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import genbounds.select as select
from genbounds.estimators import Expansion, Moments
from genbounds.select import EncodedArm, FeatureArm, Greedy, Policy
from genbounds.simulate import GaussianArm
from genbounds.validation import InputError
from tests.select.arms import Faulty, Finite, Normal, mean_metric

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


def test_orientation_comes_from_the_expansion():
    def higher(rows):
        e = mean_metric(rows)
        return Expansion(
            estimator="mean", value=e.value, variance=e.variance, n=e.n, higher_is_better=True
        )

    assert go(CLEAR, metric=higher).best == "worse"


def test_result_is_json():
    keys = {"best", "certified", "confidence", "samples", "scores", "steps"}
    document = json.loads(json.dumps(go(CLEAR).to_dict(), allow_nan=False))
    assert keys <= set(document)


@pytest.mark.parametrize("policy", ["lucb", "random", "thompson", "epsilon-greedy"])
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
    assert any("limit of 300 samples per arm" in note for note in result.notes)


def test_tolerance_certifies_equal_arms():
    result = go({"a": Normal(0.0), "b": Normal(0.0)}, tolerance=0.6)
    assert result.certified


def test_budget_is_kept_and_named():
    result = go({"a": Normal(0.0), "b": Normal(0.0)}, budget=333)
    assert sum(result.samples.values()) == 333
    assert (result.certified, result.stopped) == (False, "budget")
    assert any("budget of 333 samples is spent" in note for note in result.notes)


def test_budget_too_small_for_a_look_says_so():
    result = go(CLEAR, budget=60)
    assert not result.certified
    assert result.best == "good"  # from the few samples there are
    assert any("ended before the first look (100 samples) of good" in n for n in result.notes)
    assert all("not covered" in score.notes[-1] for score in result.scores.values())


@pytest.mark.parametrize("policy", ["random", "greedy"])
def test_policies_that_never_stop_get_the_papers_horizon(policy):
    result = go(CLEAR, policy=policy)
    assert result.steps == 1_000
    assert sum(result.samples.values()) == 5_000
    assert result.stopped == "budget"


def test_uncertifying_policies_report_the_certificate():
    assert go(CLEAR, policy="random").certified


def test_budget_needs_a_batch_for_every_arm():
    with pytest.raises(InputError, match=r"`budget` \(14\) does not allow one batch of 5"):
        go(CLEAR, budget=14)


def test_top_two():
    arms = {"a": Normal(0.0), "b": Normal(0.1), "c": Normal(2.0), "d": Normal(2.0)}
    result = go(arms, top=2)
    assert result.certified
    assert set(result.top) == {"a", "b"}
    assert result.best == result.top[0]


def test_single_arm_is_scored_once():
    result = go({"only": Normal(0.0)})
    assert (result.best, result.certified) == ("only", True)
    assert result.samples == {"only": 100}
    assert result.scores["only"].n == 100
    assert any("nothing to compare" in note for note in result.notes)


def test_best_guess_is_an_undefeated_arm():
    # "late" is beaten at its first look and has the best estimate only afterwards.
    values = {(0, 100): 0.0, (1, 100): 1.0, (2, 100): 0.0}
    values |= {(0, 200): 0.0, (1, 200): -0.01, (2, 200): 0.0}

    def scripted(rows):
        value = values[int(rows[0, 0]), len(rows)]
        return Expansion(estimator="scripted", value=value, variance=0.01, n=len(rows))

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
    with pytest.raises(InputError, match="`truth` has no value for 'worse'"):
        history.average_regret({"good": 0.0, "bad": 2.0})
    steps = [look.step for look in history.looks]
    assert steps == sorted(steps)
    assert not history.picks.flags.writeable


# Arms that misbehave


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (np.full((5, 1), math.nan), "NaN in row 0"),
        (np.zeros((5, 2)), "2 columns where earlier batches had 1"),
        (np.zeros(5), "shape"),
        (np.zeros((6, 1)), "6 rows where 5 were asked for"),
        (np.array([["a"]] * 5), "real numbers"),
    ],
)
def test_failing_arm_is_retried_then_set_aside(fault, reason):
    arms = CLEAR | {"faulty": Faulty({call: fault for call in range(3, 99)})}
    result = go(arms)
    assert result.certified
    assert result.best == "good"
    assert reason in result.set_aside["faulty"]
    assert arms["faulty"].calls == 2 + 3  # two good draws, one try and two retries
    assert result.samples["faulty"] == 10
    assert any("faulty was set aside" in note for note in result.notes)


def test_passing_fault_is_forgiven_and_reported():
    arms = CLEAR | {"shaky": Faulty({2: RuntimeError("hiccup"), 3: np.full((5, 1), np.inf)})}
    result = go(arms)
    assert result.set_aside == {}
    assert result.samples["shaky"] >= 100
    assert any("shaky: 2 failed draws repeated" in note for note in result.notes)


def test_interrupt_is_not_a_fault():
    class Stop(Normal):
        def draw(self, n, rng):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go({"a": Stop(0.0)})


def test_unscorable_arm_is_set_aside():
    def picky(rows):
        if rows.mean() > 1.5:
            raise InputError("too large")
        return mean_metric(rows)

    result = go(CLEAR, metric=picky)
    assert result.certified
    assert result.set_aside == {name: "cannot be scored: too large" for name in ("bad", "worse")}


def test_nan_score_is_set_aside():
    def broken(rows):
        e = mean_metric(rows)
        value = math.nan if e.value > 1.5 else e.value
        return Expansion(estimator="mean", value=value, variance=e.variance, n=e.n)

    result = go(CLEAR, metric=broken)
    assert set(result.set_aside) == {"bad", "worse"}


def test_all_arms_failing_is_an_error():
    with pytest.raises(InputError, match=r"every arm had to be set aside \(a: RuntimeError: no"):
        go({"a": Faulty({call: RuntimeError("no") for call in range(1, 9)})})


def test_arm_that_runs_dry_still_competes():
    arms = {"good": Normal(0.0), "file": Finite(2.0, size=130)}
    result = go(arms)
    assert result.certified
    arms = {"good": Normal(0.0), "file": Finite(0.01, size=130)}
    result = go(arms)
    assert (result.certified, result.stopped) == (False, "exhausted")
    assert result.samples["file"] == 130
    assert result.samples["good"] < 157  # its next look, which "file" can never reach
    assert any("file ran dry after 130 samples" in note for note in result.notes)


def test_arm_too_short_for_one_look_is_set_aside():
    result = go(CLEAR | {"file": Finite(0.0, size=42)})
    assert result.certified
    assert "ran dry after 42 samples; the first look needs 100" in result.set_aside["file"]


def test_wrong_dimension_is_set_aside_at_once():
    arms = {"a": GaussianArm([0.0, 0.0], np.ones(2)), "b": GaussianArm([0.0] * 3, np.ones(3))}
    result = select.run(arms, Moments(np.zeros(2), np.eye(2)), limit=200)
    assert result.set_aside == {"b": "its rows have 3 columns, the reference has 2"}
    assert result.samples["b"] == 5


# Fréchet distance


def test_frechet_distance_against_exact_and_sampled_reference():
    arms = {f"a{i}": GaussianArm([i, 0.0], np.ones(2)) for i in range(3)}
    exact = select.run(arms, Moments(np.zeros(2), np.eye(2)), batch=20)
    sample = select.run(arms, np.random.default_rng(0).normal(size=(500, 2)), batch=20)
    for result in (exact, sample):
        assert result.certified
        assert result.best == "a0"
    assert not any("reference is a sample" in note for note in exact.notes)
    assert any("reference is a sample" in note for note in sample.notes)


def test_reference_noise_ends_the_run_early():
    # FD 1 in opposite directions: 200 reference rows blur the difference by 0.28.
    arms = {"left": GaussianArm([-1.0], [1.0]), "right": GaussianArm([1.01], [1.0])}
    reference = np.random.default_rng(0).normal(size=(200, 1))
    result = select.run(arms, reference, batch=500, limit=100_000)
    assert (result.certified, result.stopped) == (False, "reference")
    assert result.total_samples < 40_000
    assert any("only a larger reference" in note for note in result.notes)


# Arguments


@pytest.mark.parametrize(
    ("arms", "options", "message"),
    [
        ({}, {}, "`arms` is empty"),
        ([Normal(0.0)], {}, "`arms` must be a mapping"),
        ({"a": object()}, {}, "'a' .object. has no method `draw"),
        ({1: Normal(0.0)}, {}, "`arms` must have names"),
        (CLEAR, {"policy": "best"}, "`policy` must be one of 'lucb'"),
        (CLEAR, {"metric": "fid"}, "`metric` must be one of 'fd', 'kid', 'is', 'vendi', 'rke'"),
        (CLEAR, {"metric": "fd"}, "`reference` is needed for metric 'fd'"),
        (CLEAR, {"reference": np.zeros((5, 1))}, "`reference` is not used by a metric of your own"),
        (CLEAR, {"confidence": 95}, "`confidence` must be a real number in"),
        (CLEAR, {"batch": 0}, "`batch` must be a whole number"),
        (CLEAR, {"budget": 0.5}, "`budget` must be a whole number"),
        (CLEAR, {"seed": -1}, "`seed` must be a whole number"),
        (CLEAR, {"top": 3}, "`top` must be smaller than the number of arms .3."),
        (CLEAR, {"tolerance": -1.0}, "`tolerance` must be a finite number"),
        (CLEAR, {"limit": 50}, "raise `limit`, or lower `first_look`"),
        (CLEAR, {"first_look": 1}, "`first_look` must be a whole number of at least 2"),
        (CLEAR, {"growth": 1.0}, "`growth` must be at least 1.1"),
        (CLEAR, {"retries": -1}, "`retries` must be a whole number"),
        (CLEAR, {"cost": {"ugly": 1.0}}, "`cost` names 'ugly', which is not among the arms"),
        (CLEAR, {"cost": {"bad": 0.0}}, "`cost` must be positive and finite; got 0.0 for 'bad'"),
        (CLEAR, {"cost": 3.0}, "`cost` must map arms to numbers"),
        (CLEAR, {"joins": {"bad": -1}}, r"`joins\['bad'\]` must be a whole number"),
        (CLEAR, {"joins": dict.fromkeys(CLEAR, 5)}, "`joins` leaves no arm to start with"),
        (CLEAR, {"dtype": "int8"}, "`dtype` must be a floating type such as 'float32'; got 'int8'"),
        (CLEAR, {"dtype": "half a byte"}, "`dtype` must be a floating type"),
    ],
)
def test_bad_arguments(arms, options, message):
    with pytest.raises(InputError, match=message):
        go(arms, **options)


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
    with pytest.raises(InputError, match="dtype differ"):
        go(arms, record=tmp_path)
    far = go(arms | {"far": Normal(1e6)}, dtype="float16")
    assert "beyond the range of `dtype` float16" in far.set_aside["far"]


# Costs, and arms that join


def test_budget_is_in_units_of_cost():
    arms = {"cheap": Normal(0.0), "dear": Normal(0.0)}
    result = go(arms, cost={"dear": 10.0}, budget=1_000, policy="uniform")
    assert result.samples["cheap"] + 10 * result.samples["dear"] == result.cost <= 1_000
    assert result.stopped == "budget"
    # a policy that wants no certificate spends the rest on cheap samples
    assert go(arms, cost={"dear": 10.0}, budget=1_000, policy="random").cost == 1_000
    assert go(arms, budget=600).cost == 600.0
    with pytest.raises(InputError, match=r"`budget` \(54\) does not allow one batch"):
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
    with pytest.raises(InputError, match="arms differ"):
        go({"b": Normal(3.0), "a": Normal(1.0)}, record=tmp_path)


# Interruption


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


@pytest.mark.parametrize("policy", ["lucb", "elimination", "thompson", "epsilon-greedy"])
@pytest.mark.parametrize("burns_at", [1, 2, 25, 60])
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


def test_folder_of_another_run_is_refused(tmp_path):
    go(CLEAR, record=tmp_path)
    with pytest.raises(InputError, match=r"other settings \(seed differ"):
        go(CLEAR, record=tmp_path, seed=1)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        go(CLEAR, record=tmp_path)


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


@pytest.mark.parametrize("burns_at", [2, 15, 30])
def test_run_from_features_is_resumed(tmp_path, burns_at):
    rng = np.random.default_rng(3)
    files = {"a": rng.normal(0.0, size=(300, 1)), "b": rng.normal(0.1, size=(400, 1))}

    def arms(fuse):
        made = {name: FeatureArm(rows) for name, rows in files.items()}
        return made | {"c": Fuse(0.2, fuse)}

    whole = go(arms(10**9), policy="uniform")
    assert whole.samples["a"] == 300
    with pytest.raises(KeyboardInterrupt):
        go(arms(burns_at), policy="uniform", record=tmp_path)
    same(go(arms(10**9), policy="uniform", record=tmp_path), whole)
    same(go(arms(10**9), policy="uniform", record=tmp_path), whole)


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
    ("make", "message"),
    [
        (lambda: FeatureArm(np.zeros(3)), r"`rows` must have shape \(n, d\); got shape \(3,\)"),
        (lambda: EncodedArm(None, abs), "`generate` must be a callable; got NoneType"),
        (lambda: EncodedArm(abs, 3), "`encode` must be a callable; got int"),
    ],
)
def test_bad_arms(make, message):
    with pytest.raises(InputError, match=message):
        make()
