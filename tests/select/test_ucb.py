from __future__ import annotations

import math

import numpy as np
import pytest

from genbounds import select
from genbounds.estimators import FrechetReference, Moments
from genbounds.select import FdUcb, IsUcb, NaiveUcb, fd_bonus
from genbounds.select._ucb import KAPPA_GAUSSIAN, Norms, PosteriorSums, toward_peak
from genbounds.simulate import GaussianArm
from tests.select.test_policies import state


def printed_bonus(tr, tr2, op, n, gap, root, delta, kappa):
    """M25 (6), (23), (24), written out term by term."""
    log6 = math.log(6 / delta)
    d_mu = math.sqrt((math.sqrt(8 * tr2 * log6) + 8 * op * log6) / n)
    rank = tr / op
    d_cov = 20 * kappa**2 * op * math.sqrt((4 * rank + math.log(3 / delta)) / n) + d_mu**2
    return (
        2 * d_mu * (d_mu + gap)
        + root * math.sqrt(8 * d_cov)
        + tr * math.sqrt(8 / n * log6)
        + 8 * op / n * log6
    )


def test_printed_bonus():
    norms = Norms(trace=160.0, trace_of_square=200.0, operator=10.0)
    expected = printed_bonus(160.0, 200.0, 10.0, 50, 1.5, 300.0, 1e-4, KAPPA_GAUSSIAN)
    got = fd_bonus(
        norms,
        n=50,
        mean_gap=1.5,
        reference_trace_root=300.0,
        delta=1e-4,
        kappa=KAPPA_GAUSSIAN,
    )
    assert got == pytest.approx(expected, rel=1e-13)


def test_practical_bonus_drops_the_constants():
    norms = Norms(trace=160.0, trace_of_square=200.0, operator=10.0)
    given = {"n": 50, "mean_gap": 1.5, "reference_trace_root": 300.0, "delta": 0.05, "kappa": 1.0}
    log = math.log(20.0)
    d_mu2 = (math.sqrt(200.0 * log) + 10.0 * log) / 50
    d_cov = 10.0 * math.sqrt((16.0 + log) / 50) + d_mu2
    expected = (
        math.sqrt(d_mu2) * (math.sqrt(d_mu2) + 1.5)
        + 300.0 * math.sqrt(d_cov)
        + 160.0 * math.sqrt(log / 50)
        + 10.0 * log / 50
    )
    got = fd_bonus(norms, constants="practical", **given)
    assert got == pytest.approx(expected, rel=1e-13)
    assert got < fd_bonus(norms, constants="printed", **given) / 3


def test_bonus_is_infinite_without_spread():
    norms = Norms.of_sample(np.ones((5, 3)))
    bonus = fd_bonus(norms, n=5, mean_gap=0.0, reference_trace_root=1.0, delta=0.1, kappa=1.0)
    assert bonus == math.inf


@pytest.mark.parametrize("n", [5, 40])
def test_norms_agree_with_the_covariance(n):
    rows = np.random.default_rng(0).normal(3.0, size=(n, 12)).astype(np.float32)
    cov = np.cov(rows.astype(np.float64), rowvar=False, bias=True)
    norms = Norms.of_sample(rows)
    assert norms.trace == pytest.approx(np.trace(cov), rel=1e-6)
    assert norms.trace_of_square == pytest.approx((cov**2).sum(), rel=1e-6)
    assert norms.operator == pytest.approx(np.linalg.norm(cov, 2), rel=1e-6)


def test_threshold_clears_noise_and_keeps_structure():
    rng = np.random.default_rng(1)
    d, n = 30, 200
    rows = rng.normal(size=(n, d))
    rows[:, 1] = rows[:, 0]  # one true correlation among noise
    cov = np.cov(rows, rowvar=False, bias=True)
    kept = np.diag(np.diag(cov)).copy()
    kept[0, 1] = kept[1, 0] = cov[0, 1]
    norms = Norms.of_sample(rows, threshold=2.0)
    assert norms.trace_of_square == pytest.approx((kept**2).sum(), rel=1e-12)
    assert norms.operator == pytest.approx(np.linalg.norm(kept, 2), rel=1e-12)
    assert norms.trace == pytest.approx(np.trace(cov), rel=1e-12)


def ucb_state(rows, reference):
    s = state([rows.shape[0]])
    s.rows[0] = rows
    s.reference = reference
    s.metric = select._metric.resolve_metric("fd", reference)
    return s


