"""The numerical parts of coverage and audit by themselves: limits, fits, tilts, scenarios."""

from __future__ import annotations

import dataclasses
import math
import re
from functools import partial

import numpy as np
import pytest
from scipy import integrate, special, stats

from genbounds.bounds import catalog, weighted_chi_square_quantile
from genbounds.simulate import GaussianArm
from genbounds.simulate._coverage import Scenario, exact_misses, lower_limit, rare_misses, run_chunk
from genbounds.simulate._work import stream
from genbounds.simulate.arms._tilting import log_direction_mean, log_sphere_mean
from genbounds.simulate.auditing._proofs import proof_steps, square_tail, sub_exponential_gap
from genbounds.simulate.auditing._rates import fit_power, regret
from genbounds.simulate.auditing._scenarios import DELTAS, POOLS, scenarios_of

BOUNDS = catalog()
STOCHASTIC = [b for b in BOUNDS.values() if b.form not in ("deterministic", "rate")]


def test_the_tail_of_a_square_as_rigorous_intervals():
    least, claimed = square_tail(8.0)
    assert claimed < least <= 2.0 * stats.norm.sf(3.0)
    assert claimed == pytest.approx(2.0 * math.exp(-8.0))
    least, claimed = square_tail(1.0)
    assert least < claimed  # there 2 e^(−1/8) exceeds one


def spread(x, point):
    return (np.linalg.norm(x - point, axis=1) ** 2).mean()


def step(name, begins, **constants):
    bound = BOUNDS[name]
    changed = dataclasses.replace(bound, constants={**bound.constants, **constants})
    (found,) = (one for one in proof_steps(changed) if one.claim.startswith(begins))
    return found


@pytest.mark.parametrize(
    ("name", "begins"),
    [("o24.fd-decomposition", line) for line in ("(17)", "(19)", "(21)")]
    + [("m25.fd-decomposition", line) for line in ("(19)", "(21)", "(22)")],
)
def test_steps_that_hold_hold_for_random_vectors_too(name, begins):
    """The algebra says so; here both sides are numbers."""
    assert step(name, begins).holds
    assert not step(name, begins).decisive
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, centre, real = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=3)
        mean, trace = x.mean(axis=0), rng.exponential()
        norm, rows = np.linalg.norm, partial(spread, x)
        error = norm(mean - centre)
        squares = abs(norm(centre - real) ** 2 - norm(mean - real) ** 2)
        left, right = {
            "o24 (17)": (squares, (2 * norm(centre - real) + error) * error),
            "o24 (19)": (
                abs(trace - rows(mean)),
                abs(trace - rows(centre)) + abs(rows(centre) - rows(mean)),
            ),
            "o24 (21)": (
                abs(rows(centre) - rows(mean)),
                error * (error + 2 * norm(x - mean, axis=1).mean()),
            ),
            "m25 (19)": (squares, (error + 2 * norm(mean - real)) * error),
            "m25 (21)": (rows(mean), rows(centre) - error**2),
            "m25 (22)": (abs(trace - rows(mean)), abs(trace - rows(centre)) + error**2),
        }[f"{name[:3]} {begins}"]
        assert left <= right + 1e-12


def test_steps_that_fail_with_the_constants_that_would_do():
    """(20) at d = 64, (25) and (26) at d = 2,048: by the distributions, beside δ/3 and δ/6."""
    log = math.log
    square = stats.chi2.sf(1 + math.sqrt(8 * log(6 * 64 / 0.05)), 1)
    mean = stats.chi2.sf(math.sqrt(32 * log(12 * 2048 / 0.05)), 1)
    expected = {
        "(20)": ("o24.fd-decomposition", 1 - (1 - square) ** 64, {"trace_root": 30.0}),
        "(25)": ("o24.mean-norm", 1 - (1 - mean) ** 2048, {"inner": 40.0}),
    }
    for begins, (name, miss, enough) in expected.items():
        assert miss > 0.05 / (3 if begins == "(20)" else 6)
        assert f"probability {miss:.3g} or more" in step(name, begins).found
        assert not step(name, begins).holds
        assert step(name, begins, **enough).holds


