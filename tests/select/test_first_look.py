"""From how many samples on arms are scored: the standard, few samples, too few."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds.select as select
from genbounds.estimators import MetricSpec, Moments, Prepared
from genbounds.samples import Sample
from genbounds.select import FeatureArm
from genbounds.validation import InputError
from tests.select.arms import mean_metric

D = 256


def features(n, shift, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D)) * np.arange(1, D + 1) ** -0.5
    rows[:, 0] += shift
    return rows


def go(lengths, *, m=400, **options):
    """Run on recorded features of these lengths, the later ones farther away."""
    arms = {f"a{i}": FeatureArm(features(n, 3.0 * i, 1 + i)) for i, n in enumerate(lengths)}
    return select.run(arms, features(m, 0.0, 0), batch=50, **options)


def test_files_below_the_standard_look_are_scored_from_half_a_sample_per_dimension():
    result = go([300, 300])
    assert (result.best, result.certified) == ("a0", True)
    assert result.history.looks[0].score.n == D // 2
    assert result.history.looks[0].score.method == "joint-spectrum-fit"


def test_a_limit_or_a_budget_within_reach_counts_as_a_short_file():
    long = [1_100, 1_100]
    assert go(long).history.looks[0].score.n == 4 * D
    assert go(long, limit=300).history.looks[0].score.n == D // 2
    assert go(long, budget=600).history.looks[0].score.n == D // 2
    # who spends a budget decides by its own estimates: nothing changes
    assert go(long, budget=600, policy="greedy").history.looks == ()


def test_a_file_that_is_too_short_for_any_look_does_not_hurry_the_others():
    result = go([1_100, 1_100, 60])
    assert result.history.looks[0].score.n == 4 * D
    assert result.set_aside.keys() == {"a2"}
    assert (result.best, result.certified) == ("a0", True)


@pytest.mark.parametrize("lengths", [[100, 90], [120]])
def test_too_few_samples_are_one_line_before_anything_is_drawn(lengths):
    with pytest.raises(InputError) as refused:
        go(lengths)
    line = str(refused.value)
    assert str(D // 2) in line  # how many it takes
    assert str(max(lengths)) in line  # how many there are
    assert "kid" in line
    assert "score" in line


def test_a_reference_of_few_samples_needs_its_features_where_the_arms_have_few():
    """By its moments alone no score is reliable then: nothing could ever be certified."""
    arms = {f"a{i}": FeatureArm(features(300, 3.0 * i, 1 + i)) for i in range(2)}
    small, large = (Moments.from_features(features(m, 0.0, 0)) for m in (400, 4 * D))
    with pytest.raises(InputError) as refused:
        select.run(arms, small, batch=50)
    line = str(refused.value)
    assert f"from {4 * D} samples per arm on" in line
    assert "features in place of its moments" in line
    assert "kid" not in line  # which takes no moments either
    assert select.run(arms, large, batch=50).certified
    enough = {f"a{i}": FeatureArm(features(4 * D, 3.0 * i, 1 + i)) for i in range(2)}
    assert select.run(enough, small, batch=100).certified


def test_what_works_instead_does_work():
    arms = {f"a{i}": FeatureArm(features(110, 3.0 * i, 1 + i)) for i in range(2)}
    result = select.run(arms, features(400, 0.0, 0), metric="kid", batch=50)
    assert (result.best, result.certified) == ("a0", True)


def test_a_metric_without_methods_for_few_samples_keeps_its_look():
    rng = np.random.default_rng(0)
    arms = {str(a): FeatureArm(rng.dirichlet([a] * 100, 300)) for a in (0.01, 1.0)}
    with pytest.raises(InputError, match="500"):
        select.run(arms, metric="is")
    arms = {str(a): FeatureArm(rng.standard_normal((90, 3))) for a in (0, 1)}
    with pytest.raises(InputError, match="100"):
        select.run(arms, metric=mean_metric)


def test_a_metric_that_needs_many_rows_gets_twice_as_many_at_the_earliest_look():
    rows = np.random.default_rng(0).standard_normal((2, 2_000, 10))
    for length, samples_per_dimension, first in ((310, 50, 300), (2_000, 8, 300), (2_000, 50, 500)):
        prepared = Prepared(
            estimate=lambda rows, *, estimator="debiased": mean_metric(np.asarray(rows)),
            samples_per_dimension=samples_per_dimension,
            few_samples_per_dimension=0.5,
            minimum=150,
        )
        metric = MetricSpec(
            name="m", title="m", prepare=lambda *given, made=prepared: made, reference="none"
        )
        arms = {name: FeatureArm(x[:length]) for name, x in zip("ab", rows, strict=True)}
        found = select.run(arms, metric=metric, batch=50)
        assert min(look.score.n for look in found.history.looks) == first


def test_arms_whose_length_nobody_knows_keep_the_standard_look():
    class Live:
        def draw(self, n, rng):
            return rng.standard_normal((n, 150))

    known = Moments(np.zeros(150), np.eye(150))
    result = select.run({"a": Live(), "b": Live()}, known, batch=100, limit=400)
    assert result.history.looks[0].score.n == 300


def gaussian(d, directions):
    """Return a function of ``(n, rng)`` whose rows fill so many of `d` dimensions."""
    map_ = np.random.default_rng(0).standard_normal((directions, d))
    return lambda n, rng: rng.standard_normal((n, directions)) @ map_


@pytest.mark.parametrize("moments", [False, True])
def test_a_reference_of_which_no_look_can_count_ends_the_run_after_one_batch(moments):
    """Ten rows of 64 features: every look is unreliable, the whole budget was drawn."""
    drawn = []

    def arm(n, rng):
        drawn.append(n)
        return rng.standard_normal((n, 64))

    real = np.random.default_rng(1).standard_normal((10, 64))
    reference = Moments.from_features(real) if moments else real
    with pytest.raises(InputError, match=r"`reference` has only 10 rows: .* certify nothing") as e:
        select.run({"a": arm, "b": arm}, reference, budget=4000)
    assert ("kid" in str(e.value)) == (not moments)
    assert sum(drawn) == 10
    # Who spends a budget wants no certificate.
    select.run({"a": arm, "b": arm}, reference, "greedy", budget=100)


@pytest.mark.parametrize(("m", "d", "directions"), [(10, 2, 2), (10, 64, 2), (16, 4, 4)])
def test_a_small_reference_that_can_serve_is_taken(m, d, directions):
    """Few rows do for few directions; a look at arms that fill them is evidence."""
    arm = gaussian(d, directions)
    arms = {"a": arm, "b": lambda n, rng: 30.0 * arm(n, rng)}
    real = np.random.default_rng(1).standard_normal((m, d))
    found = select.run(arms, real, budget=1000, batch=50)
    assert any(score.reliable for score in found.scores.values())


def test_a_reference_of_few_groups_is_refused_before_samples_are_drawn():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(5), 40)
    real = Sample(
        rng.standard_normal((5, 4))[groups] + rng.standard_normal((200, 4)), groups=groups
    )
    drawn = []

    def arm(n, rng):
        drawn.append(n)
        return rng.standard_normal((n, 4))

    arms = {"a": arm, "b": arm}
    for metric in ("fd", "kid"):
        with pytest.raises(InputError, match=r"can certify nothing.* only 5 independent groups"):
            select.run(arms, real, metric=metric, budget=1000)
    assert not drawn
    # A training set is taken as it is; of several contexts one may be undecided.
    assert select.run(arms, real, metric="authpct", budget=1000).samples
    parts = {"x": real, "y": rng.standard_normal((200, 4))}
    arms = {name: {"x": arm, "y": arm} for name in "ab"}
    assert "x" in select.run(arms, contexts=parts, budget=1000).undecided