@pytest.mark.parametrize("policy", [FdUcb(), FdUcb(constants="printed"), NaiveUcb()])
def test_fd_index_is_plugin_minus_bonus(policy):
    rows = np.random.default_rng(2).normal(0.5, size=(30, 3))
    reference = Moments(np.zeros(3), np.diag([1.0, 4.0, 9.0]))
    printed = isinstance(policy, FdUcb) and policy.constants == "printed"
    naive = isinstance(policy, NaiveUcb)
    bonus = fd_bonus(
        Norms.without_data(3) if naive else Norms.of_sample(rows, threshold=2.0),
        n=30,
        mean_gap=float(np.linalg.norm(rows.mean(axis=0))),
        reference_trace_root=6.0,
        delta=0.05 / (100 if printed else 1),
        kappa=KAPPA_GAUSSIAN if printed else 1.0,
        constants="printed" if printed else "practical",
    )
    expected = FrechetReference(reference).plugin(rows) - bonus
    assert policy.index(ucb_state(rows, reference), 0) == pytest.approx(expected, rel=1e-12)


def test_norms_are_refreshed_after_a_tenth():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(100, 3))
    reference = Moments(np.zeros(3), np.eye(3))
    s = ucb_state(rows, reference)
    FdUcb().index(s, 0)
    before = s.memory["norms", 0]
    s.rows[0] = np.vstack([rows, rng.normal(size=(9, 3))])
    FdUcb().index(s, 0)
    assert s.memory["norms", 0] is before
    s.rows[0] = np.vstack([rows, rng.normal(size=(10, 3))])
    FdUcb().index(s, 0)
    assert s.memory["norms", 0][0] == 110


def test_toward_peak():
    peak = math.exp(-1)
    p = np.array([0.0, 0.3, 0.36, 0.5, 0.9])
    moved = toward_peak(p, np.full(5, 0.1))
    np.testing.assert_allclose(moved, [0.1, peak, peak, 0.4, 0.8], rtol=1e-14)


@pytest.mark.parametrize("naive", [False, True])
def test_optimistic_inception_score(naive):
    """Against M25 (13) from all rows at once, however the rows were absorbed."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet([0.3] * 10, 5_000)
    sums = PosteriorSums(10)
    for part in np.split(p, [5, 6, 30]):
        sums.absorb(part)
    n, d, delta = 5_000, 10, 1e-3
    log = math.log(4 * d / delta)
    entropies = -(p * np.log(p)).sum(axis=1)
    class_variance = np.ones(d) if naive else p.var(axis=0, ddof=1)
    entropy_variance = math.log(d) ** 2 if naive else entropies.var(ddof=1)
    reach = np.sqrt(2 * class_variance * log / n) + 7 * log / (3 * (n - 1))
    q = p.mean(axis=0)
    gap = math.exp(-1) - q
    clipped = np.where(np.abs(gap) >= reach, q + np.sign(gap) * reach, math.exp(-1))
    expected = (
        -(clipped * np.log(clipped)).sum()
        - entropies.mean()
        + math.sqrt(2 * entropy_variance * log / n)
        + 7 * math.log(d) / (3 * (n - 1)) * log
    )
    assert sums.optimistic_log_score(delta=delta, naive=naive) == pytest.approx(expected, rel=1e-12)


class Dirichlet:
    def __init__(self, weight):
        self.weight = weight

    def draw(self, n, rng):
        return rng.dirichlet([self.weight] * 10, n)


@pytest.mark.parametrize("policy", [IsUcb(), NaiveUcb(), "greedy"])
def test_inception_policies_run(policy):
    arms = {"dull": Dirichlet(5.0), "sharp": Dirichlet(0.05)}
    result = select.run(arms, metric="is", policy=policy, budget=600, seed=1)
    assert result.best == "sharp"
    assert result.samples["sharp"] + result.samples["dull"] == 600
    assert result.metric == "is"


@pytest.mark.parametrize("policy", ["fd-ucb", "naive-ucb", "greedy", "thompson"])
def test_fd_policies_run(policy):
    arms = {"far": GaussianArm([3.0, 0.0], np.ones(2)), "near": GaussianArm([0.1, 0.0], np.ones(2))}
    reference = Moments(np.zeros(2), np.eye(2))
    result = select.run(arms, reference, policy=policy, budget=500, seed=1)
    assert result.best == "near"
    assert sum(result.samples.values()) == 500
    assert result.stopped == "budget"
