"""The assumptions of statements, as predicates on what is true of a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from genbounds.bounds._bound import Assumption, Facts

# Predicates are functions of the module, bound to their parameters by `partial`: a statement must
# travel to other processes.


def _asking(text: str, predicate: Callable[..., bool], *given: Any) -> Assumption:
    return Assumption(text=text, predicate=partial(predicate, *given))


def _in_family(name: str, facts: Facts, n: int, delta: float) -> bool:
    return name in facts.get("families", ())


def _enough(minimum: int, facts: Facts, n: int, delta: float) -> bool:
    return n >= minimum


def _enough_for_rank(factor: float, facts: Facts, n: int, delta: float) -> bool:
    rank = facts.get("effective_rank", math.inf)
    return bool(n >= 4.0 * rank + math.log(factor / delta))


def at_least(minimum: int) -> Assumption:
    """Ask for a smallest sample size."""
    return _asking(f"n ≥ {minimum}", _enough, minimum)


def rank_samples(factor: float) -> Assumption:
    """Ask for n ≥ 4 r(Σ) + log(factor/δ), where covariance bounds by effective rank begin."""
    return _asking(f"n ≥ 4 r(Σ) + log({factor:g}/δ)", _enough_for_rank, factor)


def _standard(facts: Facts, n: int, delta: float) -> bool:
    scalar = (facts["d"], facts["mean"], facts["variance"]) == (1, 0.0, 1.0)
    return bool(scalar and "gaussian" in facts["families"])


def _is(name: str, value: object, facts: Facts, n: int, delta: float) -> bool:
    return bool(facts.get(name) == value)


def _finite(name: str, facts: Facts, n: int, delta: float) -> bool:
    return math.isfinite(facts.get(name, math.inf))


def _vendi_samples(facts: Facts, n: int, delta: float) -> bool:
    return delta >= math.exp((2 - n) / 8)


def _unit_operator(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts["operator"] <= 1.0)


def _bernstein_range(facts: Facts, n: int, delta: float) -> bool:
    return bool(8.0 * (math.log(1.0 / delta) + 0.25) <= n)


def _between(name: str, low: float, high: float, facts: Facts, n: int, delta: float) -> bool:
    return bool(low <= facts[name] < high or facts[name] == high == math.inf)


def _has(names: tuple[str, ...], facts: Facts, n: int, delta: float) -> bool:
    return all(name in facts for name in names)


def between(name: str, low: float, high: float, text: str) -> Assumption:
    """Ask for a number in [`low`, `high`): the order α of a Vendi score, an exponent."""
    return _asking(text, _between, name, low, high)


def has(name: str, text: str) -> Assumption:
    """Ask for a fact, whatever its value."""
    return _asking(text, _has, (name,))


def any_law(text: str) -> tuple[Assumption, ...]:
    """Name the distributions of a claim about growth; the audit chooses among them itself."""
    return (_asking(text, _has, ()),)


GAUSSIAN = _asking("X_i iid N(μ, Σ)", _in_family, "gaussian")
UNIT_INTERVAL = _asking("Z_i iid in [0, 1]", _in_family, "unit-interval")
POSTERIORS = _asking("p_i iid on the probability simplex", _in_family, "posterior")
NORMALISED_KERNEL = _asking("x_i iid, k(x, x) = 1", _in_family, "kernel")
CLASSES = _asking("x_i iid classes, k(x, y) = [x = y]", _in_family, "classes")
SCALAR = _asking("d = 1", _is, "d", 1)
STANDARD_NORMAL = _asking("Z_i iid N(0, 1)", _standard)
CENTRED = _asking("E X_i = 0", _is, "centred", True)
NORM_BOUNDED = _asking("‖X_i‖ ≤ C", _finite, "radius")
SUB_EXPONENTIAL = _asking("X_i iid SE(ν, α)", _has, ("sub_exponential_nu", "sub_exponential_alpha"))
SUB_GAUSSIAN = _asking("‖yᵀX‖_ψ2 ≤ κ √(yᵀΣy)", _finite, "kappa")
DEFINITE_REFERENCE = _asking("Σ_r ≻ 0", _is, "reference_definite", True)
UNIT_OPERATOR = _asking("‖Σ‖ ≤ 1 (printed as ‖Σ‖ = O(1), Tr Σ = O(d))", _unit_operator)
VENDI_SAMPLES = _asking("δ ≥ exp((2−n)/8)", _vendi_samples)
BERNSTEIN_RANGE = _asking("ε ≤ c, that is 8 (log(1/δ) + 1/4) ≤ n", _bernstein_range)
ANY_ORDER = between("order", 1.0, math.inf, "α ≥ 1")


# --- inputs of deterministic inequalities -------------------------------------------------------


def _full_rank(name: str, facts: Facts, n: int, delta: float) -> bool:
    return bool(np.linalg.matrix_rank(facts[name]) == facts[name].shape[-2])


def _ordered(facts: Facts, n: int, delta: float) -> bool:
    gap = np.linalg.eigvalsh(facts["larger"] - facts["smaller"]).min()
    slack = 1e-12 * np.abs(np.linalg.eigvalsh(facts["larger"])).max()
    return bool(gap >= -slack and np.linalg.eigvalsh(facts["smaller"]).min() > 0.0)


def _distributions(names: tuple[str, ...], facts: Facts, n: int, delta: float) -> bool:
    return all(
        bool((facts[name] >= 0.0).all() and abs(facts[name].sum() - 1.0) <= 1e-12) for name in names
    )


def _symmetric(facts: Facts, n: int, delta: float) -> bool:
    return all(bool((facts[name] == facts[name].T).all()) for name in ("a", "b"))


def _by_factors(facts: Facts, n: int, delta: float) -> bool:
    return all(np.isfinite(facts[name]).all() for name in ("factor", "other_factor"))


def _visits(facts: Facts, n: int, delta: float) -> bool:
    return bool((facts["picks"] >= 1).all() and facts["batch"] >= 1)


def _a_batch_burnt_in(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts["burn_in"] >= facts["batch"])


def _sums(facts: Facts, n: int, delta: float) -> bool:
    given = (facts[name] for name in ("weights", "shapes", "scales", "deviations"))
    return all(bool((value >= 0.0).all()) for value in given) and bool(abs(facts["position"]) < 1.0)


def _in_cube(facts: Facts, n: int, delta: float) -> bool:
    points, knots = np.asarray(facts["points"]), np.asarray(facts["knots"])
    inside = (points >= 0.0).all() and (points < 1.0).all()
    ordered = (np.diff(knots, axis=-1) >= 0.0).all()
    return bool(inside and ordered and (knots >= 0.0).all() and (knots <= 1.0).all())


def distributions(text: str, *names: str) -> Assumption:
    """Ask for probabilities in the inputs of these names."""
    return _asking(text, _distributions, names)


PSD = _asking("A, B ⪰ 0 (given by factors)", _by_factors)
FULL_RANK_REFERENCE = _asking("Σ_r ≻ 0 (given by factors)", _full_rank, "reference_factor")
ORDERED = _asking("A ⪰ B ≻ 0", _ordered)
SYMMETRIC = _asking("A, B symmetric", _symmetric)
POWER = between("alpha", 0.0, 1.0, "0 ≤ α < 1")
VISITS = _asking("every generator picked at least once, b ≥ 1", _visits)
BURN_IN = between("burn_in", 1.0, math.inf, "burn-in N ≥ 1")
LONG_BURN_IN = _asking("burn-in N ≥ b", _a_batch_burnt_in)
SUMS = _asking(
    "X_i = Gamma(k_i, θ_i) + N(0, σ_i²) in SE(√(2k_iθ_i²+σ_i²), 2θ_i), w_i ≥ 0, |s| < 1/max w_iα_i",
    _sums,
)
IN_CUBE = _asking("x_i in [0, 1)^s, f a product of step functions of the coordinates", _in_cube)