def test_the_largest_pair_of_means_is_not_what_the_lemma_bounds():
    """1,000 draws: 0.856 were measured; the check names a lower limit, and needs no draws."""
    found = step("o24.mean-norm", "(26)")
    means = np.sort(np.abs(np.random.default_rng(0).normal(size=(1000, 2048))), axis=1)
    rate = (means[:, -1] * means[:, -2] > math.sqrt(8 * math.log(24 * 2048 / 0.05))).mean()
    named = float(re.search(r"probability ([\d.]+) or more", found.found)[1])
    assert not found.holds
    assert 0.05 / 6 < named < rate


def test_a_projection_may_leave_a_spectrum_that_is_longer():
    """V24 A.5(a): 2t equal entries, √(1/2t) away from what is left of themselves."""
    found = step("v24.fkea", "A.5(a)")
    assert not found.holds
    assert f"{math.sqrt(0.1):.3g} > 0" in found.found


def log_moment(x):
    """log E e^{x(Z²−1)}."""
    return -x - 0.5 * math.log1p(-2 * x)


@pytest.mark.slow
def test_chi_square_is_sub_exponential_on_the_whole_interval():
    """The rigorous limit is below, and near, the smallest value on a fine grid."""
    grid = [x for x in np.linspace(-0.25, 0.25, 4001) if abs(x) > 1e-3]
    smallest = min((2 * x * x - log_moment(x)) / x**2 for x in grid)
    found = sub_exponential_gap(4.0, 4.0)
    assert 0.0 < found <= smallest
    assert found > smallest - 0.1
    # ν² = 4 is large enough at α = 4; 3.09 is what the edge needs, and α = 2 has no ν at all.
    needed = 2 * log_moment(0.25) * 16
    assert sub_exponential_gap(needed - 1e-3, 4.0) < 0.0
    assert sub_exponential_gap(4.0, 2.0) == -math.inf


def test_mean_over_directions_of_a_quadratic_form():
    """m = 1 and equal values are trivial, m = 2 is a Bessel function, m = 3 a quadrature."""
    a = np.array([[3.0, 1.0], [50.0, -2.0], [0.0, 0.0]])
    half = 0.5 * np.abs(a[:, 0] - a[:, 1])
    bessel = 0.5 * a.sum(axis=1) + half + np.log(special.ive(0, half))
    assert log_sphere_mean(a) == pytest.approx(bessel, abs=1e-9)
    assert log_sphere_mean(np.full((1, 30), 7.0)) == pytest.approx(7.0, abs=1e-9)
    assert log_sphere_mean(np.array([[2.5]])) == pytest.approx(2.5)
    # Along the axis v is uniform on [−1, 1] for m = 3.
    value, _ = integrate.quad(lambda v: math.exp(4.0 * v * v), 0.0, 1.0)
    assert log_sphere_mean(np.array([[4.0, 0.0, 0.0]])) == pytest.approx(math.log(value), abs=1e-9)


def test_mean_over_directions_of_a_linear_form():
    x = np.array([1e-5, 0.3, 40.0])
    assert log_direction_mean(x, 3) == pytest.approx(np.log(np.sinh(x) / x), abs=1e-9)
    assert log_direction_mean(x, 1) == pytest.approx(np.log(np.cosh(x)), abs=1e-9)
    assert log_direction_mean(np.array([800.0]), 20)[0] < 800.0  # no overflow


