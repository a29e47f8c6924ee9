"""A winner for each context: what is shared, what is kept apart, what is only an estimate."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import genbounds as gb
from experiments.selection.contexts import winners
from experiments.selection.contexts import worlds as study_worlds
from genbounds.select import FeatureArm
from genbounds.validation import InputError
from tests.report.conftest import HOSTILE
from tests.select.arms import Normal, mean_metric

MEANS = {
    "left": {"cats": 0.0, "dogs": 1.0, "cars": 0.0},
    "right": {"cats": 1.0, "dogs": 0.0, "cars": 0.0},
    "poor": {"cats": 2.0, "dogs": 2.0, "cars": 2.0},
}
CONTEXTS = ("cats", "dogs", "cars")


def arm(means):
    return lambda n, rng, context: means[context] + rng.standard_normal((n, 1))


ARMS = {name: arm(means) for name, means in MEANS.items()}


def go(arms=ARMS, contexts=CONTEXTS, **options):
    given = {"metric": mean_metric, "batch": 50, "limit": 400, "seed": 1}
    return gb.select.run(arms, contexts=contexts, **(given | options))


def test_each_context_has_its_winner_and_the_tie_is_undecided():
    found = go()
    assert found.winners == {"cats": "left", "dogs": "right", "cars": None}
    assert found.undecided == {"cars": ("left", "right")}
    assert not found.certified
    assert found.recommended["cats"] == "left"
    assert found.recommended["cars"] in ("left", "right")
    assert found.contexts["cats"].total_samples < found.contexts["cars"].total_samples
    assert found.contexts["cars"].stopped == "limit"
    assert found.total_samples == sum(run.total_samples for run in found.contexts.values())
    assert found.cost == found.total_samples
    assert "cats: left, dogs: right, cars: undecided" in str(found)
    firsts = {run.history.looks[0].score.value for run in found.contexts.values()}
    assert len(firsts) == 3  # every context draws from streams of its own
    assert go(tolerance=0.5).certified
    assert go().to_dict() == found.to_dict()
    assert json.loads(json.dumps(found.to_dict()))["winners"]["cars"] is None


def recorded(mean, seed):
    """Draw rows that do not depend on the run's own numbers."""
    stream = np.random.default_rng(seed)
    return lambda n, rng: mean + stream.standard_normal((n, 1))


def test_a_context_is_an_ordinary_run_at_its_share_of_the_error():
    def arms(context):
        return {name: recorded(MEANS[name][context], [7, len(name), ord(context[1])])
                for name in ("left", "right")}  # fmt: skip

    every = {c: arms(c) for c in CONTEXTS}
    found = go({name: {c: every[c][name] for c in CONTEXTS} for name in ("left", "right")})
    for context in CONTEXTS:
        options = {"metric": mean_metric, "batch": 50, "limit": 400}
        alone = gb.select.run(arms(context), confidence=1.0 - 0.05 / 3, **options)
        run = found.contexts[context]
        assert run.confidence == 0.95
        assert (run.best, run.certified, run.samples) == (
            alone.best, alone.certified, alone.samples
        )  # fmt: skip
        for name, score in alone.scores.items():
            mine = run.scores[name]
            assert [mine.low, mine.high] == pytest.approx([score.low, score.high])


def test_the_budget_is_one_and_goes_to_what_is_undecided():
    free = go()
    decided = sum(free.contexts[context].total_samples for context in ("cats", "dogs"))
    budget = decided + 700
    found = go(budget=budget)
    assert found.total_samples == budget
    assert found.winners == free.winners
    for context in ("cats", "dogs"):
        assert found.contexts[context].samples == free.contexts[context].samples
    assert found.contexts["cars"].stopped == "budget"
    priced = go(budget=budget, cost={"poor": 3.0})
    assert priced.cost == sum(run.cost for run in priced.contexts.values()) <= budget
    assert priced.contexts["cats"].cost < priced.cost


