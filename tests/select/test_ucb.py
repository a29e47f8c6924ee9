from __future__ import annotations

import math

import numpy as np
import pytest

from genbounds import InputError, select
from genbounds.bounds import catalog
from genbounds.estimators import FrechetReference, Moments, metric_spec
from genbounds.select import FdUcb, FidUcb, IsUcb, NaiveUcb, Norms, fd_bonus
from genbounds.simulate import GaussianArm, SphereArm
from tests.select import printed
from tests.select.test_policies import state

KAPPA_GAUSSIAN = math.sqrt(8.0 / 3.0)
"""ψ2-norm of a standard normal variable: M25's κ for Gaussian features."""


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


def printed_bounded_bonus(radius, n, d, gap, root, delta, kappa):
    """M25 Theorem 5 with (28) and (29), Tr Σ = ‖Σ‖ = C², written out term by term."""
    first = math.sqrt(2 * d * radius**2 / n * math.log(6 * d / delta) + radius**2 / n)
    rank = 20 * kappa**2 * radius**2 * math.sqrt((4 + math.log(3 / delta)) / n)
    hoeffding = 4 * radius**2 * math.sqrt(math.log(3 / delta) / (2 * n))
    return 2 * (first + gap) * first + root * math.sqrt(8 * (rank + first**2)) + hoeffding


def test_bonus_of_a_known_norm_covers_every_covariance_within_it():
    """Tr Σ ≤ C² and ‖Σ‖ ≤ Tr Σ: no covariance of such features asks for more."""
    bound = catalog()["m25.fd-bounded-bonus"]
    given = {"n": 50, "d": 8, "delta": 0.01, "sample_mean_gap": 0.3, "reference_root_trace": 2.0}
    most = printed_bounded_bonus(1.0, 50, 8, 0.3, 2.0, 0.01, 1.3)
    for trace in (0.1, 0.5, 1.0):
        for operator in (trace / 8, trace / 2, trace):
            norms = {"trace": trace, "operator": operator, "effective_rank": trace / operator}
            width = float(bound.width(**given, **norms, radius=1.0, kappa=1.3))
            assert width <= most * (1 + 1e-12)


@pytest.mark.parametrize("constants", ["printed", "practical"])
def test_a_run_with_a_known_norm(constants):
    """Normalised features, as CLIP's: the best arm is picked most, and nothing is set aside."""
    reference = Moments(np.zeros(3), np.eye(3) / 3)
    arms = {"same": SphereArm(3), "flat": FlatArm()}
    policy = FdUcb(radius=1.0, constants=constants)
    found = select.run(arms, reference, policy=policy, budget=600, batch=20, seed=0)
    assert all(status.state != "set aside" for status in found.arms.values())
    assert found.best == "same"
    assert sum(found.samples.values()) == 600


class FlatArm:
    """Unit vectors of the plane."""

    def draw(self, n, rng):
        rows = rng.normal(size=(n, 3)) * (1, 1, 0)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def practical_bounded_bonus(radius, n, d, gap, root, delta, kappa):
    """The same with factors and the numerators of δ, but d, one; 2 n is Hoeffding's."""
    first = math.sqrt(d * radius**2 / n * math.log(d / delta) + radius**2 / n)
    rank = kappa**2 * radius**2 * math.sqrt((1 + math.log(1 / delta)) / n)
    hoeffding = radius**2 * math.sqrt(math.log(1 / delta) / (2 * n))
    return (first + gap) * first + root * math.sqrt(rank + first**2) + hoeffding


@pytest.mark.parametrize("constants", ["printed", "practical"])
def test_the_index_of_a_known_norm_needs_no_covariance(constants):
    rows = SphereArm(3).draw(30, np.random.default_rng(2)) / 2
    reference = Moments(np.zeros(3), np.diag([1.0, 4.0, 9.0]))
    bonus, delta = practical_bounded_bonus, 0.05
    if constants == "printed":
        bonus, delta = printed_bounded_bonus, 0.05 / 100
    gap = float(np.linalg.norm(rows.mean(axis=0)))
    expected = FrechetReference(reference).plugin(rows) - bonus(0.5, 30, 3, gap, 6.0, delta, 1.3)
    policy = FdUcb(radius=0.5, constants=constants, kappa=1.3)
    assert policy.index(ucb_state(rows, reference), 0) == pytest.approx(expected, rel=1e-12)


def test_a_row_beyond_the_known_norm_is_refused():
    rows = SphereArm(3).draw(30, np.random.default_rng(2)).astype(np.float16)
    s = ucb_state(rows.astype(float), Moments(np.zeros(3), np.eye(3)))
    FdUcb(radius=1.0).index(s, 0)  # rounding is granted
    with pytest.raises(InputError, match="norm") as refused:
        FdUcb(radius=0.99).index(s, 0)
    assert refused.value.argument == "radius"