@pytest.mark.statistical
def test_lower_limit_is_wrong_no_more_often_than_said():
    """Null: at most 1 % of the limits lie above the mean; binomial gate at 1e-6.

    Draws of mean 1: an infinite variance, and rare large ones; 500 sets of 50. Control: their
    plain mean, less one standard error, lies above far more often.
    """
    rng = np.random.default_rng(2)
    gate = stats.binom.isf(1e-6, 500, 0.01)
    pareto = np.log((rng.random((500, 50)) ** (-1.0 / 1.5)) / 3.0)  # index 1.5
    rare = np.where(rng.random((500, 50)) < 0.01, math.log(100.0), -np.inf)
    for sets in (pareto, rare):
        assert sum(lower_limit(row, 0.01) > 1.0 for row in sets) <= gate
        naive = np.exp(sets).mean(axis=1) - np.exp(sets).std(axis=1) / math.sqrt(50)
        assert (naive > 1.0).sum() > gate
    # One draw y: the average of 1 + θ(y/m − 1) over the stakes reaches 1/α at this m.
    stake = float(np.mean(0.5 ** np.arange(1.0, 11.0)))
    for alpha in (0.3, 1e-6):
        expected = 5.0 / (1.0 + (1.0 / alpha - 1.0) / stake)
        assert lower_limit(np.log([5.0]), alpha) == pytest.approx(expected, rel=1e-9)
    # Power: half of the draws are 1, the others 0.
    coins = np.where(rng.random(2000) < 0.5, 0.0, -np.inf)
    assert 0.4 < lower_limit(coins, 1e-6) < 0.5
    assert lower_limit(np.full(100, -np.inf), 0.01) == 0.0


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p"), [(2, 1e-6), (20, 1e-12)])
def test_limit_of_a_rare_tail(n, p):
    """Null: the limit lies below the tail; wrong with probability 1e-9.

    Power: it is more than a thirtieth of the tail.
    """
    threshold = math.sqrt(weighted_chi_square_quantile(p, np.ones(8)) / n)
    arm = GaussianArm(0.0, np.ones(8))
    drawn = arm.tilted(["mean_error_norm"], n, 6000, np.random.default_rng(11))
    missed = drawn.statistics["mean_error_norm"] > threshold
    assert p / 30.0 < lower_limit(np.where(missed, drawn.log_weights, -np.inf), 1e-9) < p


@pytest.mark.statistical
def test_misses_of_a_statement_are_those_of_its_exact_tail():
    """Null: unbiased (five standard errors or so: a factor of 1.7). Sees an edge off by a tenth."""
    bound = BOUNDS["o24.covariance-dimension"]
    study = (bound, Scenario(GaussianArm(0.0, 1.0), 2, DELTAS))
    exact = [miss[0] for miss in exact_misses(*study)]
    found = rare_misses(*study, 8000, np.random.SeedSequence(1), 1e-9)
    assert [estimate is None for estimate in found] == [delta > 1e-4 for delta in DELTAS]
    for estimate, truth, delta in zip(found, exact, DELTAS, strict=True):
        if estimate is not None:
            assert truth / 1.7 < estimate[0] < 1.7 * truth
            assert delta < estimate[1] < truth  # far enough to refute


@pytest.mark.statistical
def test_power_is_recovered_within_its_limits():
    """Null: the exponent lies in limits at 1 − 1e-6. Sees an error of 0.1 (control)."""
    rng = np.random.default_rng(0)
    sizes = np.geomspace(10, 1000, 8)
    truth = 3.0 * sizes**-0.7 * (1 + 2 / sizes)
    errors = 0.002 * truth
    slope, low, high = fit_power(sizes, truth + errors * rng.standard_normal(8), errors)
    assert low < -0.7 < high
    assert not low < -0.6 < high
    assert slope == pytest.approx(-0.7, abs=0.05)


def test_regret_accounts_for_every_pick():
    """An index that always prefers the second arm pays its gap at every step."""
    arms = (GaussianArm(0.0, 1.0), GaussianArm(1.0, 1.0))
    seen = []

    def index(k, rows):
        seen.append((k, len(rows)))
        return -float(k), 0.25

    lost, spent = regret(
        arms, np.array([0.0, 2.0]), index, steps=6, batch=3, rng=np.random.default_rng(0)
    )
    assert lost.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert spent.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert seen[-1] == (1, 21)


