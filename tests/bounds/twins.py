"""Both sides of deterministic inequalities written out a second time, by the names of functions.

Rational sides are fractions; roots, logarithms and eigenvalues are taken with 50 digits. A twin
takes the constants `c` and the inputs `x`, and shares no code with its function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Any

from mpmath import mp

# A Fraction, or an mpmath number.
Number = Any
Inputs = Mapping[str, Any]


def twins_of(bound, inputs: Inputs) -> list[Fraction]:
    """Both sides of a statement, to 40 digits."""
    with mp.workdps(50):
        constants = {name: constant(value) for name, value in bound.constants.items()}
        functions = (bound.quantity.function, bound.width_function)
        sides = (globals()[function.__name__](constants, inputs) for function in functions)
        return [Fraction(mp.nstr(real(side), 40)) for side in sides]


def constant(value: float) -> Number:
    """Name the number that a printed constant stands for: 1/e, or a short fraction."""
    if value == math.exp(-1.0):
        return 1 / mp.e
    short = Fraction(value).limit_denominator(1000)
    return short if float(short) == value else Fraction(value)


def real(value: Number) -> Number:
    if isinstance(value, Fraction):
        return mp.mpf(value.numerator) / value.denominator
    return mp.mpf(value)


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Any:
    return mp.matrix([[real(value) for value in row] for row in rows])


def _nuclear(matrix: Any) -> Number:
    return mp.fsum(mp.svd_r(matrix, compute_uv=False))


def _eigenvalues(matrix: Any) -> list[Number]:
    if matrix.rows == 1:
        return [matrix[0, 0]]
    return sorted(mp.eigsy(matrix, eigvals_only=True))


def _trace_root(inputs: Inputs, name: str) -> Number:
    return _nuclear(_matrix(inputs[name]).T * _matrix(inputs["reference_factor"]))


def root_change(c: Inputs, x: Inputs) -> Number:
    return abs(_trace_root(x, "factor") - _trace_root(x, "other_factor"))


def root_change_bound(c: Inputs, x: Inputs) -> Number:
    first, second = _matrix(x["factor"]), _matrix(x["other_factor"])
    gap = max(abs(value) for value in _eigenvalues(first * first.T - second * second.T))
    return _nuclear(_matrix(x["reference_factor"])) * mp.sqrt(real(c["factor"]) * gap)


def larger_root(c: Inputs, x: Inputs) -> Number:
    return max(_nuclear(_matrix(x["factor"])), _nuclear(_matrix(x["other_factor"])))


def root_of_sum(c: Inputs, x: Inputs) -> Number:
    both = [[*a, *b] for a, b in zip(x["factor"], x["other_factor"], strict=True)]
    # Tall: the singular values are those of the transpose.
    return _nuclear(_matrix(both).T)


def root_of_sum_bound(c: Inputs, x: Inputs) -> Number:
    return real(c["factor"]) * root_of_sum(c, x)


def sum_of_roots(c: Inputs, x: Inputs) -> Number:
    total = _nuclear(_matrix(x["factor"])) + _nuclear(_matrix(x["other_factor"]))
    return real(c["factor"]) * total


def inverse_ratio(c: Inputs, x: Inputs) -> Number:
    root = mp.cholesky(_matrix(x["smaller"]))
    inner = root.T * mp.inverse(_matrix(x["larger"])) * root
    return _eigenvalues((inner + inner.T) / 2)[-1]


def ratio(c: Inputs, x: Inputs) -> Number:
    return c["ratio"]


def _entropy_sum(values: Sequence[Number]) -> Number:
    return mp.fsum(-real(v) * mp.log(real(v)) for v in values if v != 0)


def entropy(c: Inputs, x: Inputs) -> Number:
    return _entropy_sum(x["p"])


def clipped_entropy(c: Inputs, x: Inputs) -> Number:
    point = real(c["point"])
    moved = []
    for p, q in zip(x["p"], x["p_estimate"], strict=True):
        value, reach = real(q), abs(real(q - p))
        moved.append(
            point if abs(value - point) < reach else value + (reach if value < point else -reach)
        )
    return _entropy_sum(moved)


def spectral_distance(c: Inputs, x: Inputs) -> Number:
    pairs = zip(_eigenvalues(_matrix(x["a"])), _eigenvalues(_matrix(x["b"])), strict=True)
    return mp.sqrt(mp.fsum((a - b) ** 2 for a, b in pairs))


def _root(square: Fraction) -> Number:
    return mp.sqrt(real(square))


def frobenius(c: Inputs, x: Inputs) -> Number:
    pairs = [(p, q) for a, b in zip(x["a"], x["b"], strict=True) for p, q in zip(a, b, strict=True)]
    return real(c["factor"]) * _root(sum(((p - q) ** 2 for p, q in pairs), Fraction(0)))


def projection_distance(c: Inputs, x: Inputs) -> Number:
    v, t = x["v"], int(x["t"])
    lift = (1 - sum(v[:t], Fraction(0))) / t
    return _root(t * lift**2 + sum((value**2 for value in v[t:]), Fraction(0)))


def rival_distance(c: Inputs, x: Inputs) -> Number:
    pairs = zip(x["v"], x["w"], strict=True)
    return real(c["factor"]) * _root(sum(((p - q) ** 2 for p, q in pairs), Fraction(0)))


def alpha_norm(c: Inputs, x: Inputs) -> Number:
    order = real(x["alpha"])
    return mp.fsum(abs(real(value)) ** order for value in x["v"]) ** (1 / order)


def embedding(c: Inputs, x: Inputs) -> Number:
    power = (2 - real(x["alpha"])) / real(c["root"])
    return len(x["v"]) ** power * _root(sum((value**2 for value in x["v"]), Fraction(0)))


# --- visits -------------------------------------------------------------------------------------


def _logs(x: Inputs, scale: Number = 1) -> Number:
    return mp.fsum(mp.log(scale * real(picks)) for picks in x["picks"])


def _powers(x: Inputs, scale: Number = 1) -> Number:
    return mp.fsum((scale * real(picks)) ** (1 - real(x["alpha"])) for picks in x["picks"])


def harmonic_visits(c: Inputs, x: Inputs) -> Number:
    terms = (1 / (x["batch"] * k) for picks in x["picks"] for k in range(1, int(picks) + 1))
    return sum(terms, Fraction(0))


def visits_from(c: Inputs, x: Inputs) -> Number:
    order, batch, first = (real(x[name]) for name in ("alpha", "batch", "burn_in"))
    return mp.fsum((first + batch * k) ** -order for picks in x["picks"] for k in range(int(picks)))


def visit_sum(c: Inputs, x: Inputs) -> Number:
    return visits_from(c, {**x, "burn_in": x["batch"]})


def power_samples(c: Inputs, x: Inputs) -> Number:
    order, batch = real(x["alpha"]), real(x["batch"])
    return (real(c["base"]) * batch) ** order / (1 - order) * _powers(x, batch)


def power_picks(c: Inputs, x: Inputs) -> Number:
    order, batch = real(x["alpha"]), real(x["batch"])
    return (real(c["base"]) / batch) ** order / (1 - order) * _powers(x)


def log_samples(c: Inputs, x: Inputs) -> Number:
    batch = real(x["batch"])
    return real(c["factor"]) * batch * _logs(x, batch)


def log_picks(c: Inputs, x: Inputs) -> Number:
    return real(c["factor"]) / real(x["batch"]) * _logs(x)


def offset_log_picks(c: Inputs, x: Inputs) -> Number:
    return (len(x["picks"]) * real(c["offset"]) + _logs(x)) / real(x["batch"])


def samples_power(c: Inputs, x: Inputs) -> Number:
    return _powers(x, real(x["batch"]))


def picks_power(c: Inputs, x: Inputs) -> Number:
    return _powers(x)


def samples_log(c: Inputs, x: Inputs) -> Number:
    return _logs(x, real(x["batch"]))


def picks_log(c: Inputs, x: Inputs) -> Number:
    return _logs(x)


def horizon_power(c: Inputs, x: Inputs, batch: Number = 1) -> Number:
    arms, order = len(x["picks"]), real(x["alpha"])
    horizon = batch * real(sum(x["picks"], Fraction(0)))
    return real(c["factor"]) * arms**order * horizon ** (1 - order)


def sampled_power(c: Inputs, x: Inputs) -> Number:
    return horizon_power(c, x, real(x["batch"]))


def horizon_log(c: Inputs, x: Inputs, batch: Number = 1) -> Number:
    horizon = batch * real(sum(x["picks"], Fraction(0)))
    return real(c["factor"]) * len(x["picks"]) * mp.log(horizon)


def sampled_log(c: Inputs, x: Inputs) -> Number:
    return horizon_log(c, x, real(x["batch"]))


# --- splits, moments of sums, integrals ---------------------------------------------------------


def _split_parts(x: Inputs) -> tuple[Any, Any]:
    root, rows = _matrix(x["factor"]), _matrix(x["other_factor"])
    n = rows.cols
    mean = mp.matrix([mp.fsum(rows[i, j] for j in range(n)) / n for i in range(rows.rows)])
    return root * root.T - rows * rows.T / n, mean


def _largest(matrix: Any) -> Number:
    return max(abs(value) for value in _eigenvalues(matrix))


def split_error(c: Inputs, x: Inputs) -> Number:
    gap, mean = _split_parts(x)
    return _largest(gap + mean * mean.T)


def split(c: Inputs, x: Inputs) -> Number:
    gap, mean = _split_parts(x)
    return _largest(gap) + real(c["factor"]) * (mean.T * mean)[0, 0]


def _argument(x: Inputs) -> Fraction:
    edge = 2 * max(w * scale for w, scale in zip(x["weights"], x["scales"], strict=True))
    return Fraction(x["position"] / (edge or 1))


def log_moment(c: Inputs, x: Inputs) -> Number:
    s, parts = _argument(x), []
    names = ("weights", "shapes", "scales", "deviations")
    for w, shape, scale, deviation in zip(*(x[name] for name in names), strict=True):
        u = real(s * w * scale)
        parts += [-real(shape) * (mp.log(1 - u) + u), real((s * w * deviation) ** 2) / 2]
    return mp.fsum(parts)


def sub_exponential_sum(c: Inputs, x: Inputs) -> Number:
    names = ("weights", "shapes", "scales", "deviations")
    rows = zip(*(x[name] for name in names), strict=True)
    total = sum((w**2 * (2 * k * t**2 + d**2) for w, k, t, d in rows), Fraction(0))
    return c["factor"] * _argument(x) ** 2 * total / 2


def integral_error(c: Inputs, x: Inputs) -> Number:
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


def koksma_hlawka(c: Inputs, x: Inputs) -> Number:
    jumps = [sum(abs(b - a) for a, b in pairwise(levels)) for levels in x["levels"]]
    last = [c["faces"] * abs(levels[-1]) for levels in x["levels"]]
    whole = prod(j + v for j, v in zip(jumps, last, strict=True)) - prod(last)
    return c["factor"] * whole * _star_discrepancy(x["points"])
