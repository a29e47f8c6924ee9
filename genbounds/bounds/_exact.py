"""Both sides of deterministic inequalities from rational inputs, without rounding to speak of.

Rational sides are fractions; roots, logarithms and eigenvalues are taken with 50 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from types import MappingProxyType
from typing import Any

from genbounds.bounds import _inequalities as inequalities
from genbounds.bounds import _quasi as quasi
from genbounds.bounds import _visits as visits
from genbounds.bounds._bound import Bound, Constants
from genbounds.validation import check_installed

DIGITS = 50

# A Fraction, or an mpmath number of `DIGITS` digits.
Number = Any
# Fractions, or nested lists of them, by name.
Inputs = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSides:
    """The two sides of a deterministic inequality at one rational input.

    Attributes
    ----------
    violation : float
        (left − right) over the larger of the two, evaluated before rounding to a float.
    left, right : str
        Fractions where they are rational, else decimals of 20 digits.
    """

    violation: float
    left: str
    right: str


def exact_sides(bound: Bound, inputs: Inputs) -> ExactSides | None:
    """Evaluate a deterministic statement at a rational input.

    Parameters
    ----------
    bound : Bound
        A deterministic statement.
    inputs : mapping of str to Fraction or nested lists of Fraction

    Returns
    -------
    ExactSides or None
        None where a side of the statement is a function that has no exact twin here.
    """
    check_installed("an exact check", "audit", "mpmath")
    from mpmath import mp

    left = _SIDES.get(bound.quantity.function)
    right = _SIDES.get(bound.width_function)
    if left is None or right is None:
        return None
    with mp.workdps(DIGITS):
        values = {name: _constant(value) for name, value in bound.constants.items()}
        constants = Constants(values, bound.id)
        sides = left(constants, inputs), right(constants, inputs)
        first, second = (_real(side) for side in sides)
        size = max(abs(first), abs(second))
        # Both are zero but for what their own parts leave when they cancel.
        largest = max(1, *(abs(value) for name in inputs for value in _flat(inputs[name])))
        nothing = mp.mpf(10) ** (15 - DIGITS) * _real(largest) ** 2
        violation = float((first - second) / size) if size > nothing else 0.0
        return ExactSides(violation=violation, left=_text(sides[0]), right=_text(sides[1]))


def _constant(value: float) -> Number:
    """Name the number that a printed constant stands for: 1/e, or a short fraction."""
    from mpmath import mp

    if value == inequalities.CLIP:
        return 1 / mp.e
    short = Fraction(value).limit_denominator(1000)
    return short if float(short) == value else Fraction(value)


def _real(value: Number) -> Number:
    from mpmath import mp

    if isinstance(value, Fraction):
        return mp.mpf(value.numerator) / value.denominator
    return mp.mpf(value)


def _flat(value: Any) -> list[Fraction]:
    if not isinstance(value, list):
        return [Fraction(value)]
    return [number for part in value for number in _flat(part)]


def _text(value: Number) -> str:
    from mpmath import mp

    if isinstance(value, Fraction | int) or value == int(value):
        return str(value if isinstance(value, Fraction) else int(value))
    return str(mp.nstr(value, 20))


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Any:
    from mpmath import mp

    return mp.matrix([[_real(value) for value in row] for row in rows])


def _nuclear(matrix: Any) -> Number:
    from mpmath import mp

    return mp.fsum(mp.svd_r(matrix, compute_uv=False))


def _eigenvalues(matrix: Any) -> list[Number]:
    from mpmath import mp

    if matrix.rows == 1:
        return [matrix[0, 0]]
    return sorted(mp.eigsy(matrix, eigvals_only=True))


def _trace_root(inputs: Inputs, name: str) -> Number:
    return _nuclear(_matrix(inputs[name]).T * _matrix(inputs["reference_factor"]))


def _root_change(c: Inputs, x: Inputs) -> Number:
    return abs(_trace_root(x, "factor") - _trace_root(x, "other_factor"))


def _root_change_bound(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    first, second = _matrix(x["factor"]), _matrix(x["other_factor"])
    gap = max(abs(value) for value in _eigenvalues(first * first.T - second * second.T))
    return _nuclear(_matrix(x["reference_factor"])) * mp.sqrt(_real(c["factor"]) * gap)


def _larger_root(c: Inputs, x: Inputs) -> Number:
    return max(_nuclear(_matrix(x["factor"])), _nuclear(_matrix(x["other_factor"])))


def _root_of_sum(c: Inputs, x: Inputs) -> Number:
    both = [[*a, *b] for a, b in zip(x["factor"], x["other_factor"], strict=True)]
    # Tall: the singular values are those of the transpose.
    return _nuclear(_matrix(both).T)


def _root_of_sum_bound(c: Inputs, x: Inputs) -> Number:
    return _real(c["factor"]) * _root_of_sum(c, x)


def _sum_of_roots(c: Inputs, x: Inputs) -> Number:
    total = _nuclear(_matrix(x["factor"])) + _nuclear(_matrix(x["other_factor"]))
    return _real(c["factor"]) * total


def _inverse_ratio(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    root = mp.cholesky(_matrix(x["smaller"]))
    inner = root.T * mp.inverse(_matrix(x["larger"])) * root
    return _eigenvalues((inner + inner.T) / 2)[-1]


def _ratio(c: Inputs, x: Inputs) -> Number:
    return c["ratio"]


def _entropy_sum(values: Sequence[Number]) -> Number:
    from mpmath import mp

    return mp.fsum(-_real(v) * mp.log(_real(v)) for v in values if v != 0)


def _entropy(c: Inputs, x: Inputs) -> Number:
    return _entropy_sum(x["p"])


def _clipped_entropy(c: Inputs, x: Inputs) -> Number:
    point = _real(c["point"])
    moved = []
    for p, q in zip(x["p"], x["p_estimate"], strict=True):
        value, reach = _real(q), abs(_real(q - p))
        moved.append(
            point if abs(value - point) < reach else value + (reach if value < point else -reach)
        )
    return _entropy_sum(moved)


def _spectral_distance(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    pairs = zip(_eigenvalues(_matrix(x["a"])), _eigenvalues(_matrix(x["b"])), strict=True)
    return mp.sqrt(mp.fsum((a - b) ** 2 for a, b in pairs))


def _root(square: Fraction) -> Number:
    from mpmath import mp

    return mp.sqrt(_real(square))


def _frobenius(c: Inputs, x: Inputs) -> Number:
    pairs = [(p, q) for a, b in zip(x["a"], x["b"], strict=True) for p, q in zip(a, b, strict=True)]
    return _real(c["factor"]) * _root(sum(((p - q) ** 2 for p, q in pairs), Fraction(0)))


def _projection_distance(c: Inputs, x: Inputs) -> Number:
    v, t = x["v"], int(x["t"])
    lift = (1 - sum(v[:t], Fraction(0))) / t
    return _root(t * lift**2 + sum((value**2 for value in v[t:]), Fraction(0)))


def _rival_distance(c: Inputs, x: Inputs) -> Number:
    pairs = zip(x["v"], x["w"], strict=True)
    return _real(c["factor"]) * _root(sum(((p - q) ** 2 for p, q in pairs), Fraction(0)))


def _alpha_norm(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    order = _real(x["alpha"])
    return mp.fsum(abs(_real(value)) ** order for value in x["v"]) ** (1 / order)


def _embedding(c: Inputs, x: Inputs) -> Number:
    power = (2 - _real(x["alpha"])) / _real(c["root"])
    return len(x["v"]) ** power * _root(sum((value**2 for value in x["v"]), Fraction(0)))


def _harmonic_visits(c: Inputs, x: Inputs) -> Number:
    terms = (1 / (x["batch"] * k) for picks in x["picks"] for k in range(1, int(picks) + 1))
    return sum(terms, Fraction(0))


def _visit_sum(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    order, batch = _real(x["alpha"]), _real(x["batch"])
    return mp.fsum((batch * k) ** -order for picks in x["picks"] for k in range(1, int(picks) + 1))


def _power_samples(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    order, batch = _real(x["alpha"]), _real(x["batch"])
    total = mp.fsum((batch * _real(picks)) ** (1 - order) for picks in x["picks"])
    return (_real(c["base"]) * batch) ** order / (1 - order) * total


def _power_picks(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    order, batch = _real(x["alpha"]), _real(x["batch"])
    total = mp.fsum(_real(picks) ** (1 - order) for picks in x["picks"])
    return (_real(c["base"]) / batch) ** order / (1 - order) * total


def _log_samples(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    batch = _real(x["batch"])
    return _real(c["factor"]) * batch * mp.fsum(mp.log(batch * _real(p)) for p in x["picks"])


def _log_picks(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    return _real(c["factor"]) / _real(x["batch"]) * mp.fsum(mp.log(_real(p)) for p in x["picks"])


def _offset_log_picks(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    total = mp.fsum(_real(c["offset"]) + mp.log(_real(p)) for p in x["picks"])
    return total / _real(x["batch"])


def _total_power(c: Inputs, x: Inputs, batch: Number) -> Number:
    from mpmath import mp

    return mp.fsum((batch * _real(picks)) ** (1 - _real(x["alpha"])) for picks in x["picks"])


def _samples_power(c: Inputs, x: Inputs) -> Number:
    return _total_power(c, x, _real(x["batch"]))


def _picks_power(c: Inputs, x: Inputs) -> Number:
    return _total_power(c, x, 1)


def _horizon(x: Inputs) -> tuple[int, Number]:
    return len(x["picks"]), _real(sum(x["picks"], Fraction(0)))


def _horizon_power(c: Inputs, x: Inputs, batch: Number = 1) -> Number:
    arms, steps_taken = _horizon(x)
    order = _real(x["alpha"])
    return _real(c["factor"]) * arms**order * (batch * steps_taken) ** (1 - order)


def _sampled_power(c: Inputs, x: Inputs) -> Number:
    return _horizon_power(c, x, _real(x["batch"]))


def _samples_log(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    return mp.fsum(mp.log(_real(x["batch"] * picks)) for picks in x["picks"])


def _picks_log(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    return mp.fsum(mp.log(_real(picks)) for picks in x["picks"])


def _horizon_log(c: Inputs, x: Inputs, batch: Number = 1) -> Number:
    from mpmath import mp

    arms, steps_taken = _horizon(x)
    return _real(c["factor"]) * arms * mp.log(batch * steps_taken)


def _sampled_log(c: Inputs, x: Inputs) -> Number:
    return _horizon_log(c, x, _real(x["batch"]))


def _visits_from(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    order, batch, first = _real(x["alpha"]), _real(x["batch"]), _real(x["burn_in"])
    return mp.fsum((first + batch * k) ** -order for picks in x["picks"] for k in range(int(picks)))


def _split_parts(x: Inputs) -> tuple[Any, Any]:
    from mpmath import mp

    root, rows = _matrix(x["factor"]), _matrix(x["other_factor"])
    n = rows.cols
    mean = mp.matrix([mp.fsum(rows[i, j] for j in range(n)) / n for i in range(rows.rows)])
    return root * root.T - rows * rows.T / n, mean


def _largest(matrix: Any) -> Number:
    return max(abs(value) for value in _eigenvalues(matrix))


def _split_error(c: Inputs, x: Inputs) -> Number:
    gap, mean = _split_parts(x)
    return _largest(gap + mean * mean.T)


def _split(c: Inputs, x: Inputs) -> Number:
    gap, mean = _split_parts(x)
    return _largest(gap) + _real(c["factor"]) * (mean.T * mean)[0, 0]


def _argument(x: Inputs) -> Fraction:
    edge = 2 * max(w * scale for w, scale in zip(x["weights"], x["scales"], strict=True))
    return Fraction(x["position"] / (edge or 1))


def _log_moment(c: Inputs, x: Inputs) -> Number:
    from mpmath import mp

    s, parts = _argument(x), []
    names = ("weights", "shapes", "scales", "deviations")
    for w, shape, scale, deviation in zip(*(x[name] for name in names), strict=True):
        u = _real(s * w * scale)
        parts += [-_real(shape) * (mp.log(1 - u) + u), _real((s * w * deviation) ** 2) / 2]
    return mp.fsum(parts)


def _sub_exponential_sum(c: Inputs, x: Inputs) -> Number:
    names = ("weights", "shapes", "scales", "deviations")
    rows = zip(*(x[name] for name in names), strict=True)
    total = sum((w**2 * (2 * k * t**2 + d**2) for w, k, t, d in rows), Fraction(0))
    return c["factor"] * _argument(x) ** 2 * total / 2


def _integral_error(c: Inputs, x: Inputs) -> Number:
    axes = list(zip(x["knots"], x["levels"], strict=True))
    integral = prod(
        sum((v * (b - a) for v, (a, b) in zip(levels, pairwise([0, *knots, 1]), strict=True)),
            Fraction(0))
        for knots, levels in axes
    )  # fmt: skip
    values = (
        prod(
            levels[sum(knot <= coordinate for knot in knots)]
            for coordinate, (knots, levels) in zip(point, axes, strict=True)
        )
        for point in x["points"]
    )
    return abs(integral - sum(values, Fraction(0)) / len(x["points"]))


def _star_discrepancy(points: Sequence[Sequence[Fraction]]) -> Fraction:
    found = Fraction(0)
    for corner in product(*([*axis, Fraction(1)] for axis in zip(*points, strict=True))):
        pairs = [list(zip(point, corner, strict=True)) for point in points]
        volume = prod(corner)
        short = Fraction(sum(all(a < b for a, b in pair) for pair in pairs), len(points))
        with_them = Fraction(sum(all(a <= b for a, b in pair) for pair in pairs), len(points))
        found = max(found, volume - short, with_them - volume)
    return found


def _koksma_hlawka(c: Inputs, x: Inputs) -> Number:
    jumps = [sum(abs(b - a) for a, b in pairwise(levels)) for levels in x["levels"]]
    last = [c["faces"] * abs(levels[-1]) for levels in x["levels"]]
    whole = prod(j + v for j, v in zip(jumps, last, strict=True)) - prod(last)
    return c["factor"] * whole * _star_discrepancy(x["points"])


_SIDES: Mapping[Callable[..., Any], Callable[[Inputs, Inputs], Number]] = MappingProxyType(
    {
        inequalities.root_change: _root_change,
        inequalities.root_change_bound: _root_change_bound,
        inequalities.larger_root: _larger_root,
        inequalities.root_of_sum: _root_of_sum,
        inequalities.root_of_sum_bound: _root_of_sum_bound,
        inequalities.sum_of_roots: _sum_of_roots,
        inequalities.inverse_ratio: _inverse_ratio,
        inequalities.one: _ratio,
        inequalities.entropy: _entropy,
        inequalities.clipped_entropy: _clipped_entropy,
        inequalities.spectral_distance: _spectral_distance,
        inequalities.frobenius: _frobenius,
        inequalities.projection_distance: _projection_distance,
        inequalities.rival_distance: _rival_distance,
        inequalities.alpha_norm: _alpha_norm,
        inequalities.embedding: _embedding,
        visits.harmonic_visits: _harmonic_visits,
        visits.visit_sum: _visit_sum,
        visits.power_samples: _power_samples,
        visits.power_picks: _power_picks,
        visits.log_samples: _log_samples,
        visits.log_picks: _log_picks,
        visits.offset_log_picks: _offset_log_picks,
        visits.samples_power: _samples_power,
        visits.picks_power: _picks_power,
        visits.samples_log: _samples_log,
        visits.picks_log: _picks_log,
        visits.horizon_power: _horizon_power,
        visits.horizon_log: _horizon_log,
        visits.sampled_power: _sampled_power,
        visits.sampled_log: _sampled_log,
        visits.visits_from: _visits_from,
        inequalities.split_error: _split_error,
        inequalities.split: _split,
        inequalities.log_moment: _log_moment,
        inequalities.sub_exponential_sum: _sub_exponential_sum,
        quasi.integral_error: _integral_error,
        quasi.koksma_hlawka: _koksma_hlawka,
    }
)