def test_every_scenario_lies_within_the_assumptions():
    used = set()
    for bound in STOCHASTIC:
        used.add(bound.setting)
        scenarios = scenarios_of(bound)
        labels = [scenario.label for scenario in scenarios]
        assert len(set(labels)) == len(labels)
        for scenario in scenarios:
            facts = scenario.arm.facts
            assert not any(bound.violated(facts, scenario.n, delta) for delta in scenario.deltas)
    assert used == set(POOLS)


def test_arms_of_scenarios_are_what_their_names_say():
    """Findings print the name alone."""
    for arm in (arm for pool in POOLS.values() for arms, _ in pool() for arm in arms):
        d = re.search(r"\(?d=(\d+)", arm.name) or re.search(r"(\d+) (?:equal )?classes", arm.name)
        d = d or re.search(r"class.* (?:of|among) (\d+)", arm.name)
        assert d is None or arm.facts["d"] == int(d[1]), arm.name
        scale = re.match(r"(1e-6 )?I \(", arm.name)
        assert scale is None or arm.facts["operator"] == (1e-6 if scale[1] else 1.0), arm.name
        gap = re.search(r"reference mean ([\de.]+)|equal to the reference", arm.name)
        if gap:
            assert arm.facts["mean_gap"] == float(gap[1] or 0.0), arm.name
            least = 1e-9 * arm.facts["trace"]
            assert gap[1] or arm.facts["distance"] == pytest.approx(0.0, abs=least), arm.name


@pytest.mark.parametrize("setting", POOLS)
def test_arms_say_how_many_numbers_they_hold(setting):
    """Not less than half of those that they return: chunks are cut by it, to fit in memory."""
    n = 8
    for bound in (bound for bound in STOCHASTIC if bound.setting == setting):
        for arm in (arm for arms, _ in POOLS[setting]() for arm in arms if arm.d <= 64):
            held = arm.size(bound.needs, n)
            drawn = arm.statistics(bound.needs, n, 2, np.random.default_rng(0))
            assert isinstance(held, int)
            assert sum(np.size(values) / 2 for values in drawn.values()) <= 2 * held


@pytest.mark.parametrize("setting", POOLS)
def test_every_statement_and_every_arm_runs(setting):
    """Each statement in a scenario, each scenario under a statement: plain draws and tilted ones.

    All pairs, with verdicts, are in `test_audit.py::test_verdicts`.
    """
    bounds = [bound for bound in STOCHASTIC if bound.setting == setting]
    lists = [scenarios_of(bound) for bound in bounds]
    for turn in range(max(len(bounds), *map(len, lists))):
        bound, scenarios = bounds[turn % len(bounds)], lists[turn % len(bounds)]
        scenario = scenarios[turn % len(scenarios)]
        chunk = run_chunk(bound, scenario, 2, np.random.SeedSequence(turn))
        widths = [found["width"] for found in chunk["found"]]
        assert len(widths) == len(scenario.deltas)
        assert not np.isnan(widths).any()
        drawn = (
            scenario.arm.tilted(bound.needs, scenario.n, 3, np.random.default_rng(0))
            if turn < 12
            else None
        )
        if drawn is not None:
            assert np.isfinite(drawn.log_weights).all()
            assert set(drawn.statistics) <= set(bound.needs)
            assert all(len(values) == 3 for values in drawn.statistics.values())


def test_every_piece_of_work_has_its_own_stream():
    keys = [(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0)]
    drawn = {np.random.default_rng(stream(*key)).integers(2**63) for key in keys}
    assert len(drawn) == len(keys)
    again = np.random.default_rng(stream(*keys[0])).integers(2**63)
    assert again in drawn
