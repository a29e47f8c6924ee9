"""The assumptions of statements, as predicates on what is true of a distribution."""

from __future__ import annotations

import math
from functools import partial

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
    return bool(
        "gaussian" in facts.get("families", ())
        and facts.get("d") == 1
        and facts.get("mean") == 0.0
        and facts.get("variance") == 1.0
    )


def _scalar(facts: Facts, n: int, delta: float) -> bool:
    return facts.get("d") == 1


def _centred(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts.get("centred", False))


def _norm_bounded(facts: Facts, n: int, delta: float) -> bool:
    return math.isfinite(facts.get("radius", math.inf))


def _sub_exponential(facts: Facts, n: int, delta: float) -> bool:
    return "sub_exponential_nu" in facts and "sub_exponential_alpha" in facts


def _sub_gaussian(facts: Facts, n: int, delta: float) -> bool:
    return math.isfinite(facts.get("kappa", math.inf))


def _definite_reference(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts.get("reference_definite", False))


def _vendi_samples(facts: Facts, n: int, delta: float) -> bool:
    return delta >= math.exp((2 - n) / 8)


def _unit_operator(facts: Facts, n: int, delta: float) -> bool:
    return bool(facts.get("operator", math.inf) <= 1.0)


GAUSSIAN = _family("gaussian", "X_i iid N(μ, Σ)")
UNIT_INTERVAL = _family("unit-interval", "Z_i iid in [0, 1]")
POSTERIORS = _family("posterior", "p_i iid on the probability simplex")
NORMALISED_KERNEL = _family("kernel", "x_i iid, k(x, x) = 1")
CLASSES = _family("classes", "x_i iid classes, k(x, y) = [x = y]")
SCALAR = Assumption(text="d = 1", predicate=_scalar)
STANDARD_NORMAL = Assumption(text="Z_i iid N(0, 1)", predicate=_standard)
CENTRED = Assumption(text="E X_i = 0", predicate=_centred)
NORM_BOUNDED = Assumption(text="‖X_i‖ ≤ C", predicate=_norm_bounded)
SUB_EXPONENTIAL = Assumption(text="X_i iid SE(ν, α)", predicate=_sub_exponential)
SUB_GAUSSIAN = Assumption(text="‖yᵀX‖_ψ2 ≤ κ √(yᵀΣy)", predicate=_sub_gaussian)
DEFINITE_REFERENCE = Assumption(text="Σ_r ≻ 0", predicate=_definite_reference)
UNIT_OPERATOR = Assumption(
    text="‖Σ‖ ≤ 1 (printed as ‖Σ‖ = O(1), Tr Σ = O(d))", predicate=_unit_operator
)
VENDI_SAMPLES = Assumption(text="δ ≥ exp((2−n)/8)", predicate=_vendi_samples)