@pytest.mark.parametrize("n", [5, 40])
def test_norms_agree_with_the_covariance(n):
    rows = np.random.default_rng(0).normal(3.0, size=(n, 12)).astype(np.float32)
    cov = np.cov(rows.astype(np.float64), rowvar=False, bias=True)
    norms = Norms.of_sample(rows)
    assert norms.trace == pytest.approx(np.trace(cov), rel=1e-6)
    assert norms.trace_of_square == pytest.approx((cov**2).sum(), rel=1e-6)
    assert norms.operator == pytest.approx(np.linalg.norm(cov, 2), rel=1e-6)


def ucb_state(rows, reference):
    s = state([rows.shape[0]])
    s.rows[0] = rows
    s.metric = metric_spec("fd").prepared(reference)
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


def test_norms_are_refreshed_after_a_tenth(monkeypatch):
    calls = []
    of_sample = Norms.of_sample
    monkeypatch.setattr(
        Norms, "of_sample", lambda rows, **options: calls.append(len(rows)) or of_sample(rows)
    )
    rows = np.random.default_rng(3).normal(size=(110, 3))
    s = ucb_state(rows[:100], Moments(np.zeros(3), np.eye(3)))
    for n in (100, 109, 110):
        s.rows[0] = rows[:n]
        FdUcb().index(s, 0)
    assert calls == [100, 110]


@pytest.mark.parametrize("policy", [FdUcb, FidUcb])
def test_norms_are_refreshed_at_every_step_on_request(policy):
    """As both papers' algorithms have it: the index is then that of a fresh run."""
    rows = np.random.default_rng(3).normal(size=(109, 3))
    rows[100:] *= 5.0
    reference = Moments(np.zeros(3), np.eye(3))
    for refresh, same in ((0.0, True), (0.1, False)):
        s = ucb_state(rows[:100], reference)
        one = policy(refresh=refresh)
        one.index(s, 0)
        s.rows[0] = rows
        whole = ucb_state(rows[:100], reference)
        whole.running(0)
        whole.rows[0] = rows
        assert (one.index(s, 0) == one.index(whole, 0)) is same
    with pytest.raises(InputError, match="refresh"):
        policy(refresh=-1.0)


