from __future__ import annotations

import math

import numpy as np
import pytest

from genbounds.estimators import Estimate, Moments, SampleError, metric_spec
from genbounds.select import (
    POLICIES,
    Certificate,
    DebiasedUcb,
    Elimination,
    EpsilonGreedy,
    FdUcb,
    FidUcb,
    Greedy,
    IsUcb,
    Lucb,
    NaiveUcb,
    Policy,
    Random,
    State,
    Thompson,
    Uniform,
)
from genbounds.simulate import GaussianArm
from genbounds.validation import InputError
from tests.select.arms import mean_metric

SIZES = (10, 20, 40)


def state(n, values=(), *, levels=None, sd=0.1, available=None, index=None, top=1, seed=0):
    """Hand-made state: arm i holds n[i] samples and its looks all said values[i]."""
    k = len(n)
    certificate = Certificate(k, SIZES, error=0.05, top=top, tolerance=0.0)
    reached = levels or [sum(size <= held for size in SIZES) for held in n]
    for arm, value in enumerate(values):
        for level in range(reached[arm]):
            variance = sd**2 / SIZES[level] * SIZES[0]
            look = Estimate(value=value, sample=SampleError(variance=variance))
            certificate.add(arm, look)
    return State(
        available=np.ones(k, dtype=bool) if available is None else np.array(available),
        index=np.full(k, -math.inf) if index is None else np.array(index, dtype=float),
        rows=[np.zeros((held, 1)) for held in n],
        certificate=certificate,
        metric=metric_spec(mean_metric).prepared(None),
        batch=5,
        horizon=100,
        error=0.05,
        rng=np.random.default_rng(seed),
    )


def test_uniform_pulls_the_least_sampled_of_all():
    assert Uniform().select(state([10, 5, 5])) == (1, 2)
    assert Uniform().select(state([10, 5, 5], available=[True, False, True])) == (2,)
    # also an arm that is already beaten
    assert Uniform().select(state([20, 10, 20], [0.0, 9.0, 0.0])) == (1,)


def test_elimination_leaves_out_what_is_decided():
    beaten = state([20, 10, 20], [0.0, 9.0, 0.0])
    assert Elimination().select(beaten) == (0, 2)
    assert not Elimination().stop(beaten)
    certified = state([20, 10, 20], [0.0, 9.0, 8.0])
    assert Elimination().stop(certified)


def test_lucb_brings_every_arm_to_its_first_look():
    assert Lucb().select(state([10, 5, 4], [0.0])) == (2,)
    assert Lucb().select(state([4, 4, 4])) == (0, 1, 2)


def test_lucb_pulls_leader_and_strongest_rival():
    # 0 leads; 1 is close, 2 and 3 are not proven worse but less plausible.
    even = state([10, 10, 10, 10], [0.0, 0.05, 0.3, 0.25])
    assert set(Lucb().select(even)) == {0, 1}
    # leader ahead in samples: only the rival can bring news
    ahead = state([20, 10, 10, 10], [0.0, 0.05, 0.3, 0.25])
    assert Lucb().select(ahead) == (1,)


def test_lucb_turns_to_another_pair_after_a_look():
    now = state([20, 20, 20], [0.0, 0.05, 0.06], levels=[1, 1, 1])
    assert set(Lucb().select(now)) == {0, 1}
    sure = SampleError(variance=1e-6)
    now.certificate.add(1, Estimate(value=0.05, sample=sure))  # now the less plausible rival
    assert set(Lucb().select(now)) == {0, 2}


def test_lucb_prefers_the_uncertain_rival():
    # 2 has the worse estimate but the wider interval
    wide = state([20, 20, 10], [0.0, 0.03, 0.06], sd=0.1)
    assert Lucb().select(wide) == (2,)


def test_lucb_for_the_top_two_compares_across_the_border():
    four = state([10] * 4, [0.0, 0.30, 0.32, 0.6], top=2)
    assert set(Lucb().select(four)) == {1, 2}


