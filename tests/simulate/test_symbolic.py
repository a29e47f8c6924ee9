"""Exact checks see a wrong unit, a wrong growth and a wrong constant, and nothing else."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest
from scipy.stats import norm

from genbounds.bounds import catalog
from genbounds.bounds._matrices import effective_rank_psi, effective_rank_variance
from genbounds.simulate import audit
from genbounds.simulate._symbolic import _tail_at, sub_exponential_gap, symbolic_checks

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
        ("m25.weighted-chi-square", {"linear": 8.0}, {"linear": 7.9}),
        ("m25.sub-exponential-mean", {}, {"root": 1.99}),
        ("m25.sub-exponential-mean", {}, {"linear": 1.99}),
        ("v24.vector-bernstein", {}, {"factor": 7.9}),
        ("v24.vector-bernstein", {}, {"offset": 0.2}),
        ("v24.fkea", {"factor": 128.0}, {"factor": 127.0}),
        ("v24.fkea", {"union": 2.57}, {"union": 2.56}),  # 2 e^{1/4} = 2.568 is needed
        ("repaired.kernel-covariance", {}, {"tail": 0.99}),
        ("repaired.squared-mean", {}, {"factor": 1.99}),
        ("repaired.product-of-means", {}, {"union": 1.9}),
        ("repaired.covariance-effective-rank", {}, {"kappa_squared": 8.0 / 3.0 - 1e-6}),
    ],
)
def test_a_planted_constant_turns_the_check(name, right, wrong):
    assert failed(name, **right) == set()
    assert failed(name, **wrong)
    assert failed(name, **wrong) <= {("conversion", False), ("fact", False)}


def steps(name, **constants):
    bound = BOUNDS[name]
    bound = dataclasses.replace(bound, constants={**bound.constants, **constants})
    return [check.holds for check in symbolic_checks(bound) if check.kind == "conversion"]


def test_the_lemmas_on_squares_convert_rightly_from_a_tail_that_is_wrong():
    """O24 E.10 and E.11: the algebra stands, the tail used at t ≥ 1 does not."""
    assert steps("o24.squared-mean") == [True, True, False]
    assert steps("o24.squared-mean", factor=31.0) == [False, True, False]
    # 1/n is no longer covered: 18 leaves √18 − √8 = √2, so from L = 1/2 on.
    assert steps("o24.squared-mean", factor=18.0, union=1.5) == [False, False, False]
    assert steps("o24.product-of-means") == [True, False]
    assert steps("o24.product-of-means", factor=7.9) == [False, False]
    assert steps("o24.product-of-means", union=3.9) == [False, False]


def test_the_tail_of_a_square_as_rigorous_intervals():
    assert not _tail_at(8.0).holds
    exact = 2.0 * norm.sf(3.0)
    assert float(_tail_at(8.0).found.split("at least ")[1].split(",")[0]) <= exact
    assert _tail_at(1.0).holds  # there 2 e^(−1/8) exceeds one


def fast(c, n, delta):
    return 1e6 * np.log(2.0 / delta) / np.asarray(n, dtype=float) ** 1.1


def constant(c, n, delta):
    return np.log(2.0 / delta) * np.ones_like(np.asarray(n, dtype=float))


def test_a_width_that_shrinks_too_fast_refutes_though_n_is_out_of_reach():
    bound = dataclasses.replace(BOUNDS["repaired.squared-mean"], width_function=fast)
    row = audit(catalogue={bound.id: bound}, replications=10)[bound.id]
    assert not any(cell.refutes for cell in row.results)
    assert row.verdict == "refuted"
    # One that does not vanish is recorded, and refutes nothing.
    bound = dataclasses.replace(bound, width_function=constant)
    found = [check for check in symbolic_checks(bound) if check.kind == "samples"]
    assert [(check.holds, check.decisive) for check in found] == [(False, False)]


def narrowed(wide):
    def width(c, **quantities):
        return 0.02 * wide(c, **quantities)

    width.__signature__ = inspect.signature(wide)
    return width


@pytest.mark.parametrize(
    "name", ["m25.fd-bonus", "o24.fd-bonus", "o24.fd-naive-bonus", "o24.fd-decomposition"]
)
def test_the_norms_of_real_embeddings(name):
    """The printed bonuses hold there, wider than a proven one; a fiftieth of them is not."""
    bound = BOUNDS[name]
    (check,) = (c for c in symbolic_checks(bound) if c.kind == "embeddings")
    assert check.holds
    assert not check.decisive
    assert check.found.count("inception") == check.found.count("dinov2") == 2
    wrong = dataclasses.replace(bound, width_function=narrowed(bound.width_function))
    (check,) = (c for c in symbolic_checks(wrong) if c.kind == "embeddings")
    assert not check.holds


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
    kinds = [check.kind for check in kept.rows[0].checks]
    assert kinds == ["growth", "samples", "conversion", "conversion"]