def test_a_reference_of_low_rank_has_a_root():
    """Rounding makes eigenvalues that are 0 negative."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        direction, rows = rng.normal(size=6), rng.normal(size=(40, 6))
        reference = Moments(np.zeros(6), np.outer(direction, direction))
        bonus = fd_bonus(
            Norms.of_sample(rows, threshold=2.0),
            n=40,
            mean_gap=float(np.linalg.norm(rows.mean(axis=0))),
            reference_trace_root=float(np.linalg.norm(direction)),
            delta=0.05,
            kappa=1.0,
            constants="practical",
        )
        expected = FrechetReference(reference).plugin(rows) - bonus
        assert FdUcb().index(ucb_state(rows, reference), 0) == pytest.approx(expected, rel=1e-6)


def posteriors_state(p, *, error, horizon=1, batches=None):
    """State of a run of IS whose one arm has these posteriors, taken up in these batches."""
    s = state([len(p)])
    s.metric = metric_spec("is").prepared(None)
    s.error, s.horizon = error, horizon
    for end in batches or (len(p),):
        s.rows[0] = p[:end]
        s.running(0)
    return s


class Dirichlet:
    def __init__(self, weight):
        self.weight = weight

    def draw(self, n, rng):
        return rng.dirichlet([self.weight] * 10, n)


@pytest.mark.parametrize(
    "policy", [IsUcb(), IsUcb(source="o24"), NaiveUcb(), NaiveUcb(source="o24"), "greedy"]
)
def test_inception_policies_run(policy):
    arms = {"dull": Dirichlet(5.0), "sharp": Dirichlet(0.05)}
    result = select.run(arms, metric="is", policy=policy, budget=600, seed=1)
    assert result.best == "sharp"
    assert result.samples["sharp"] + result.samples["dull"] == 600
    assert result.metric == "is"


@pytest.mark.parametrize("policy", ["fid-ucb", "naive-ucb"])
def test_fd_policies_run(policy):
    arms = {"far": GaussianArm([3.0, 0.0], np.ones(2)), "near": GaussianArm([0.1, 0.0], np.ones(2))}
    reference = Moments(np.zeros(2), np.eye(2))
    result = select.run(arms, reference, policy=policy, budget=500, seed=1)
    assert result.best == "near"
    assert sum(result.samples.values()) == 500
    assert result.stopped == "budget"


def test_the_audited_program_is_what_the_policy_computes():
    rows = np.random.default_rng(10).normal(size=(400, 4)) + np.random.default_rng(1).normal(
        0.0, 0.5, size=(400, 1)
    )
    reference = Moments(np.zeros(4), np.diag([1.0, 4.0, 9.0, 1.0]))
    width = catalog()["m25.fd-bonus-plug-in-program"].width(
        n=400,
        delta=0.05 / 100,
        covariance=np.cov(rows, rowvar=False, bias=True),
        sample_mean_gap=float(np.linalg.norm(rows.mean(axis=0))),
        reference_root_trace=7.0,
    )
    policy = FdUcb(constants="printed", kappa=1.0)
    expected = FrechetReference(reference).plugin(rows) - float(width)
    assert policy.index(ucb_state(rows, reference), 0) == pytest.approx(expected, rel=1e-12)


# The norms


@pytest.mark.parametrize("threshold", [0.6, 2.0, 4.0])
@pytest.mark.parametrize("d", [30, 300])
def test_thresholded_norms_against_the_full_matrix(threshold, d):
    rng = np.random.default_rng(5)
    n = 400
    factors = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    rows = (rng.normal(size=(n, d)) + 0.5 * factors).astype(np.float32)
    rows[:, 1] = rows[:, 0] + 0.1 * rows[:, 2]  # one pair above every cut below 1
    cov = np.cov(rows.astype(np.float64), rowvar=False, bias=True)
    v = np.diag(cov)
    cut = threshold * np.sqrt(2 * np.outer(v, v) * math.log(d) / n)
    kept = np.where((np.abs(cov) >= cut) | np.eye(d, dtype=bool), cov, 0.0)
    assert 0 < (kept == 0.0).sum() < d * d - d  # some go, some stay
    norms = Norms.of_sample(rows, threshold=threshold)
    assert norms.trace == pytest.approx(np.trace(kept), rel=1e-6)
    assert norms.trace_of_square == pytest.approx((kept**2).sum(), rel=1e-6)
    assert norms.operator == pytest.approx(np.linalg.eigvalsh(kept)[-1], rel=1e-6)


@pytest.mark.parametrize("scale", [1e-25, 1e22])
def test_thresholded_norms_of_any_scale_in_single_precision(scale):
    """Products of features of this size would leave single precision; correlations do not."""
    rng = np.random.default_rng(7)
    rows = (rng.normal(size=(400, 20)) + rng.normal(size=(400, 1))).astype(np.float32)
    rows[:, 3] = 0.0
    plain, scaled = (Norms.of_sample(x, threshold=0.6) for x in (rows, rows * np.float32(scale)))
    assert scaled.operator == pytest.approx(scale**2 * plain.operator, rel=1e-6, abs=0.0)
    assert scaled.trace_of_square == pytest.approx(
        scale**4 * plain.trace_of_square, rel=1e-6, abs=0
    )


def test_a_threshold_above_every_correlation_leaves_the_diagonal():
    rows = np.random.default_rng(6).normal(size=(20, 500))
    rows[:, 1] = rows[:, 0]
    norms = Norms.of_sample(rows, threshold=2.0)  # 2 sqrt(2 log 500 / 20) > 1
    assert norms.operator == pytest.approx(rows.var(axis=0).max(), rel=1e-12)
    assert norms.trace_of_square == pytest.approx((rows.var(axis=0) ** 2).sum(), rel=1e-12)


# O24's forms


def o24_bonus(c, *, n, d, delta, gap, deviation, root, trace, op, absolute, variance):
    """O24 (7), written out term by term; `c`: every factor 1, or as printed."""
    one = c == "practical"
    f = (lambda printed: 1.0) if one else (lambda printed: printed)
    mean = math.sqrt(f(2) * absolute / n) * (f(32) * math.log(f(24) * d / delta)) ** 0.25
    lead = 2 * (gap + mean + deviation)
    rank = f(20) * variance * op * math.sqrt((f(4) * trace / op + math.log(f(3) / delta)) / n)
    square = f(2) * absolute / n * math.sqrt(f(32) * math.log(f(24) * d / delta))
    return (
        lead * mean
        + trace * math.sqrt(f(8) / n * math.log(f(6) * d / delta))
        + root * math.sqrt(f(8) * (rank + square))
    )


def entry_norms(rows, reference, estimates, *, cut):
    """O24 App. D.5 entry by entry, or the norms of the sample covariance as it is."""
    cov, deviations = np.cov(rows, rowvar=False, bias=True), rows - rows.mean(axis=0)
    found = {"deviation": np.linalg.norm(deviations, axis=1).mean()}
    if estimates == "sample":
        norms = {"trace": np.trace(cov), "op": np.linalg.norm(cov, 2)}
        return found | norms | {"absolute": np.abs(cov).sum(), "variance": np.diag(cov).max()}
    kept = np.where(cov >= cut * np.linalg.norm(reference.cov, 2), cov, 0.0)
    largest = rows.var(axis=0, ddof=1).max()
    operator = largest + math.sqrt(math.log(20) / len(rows))
    norms = {"trace": np.trace(kept @ reference.cov), "op": operator}
    return found | norms | {"absolute": kept.sum(), "variance": largest}


@pytest.mark.parametrize("constants", ["printed", "practical"])
@pytest.mark.parametrize("estimates", ["appendix", "sample"])
@pytest.mark.parametrize("d", [3, 300])
def test_fid_ucb_index(constants, estimates, d):
    rng = np.random.default_rng(9)
    rows = rng.normal(0.5, size=(30, d)) * np.linspace(1.2, 0.1, d) + 0.4 * rng.normal(size=(30, 1))
    root = rng.normal(size=(d, d)) / math.sqrt(d)
    reference = Moments(np.zeros(d), root @ root.T)
    bonus = o24_bonus(
        constants,
        n=30,
        d=d,
        delta=0.05,
        gap=0.5 if estimates == "appendix" else float(np.linalg.norm(rows.mean(axis=0))),
        root=np.sqrt(np.linalg.eigvalsh(reference.cov).clip(0.0)).sum(),
        **entry_norms(rows, reference, estimates, cut=0.1),
    )
    policy = FidUcb(constants=constants, estimates=estimates, truncation=0.1)
    expected = FrechetReference(reference).plugin(rows) - bonus
    assert policy.index(ucb_state(rows, reference), 0) == pytest.approx(expected, rel=1e-7)


def test_the_index_as_published_is_the_printed_one():
    """Picks alone hide a divisor n - 1: on twenty arms it moves one of a thousand."""
    rng = np.random.default_rng(12)
    rows, reference = rng.normal(0.5, size=(30, 4)), Moments(np.zeros(4), np.diag([1.0, 2, 3, 4]))
    given = reference.mean, reference.cov
    mean, cov = printed.moments(rows)
    bonus = printed.fid_bonus(rows, mean, cov, *given, 0.05)
    expected = printed.frechet(mean, cov, *given) - bonus
    found = FidUcb(as_published=True).index(ucb_state(rows, reference), 0)
    assert found == pytest.approx(expected, rel=1e-12)


def test_naive_fid_ucb_index():
    """O24 (32), written out term by term, as printed."""
    rows = np.random.default_rng(11).normal(0.5, size=(30, 3)) * [1.0, 2.0, 3.0]
    reference = Moments(np.zeros(3), np.diag([1.0, 4.0, 9.0]))
    norms = entry_norms(rows, reference, "appendix", cut=0.05)
    n, d, s2 = 30, 3, norms["variance"]
    mean = math.sqrt(s2 * d / n * math.log(6 * d / 0.05))
    eps = math.sqrt(math.log(6 / 0.05) / (2 * n))
    edge = math.sqrt(d / n) + eps
    cov = norms["op"] * (2 * math.sqrt(d / n) + 2 * eps + edge**2)
    cov += d * s2 / n * math.log(6 * d / 0.05)
    bonus = (
        2 * (0.5 + mean + norms["deviation"]) * mean
        + norms["trace"] * math.sqrt(8 / n * math.log(6 * d / 0.05))
        + 6.0 * math.sqrt(8 * cov)
    )
    index = NaiveUcb(source="o24", constants="printed").index(ucb_state(rows, reference), 0)
    assert index == pytest.approx(FrechetReference(reference).plugin(rows) - bonus, rel=1e-10)


@pytest.mark.parametrize("source", ["m25", "o24"])
@pytest.mark.parametrize("naive", [False, True])
def test_optimistic_scores_are_those_of_the_catalogue(source, naive):
    """M25 divides δ by the number of steps, O24 does not; however the rows were absorbed."""
    p = np.random.default_rng(12).dirichlet([0.3] * 10, 2_000)
    s = posteriors_state(p, error=0.05, horizon=50, batches=(5, 6, 30, 2_000))
    entropies = -(p * np.log(p)).sum(axis=1)
    expected = catalog()[f"{source}.is-naive-bound" if naive else f"{source}.is-bound"].width(
        n=2_000,
        delta=1e-3 if source == "m25" else 0.05,
        d=10,
        mean_posterior=p.mean(axis=0),
        posterior_variance=p.var(axis=0, ddof=1),
        mean_entropy=entropies.mean(),
        entropy_variance=entropies.var(ddof=1),
        entropy_limit=2.0,
    )
    policy = IsUcb(source=source, naive=naive, entropy_limit=2.0)
    assert policy.index(s, 0) == pytest.approx(-float(expected), rel=1e-10)
    widest = IsUcb(source=source, naive=naive).index(s, 0)  # C' = log 10 > 2
    assert (
        widest == pytest.approx(-float(expected), rel=1e-10)
        if source == "m25"
        else (widest < policy.index(s, 0))
    )