def test_the_first_look_is_within_reach_of_a_share_of_the_budget():
    """100 features: 200 rows are wanted, 150 of each arm can be paid; FD can do with 100."""
    real = dict.fromkeys("xy", gb.Moments(np.zeros(100), np.eye(100)))
    arms = {
        name: lambda n, rng, context, shift=shift: rng.normal(shift, size=(n, 100))
        for name, shift in {"a": 0.0, "b": 0.5}.items()
    }
    found = gb.select.run(arms, contexts=real, batch=50, budget=600)
    assert {look.score.n for run in found.contexts.values() for look in run.history.looks} >= {100}


def test_references_belong_to_contexts_and_arms_may_be_mappings_or_files():
    rng = np.random.default_rng(0)
    real = {c: rng.normal(2.0 * c, 1.0, size=(600, 2)) for c in (0, 1)}
    near = {c: FeatureArm(rng.normal(2.0 * c, 1.0, size=(500, 2))) for c in (0, 1)}
    far = {c: (lambda n, rng, c=c: rng.normal(2.0 * c + 1.0, 1.0, size=(n, 2))) for c in (0, 1)}
    found = gb.select.run({"near": near, "far": far | {"other": None}}, contexts=real, batch=50)
    assert found.winners == {0: "near", 1: "near"}
    assert found.certified
    assert set(found.to_dict()["contexts"]) == {"0", "1"}
    assert found.contexts[1].scores["near"].value < 0.3
    labels = np.array(["b", "a", "b"])
    assert list(go({"x": arm({"a": 0, "b": 0}), "y": arm({"a": 1, "b": 1})},
                   np.unique(labels)).winners) == ["a", "b"]  # fmt: skip


def test_an_object_with_a_draw_gets_the_context():
    class Model:
        def draw(self, n, rng, context):
            return MEANS["left"][context] + rng.standard_normal((n, 1))

    assert go(ARMS | {"left": Model()}).winners == go().winners


def test_what_fails_in_one_context_fails_there_alone():
    def broken(n, rng):
        raise RuntimeError("out of memory")

    good = {context: Normal(0.0) for context in CONTEXTS}
    bad = {context: Normal(1.0) for context in CONTEXTS}
    found = go({"good": good, "bad": bad | {"dogs": broken}})
    assert found.winners == {"cats": "good", "dogs": None, "cars": "good"}
    assert found.contexts["dogs"].stopped == "no rival"
    assert "out of memory" in found.contexts["dogs"].set_aside["bad"]
    assert found.recommended["dogs"] == "good"
    gone = go({"good": good | {"dogs": broken}, "bad": bad | {"dogs": broken}})
    assert gone.winners == found.winners
    assert "dogs" not in gone.recommended_scores
    assert "| dogs | – |" in gone.to_markdown()
    assert "–" in gone._repr_html_()
    assert len(gone.plot().get_yticklabels()) == 3
    with pytest.raises(InputError, match="every arm had to be set aside"):
        go({"good": dict.fromkeys(CONTEXTS, broken), "bad": dict.fromkeys(CONTEXTS, broken)})