def test_lucb_never_asks_for_an_arm_that_is_gone():
    gone = state([20, 10, 10], [0.0, 0.05, 0.06], available=[True, False, True])
    assert Lucb().select(gone) == (2,)
    stuck = state([20, 10, 10], [0.0, 0.05, 0.06], available=[True, False, False])
    assert Lucb().stop(stuck)


@pytest.mark.parametrize("policy", [Greedy(), EpsilonGreedy(epsilon=1e-9)])
def test_greedy_takes_the_smallest_index(policy):
    assert policy.select(state([10, 10, 10], index=[3.0, 1.0, 2.0])) == (1,)
    available = [True, False, True]
    assert policy.select(state([10, 10, 10], index=[3.0, 1.0, 2.0], available=available)) == (2,)


def test_burn_in_comes_first():
    assert Greedy(burn_in=20).select(state([20, 10, 15], index=[0.0, 1.0, 2.0])) == (1,)
    assert Greedy(burn_in=10).select(state([20, 10, 15], index=[0.0, 1.0, 2.0])) == (0,)
    assert {getattr(make(), "burn_in", 0) for make in POLICIES.values()} == {0}


def test_plugin_index_is_the_score():
    s = state([4, 1])
    s.rows[0] = np.array([[1.0], [2.0], [3.0], [6.0]])
    assert Greedy().index(s, 0) == 3.0
    assert Greedy().index(s, 1) == -math.inf


def test_epsilon_greedy_explores_at_its_rate():
    """Null: off-greedy picks are Binomial(4000, 0.3 · 2/3); two-sided gate at 1e-6.

    Power: a policy that never explores, or one that ignores `epsilon`, is far outside.
    """
    from scipy import stats

    s = state([10, 10, 10], index=[3.0, 1.0, 2.0])
    picks = [EpsilonGreedy(epsilon=0.3).select(s)[0] for _ in range(4_000)]
    low, high = stats.binom.ppf([5e-7, 1 - 5e-7], 4_000, 0.2)
    assert low <= sum(pick != 1 for pick in picks) <= high


def test_random_reaches_every_available_arm():
    s = state([10] * 4, available=[True, False, True, True])
    assert {Random().select(s)[0] for _ in range(200)} == {0, 2, 3}


def told(policy, s):
    """Let an index policy see the rows of every arm."""
    for arm in range(s.n.size):
        s.index[arm] = policy.index(s, arm)
    return s


def known(s, arm=0):
    """Debiased score of an arm and its standard error, as the policies see them."""
    loss = DebiasedUcb(width=0.0).index(s, arm)
    return loss, loss - DebiasedUcb(width=1.0).index(s, arm)


def rows_state(means, n=400, sd=1.0, seed=0):
    s = state([n] * len(means), seed=seed)
    rng = np.random.default_rng(seed)
    s.rows = [mean + sd * rng.standard_normal((n, 1)) for mean in means]
    return s


def test_thompson_follows_the_scores_and_their_spread():
    policy = Thompson()
    clear = told(policy, rows_state([0.0, 5.0, 9.0]))
    assert {policy.select(clear)[0] for _ in range(50)} == {0}
    vague = told(policy, rows_state([0.0, 0.05, 9.0]))
    assert {policy.select(vague)[0] for _ in range(200)} == {0, 1}
    # before ten rows there is no score: the arm comes first
    fresh = rows_state([0.0, 5.0, 9.0])
    fresh.rows[2] = fresh.rows[2][:5]
    assert policy.select(told(policy, fresh)) == (2,)


