"""Exact checks see a wrong unit, a wrong growth and a wrong constant, and nothing else."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from genbounds.bounds import catalog
from genbounds.bounds._matrices import effective_rank_psi, effective_rank_variance
from genbounds.simulate import audit
from genbounds.simulate._symbolic import sub_exponential_gap, symbolic_checks

BOUNDS = catalog()


def failed(name, **constants):
    bound = BOUNDS[name]
    bound = dataclasses.replace(bound, constants={**bound.constants, **constants})
    return {(check.kind, check.decisive) for check in symbolic_checks(bound) if not check.holds}


def test_what_fails_in_the_catalogue():
    decisive = {
        (name, check.kind)
        for name, bound in BOUNDS.items()
        for check in symbolic_checks(bound)
        if check.refutes
    }
    assert decisive == {
        ("o24.chi-square-mean", "growth"),
        ("o24.squared-mean", "growth"),
        ("o24.product-of-means", "growth"),
        ("o24.mean-norm", "growth"),
        ("o24.fd-bonus", "growth"),
        ("o24.covariance-effective-rank", "units"),
    }
    for name, bound in BOUNDS.items():
        if name.startswith("repaired."):
            assert all(check.holds for check in symbolic_checks(bound)), name


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("o24.gaussian-mean", {"factor": 2.0}, {"factor": 1.99}),
        ("repaired.covariance-dimension", {"tail": 2.0}, {"tail": 1.99}),
        ("o24.hoeffding", {"factor": 0.5}, {"factor": 0.49}),
        ("v24.eigenvalues", {"factor": 32.0}, {"factor": 31.0}),
        ("v24.eigenvalues", {"union": 2.0}, {"union": 1.2}),  # e^{1/4} = 1.284 is needed
        ("m25.weighted-chi-square", {"root": 8.0}, {"root": 5.0}),
        ("repaired.covariance-effective-rank", {}, {"kappa_squared": 8.0 / 3.0 - 1e-6}),
    ],
)
def test_a_planted_constant_turns_the_check(name, right, wrong):
    assert failed(name, **right) == set()
    assert failed(name, **wrong) in ({("conversion", False)}, {("fact", False)})


def test_a_wrong_unit_refutes_though_no_law_at_hand_shows_it():
    """The audit sees it where Monte Carlo cannot: one cell of unit scale, where both agree."""
    bound = BOUNDS["m25.covariance-effective-rank"]
    assert audit([bound.id], replications=10)[bound.id].verdict == "upheld"
    wrong = dataclasses.replace(
        bound, width_function=effective_rank_variance, constants={**bound.constants, "lead": 1e20}
    )
    row = audit(catalogue={bound.id: wrong}, replications=10)[bound.id]
    assert not any(cell.refutes for cell in row.results)
    assert row.verdict == "refuted"
    assert "features scaled by s" in row.counterexample
    right = dataclasses.replace(wrong, width_function=effective_rank_psi)
    assert audit(catalogue={bound.id: right}, replications=10)[bound.id].verdict == "upheld"


def slow(c, n, delta):
    return 1e6 * np.sqrt(np.log(2.0 / delta)) / n


def test_a_growth_too_slow_refutes_though_delta_is_out_of_reach():
    bound = dataclasses.replace(BOUNDS["repaired.squared-mean"], width_function=slow)
    row = audit(catalogue={bound.id: bound}, replications=10)[bound.id]
    assert not any(cell.refutes for cell in row.results)
    assert row.verdict == "refuted"


def log_moment(x):
    """log E e^{x(Z²−1)}."""
    return -x - 0.5 * math.log1p(-2 * x)


def test_chi_square_is_sub_exponential_on_the_whole_interval():
    """The rigorous limit is below, and near, the smallest value on a fine grid."""
    grid = [x for x in np.linspace(-0.25, 0.25, 4001) if abs(x) > 1e-3]
    smallest = min((2 * x * x - log_moment(x)) / x**2 for x in grid)
    found = sub_exponential_gap(4.0, 4.0)
    assert 0.0 < found <= smallest
    assert found > smallest - 0.1
    # ν² = 4 has room at α = 4; 3.09 is what the edge needs, and α = 2 has no ν at all.
    needed = 2 * log_moment(0.25) * 16
    assert sub_exponential_gap(needed - 1e-3, 4.0) < 0.0
    assert sub_exponential_gap(4.0, 2.0) == -math.inf


def test_checks_travel_with_the_store(tmp_path):
    kept = audit(["o24.chi-square-mean"], replications=10, out=tmp_path)
    again = audit(["o24.chi-square-mean"], replications=10, out=tmp_path)
    assert again == kept
    assert [check.kind for check in kept.rows[0].checks] == ["growth", "conversion", "conversion"]