def test_an_interrupted_run_goes_on(tmp_path):
    whole = go(budget=1500)

    def stop(state):
        if state.n.sum() > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(record=tmp_path, progress=stop)
    kept = {path.parent.name for path in tmp_path.glob("*/run.json")}
    assert kept == {"0", "1", "2"}

    def counting(means):
        def draw(n, rng, context):
            drawn.append(n)
            return means[context] + rng.standard_normal((n, 1))

        return draw

    drawn = []
    again = go(
        {name: counting(means) for name, means in MEANS.items()}, record=tmp_path, budget=1500
    )
    assert again.to_dict() == whole.to_dict()
    assert sum(drawn) < whole.total_samples
    with pytest.raises(InputError, match=r"other settings \(context\): "):
        go(contexts=("dogs", "cats", "cars"), record=tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "fd"}, "`contexts` must map each name to its reference, which metric 'fd'"),
        ({"metric": "is", "contexts": {"a": None}}, "must be a sequence of names: metric 'is'"),
        ({"metric": "fd", "contexts": {"a": np.eye(2)}, "reference": np.eye(2)},
         "`reference` must be None: each context has its own"),
        ({"contexts": "cats"}, "or be a sequence of names; got str"),
        ({"contexts": 3}, "or be a sequence of names; got int"),
        ({"contexts": []}, "is empty"),
        ({"contexts": ["a", "b", "a"]}, "names a context twice"),
        ({"contexts": [1, "1"]}, "names a context twice"),
        ({"contexts": [1.5]}, "texts or whole numbers as names; got 1.5"),
        ({"contexts": [True]}, "texts or whole numbers as names; got True"),
        ({"arms": {"a": lambda n, rng: None}}, "'a' must take .n, rng, context., or be a mapping"),
        ({"arms": {"a": {"cats": Normal(0.0)}}}, "'a' has nothing for context 'dogs'"),
        ({"arms": {"a": FeatureArm(np.eye(2))}}, "'a' must take .n, rng, context."),
        ({"arms": {"a": 3}}, "must be objects with `draw"),
        ({"arms": [3]}, "must be a mapping of names to arms"),
        ({"top": 2}, "`top` does not apply with contexts"),
        ({"target": "mixture"}, "`target` does not apply with contexts"),
        ({"policy": "greedy"}, "`policy` must stop by itself with contexts"),
        ({"budget": 300}, "for each of 3 arms in each of 3 contexts"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(options, words):
    with pytest.raises(InputError, match=f"(?i){words}") as caught:
        go(**options)
    assert "\n" not in str(caught.value)


def test_a_context_with_too_few_rows_is_undecided_and_the_others_are_not():
    rng = np.random.default_rng(0)
    real = {c: rng.normal(size=(500, 2)) for c in "ab"}

    def arms(rows):
        return {name: {c: FeatureArm(rng.normal(mean, 1.0, size=(n, 2))) for c, n in rows.items()}
                for name, mean in {"x": 0.0, "y": 1.0}.items()}  # fmt: skip

    found = gb.select.run(arms({"a": 300, "b": 30}), contexts=real)
    assert found.winners == {"a": "x", "b": None}
    assert found.recommended["b"] is None
    assert not found.certified
    reason = "exhausted after 30 samples; the first look needs 100"
    assert found.set_aside == {"b": {"x": reason, "y": reason}}
    with pytest.raises(InputError, match=reason):
        gb.select.run(arms({"a": 30, "b": 30}), contexts=real)


def test_a_context_whose_reference_is_too_small_draws_its_first_batches_only():
    """No look could be evidence there: it drew up to the limit of every arm."""
    rng = np.random.default_rng(0)
    real = {"many": rng.normal(size=(500, 8)), "few": rng.normal(size=(9, 8))}
    arms = {
        name: lambda n, rng, context, mean=mean: rng.normal(mean, size=(n, 8))
        for name, mean in {"x": 0.0, "y": 1.0}.items()
    }
    found = gb.select.run(arms, contexts=real, batch=50)
    assert found.winners == {"many": "x", "few": None}
    few = found.contexts["few"]
    assert (few.stopped, few.samples) == ("reference", {"x": 50, "y": 50})
    alone = {name: lambda n, rng, arm=arm: arm(n, rng, "few") for name, arm in arms.items()}
    with pytest.raises(InputError, match="reference"):
        gb.select.run(alone, real["few"], batch=50)


def test_without_looks_the_best_estimate_is_recommended():
    """It was the model that was named first."""
    arms = {name: arm(MEANS[name]) for name in ("poor", "right", "left")}
    found = go(arms, batch=20, budget=20 * 9)
    assert set(found.winners.values()) == {None}
    assert (found.recommended["cats"], found.recommended["dogs"]) == ("left", "right")
    other = go(dict(reversed(arms.items())), batch=20, budget=20 * 9)
    assert (other.recommended["cats"], other.recommended["dogs"]) == ("left", "right")


def test_hostile_names_are_text_everywhere():
    names = [HOSTILE[kind] for kind in ("script", "override", "maths")]
    means = dict.fromkeys(names, 0.0)
    found = go({names[0]: arm(means), names[1]: arm(means)}, names, limit=100)
    html = found._repr_html_()
    assert "<script>alert" not in html
    for text in (html, found.to_markdown(), found.to_latex(), str(found)):
        assert "\u202e" not in text
    assert list(found.to_frame().index) == names
    assert found.plot().get_yticklabels()[0].get_text()


# --- pooling: an estimate ------------------------------------------------------------------------


def test_where_contexts_agree_the_recommendation_is_one_arm():
    """Means of 100 rows, error 0.1, that change places by 0.06 from one context to the next.

    How hard a context is for all arms has no part in it.
    """

    def exactly(mean, step):
        def draw(n, rng, context):
            x = rng.standard_normal((n, 1))
            hardness = 10.0 * math.sin(context)
            return x - x.mean() + mean + hardness + (step if context % 2 else -step)

        return draw

    arms = {"a": exactly(0.0, 0.03), "b": exactly(0.02, -0.03)}
    found = go(arms, range(10), batch=100, limit=100)
    assert set(found.winners.values()) == {None}
    assert [run.best for run in found.contexts.values()] == ["a", "b"] * 5
    assert set(found.recommended.values()) == {"a"}


# --- the guarantee -------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.statistical
def test_all_winners_are_right_together():
    """Null: at most 5 % of runs certify a wrong winner in any of 20 contexts with two equal arms.

    Exact binomial gate at false alarm 1e-6, 150 runs: 22 allowed. Power: a rate of 30 % is seen
    with probability 0.999. The control, every context at 95 % on its own, is beyond 50 %.
    """
    name, runs = "mean, 20 contexts, 2 equal arms", 150

    def wrong(together):
        found = [winners(name, seed, together)["winners"] for seed in range(runs)]
        return sum("b" in one for one in found)

    allowed = stats.binom.isf(1e-6, runs, 0.05)
    assert wrong(True) <= allowed < wrong(False)


def test_the_study_s_tied_arms_are_tied():
    """Else its error rates would be those of an easier question."""
    world = study_worlds()["fd, 5 contexts, wide and narrow tied, d = 8"]
    real = gb.Moments(np.zeros(8), np.eye(8))
    exact = [
        gb.frechet_distance(gb.Moments(np.full(8, mean), sd**2 * np.eye(8)), real).value
        for mean, sd in world.arms.values()
    ]
    assert exact[0] == pytest.approx(exact[1])
    assert replace(world, contexts=2).places(0).keys() == {0, 1}


def test_nothing_is_recommended_where_every_arm_is_set_aside():
    """Rows of another width fail in one context; the others go on, and the reason is at hand."""
    rng = np.random.default_rng(0)
    real = {"a": rng.normal(size=(300, 4)), "b": rng.normal(size=(300, 5))}
    rows = {"x": 0.0, "y": 3.0}
    arms = {name: lambda n, rng, c, m=m: rng.normal(m, size=(n, 4)) for name, m in rows.items()}
    found = gb.select.run(arms, contexts=real, batch=50, budget=1000)
    assert found.winners == {"a": "x", "b": None}
    assert found.recommended == {"a": "x", "b": None}
    assert set(found.set_aside) == {"b"}
    assert "4 columns, the reference has 5" in found.set_aside["b"]["x"]
    assert "set aside for b: x, y" in str(found)
    assert "| b |" in found.to_markdown()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["recommended"]["b"] is None


def test_a_bad_reference_is_named_by_its_context():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    real = {"a": rows, "b": np.full((300, 2), np.nan)}
    with pytest.raises(InputError, match=r"`contexts\['b'\]` has NaN"):
        gb.select.run(ARMS, contexts=real)
    with pytest.raises(InputError, match=r"`contexts\['b'\]` can certify nothing: all 300"):
        gb.select.run(ARMS, contexts={"a": rows, "b": np.zeros((300, 2))})
    with pytest.raises(InputError, match="`options` of metric 'kid' must be among"):
        gb.select.run(ARMS, contexts={"a": rows}, metric="kid", options={"nothing": 1})