def test_debiased_ucb_is_the_score_less_its_noise():
    s = rows_state([0.0, 0.5])
    found = mean_metric(s.rows[1])
    index = DebiasedUcb(width=2.0).index(s, 1)
    assert index == pytest.approx(found.value - 2.0 * found.stderr, rel=1e-12)
    assert DebiasedUcb(width=0.0).index(s, 1) == pytest.approx(found.value, rel=1e-12)
    # between two evaluations the noise shrinks with the sample
    s.rows[1] = np.concatenate([s.rows[1], s.rows[1][:20]])
    index = DebiasedUcb(width=2.0).index(s, 1)
    width = 2.0 * found.stderr * math.sqrt(400 / 420)
    assert index == pytest.approx(found.value - width, rel=1e-12)
    s.rows[1] = np.concatenate([s.rows[1], s.rows[1][:20]])
    assert DebiasedUcb(width=0.0).index(s, 1) == pytest.approx(
        mean_metric(s.rows[1]).value, rel=1e-12
    )


@pytest.mark.statistical
def test_an_arm_of_another_shape_is_scored_without_bias_once_it_has_rows_enough():
    """Null: the score is unbiased; its mean over 40 draws, gate at 6 of its standard errors (false
    alarm 2e-9).

    The arm's spectrum is flat where the reference's falls. Control: with fewer rows than 0.4 per
    dimension the score is calibrated by multiples of the reference's covariance, which this arm's
    is not: that misses by more than twice the gate.
    """
    d = 60
    reference = Moments(np.zeros(d), np.diag(np.arange(1, d + 1) ** -1.0))
    arm = GaussianArm(np.zeros(d), np.full(d, np.trace(reference.cov) / d))
    truth = float(((np.sqrt(arm.cov) - np.sqrt(np.diag(reference.cov))) ** 2).sum())
    rng = np.random.default_rng(7)

    def error(n):
        """Mean error of the score at n rows, in units of six standard errors."""
        found = []
        for _ in range(40):
            s = state([n])
            s.metric = metric_spec("fd").prepared(reference)
            s.rows[0] = arm.draw(n, rng)
            found.append(known(s)[0])
        return abs(np.mean(found) - truth) / (6.0 * np.std(found, ddof=1) / math.sqrt(40))

    assert error(d // 2) < 1.0
    assert error(d // 3) > 2.0


def test_few_rows_are_scored_in_units_of_the_reference():
    """By hand at one sample of four times the reference's covariance and another mean."""
    d, n = 60, 12
    variances = np.arange(1, d + 1) ** -1.0
    rows = np.random.default_rng(11).standard_normal((n, d)) * 2.0 * np.sqrt(variances)
    rows[:, 0] += 0.8
    s = state([n])
    s.metric = metric_spec("fd").prepared(Moments(np.zeros(d), np.diag(variances)))
    s.rows[0] = rows
    loss, stderr = known(s)
    gap, cov = rows.mean(axis=0), np.cov(rows.T)
    roots = np.sqrt(
        np.clip(np.linalg.eigvalsh(cov * np.sqrt(np.outer(variances, variances))), 0, None)
    )
    traces = np.trace(cov) + variances.sum()
    share = 2.0 * roots.sum() / (gap @ gap - np.trace(cov) / n + traces - loss)
    # What as many rows with the reference's covariance make of the trace of the root.
    drawn = np.random.default_rng(12).standard_normal((400, n, d)) * variances
    drawn -= drawn.mean(axis=1, keepdims=True)
    expected = np.linalg.norm(drawn, "nuc", axis=(1, 2)).mean() / math.sqrt(n - 1)
    assert share == pytest.approx(expected / variances.sum(), rel=0.01)
    c = np.trace(cov) / variances.sum()
    squares = c**2 * (variances**2).sum()
    variance = 4.0 * gap @ cov @ gap + 2.0 * (1.0 - c**-0.5) ** 2 * squares + squares / n
    assert stderr == pytest.approx(math.sqrt(variance / n), rel=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("d", [20, 160])
@pytest.mark.statistical
def test_twin_takes_the_bias_off(d):
    """Null: the calibrated distance of c Σ_r is unbiased; its mean over 40 draws, gate at 6 of its
    standard errors (false alarm 2e-9).

    Control: the plug-in misses by far more. n from a handful of rows to more than dimensions.
    """
    rng = np.random.default_rng(d)
    cov = np.diag(np.arange(1, d + 1) ** -1.0)
    reference = Moments(np.zeros(d), cov)
    c, gap = 1.21, 0.8
    truth = gap**2 + (math.sqrt(c) - 1.0) ** 2 * np.trace(cov)
    for n in (8, d // 2, 2 * d):
        found, plain = [], []
        for _ in range(40):
            s = state([n])
            s.metric = metric_spec("fd").prepared(reference)
            rows = rng.standard_normal((n, d)) * np.sqrt(c * np.diag(cov))
            rows[:, 0] += gap
            s.rows[0] = rows
            found.append(known(s))
            plain.append(s.plugin_loss(0))
        losses = np.array([loss for loss, _ in found])
        spread = losses.std(ddof=1) / math.sqrt(40)
        # the curve itself is a Monte-Carlo mean: 1 % of the trace of the root at most
        slack = 0.01 * 2.0 * math.sqrt(c) * np.trace(cov)
        assert abs(losses.mean() - truth) < 6.0 * spread + slack
        assert np.mean(plain) - truth > 2.0 * (6.0 * spread + slack) or n == 2 * d
        # and the standard error is of the right size
        assert 0.5 < np.mean([stderr for _, stderr in found]) / losses.std(ddof=1) < 2.0


@pytest.mark.parametrize("name", POLICIES)
def test_no_arm_left_no_pick(name):
    policy = POLICIES[name]()
    s = state([10, 10], [0.0, 0.01], available=[False, False])
    assert policy.stop(s)
    if not policy.certifies:
        assert policy.select(s) == ()


@pytest.mark.parametrize("name", POLICIES)
def test_names_are_the_keys(name):
    policy = POLICIES[name]()
    assert isinstance(policy, Policy)
    assert policy.name == name
    assert policy.certifies == (name in {"lucb", "elimination", "uniform"})


@pytest.mark.parametrize(
    ("policy", "metric"),
    [(FdUcb(), "is"), (IsUcb(), "fd"), (NaiveUcb(), "mean_metric"), (FdUcb(), "mean_metric")],
)
def test_ucb_refuses_a_foreign_metric(policy, metric):
    reference = Moments(np.zeros(1), np.eye(1)) if metric == "fd" else None
    chosen = mean_metric if metric == "mean_metric" else metric
    with pytest.raises(InputError) as refused:
        policy.check(metric_spec(chosen).prepared(reference))
    assert refused.value.argument == "policy"


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Greedy(burn_in=-1), "burn_in"),
        (lambda: EpsilonGreedy(epsilon=1.0), "epsilon"),
        (lambda: DebiasedUcb(width=-1.0), "width"),
        (lambda: FdUcb(kappa=0.0), "kappa"),
        (lambda: FdUcb(kappa=-1.0), "kappa"),
        (lambda: FdUcb(threshold=math.nan), "threshold"),
        (lambda: FdUcb(radius=-1.0), "radius"),
        (lambda: FdUcb(constants="tuned"), "constants"),
        (lambda: FidUcb(constants="tuned"), "constants"),
        (lambda: FidUcb(estimates="true"), "estimates"),
        (lambda: FidUcb(truncation=0.0), "truncation"),
        (lambda: IsUcb(burn_in=0.5), "burn_in"),
        (lambda: IsUcb(source="v24"), "source"),
        (lambda: IsUcb(entropy_limit=-1.0), "entropy_limit"),
        (lambda: NaiveUcb(source="v24"), "source"),
    ],
)
def test_options_are_checked(make, argument):
    with pytest.raises(InputError) as refused:
        make()
    assert refused.value.argument == argument
