"""The assumptions of statements, as predicates on what is true of a distribution."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from genbounds.bounds._bound import Assumption, Facts

# Predicates are functions of the module, bound to their parameters by `partial`: a statement must
# travel to other processes.


def _in_family(name: str, facts: Facts, n: int, delta: float) -> bool:
    return name in facts.get("families", ())


def _enough(minimum: int, facts: Facts, n: int, delta: float) -> bool:
    return n >= minimum


def _enough_for_rank(factor: float, facts: Facts, n: int, delta: float) -> bool:
    rank = facts.get("effective_rank", math.inf)
    return bool(n >= 4.0 * rank + math.log(factor / delta))


def _family(name: str, text: str) -> Assumption:
    return Assumption(text=text, predicate=partial(_in_family, name))


def at_least(minimum: int) -> Assumption:
    """Ask for a smallest sample size."""
    return Assumption(text=f"n ≥ {minimum}", predicate=partial(_enough, minimum))


def effective_rank_samples(factor: float) -> Assumption:
    """Ask for n ≥ 4 r(Σ) + log(factor/δ), where covariance bounds by effective rank begin."""
    return Assumption(
        text=f"n ≥ 4 r(Σ) + log({factor:g}/δ)", predicate=partial(_enough_for_rank, factor)
    )


def _standard(facts: Facts, n: int, delta: float) -> bool:
    scalar = (facts["d"], facts["mean"], facts["variance"]) == (1, 0.0, 1.0)
    return bool(scalar and "gaussian" in facts["families"])


def _is(name: str, value: object, facts: Facts, n: int, delta: float) -> bool:
    return bool(facts.get(name) == value)


def _finite(name: str, facts: Facts, n: int, delta: float) -> bool:
    return math.isfinite(facts.get(name, math.inf))


def _sub_exponential(facts: Facts, n: int, delta: float) -> bool:
    return "sub_exponential_nu" in facts and "sub_exponential_alpha" in facts


def _vendi_samples(facts: Facts, n: int, delta: float) -> bool:
    return delta >= math.exp((2 - n) / 8)


def _unit_operator(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts["operator"] <= 1.0)


def _bernstein_range(facts: Facts, n: int, delta: float) -> bool:
    return bool(8.0 * (math.log(1.0 / delta) + 0.25) <= n)


def _between(name: str, low: float, high: float, facts: Facts, n: int, delta: float) -> bool:
    return bool(low <= facts[name] < high or facts[name] == high == math.inf)


def _has(name: str, facts: Facts, n: int, delta: float) -> bool:
    return name in facts


def _any_law(facts: Facts, n: int, delta: float) -> bool:
    return True


def orders(low: float, high: float, text: str) -> Assumption:
    """Ask for an order α of the Vendi score in [`low`, `high`)."""
    return Assumption(text=text, predicate=partial(_between, "order", low, high))


def has(name: str, text: str) -> Assumption:
    """Ask for a fact, whatever its value."""
    return Assumption(text=text, predicate=partial(_has, name))


def any_law(text: str) -> tuple[Assumption, ...]:
    """Name the distributions of a claim about growth; the audit chooses among them itself."""
    return (Assumption(text=text, predicate=_any_law),)


GAUSSIAN = _family("gaussian", "X_i iid N(μ, Σ)")
UNIT_INTERVAL = _family("unit-interval", "Z_i iid in [0, 1]")
POSTERIORS = _family("posterior", "p_i iid on the probability simplex")
NORMALISED_KERNEL = _family("kernel", "x_i iid, k(x, x) = 1")
CLASSES = _family("classes", "x_i iid classes, k(x, y) = [x = y]")
SCALAR = Assumption(text="d = 1", predicate=partial(_is, "d", 1))
STANDARD_NORMAL = Assumption(text="Z_i iid N(0, 1)", predicate=_standard)
CENTRED = Assumption(text="E X_i = 0", predicate=partial(_is, "centred", True))
NORM_BOUNDED = Assumption(text="‖X_i‖ ≤ C", predicate=partial(_finite, "radius"))
SUB_EXPONENTIAL = Assumption(text="X_i iid SE(ν, α)", predicate=_sub_exponential)
SUB_GAUSSIAN = Assumption(text="‖yᵀX‖_ψ2 ≤ κ √(yᵀΣy)", predicate=partial(_finite, "kappa"))
DEFINITE_REFERENCE = Assumption(text="Σ_r ≻ 0", predicate=partial(_is, "reference_definite", True))
UNIT_OPERATOR = Assumption(
    text="‖Σ‖ ≤ 1 (printed as ‖Σ‖ = O(1), Tr Σ = O(d))", predicate=_unit_operator
)
VENDI_SAMPLES = Assumption(text="δ ≥ exp((2−n)/8)", predicate=_vendi_samples)
BERNSTEIN_RANGE = Assumption(
    text="ε ≤ c, that is 8 (log(1/δ) + 1/4) ≤ n", predicate=_bernstein_range
)
ANY_ORDER = orders(1.0, math.inf, "α ≥ 1")


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


def _burnt_in(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts["burn_in"] >= 1)


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


def alpha_in(low: float, high: float, text: str) -> Assumption:
    """Ask for an exponent α in [`low`, `high`)."""
    return Assumption(text=text, predicate=partial(_between, "alpha", low, high))


def distributions(text: str, *names: str) -> Assumption:
    """Ask for probabilities in the inputs of these names."""
    return Assumption(text=text, predicate=partial(_distributions, names))


PSD = Assumption(text="A, B ⪰ 0 (given by factors)", predicate=_by_factors)
FULL_RANK_REFERENCE = Assumption(
    text="Σ_r ≻ 0 (given by factors)", predicate=partial(_full_rank, "reference_factor")
)
ORDERED = Assumption(text="A ⪰ B ≻ 0", predicate=_ordered)
SYMMETRIC = Assumption(text="A, B symmetric", predicate=_symmetric)
POWER = alpha_in(0.0, 1.0, "0 ≤ α < 1")
VISITS = Assumption(text="every generator picked at least once, b ≥ 1", predicate=_visits)
BURN_IN = Assumption(text="burn-in N ≥ 1", predicate=_burnt_in)
LONG_BURN_IN = Assumption(text="burn-in N ≥ b", predicate=_a_batch_burnt_in)
SUMS = Assumption(
    text="X_i = Gamma(k_i, θ_i) + N(0, σ_i²) in SE(√(2k_iθ_i²+σ_i²), 2θ_i), w_i ≥ 0, "
    "|s| < 1/max w_iα_i",
    predicate=_sums,
)
IN_CUBE = Assumption(
    text="x_i in [0, 1)^s, f a product of step functions of the coordinates", predicate=_in_cube
)
